"""Latents of the paper: added one at a time, and dropped where they do not pay.

A latent is placed over a cluster of similar ideal-parent profiles. Numbers of sections
and equations are those of Elidan et al. (2007).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ._conditional import condition
from ._factors import factor_analysis
from ._gaussian_network import GaussianNetwork
from ._statistics import standardise
from ._structural_em import (
    Expected,
    StructuralEM,
    drop_latents,
    fit_parameters,
    saturated_statistics,
)


@dataclass(frozen=True, eq=False)
class Cluster:
    """Children that a new latent would have.

    members: features, ascending
    direction: coefficients of their profiles in the profile of the latent: the
        leading eigenvector of equation (13), of length 1, (n_members,)
    eigenvalue: leading eigenvalue
    gain: estimated gain of the score
    """

    members: np.ndarray
    direction: np.ndarray
    eigenvalue: float
    gain: float


def leading(matrix) -> tuple[float, np.ndarray]:
    """Largest eigenvalue of a symmetric matrix and its eigenvector, equation (13)."""
    values, vectors = np.linalg.eigh(matrix)
    vector = vectors[:, -1]
    # The sign of an eigenvector is arbitrary; this choice makes runs repeatable.
    return float(values[-1]), vector * (1.0 if vector.sum() >= 0 else -1.0)


def profile_gain(eigenvalue, size, weight, parameter_cost, edge_cost=0.0):
    """Score gain of a latent parent whose profile is known, equation (10).

    Half of the leading eigenvalue of the scatter of the profiles, in units of their
    noise, bounds the gain of the children's log-likelihoods. The new node, of unit
    variance, pays for its own likelihood and its two parameters.
    """
    likelihood = 0.5 * weight * (eigenvalue - np.log(2.0 * np.pi) - 1.0)
    return likelihood - (size + 2) * parameter_cost - size * edge_cost


def agglomerate(correlation, gain: Callable[..., np.ndarray]) -> list[list[Cluster]]:
    """Merge clusters, always those that gain most or lose least (Section 5).

    Everything is done on sub-matrices. The eigenvalue of a merged cluster is bounded
    from below by that of the plane of the two eigenvectors, for all pairs at once, and
    computed exactly for the pair that is merged.
    """
    n = len(correlation)
    vectors = np.eye(n)
    product = np.array(correlation, dtype=float)  # vectors.T @ correlation @ vectors
    top = np.diagonal(product).copy()
    size = np.ones(n, dtype=int)
    score = gain(top, size)
    alive = np.ones(n, dtype=bool)
    clusters = {
        i: Cluster(np.array([i]), np.ones(1), float(top[i]), float(score[i]))
        for i in range(n)
    }
    levels = [list(clusters.values())]
    gains = np.full((n, n), -np.inf)

    def rate(i):
        """Change of the total score when cluster i is merged with each other one."""
        others = np.flatnonzero(alive)
        half = 0.5 * (top[i] - top[others])
        merged = 0.5 * (top[i] + top[others]) + np.hypot(half, product[i, others])
        change = gain(merged, size[i] + size[others]) - score[i] - score[others]
        gains[i, others] = gains[others, i] = change
        gains[i, i] = -np.inf

    for i in range(n):
        rate(i)
    while alive.sum() > 1:
        i, j = divmod(int(np.argmax(gains)), n)
        i, j = min(i, j), max(i, j)
        members = np.union1d(clusters[i].members, clusters[j].members)
        value, direction = leading(correlation[np.ix_(members, members)])
        vectors[:, i] = 0.0
        vectors[members, i] = direction
        product[i] = (correlation[:, members] @ direction) @ vectors
        product[:, i] = product[i]
        top[i], size[i] = value, len(members)
        score[i] = gain(value, len(members))
        clusters[i] = Cluster(members, direction, value, float(score[i]))
        del clusters[j]
        alive[j] = False
        gains[j] = gains[:, j] = -np.inf
        rate(i)
        levels.append(list(clusters.values()))
    return levels


def profile_correlation(em: StructuralEM, network: GaussianNetwork) -> np.ndarray:
    """Products of the ideal profiles, in units of the noise: Y'Y per row.

    With values missing, profiles are those of the expected values (Section 6).
    """
    data, joint = em.data, network._joint()
    profiles = condition(joint, data.values)[0] @ joint.innovation - network.intercept
    profiles = (profiles / np.sqrt(network.noise_variance))[:, : data.n_features]
    return (profiles.T * data.sample_weight) @ profiles / data.weight


def best_profile_cluster(em: StructuralEM, network: GaussianNetwork) -> Cluster:
    """The cluster of ideal profiles of the highest estimated gain (Section 5)."""
    gain = partial(
        profile_gain,
        weight=em.data.weight,
        parameter_cost=em.penalty.parameter,
        edge_cost=float(em.penalty.parents(1)[1]),
    )
    levels = agglomerate(profile_correlation(em, network), gain)
    clusters = [cluster for level in levels for cluster in level]
    several = [c for c in clusters if len(c.members) > 1] or clusters
    return max(several, key=lambda cluster: cluster.gain)


def paper_search(em: StructuralEM) -> GaussianNetwork:
    """Add latents one at a time while that raises the score (Section 9.2).

    Two layers start from a single latent over all features, other networks
    from the best one without latents.
    """
    best = independent(em) if em.options.bipartite else em.first()
    while best.network.n_latents < em.options.max_latents and not em.stopped:
        if em.options.bipartite and best.network.n_latents == 0:
            cluster = everything(em)
        else:
            cluster = best_profile_cluster(em, best.network)
        trial = em.refine(with_cluster(em, best.network, cluster))
        gain = em.score(trial) - em.score(best)
        if gain <= em.tol:
            break
        em.history.append((("latent", trial.network.n_latents), float(gain)))
        best = trial

    def without(state: Expected, latent: int) -> Expected:
        return em.refine(state.network._without([latent]))

    return drop_latents(em, best, without, em.score).network


def everything(em: StructuralEM) -> Cluster:
    """All features as one cluster."""
    standard, _ = standardise(saturated_statistics(em.data))
    loadings, noise = factor_analysis(standard.covariance, 1)
    direction = loadings[0] / np.sqrt(noise)
    size = float(np.linalg.norm(direction))
    members = np.arange(em.data.n_features)
    return Cluster(members, direction / max(size, 1e-300), 1.0 + size**2, np.nan)


def independent(em: StructuralEM) -> Expected:
    """The network without edges, apart from required ones."""
    n, required = em.data.n_features, em.options.required
    own = np.zeros((n, n)), np.zeros(n), np.ones(n)
    return fit_parameters(em.data, GaussianNetwork._linear(required, *own))


def with_cluster(
    em: StructuralEM, network: GaussianNetwork, cluster: Cluster
) -> GaussianNetwork:
    """The network with a latent over a cluster, as far as there is room for parents."""
    limit = em.options.parent_limit(em.data.weight)
    room = network.adjacency.sum(axis=0)[cluster.members] < limit
    size = np.sqrt(max(cluster.eigenvalue - 1.0, 0.01))
    noise = network.noise_variance[cluster.members]
    weights = np.where(room, cluster.direction * size * np.sqrt(noise), 0.0)
    left = noise / (1.0 + weights**2 / noise)
    return network._with_latents(cluster.members, weights[None], left)
