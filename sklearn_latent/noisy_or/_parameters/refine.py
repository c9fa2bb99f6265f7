"""Better estimates from the same statistics, and their standard errors.

Components of the network with few latents and few distinct rows are refined by exact
maximum likelihood, the others by least squares on interactions of siblings.
"""

from __future__ import annotations

import numpy as np

from .._likelihood.exact import Parameters
from .._likelihood.likelihood import maximize_likelihood, standard_errors
from .interactions import FreeParameters, Interactions, fit_interactions
from .solve import solve_schedule
from .uncertainty import influence_variance, moment_covariance

# A second start costs little on tables up to this many rows times configurations, and
# helps where few rows make poor moments.
SECOND_START = 2**16
# Standard errors of a least-squares fit need the covariance of all its moments.
MAX_MOMENTS = 6000


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
    values = Parameters(prior.copy(), failure.copy(), leak.copy())
    structure = plan.schedule.structure
    for part, table in _tables(plan, statistics):
        edges = structure[np.ix_(part.latents, part.features)]
        values.put(part, _most_likely(values.restrict(part), edges, table))
    prior, failure, leak = values
    latents = _without_table(plan, statistics)
    if latents.any():
        interactions = _interactions(plan, statistics, latents)
        free_edge = learned & latents[:, None]
        prior, failure, _ = fit_interactions(
            interactions, prior, failure, free_edge.any(axis=1), free_edge, tol=0.03
        )
    return prior, failure, leak


def _most_likely(start: Parameters, structure, table):
    """Maximum likelihood from the moments, and from the middle if that is cheap."""
    starts = [start]
    n_latents, n_features = structure.shape
    if len(table.weights) << n_latents <= SECOND_START:
        # Not quite alike: latents with the same children must be able to part.
        apart = 0.5 + 0.1 * np.linspace(-1, 1, n_latents)
        middle = np.where(structure, 1.0 - apart[:, None], 1.0)
        starts.append(Parameters(apart, middle, np.full(n_features, 0.05)))
    fits = [maximize_likelihood(start, structure, table) for start in starts]
    return max(fits, key=lambda fit: fit.log_likelihood)


def _interactions(plan, statistics, latents):
    """Interactions of the sets within the components of some latents."""
    features = plan.schedule.structure[latents].any(axis=0)
    sets = plan.fit_sets[features[plan.fit_sets[:, 0]]]
    return Interactions(statistics.moments, plan.schedule.structure, sets)


def likelihood_errors(plan, statistics, network):
    """Standard errors of components refined by likelihood; NaN elsewhere."""
    structure = plan.schedule.structure
    parameters = Parameters(network.prior, network.failure, network.leak)
    prior = np.full(len(structure), np.nan)
    failure = np.full(structure.shape, np.nan)
    for part, table in _tables(plan, statistics):
        block = np.ix_(part.latents, part.features)
        errors = standard_errors(parameters.restrict(part), structure[block], table)
        prior[part.latents], failure[block] = errors.prior, errors.failure
    return prior, failure


def siblings_errors(plan, statistics, network, learned):
    """Standard errors of components refined by least squares; None if too large.

    The estimate is a smooth function of the moments, whose covariance the fitted
    network has in closed form.
    """
    latents = _without_table(plan, statistics)
    interactions = _interactions(plan, statistics, latents)
    used = np.unique(interactions.index[interactions.signs != 0])
    free_edge = learned & latents[:, None]
    if len(used) > MAX_MOMENTS or free_edge.sum() > MAX_MOMENTS:
        return None
    interactions.reweigh(network.prior, network.failure)
    free = FreeParameters(
        network.prior, network.failure, free_edge.any(axis=1), free_edge
    )
    _, J = free.linearize(interactions, free.pack(network.prior, network.failure))
    by_moments = interactions.by_moments(len(statistics.moments.sets))[:, used]
    pull = J.T @ (by_moments * interactions.weight[:, None]).toarray()
    influence = np.linalg.pinv((J.T @ J).toarray(), hermitian=True) @ pull
    covariance = moment_covariance(used, statistics.moments, network)
    variance = np.einsum("ps,ps->p", influence @ covariance, influence)
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
