"""Parameters of a known structure: from statistics to estimates and their errors.

Components of the network with few latents and few distinct rows are refined by exact
maximum likelihood, the others by least squares on interactions of siblings. Standard
errors follow from the information of the likelihood, or are simulated: rows drawn from
the fitted network have moments whose deviations have the right covariance, and what an
estimator makes of small deviations is linear.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ._interactions import (
    TINY,
    FreeParameters,
    Interactions,
    damped_step,
    fit_interactions,
)
from ._maximum_likelihood import maximize_likelihood, standard_errors
from ._moment_plan import Plan, Statistics
from ._noisy_or_network import NoisyOrNetwork
from ._probabilities import clip_probability
from ._rates import GUESS_INFORMATION, Guess, Rates, without_silent
from ._statistics.moments import NegativeMoments
from ._statistics.packed import PackedRows
from ._triplets import Estimates, solve_leak, solve_schedule

# Random starts of the clean-up, the steps of least squares from each on so many sets
# for each parameter, which tell them apart, and how many then go on.
RANDOM_STARTS, FIRST_STEPS, FIRST_SETS, POLISHED_STARTS = 8, 6, 3, 2
# A second start costs little on tables up to this many rows times configurations, and
# helps where few rows make poor moments.
SECOND_START = 2**16
# The standard error of a standard error is one part in the root of twice as many draws.
# Their rows: together enough to see latents that are on in one row of a thousand.
DRAWS, ROWS_PER_DRAW = 40, 4096


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
    """Follow the plan, and refine if told to improve on the published estimator.

    ``report(message)`` is called after each step.
    """
    report = report or (lambda message: None)
    moments, schedule = statistics.moments, plan.schedule
    structure = schedule.structure
    estimates = solve_schedule(moments, schedule)
    report(f"solved {schedule!r}")
    if plan.rest_sets is not None:
        clean_up(moments, structure, estimates, plan.rest_sets, improve=improve)
        report(f"cleaned up {len(schedule.unreached):,} edges")
    # What is still unknown has no effect, so that the leaks account for it.
    prior = np.where(np.isnan(estimates.prior), 0.5, estimates.prior)
    failure = np.where(np.isnan(estimates.failure), 1.0, estimates.failure)
    failure[structure] = clip_probability(failure[structure])
    leak = solve_leak(moments, prior, failure)
    supported = estimates.supported
    if improve:
        learned = structure & ~np.isnan(estimates.failure)
        prior, failure, leak = refine(plan, statistics, prior, failure, leak, learned)
        # What its triplet does not show of an edge, others do if the feature varies.
        of_prior, of_edges = np.split(supported, [len(prior)])
        shown = of_prior[:, None] & moments.varies
        supported = np.append(of_prior, of_edges | shown[structure])
        report("refined")
    return Learned(prior, failure, leak, supported)


def clean_up(moments, structure, estimates: Estimates, sets, *, improve=False):
    """Learn what no schedule reaches, and put it into the estimates.

    Section 3.3 of Halpern and Sontag (2013), with random starts where they search a
    grid. `improve` on what is published by what rates allow.
    """
    free_prior, free_edge = np.isnan(estimates.prior), np.isnan(estimates.failure)
    guess = Guess(Rates(moments), structure) if improve else None
    n_free = int(free_prior.sum() + free_edge.sum())
    every = Interactions(moments, structure, sets)
    stride = 1 + len(sets) // (FIRST_SETS * n_free)
    few = Interactions(moments, structure, sets[::stride])

    def fit(interactions, prior, failure, **options):
        free = free_prior, free_edge, guess
        return fit_interactions(interactions, prior, failure, *free, **options)[:2]

    rng, starts = np.random.RandomState(0), []
    for _ in range(RANDOM_STARTS):
        prior, failure = estimates.prior.copy(), estimates.failure.copy()
        prior[free_prior] = rng.uniform(0.1, 0.6, free_prior.sum())
        failure[free_edge] = rng.uniform(0.2, 0.8, free_edge.sum())
        if guess is not None:
            failure = guess.rates.bound(prior, failure)
        starts.append(fit(few, prior, failure, max_iter=FIRST_STEPS))
    starts.sort(key=lambda start: every.cost(*start))
    # What is refined afterwards need not be polished to the last digit.
    tol = 0.1 if improve else 0.01
    fits = [fit(every, *start, tol=tol) for start in starts[:POLISHED_STARTS]]
    # Weights differ from fit to fit; compare by those of the moments.
    judge = Interactions(moments, structure, sets)
    prior, failure = min(fits, key=lambda values: judge.cost(*values))
    estimates.prior[free_prior] = prior[free_prior]
    estimates.failure[free_edge] = failure[free_edge]


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


def parameter_errors(plan: Plan, statistics: Statistics, network, *, improved=True):
    """Errors by likelihood, of least squares, or of the published estimator.

    Returns errors of priors (n_latents,) and of failures (n_latents, n_features).
    """
    schedule, moments = plan.schedule, statistics.moments
    if not improved:
        return _schedule_errors(schedule, moments, network)
    prior, failure = _likelihood_errors(plan, statistics, network)
    if np.isnan(prior).any():
        latents = _without_table(plan, statistics)
        learned = np.isfinite(schedule.depth) | (
            schedule.structure & (plan.rest_sets is not None)
        )
        interactions = _interactions(plan, statistics, latents)
        others = fit_errors(interactions, moments, network, learned & latents[:, None])
        prior = np.where(np.isnan(prior), others[0], prior)
        failure = np.where(np.isnan(failure), others[1], failure)
    # A latent that may as well be absent may have any prior that the rates of its
    # children allow, if its edges are weak.
    unseen = network.prior < 2.0 * prior
    guess = Rates(moments).prior_error(schedule.structure)
    return np.where(unseen, np.maximum(prior, guess), prior), failure


def _likelihood_errors(plan, statistics, network):
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


def fit_errors(interactions, moments, network, learned, n_draws=DRAWS):
    """Standard errors of parameters fitted to interactions; NaN elsewhere.

    learned: edges that were fitted, (n_latents, n_features)
    """
    interactions.reweigh(network.prior, network.failure)
    free = FreeParameters(network.prior, network.failure, learned.any(axis=1), learned)
    x = free.pack(network.prior, network.failure)
    _, of_moments = free.linearize(interactions, x)
    of_guess = Guess(Rates(moments), network.structure).jacobian(free, *free.unpack(x))
    J = sparse.vstack([of_moments, of_guess], format="csr")
    diagonal = np.maximum(J.multiply(J).sum(axis=0), TINY)
    everywhere = np.ones(free.n_columns, dtype=bool)
    # From deviations of the moments to those of the normal equations.
    pull = of_moments.T @ (
        interactions.by_moments(len(moments.sets)) * interactions.weight[:, None]
    )
    rng, solutions = np.random.RandomState(0), []
    for _ in range(n_draws):
        # What was guessed is as uncertain as the guess.
        gradient = pull @ _deviation(moments, network, rng)
        gradient += np.sqrt(GUESS_INFORMATION) * rng.standard_normal(free.n_columns)
        solutions.append(damped_step(J, gradient, diagonal, 0.0, everywhere))
    errors = np.std(solutions, axis=0, ddof=1)
    prior, failure = np.full(len(learned), np.nan), np.full(learned.shape, np.nan)
    prior[free.free_prior], failure[learned] = np.split(errors, [free.n_prior])
    return prior, failure


def _schedule_errors(schedule, moments, network):
    """Standard errors of the published estimator; NaN where it does not reach."""
    rng, solutions = np.random.RandomState(0), []
    for _ in range(DRAWS):
        off = moments.probability + _deviation(moments, network, rng)
        off = np.maximum(off * moments.total, 0.5 * np.minimum(moments.total, 1.0))
        found = solve_schedule(replace(moments, off=off), schedule)
        solutions.append([*found.prior, *found.failure[schedule.structure]])
    errors = np.std(solutions, axis=0, ddof=1)
    errors[~solve_schedule(moments, schedule).supported] = np.nan
    failure = np.full(schedule.structure.shape, np.nan)
    prior, failure[schedule.structure] = np.split(errors, [len(failure)])
    return prior, failure


def _deviation(moments, network, rng):
    """Moments of random rows, around their own mean, as far off as in the data."""
    X, _ = network.sample(ROWS_PER_DRAW, random_state=rng)
    drawn = NegativeMoments.of(PackedRows.of(X, None), moments.sets)
    deviation = drawn.probability - moments.probability
    return deviation * np.sqrt(ROWS_PER_DRAW / np.maximum(moments.total, 1.0))
