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
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ._expected import Expected
from ._statistics.patterns import Patterns

# Elements of the largest temporary arrays: 4 MB stay near the cache.
CHUNK_ELEMENTS = 1 << 19

# Probabilities are kept this far from 0 and 1, so that the product of a few factors
# has a logarithm: one logarithm takes as long as 20 products.
TINY, FACTORS = 1e-15, 20

# Rounds of switches of a search; each adds or drops one latent of each state.
MAX_ROUNDS = 100

# Share of edges among all pairs of latents and features above which dense matrices are
# faster than sparse ones.
DENSE = 0.3

# States of a row on the way from the empty state to the likeliest ones, times the
# square of the number of latents: where latents are many, the likeliest state on the
# way is all that matters. (With one of three latents that share features, the second
# was missed in 1,500 rows; with all, the search of 80 latents takes 2.4 times as long.)
ON_THE_WAY = 1280


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

    States are a flat list, in the order of the rows.

    row: row of each state, (n_states,)
    states: which latents are on, (n_states, n_latents)
    log_joint: log P(row, state), (n_states,)
    share: P(state | row) among the states of the row, (n_states,)
    starts: first state of each row, (n_rows,)
    log_likelihood: log of the sum over the states of each row, (n_rows,)
    network: whose probabilities these are
    """

    log_joint: np.ndarray
    share: np.ndarray
    starts: np.ndarray
    log_likelihood: np.ndarray

    def __init__(self, patterns: Patterns, n_latents: int, width: Width = NARROW):
        self.patterns = patterns
        self.width = width
        self.n_rows = len(patterns.on)
        self._reset(n_latents)

    def _reset(self, n_latents):
        """Nothing but the empty state of each row."""
        self.row = np.arange(self.n_rows)
        self.states = np.zeros((self.n_rows, n_latents), dtype=bool)
        self._keys: Any = None

    @cached_property
    def _on(self):
        return np.ascontiguousarray(self.patterns.on.T, dtype=np.float64)

    @cached_property
    def _off(self):
        return (self.patterns.known & ~self.patterns.on).astype(np.float64)

    def search(self, network, log_odds=0.0) -> float:
        """Look for states from the empty one, beside those at hand; log-likelihood.

        log_odds: what else is known of the latents of each row
        """
        states, row = self.states, self.row
        self._tabulate(network, log_odds)
        self._reset(states.shape[1])
        self._evaluate()
        ways = ON_THE_WAY // max(1, network.n_latents) ** 2
        if network.n_classes > 1:
            # No single switch leads from one class to another.
            ways = self.width.most
        self._expand_all(MAX_ROUNDS, int(np.clip(ways, 1, self.width.most)))
        self.row = np.concatenate([self.row, row])
        self.states = np.concatenate([self.states, states])
        self._keys = None
        self._evaluate()
        self._expand_all(MAX_ROUNDS)
        return float(self.patterns.weights @ self.log_likelihood)

    def update(self, network, *, expand: bool = True) -> float:
        """Follow a small change of the parameters; the log-likelihood of all rows."""
        self._tabulate(network)
        self._evaluate()
        if expand:
            self._expand_all(1)
        return float(self.patterns.weights @ self.log_likelihood)

    def keep(self, latents) -> None:
        """Drop all other latents."""
        self.states, self._keys = self.states[:, latents], None

    def add(self, n_latents: int) -> None:
        """Further latents, which are off."""
        new = np.zeros((len(self.states), n_latents), dtype=bool)
        self.states, self._keys = np.hstack([self.states, new]), None

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

    @property
    def class_posterior(self) -> np.ndarray:
        """P(class | row), (n_rows, n_classes)."""
        shares = self._log_prior(self.states.astype(np.float64))[1]
        return self.per_row(self.share[:, np.newaxis] * shares)

    def _tabulate(self, network, log_odds: Any = 0.0):
        """What all states need of the parameters."""
        self.network = network = network._clipped(TINY)
        log_failure = np.log(network.failure)
        self.log_leak_off = np.log1p(-network.leak)
        self.children = [np.flatnonzero(edges) for edges in network.structure]
        self._effects: Any = np.ascontiguousarray(log_failure.T)
        if network.structure.sum() < DENSE * network.structure.size:
            self._effects = sparse.csr_array(self._effects)
        # What is off multiplies into the odds of the latents.
        self._off_latents = self._off @ log_failure.T + log_odds
        self._off_leak = self._off @ self.log_leak_off
        prior = network.class_prior
        self._log_odds = np.log(prior) - np.log1p(-prior)
        log_none = np.log1p(-prior).sum(axis=1)
        self._log_class = np.log(network.class_weight) + log_none
        self._latent_keys = _random_keys(network.n_latents)

    def _hash(self):
        """One number per row and state of the latents."""
        keys = self.row.astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
        for on, key in zip(self.states.T, self._latent_keys, strict=True):
            keys[on] ^= key
        return keys

    def chunks(self, n_states: int, width: int | None = None):
        """Slices of states whose temporary arrays have a bounded size."""
        step = max(64, CHUNK_ELEMENTS // max(1, width or self._on.shape[0]))
        return (slice(i, min(i + step, n_states)) for i in range(0, n_states, step))

    def off_probability(self, states, features=slice(None)) -> np.ndarray:
        """P(feature off | state), (n_features, n_states)."""
        numbers = np.ascontiguousarray(states.T, dtype=np.float64)
        log_off = self._effects[features] @ numbers
        log_off += self.log_leak_off[features, np.newaxis]
        return np.exp(log_off, out=log_off)

    def fired(self, part) -> np.ndarray:
        """[feature on] / P(feature on | state) of a slice, (n_features, n_states)."""
        fired = self.is_on(self.row[part])
        fired /= 1.0 - self.off_probability(self.states[part])
        return fired

    def is_on(self, rows) -> np.ndarray:
        """1 where features are on in some rows, else 0, (n_features, n_rows)."""
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
        """Log P(row, state) of all states at hand, and what follows from it."""
        if self._keys is None:
            self._drop_copies()
        log_joint = np.empty(len(self.row))
        for part in self.chunks(len(self.row)):
            rows, states = self.row[part], self.states[part].astype(np.float64)
            on_probability = self.off_probability(states)
            on_probability *= self.is_on(rows)
            np.subtract(1.0, on_probability, out=on_probability)
            value = _log_product(on_probability)
            value += np.einsum("sk,sk->s", states, self._off_latents[rows])
            value += self._off_leak[rows]
            log_joint[part] = value + self._log_prior(states)[0]
        self.log_joint = log_joint
        self._normalise()
        self._new = np.ones(len(self.row), dtype=bool)

    def _drop_copies(self):
        """Sort states by row, each once: latents that were dropped leave copies."""
        keys = self._hash()
        kept = _first(keys)
        kept = kept[np.argsort(self.row[kept], kind="stable")]
        self.row, self.states = self.row[kept], self.states[kept]
        self._keys = keys[kept]

    def _normalise(self):
        """Shares of the states, and the likelihood of the rows."""
        first = np.append(True, self.row[1:] != self.row[:-1])
        self.starts = np.flatnonzero(first)
        peak = np.maximum.reduceat(self.log_joint, self.starts)
        share = np.exp(self.log_joint - peak[self.row])
        total = np.add.reduceat(share, self.starts)
        self.share = share / total[self.row]
        self.log_likelihood = peak + np.log(total)

    def switch_gains(self, index) -> np.ndarray:
        """How log P(row, state) changes if a latent of some states is switched.

        index (n,) -> gains (n, n_latents).
        """
        gains = np.empty((len(index), len(self.children)))
        for part in self.chunks(len(index)):
            rows, states = self.row[index[part]], self.states[index[part]]
            off, on = self.off_probability(states), self.is_on(rows)
            # Odds of staying off, for the features that are on.
            on *= off
            np.subtract(1.0, off, out=off)
            on /= off
            change = np.empty((len(self.children), len(rows)))
            for latent in range(len(change)):
                change[latent] = self._change_of_positives(
                    latent, on, np.flatnonzero(states[:, latent])
                )
            lift = self._switch_on(states) + self._off_latents[rows]
            gains[part] = change.T + np.where(states, -lift, lift)
        return gains

    def _switch_on(self, states):
        """Log-odds of latents, given the others."""
        if len(self._log_odds) == 1:
            return self._log_odds
        odds = np.exp(self._log_odds)
        classes = self._log_prior(states.astype(np.float64))[1]
        return np.where(states, -np.log(classes @ (1.0 / odds)), np.log(classes @ odds))

    def _change_of_positives(self, latent, stay, is_on):
        """Change of the log-probability of what is on, if a latent is switched.

        A feature that is off with probability e changes its chance to be on from 1 - e
        to 1 - e f, or 1 - e / f: by a factor of 1 + e / (1 - e) * (1 - f).
        """
        children = self.children[latent]
        failure = self.network.failure[latent, children][:, np.newaxis]
        factor = stay[children]
        factor *= 1.0 - failure
        if len(is_on):
            factor[:, is_on] /= -failure
        factor += 1.0
        # A latent that cannot be switched off has no less than a tiny chance.
        return _log_product(np.maximum(factor, TINY, out=factor))

    def _expand_all(self, n_rounds, most=None):
        """Add neighbours of likely states, and of those neighbours, while there are."""
        most = most or self.width.most
        self._select(most)
        for _ in range(n_rounds):
            index = np.flatnonzero(self._new & (self.share >= self.width.expanded))
            if not len(index) or not len(self.children):
                break
            self._expand(index)
            self._select(most)

    def _expand(self, index):
        """Add the states that differ in one latent from some states, if they matter."""
        log_joint = self.log_joint[index][:, np.newaxis] + self.switch_gains(index)
        least = self.log_likelihood[self.row[index]] + np.log(self.width.least)
        source, latent = np.nonzero(log_joint > least[:, np.newaxis])
        keys = self._keys[index[source]] ^ self._latent_keys[latent]
        chosen = _unknown(keys, self._keys)
        source, latent, keys = source[chosen], latent[chosen], keys[chosen]
        states = self.states[index[source]]
        states[np.arange(len(source)), latent] ^= True
        row = np.concatenate([self.row, self.row[index[source]]])
        order = np.argsort(row, kind="stable")
        values = np.concatenate([self.log_joint, log_joint[source, latent]])
        self._new = order >= len(self.row)
        self.row, self.log_joint = row[order], values[order]
        self.states = np.concatenate([self.states, states])[order]
        self._keys = np.concatenate([self._keys, keys])[order]
        self._normalise()

    def _select(self, most):
        """Drop the unlikely states of each row."""
        peak = np.maximum.reduceat(self.log_joint, self.starts)
        self._take(self.log_joint >= peak[self.row] + np.log(self.width.least))
        counts = np.diff(np.append(self.starts, len(self.row)))
        if counts.max(initial=0) > most:
            crowded = np.flatnonzero((counts > most)[self.row])
            order = crowded[np.lexsort((-self.log_joint[crowded], self.row[crowded]))]
            counts = counts[counts > most]
            rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
            kept = np.ones(len(self.row), dtype=bool)
            kept[order[rank >= most]] = False
            self._take(kept)

    def _take(self, kept):
        """Keep some states, at least one of each row."""
        if not kept.all():
            self.row, self.states = self.row[kept], self.states[kept]
            self.log_joint, self._keys = self.log_joint[kept], self._keys[kept]
            self._new = self._new[kept]
            self._normalise()

    def expect(self) -> Expected:
        """E-step: sums over the states, weighted by the rows."""
        patterns, n_features = self.patterns, self.patterns.on.shape[1]
        mass = patterns.weights[self.row] * self.share
        causes = np.zeros(self.network.failure.shape)
        leak_causes = np.zeros(n_features)
        classes = np.zeros(self.network.n_classes)
        latent_on = np.zeros(self.network.class_prior.shape)
        for part in self.chunks(len(self.row)):
            states = self.states[part].astype(np.float64)
            fired = self.fired(part)
            fired *= mass[part]
            causes += self._edge_sums(states, fired)
            leak_causes += fired.sum(axis=1)
            shares = self._log_prior(states)[1] * mass[part, np.newaxis]
            classes += shares.sum(axis=0)
            latent_on += shares.T @ states
        if patterns.observed is None:
            trials = np.repeat(latent_on.sum(axis=0)[:, np.newaxis], n_features, axis=1)
            leak_trials = np.full(n_features, patterns.weights.sum())
        else:
            known = patterns.observed * patterns.weights[:, np.newaxis]
            trials, leak_trials = self.posterior.T @ known, known.sum(axis=0)
        log_likelihood = float(patterns.weights @ self.log_likelihood)
        return Expected(
            log_likelihood, classes, latent_on, trials, causes, leak_trials, leak_causes
        )

    def _edge_sums(self, states, fired) -> np.ndarray:
        """Sums over states with the latent on, where there is an edge."""
        if not sparse.issparse(self._effects):
            return np.where(self.network.structure, states.T @ fired.T, 0.0)
        sums = np.zeros(self.network.failure.shape)
        for latent, on in enumerate(np.ascontiguousarray(states.T)):
            children = self.children[latent]
            sums[latent, children] = fired[children] @ on
        return sums

    def scores(self, network, latent, feature):
        """Expectations of single rows, for their scores; see `standard_errors`.

        Yields slices of rows, P(latent on), and the causes of edges and leaks.
        """
        bounds = np.append(self.starts, len(self.row))
        n_columns = len(latent) + len(self.log_leak_off) + network.n_latents
        per_row = -(-len(self.row) // max(1, self.n_rows))
        step = max(1, CHUNK_ELEMENTS // (n_columns * per_row))
        for first in range(0, self.n_rows, step):
            rows = slice(first, min(first + step, self.n_rows))
            part = slice(bounds[rows.start], bounds[rows.stop])
            starts = bounds[rows] - bounds[first]
            states = self.states[part].astype(np.float64)
            fired = self.fired(part).T * self.share[part, np.newaxis]
            values = (
                states * self.share[part, np.newaxis],
                states[:, latent] * fired[:, feature],
                fired,
            )
            latent_on, of_edges, of_leaks = (
                np.add.reduceat(v, starts, axis=0) for v in values
            )
            yield rows, latent_on, of_edges, of_leaks


def _random_keys(n_latents) -> np.ndarray:
    """Fixed random 64-bit numbers (the mixer of splitmix64)."""
    x = np.arange(1, n_latents + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _unknown(keys, known) -> np.ndarray:
    """Places of the keys that are not among those known, each key once."""
    values, first = np.unique(keys, return_index=True)
    known = np.sort(known)
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.sort(first[known[place] != values])


def _first(keys) -> np.ndarray:
    """First occurrence of each key, in their order."""
    return np.sort(np.unique(keys, return_index=True)[1])


def _log_product(factors) -> np.ndarray:
    """Log of the product over axis 0."""
    total = np.zeros(factors.shape[1])
    for start in range(0, len(factors), FACTORS):
        total += np.log(np.multiply.reduce(factors[start : start + FACTORS], axis=0))
    return total
