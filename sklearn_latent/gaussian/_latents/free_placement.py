"""Linear networks with latents anywhere, and edges between features."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..._graphs import reaches
from .._inference.inference import Joint
from .._missing.linear_em import LinearState, fit_network, saturated_statistics
from .._missing.structural_em import StructuralEM
from .clusters import N_TRIALS, marginal_gain, promising
from .growth import better, drop_latents, grow
from .layers import as_state, latent_limit, two_layer_search


def residual_correlation(em: StructuralEM, state: LinearState) -> np.ndarray:
    """Correlation of the features' noise that the network does not explain.

    The identity plus the gradient of the log-likelihood by the covariance of the noise
    terms. Without latents it is the correlation of the ideal profiles; with
    them, it allows for the values of latents being estimates.
    """
    n = em.data.n_features
    joint = Joint(*state.parameters)
    effect = np.linalg.inv(joint.innovation)[:n, :n]
    model = joint.covariance[:n, :n]
    gap = state.statistics.covariance[:n, :n] - model
    pull = np.linalg.solve(model, effect.T) * np.sqrt(state.noise_variance[:n])
    left = pull.T @ gap @ pull
    np.fill_diagonal(left, 1.0)
    return left


def free_search(em: StructuralEM) -> LinearState:
    """Best network with latents anywhere.

    Starts from the best network without latents, and from the best two layers
    of each number of them: edges between features, added first, can hide what a
    latent would explain, and the other way round.
    """
    score = em.whole_score
    best = em.first()
    n = em.data.n_features
    statistics = saturated_statistics(em.data)
    search = two_layer_search(em, statistics)
    search.run()
    # Good structures are at hand from here on, and change little at a time.
    em.method = "greedy"
    for n_latents in sorted(search.found):
        if em.stopped or not n_latents:
            continue
        start = as_state(em, search.found[n_latents], statistics)
        if em.penalty.is_extended and not em.options.required.any():
            # A search charges more for edges of latents than they cost in a
            # whole network, and may drop too many.
            best = better(em, best, start, score)
        # Two layers have no place for required edges.
        adjacency = start.adjacency.copy()
        adjacency[:n, :n] |= em.options.required
        trial = em.refine(adjacency, start.parameters, n_latents)
        best = better(em, best, trial, score)
    em.n_evaluated += search.n_evaluated
    em.n_considered += search.n_considered
    while not em.stopped:
        before = best
        best = drop_latents(em, best, score)
        best = _connect_latents(em, best, score)
        best = _births(em, best, score)
        if best is before:
            break
    em.method = em.options.search
    if em.method != "greedy" and not em.stopped:
        trial = em.refine(best.adjacency, best.parameters, best.n_latents)
        best = better(em, best, trial, score)
    return best


def _connect_latents(em: StructuralEM, state: LinearState, score) -> LinearState:
    """Try edges between latents.

    Where one latent causes another, independent ones can imitate them: the
    children of the second depend on both. Searching on expected statistics does not
    find the way back, because expectations under independence show none of it.
    """
    best = state
    for _, a, b, share in sorted(connections(em, state), reverse=True)[:N_TRIALS]:
        trial = _connect(em, state, a, b, share)
        trial = em.refine(trial.adjacency, trial.parameters, trial.n_latents)
        best = better(em, best, trial, score)
    return best


def connections(em: StructuralEM, state: LinearState):
    """Promising edges between latents.

    With ``b' = b + share * a`` in place of b, a child of both depends on a by
    ``w_a - share * w_b`` only. The best share makes most of these vanish.
    """
    n = em.data.n_features
    price = em.penalty.parameter + em.penalty.latent_edge
    unit = 0.5 * em.data.weight / state.noise_variance[:n]
    reach = reaches(state.adjacency)
    found = []
    for a in range(n, n + state.n_latents):
        for b in range(n, n + state.n_latents):
            common = state.adjacency[a, :n] & state.adjacency[b, :n]
            if a == b or reach[a, b] or reach[b, a] or common.sum() < 2:
                continue
            children = state.adjacency[b, :n]
            first, second = state.weights[a, :n], state.weights[b, :n]
            shares = np.append(0.0, first[common] / second[common])
            effect = first[children] - shares[:, None] * second[children]
            costs = np.minimum(effect**2 * unit[children], price).sum(axis=1)
            place = int(costs.argmin())
            gain = costs[0] - costs[place] - price
            if gain > 0.0:
                found.append((float(gain), a, b, float(shares[place])))
    return found


def _connect(em: StructuralEM, state: LinearState, a, b, share) -> LinearState:
    """Let latent a cause b, and drop what that makes superfluous."""
    n = em.data.n_features
    weights = state.weights.copy()
    children = np.flatnonzero(state.adjacency[b, :n])
    weights[a, children] -= share * weights[b, children]
    loss = 0.5 * em.data.weight * weights[a, :n] ** 2 / state.noise_variance[:n]
    adjacency = state.adjacency.copy()
    price = em.penalty.parameter + em.penalty.latent_edge
    adjacency[a, children] = loss[children] > price
    adjacency[a, b] = True
    weights[a, b] = share
    limit = em.options.parent_limit(em.data.weight)
    adjacency[a, :n] &= state.adjacency[a, :n] | (adjacency.sum(axis=0)[:n] <= limit)
    weights[~adjacency] = 0.0
    parameters = weights, state.intercept, state.noise_variance
    return fit_network(em.data, adjacency, parameters, state.n_latents)


def _births(em: StructuralEM, state: LinearState, score) -> LinearState:
    """Try one more latent, over the most promising clusters."""
    if state.n_latents >= latent_limit(em):
        return state
    gain = partial(
        marginal_gain,
        weight=em.data.weight,
        parameter_cost=em.penalty.parameter,
        edge_cost=em.penalty.latent_edge,
    )
    best = state
    for cluster in promising(residual_correlation(em, state), gain):
        best = better(em, best, grow(em, state, cluster), score)
    return best
