"""Columns that cannot be meant as they are: constant, coded 1/2, or not binary at all.

They are noticed where rows are read, in the same pass, on the workers of a cluster too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .packed import PackedRows

# Columns that are named.
MOST_NAMES = 10


class Columns(NamedTuple):
    """What the columns of a block hold, one truth value per column.

    n_rows: sum of the weights
    on, off: whether some value is above the threshold, and not above it
    other: whether some value is neither 0 nor 1
    one_or_two: whether all values are 1 or 2
    above_one: whether all values are above 1
    """

    n_rows: float
    on: Any
    off: Any
    other: Any
    one_or_two: Any
    above_one: Any

    @classmethod
    def of(cls, X, threshold: float | None, weights=None) -> Columns:
        """Look at validated rows, at least one, of positive weights."""
        look = _look_at_sparse if sparse.issparse(X) else _look_at_dense
        low, high, other = look(X)
        limit = 0.5 if threshold is None else threshold
        # Of columns without any value, which are neither on nor off, all is true.
        one_or_two = ~((low < 1) | (high > 2))
        for j in np.flatnonzero(one_or_two):
            values = X[:, [j]].toarray() if sparse.issparse(X) else X[:, j]
            one_or_two[j] = not ((values > 1) & (values < 2)).any()
        n_rows = float(X.shape[0] if weights is None else weights.sum())
        return cls(n_rows, high > limit, low <= limit, other, one_or_two, ~(low <= 1))

    def __add__(self, more) -> Columns:
        return Columns(
            self.n_rows + more.n_rows,
            self.on | more.on,
            self.off | more.off,
            self.other | more.other,
            self.one_or_two & more.one_or_two,
            self.above_one & more.above_one,
        )

    def refuse_codes(self, names, threshold: float | None) -> None:
        """Refuse columns of 1 and 2, either of which may be meant as on."""
        coded = self.one_or_two & self.other & ~self.above_one & (threshold == 0.0)
        if coded.any():
            raise ValueError(
                f"X must say which value is on: {_list(np.flatnonzero(coded), names)} "
                "coded 1 and 2, which are both above binarize=0.0. Set binarize=1.0 if "
                "2 means on; pass X == 1 if 1 does."
            )

    def complaint(self, names, threshold: float | None) -> str:
        """What to say of columns that cannot be meant, or nothing."""
        other = self.other & (threshold == 0.0)
        coded = other & self.one_or_two
        parts = [
            (coded, "always 2 and thus always on; use binarize=1.0 if 1 is off"),
            (
                other & ~coded,
                "not binary, and binarize=0.0 takes all values above 0 as on; use "
                "another threshold, X of 0 and 1, or LPCC, which takes ratings and "
                "numbers as they are",
            ),
            (self.on & ~self.off & ~coded, "always on, which tells nothing of latents"),
            (self.off & ~self.on, "never on, which tells nothing of latents"),
            (~self.on & ~self.off, "without any value"),
        ]
        return "; ".join(
            f"{_list(np.flatnonzero(columns), names)} {text}"
            for columns, text in parts
            if columns.any()
        )


def _look_at_dense(X) -> tuple[Any, Any, Any]:
    """Smallest and largest values, NaN if there are none; whether others than 0, 1."""
    low, high = (f.reduce(X, axis=0).astype(float) for f in (np.fmin, np.fmax))
    extremes = np.stack([low, high])
    other = ((extremes != 0) & (extremes != 1) & ~np.isnan(extremes)).any(axis=0)
    if X.dtype.kind == "f":
        # NaN is neither.
        other |= ((X > 0) & (X < 1)).any(axis=0)
    return low, high, other


def _look_at_sparse(X) -> tuple[Any, Any, Any]:
    """The same of a csr array; what is not stored is 0."""
    n_rows, n_columns = X.shape
    stored = np.bincount(X.indices, minlength=n_columns)
    low = np.where(stored < n_rows, 0.0, np.nan)
    high, other = low.copy(), np.zeros(n_columns, dtype=bool)
    np.fmin.at(low, X.indices, X.data.astype(float))
    np.fmax.at(high, X.indices, X.data.astype(float))
    other[X.indices[(X.data != 0) & (X.data != 1) & ~np.isnan(X.data)]] = True
    return low, high, other


def _list(columns, names) -> str:
    """Some names of columns, and their number if there are more."""
    shown = ", ".join(str(names[j]) for j in columns[:MOST_NAMES])
    if len(columns) > MOST_NAMES:
        return f"{len(columns)} columns ({shown}, ...) are"
    return f"column {shown} is" if len(columns) == 1 else f"columns {shown} are"


class Watched(NamedTuple):
    """The columns of some rows, and what a function says of the packed rows."""

    columns: Columns
    result: Any

    @classmethod
    def of(cls, block, threshold, function, *shared) -> Watched | None:
        """Look at a block of rows and weights; None if no row has any weight."""
        X, weights = block
        rows = PackedRows.of(X, threshold, weights)
        if not rows.n_rows:
            return None
        if weights is not None and not weights.all():
            X, weights = X[weights > 0], weights[weights > 0]
        return cls(Columns.of(X, threshold, weights), function(rows, *shared))

    def __add__(self, more) -> Watched:
        return Watched(self.columns + more.columns, self.result + more.result)


def columns_of(watched: Watched) -> Columns:
    """The columns alone."""
    return watched.columns


def result_of(watched: Watched) -> Any:
    """The result alone."""
    return watched.result


def as_packed(rows: PackedRows) -> PackedRows:
    """The rows themselves."""
    return rows
