"""Filled gaps, in the type that the data came in."""

from __future__ import annotations

import numpy as np

from .em import merge_sequences
from .impute import MAX_SEQUENCES, Imputer

__all__ = ["OnDemandImputer", "fill_gaps"]


class OnDemandImputer:
    """An `Imputer` that learns from training sequences when "hybrid" is first used.

    Most users never ask for it, and it can take longer than the rest of ``fit``.

    codes: training sequences, -1 = missing; as many are kept as the imputer looks at,
        (n, n_slices, n_observed)
    weights: their weights, (n,)
    """

    def __init__(self, codes, weights):
        codes, weights = merge_sequences(codes, weights)
        if len(codes) > MAX_SEQUENCES:
            chosen = np.linspace(0, len(codes) - 1, MAX_SEQUENCES).astype(int)
            codes, weights = codes[chosen], weights[chosen]
        self.codes = codes.astype(np.min_scalar_type(-max(codes.max(initial=0), 1) - 1))
        self.weights = weights
        self.imputer = None

    def fill(self, network, codes, strategy="posterior") -> np.ndarray:
        """As `Imputer.fill`."""
        if strategy == "posterior":
            return Imputer().fill(network, codes, strategy)
        if self.imputer is None:
            training = self.codes.astype(np.int64)
            self.imputer = Imputer().fit(network, training, self.weights)
            self.codes = self.weights = None  # nobody asks for them again
        return self.imputer.fill(network, codes, strategy)


def fill_gaps(X, panel, decoded):
    """Put values where `X` has none, keeping its type, its labels and all else.

    panel (n, n_slices, n_observed), decoded (n, n_slices, n_observed).
    """
    missing = _is_missing(panel)
    flat = missing.reshape(len(panel), -1)
    values = decoded.reshape(len(panel), -1)
    if hasattr(X, "iloc"):
        filled = X.copy()
        for j in np.flatnonzero(flat.any(axis=0)):
            column = filled.iloc[:, j].copy()
            new = values[flat[:, j], j]
            if hasattr(column, "cat"):
                # This frame may lack categories that the one in fit had.
                unknown = [
                    v for v in dict.fromkeys(new) if v not in column.cat.categories
                ]
                column = column.cat.add_categories(unknown)
            column.iloc[flat[:, j]] = new
            filled.isetitem(j, column)
        return filled
    if hasattr(X, "with_columns"):
        filled = X.clone()
        for j in np.flatnonzero(flat.any(axis=0)):
            column = filled.to_series(j).to_list()
            for i in np.flatnonzero(flat[:, j]):
                column[i] = values[i, j]
            series = type(filled.to_series(j))(
                filled.columns[j], column, dtype=filled.dtypes[j]
            )
            filled.replace_column(j, series)
        return filled
    filled = panel.copy()
    filled[missing] = decoded[missing]
    return filled.reshape(np.shape(X))


def _is_missing(values: np.ndarray) -> np.ndarray:
    """Where values are NaN or None."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        import pandas as pd

        return np.asarray(pd.isna(values), dtype=bool)
    return np.zeros(values.shape, dtype=bool)
