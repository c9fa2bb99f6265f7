"""The likeliest states of the latents of each row: truncated posteriors.

A row says so much about its latents that few of their states matter, however many
latents there are. A beam keeps these states for every row. It is searched by switching
one latent at a time, for all rows at once: what a switch changes follows from the
children of the latent alone. The sum over the kept states is a lower bound of the
likelihood, and their shares are the truncated posterior of Luecke and Eggert (JMLR
2010); keeping the states from one EM step to the next makes it the truncated
variational EM of Drefs, Guiraud and Luecke (JMLR 2022).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._statistics.patterns import Patterns
from .layered import Layered

# Elements of the largest temporary arrays: 4 MB stay near the cache.
CHUNK_ELEMENTS = 1 << 19

# Factors that are multiplied before a logarithm is taken; none is below 1e-15.
FACTORS = 20

# A latent that cannot be switched off has no less than this chance.
LEAST_RATIO = 1e-15

# Rounds of switches of a search; each adds or drops one latent of each state.
MAX_ROUNDS = 100


class Width(NamedTuple):
    """How many states a beam keeps.

    least: states with a smaller share of the likeliest one of their row are dropped
    expanded: states with at least this share of their row are expanded
    most: number of states of a row
    """

    least: float
    expanded: float
    most: int


# For comparisons of structures. On random networks of 40 coupled latents this keeps 10
# states a row, which are 0.05 nats short of all; a tenth of these shares keeps 25
# states, takes twice the time and finds the same structures.
NARROW = Width(1e-2, 0.02, 32)

# For the parameters of the result.
FINE = Width(1e-3, 0.02, 64)

# For the likelihood and the posterior of a fitted network.
WIDE = Width(1e-4, 0.005, 200)


class Beam:
    """States of the latents that matter for each row, with their probabilities.

    States are a flat list, in the order of the rows, the likeliest of a row first.

    row: row of each state, (n_states,)
    states: which latents are on, (n_states, n_latents)
    log_joint: log P(row, state), (n_states,)
    share: P(state | row) among the states of the row, (n_states,)
    starts: first state of each row, (n_rows,)
    log_likelihood: log of the sum over the states of each row, (n_rows,)
    """

    log_joint: np.ndarray
    share: np.ndarray
    starts: np.ndarray
    log_likelihood: np.ndarray

    def __init__(self, patterns: Patterns, n_latents: int, width: Width = NARROW):
        self.patterns = patterns
        self.width = width
        self.n_rows = len(patterns.on)
        self.row = np.arange(self.n_rows)
        self.states = np.zeros((self.n_rows, n_latents), dtype=bool)

    @cached_property
    def _on(self):
        return np.ascontiguousarray(self.patterns.on.T)

    @cached_property
    def _off(self):
        return (self.patterns.known & ~self.patterns.on).astype(np.float64)

    def search(self, parameters: Layered) -> float:
        """Look for states from the empty one, beside those at hand; log-likelihood."""
        states, row = self.states, self.row
        self.row = np.arange(self.n_rows)
        self.states = np.zeros((self.n_rows, states.shape[1]), dtype=bool)
        self._open(parameters)
        self._expand_all(MAX_ROUNDS)
        self.row = np.concatenate([self.row, row])
        self.states = np.concatenate([self.states, states])
        return self.update(parameters)

    def update(self, parameters: Layered) -> float:
        """Follow a small change of the parameters; the log-likelihood of all rows."""
        self._open(parameters)
        self._expand_all(1)
        return float(self.patterns.weights @ self.log_likelihood)

    def keep(self, latents) -> None:
        """Drop all other latents."""
        self.states = self.states[:, latents]

    def add(self, n_latents: int) -> None:
        """Further latents, which are off."""
        new = np.zeros((len(self.states), n_latents), dtype=bool)
        self.states = np.hstack([self.states, new])

    def snapshot(self) -> dict:
        """What `restore` needs to undo changes: arrays are replaced, never changed."""
        return dict(self.__dict__)

    def restore(self, snapshot: dict) -> None:
        """Go back to an earlier snapshot."""
        self.__dict__.update(snapshot)

    def per_row(self, values) -> np.ndarray:
        """Sum over the states of each row."""
        return np.add.reduceat(values, self.starts, axis=0)

    @property
    def posterior(self) -> np.ndarray:
        """P(latent on | row), (n_rows, n_latents)."""
        return self.per_row(self.share[:, np.newaxis] * self.states)

    def class_shares_of(self, states) -> np.ndarray:
        """P(class | state), (n_states, n_classes); states as floats."""
        return self._log_prior(states)[1]

    def _open(self, parameters: Layered):
        """Tabulate the parameters, and evaluate the states at hand."""
        self.parameters = parameters
        self.log_failure = np.log(parameters.failure)
        self.log_leak_off = np.log1p(-parameters.leak)
        self._children = [np.flatnonzero(edges) for edges in parameters.structure]
        # What is off multiplies into the odds of the latents.
        self._off_latents = self._off @ self.log_failure.T
        self._off_leak = self._off @ self.log_leak_off
        prior = parameters.prior
        self._log_odds = np.log(prior) - np.log1p(-prior)
        self._log_class = np.log(parameters.weight) + np.log1p(-prior).sum(axis=1)
        self._keys = _random_keys(parameters.n_latents)
        keys = self._hash()
        # Latents that were dropped leave states twice.
        kept = _distinct(self.row, keys)
        kept = kept[np.argsort(self.row[kept], kind="stable")]
        self.row, self.states, keys = self.row[kept], self.states[kept], keys[kept]
        self._new = np.ones(len(self.row), dtype=bool)
        self._select(self._evaluate(), keys, 0.0)

    def _hash(self):
        """One number per state of the latents."""
        keys = np.zeros(len(self.states), dtype=np.uint64)
        for on, key in zip(self.states.T, self._keys, strict=True):
            keys[on] ^= key
        return keys

    def chunks(self, n_states: int, width: int | None = None):
        """Slices of states whose temporary arrays have a bounded size."""
        step = max(64, CHUNK_ELEMENTS // max(1, width or self._on.shape[0]))
        return (slice(i, min(i + step, n_states)) for i in range(0, n_states, step))

    def off_probability(self, states) -> np.ndarray:
        """P(feature off | state), (n_features, n_states); states as floats."""
        log_off = self.log_failure.T @ states.T
        log_off += self.log_leak_off[:, np.newaxis]
        return np.exp(log_off, out=log_off)

    def is_on(self, rows) -> np.ndarray:
        """Which features are on in some rows, (n_features, n_rows)."""
        return self._on.take(rows, axis=1)

    def _log_prior(self, states):
        """Log-probability of states, and P(class | state)."""
        joint = states @ self._log_odds.T
        joint += self._log_class
        peak = joint.max(axis=1)
        joint -= peak[:, np.newaxis]
        np.exp(joint, out=joint)
        total = joint.sum(axis=1)
        joint /= total[:, np.newaxis]
        return peak + np.log(total), joint

    def _evaluate(self):
        """Log P(row, state) of all states."""
        log_joint = np.empty(len(self.row))
        for part in self.chunks(len(self.row)):
            rows, states = self.row[part], self.states[part].astype(np.float64)
            on_probability = 1.0 - self.off_probability(states)
            on_probability[~self.is_on(rows)] = 1.0
            value = _log_product(on_probability)
            value += np.einsum("sk,sk->s", states, self._off_latents[rows])
            value += self._off_leak[rows]
            log_joint[part] = value + self._log_prior(states)[0]
        return log_joint

    def switch_gains(self, index) -> np.ndarray:
        """How log P(row, state) changes if a latent of some states is switched.

        index (n,) -> gains (n, n_latents).
        """
        gains = np.empty((len(index), len(self._children)))
        odds = np.exp(self._log_odds)
        for part in self.chunks(len(index)):
            rows, states = self.row[index[part]], self.states[index[part]]
            numbers = states.astype(np.float64)
            classes = self._log_prior(numbers)[1]
            change = np.log(np.where(states, classes @ (1.0 / odds), classes @ odds))
            off_latents = self._off_latents[rows]
            change += np.where(states, -off_latents, off_latents)
            off = self.off_probability(numbers)
            # Odds of staying off, for the features that are on.
            stay = np.where(self.is_on(rows), off / (1.0 - off), 0.0)
            for latent, children in enumerate(self._children):
                change[:, latent] += self._change_of_positives(
                    latent, stay[children], states[:, latent]
                )
            gains[part] = change
        return gains

    def _change_of_positives(self, latent, stay, is_on):
        """Change of the log-probability of what is on, if a latent is switched.

        A feature that is off with probability e changes its chance to be on from 1 - e
        to 1 - e f, or 1 - e / f: by a factor of 1 + e / (1 - e) * (1 - f).
        """
        failure = self.parameters.failure[latent, self._children[latent]]
        factor = 1.0 + stay * (1.0 - failure)[:, np.newaxis]
        if is_on.any():
            without = 1.0 + stay[:, is_on] * (1.0 - 1.0 / failure)[:, np.newaxis]
            factor[:, is_on] = np.maximum(without, LEAST_RATIO)
        return _log_product(factor)

    def _expand_all(self, n_rounds):
        """Add neighbours of likely states, and of those neighbours, while there are."""
        for _ in range(n_rounds):
            index = np.flatnonzero(self._new & (self.share >= self.width.expanded))
            if not len(index) or not len(self._children):
                break
            self._expand(index)

    def _expand(self, index):
        """Add the states that differ in one latent from some states, if they matter."""
        log_joint = self.log_joint[index][:, np.newaxis] + self.switch_gains(index)
        least = self.log_likelihood[self.row[index]] + np.log(self.width.least)
        source, latent = np.nonzero(log_joint > least[:, np.newaxis])
        old = len(self.row)
        states = self.states[index[source]]
        states[np.arange(len(source)), latent] ^= True
        keys = np.concatenate(
            [self._state_keys, self._state_keys[index[source]] ^ self._keys[latent]]
        )
        values = np.concatenate([self.log_joint, log_joint[source, latent]])
        self.row = np.concatenate([self.row, self.row[index[source]]])
        self.states = np.concatenate([self.states, states])
        self._new = np.arange(len(self.row)) >= old
        # The first of equal states is the old one, which has been expanded.
        kept = _distinct(self.row, keys)
        self.row, self.states = self.row[kept], self.states[kept]
        self._new = self._new[kept]
        self._select(values[kept], keys[kept], self.width.least)

    def _select(self, log_joint, keys, least):
        """Sort the states of each row, drop the unlikely ones, and normalise."""
        order = np.lexsort((-log_joint, self.row))
        row, log_joint = self.row[order], log_joint[order]
        first = np.ones(len(row), dtype=bool)
        first[1:] = row[1:] != row[:-1]
        starts = np.flatnonzero(first)
        number = np.cumsum(first) - 1
        rank = np.arange(len(row)) - starts[number]
        kept = rank < self.width.most
        if least:
            kept &= log_joint > log_joint[starts][number] + np.log(least)
            kept |= first
        chosen = order[kept]
        self.row, self.log_joint = row[kept], log_joint[kept]
        self.states, self._new = self.states[chosen], self._new[chosen]
        self._state_keys = keys[chosen]
        self.starts = np.flatnonzero(first[kept])
        peak = self.log_joint[self.starts]
        share = np.exp(self.log_joint - peak[number[kept]])
        total = np.add.reduceat(share, self.starts)
        self.share = share / total[number[kept]]
        self.log_likelihood = peak + np.log(total)


def _random_keys(n_latents) -> np.ndarray:
    """Fixed random 64-bit numbers (the mixer of splitmix64)."""
    x = np.arange(1, n_latents + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _distinct(row, keys) -> np.ndarray:
    """First occurrence of each pair of row and state."""
    mixed = keys ^ (row.astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93))
    return np.unique(mixed, return_index=True)[1]


def _log_product(factors) -> np.ndarray:
    """Log of the product over axis 0: a logarithm takes as long as 20 products."""
    total = np.zeros(factors.shape[1])
    for start in range(0, len(factors), FACTORS):
        total += np.log(np.multiply.reduce(factors[start : start + FACTORS], axis=0))
    return total
