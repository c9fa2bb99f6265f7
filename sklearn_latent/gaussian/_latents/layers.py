"""Networks of two layers, latents over features, as networks of a structural EM."""

from __future__ import annotations

import numpy as np

from .._missing.linear_em import LinearState, expect, fit_network, saturated_statistics
from .._missing.structural_em import MAX_ROUNDS, StructuralEM
from .._statistics.statistics import GaussianStatistics, standardise
from .factors import FactorData, Factors, fit_factors
from .two_layer import TwoLayerSearch


def two_layer_search(
    em: StructuralEM, statistics: GaussianStatistics
) -> TwoLayerSearch:
    """Search for two layers with the options of the structural EM."""
    return TwoLayerSearch(
        factor_data(em, statistics),
        max_latents=latent_limit(em),
        max_parents=max(em.options.parent_limit(em.data.weight), 0),
        parameter_cost=em.penalty.parameter,
        edge_cost=em.penalty.latent_edge,
        multiplicity=em.penalty.multiplicity,
        report=em.report,
    )


def latent_limit(em: StructuralEM) -> int:
    """Largest number of latents that features and rows can tell apart."""
    limits = em.options.max_latents, em.data.n_features // 2, int(em.data.weight) - 1
    return max(0, min(limits))


def two_layers(em: StructuralEM) -> LinearState:
    """Best two-layer network.

    Where values are missing, the network found so far says what is expected of the
    features, and the search goes on from there: structural EM in which latents
    are integrated out exactly.
    """
    statistics = saturated_statistics(em.data)
    search = two_layer_search(em, statistics)
    factors = search.run()
    for _ in range(MAX_ROUNDS):
        start = as_state(em, factors, statistics)
        if em.data.n_missing == 0 or em.report(
            f"{factors.n_latents} latents, score {em.score(start):.8g}"
        ):
            break
        state = fit_network(
            em.data, start.adjacency, start.parameters, start.n_latents, tol=1e-5
        )
        n = em.data.n_features
        expected = GaussianStatistics(
            state.statistics.weight,
            state.statistics.mean[:n],
            state.statistics.scatter[:n, :n],
        )
        search.data = factor_data(em, expected)
        scale = expected.scale
        again = Factors(
            factors.mask,
            state.weights[n:, :n] / scale,
            0.0 * scale,
            state.noise_variance[:n] / scale**2,
        )
        statistics = expected
        again = search.improve(search.fit(again))
        same = np.array_equal(again.mask, factors.mask)
        factors = again
        if same:
            break
    factors = fit_factors(search.data, factors, tol=1e-12, max_iter=2500)
    em.history += search.history
    em.n_evaluated += search.n_evaluated
    em.n_considered += search.n_considered
    return as_state(em, factors, statistics)


def factor_data(em: StructuralEM, statistics: GaussianStatistics) -> FactorData:
    """Data of the two-layer search, in standard units."""
    standard, scale = standardise(statistics)
    return FactorData(standard, em.data.noise_floor / scale**2)


def as_state(
    em: StructuralEM, factors: Factors, statistics: GaussianStatistics
) -> LinearState:
    """Two layers as a network in the units of the data."""
    n_latents, n = factors.mask.shape
    scale = statistics.scale
    weights = np.zeros((n + n_latents, n + n_latents))
    weights[n:, :n] = factors.loadings * scale
    adjacency = np.zeros(weights.shape, dtype=bool)
    adjacency[n:, :n] = factors.mask
    intercept = np.append(statistics.mean, np.zeros(n_latents))
    noise = np.append(factors.noise * scale**2, np.ones(n_latents))
    return expect(em.data, adjacency, (weights, intercept, noise), n_latents)


def canonical(em: StructuralEM, state: LinearState) -> LinearState:
    """Latents in order of what they explain, signs by the majority of it.

    Order and signs are arbitrary in the model; fixed, results can be compared.
    """
    if not state.n_latents:
        return state
    n = em.data.n_features
    effect = state.weights[n:] / np.sqrt(state.noise_variance)
    order = np.argsort(-(effect**2).sum(axis=1), kind="stable")
    sign = np.where(effect.sum(axis=1) < 0, -1.0, 1.0)
    flip = np.concatenate([np.ones(n), sign])
    place = np.concatenate([np.arange(n), n + order])
    weights = state.weights * flip[:, None] * flip
    parameters = (
        weights[np.ix_(place, place)],
        (state.intercept * flip)[place],
        state.noise_variance[place],
    )
    adjacency = state.adjacency[np.ix_(place, place)]
    return expect(em.data, adjacency, parameters, state.n_latents)
