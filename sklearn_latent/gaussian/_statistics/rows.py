"""Rows as what is learned from: tables with gaps, or sums over complete rows.

A linear network of complete rows needs no more than sums. They are kept of two parts:
of the rows to learn from and of those held out to choose a search. Which is which
depends on the values of a row alone, so that every block can tell by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .statistics import GaussianStatistics

# Share of the rows that are held out to choose a search.
HELD_OUT = 0.25


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
        """Statistics of rows, of which there may be none."""
        if len(X):
            moments = GaussianStatistics.of(X, sample_weight)
        else:
            n = X.shape[1]
            moments = GaussianStatistics(0.0, np.zeros(n), np.zeros((n, n)))
        return cls(moments, DistinctRows.of(X))

    def __add__(self, other: RowStatistics) -> RowStatistics:
        return RowStatistics(
            self.moments + other.moments, self.distinct + other.distinct
        )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.moments.n_nodes

    @property
    def weight(self) -> float:
        """Number of rows, or sum of their weights."""
        return self.moments.weight


@dataclass(frozen=True, eq=False)
class SplitStatistics:
    """Statistics of the rows to learn from and of those held out; instances add up."""

    train: RowStatistics
    test: RowStatistics

    @classmethod
    def of(cls, X, sample_weight=None) -> SplitStatistics:
        """Statistics of complete rows of positive weight."""
        return cls(*(RowStatistics.of(*part) for part in _split(X, sample_weight)))

    def __add__(self, other: SplitStatistics) -> SplitStatistics:
        return SplitStatistics(self.train + other.train, self.test + other.test)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.train.n_features

    @cached_property
    def all(self) -> RowStatistics:
        """Statistics of all rows."""
        return self.train + self.test

    @property
    def parts(self) -> tuple[RowStatistics, RowStatistics]:
        """What to learn from, and what is held out."""
        return self.train, self.test


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

    @property
    def all(self) -> Rows:
        """All rows."""
        return self

    @cached_property
    def parts(self) -> tuple[Rows, Rows]:
        """What to learn from, and what is held out."""
        train, test = _split(self.X, self.weights)
        return Rows(*train), Rows(*test)

    def columns(self, seen) -> Rows:
        """Some of the columns; seen (n_features,)."""
        return self if seen.all() else Rows(self.X[:, seen], self.weights)

    def sum(self, values) -> float:
        """Weighted sum of one value per row."""
        return float(values.sum() if self.weights is None else self.weights @ values)


def hold_out(X) -> np.ndarray:
    """Mask of held-out rows, by their values.

    Rows that are equal stay on one side, so that a weight of 2 is still a row twice,
    and neither the order of the rows nor that of the columns matters.
    """
    bits = _scattered(X).sum(axis=1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return (bits >> np.uint64(40)) < np.uint64(int(HELD_OUT * 2**24))


def _split(X, sample_weight):
    """Rows and weights to learn from, and those held out."""
    held_out = hold_out(X)
    return tuple(
        (X[rows], None if sample_weight is None else sample_weight[rows])
        for rows in (~held_out, held_out)
    )


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
