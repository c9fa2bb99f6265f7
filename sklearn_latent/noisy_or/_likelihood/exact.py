"""Exact likelihood and EM by enumeration of the states of a few latents.

Everything here is a function of arrays: the parameters of one connected component and
a table of distinct rows, ``on``, ``observed`` (None: all known) and ``weights``.
Negative findings enter through log P(off | state), positive ones through
log P(on | state), and missing ones not at all, so two matrix products give the joint
probability of every row with every state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._core.climb import Ascent, climb
from .._numerics import LOG_ZERO, clip_probability, safe_log
from .._statistics.patterns import Component, Patterns

# 2^16 states times the rows of a chunk is what learning by enumeration can afford.
MAX_ENUMERATED = 16

# Elements of the largest temporary array: 2 MB, which stay in the cache.
CHUNK_ELEMENTS = 1 << 18


class Parameters(NamedTuple):
    """Priors, failures (1.0 where there is no edge) and leaks of a network."""

    prior: np.ndarray
    failure: np.ndarray
    leak: np.ndarray

    def restrict(self, part: Component) -> Parameters:
        """Parameters of a component."""
        edges = np.ix_(part.latents, part.features)
        return Parameters(
            self.prior[part.latents], self.failure[edges], self.leak[part.features]
        )

    def put(self, part: Component, values) -> None:
        """Set those of a component, in place."""
        self.prior[part.latents], self.leak[part.features] = values[0], values[2]
        self.failure[np.ix_(part.latents, part.features)] = values[1]


def configurations(n_latents: int) -> np.ndarray:
    """All states of some latents; latent i is bit i of the row number.

    Returns states (2 ** n_latents, n_latents).
    """
    numbers = np.arange(1 << n_latents)[:, np.newaxis]
    return (numbers >> np.arange(n_latents) & 1).astype(bool)


class StateTable(NamedTuple):
    """Log-probabilities of a component in each of its states; log(0) is LOG_ZERO.

    prior: of the state itself, (n_states,)
    off, on: of each feature, given the state, (n_states, n_features)
    possible: whether no entry stands for log(0)
    """

    prior: np.ndarray
    off: np.ndarray
    on: np.ndarray
    possible: bool

    @classmethod
    def of(cls, prior, failure, leak) -> StateTable:
        """Tabulate the parameters of a component."""
        with np.errstate(divide="ignore"):
            log_state, off = np.zeros(1), np.log1p(-leak)[np.newaxis]
        # As in `configurations`: each latent doubles the states.
        for log_on, log_off, log_failure in zip(
            safe_log(prior), safe_log(1.0 - prior), safe_log(failure), strict=True
        ):
            log_state = np.concatenate([log_state + log_off, log_state + log_on])
            off = np.concatenate([off, off + log_failure])
        # expm1 keeps all digits of a small leak, where 1 - exp(off) would lose them.
        on = safe_log(-np.expm1(off))
        lowest = min(table.min(initial=0.0) for table in (log_state, off, on))
        return cls(
            np.maximum(log_state, LOG_ZERO),
            np.maximum(off, LOG_ZERO),
            np.maximum(on, LOG_ZERO),
            bool(lowest > LOG_ZERO),
        )


def row_chunks(n_rows: int, row_elements: int):
    """Slices of rows whose temporary arrays stay within CHUNK_ELEMENTS."""
    step = max(1, CHUNK_ELEMENTS // max(1, row_elements))
    # scikit-learn's gen_batches refuses to cut no rows.
    return (slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step))


def joint_log_probability(table: StateTable, on, observed=None) -> np.ndarray:
    """Log P(row, state) for every row and every state."""
    on = np.asarray(on, dtype=np.float64)
    if observed is not None:
        observed = np.asarray(observed, dtype=np.float64)
    if not table.possible:
        off = (1.0 if observed is None else observed) - on
        joint = on @ table.on.T + off @ table.off.T + table.prior
        joint[joint <= LOG_ZERO / 2] = -np.inf
        return joint
    joint = on @ (table.on - table.off).T
    # Complete rows share the product with the features that are off: one pass less.
    joint += table.off.sum(axis=1) if observed is None else observed @ table.off.T
    joint += table.prior
    return joint


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


def posteriors(table: StateTable, on, observed=None, *, row_elements=0):
    """Yield slices of rows, P(state | row) and log-likelihoods, a chunk at a time."""
    for rows in row_chunks(len(on), len(table.prior) + row_elements):
        known = None if observed is None else observed[rows]
        share = joint_log_probability(table, on[rows], known)
        log_likelihood = normalize(share)
        yield rows, share, log_likelihood


class Statistics(NamedTuple):
    """What EM, gradients and bounds need to know of the data; sums over rows.

    log_likelihood: of the weighted rows
    total: sum of the weights
    latent_on: expected number of rows with the latent on, (n_latents,)
    trials, causes: over the rows that know the feature and have the latent on: the
        expected number of them, and the expected sum of [feature on] / P(feature on |
        state), (n_latents, n_features)
    leak_trials, leak_causes: the same for the leak, which is always on, (n_features,)
    """

    log_likelihood: float
    total: float
    latent_on: np.ndarray
    trials: np.ndarray
    causes: np.ndarray
    leak_trials: np.ndarray
    leak_causes: np.ndarray


def expected_statistics(prior, failure, leak, on, observed, weights) -> Statistics:
    """E-step: expectations over the latents given each row.

    An edge that is tried (its latent is on) and whose feature is on has fired with
    probability (1 - failure) / P(feature on | state); so the M-step needs the rows only
    through ``on.T @ responsibilities``.
    """
    table = StateTable.of(prior, failure, leak)
    n_states, n_features = table.off.shape
    log_likelihood = 0.0
    state_mass = np.zeros(n_states)
    on_mass = np.zeros((n_features, n_states))
    known_mass = np.zeros((n_features, n_states))
    for rows in row_chunks(len(on), n_states):
        chunk = on[rows].astype(np.float64)
        known = None if observed is None else observed[rows].astype(np.float64)
        mass = joint_log_probability(table, chunk, known)
        log_likelihood += float(weights[rows] @ normalize(mass))
        mass *= weights[rows, np.newaxis]
        state_mass += mass.sum(axis=0)
        on_mass += chunk.T @ mass
        if known is not None:
            known_mass += known.T @ mass
    total = float(weights.sum())
    known = None if observed is None else known_mass
    return collect(table, log_likelihood, total, state_mass, on_mass, known)


def collect(
    table: StateTable, log_likelihood, total, state_mass, on_mass, known_mass=None
) -> Statistics:
    """Statistics from the weight of rows in each state.

    state_mass (n_states,): of all rows; on_mass, known_mass (n_features, n_states): of
    those in which a feature is on, or known (None: all).
    """
    n_latents = len(table.prior).bit_length() - 1
    states = configurations(n_latents).astype(np.float64)
    per_cause = on_mass * np.exp(-table.on.T)
    if known_mass is None:
        known_mass = np.broadcast_to(state_mass, on_mass.shape)
    return Statistics(
        log_likelihood,
        total,
        state_mass @ states,
        (known_mass @ states).T,
        (per_cause @ states).T,
        known_mass.sum(axis=1),
        per_cause.sum(axis=1),
    )


def climb_exact(
    start: Parameters,
    patterns: Patterns,
    *,
    tol: float,
    max_iter: int,
    smooth: Callable | None = None,
    expectation: Callable | None = None,
) -> Ascent:
    """Exact EM; the states are `Parameters`, `tol` is per row.

    ``smooth(parameters, statistics)`` changes statistics before the M-step;
    ``expectation(parameters)`` replaces the exact E-step.
    """

    def expect(parameters: Parameters):
        if expectation is None:
            statistics = expected_statistics(*parameters, *patterns[:3])
        else:
            statistics = expectation(parameters)
        return statistics.log_likelihood, statistics

    def maximize(parameters: Parameters, statistics: Statistics):
        if smooth is not None:
            statistics = smooth(parameters, statistics)
        return Parameters(*maximize_expectation(*parameters, statistics))

    start = Parameters(*clip_parameters(*start))
    tol = tol * patterns.weights.sum()
    return climb(expect, maximize, start, tol=tol, max_iter=max_iter)


def clip_parameters(prior, failure, leak):
    """Keep parameters within [EPSILON, 1 - EPSILON] and non-edges at 1.0."""
    inside = np.where(failure < 1.0, clip_probability(failure), 1.0)
    return clip_probability(prior), inside, clip_probability(leak)


def maximize_expectation(prior, failure, leak, statistics: Statistics):
    """M-step in closed form: shares of the edges that were tried and fired."""
    fired = (1.0 - failure) * statistics.causes
    shares = 1.0 - _ratio(fired, statistics.trials, 1.0 - failure)
    leaked = _ratio(leak * statistics.leak_causes, statistics.leak_trials, leak)
    return (
        clip_probability(statistics.latent_on / statistics.total),
        # Clipped here, because an edge that never fires must not turn into a non-edge.
        np.where(failure < 1.0, clip_probability(shares), 1.0),
        clip_probability(leaked),
    )


def _ratio(numerator, denominator, otherwise):
    """Quotient, or another value where the denominator is 0."""
    positive = denominator > 0
    return np.where(positive, numerator / np.where(positive, denominator, 1), otherwise)
