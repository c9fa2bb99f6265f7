"""Sequences, what their slices say about each latent, and counts of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from .._emissions.emission import as_codes, previous_values
from .._panels.panel import distinct_rows, is_known


class Values:
    """Distinct values of a feature, with those before where an emission needs them.

    values, previous: (n_distinct,)
    index: which of them each pattern has, (n_patterns,)
    """

    def __init__(self, values, previous, emission):
        if emission.is_numeric and emission.has_memory:
            first = index = np.arange(len(values))
        elif emission.is_numeric:
            # Many numbers are whole, or rounded.
            _, first, index = np.unique(values, return_index=True, return_inverse=True)
        else:
            values, previous = as_codes(values), as_codes(previous)
            pairs = np.stack([values, previous], axis=1)[:, : 1 + emission.has_memory]
            first, index = distinct_rows(pairs)
        self.values, self.previous, self.index = values[first], previous[first], index
        self._designs: dict = {}
        self._last: tuple = (None, ())

    def log_likelihood(self, emission) -> np.ndarray:
        """Logarithm of P(value | state), (n_patterns, n_states)."""
        return self._mixture(emission)[0][self.index]

    def statistics(self, emission, mass) -> np.ndarray:
        """Expected sufficient statistics, given the mass of states of patterns.

        mass (n_states, n_patterns) -> (n_states, n_statistics).
        """
        mass = sums_by(self.index, mass, len(self.values))
        design = self._design(emission)
        if not emission.contamination:
            return mass @ design
        log, own, share = (part.T for part in self._mixture(emission))
        first = len(share) != len(mass)
        if first:
            # States that nothing is known of yet: what is far from all other numbers
            # may be what a state is made of.
            common = mass @ share[0] < 0.5 * mass.sum(axis=1)
            share = np.where(common[:, None], 1.0, share)
        weighted = mass * share
        totals, far = weighted @ design, mass - weighted
        totals[:, emission.n_own] = far.sum(axis=1)
        if not first:
            # The expected log-likelihood is that of the mixture.
            price = np.log(emission.contamination)
            rest = mass * log - weighted * own - price * far
            totals[:, emission.n_own + 1] = rest.sum(axis=1)
        return totals

    def _mixture(self, emission) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log-likelihood, that of the state alone, P(a value depends on the state).

        All have shape (n_distinct, n_states). An E-step needs them twice.
        """
        if self._last[0] is not emission.natural:
            own = self._design(emission) @ np.maximum(emission.natural, IMPOSSIBLE).T
            own = np.where(own <= IMPOSSIBLE, -np.inf, own)
            log, share = own, np.ones(1)
            if emission.contamination:
                far = emission.far_from(self.values)[:, None]
                log = np.logaddexp(own, far + np.log(emission.contamination))
                share = np.exp(own - log)
            self._last = emission.natural, (log, own, share)
        return self._last[1]

    def _design(self, emission) -> np.ndarray:
        """Statistics of the values; EM needs them in every step."""
        if emission.key not in self._designs:
            found = emission.design(self.values, self.previous)
            self._designs[emission.key] = found
        return self._designs[emission.key]


# Coefficients below stand for log(0): a product with 0 statistics is 0.
IMPOSSIBLE = -1e300


class Patterns:
    """Distinct values of some features in a slice, and where each occurs.

    A latent with three features of four values has at most 125 patterns, however many
    sequences and slices there are.

    features: values of each, by pattern
    index: pattern of each slice, (n, n_slices)
    """

    def __init__(self, values: np.ndarray, emissions: Sequence):
        n, n_slices, n_features = values.shape
        rows = values.reshape(n * n_slices, n_features)
        before = previous_values(values).reshape(rows.shape)
        # Each slice of each sequence for itself: numbers seldom occur twice.
        self.index = np.arange(len(rows)).reshape(n, n_slices)
        if not any(emission.is_numeric for emission in emissions):
            rows, before = as_codes(rows), as_codes(before)
            memory = [place for place, e in enumerate(emissions) if e.has_memory]
            both = np.concatenate([rows, before[:, memory]], axis=1)
            first, index = distinct_rows(both)
            rows, before = rows[first], before[first]
            self.index = index.reshape(n, n_slices)
        self.values = rows
        self.features = [
            Values(rows[:, f], before[:, f], emission)
            for f, emission in enumerate(emissions)
        ]

    def log_likelihood(self, emissions) -> np.ndarray:
        """Logarithm of P(pattern | state), (n_patterns, n_states)."""
        parts = zip(self.features, emissions, strict=True)
        nothing = np.zeros((len(self.values), 1))
        return sum((own.log_likelihood(e) for own, e in parts), nothing)

    def statistics(self, posterior: np.ndarray, emissions) -> list[np.ndarray]:
        """Expected sufficient statistics of each feature, given weighted states."""
        flat = posterior.reshape(-1, posterior.shape[-1]).T
        mass = sums_by(self.index.ravel(), flat, len(self.values))
        parts = zip(self.features, emissions, strict=True)
        return [own.statistics(emission, mass) for own, emission in parts]


def sums_by(group: np.ndarray, values: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums of values (n_rows, n) over places of the same group, (n_rows, n_groups)."""
    return np.array([np.bincount(group, row, minlength=n_groups) for row in values])


@dataclass(frozen=True)
class ChainData:
    """Sequences, prepared for one assignment of features to latents.

    values: the sequences, (n, n_slices, n_observed): codes, -1 = missing, or floats,
        NaN = missing
    structure: features of each latent, (n_latents, n_observed)
    weights: weight of the sequence, 0 behind its last known value: a ragged end is no
        evidence for the parameters, (n, n_slices)
    """

    values: np.ndarray
    structure: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, values, structure, sample_weight=None) -> ChainData:
        """Find where each sequence ends."""
        known = np.asarray(is_known(values).any(axis=2))
        behind = np.logical_or.accumulate(known[:, ::-1], axis=1)[:, ::-1]
        if sample_weight is None:
            sample_weight = np.ones(len(values))
        return cls(values, structure, np.asarray(sample_weight)[:, None] * behind)

    @cached_property
    def of_sequences(self) -> np.ndarray:
        """Weight of each sequence; one without any value has none, (n,)."""
        return self.weights.max(axis=1, initial=0.0)

    @property
    def total(self) -> float:
        """Weight of the sequences together."""
        return float(self.of_sequences.sum())

    @cached_property
    def alone(self) -> np.ndarray:
        """Features that measure no latent."""
        return np.flatnonzero(~self.structure.any(axis=0))

    def patterns(self, features, emissions) -> Patterns:
        """Values of some features, with those before where emissions need them."""
        cache = self.__dict__.setdefault("_patterns", {})
        key = tuple(features), tuple((e.is_numeric, e.has_memory) for e in emissions)
        if key not in cache:
            cache[key] = Patterns(self.values[:, :, list(features)], emissions)
        return cache[key]

    def statistics(self, feature: int, emission, states) -> np.ndarray:
        """Expected sufficient statistics of a feature, given weighted states."""
        own = [emission]
        return self.patterns([feature], own).statistics(states, own)[0]

    def emission_statistics(self, network, states) -> list:
        """Expected sufficient statistics of every feature, epoch by epoch."""
        parts = [(network.graph.features_of(j), s) for j, s in enumerate(states)]
        parts += [([f], np.ones((*self.weights.shape, 1))) for f in self.alone]
        found = []
        for own, span in network._spans(self.values.shape[1]):
            weights = np.zeros_like(self.weights)
            weights[:, span] = self.weights[:, span]
            of_features: dict = {}
            for features, state in parts:
                emissions = [own.emissions[f] for f in features]
                patterns = self.patterns(features, emissions)
                counts = patterns.statistics(state * weights[:, :, None], emissions)
                of_features |= dict(zip(features, counts, strict=True))
            found += [of_features[f] for f in range(network.graph.n_observed)]
        return found

    def alone_log_likelihood(self, network) -> np.ndarray:
        """Log-likelihood of the features that measure no latent, by sequence."""
        total = np.zeros(len(self.values))
        for own, span in network._spans(self.values.shape[1]):
            for f in self.alone:
                emission = [own.emissions[f]]
                patterns = self.patterns([f], emission)
                logs = patterns.log_likelihood(emission)
                total += logs[patterns.index[:, span], 0].sum(axis=1)
        return total


class Evidence:
    """Likelihoods of the states of some latents, pattern by pattern.

    logs: per latent, less the largest of each row, (n_patterns, n_states)
    linear: their exponentials
    scale: what was taken off, (n_patterns,)
    index: pattern of each slice, per latent, (n, n_slices)
    """

    def __init__(self, network, data: ChainData, latents):
        self.logs, self.linear, self.scale, self.index = [], [], [], []
        self.shape = data.weights.shape
        for j in latents:
            log, index = self._of_latent(network, data, int(j))
            # Maxima of columns are quicker than those of rows of few states.
            scale = reduce(np.maximum, log.T)
            impossible = np.isneginf(scale)
            if impossible.any():
                # A pattern that no state can emit says nothing about the state.
                log = np.where(impossible[:, None], 0.0, log)
            log = log - np.where(impossible, 0.0, scale)[:, None]
            self.logs.append(log)
            self.linear.append(np.exp(log))
            self.scale.append(scale)
            self.index.append(index)

    @staticmethod
    def _of_latent(network, data, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Log-likelihoods of patterns of each epoch, and the pattern of each slice."""
        logs, indices, n_patterns = [], [], 0
        for own, span in network._spans(data.values.shape[1]):
            emissions = own.emissions_of(j)
            patterns = data.patterns(network.graph.features_of(j), emissions)
            log = patterns.log_likelihood(emissions)
            # A latent that nothing measures may be in any state.
            log = log if emissions else np.zeros((len(log), network.cardinality[j]))
            logs.append(log)
            indices.append(patterns.index[:, span] + n_patterns)
            n_patterns += len(log)
        if len(logs) == 1:
            return logs[0], indices[0]
        return np.concatenate(logs), np.concatenate(indices, axis=1)

    def states(self, place: int, rows, span: slice, log=False, joint=None):
        """Likelihoods of the states of a latent, (n_slices * n_rows, n_states).

        joint: state of the latent in each joint state of several
        """
        table = self.logs[place] if log else self.linear[place]
        own = self.index[place][rows, span].T.ravel()
        if joint is None:
            return table[own]
        # Products of whole rows are quicker than those of short axes.
        if len(own) < 2 * len(table):
            return table.take(own, 0).take(joint, 1)
        return table.take(joint, 1).take(own, 0)

    def total_scale(self, rows) -> np.ndarray:
        """Sum over slices of what was taken off, (n_rows,)."""
        each = zip(self.scale, self.index, strict=True)
        return sum(scale[index[rows]].sum(axis=1) for scale, index in each)
