"""Candidates for latents: rotated factor analyses, and dense parts of a network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from .clusters import FEWEST_CHILDREN
from .rotation import fewest_edges, promax, random_rotation, varimax
from .sem import Point, Sem, SemData

# Nodes that may join a set at a time, by how much they have in common with it.
N_JOINING = 12
# A set stops growing when it has lost so often in a row.
PATIENCE = 2
# Steps of EM of a single factor: its loadings need not be exact.
FACTOR_STEPS = 12


def factor_analysis(data: SemData, n_latents: int, *, max_iter=40) -> tuple:
    """Factor analysis with all edges: loadings (n_latents, n_features) and noise.

    The maximum-likelihood loadings of given noise variances are principal components
    (Lawley, 1940).
    """
    noise = np.full(len(data.covariance), 0.5)
    for _ in range(max_iter):
        scale = np.sqrt(noise)
        values, vectors = np.linalg.eigh(data.covariance / np.outer(scale, scale))
        size = np.sqrt(np.maximum(values[-n_latents:] - 1.0, 1e-6))
        loadings = (vectors[:, -n_latents:] * size).T * scale
        before = noise
        left = np.diagonal(data.covariance) - (loadings**2).sum(axis=0)
        noise = np.maximum(left, np.maximum(data.floor, 1e-3))
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
    loadings, noise = factor_analysis(data, n_latents)
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
    gain: estimated gain of the score
    """

    members: np.ndarray
    weights: np.ndarray
    noise: np.ndarray
    gain: float


class DenseSets:
    """Sets of nodes whose dependence one latent would explain.

    The children of a latent that is missing depend on each other, and edges among them
    stand for it. In a set these edges are given up: what is left of its members, less
    their parents outside, is compared with a single factor.
    """

    def __init__(self, point: Point):
        model = point.model
        self.weight, self.model = point.data.weight, model
        self.innovation = np.eye(len(model.weights)) - model.weights
        self.moments = point.expected_statistics().covariance
        self.noise = np.append(model.noise, np.ones(model.n_latents))
        left = self.innovation.T @ self.moments @ self.innovation
        self.common = np.abs(left) / np.sqrt(np.outer(self.noise, self.noise))
        self.common[model.adjacency | model.adjacency.T] = 1.0
        np.fill_diagonal(self.common, 0.0)

    def find(self, nodes, edge_price, latent_price) -> list[Candidate]:
        """Sets among some nodes, the most promising first.

        edge_price: what an edge between such nodes costs
        latent_price: what a latent over 0, 1, 2, ... of them costs
        """
        self.edge_price, self.latent_price = edge_price, latent_price
        found: list[Candidate] = []
        for pair in self._seeds(nodes):
            if not any(np.isin(pair, known.members).all() for known in found):
                found += self.grow(pair, nodes)
        found.sort(key=lambda candidate: -candidate.gain)
        kept: list[Candidate] = []
        for candidate in found:
            if all(_differ(candidate.members, other.members) for other in kept):
                kept.append(candidate)
        return kept

    def connected(self, nodes) -> list[Candidate]:
        """Sets of nodes that edges among them connect, whatever they gain.

        What latents are expected to be depends on the edges between them, so that
        estimates say little of sets of latents.
        """
        _, labels = connected_components(self.model.adjacency[np.ix_(nodes, nodes)])
        sets = [nodes[labels == label] for label in np.unique(labels)]
        rated = [(m, self.rate(m[None])) for m in sets if len(m) >= FEWEST_CHILDREN]
        return [
            Candidate(members, weights[0], noise[0], float(gain[0]))
            for members, (gain, weights, noise) in rated
        ]

    def _seeds(self, nodes) -> list[np.ndarray]:
        """Pairs that are joined, or should be."""
        block = np.triu(self.common[np.ix_(nodes, nodes)], 1)
        level = 3.0 / np.sqrt(self.weight)
        first, second = np.nonzero(block > level)
        order = np.argsort(-block[first, second], kind="stable")
        return [np.array([nodes[first[k]], nodes[second[k]]]) for k in order]

    def grow(self, members, nodes) -> list[Candidate]:
        """Add the node that gains most, again and again; the best set on the way."""
        best: Candidate | None = None
        stale = 0
        while len(members) < len(nodes) and stale <= PATIENCE:
            others = np.setdiff1d(nodes, members)
            shared = self.common[np.ix_(members, others)].sum(axis=0)
            others = others[np.argsort(-shared, kind="stable")[:N_JOINING]]
            sets = np.column_stack(
                [np.broadcast_to(members, (len(others), len(members))), others]
            )
            gains, weights, noise = self.rate(sets)
            place = int(gains.argmax())
            members = sets[place]
            if len(members) < FEWEST_CHILDREN:
                continue
            if best is None or gains[place] > best.gain:
                best = Candidate(
                    members, weights[place], noise[place], float(gains[place])
                )
                stale = 0
            else:
                stale += 1
        return [] if best is None else [best]

    def rate(self, sets) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimated gains of latents over sets of one size, their weights and noise.

        sets (n_sets, size) -> gains (n_sets,), weights and noise (n_sets, size)
        """
        size = sets.shape[1]
        columns = self.innovation[:, sets].transpose(1, 0, 2).copy()
        rows = np.arange(len(sets))[:, None, None]
        columns[rows, sets[:, :, None], np.arange(size)] = np.eye(size)
        left = columns.transpose(0, 2, 1) @ (self.moments @ columns)
        # Nothing is left of a copy of another feature but rounding errors.
        variance = np.maximum(np.diagonal(left, axis1=1, axis2=2), 1e-12)
        scale = np.sqrt(variance)
        loadings, fit = one_factor(left / scale[:, :, None] / scale[:, None, :])
        fit -= np.log(variance / self.noise[sets]).sum(axis=1)
        joined = self.model.adjacency[sets[:, :, None], sets[:, None, :]]
        gains = 0.5 * self.weight * fit - self.latent_price[size]
        gains += self.edge_price * joined.sum(axis=(1, 2))
        noise = variance * np.maximum(1.0 - loadings**2, 0.01)
        return gains, loadings * scale, noise


def one_factor(correlation) -> tuple[np.ndarray, np.ndarray]:
    """Single factors of stacked correlation matrices, by EM.

    correlation (n_sets, size, size) -> loadings (n_sets, size) and twice the gain of
    the log-likelihood per row over independence (n_sets,).
    """
    values, vectors = np.linalg.eigh(correlation)
    share = np.sqrt(np.clip(values[:, -1:] - 1.0, 0.1, None))
    loadings = np.clip(vectors[:, :, -1] * share, -0.95, 0.95)
    noise = 1.0 - loadings**2
    for step in range(FACTOR_STEPS + 1):
        scaled = loadings / noise
        left = 1.0 / (1.0 + (scaled * loadings).sum(axis=1))
        cross = (correlation @ (scaled * left[:, None])[:, :, None])[:, :, 0]
        seen = left * (scaled * cross).sum(axis=1)
        if step == FACTOR_STEPS:
            break
        loadings = cross / (left + seen)[:, None]
        noise = np.clip(1.0 - loadings * cross, 0.01, None)
    log_det = np.log(noise).sum(axis=1) - np.log(left)
    trace = (1.0 / noise).sum(axis=1) - seen / left
    return loadings, noise.shape[1] - log_det - trace


def _differ(first, second) -> bool:
    """Whether two sets have less than most of their nodes in common."""
    common = len(np.intersect1d(first, second))
    return common < 0.7 * len(np.union1d(first, second))
