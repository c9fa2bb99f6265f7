"""New hidden variables in linear networks: where, how many, and when to drop them.

References
----------
.. [1] Elidan, G., Nachman, I., Friedman, N. (2007). "Ideal Parent" structure learning
   for continuous variable Bayesian networks. Journal of Machine Learning Research, 8.
   Sections 5 and 9.2.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .._inference.inference import Joint, complete
from .._missing.linear_em import LinearState, expect, fit_network, saturated_statistics
from .._missing.structural_em import (
    MAX_ROUNDS,
    LearnedNetwork,
    StructuralEM,
    standardise,
)
from .._statistics.statistics import GaussianStatistics
from .clusters import Cluster, agglomerate, profile_gain
from .factors import FactorData, Factors, fit_factors
from .two_layer import TwoLayerSearch

__all__ = ["learn_hidden", "profile_correlation"]


def learn_hidden(em: StructuralEM, hidden_search="auto") -> LearnedNetwork:
    """Learn a linear network with hidden variables."""
    if em.options.bipartite and em.options.required.any():
        raise ValueError(
            "required must be empty with bipartite=True, which has no edges between "
            f"features, got {int(em.options.required.sum())} edges."
        )
    if hidden_search == "paper":
        state = paper_search(em)
    elif hidden_search != "auto":
        raise ValueError(
            f"hidden_search must be 'auto' or 'paper', got {hidden_search!r}."
        )
    elif em.options.bipartite:
        state = two_layers(em)
    else:
        from .free_placement import free_search

        state = free_search(em)
    return em.finish(canonical(em, state))


# --- the procedure of the paper -----------------------------------------------------


def profile_correlation(em: StructuralEM, state: LinearState) -> np.ndarray:
    """Products of the ideal profiles, in units of the noise: Y'Y of [1]_ per row.

    With values missing, profiles are those of the expected values (Section 6).
    """
    data = em.data
    joint = Joint(*state.parameters)
    profiles = complete(joint, data.values) @ joint.innovation - state.intercept
    profiles = profiles[:, : data.n_features]
    profiles /= np.sqrt(state.noise_variance[: data.n_features])
    return (profiles.T * data.sample_weight) @ profiles / data.weight


def best_profile_cluster(em: StructuralEM, state: LinearState) -> Cluster:
    """The cluster of ideal profiles of the highest estimated gain (Section 5)."""
    gain = partial(
        profile_gain,
        weight=em.data.weight,
        parameter_cost=em.penalty.parameter,
        edge_cost=float(em.penalty.parents(1)[1]),
    )
    levels = agglomerate(profile_correlation(em, state), gain)
    clusters = [cluster for level in levels for cluster in level]
    several = [c for c in clusters if len(c.members) > 1] or clusters
    return max(several, key=lambda cluster: cluster.gain)


def paper_search(em: StructuralEM) -> LinearState:
    """Add hidden variables one at a time while that raises the score (Section 9.2).

    Two layers start from a single hidden variable over all features, other networks
    from the best one without hidden variables.
    """
    best = independent(em) if em.options.bipartite else em.first()
    while best.n_latents < em.options.max_latents and not em.stopped:
        if em.options.bipartite and best.n_latents == 0:
            cluster = _everything(em)
        else:
            cluster = best_profile_cluster(em, best)
        trial = grow(em, best, cluster)
        gain = em.score(trial) - em.score(best)
        if gain <= em.options.tol:
            break
        em.history.append((("hidden", trial.n_latents), float(gain)))
        best = trial
    return drop_hidden(em, best, em.score)


def _everything(em: StructuralEM) -> Cluster:
    """All features as one cluster."""
    n = em.data.n_features
    search = two_layer_search(em, feature_statistics(em))
    dense = search.factor_analysis(1)
    direction = dense.loadings[0] / np.sqrt(dense.noise)
    size = float(np.linalg.norm(direction))
    return Cluster(np.arange(n), direction / max(size, 1e-300), 1.0 + size**2, np.nan)


def independent(em: StructuralEM) -> LinearState:
    """The network without edges, apart from required ones."""
    n = em.data.n_features
    mean, variance = em.data.column_moments()
    parameters = np.zeros((n, n)), mean, np.maximum(variance, em.data.noise_floor)
    return fit_network(em.data, em.options.required[:n, :n], parameters)


def grow(em: StructuralEM, state: LinearState, cluster: Cluster) -> LinearState:
    """Add a hidden variable over a cluster, fit it, and adapt the structure."""
    n = len(state.intercept)
    adjacency = np.pad(state.adjacency, (0, 1))
    adjacency[n, cluster.members] = True
    limit = em.options.parent_limit(em.data.weight)
    adjacency[n] &= adjacency.sum(axis=0) <= limit
    size = np.sqrt(max(cluster.eigenvalue - 1.0, 0.01))
    deviation = np.sqrt(state.noise_variance[cluster.members])
    weights = np.pad(state.weights, (0, 1))
    weights[n, cluster.members] = cluster.direction * size * deviation
    weights[~adjacency] = 0.0
    noise = np.append(state.noise_variance, 1.0)
    noise[:n] /= 1.0 + weights[n, :n] ** 2 / noise[:n]
    intercept = np.append(state.intercept, 0.0)
    return em.refine(adjacency, (weights, intercept, noise), state.n_latents + 1)


def drop_hidden(em: StructuralEM, state: LinearState, score) -> LinearState:
    """Remove hidden variables that stopped paying, the least useful first."""
    n_features = em.data.n_features
    share = (state.weights[n_features:] ** 2 / state.noise_variance).sum(axis=1)
    for hidden in np.argsort(share, kind="stable"):
        node = n_features + int(hidden)
        kept = np.delete(np.arange(len(state.intercept)), node)
        noise = state.noise_variance + state.weights[node] ** 2
        parameters = (
            state.weights[np.ix_(kept, kept)],
            state.intercept[kept],
            noise[kept],
        )
        trial = em.refine(
            state.adjacency[np.ix_(kept, kept)], parameters, state.n_latents - 1
        )
        gain = score(trial) - score(state)
        if gain > em.options.tol:
            em.history.append((("drop hidden", int(hidden)), float(gain)))
            return drop_hidden(em, trial, score)
        if em.stopped:
            break
    return state


# --- the default --------------------------------------------------------------------


def feature_statistics(em: StructuralEM) -> GaussianStatistics:
    """Statistics of the features; expected ones, free of structure, where missing."""
    return saturated_statistics(em.data)


def two_layer_search(
    em: StructuralEM, statistics: GaussianStatistics
) -> TwoLayerSearch:
    """Search for two layers with the options of the structural EM."""
    options = em.options
    limit = options.parent_limit(em.data.weight)
    return TwoLayerSearch(
        factor_data(em, statistics),
        max_latents=hidden_limit(em),
        max_parents=max(limit, 0),
        parameter_cost=em.penalty.parameter,
        edge_cost=em.penalty.hidden_edge,
        multiplicity=em.penalty.multiplicity,
        report=em.report,
    )


def hidden_limit(em: StructuralEM) -> int:
    """Largest number of hidden variables that features and rows can tell apart."""
    return max(
        0,
        min(
            em.options.max_latents,
            em.data.n_features // 2,
            int(em.data.weight) - 1,
        ),
    )


def two_layers(em: StructuralEM) -> LinearState:
    """Best two-layer network.

    Where values are missing, the network found so far says what is expected of the
    features, and the search goes on from there: structural EM in which hidden variables
    are integrated out exactly.
    """
    statistics = feature_statistics(em)
    search = two_layer_search(em, statistics)
    factors = search.run()
    for _ in range(MAX_ROUNDS):
        start = as_state(em, factors, statistics)
        if em.data.n_missing == 0 or em.report(
            f"{factors.n_latents} hidden, score {em.score(start):.8g}"
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
        scale = standardise(expected)[1]
        again = Factors(
            factors.mask,
            state.weights[n:, :n] / scale,
            0.0 * scale,
            state.noise_variance[:n] / scale**2,
        )
        statistics = expected
        again = search.improve(search.fit(again))
        if (
            again.mask.shape == factors.mask.shape
            and (again.mask == factors.mask).all()
        ):
            factors = again
            break
        factors = again
    factors = fit_factors(search.data, factors, tol=1e-12, max_iter=5000)
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
    n_features = em.data.n_features
    scale = standardise(statistics)[1]
    factors = Factors(
        factors.mask,
        factors.loadings * scale,
        statistics.mean,
        factors.noise * scale**2,
    )
    parameters = factors.network_parameters()
    adjacency = np.zeros(parameters[0].shape, dtype=bool)
    adjacency[n_features:, :n_features] = factors.mask
    return expect(em.data, adjacency, parameters, factors.n_latents)


def canonical(em: StructuralEM, state: LinearState) -> LinearState:
    """Hidden variables in order of what they explain, signs by the majority of it.

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
