"""Data with missing values, its rows grouped by which of them are missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

# A pattern with this many rows is worth a call of its own.
OWN_CALL = 16

# Numbers held at a time.
CHUNK = 4_000_000


@dataclass(frozen=True)
class IncompleteData:
    """Data whose rows are grouped by which of their values are missing.

    Built once, used by every E-step. A pattern with more rows than observed features is
    kept as its weight, mean and scatter only.

    patterns: true where a value is observed, (n_patterns, n_features)
    values: rows, sorted by pattern; NaN is missing, (n_rows, n_features)
    sample_weight: row weights, (n_rows,)
    starts: where the rows of each pattern start, (n_patterns + 1,)
    order: place of each sorted row in the data that came, (n_rows,)
    """

    patterns: np.ndarray
    values: np.ndarray
    sample_weight: np.ndarray
    starts: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, X, sample_weight=None) -> IncompleteData:
        """Group the rows of `X`, in which NaN is missing."""
        X = np.asarray(X, dtype=float)
        observed = ~np.isnan(X)
        # Packed bits sort eight times as fast as the flags themselves.
        packed = np.packbits(observed, axis=1)
        _, first, inverse = np.unique(
            packed, axis=0, return_index=True, return_inverse=True
        )
        inverse = inverse.ravel()
        order = np.argsort(inverse, kind="stable")
        starts = np.searchsorted(inverse[order], np.arange(len(first) + 1))
        if sample_weight is None:
            sample_weight = np.ones(len(X))
        weight = np.asarray(sample_weight, dtype=float)[order]
        return cls(observed[first], X[order], weight, starts, order)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.patterns.shape[1]

    @property
    def n_missing(self) -> int:
        """Number of missing values."""
        return int((~self.patterns).sum(axis=1) @ np.diff(self.starts))

    @cached_property
    def weight(self) -> float:
        """Sum of the row weights."""
        return float(self.sample_weight.sum())

    @cached_property
    def dense(self) -> np.ndarray:
        """Patterns that are kept as their statistics."""
        return np.diff(self.starts) > self.patterns.sum(axis=1) + 1

    @cached_property
    def summaries(self) -> dict[int, tuple[float, np.ndarray, np.ndarray]]:
        """Weight, mean and scatter of the observed features of dense patterns."""
        result = {}
        for index in np.flatnonzero(self.dense):
            rows = slice(self.starts[index], self.starts[index + 1])
            w = self.sample_weight[rows]
            total = float(w.sum())
            if total == 0.0:
                continue
            values = self.values[rows][:, self.patterns[index]]
            mean = w @ values / total
            centred = values - mean
            result[int(index)] = (total, mean, (centred.T * w) @ centred)
        return result


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


def batches(data: IncompleteData, n_nodes: int, chosen) -> Iterator[np.ndarray]:
    """Patterns that are solved in one call: large ones alone, small ones by size."""
    counts = np.diff(data.starts)
    alone = counts >= OWN_CALL
    for index in np.flatnonzero(chosen & alone):
        yield np.array([index])
    n_observed = data.patterns.sum(axis=1)
    small = np.flatnonzero(chosen & ~alone)
    for size in np.unique(n_observed[small]):
        batch = small[n_observed[small] == size]
        n_missing = n_nodes - size
        numbers = np.cumsum(counts[batch]) * max(n_missing, size) ** 2
        yield from np.split(batch, np.flatnonzero(np.diff(numbers // CHUNK)) + 1)


def rows_of(data: IncompleteData, patterns):
    """Sorted rows of some patterns, and the place of each row's pattern."""
    counts = data.starts[patterns + 1] - data.starts[patterns]
    place = np.repeat(np.arange(len(patterns)), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    rows = np.repeat(data.starts[patterns], counts) + np.arange(len(place)) - first
    return rows, place
