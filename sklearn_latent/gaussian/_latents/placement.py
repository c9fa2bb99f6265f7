"""Latents of linear networks: from rows with missing values to a network."""

from __future__ import annotations

import numpy as np

from .._missing.linear_em import LinearState, expect, fit_network, saturated_statistics
from .._missing.structural_em import MAX_ROUNDS, StructuralEM
from .._statistics import GaussianStatistics
from .search import LatentSearch
from .sem import Sem, fit_sem


def place_latents(em: StructuralEM) -> LinearState:
    """Best network with latents: anywhere, or over features only if `bipartite`.

    Where values are missing, the network found so far says what is expected of the
    features, and the search goes on from there: structural EM in which latents are
    integrated out exactly.
    """
    first = None if em.options.bipartite else em.first()
    statistics = saturated_statistics(em.data)
    search = LatentSearch(em, statistics)
    if first is not None and not search.limit:
        return first
    model = search.run(search.bare() if first is None else as_sem(first, statistics))
    for _ in range(MAX_ROUNDS):
        if not em.data.n_missing or search.report(model):
            break
        state = as_state(em, model, statistics)
        state = fit_network(
            em.data, state.adjacency, state.parameters, state.n_latents, tol=1e-5
        )
        statistics = _of_features(state)
        search.read(statistics)
        before = model.adjacency
        model = search.improve(search.fit(as_sem(state, statistics)))
        if np.array_equal(model.adjacency, before):
            break
    model = fit_sem(search.data, model, tol=1e-9, max_iter=200)
    return as_state(em, model, statistics)


def _of_features(state: LinearState) -> GaussianStatistics:
    """What a network expects of the features."""
    n = len(state.intercept) - state.n_latents
    full = state.statistics
    return GaussianStatistics(full.weight, full.mean[:n], full.scatter[:n, :n])


def as_sem(state: LinearState, statistics: GaussianStatistics) -> Sem:
    """A network in standard units, the noise of latents with variance 1."""
    n = statistics.n_nodes
    scale = np.append(statistics.scale, np.sqrt(state.noise_variance[n:]))
    weights = state.weights * scale[:, None] / scale
    return Sem(state.adjacency, weights, (state.noise_variance / scale**2)[:n])


def as_state(
    em: StructuralEM, model: Sem, statistics: GaussianStatistics
) -> LinearState:
    """A network in the units of the data, with standardised latents."""
    n = model.n_features
    effect = np.linalg.inv(np.eye(len(model.weights)) - model.weights)
    noise = np.append(model.noise, np.ones(model.n_latents))
    variance = (effect**2 * noise[:, None]).sum(axis=0)
    scale = np.append(statistics.scale, 1.0 / np.sqrt(variance[n:]))
    weights = model.weights * scale / scale[:, None]
    mean = np.append(statistics.mean, np.zeros(model.n_latents))
    parameters = weights, mean - mean @ weights, noise * scale**2
    return expect(em.data, model.adjacency, parameters, model.n_latents)


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
