"""Candidates for latents: rotated factor analyses, and dense parts of a network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .clusters import FEWEST_CHILDREN
from .rotation import fewest_edges, promax, random_rotation, varimax
from .sem import Point, Sem, SemData


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


def rotated_factors(
    data: SemData, n_latents: int, price: float, *, n_random, oblique, rng
) -> list[Sem]:
    """Networks of two layers with nearly the likelihood of a factor analysis.

    Independent latents in the rotation with the fewest edges, and, if `oblique`,
    latents that all depend on each other.
    """
    loadings, noise = factor_analysis(data.covariance, data.floor, n_latents)
    weight = 0.5 * data.weight / noise
    # Communalities of 1, so that weak features count as much as strong ones.
    common = np.maximum(np.sqrt((loadings**2).sum(axis=0)), 1e-9)
    even = loadings / common
    turned = [varimax(even)]
    if n_latents > 1:
        turned += [random_rotation(even, rng) for _ in range(n_random)]
    found = [fewest_edges(start * common, weight, price) for start in turned]
    best = min(found, key=lambda pair: pair[1])[0]
    starts = [_as_sem(best, np.eye(n_latents), noise, weight, price)]
    if oblique and n_latents > 1:
        try:
            pattern, correlation = promax(even)
            starts.append(_as_sem(pattern * common, correlation, noise, weight, price))
        except np.linalg.LinAlgError:  # factors that coincide
            pass
    return starts


def _as_sem(loadings, correlation, noise, weight, price) -> Sem:
    """Network of correlated latents, without edges that do not pay."""
    n_latents, n = loadings.shape
    factor = np.linalg.cholesky(correlation)
    scale = np.diagonal(factor)  # of the noise of each latent, given those before it
    inverse = np.linalg.inv(factor) * scale[:, None]
    keep = loadings**2 * weight * (scale**2)[:, None] > price
    weights = np.zeros((n + n_latents, n + n_latents))
    weights[n:, :n] = loadings * keep * scale[:, None]
    weights[n:, n:] = (np.eye(n_latents) - inverse).T * scale[:, None] / scale
    weights[np.abs(weights) < 1e-12] = 0.0
    gone = np.where(keep, 0.0, loadings**2).sum(axis=0)
    return Sem(weights != 0, weights, noise + gone)


@dataclass(frozen=True, eq=False)
class Candidate:
    """Nodes that may share a latent parent in place of edges among themselves.

    members: nodes
    weights, noise: of the latent in each member, and what it leaves, (n_members,)
    gain: price of what joins them now less that of the latent
    """

    members: np.ndarray
    weights: np.ndarray
    noise: np.ndarray
    gain: float


class DenseSets:
    """Sets of nodes that depend on each other as children of one latent do.

    Where a latent is missing, edges between its children stand for it, so that nearly
    all pairs of them are joined, which is rare in a sparse graph. How likely a latent
    in place of these edges would be says less: some of them may be real.
    """

    def __init__(self, point: Point):
        model = point.model
        self.model = model
        self.innovation = np.eye(len(model.weights)) - model.weights
        self.moments = point.expected_statistics().covariance
        noise = np.append(model.noise, np.ones(model.n_latents))
        left = self.innovation.T @ self.moments @ self.innovation
        level = 3.0 / np.sqrt(point.data.weight)
        self.joined = np.abs(left) > level * np.sqrt(np.outer(noise, noise))
        self.joined |= model.adjacency | model.adjacency.T
        np.fill_diagonal(self.joined, False)

    def find(self, nodes, edge_price, latent_price) -> list[Candidate]:
        """Sets among some nodes, those that save most first.

        edge_price: what an edge between such nodes costs
        latent_price: what a latent over 0, 1, 2, ... of them costs
        """
        joined = self.joined[np.ix_(nodes, nodes)]
        cliques = {near_clique(joined, pair) for pair in np.argwhere(np.triu(joined))}
        found = []
        for clique in sorted(cliques):
            if len(clique) >= FEWEST_CHILDREN:
                n_pairs = joined[np.ix_(clique, clique)].sum() // 2
                gain = edge_price * n_pairs - latent_price[len(clique)]
                found.append((float(gain), nodes[list(clique)]))
        kept: list[tuple[float, np.ndarray]] = []
        for gain, members in sorted(found, key=lambda pair: -pair[0]):
            if all(_differ(members, other) for _, other in kept):
                kept.append((gain, members))
        return [
            Candidate(members, *self.start(members), gain) for gain, members in kept
        ]

    def start(self, members) -> tuple[np.ndarray, np.ndarray]:
        """A single factor of what parents outside a set leave: weights and noise."""
        columns = self.innovation[:, members].copy()
        columns[members] = np.eye(len(members))
        left = columns.T @ self.moments @ columns
        # Nothing is left of a copy of another feature but rounding errors.
        variance = np.maximum(np.diagonal(left), 1e-12)
        scale = np.sqrt(variance)
        loadings, noise = factor_analysis(left / np.outer(scale, scale), 0.01, 1)
        return loadings[0] * scale, noise * variance


def near_clique(joined, pair) -> tuple[int, ...]:
    """Grow a pair while some node is joined to all members, or to all but one."""
    members = list(map(int, pair))
    while True:
        n_joined = joined[members].sum(axis=0)
        n_joined[members] = -1
        node = int(n_joined.argmax())
        if n_joined[node] < max(2, len(members) - 1):
            return tuple(sorted(members))
        members.append(node)


def _differ(first, second) -> bool:
    """Whether two sets have less than most of their nodes in common."""
    common = len(np.intersect1d(first, second))
    return common < 0.7 * len(np.union1d(first, second))
