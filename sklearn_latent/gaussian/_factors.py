"""Factors of features, rotated towards few edges, and features that may share one."""

from __future__ import annotations

import numpy as np

from ._gaussian_network import GaussianNetwork
from ._latent_likelihood import Point
from ._statistics import GaussianStatistics

# A latent with one child is noise, with two children it is not identified.
FEWEST_CHILDREN = 3
# Share of nodes in common from which two sets are the same. With .7, children of a
# latent were not tried without a neighbour of theirs.
SAME = 0.85


def factor_analysis(correlation, n_latents: int, *, floor=1e-3, max_iter=40) -> tuple:
    """Factor analysis with all edges: loadings (n_latents, n_features) and noise.

    The maximum-likelihood loadings of given noise variances are principal components
    (Lawley, 1940).
    """
    noise = np.full(len(correlation), 0.5)
    for _ in range(max_iter):
        scale = np.sqrt(noise)
        values, vectors = np.linalg.eigh(correlation / np.outer(scale, scale))
        size = np.sqrt(np.maximum(values[-n_latents:] - 1.0, 1e-6))
        loadings = (vectors[:, -n_latents:] * size).T * scale
        before = noise
        left = np.diagonal(correlation) - (loadings**2).sum(axis=0)
        noise = np.maximum(left, floor)
        if np.abs(noise - before).max() < 1e-3:
            break
    return loadings, noise


def few_factors(covariance, n_latents: int, weight: float, price: float) -> tuple:
    """Factors of some nodes with few edges: loadings, 0 without an edge, and noise."""
    # Nothing is left of a copy of another feature but rounding errors.
    variance = np.maximum(np.diagonal(covariance), 1e-12)
    scale = np.sqrt(variance)
    correlation = covariance / np.outer(scale, scale)
    loadings, noise = factor_analysis(correlation, n_latents, floor=0.01)
    if n_latents > 1:
        weight = 0.5 * weight / noise
        loadings = fewest_edges(loadings, weight, price)
        keep = loadings**2 * weight > price
        noise = noise + np.where(keep, 0.0, loadings**2).sum(axis=0)
        loadings = np.where(keep, loadings, 0.0)
    return loadings * scale, noise * variance


def fewest_edges(loadings, weight, price, *, max_sweeps=30) -> np.ndarray:
    """Rotate loadings so that as many as possible can be dropped at little loss.

    A loading costs what its removal would take from the log-likelihood, but no more
    than the price of an edge: a component loss (Jennrich, 2006) that measures what the
    search is after. It is flat for large loadings, so planes are rotated one after the
    other by trying all angles.
    """
    # Edges without a price are all worth having; any rotation will do.
    price = max(price, 1e-6)
    scaled = loadings * np.sqrt(weight / price)
    size = len(scaled)
    for _ in range(max_sweeps):
        before = np.minimum(scaled**2, 1.0).sum()
        for a in range(size):
            for b in range(a + 1, size):
                _rotate_plane(scaled, a, b)
        if before - np.minimum(scaled**2, 1.0).sum() < 1e-3:
            break
    return scaled / np.sqrt(weight / price)


def _rotate_plane(scaled, a, b):
    """Rotate two rows of the loadings, in place, by the best of all angles."""
    x, y = scaled[a], scaled[b]
    best, width = 0.0, np.pi / 2
    current = np.minimum(x**2, 1.0).sum() + np.minimum(y**2, 1.0).sum()
    for n_angles in (48, 8, 8):
        angles = best + width * (np.arange(n_angles) / n_angles - 0.5)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        costs = np.minimum((cos * x + sin * y) ** 2, 1.0)
        costs += np.minimum((cos * y - sin * x) ** 2, 1.0)
        total = costs.sum(axis=1)
        place = int(total.argmin())
        best, width = float(angles[place]), 2.0 * width / n_angles
    if total[place] < current - 1e-9:
        cos1, sin1 = np.cos(best), np.sin(best)
        scaled[a], scaled[b] = cos1 * x + sin1 * y, cos1 * y - sin1 * x


def correlated_factors(
    given: GaussianStatistics, n_latents: int, price: float
) -> GaussianNetwork:
    """Factors of all features that depend on each other, without weak edges."""
    loadings, noise = factor_analysis(given.covariance, n_latents)
    n, weight = len(noise), 0.5 * given.weight / noise
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
    noise = np.append(noise + gone, np.ones(n_latents))
    intercept = np.zeros(len(noise))
    return GaussianNetwork._linear(weights != 0, weights, intercept, noise, n_latents)


def varimax(loadings, *, max_iter=200, tol=1e-8) -> np.ndarray:
    """Rotate loadings so that each feature has few large ones (Kaiser, 1958)."""
    start = loadings.T
    rotation = np.eye(start.shape[1])
    before = -np.inf
    for _ in range(max_iter):
        rotated = start @ rotation
        target = rotated**3 - rotated * (rotated**2).mean(axis=0)
        left, values, right = np.linalg.svd(start.T @ target)
        rotation = left @ right
        if values.sum() <= before * (1.0 + tol):
            break
        before = values.sum()
    return (start @ rotation).T


def promax(loadings, *, power=4) -> tuple[np.ndarray, np.ndarray]:
    """Let factors be correlated, so that fewer loadings are large.

    Hendrickson and White (1964). Returns loadings of standardised factors and the
    correlation of these.
    """
    rotated = varimax(loadings).T
    target = rotated * np.abs(rotated) ** (power - 1)
    turn = np.linalg.lstsq(rotated, target, rcond=None)[0]
    inverse = np.linalg.inv(turn.T @ turn)
    size = np.sqrt(np.diagonal(inverse))
    return (rotated @ (turn * size)).T, inverse / np.outer(size, size)


class DenseSets:
    """Sets of nodes that depend on each other as children of one latent do.

    Where a latent is missing, edges between its children stand for it, so that nearly
    all pairs of them are joined, which is rare in a sparse graph. How likely a latent
    in place of these edges would be says less: some of them may be real.
    """

    def __init__(self, point: Point):
        network = point.network
        innovation = np.eye(len(network.weights)) - network.weights
        left = innovation.T @ point.statistics.covariance @ innovation
        noise = np.sqrt(network.noise_variance)
        level = 3.0 / np.sqrt(point.given.weight)
        self.joined = np.abs(left) > level * np.outer(noise, noise)
        self.joined |= network.adjacency | network.adjacency.T
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
