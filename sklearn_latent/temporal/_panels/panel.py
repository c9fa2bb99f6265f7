"""Encoded sequences: what the algorithms of the family learn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Code of a value that is not known.
MISSING = -1


@dataclass(frozen=True)
class Panel:
    """Sequences of categories, their weights, and the numbers of categories.

    codes: category numbers, -1 = missing, (n, n_slices, n_observed)
    weights: (n,)
    n_categories: of each feature, (n_observed,)
    """

    codes: np.ndarray
    weights: np.ndarray
    n_categories: np.ndarray

    @classmethod
    def of(cls, codes, n_categories, sample_weight=None) -> Panel:
        """Sequences whose weights may be None, which is 1 each."""
        codes = np.asarray(codes)
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        return cls(codes, np.asarray(weights, float), np.asarray(n_categories, int))

    @property
    def n_slices(self) -> int:
        """Length of a sequence."""
        return self.codes.shape[1]

    @property
    def n_observed(self) -> int:
        """Number of features per slice."""
        return self.codes.shape[2]

    def of_features(self, features) -> Panel:
        """The same sequences of some of the features."""
        features = list(features)
        return Panel(
            self.codes[:, :, features], self.weights, self.n_categories[features]
        )

    def of_slices(self, window: slice) -> Panel:
        """The same sequences, cut to some of the slices."""
        return Panel(self.codes[:, window], self.weights, self.n_categories)

    def merged(self) -> Panel:
        """Distinct sequences, with the sums of their weights."""
        first, index = distinct_rows(self.codes.reshape(len(self.codes), -1))
        weights = np.bincount(index, self.weights, minlength=len(first))
        return Panel(self.codes[first], weights, self.n_categories)


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First place of each distinct row, in order, and which of them each row is."""
    keys = _row_keys(rows)
    _, first, index = np.unique(keys, return_index=True, return_inverse=True)
    return first, index.ravel()


def _row_keys(rows: np.ndarray) -> np.ndarray:
    """One integer per row, equal for equal rows and in the order of the rows.

    Columns are packed into 64 bits as long as they fit; then the keys so far give way
    to their ranks. Sorting integers is much faster than sorting rows.
    """
    keys = np.zeros(len(rows), dtype=np.int64)
    size = 1
    for column in rows.T:
        width = int(column.max(initial=MISSING)) + 2
        if size * width >= 1 << 62:
            values, inverse = np.unique(keys, return_inverse=True)
            keys, size = inverse.ravel().astype(np.int64), len(values)
        keys = keys * width + (column + 1)
        size *= width
    return keys
