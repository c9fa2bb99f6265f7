"""Parameters of a known structure: from statistics to estimates and their errors.

Components of the network with few latents and few distinct rows are refined by exact
maximum likelihood, the others by least squares on interactions of siblings. Standard
errors follow from the information of the likelihood, or by the delta method: the
covariance of the frequencies with which two sets S and T of features are off is
``(M[S u T] - M[S] M[T]) / n``, and a fitted network has all of these moments in closed
form, so that no further pass over the data is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._maximum_likelihood import maximize_likelihood, standard_errors
from .._network import NoisyOrNetwork
from .._probabilities import clip_probability
from .cleanup import clean_up
from .guess import GUESS_INFORMATION, Guess, Rates, without_silent
from .interactions import FreeParameters, Interactions, fit_interactions
from .plan import Plan, Statistics
from .simulated import simulated_errors
from .solve import solve_leak, solve_schedule

# A second start costs little on tables up to this many rows times configurations, and
# helps where few rows make poor moments.
SECOND_START = 2**16
# Standard errors of a least-squares fit need the covariance of all its moments.
MAX_MOMENTS = 6000
# Entries of rows handled at a time: their sets make matrices of some MB.
ENTRIES_AT_A_TIME = 1000


class Learned(NamedTuple):
    """What `learn_parameters` makes of statistics.

    prior (n_latents,), failure (n_latents, n_features), leak (n_features,)
    supported: whether the moments determined priors, then edges; (n_parameters,)
    """

    prior: np.ndarray
    failure: np.ndarray
    leak: np.ndarray
    supported: np.ndarray


def learn_parameters(
    plan: Plan, statistics: Statistics, *, improve=True, report=None
) -> Learned:
    """Follow the plan; `improve` combines triplets and refines.

    ``report(message)`` is called after each step.
    """
    report = report or (lambda message: None)
    moments, schedule = statistics.moments, plan.schedule
    structure = schedule.structure
    estimates = solve_schedule(moments, schedule, combine=improve)
    report(f"solved {schedule!r}")
    if plan.rest is not None:
        clean_up(moments, estimates, plan.rest, improve=improve)
        report(f"cleaned up {len(schedule.unreached):,} edges")
    # What is still unknown has no effect, so that the leaks account for it.
    prior = np.where(np.isnan(estimates.prior), 0.5, estimates.prior)
    failure = np.where(np.isnan(estimates.failure), 1.0, estimates.failure)
    failure[structure] = clip_probability(failure[structure])
    leak = solve_leak(moments, prior, failure)
    if improve:
        learned = structure & ~np.isnan(estimates.failure)
        prior, failure, leak = refine(plan, statistics, prior, failure, leak, learned)
        report("refined")
    return Learned(prior, failure, leak, estimates.supported)


def parameter_errors(plan: Plan, statistics: Statistics, network, *, improved=True):
    """Errors by likelihood, of least squares, or of the published estimator.

    Returns errors of priors (n_latents,) and of failures (n_latents, n_features).
    """
    schedule = plan.schedule
    if not improved:
        return schedule_errors(schedule, statistics.moments, network)
    prior, failure = likelihood_errors(plan, statistics, network)
    if np.isnan(prior).any():
        learned = np.isfinite(schedule.depth) | (
            schedule.structure & (plan.rest is not None)
        )
        others = siblings_errors(plan, statistics, network, learned)
        prior = np.where(np.isnan(prior), others[0], prior)
        failure = np.where(np.isnan(failure), others[1], failure)
    # A latent that may as well be absent may have any prior that the rates of its
    # children allow, if its edges are weak.
    unseen = network.prior < 2.0 * prior
    guess = Rates(statistics.moments).prior_error(schedule.structure)
    return np.where(unseen, np.maximum(prior, guess), prior), failure


def _tables(plan, statistics):
    """Components with a table of their distinct rows."""
    for part, table in zip(plan.parts, statistics.tables, strict=True):
        if table is not None:
            yield part, table


def _without_table(plan, statistics):
    """Latents whose component has no table."""
    latents = np.ones(len(plan.schedule.structure), dtype=bool)
    for part, _ in _tables(plan, statistics):
        latents[part.latents] = False
    return latents


def refine(plan, statistics, prior, failure, leak, learned):
    """Improve on moment estimates."""
    structure = plan.schedule.structure
    start = NoisyOrNetwork._of(prior, failure, leak)
    best = []
    for part, table in _tables(plan, statistics):
        edges = structure[np.ix_(part.latents, part.features)]
        fit = _most_likely(start._part(*part), edges, table)
        best.append((part, without_silent(fit.network, edges, table)))
    network = start._with_parts(best)
    prior, failure, leak = network.prior, network.failure, network.leak
    latents = _without_table(plan, statistics)
    if latents.any():
        interactions = _interactions(plan, statistics, latents)
        free_edge = learned & latents[:, None]
        rates = Rates(statistics.moments)
        # Edges that nothing reached stay without effect.
        prior, start = rates.plausible(prior, failure, free_edge.any(axis=1))
        failure = np.where(free_edge, start, failure)
        prior, failure, _ = fit_interactions(
            interactions,
            prior,
            failure,
            free_edge.any(axis=1),
            free_edge,
            guess=Guess(rates, structure),
            tol=0.03,
        )
        failure = np.where(free_edge, rates.bound(prior, failure), failure)
        fitted = structure[latents].any(axis=0)
        leak = np.where(fitted, rates.leak(prior, failure), leak)
    return prior, failure, leak


def _most_likely(start: NoisyOrNetwork, structure, table):
    """Maximum likelihood from the moments, and from the middle if that is cheap."""
    # What moments call no effect may still have one.
    failure = np.where(structure, clip_probability(start.failure), 1.0)
    starts = [start._with(failure=failure)]
    n_latents, n_features = structure.shape
    if len(table.weights) << n_latents <= SECOND_START:
        # Not quite alike: latents with the same children must be able to part.
        apart = 0.5 + 0.1 * np.linspace(-1, 1, n_latents)
        middle = np.where(structure, 1.0 - apart[:, None], 1.0)
        leak = np.full(n_features, 0.05)
        starts.append(NoisyOrNetwork._of(apart, middle, leak))
    fits = [maximize_likelihood(start, table) for start in starts]
    return max(fits, key=lambda fit: fit.log_likelihood)


def _interactions(plan, statistics, latents):
    """Interactions of the sets within the components of some latents."""
    features = plan.schedule.structure[latents].any(axis=0)
    sets = plan.fit_sets[features[plan.fit_sets[:, 0]]]
    return Interactions(statistics.moments, plan.schedule.structure, sets)


def likelihood_errors(plan, statistics, network):
    """Standard errors of components refined by likelihood; NaN elsewhere."""
    structure = plan.schedule.structure
    prior = np.full(len(structure), np.nan)
    failure = np.full(structure.shape, np.nan)
    for part, table in _tables(plan, statistics):
        block = np.ix_(part.latents, part.features)
        piece = network._part(*part)
        edges = np.where(structure[block], clip_probability(piece.failure), 1.0)
        errors = standard_errors(piece._with(failure=edges), table)
        prior[part.latents], failure[block] = errors[:2]
    return prior, failure


def siblings_errors(plan, statistics, network, learned):
    """Standard errors of components refined by least squares.

    The estimate is a smooth function of the moments, whose covariance the fitted
    network has in closed form.
    """
    latents = _without_table(plan, statistics)
    interactions = _interactions(plan, statistics, latents)
    used = np.unique(interactions.index[interactions.signs != 0])
    free_edge = learned & latents[:, None]
    if len(used) > MAX_MOMENTS or free_edge.sum() > MAX_MOMENTS:
        return simulated_errors(interactions, statistics.moments, network, free_edge)
    interactions.reweigh(network.prior, network.failure)
    free = FreeParameters(
        network.prior, network.failure, free_edge.any(axis=1), free_edge
    )
    x = free.pack(network.prior, network.failure)
    _, J = free.linearize(interactions, x)
    rates = Rates(statistics.moments)
    of_guess = Guess(rates, plan.schedule.structure).jacobian(free, *free.unpack(x))
    by_moments = interactions.by_moments(len(statistics.moments.sets))[:, used]
    pull = J.T @ (by_moments * interactions.weight[:, None]).toarray()
    information = (J.T @ J + of_guess.T @ of_guess).toarray()
    inverse = np.linalg.inv(information)
    influence = inverse @ pull
    covariance = moment_covariance(used, statistics.moments, network)
    variance = np.einsum("ps,ps->p", influence @ covariance, influence)
    # What was guessed is as uncertain as the guess.
    variance += GUESS_INFORMATION * (inverse**2).sum(axis=1)
    prior, failure = np.full(len(latents), np.nan), np.full(learned.shape, np.nan)
    prior[free.free_prior] = np.sqrt(variance[: free.n_prior])
    failure[free_edge] = np.sqrt(variance[free.n_prior :])
    return prior, failure


def schedule_errors(schedule, moments, network):
    """Standard errors of the published estimator; NaN where it does not reach."""
    estimates = solve_schedule(moments, schedule, combine=False, track=True)
    structure = schedule.structure
    variance = np.full(len(estimates.supported), np.nan)
    chosen = np.flatnonzero(estimates.supported)
    variance[chosen] = influence_variance(estimates.influence[chosen], moments, network)
    error = np.sqrt(np.maximum(variance, 0.0))
    failure = np.full(structure.shape, np.nan)
    failure[structure] = error[len(structure) :]
    return error[: len(structure)], failure


def influence_variance(influence, moments, network) -> np.ndarray:
    """Variance of parameters that depend on a few moments each."""
    variance = np.zeros(influence.shape[0])
    run = influence.indptr[1:] // ENTRIES_AT_A_TIME
    breaks = np.flatnonzero(np.diff(run)) + 1
    for rows_of_run in np.split(np.arange(len(run)), breaks):
        part = influence[rows_of_run]
        used = np.unique(part.indices)
        if len(used):
            rows = part[:, used].toarray()
            covariance = moment_covariance(used, moments, network)
            variance[rows_of_run] = np.einsum("ps,ps->p", rows @ covariance, rows)
    return variance


def moment_covariance(sets, moments, network) -> np.ndarray:
    """Covariance matrix of some moments.

    In logarithms, ``M[S u T] / (M[S] M[T])`` is a sum over the latents that have
    children in both sets, and over the features that are in both.
    """
    members = moments.sets[sets]
    features = np.unique(members[members >= 0])
    belongs = np.zeros((len(sets), len(features)))
    rows, places = np.nonzero(members >= 0)
    belongs[rows, np.searchsorted(features, members[rows, places])] = 1.0

    log_off = np.log1p(-network.leak[features])
    log_moment = belongs @ log_off
    log_lift = -(belongs * log_off) @ belongs.T
    for latent in np.flatnonzero(network.structure[:, features].any(axis=1)):
        child = network.failure[latent, features] < 1.0
        touched = np.flatnonzero(belongs[:, child].any(axis=1))
        inside = belongs[np.ix_(touched, np.flatnonzero(child))]
        log_failure = np.log(network.failure[latent, features[child]])
        alone = inside @ log_failure
        # Members of both sets fail only once.
        together = np.add.outer(alone, alone) - (inside * log_failure) @ inside.T
        prior = network.prior[latent]
        log_alone = np.log1p(prior * np.expm1(alone))
        log_moment[touched] += log_alone
        log_lift[np.ix_(touched, touched)] += (
            np.log1p(prior * np.expm1(together)) - log_alone - log_alone[:, None]
        )
    moment = np.exp(log_moment)
    # Rows that have both sets observed, at most; equal to n without missing values.
    n = np.maximum(moments.total[sets], 1.0)
    return np.outer(moment, moment) * np.expm1(log_lift) / np.maximum.outer(n, n)
