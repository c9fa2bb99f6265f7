"""What the features of a slice say about each latent, and counts of the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .._emission import Layout
from .._panels.panel import MISSING, distinct_rows
from .._tables import log_table


@dataclass(frozen=True)
class SlicePatterns:
    """Distinct values of some features in a slice, and where each occurs.

    A latent with three features of four values has at most 125 patterns, however many
    sequences and slices there are, so likelihoods are computed once per pattern.

    codes: the patterns, (n_patterns, n_features)
    index: pattern of each slice, (n, n_slices)
    """

    codes: np.ndarray
    index: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray) -> SlicePatterns:
        """Find the patterns of codes of shape (n, n_slices, n_features)."""
        n, n_slices, n_features = codes.shape
        rows = codes.reshape(n * n_slices, n_features)
        if not rows.size:
            index = np.zeros((n, n_slices), dtype=np.intp)
            return cls(np.full((1, n_features), MISSING), index)
        first, index = distinct_rows(rows)
        return cls(rows[first], index.reshape(n, n_slices))

    def log_likelihood(self, tables) -> np.ndarray:
        """Logarithm of P(pattern | state), shape (n_patterns, n_states)."""
        if not tables:
            return np.zeros((len(self.codes), 1))
        _, indicators = self._design([table.shape[1] for table in tables])
        # A sparse product skips the zeros, so that 0 times log(0) does not arise.
        return indicators @ log_table(np.concatenate(tables, axis=1)).T

    def counts(self, posterior: np.ndarray, n_categories) -> list[np.ndarray]:
        """Expected counts of (state, category) of each feature."""
        layout, indicators = self._design(n_categories)
        mass = _sums_by(self.index.ravel(), posterior, len(self.codes))
        return layout.split((indicators.T @ mass).T)

    def _design(self, n_categories) -> tuple[Layout, sparse.csr_array]:
        """Indicators of the patterns, which EM needs in every step."""
        cache = self.__dict__.setdefault("_designs", {})
        key = tuple(n_categories)
        if key not in cache:
            layout = Layout(key)
            cache[key] = layout, layout.indicators(self.codes)
        return cache[key]


@dataclass(frozen=True)
class Evidence:
    """Likelihoods of the states of several latents, pattern by pattern.

    log_likelihood: per latent, less the largest of each row, (n_patterns, n_states)
    likelihood: its exponential, (n_patterns, n_states)
    scale: what was taken off, (n_patterns,)
    index: pattern of each slice, per latent, (n, n_slices)
    """

    log_likelihood: list
    likelihood: list
    scale: list
    index: list

    @classmethod
    def of(cls, patterns, tables) -> Evidence:
        """Likelihoods of patterns of several latents under their emission tables."""
        logs, linear, scales = [], [], []
        for pattern, of_latent in zip(patterns, tables, strict=True):
            log = pattern.log_likelihood(of_latent)
            scale = log.max(axis=1)
            # A pattern that no state can emit says nothing about the state.
            log = np.where(np.isneginf(scale)[:, None], 0.0, log)
            log -= log.max(axis=1, keepdims=True)
            logs.append(log)
            linear.append(np.exp(log))
            scales.append(scale)
        return cls(logs, linear, scales, [pattern.index for pattern in patterns])

    def at(self, rows, t: int) -> np.ndarray:
        """Scaled likelihood of all joint states at slice `t`, (n_rows, n_states)."""
        joint = self.likelihood[0][self.index[0][rows, t]]
        for likelihood, index in zip(self.likelihood[1:], self.index[1:], strict=True):
            factor = likelihood[index[rows, t]]
            joint = (joint[:, :, None] * factor[:, None, :]).reshape(len(joint), -1)
        return joint

    def log_at(self, rows, t: int) -> np.ndarray:
        """Logarithm of `at`, which does not underflow."""
        joint = self.log_likelihood[0][self.index[0][rows, t]]
        for log, index in zip(self.log_likelihood[1:], self.index[1:], strict=True):
            term = log[index[rows, t]]
            joint = (joint[:, :, None] + term[:, None, :]).reshape(len(joint), -1)
        return joint

    def total_scale(self, rows) -> np.ndarray:
        """Sum over slices of what was taken off, shape (n_rows,)."""
        return sum(
            scale[index[rows]].sum(axis=1)
            for scale, index in zip(self.scale, self.index, strict=True)
        )


def _sums_by(group: np.ndarray, values: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums of values (..., n_columns) over rows of the same group."""
    values = values.reshape(len(group), values.shape[-1])
    sums = np.empty((n_groups, values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(group, values[:, column], minlength=n_groups)
    return sums
