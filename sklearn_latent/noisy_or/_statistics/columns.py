"""Columns that cannot be meant as they are: constant, coded 1/2, or not binary at all.

They are noticed where rows are read, in the same pass, on the workers of a cluster too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..._tables.blocks import Blocks

MOST_NAMES = 10
VALUES_AT_A_TIME = 2**15


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
        # Columns without any value are neither on nor off.
        one_or_two = (low >= 1) & (high <= 2)
        for j in np.flatnonzero(one_or_two):
            values = X[:, [j]].toarray() if sparse.issparse(X) else X[:, j]
            one_or_two[j] = not ((values > 1) & (values < 2)).any()
        n_rows = float(X.shape[0] if weights is None else weights.sum())
        return cls(n_rows, high > limit, low <= limit, other, one_or_two, low > 1)

    @classmethod
    def merge(cls, parts) -> Any:
        """Join blocks of rows, without those that are None, if any."""
        parts = [part for part in parts if part is not None]
        if not parts:
            return None
        n_rows, on, off, other, one_or_two, above_one = (
            np.stack(values) for values in zip(*parts, strict=True)
        )
        # A block without values says nothing.
        empty = ~on & ~off
        return cls(
            float(n_rows.sum()),
            on.any(axis=0),
            off.any(axis=0),
            other.any(axis=0),
            (one_or_two | empty).all(axis=0) & one_or_two.any(axis=0),
            (above_one | empty).all(axis=0) & above_one.any(axis=0),
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
    binary = np.flatnonzero((low == 0) & (high == 1))
    if X.dtype.kind == "f" and len(binary):
        # Parts of rows that stay in the cache: 14 ms for 100,000 rows of 64 columns,
        # against 83 column by column.
        step = max(1, VALUES_AT_A_TIME // X.shape[1])
        for start in range(0, len(X), step):
            part = X[start : start + step]
            part = part if len(binary) == X.shape[1] else part[:, binary]
            # Between 0 and 1, with NaN left out.
            between = part * part < part
            if between.any():
                other[binary] |= between.any(axis=0)
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


class WatchedBlocks(Blocks):
    """Blocks that also look at their columns when they are first read.

    blocks: blocks of ``(rows, weights)``
    threshold: above which values are on
    report: is called with the `Columns` of all rows that have some weight, once
    """

    def __init__(self, blocks: Blocks, threshold, report: Callable[[Columns], Any]):
        self.blocks = blocks
        self.threshold = threshold
        self.report: Callable[[Columns], Any] | None = report

    def map(self, function, *shared) -> Blocks:
        """Blocks that hold the results; None drops a block."""
        if self.report is None:
            return self.blocks.map(function, *shared)
        pairs = self.blocks.map(_watch, self.threshold, function, *shared)
        self._tell(pairs.reduce(_first, Columns.merge))
        return pairs.map(_second)

    def gather(self, function, *shared, each=None) -> list:
        """Results of all blocks, in order."""
        if self.report is None:
            return self.blocks.gather(function, *shared, each=each)
        pairs = self.blocks.gather(_watch, self.threshold, function, *shared, each=each)
        self._tell(Columns.merge(pair[0] for pair in pairs if pair is not None))
        return [None if pair is None else pair[1] for pair in pairs]

    def reduce(self, function, merge, *shared):
        """Results merged a few at a time."""
        if self.report is None:
            return self.blocks.reduce(function, merge, *shared)
        pair = self.blocks.reduce(
            _watch, partial(_merge, merge), self.threshold, function, *shared
        )
        if pair is None:  # a single block without rows
            return None
        self._tell(pair[0])
        return pair[1]

    def _tell(self, columns: Columns | None) -> None:
        report, self.report = self.report, None
        if columns is not None and report is not None:
            report(columns)


def _watch(block, threshold, function, *shared):
    """Columns of a block, and the result of a function of it."""
    X, weights = block
    if weights is not None and not weights.all():
        X, weights = X[weights > 0], weights[weights > 0]
    columns = Columns.of(X, threshold, weights) if X.shape[0] else None
    return columns, function(block, *shared)


def _merge(merge, pairs):
    pairs = [pair for pair in pairs if pair is not None]
    columns = Columns.merge(pair[0] for pair in pairs)
    return columns, merge([pair[1] for pair in pairs])


def _first(pair):
    return pair[0]


def _second(pair):
    return pair[1]
