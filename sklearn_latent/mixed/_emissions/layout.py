"""Tables of several categorical features, one beside the other."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from .._panels.panel import MISSING


class Layout:
    """Where the columns of each feature are.

    n_categories (n_features,).
    """

    def __init__(self, n_categories):
        self.n_categories = np.asarray(n_categories, dtype=np.int64)
        # First column of each feature.
        self.offsets = np.concatenate([[0], np.cumsum(self.n_categories)[:-1]])
        self.offsets = self.offsets.astype(np.intp)[: len(self.n_categories)]

    def indicators(self, codes) -> sparse.csr_array:
        """Rows of zeros and ones, zeros alone where a value is missing.

        codes (n, n_features) -> (n, sum(n_categories)).
        """
        known = codes != MISSING
        ends = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        columns = (codes + self.offsets)[known].astype(np.intp)
        return sparse.csr_array(
            (np.ones(len(columns)), columns, ends),
            shape=(len(codes), int(self.n_categories.sum())),
        )

    def normalized(self, counts) -> np.ndarray:
        """Probabilities from counts, along the last axis."""
        sums = np.add.reduceat(counts, self.offsets, axis=-1)
        return counts / sums[..., self._feature_of_column]

    def split(self, tables) -> list[np.ndarray]:
        """Tables of the single features, of the last axis."""
        return np.split(tables, self.offsets[1:], axis=-1) if len(self.offsets) else []

    def n_free(self, n_states: int) -> int:
        """Number of free parameters."""
        return n_states * int((self.n_categories - 1).sum())

    @cached_property
    def _feature_of_column(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.n_categories)), self.n_categories)
