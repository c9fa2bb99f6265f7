"""Latents added one at a time, and dropped where they do not improve the score.

Sections 5 and 9.2 of Elidan et al. (2007).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .._conditional import Joint, condition
from .._missing.linear_em import LinearState, fit_network, saturated_statistics
from .._missing.structural_em import StructuralEM, standardise
from .candidates import factor_analysis
from .clusters import Cluster, agglomerate, profile_gain
from .sem import SemData


def profile_correlation(em: StructuralEM, state: LinearState) -> np.ndarray:
    """Products of the ideal profiles, in units of the noise: Y'Y per row.

    With values missing, profiles are those of the expected values (Section 6).
    """
    data = em.data
    joint = Joint(*state.parameters)
    profiles = condition(joint, data.values)[0] @ joint.innovation - state.intercept
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
    """Add latents one at a time while that raises the score (Section 9.2).

    Two layers start from a single latent over all features, other networks
    from the best one without latents.
    """
    best = independent(em) if em.options.bipartite else em.first()
    while best.n_latents < em.options.max_latents and not em.stopped:
        if em.options.bipartite and best.n_latents == 0:
            cluster = _everything(em)
        else:
            cluster = best_profile_cluster(em, best)
        before, best = best, better(em, best, grow(em, best, cluster), em.score)
        if best is before:
            break
    return drop_latents(em, best, em.score)


def better(em: StructuralEM, best: LinearState, trial, score) -> LinearState:
    """The better of two networks; what was gained goes to the history."""
    gain = score(trial) - score(best)
    if gain <= em.tol:
        return best
    em.history.append((("latent", trial.n_latents), float(gain)))
    return trial


def _everything(em: StructuralEM) -> Cluster:
    """All features as one cluster."""
    n = em.data.n_features
    standard, scale = standardise(saturated_statistics(em.data))
    data = SemData(standard, em.data.noise_floor / scale**2)
    loadings, noise = factor_analysis(data.covariance, data.floor, 1)
    direction = loadings[0] / np.sqrt(noise)
    size = float(np.linalg.norm(direction))
    return Cluster(np.arange(n), direction / max(size, 1e-300), 1.0 + size**2, np.nan)


def independent(em: StructuralEM) -> LinearState:
    """The network without edges, apart from required ones."""
    n = em.data.n_features
    mean, variance = em.data.column_moments()
    parameters = np.zeros((n, n)), mean, np.maximum(variance, em.data.noise_floor)
    return fit_network(em.data, em.options.required[:n, :n], parameters)


def grow(em: StructuralEM, state: LinearState, cluster: Cluster) -> LinearState:
    """Add a latent over a cluster, fit it, and adapt the structure."""
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


def drop_latents(em: StructuralEM, state: LinearState, score) -> LinearState:
    """Remove latents that stopped paying, the least useful first."""
    n_features = em.data.n_features
    share = (state.weights[n_features:] ** 2 / state.noise_variance).sum(axis=1)
    for latent in np.argsort(share, kind="stable"):
        node = n_features + int(latent)
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
        if gain > em.tol:
            em.history.append((("drop latent", int(latent)), float(gain)))
            return drop_latents(em, trial, score)
        if em.stopped:
            break
    return state
