"""Rows as what is learned from: tables with gaps, or sums over complete rows.

A linear network of complete rows needs no more than sums, and the number of different
rows as far as it limits the number of parents. Margins come before sums of scores, so
rows are needed twice: arrays and Dask collections are read again; of batches, which are
seen once, a sample is kept. Up to its limit the sample is all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ._statistics import GaussianStatistics

# Values of the rows that are kept: 32 megabytes. A thousandth of them would still tell
# a margin to about a percent.
MOST_VALUES = 1 << 22


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of rows in memory, each of positive weight; NaN is missing."""

    X: np.ndarray
    weights: np.ndarray | None = None

    @classmethod
    def of(cls, X, weights=None) -> Rows:
        """Rows, without those of no weight: they are rows that are not there."""
        if weights is not None:
            X, weights = X[weights > 0], weights[weights > 0]
        return cls(X, weights)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.X.shape[1]

    @cached_property
    def has_gaps(self) -> bool:
        """Whether any value is missing."""
        return bool(np.isnan(self.X).any())

    @property
    def weight(self) -> float:
        """Number of rows, or sum of their weights."""
        return float(len(self.X) if self.weights is None else self.weights.sum())

    @property
    def counts(self) -> np.ndarray:
        """Weight of each row."""
        return np.ones(len(self.X)) if self.weights is None else self.weights

    @property
    def n_distinct(self) -> int:
        """Number of different rows, as far as it matters."""
        return len(_smallest(_count_keys(self.X), self.n_features))

    def columns(self, seen) -> Rows:
        """Some of the columns; seen (n_features,)."""
        return self if seen.all() else Rows(self.X[:, seen], self.weights)

    def sum(self, values) -> float:
        """Weighted sum of one value per row."""
        return float(values.sum() if self.weights is None else self.weights @ values)

    def sample(self) -> Rows:
        """Different rows, as many as are kept of a table of any size.

        Which rows are kept depends on their values alone, so that neither their order
        nor how they are split matters.
        """
        most = max(MOST_VALUES // max(self.n_features, 1), 1)
        X, weights = self.X, self.weights
        if len(X) > most:
            keys = row_keys(X)
            different = np.unique(keys)
            keep = keys <= different[min(most, len(different)) - 1]
            X, weights = X[keep], None if weights is None else weights[keep]
        return Rows(*distinct_rows(X, weights))


@dataclass(frozen=True, eq=False)
class RowSums:
    """All that a linear network needs of complete rows; instances add up.

    keys: smallest of the keys of the rows, by which different ones are counted
    log_slope: sum of the log-slopes of the margins whose scores these are; None if
        they are values
    kept: sample of the rows, if margins need one
    """

    moments: GaussianStatistics
    keys: np.ndarray
    log_slope: float | None = None
    kept: Rows | None = None

    @classmethod
    def of(cls, rows: Rows, *, log_slope=None, sampled=False) -> RowSums:
        """Sums of complete rows of positive weight."""
        moments = GaussianStatistics.of(rows.X, rows.weights)
        keys = _smallest(_count_keys(rows.X), rows.n_features)
        return cls(moments, keys, log_slope, rows.sample() if sampled else None)

    def __add__(self, other: RowSums) -> RowSums:
        keys = np.concatenate([self.keys, other.keys])
        log_slope = kept = None
        if self.log_slope is not None and other.log_slope is not None:
            log_slope = self.log_slope + other.log_slope
        if self.kept is not None and other.kept is not None:
            parts = self.kept, other.kept
            X = np.vstack([part.X for part in parts])
            kept = Rows(X, np.concatenate([part.counts for part in parts])).sample()
        moments = self.moments + other.moments
        keys = _smallest(keys, self.n_features)
        return RowSums(moments, keys, log_slope, kept)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.moments.n_nodes

    @property
    def n_distinct(self) -> int:
        """Number of different rows, as far as it matters."""
        return len(self.keys)

    @property
    def weight(self) -> float:
        """Number of rows, or sum of their weights."""
        return self.moments.weight

    @property
    def keeps_all(self) -> bool:
        """Whether the sample leaves no row out."""
        return self.kept is not None and self.kept.weight > (1.0 - 1e-9) * self.weight

    @property
    def rows(self) -> Rows:
        """The sample, as rows that weigh as much as all."""
        assert self.kept is not None  # kept for this
        factor = 1.0 if self.keeps_all else self.weight / self.kept.weight
        return Rows(self.kept.X, self.kept.counts * factor)

    def columns(self, seen) -> RowSums:
        """Some of the columns; seen (n_features,)."""
        if seen.all():
            return self
        return replace(self, moments=self.moments.reordered(np.flatnonzero(seen)))


def row_keys(X, factor=1) -> np.ndarray:
    """A number per row that depends on its values, not on the order of its columns.

    Bits are scattered by splitmix64; NaN and -0.0 have one form each. With odd numbers
    as factors of the columns, their order matters.
    """
    bits = np.where(np.isnan(X), np.nan, X + 0.0).view(np.uint64)
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits = (bits ^ (bits >> np.uint64(31))) * np.asarray(factor, dtype=np.uint64)
        bits = bits.sum(axis=1, dtype=np.uint64)
        return (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)


def _count_keys(X) -> np.ndarray:
    """Keys of different rows, the order of the columns counted."""
    return row_keys(X, np.arange(1, 2 * X.shape[1], 2))


def _smallest(keys, n_features) -> np.ndarray:
    """Different keys, no more than matter: a node has half as many parents at most."""
    return np.unique(keys)[: 2 * n_features + 2]


def distinct_rows(X, sample_weight=None) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows, in an order of their own, and the weight of each.

    Sums over them are the same to the last digit in whatever order the rows came, and
    whether a row has a weight of 2 or is there twice. EM that ends before the last
    digits stand would show the difference.

    X (n_samples, n_features), sample_weight (n_samples,) -> rows (n_rows, n_features),
    weights (n_rows,).
    """
    # Bytes sort faster than rows of numbers, and 0 and -0 are the same number.
    values = np.ascontiguousarray(X, dtype=np.float64) + 0.0
    items = values.view(f"V{values.itemsize * values.shape[1]}").ravel()
    _, first, group = np.unique(items, return_index=True, return_inverse=True)
    weights = np.bincount(group.ravel(), weights=sample_weight, minlength=len(first))
    present = weights > 0
    return values[first[present]], weights[present].astype(np.float64)
