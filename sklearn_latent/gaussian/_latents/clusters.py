"""Candidates for latents: clusters of similar ideal-parent profiles.

Numbers of sections and equations are those of Elidan et al. (2007).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# A latent with one child is noise, with two children it is not identified.
FEWEST_CHILDREN = 3


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
