"""Posterior and likelihood of rows, exactly wherever that is within reach."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._likelihood.beam import WIDE, Beam
from .._likelihood.exact import (
    StateTable,
    configurations,
    posteriors,
    row_chunks,
)
from .._likelihood.layered import Layered
from .._statistics.moments import negative_moments
from .._statistics.patterns import Patterns, components
from .findings import NegativeEvidence, PositiveEvidence
from .kernels import BATCH_ELEMENTS, sum_over_findings, sum_over_latents

METHODS = ("auto", "exact")

# Components with at most this many latents are summed for all rows by matrix products.
MAX_TABLE = 12

# Numbers that the exact sum of a part may hold. With method="auto" a part takes some
# tenths of a millisecond; with method="exact", a second or two and 400 MB.
MAX_COST = {"auto": 1 << 16, "exact": 1 << 24}

# Edges and non-edges of the largest component whose rows out of reach share beams.
# Beams visit all features, of which few are on in wide networks: there rows have beams
# of their own, of the features that are on.
MAX_BEAM = 1 << 17

# Rows that share a beam.
BEAM_ROWS = 1 << 11

# Parents of positive findings, over all rows that are handled together.
BATCH_EDGES = 1 << 17


class Inference(NamedTuple):
    """What is known of rows.

    log_likelihood (n_rows,), posterior (n_rows, n_latents)
    is_bound: rows out of reach, whose likelihood is a lower bound, (n_rows,)
    class_posterior: of the classes above the latents, if any, (n_rows, n_classes)
    """

    log_likelihood: np.ndarray
    posterior: np.ndarray
    is_bound: np.ndarray
    class_posterior: Any = None


def infer(
    prior, failure, leak, on, observed=None, method="auto", n_classes=1
) -> Inference:
    """Likelihood of rows and posterior of the latents.

    n_classes: how often the same rows are asked for, which lowers their reach
    """
    log_likelihood = np.zeros(len(on))
    posterior = np.empty((len(on), len(prior)))
    beyond = np.zeros(len(on), dtype=bool)
    for latents, features in components(failure < 1.0):
        parameters = prior[latents], failure[np.ix_(latents, features)], leak[features]
        data = on[:, features], None if observed is None else observed[:, features]
        if len(latents) <= MAX_TABLE:
            value, posterior[:, latents] = _by_table(parameters, *data)
        else:
            value, posterior[:, latents], out = _by_parts(
                parameters, *data, method, n_classes
            )
            beyond |= out
        log_likelihood += value
    posterior[np.isneginf(log_likelihood)] = prior
    np.clip(posterior, 0.0, 1.0, out=posterior)
    return Inference(log_likelihood, posterior, beyond)


class Predictions(NamedTuple):
    """P(off | row) of cells without a value, and whether it comes from a bound."""

    off: np.ndarray
    is_bound: np.ndarray


def predict_off(prior, failure, leak, on, observed) -> Predictions:
    """Predict the unknown cells of rows, in the order of ``np.nonzero(~observed)``.

    The probability is a ratio of likelihoods, of the row with the feature off and
    without it.
    """
    off = np.empty(on.shape)
    is_bound = np.zeros(on.shape, dtype=bool)
    for latents, features in components(failure < 1.0):
        rows = np.flatnonzero(~observed[:, features].all(axis=1))
        parameters = prior[latents], failure[np.ix_(latents, features)], leak[features]
        data = on[np.ix_(rows, features)], observed[np.ix_(rows, features)]
        chance = _ratios if len(latents) > MAX_TABLE else _table_off
        off[np.ix_(rows, features)], bound, impossible = chance(parameters, *data)
        is_bound[np.ix_(rows, features)] = bound[:, np.newaxis]
        # A row that the network cannot produce says nothing.
        singles = np.arange(len(features))[:, np.newaxis]
        alone = negative_moments(*parameters, singles)
        off[np.ix_(rows[impossible], features)] = alone
    return Predictions(off[~observed], is_bound[~observed])


def _table_off(parameters, on, observed):
    """P(feature off | row) of all features of a component of few latents."""
    table = StateTable.of(*parameters)
    given_state = np.exp(table.off)
    off = np.empty(on.shape)
    impossible = np.empty(len(on), dtype=bool)
    for rows, share, value in posteriors(
        table, on, observed, row_elements=2 * on.shape[1]
    ):
        impossible[rows] = np.isneginf(value)
        off[rows] = share @ given_state
    return off, np.zeros(len(on), dtype=bool), impossible


def _ratios(parameters, on, observed):
    """The same for the unknown features of a larger component, cell by cell."""
    off = np.zeros(on.shape)
    before, _, bound = _by_parts(parameters, on, observed, "auto")
    row, feature = np.nonzero(~observed)
    for cells in row_chunks(len(row), on.shape[1]):
        known = observed[row[cells]]
        known[np.arange(len(known)), feature[cells]] = True
        after, _, out = _by_parts(parameters, on[row[cells]], known, "auto")
        with np.errstate(invalid="ignore"):
            ratio = np.exp(np.minimum(after - before[row[cells]], 0.0))
        off[row[cells], feature[cells]] = ratio
        bound[row[cells][out]] = True
    return off, bound, np.isneginf(before)


def _by_table(parameters, on, observed):
    """Sum over all states of the latents of a component, for all rows at once."""
    table = StateTable.of(*parameters)
    states = configurations(len(parameters[0])).astype(np.float64)
    log_likelihood = np.empty(len(on))
    posterior = np.empty((len(on), states.shape[1]))
    for rows, share, value in posteriors(
        table, on, observed, row_elements=2 * on.shape[1]
    ):
        log_likelihood[rows] = value
        posterior[rows] = share @ states
    return log_likelihood, posterior


def _by_parts(parameters, on, observed, method, n_classes=1):
    """Split the positive findings of each row into parts, and sum over each."""
    most = MAX_COST[method] // n_classes
    prior, failure, leak = parameters
    negative = NegativeEvidence(prior, failure, leak)
    parents = sparse.csr_array(failure.T < 1.0)
    log_likelihood = np.empty(len(on))
    posterior = np.empty((len(on), len(prior)))
    beyond = np.zeros(len(on), dtype=bool)
    for rows in _row_batches(on, parents):
        known = None if observed is None else observed[rows]
        log_on, log_off, value = negative(on[rows], known)
        positive = PositiveEvidence(log_on, log_off, failure, leak, parents, on[rows])
        part_value, posterior[rows], approximate = _sum_parts(positive, most)
        value += positive.settled_log_likelihood()
        value += np.bincount(positive.row, part_value, minlength=len(value))
        log_likelihood[rows] = value
        beyond[rows][positive.row[approximate]] = True
    if method == "exact" and beyond.any():
        raise ValueError(
            "method='exact' must have few enough positive findings, or latents that "
            f"share them, in each row; got {beyond.sum()} of {len(on)} rows out of "
            "reach. method='auto' gives those a lower bound."
        )
    rows = np.flatnonzero(beyond & ~np.isneginf(log_likelihood))
    known = None if observed is None else observed[rows]
    if failure.size <= MAX_BEAM:
        network = Layered.single(prior, failure, leak)
        found = infer_by_beam(network, on[rows], known)
        log_likelihood[rows], posterior[rows] = found.log_likelihood, found.posterior
    elif len(rows):
        log_on, _, log_likelihood[rows] = negative(on[rows], known)
        posterior[rows] = np.exp(log_on)
        for row in rows:
            features = np.flatnonzero(on[row])
            latents = np.flatnonzero((failure[:, features] < 1.0).any(axis=1))
            network = Layered.single(
                posterior[row, latents],
                failure[np.ix_(latents, features)],
                leak[features],
            )
            found = infer_by_beam(network, on[row : row + 1, features], None)
            log_likelihood[row] += found.log_likelihood[0]
            posterior[row, latents] = found.posterior[0]
    return log_likelihood, posterior, beyond


def _row_batches(on, parents):
    """Slices of rows with a bounded number of latents and of parents of findings."""
    load = np.cumsum(on @ np.diff(parents.indptr) + parents.shape[1])
    start = 0
    while start < len(load):
        limit = BATCH_EDGES + (load[start - 1] if start else 0)
        stop = max(start + 1, int(np.searchsorted(load, limit, side="right")))
        yield slice(start, stop)
        start = stop


def within_reach(failure, leak, on, n_classes) -> np.ndarray:
    """Rows whose exact sums are affordable in each of several classes, (n_rows,)."""
    # What a row couples depends on the priors only where these are 0 or 1.
    near = np.ones(len(on), dtype=bool)
    most = MAX_COST["auto"] // (8 * n_classes)
    for latents, features in components(failure < 1.0):
        if len(latents) <= MAX_TABLE:
            continue
        part = failure[np.ix_(latents, features)]
        parents = sparse.csr_array(part.T < 1.0)
        here = on[:, features]
        for rows in _row_batches(here, parents):
            odds = np.zeros((len(here[rows]), len(latents)))
            positive = PositiveEvidence(
                odds, odds, part, leak[features], parents, here[rows]
            )
            cost = _costs(positive).min(axis=0) > most
            near[rows][positive.row[cost]] = False
    return near


def infer_by_beam(network: Layered, on, observed) -> Inference:
    """Lower bounds by the likeliest states, for any number of latents and classes."""
    log_likelihood = np.empty(len(on))
    posterior = np.empty((len(on), network.n_latents))
    classes = np.empty((len(on), network.n_classes))
    network = network.possible()
    # Small pieces stay near the cache, and rows do not depend on each other.
    for rows in (slice(i, i + BEAM_ROWS) for i in range(0, len(on), BEAM_ROWS)):
        known = None if observed is None else observed[rows]
        weights = np.ones(len(log_likelihood[rows]))
        beam = Beam(Patterns(on[rows], known, weights), network.n_latents, WIDE)
        beam.search(network)
        log_likelihood[rows], posterior[rows] = beam.log_likelihood, beam.posterior
        shares = beam.class_shares_of(beam.states.astype(np.float64))
        classes[rows] = beam.per_row(beam.share[:, np.newaxis] * shares)
    is_bound = np.ones(len(on), dtype=bool)
    return Inference(log_likelihood, posterior, is_bound, classes)


def _sum_parts(positive: PositiveEvidence, most):
    """Sum over every part by the cheapest route; says which are out of reach."""
    n_latents, n_findings = positive.n_part_latents, positive.n_part_findings
    by_latents, by_findings = _costs(positive)
    beyond = np.minimum(by_latents, by_findings) > most
    log_likelihood = np.zeros(positive.n_parts)
    posterior = positive.settled_posterior()
    surprise = np.ones(len(positive.finding_part))

    def record(chosen, answer):
        log_likelihood[chosen] = answer.log_likelihood
        positive.scatter(chosen, answer, posterior, surprise)

    first = ~beyond & (by_latents <= by_findings)
    for chosen, width in _batches(first, n_latents, n_findings):
        parts = positive.gather(chosen, n_latents[chosen[0]], width)
        record(chosen, sum_over_latents(parts))
    second = ~beyond & (by_latents > by_findings)
    for chosen, width in _batches(second, n_findings, n_latents):
        parts = positive.gather(chosen, width, n_findings[chosen[0]])
        record(chosen, sum_over_findings(parts))
    posterior[positive.lone.latent] = positive.lone_posterior(surprise)
    return log_likelihood, posterior.reshape(positive.shape), beyond


def _costs(positive: PositiveEvidence) -> np.ndarray:
    """Numbers that sums over latents and over findings hold, (2, n_parts)."""
    n_latents, n_findings = positive.n_part_latents, positive.n_part_findings
    return np.array([n_findings * np.exp2(n_latents), n_latents * np.exp2(n_findings)])


def _batches(mask, exponent, other):
    """Group parts with the same exponent and about the same other size.

    Sizes are padded to powers of two, which depend on the part alone, so that no
    rounding depends on the rest of the batch.
    """
    chosen = np.flatnonzero(mask)
    width = 1 << np.ceil(np.log2(np.maximum(other[chosen], 1))).astype(np.intp)
    groups, member = np.unique(
        np.stack([exponent[chosen], width]), axis=1, return_inverse=True
    )
    for number, (size, padded) in enumerate(groups.T):
        # NumPy 2.0 gives the inverse one dimension more than later versions.
        parts = chosen[member.ravel() == number]
        step = max(1, BATCH_ELEMENTS // int(padded << size))
        for start in range(0, len(parts), step):
            yield parts[start : start + step], int(padded)
