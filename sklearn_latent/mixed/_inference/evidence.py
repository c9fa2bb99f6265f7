"""What the features of a slice say about each latent, and counts of the features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from .._emissions.base import as_codes, previous_values
from .._emissions.kinds import as_emission
from .._panels.panel import MISSING, distinct_rows


@dataclass(frozen=True)
class SlicePatterns:
    """Distinct values of some features in a slice, and where each occurs.

    A latent with three features of four values has at most 125 patterns, however many
    sequences and slices there are, so likelihoods are computed once per pattern.

    values: the patterns, (n_patterns, n_features)
    previous: values of the slice before of features with memory; missing for others
    index: pattern of each slice, (n, n_slices)
    """

    values: np.ndarray
    previous: np.ndarray
    index: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, emissions) -> SlicePatterns:
        """Patterns of values (n, n_slices, n_features), as emissions need them."""
        n, n_slices, n_features = values.shape
        if any(emission.is_numeric for emission in emissions):
            # Each slice of each sequence for itself: numbers seldom occur twice.
            return cls(
                values.reshape(n * n_slices, n_features),
                previous_values(values).reshape(n * n_slices, n_features),
                np.arange(n * n_slices).reshape(n, n_slices),
            )
        if not values.size:
            gaps = np.full((1, n_features), MISSING)
            return cls(gaps, gaps, np.zeros((n, n_slices), dtype=np.intp))
        codes = as_codes(values)
        memory = [place for place, e in enumerate(emissions) if e.has_memory]
        both = np.concatenate([codes, previous_values(codes)[:, :, memory]], axis=2)
        rows = both.reshape(n * n_slices, both.shape[2])
        first, index = distinct_rows(rows)
        previous = np.full((len(first), n_features), MISSING)
        previous[:, memory] = rows[first, n_features:]
        return cls(rows[first, :n_features], previous, index.reshape(n, n_slices))

    def log_likelihood(self, emissions) -> np.ndarray:
        """Logarithm of P(pattern | state), shape (n_patterns, n_states)."""
        emissions = [as_emission(emission) for emission in emissions]
        total = np.zeros((len(self.values), 1))
        pure, mixed = _by_contamination(emissions)
        if pure:
            natural = np.concatenate([emissions[f].natural for f in pure], axis=1)
            # A sparse product skips the zeros, so that 0 times log(0) does not arise.
            total = self._design(emissions, pure)[0] @ natural.T
        for f in mixed:
            alone = self._alone(emissions, f)
            total = total + alone._mixture([emissions[f]], 0)[0][alone.index]
        return total

    def statistics(self, posterior: np.ndarray, emissions) -> list[np.ndarray]:
        """Expected sufficient statistics of each feature, given weighted states."""
        mass = _sums_by(self.index.ravel(), posterior, len(self.values))
        pure, mixed = _by_contamination(emissions)
        found: dict[int, np.ndarray] = {}
        if pure:
            totals = (self._design(emissions, pure)[1] @ mass).T
            widths = [emissions[f].natural.shape[1] for f in pure]
            parts = np.split(totals, np.cumsum(widths)[:-1], axis=1)
            found = dict(zip(pure, parts, strict=True))
        for f in mixed:
            alone = self._alone(emissions, f)
            own = _sums_by(alone.index, mass, len(alone.values))
            found[f] = alone._of_mixture([emissions[f]], 0, own)
        return [found[f] for f in range(len(emissions))]

    def _alone(self, emissions, f: int) -> SlicePatterns:
        """Patterns of a single feature; many numbers are whole, or rounded."""
        cache = self.__dict__.setdefault("_features", {})
        key = f, emissions[f].has_memory
        if key not in cache:
            values, previous = self.values[:, [f]], self.previous[:, [f]]
            first = index = np.arange(len(values))
            if not emissions[f].has_memory:
                _, first, index = np.unique(
                    values[:, 0], return_index=True, return_inverse=True
                )
            cache[key] = SlicePatterns(values[first], previous[first], index)
        return cache[key]

    def _of_mixture(self, emissions, f: int, mass) -> np.ndarray:
        """Statistics of numbers that depend on the state, or not."""
        emission, (log, own, share) = emissions[f], self._mixture(emissions, f)
        first = share.shape[1] != mass.shape[1]
        if first:
            # States that nothing is known of yet: what is far from all other numbers
            # may be what a state is made of.
            common = share[:, 0] @ mass < 0.5 * mass.sum(axis=0)
            share = np.where(common, 1.0, share)
        weighted = mass * share
        totals = (self._design(emissions, [f])[1] @ weighted).T
        far = mass - weighted
        totals[:, emission.n_own] = far.sum(axis=0)
        if not first:
            # The expected log-likelihood is that of the mixture.
            price = np.log(emission.contamination)
            rest = mass * log - weighted * own - price * far
            totals[:, emission.n_own + 1] = rest.sum(axis=0)
        return totals

    def _mixture(self, emissions, f: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log-likelihood, that of the state alone, P(a value depends on the state).

        All have shape (n_patterns, n_states). An E-step needs them twice.
        """
        cache = self.__dict__.setdefault("_mixtures", {})
        emission = emissions[f]
        if cache.get(f, [None])[0] is not emission.natural:
            design, _, far = self._design(emissions, [f])
            own = design @ emission.natural.T
            log = np.logaddexp(own, far + np.log(emission.contamination))
            cache[f] = emission.natural, (log, own, np.exp(own - log))
        return cache[f][1]

    def _design(self, emissions, own) -> tuple[sparse.csr_array, sparse.csc_array, Any]:
        """Statistics of some features, and transposed; EM needs both in every step.

        And the log-density of values of a single one that do not depend on the state.
        """
        cache = self.__dict__.setdefault("_designs", {})
        key = tuple((f, emissions[f].key) for f in own)
        if key not in cache:
            now, past = self.values.T, self.previous.T
            parts = [emissions[f].design(now[f], past[f]) for f in own]
            design = sparse.hstack(parts, format="csr")
            first, far = emissions[own[0]], None
            if first.contamination:
                far = first.far_from(now[own[0]])[:, None]
            cache[key] = design, design.T, far
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
    def of(cls, logs, index) -> Evidence:
        """Split log-likelihoods of patterns of several latents off their scale."""
        centred, linear, scales = [], [], []
        for log in logs:
            # Maxima of columns are quicker than those of rows of few states.
            scale = reduce(np.maximum, log.T)
            impossible = np.isneginf(scale)
            if impossible.any():
                # A pattern that no state can emit says nothing about the state.
                log = np.where(impossible[:, None], 0.0, log)
            log = log - np.where(impossible, 0.0, scale)[:, None]
            centred.append(log)
            linear.append(np.exp(log))
            scales.append(scale)
        return cls(centred, linear, scales, list(index))

    def log_at(self, rows, t: int) -> np.ndarray:
        """Scaled log-likelihood of joint states at a slice, (n_rows, n_states)."""
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


def _by_contamination(emissions) -> tuple[list[int], list[int]]:
    """Emissions without and with values that do not depend on the state."""
    pure = [f for f, one in enumerate(emissions) if not one.contamination]
    return pure, [f for f, one in enumerate(emissions) if one.contamination]


def _sums_by(group: np.ndarray, values: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums of values (..., n_columns) over rows of the same group."""
    values = values.reshape(len(group), values.shape[-1])
    sums = np.empty((n_groups, values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(group, values[:, column], minlength=n_groups)
    return sums
