"""Linear networks with latents, fitted to the covariance of the features.

Latents are integrated out, so that the cost does not depend on the number of rows, and
edges are rated by the likelihood of the features alone: what latents are expected to be
under one structure says little about another.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ._gaussian_network import GaussianNetwork
from ._statistics import LOG_2_PI, NOISE_SHARE, GaussianStatistics

# An edge whose effect the parameters can imitate to this share cannot be told.
IMITATED = 1e-4
# Absent edges that are rated in full; the others have smaller gradients.
MAX_RATED = 4000


class Point:
    """A network, its likelihood, the gradient of that and its expected information.

    With ``x = x W + e``, ``effect = inv(I - W)`` and K the precision of the features,
    the derivative of their covariance by the weight of i in j is
    ``outer(covariance[i], effect[j])`` and its transpose (Bollen, 1989, appendix 4B).

    given: statistics of the features, in standard units. Their mean is free
    network: the noise of its latents has variance 1, which fixes their scale
    """

    def __init__(self, given: GaussianStatistics, network: GaussianNetwork):
        n = network.n_features
        self.given, self.network = given, network
        self.observed = given.covariance
        self.effect = np.linalg.inv(np.eye(len(network.weights)) - network.weights)
        self.covariance = (self.effect.T * network.noise_variance) @ self.effect
        self.log_likelihood = -np.inf
        try:
            factor = cho_factor(self.covariance[:n, :n], lower=True)
        except np.linalg.LinAlgError:
            return
        self.precision = cho_solve(factor, np.eye(n))
        fit = np.einsum("ij,ij->", self.precision, self.observed)
        log_det = 2.0 * np.log(np.diagonal(factor[0])).sum()
        total = float(-0.5 * given.weight * (fit + log_det + n * LOG_2_PI))
        if np.isfinite(total):
            self.log_likelihood = total

    @property
    def is_valid(self) -> bool:
        """Whether the network has a likelihood."""
        return self.log_likelihood > -np.inf

    @cached_property
    def pull(self) -> np.ndarray:
        """Gradient by the covariance of the features, times 2 / weight."""
        return self.precision @ self.observed @ self.precision - self.precision

    @cached_property
    def gradient(self) -> np.ndarray:
        """Gradient by all weights, present or not, (n_nodes, n_nodes)."""
        n = self.network.n_features
        pulled = self.covariance[:, :n] @ self.pull
        return self.given.weight * pulled @ self.effect[:, :n].T

    @cached_property
    def products(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Products of covariances and effects in units of the precision."""
        n = self.network.n_features
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
        return self.given.weight * (crossed + direct)

    def noise_information(self, edges) -> np.ndarray:
        """Expected information of weights and log noise variances."""
        _, effects, mixed = self.products
        n = self.network.n_features
        noise = self.network.noise_variance[:n]
        i, j = edges
        return self.given.weight * mixed[i, :n] * effects[j, :n] * noise

    @cached_property
    def parameters(self) -> tuple[tuple, np.ndarray, np.ndarray]:
        """Edges, gradient and information of weights and log noise variances."""
        n = self.network.n_features
        edges = np.nonzero(self.network.adjacency)
        noise = self.network.noise_variance[:n]
        effects = self.products[1][:n, :n]
        effect = self.effect[:, :n]
        slope = np.einsum("ij,ij->i", effect[:n] @ self.pull, effect[:n])
        gradient = np.append(
            self.gradient[edges], 0.5 * self.given.weight * noise * slope
        )
        cross = self.noise_information(edges)
        own = 0.5 * self.given.weight * effects**2 * np.outer(noise, noise)
        information = np.block(
            [[self.information(edges, edges), cross], [cross.T, own]]
        )
        return edges, gradient, information

    def moved(self, step) -> Point:
        """The point of other parameters."""
        network, n = self.network, self.network.n_features
        edges = self.parameters[0]
        n_edges = len(edges[0])
        weights, noise = network.weights.copy(), network.noise_variance.copy()
        weights[edges] += step[:n_edges]
        noise[:n] *= np.exp(np.clip(step[n_edges:], -3.0, 3.0))
        noise = np.maximum(noise, NOISE_SHARE)
        own = network.adjacency, weights, network.intercept, noise, network.n_latents
        return Point(self.given, GaussianNetwork._linear(*own))

    @cached_property
    def statistics(self) -> GaussianStatistics:
        """What is expected of features and latents, as in an E-step."""
        n = self.network.n_features
        gain = self.covariance[n:, :n] @ self.precision
        cross = gain @ self.observed
        left = self.covariance[n:, n:] - gain @ self.covariance[:n, n:]
        latent = left + cross @ gain.T
        full = np.block([[self.observed, cross.T], [cross, latent]])
        weight = self.given.weight
        return GaussianStatistics(weight, np.zeros(len(full)), weight * full)


def fit_point(
    given: GaussianStatistics, start: GaussianNetwork, *, tol=5e-3, max_iter=20
) -> Point:
    """Maximise the likelihood by damped Fisher scoring; it never falls."""
    point = Point(given, start)
    damping = 1e-3
    for _ in range(max_iter if point.is_valid else 0):
        _, gradient, information = point.parameters
        gain = -np.inf
        while damping < 1e6:
            try:
                trial = point.moved(_solve(information, gradient, damping))
                gain = trial.log_likelihood - point.log_likelihood
            except np.linalg.LinAlgError:
                gain = -np.inf
            if gain >= 0.0:
                break
            damping *= 8.0
        if gain < 0.0:
            break
        point, damping = trial, max(damping / 8.0, 1e-7)
        if gain < tol:
            break
    return point


def _solve(information, gradient, damping) -> np.ndarray:
    """Damped step; parameters that nothing depends on stay."""
    scale = np.sqrt(np.maximum(np.diagonal(information), 1e-12))
    matrix = information / np.outer(scale, scale)
    matrix[np.diag_indices_from(matrix)] += damping
    factor = cho_factor(matrix, lower=True, check_finite=False)
    return cho_solve(factor, gradient / scale, check_finite=False) / scale


def edge_gains(point: Point, allowed) -> tuple[np.ndarray, np.ndarray]:
    """What edges gain at a maximum of the likelihood, without a refit.

    Score tests (Rao, 1948) of absent edges that are allowed, Wald tests of present
    ones. Returns gains and starting weights, (n_nodes, n_nodes).
    """
    network = point.network
    shape = network.adjacency.shape
    gains, steps = np.zeros(shape), np.zeros(shape)
    if not point.is_valid:
        return gains, steps
    edges, _, information = point.parameters
    scale = np.sqrt(np.maximum(np.diagonal(information), 1e-12))
    matrix = information / np.outer(scale, scale)
    matrix[np.diag_indices_from(matrix)] += 1e-9
    inverse = np.linalg.inv(matrix) / np.outer(scale, scale)
    variance = np.maximum(np.diagonal(inverse)[: len(edges[0])], 1e-300)
    gains[edges] = network.weights[edges] ** 2 / (2.0 * variance)
    both, effects, mixed = point.products
    own = mixed * mixed.T + np.outer(np.diagonal(both), np.diagonal(effects))
    own = point.given.weight * own
    rough = point.gradient**2 / np.maximum(own, 1e-12)
    rough = np.where(allowed & ~network.adjacency, rough, 0.0)
    n_rated = min(MAX_RATED, np.count_nonzero(rough))
    if not n_rated:
        return gains, steps
    rated = np.argsort(-rough, axis=None, kind="stable")[:n_rated]
    absent = np.unravel_index(rated, shape)
    cross = np.hstack(
        [point.information(absent, edges), point.noise_information(absent)]
    )
    left = own[absent] - np.einsum("ij,ij->i", cross @ inverse, cross)
    left = np.where(left > IMITATED * own[absent], left, np.inf)
    gradient = point.gradient[absent]
    gains[absent] = gradient**2 / (2.0 * left)
    steps[absent] = gradient / left
    return gains, steps
