"""All states of a few latents: exact likelihoods, posteriors and expectations.

Negative findings enter through log P(off | state), positive ones through
log P(on | state), and missing ones not at all, so two matrix products give the joint
probability of every row with every state. Classes above the latents change only how
probable a state is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._expected import Expected
from ._probabilities import LOG_ZERO, safe_log
from ._statistics.patterns import Patterns

# 2^16 states times the rows of a chunk is what learning by enumeration can afford.
MAX_ENUMERATED = 16

# Elements of the largest temporary array: 2 MB, which stay in the cache.
CHUNK_ELEMENTS = 1 << 18

# Groups of rows leave out states that none of their rows gives this probability, which
# changes the likelihood by one part in 1e5.
LEAST_POSTERIOR = 1e-5

# Rows times states from which grouping pays, and the most latents for which a table of
# groups by states is small.
SMALLEST_TABLE, MOST_LATENTS = 2**20, 10


def configurations(n_latents: int) -> np.ndarray:
    """All states of some latents; latent i is bit i of the row number.

    Returns states (2 ** n_latents, n_latents).
    """
    numbers = np.arange(1 << n_latents)[:, np.newaxis]
    return (numbers >> np.arange(n_latents) & 1).astype(bool)


def row_chunks(n_rows: int, row_elements: int):
    """Slices of rows whose temporary arrays stay within CHUNK_ELEMENTS."""
    step = max(1, CHUNK_ELEMENTS // max(1, row_elements))
    # scikit-learn's gen_batches refuses to cut no rows.
    return (slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step))


def normalize(joint) -> np.ndarray:
    """Turn joint log-probabilities into P(state | row), in place.

    joint (n_rows, n_states) -> log_likelihood (n_rows,).
    """
    peak = np.maximum(joint.max(axis=1), LOG_ZERO)
    joint -= peak[:, np.newaxis]
    np.exp(joint, out=joint)
    total = joint.sum(axis=1)
    joint /= np.where(total > 0, total, 1.0)[:, np.newaxis]
    return peak + safe_log(total)


class StateTable(NamedTuple):
    """Log-probabilities of a network in each state of its latents; log(0) is LOG_ZERO.

    states: as floats, (n_states, n_latents)
    prior: of the state itself, (n_states,)
    classes: P(class | state), (n_states, n_classes)
    off, on: of each feature, given the state, (n_states, n_features)
    possible: whether no entry stands for log(0)
    """

    states: np.ndarray
    prior: np.ndarray
    classes: np.ndarray
    off: np.ndarray
    on: np.ndarray
    possible: bool

    @classmethod
    def of(cls, network) -> StateTable:
        """Tabulate a network."""
        log_on, log_off = (
            safe_log(network.class_prior),
            safe_log(1 - network.class_prior),
        )
        with np.errstate(divide="ignore"):
            off = np.log1p(-network.leak)[np.newaxis]
        joint = np.log(network.class_weight)[:, np.newaxis]
        # As in `configurations`: each latent doubles the states.
        for latent, log_failure in enumerate(safe_log(network.failure)):
            sides = [joint + side[:, latent, np.newaxis] for side in (log_off, log_on)]
            joint = np.concatenate(sides, axis=1)
            off = np.concatenate([off, off + log_failure])
        prior = joint[0] if len(joint) == 1 else np.logaddexp.reduce(joint, axis=0)
        # expm1 keeps all digits of a small leak, where 1 - exp(off) would lose them.
        on = safe_log(-np.expm1(off))
        lowest = min(table.min(initial=0.0) for table in (prior, off, on))
        return cls(
            configurations(network.n_latents).astype(np.float64),
            np.maximum(prior, LOG_ZERO),
            np.exp(joint - np.maximum(prior, LOG_ZERO)).T,
            np.maximum(off, LOG_ZERO),
            np.maximum(on, LOG_ZERO),
            bool(lowest > LOG_ZERO),
        )

    def select(self, states) -> StateTable:
        """Some of the states."""
        return StateTable(
            self.states[states],
            self.prior[states],
            self.classes[states],
            self.off[states],
            self.on[states],
            self.possible,
        )

    def joint(self, on, observed=None) -> np.ndarray:
        """Log P(row, state) for every row and every state."""
        on = np.asarray(on, dtype=np.float64)
        if observed is not None:
            observed = np.asarray(observed, dtype=np.float64)
        if not self.possible:
            off = (1.0 if observed is None else observed) - on
            joint = on @ self.on.T + off @ self.off.T + self.prior
            joint[joint <= LOG_ZERO / 2] = -np.inf
            return joint
        joint = on @ (self.on - self.off).T
        # Complete rows share the product with the features that are off.
        joint += self.off.sum(axis=1) if observed is None else observed @ self.off.T
        joint += self.prior
        return joint

    def posteriors(self, on, observed=None, *, row_elements=0):
        """Slices of rows, P(state | row) and log-likelihoods, a chunk at a time."""
        for rows in row_chunks(len(on), len(self.prior) + row_elements):
            known = None if observed is None else observed[rows]
            share = self.joint(on[rows], known)
            log_likelihood = normalize(share)
            yield rows, share, log_likelihood


class Group(NamedTuple):
    """Rows, with the states over which they are summed."""

    rows: Patterns
    states: np.ndarray | slice


class TableRows:
    """Rows whose expectations are sums over all states; see `Expected`."""

    def __init__(self, patterns: Patterns):
        self.patterns = patterns
        self.groups: list[Group] = []

    def group(self, network) -> bool:
        """Group rows by their likeliest state, if that saves much; whether it does.

        Rows that look alike leave the same few states possible: of 256 states of eight
        latents, nine on average. Groups are made anew once parameters have moved.
        """
        n_elements = len(self.patterns.weights) << network.n_latents
        if network.n_latents > MOST_LATENTS or n_elements < SMALLEST_TABLE:
            return False
        table = StateTable.of(network)
        top = np.empty(len(self.patterns.on), dtype=np.intp)
        largest = np.zeros((len(table.prior),) * 2)
        for rows, share, _ in table.posteriors(*self.patterns[:2]):
            top[rows] = share.argmax(axis=1)
            for state in np.unique(top[rows]):
                best = share[top[rows] == state].max(axis=0)
                largest[state] = np.maximum(largest[state], best)
        self.groups = [
            Group(self.patterns.take(top == state), np.flatnonzero(likely))
            for state, likely in enumerate(largest > LEAST_POSTERIOR)
            if likely.any()
        ]
        return True

    def _chunks(self, n_states):
        """Groups or, without any, chunks of rows with all states."""
        if self.groups:
            return self.groups
        chunks = row_chunks(len(self.patterns.on), n_states)
        return (Group(self.patterns.take(rows), slice(None)) for rows in chunks)

    def expect(self, network) -> Expected:
        """E-step: the M-step needs the rows only through sums over each state."""
        table = StateTable.of(network)
        n_states, n_features = table.off.shape
        log_likelihood, mass = 0.0, np.zeros(n_states)
        on_mass = np.zeros((n_states, n_features))
        known_mass = np.zeros_like(on_mass)
        for rows, states in self._chunks(n_states):
            on = rows.on.astype(np.float64)
            part = table if isinstance(states, slice) else table.select(states)
            share = part.joint(on, rows.observed)
            log_likelihood += float(rows.weights @ normalize(share))
            share *= rows.weights[:, np.newaxis]
            mass[states] += share.sum(axis=0)
            on_mass[states] += share.T @ on
            if rows.observed is not None:
                known_mass[states] += share.T @ rows.observed.astype(np.float64)
        if self.patterns.observed is None:
            known_mass[:] = mass[:, np.newaxis]
        per_cause = on_mass * np.exp(-table.on)
        return Expected(
            log_likelihood,
            mass @ table.classes,
            (table.classes * mass[:, np.newaxis]).T @ table.states,
            table.states.T @ known_mass,
            np.where(network.structure, table.states.T @ per_cause, 0.0),
            known_mass.sum(axis=0),
            per_cause.sum(axis=0),
        )

    def scores(self, network, latent, feature):
        """Expectations of single rows, for their scores; see `standard_errors`.

        Yields slices of rows, P(latent on), and the causes of edges and leaks.
        """
        on, observed = self.patterns[:2]
        table = StateTable.of(network)
        odds = np.exp(-table.on)
        causes = np.hstack([table.states[:, latent] * odds[:, feature], odds])
        size = 2 * (causes.shape[1] + network.n_latents)
        for rows, share, _ in table.posteriors(on, observed, row_elements=size):
            fired = share @ causes * np.hstack([on[rows][:, feature], on[rows]])
            of_edges, of_leaks = np.split(fired, [len(latent)], axis=1)
            yield rows, share @ table.states, of_edges, of_leaks
