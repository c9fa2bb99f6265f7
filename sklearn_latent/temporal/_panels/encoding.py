"""Panels as integer codes: categories of any label type, bins of numbers, gaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ..._warn import warn
from ...exceptions import PoorDataWarning
from .panel import MISSING


@dataclass
class PanelEncoder:
    """Turn values into codes 0, 1, ... per feature, and back.

    A feature has the same categories in all slices. Labels of any type are
    categories, and so are numbers if there are few and all are integers. Other
    numbers are cut into bins of about equal weight.

    n_bins: number of bins of a numeric feature
    max_categories: most values of a feature of integers that stay categories
    categories_: labels of each feature by code; for bins, the median of the values in
        it
    edges_: inner edges of the bins of each feature, None for categories
    names: of the features, for messages; None numbers them
    """

    n_bins: int = 4
    max_categories: int = 10
    categories_: list = field(default_factory=list, init=False)
    edges_: list = field(default_factory=list, init=False)
    names: list | None = field(default=None, init=False)

    def name_of(self, j: int) -> str:
        """What to call a feature in a message."""
        return f"feature {j}" if self.names is None else repr(self.names[j])

    @property
    def n_categories(self) -> np.ndarray:
        """Number of categories or bins of each feature; at least 1."""
        return np.array([len(labels) for labels in self.categories_], dtype=int)

    def fit(self, panel, sample_weight=None) -> PanelEncoder:
        """Learn the categories and bins of each feature."""
        n, n_slices, n_observed = panel.shape
        weights = np.ones(n) if sample_weight is None else sample_weight
        # A sequence of weight 0 is not there, so it brings no category either.
        panel = panel[weights > 0]
        weights = np.repeat(weights[weights > 0], n_slices)
        categories, edges = [], []
        for j in range(n_observed):
            labels, cuts = self._fit_feature(panel[:, :, j].ravel(), weights, j)
            categories.append(labels)
            edges.append(cuts)
        self.categories_, self.edges_ = categories, edges
        return self

    def _fit_feature(self, column, weights, j):
        """Labels and inner edges of one feature."""
        known = ~is_missing(column)
        numbers = _as_numbers(column[known])
        if numbers is None:
            return _sorted_labels(column[known]), None
        if not len(numbers):
            # Nothing is known of the feature: one category, which says nothing.
            return np.zeros(1), None
        if not np.isfinite(numbers).all():
            raise ValueError(f"X must hold no infinity, got one in {self.name_of(j)}.")
        values, inverse = np.unique(numbers, return_inverse=True)
        whole = (values == np.round(values)).all()
        if len(values) <= (max(self.max_categories, 2) if whole else self.n_bins):
            return values, None
        mass = np.bincount(inverse.ravel(), weights[known], minlength=len(values))
        return _quantile_bins(values, mass, self.n_bins)

    def encode(self, panel) -> np.ndarray:
        """Codes of a panel."""
        if panel.shape[2] != len(self.categories_):
            raise ValueError(
                f"X must have {len(self.categories_)} features per slice, as in fit, "
                f"got {panel.shape[2]}."
            )
        codes = np.full(panel.shape, MISSING, dtype=np.int64)
        unseen = []
        for j, (labels, edges) in enumerate(
            zip(self.categories_, self.edges_, strict=True)
        ):
            column = panel[:, :, j].ravel()
            known = ~is_missing(column)
            found = _encode_feature(column[known], labels, edges, self.name_of(j))
            if (found == MISSING).any():
                example = column[known][found == MISSING][:1].tolist()[0]
                unseen.append(f"{self.name_of(j)} ({example!r})")
            flat = np.full(len(column), MISSING, dtype=np.int64)
            flat[known] = found
            codes[:, :, j] = flat.reshape(panel.shape[:2])
        if unseen:
            warn(
                "X has categories that were not seen in fit and count as missing: "
                f"{', '.join(unseen)}.",
                PoorDataWarning,
            )
        return codes

    def decode(self, codes) -> np.ndarray:
        """Labels of codes."""
        codes = np.asarray(codes)
        numeric = all(labels.dtype.kind != "O" for labels in self.categories_)
        values = np.empty(codes.shape, dtype=float if numeric else object)
        gap = np.array([np.nan if numeric else None], dtype=values.dtype)
        for j, labels in enumerate(self.categories_):
            # The gap comes last, where code -1 finds it.
            values[..., j] = np.concatenate([labels.astype(values.dtype), gap])[
                codes[..., j]
            ]
        return values


def is_missing(values: np.ndarray) -> np.ndarray:
    """Where a value is NaN, None or the like."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    import pandas as pd

    return np.asarray(pd.isna(values), dtype=bool)


def _as_numbers(column: np.ndarray) -> np.ndarray | None:
    """The values as floats, or None if some are no numbers."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind != "O":
        return None
    if any(isinstance(value, (str, bytes)) for value in column):
        return None
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _sorted_labels(column: np.ndarray) -> np.ndarray:
    """Distinct labels, in an order that does not depend on that of the rows."""
    import pandas as pd

    try:
        distinct = pd.unique(pd.Series(column, dtype=object))
    except TypeError as error:
        raise TypeError(
            "X must hold labels that can be compared; an argument must be a string or "
            f"a number, got others ({error})."
        ) from error
    labels = np.empty(len(distinct), dtype=object)
    try:
        labels[:] = sorted(distinct)
    except TypeError:
        labels[:] = sorted(distinct, key=lambda x: (type(x).__name__, repr(x)))
    return labels


def _quantile_bins(values, mass, n_bins):
    """Cut between distinct values, where the mass is closest to equal shares.

    A function of the distinct values and their weights alone, so that a weight of 2 is
    a row twice.
    """
    share = np.cumsum(mass)[:-1] / mass.sum()
    targets = np.arange(1, n_bins) / n_bins
    cuts = np.unique(np.abs(share[:, None] - targets).argmin(axis=0))
    edges = (values[cuts] + values[cuts + 1]) / 2
    bounds = [0, *(cuts + 1).tolist(), len(values)]
    medians = []
    for low, high in pairwise(bounds):
        half = np.cumsum(mass[low:high])
        medians.append(values[low + int(np.searchsorted(half, half[-1] / 2))])
    return np.asarray(medians), edges


def _encode_feature(column, labels, edges, name):
    """Codes of the known values of one feature; -1 for labels not in the list."""
    if labels.dtype.kind == "O":
        import pandas as pd

        return pd.Index(labels, dtype=object).get_indexer(
            pd.Index(column, dtype=object)
        )
    numbers = _as_numbers(column)
    if numbers is None:
        numbers = np.array([_number_or_nan(value) for value in column])
    elif not np.isfinite(numbers).all():
        raise ValueError(f"X must hold no infinity, got one in {name}.")
    if edges is not None:
        return np.where(
            np.isnan(numbers), MISSING, np.searchsorted(edges, numbers, side="left")
        )
    place = np.minimum(np.searchsorted(labels, numbers), len(labels) - 1)
    return np.where(labels[place] == numbers, place, MISSING)


def _number_or_nan(value) -> float:
    """A number, or NaN for a label among numbers, which no category equals."""
    try:
        return float("nan") if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        return float("nan")
