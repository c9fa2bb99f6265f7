"""Rows as what is learned from: tables with gaps, or sums over complete rows.

A linear network of complete rows needs no more than sums, and the number of different
rows as far as it limits the number of parents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .statistics import GaussianStatistics


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Number of different rows, exact up to a limit; instances add up.

    A node may have half as many parents as there are different rows, so that more than
    twice the number of features need not be counted: the smallest hashes are kept.
    """

    hashes: np.ndarray
    limit: int

    @classmethod
    def of(cls, X) -> DistinctRows:
        """Count rows; NaN is equal to NaN."""
        columns = np.arange(1, 2 * X.shape[1], 2, dtype=np.uint64)
        with np.errstate(over="ignore"):
            keys = (_scattered(X) * columns).sum(axis=1, dtype=np.uint64)
        limit = 2 * X.shape[1] + 2
        return cls(np.unique(keys)[:limit], limit)

    def __add__(self, other: DistinctRows) -> DistinctRows:
        return DistinctRows(
            np.union1d(self.hashes, other.hashes)[: self.limit], self.limit
        )

    def __len__(self) -> int:
        return len(self.hashes)


@dataclass(frozen=True, eq=False)
class RowStatistics:
    """All that a linear network needs of complete rows; instances add up."""

    moments: GaussianStatistics
    distinct: DistinctRows

    @classmethod
    def of(cls, X, sample_weight=None) -> RowStatistics:
        """Statistics of complete rows of positive weight."""
        return cls(GaussianStatistics.of(X, sample_weight), DistinctRows.of(X))

    def __add__(self, other: RowStatistics) -> RowStatistics:
        return RowStatistics(
            self.moments + other.moments, self.distinct + other.distinct
        )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.moments.n_nodes

    def columns(self, seen) -> RowStatistics:
        """Some of the columns; seen (n_features,)."""
        if seen.all():
            return self
        return RowStatistics(
            self.moments.reordered(np.flatnonzero(seen)), self.distinct
        )

    @property
    def weight(self) -> float:
        """Number of rows, or sum of their weights."""
        return self.moments.weight


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of rows in memory, each of positive weight; NaN is missing."""

    X: np.ndarray
    weights: np.ndarray | None

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

    @cached_property
    def distinct(self) -> DistinctRows:
        """Number of different rows."""
        return DistinctRows.of(self.X)

    def columns(self, seen) -> Rows:
        """Some of the columns; seen (n_features,)."""
        return self if seen.all() else Rows(self.X[:, seen], self.weights)

    def sum(self, values) -> float:
        """Weighted sum of one value per row."""
        return float(values.sum() if self.weights is None else self.weights @ values)


def _scattered(X) -> np.ndarray:
    """Bits of numbers, scattered by splitmix64; NaN and -0.0 have one form each."""
    bits = np.where(np.isnan(X), np.nan, X + 0.0).view(np.uint64)
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def row_keys(X) -> np.ndarray:
    """A number per row that depends on its values, not on the order of its columns."""
    bits = _scattered(X).sum(axis=1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
