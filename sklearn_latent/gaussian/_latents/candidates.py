"""Candidates for latents: dense parts of a network, and their factors."""

from __future__ import annotations

import numpy as np

from .clusters import FEWEST_CHILDREN
from .rotation import fewest_edges, promax
from .sem import Point, Sem, SemData

# Share of nodes in common from which two sets are the same. With .7, children of a
# latent were not tried without a neighbour of theirs.
SAME = 0.85


def factor_analysis(covariance, floor, n_latents: int, *, max_iter=40) -> tuple:
    """Factor analysis with all edges: loadings (n_latents, n_features) and noise.

    The maximum-likelihood loadings of given noise variances are principal components
    (Lawley, 1940).
    """
    noise = np.full(len(covariance), 0.5)
    for _ in range(max_iter):
        scale = np.sqrt(noise)
        values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
        size = np.sqrt(np.maximum(values[-n_latents:] - 1.0, 1e-6))
        loadings = (vectors[:, -n_latents:] * size).T * scale
        before = noise
        left = np.diagonal(covariance) - (loadings**2).sum(axis=0)
        noise = np.maximum(left, np.maximum(floor, 1e-3))
        if np.abs(noise - before).max() < 1e-3:
            break
    return loadings, noise


def few_factors(covariance, n_latents: int, weight: float, price: float) -> tuple:
    """Factors of some nodes with few edges: loadings, 0 without an edge, and noise."""
    # Nothing is left of a copy of another feature but rounding errors.
    variance = np.maximum(np.diagonal(covariance), 1e-12)
    scale = np.sqrt(variance)
    loadings, noise = factor_analysis(
        covariance / np.outer(scale, scale), 0.01, n_latents
    )
    if n_latents > 1:
        weight = 0.5 * weight / noise
        loadings = fewest_edges(loadings, weight, price)
        keep = loadings**2 * weight > price
        noise = noise + np.where(keep, 0.0, loadings**2).sum(axis=0)
        loadings = np.where(keep, loadings, 0.0)
    return loadings * scale, noise * variance


def correlated_factors(data: SemData, n_latents: int, price: float) -> Sem:
    """Factors of all features that depend on each other, without weak edges."""
    loadings, noise = factor_analysis(data.covariance, data.floor, n_latents)
    n, weight = len(noise), 0.5 * data.weight / noise
    # Communalities of 1, so that weak features count as much as strong ones.
    common = np.maximum(np.sqrt((loadings**2).sum(axis=0)), 1e-9)
    pattern, correlation = promax(loadings / common)
    factor = np.linalg.cholesky(correlation)
    scale = np.diagonal(factor)  # of the noise of each latent, given those before it
    loadings = pattern * common * scale[:, None]
    keep = loadings**2 * weight > price
    inverse = np.linalg.inv(factor) * scale[:, None]
    weights = np.zeros((n + n_latents, n + n_latents))
    weights[n:, :n] = np.where(keep, loadings, 0.0)
    weights[n:, n:] = np.triu(
        (np.eye(n_latents) - inverse).T * scale[:, None] / scale, 1
    )
    gone = np.where(keep, 0.0, loadings**2).sum(axis=0)
    return Sem(weights != 0, weights, noise + gone)


class DenseSets:
    """Sets of nodes that depend on each other as children of one latent do.

    Where a latent is missing, edges between its children stand for it, so that nearly
    all pairs of them are joined, which is rare in a sparse graph. How likely a latent
    in place of these edges would be says less: some of them may be real.
    """

    def __init__(self, point: Point):
        model = point.model
        innovation = np.eye(len(model.weights)) - model.weights
        moments = point.expected_statistics().covariance
        noise = np.append(model.noise, np.ones(model.n_latents))
        left = innovation.T @ moments @ innovation
        level = 3.0 / np.sqrt(point.data.weight)
        self.joined = np.abs(left) > level * np.sqrt(np.outer(noise, noise))
        self.joined |= model.adjacency | model.adjacency.T
        np.fill_diagonal(self.joined, False)

    def find(self, nodes, edge_price, latent_price) -> list[np.ndarray]:
        """Sets among some nodes, those that save most first.

        edge_price: what an edge between such nodes costs
        latent_price: what a latent over 0, 1, 2, ... of them costs
        """
        joined = self.joined[np.ix_(nodes, nodes)]
        pairs = np.argwhere(np.triu(joined))
        cliques = {clique for pair in pairs for clique in near_cliques(joined, pair)}
        found = []
        for clique in sorted(cliques):
            if len(clique) >= FEWEST_CHILDREN:
                n_pairs = joined[np.ix_(clique, clique)].sum() // 2
                gain = edge_price * n_pairs - latent_price[len(clique)]
                found.append((float(gain), nodes[list(clique)]))
        kept: list[np.ndarray] = []
        for _, members in sorted(found, key=lambda pair: -pair[0]):
            if all(_differ(members, other) for other in kept):
                kept.append(members)
        return kept


def near_cliques(joined, pair) -> list[tuple[int, ...]]:
    """Grow a pair while some node is joined to all members, then to all but one."""
    members = list(map(int, pair))
    found = []
    for n_absent in (0, 1):
        while True:
            n_joined = joined[members].sum(axis=0)
            n_joined[members] = -1
            node = int(n_joined.argmax())
            if n_joined[node] < max(2, len(members) - n_absent):
                break
            members.append(node)
        found.append(tuple(sorted(members)))
    return found


def _differ(first, second) -> bool:
    """Whether two sets are not the same, or nearly so."""
    common = len(np.intersect1d(first, second))
    return common < SAME * len(np.union1d(first, second))
