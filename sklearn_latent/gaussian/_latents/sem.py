"""Linear networks with latents, fitted to the covariance of the features.

Latents are integrated out, so that the cost does not depend on the number of rows, and
edges are rated by the likelihood of the features alone: what latents are expected to be
under one structure says little about another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._statistics import LOG_2_PI, GaussianStatistics

# An edge whose effect the parameters can imitate to this share cannot be told.
IMITATED = 1e-4
# Absent edges that are rated in full; the others have smaller gradients.
MAX_RATED = 4000


@dataclass(frozen=True, eq=False)
class Sem:
    """A linear network over standardised features, then latents.

    The noise of latents has variance 1, which fixes their scale.

    adjacency, weights: ``[i, j]`` is the edge from i to j, (n_nodes, n_nodes)
    noise: noise variances of the features, (n_features,)
    """

    adjacency: np.ndarray
    weights: np.ndarray
    noise: np.ndarray
    log_likelihood: float = -np.inf

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.noise)

    @property
    def n_latents(self) -> int:
        """Number of latents."""
        return len(self.adjacency) - len(self.noise)

    @property
    def loadings(self) -> np.ndarray:
        """Weights from latents to features, (n_latents, n_features)."""
        return self.weights[self.n_features :, : self.n_features]

    def with_adjacency(self, adjacency) -> Sem:
        """Other edges: new ones have weight zero, those that go become noise."""
        gone = self.adjacency & ~adjacency
        extra = np.where(gone, self.weights**2, 0.0).sum(axis=0)[: self.n_features]
        weights = np.where(adjacency, self.weights, 0.0)
        noise = np.minimum(self.noise + extra, np.maximum(self.noise, 1.0))
        return replace(self, adjacency=adjacency, weights=weights, noise=noise)

    def without(self, nodes) -> Sem:
        """The network without some latents."""
        kept = np.delete(np.arange(len(self.adjacency)), nodes)
        adjacency = self.adjacency.copy()
        adjacency[nodes] = False
        rest = self.with_adjacency(adjacency)
        both = np.ix_(kept, kept)
        return replace(rest, adjacency=adjacency[both], weights=rest.weights[both])

    def with_latents(self, children, weights, noise) -> Sem:
        """The network with more latents, over some nodes; not yet fitted.

        weights: of the latents in each child, 0 without an edge, (n_new, n_children)
        noise: what they leave of the variance of each child, (n_children,)
        """
        n, n_new = self.n_features, len(weights)
        grown = np.pad(self.weights, (0, n_new))
        grown[-n_new:, children] = weights
        adjacency = np.pad(self.adjacency, (0, n_new))
        adjacency[-n_new:] = grown[-n_new:] != 0
        left = np.append(self.noise, np.ones(len(grown) - n))
        left[children] = noise
        # Units of latents in which their noise has variance 1.
        scale = np.sqrt(np.append(np.ones(n), left[n:]))
        return Sem(adjacency, grown * scale[:, None] / scale, left[:n])


class SemData:
    """Statistics of standardised features, and their smallest noise variances."""

    def __init__(self, statistics: GaussianStatistics, floor):
        self.weight = statistics.weight
        self.covariance = statistics.covariance
        self.floor = floor

    def point(self, model: Sem) -> Point | None:
        """Likelihood of a network and its derivatives; None where it has none."""
        try:
            point = Point(self, model)
        except np.linalg.LinAlgError:
            return None
        return point if np.isfinite(point.log_likelihood) else None


class Point:
    """Likelihood of a network, its gradient and its expected information.

    With ``x = x W + e``, ``effect = inv(I - W)`` and K the precision of the features,
    the derivative of their covariance by the weight of i in j is
    ``outer(covariance[i], effect[j])`` and its transpose (Bollen, 1989, appendix 4B).
    """

    def __init__(self, data: SemData, model: Sem):
        n = model.n_features
        self.data, self.model = data, model
        self.effect = np.linalg.inv(np.eye(len(model.adjacency)) - model.weights)
        variance = np.append(model.noise, np.ones(model.n_latents))
        self.covariance = (self.effect.T * variance) @ self.effect
        factor = cho_factor(self.covariance[:n, :n], lower=True)
        self.precision = cho_solve(factor, np.eye(n))
        fit = np.einsum("ij,ij->", self.precision, data.covariance)
        log_det = 2.0 * np.log(np.diagonal(factor[0])).sum()
        self.log_likelihood = float(-0.5 * data.weight * (fit + log_det + n * LOG_2_PI))

    @cached_property
    def pull(self) -> np.ndarray:
        """Gradient by the covariance of the features, times 2 / weight."""
        return self.precision @ self.data.covariance @ self.precision - self.precision

    @cached_property
    def gradient(self) -> np.ndarray:
        """Gradient by all weights, present or not, (n_nodes, n_nodes)."""
        n = self.model.n_features
        pulled = self.covariance[:, :n] @ self.pull
        return self.data.weight * pulled @ self.effect[:, :n].T

    @cached_property
    def products(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Products of covariances and effects in units of the precision."""
        n = self.model.n_features
        left = self.covariance[:, :n] @ self.precision
        effect = self.effect[:, :n]
        return (
            left @ self.covariance[:n],
            effect @ self.precision @ effect.T,
            left @ effect.T,
        )

    def information(self, rows, columns) -> np.ndarray:
        """Expected information of pairs of weights; edges are (parents, children)."""
        both, effects, mixed = self.products
        (i, j), (k, m) = rows, columns
        # Rows, then columns: three times as fast as both at once.
        crossed = mixed.T[j].take(k, axis=1) * mixed[i].take(m, axis=1)
        direct = effects[j].take(m, axis=1) * both[i].take(k, axis=1)
        return self.data.weight * (crossed + direct)

    def noise_information(self, edges) -> np.ndarray:
        """Expected information of weights and log noise variances."""
        _, effects, mixed = self.products
        noise = self.model.noise
        n = len(noise)
        i, j = edges
        return self.data.weight * mixed[i, :n] * effects[j, :n] * noise

    @cached_property
    def parameters(self) -> tuple[tuple, np.ndarray, np.ndarray]:
        """Edges, gradient and information of weights and log noise variances."""
        n = self.model.n_features
        edges = np.nonzero(self.model.adjacency)
        noise = self.model.noise
        effects = self.products[1][:n, :n]
        effect = self.effect[:, :n]
        slope = np.einsum("ij,ij->i", effect[:n] @ self.pull, effect[:n])
        gradient = np.append(
            self.gradient[edges], 0.5 * self.data.weight * noise * slope
        )
        cross = self.noise_information(edges)
        own = 0.5 * self.data.weight * effects**2 * np.outer(noise, noise)
        information = np.block(
            [[self.information(edges, edges), cross], [cross.T, own]]
        )
        return edges, gradient, information

    def moved(self, step) -> Sem:
        """Network with other parameters."""
        model = self.model
        edges = self.parameters[0]
        weights = model.weights.copy()
        n_edges = len(edges[0])
        weights[edges] += step[:n_edges]
        noise = model.noise * np.exp(np.clip(step[n_edges:], -3.0, 3.0))
        return replace(model, weights=weights, noise=np.maximum(noise, self.data.floor))

    def expected_statistics(self) -> GaussianStatistics:
        """What is expected of features and latents, as in an E-step."""
        n = self.model.n_features
        gain = self.covariance[n:, :n] @ self.precision
        cross = gain @ self.data.covariance
        left = self.covariance[n:, n:] - gain @ self.covariance[:n, n:]
        latent = left + cross @ gain.T
        full = np.block([[self.data.covariance, cross.T], [cross, latent]])
        weight = self.data.weight
        return GaussianStatistics(weight, np.zeros(len(full)), weight * full)


def fit_sem(data: SemData, start: Sem, *, tol=5e-3, max_iter=20) -> Sem:
    """Maximise the likelihood by damped Fisher scoring; it never falls."""
    point = data.point(start)
    if point is None:
        return start
    damping = 1e-3
    for _ in range(max_iter):
        _, gradient, information = point.parameters
        trial, gain = None, -np.inf
        while damping < 1e6:
            try:
                step = _solve(information, gradient, damping)
                trial = data.point(point.moved(step))
            except np.linalg.LinAlgError:
                trial = None
            if trial is not None:
                gain = trial.log_likelihood - point.log_likelihood
            if gain >= 0.0:
                break
            damping *= 8.0
        if trial is None or gain < 0.0:
            break
        point, damping = trial, max(damping / 8.0, 1e-7)
        if gain < tol:
            break
    return replace(point.model, log_likelihood=point.log_likelihood)


def _solve(information, gradient, damping) -> np.ndarray:
    """Damped step; parameters that nothing depends on stay."""
    scale = np.sqrt(np.maximum(np.diagonal(information), 1e-12))
    matrix = information / np.outer(scale, scale)
    matrix[np.diag_indices_from(matrix)] += damping
    factor = cho_factor(matrix, lower=True, check_finite=False)
    return cho_solve(factor, gradient / scale, check_finite=False) / scale


def edge_gains(data: SemData, model: Sem, allowed) -> tuple[np.ndarray, np.ndarray]:
    """What edges gain at a maximum of the likelihood, without a refit.

    Score tests (Rao, 1948) of absent edges that are allowed, Wald tests of present
    ones. Returns gains and starting weights, (n_nodes, n_nodes).
    """
    point = data.point(model)
    shape = model.adjacency.shape
    gains, steps = np.zeros(shape), np.zeros(shape)
    if point is None:
        return gains, steps
    edges, _, information = point.parameters
    scale = np.sqrt(np.maximum(np.diagonal(information), 1e-12))
    matrix = information / np.outer(scale, scale)
    matrix[np.diag_indices_from(matrix)] += 1e-9
    inverse = np.linalg.inv(matrix) / np.outer(scale, scale)
    n_edges = len(edges[0])
    gains[edges] = model.weights[edges] ** 2 / (
        2.0 * np.maximum(np.diagonal(inverse)[:n_edges], 1e-300)
    )
    both, effects, mixed = point.products
    own = data.weight * (
        mixed * mixed.T + np.outer(np.diagonal(both), np.diagonal(effects))
    )
    rough = np.where(
        allowed & ~model.adjacency, point.gradient**2 / np.maximum(own, 1e-12), 0.0
    )
    rated = np.argsort(-rough, axis=None, kind="stable")[
        : min(MAX_RATED, np.count_nonzero(rough))
    ]
    absent = np.unravel_index(rated, shape)
    if len(rated):
        cross = np.hstack(
            [point.information(absent, edges), point.noise_information(absent)]
        )
        left = own[absent] - np.einsum("ij,ij->i", cross @ inverse, cross)
        known = left > IMITATED * own[absent]
        left = np.where(known, left, np.inf)
        gradient = point.gradient[absent]
        gains[absent] = gradient**2 / (2.0 * left)
        steps[absent] = gradient / left
    return gains, steps
