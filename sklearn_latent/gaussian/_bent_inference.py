"""Inference where links bend or noise is multiplicative: a mean field.

The posterior of the missing and latent values of a row is approximated by independent
normal distributions, one per value (Section 6 of Elidan et al., 2007). Expectations
under it are averages over a few points per row, which have exactly its means, variances
and zero covariances (Stroud, 1957). These points are rows of a complete table, so that
families are fitted and structures scored by the code for complete data, on the very
objective that inference improves: the bound never falls. For linear networks the
averages, and so the means, are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import hadamard
from scipy.special import logsumexp

from .._core.warn import warn
from ..exceptions import ApproximateInferenceWarning
from ._conditional import CHUNK
from ._densities import Densities

# Largest number of missing values of a row whose points are free of covariance.
MAX_SIGNS = 64
# Draws per row for the likelihood; half of them are mirror images of the others.
N_DRAWS = 256


def sign_points(n_missing: int) -> np.ndarray:
    """Points of mean zero, unit variance, no covariance and no odd moments."""
    if n_missing == 0:
        return np.zeros((1, 0))
    order = min(MAX_SIGNS, 1 << max(n_missing - 1, 0).bit_length())
    signs = hadamard(order)[:, np.arange(n_missing) % order].astype(float)
    return np.vstack([signs, -signs])


def derivatives(network: Densities, points, missing):
    """Gradient of the log-density by the missing values, and its expected curvature.

    points (n_rows, n_points, n_nodes), missing (n_rows, n_missing) -> gradient (n_rows,
    n_points, n_missing), metric (n_rows, n_points, n_missing, n_missing).
    """
    nodes, variance = np.arange(network.n_nodes), network.noise_variance
    eta = points @ network.weights
    mean = network._family_means(eta, nodes)
    score, own_gradient, information = (
        network._by_noise(what, mean, nodes)
        for what in (
            lambda noise, g: noise.score(points, g, variance),
            lambda noise, g: noise.slope(points, g, variance),
            lambda noise, g: noise.information(g, variance),
        )
    )
    bend = np.ones_like(eta)
    if network.link_parameters is not None:
        bend = network._link.derivative(eta, network.link_parameters)
    bend = np.where(network.adjacency.any(axis=0), bend, 0.0)
    # [row, point, missing, node]: effect of the missing value on the mean of the node.
    effect = bend[:, :, None, :] * network.weights[missing][:, None]
    gradient = np.einsum("rpdn,rpn->rpd", effect, score)
    gradient += _at(missing, own_gradient)
    place = np.broadcast_to(missing[:, None, :, None], (*gradient.shape, 1))
    residual = np.take_along_axis(effect, place, 3) - 1.0
    np.put_along_axis(effect, place, residual, 3)
    metric = (effect * information[:, :, None]) @ effect.transpose(0, 1, 3, 2)
    return gradient, metric


def _at(missing, values) -> np.ndarray:
    """Values of the missing nodes; values (n_rows, n_points, n_nodes)."""
    shape = (*values.shape[:2], missing.shape[1])
    return np.take_along_axis(values, np.broadcast_to(missing[:, None], shape), 2)


@dataclass(eq=False)
class _Group:
    """Rows with the same number of missing values.

    rows: their numbers
    values: NaN is missing, (n_rows, n_nodes)
    missing: nodes, (n_rows, n_missing)
    mean, deviation: of missing values, or of their logarithms, (n_rows, n_missing)
    """

    rows: np.ndarray
    values: np.ndarray
    missing: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    positive: bool

    def some(self, which) -> _Group:
        """Some of the rows, as a group of their own."""
        return _Group(
            self.rows[which],
            self.values[which],
            self.missing[which],
            self.mean[which],
            self.deviation[which],
            self.positive,
        )

    @property
    def points(self) -> np.ndarray:
        """Points of the rows, (n_rows, n_points, n_nodes)."""
        signs = sign_points(self.missing.shape[1])
        return self.filled(self.mean[:, None] + self.deviation[:, None] * signs)

    def filled(self, missing) -> np.ndarray:
        """Rows with several choices of their missing values, or of the logarithms.

        missing (n_rows, n_choices, n_missing) -> values (n_rows, n_choices, n_nodes).
        """
        values = np.repeat(self.values[:, None], missing.shape[1], axis=1)
        if self.positive:
            missing = np.exp(np.clip(missing, -300.0, 300.0))
        place = np.broadcast_to(self.missing[:, None], missing.shape)
        np.put_along_axis(values, place, missing, 2)
        return values

    def bound(self, network: Densities) -> np.ndarray:
        """Expected log-density plus the entropy of the posterior."""
        with np.errstate(over="ignore", invalid="ignore"):
            density = network._family_log_likelihoods(self.points).sum(axis=2)
        entropy = np.log(self.deviation) + 0.5 * np.log(2 * np.pi * np.e)
        entropy += self.mean * self.positive
        bound = density.mean(axis=1) + entropy.sum(axis=1)
        return np.nan_to_num(bound, nan=-np.inf, neginf=-np.inf)

    def improve(self, network: Densities, max_steps: int, tol: float) -> np.ndarray:
        """Raise the bound of each row as far as it goes."""
        bound = self.bound(network)
        active = np.arange(len(self.rows) if self.missing.shape[1] else 0)
        for _ in range(max_steps):
            if not len(active):
                break
            part = self.some(active)
            step, ratio, promise, _ = part.newton(network)
            left = np.flatnonzero(promise > tol)
            gain = part.advance(network, left, bound[active], step, ratio)
            self.mean[active], self.deviation[active] = part.mean, part.deviation
            bound[active] += gain
            active = active[gain > tol]
        return bound

    def advance(self, network: Densities, left, bound, step, ratio) -> np.ndarray:
        """Take some steps if they raise the bounds, halved until they do; gains."""
        gain = np.zeros(len(bound))
        for halving in range(8):
            trial = self.some(left)
            share = 0.5**halving
            trial.mean = trial.mean + share * step[left]
            trial.deviation = trial.deviation * np.exp(share * ratio[left])
            found = trial.bound(network) - bound[left]
            better = found > 0.0
            rows = left[better]
            self.mean[rows] = trial.mean[better]
            self.deviation[rows] = trial.deviation[better]
            gain[rows], left = found[better], left[~better]
            if not len(left):
                break
        return gain

    def newton(self, network: Densities):
        """Newton's steps, logs of ratios of deviations, expected gains, the metric."""
        points = self.points
        gradient, metric = derivatives(network, points, self.missing)
        if self.positive:
            z = _at(self.missing, points)
            gradient = gradient * z + 1.0
            metric = metric * z[..., :, None] * z[..., None, :]
            # The log has a curvature of its own; a floor keeps the steps in bounds.
            metric = metric + np.eye(z.shape[2])
        gradient, metric = gradient.mean(axis=1), metric.mean(axis=1)
        own = np.diagonal(metric, axis1=1, axis2=2)
        metric = metric + 1e-10 * own[..., None] * np.eye(own.shape[1])
        step = np.linalg.solve(metric, gradient[..., None])[..., 0]
        ratio = -0.5 * np.log(np.maximum(own, 1e-300)) - np.log(self.deviation)
        promise = 0.5 * (step * gradient).sum(axis=1) + (ratio**2).sum(axis=1)
        return step, np.clip(ratio, -3.0, 3.0), promise, metric

    def log_likelihood(self, network: Densities) -> np.ndarray:
        """By importance sampling around the means, with the metric as precision."""
        n_missing = self.missing.shape[1]
        if n_missing == 0:
            return self.bound(network)
        half = np.random.RandomState(0).standard_normal((N_DRAWS // 2, n_missing))
        draws = np.vstack([half, -half])
        factor = np.linalg.cholesky(self.newton(network)[3])
        spread = np.linalg.solve(factor.transpose(0, 2, 1), draws.T[None])
        spread = spread.transpose(0, 2, 1)
        chosen = self.mean[:, None] + spread
        with np.errstate(over="ignore", invalid="ignore"):
            density = network._family_log_likelihoods(self.filled(chosen)).sum(axis=2)
        density += chosen.sum(axis=2) * self.positive
        log_draw = -0.5 * ((draws**2).sum(axis=1) + n_missing * np.log(2 * np.pi))
        ratio = np.nan_to_num(density - log_draw, nan=-np.inf, neginf=-np.inf)
        scale = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        return logsumexp(ratio, axis=1) - np.log(N_DRAWS) - scale


class MeanField:
    """Independent normal distributions for the missing values of some rows.

    positive: whether values are, as with noise in proportion to the mean; distributions
        are log-normal then
    """

    def __init__(self, X, n_nodes: int, *, positive: bool):
        self.values = np.full((len(X), n_nodes), np.nan)
        self.values[:, : X.shape[1]] = X
        self.positive = positive
        self.groups: list[_Group] = []
        gaps = np.isnan(self.values)
        count = gaps.sum(axis=1)
        for size in np.unique(count).tolist():
            of_size = np.flatnonzero(count == size)
            step = max(1, CHUNK // max(1, size * (size + n_nodes), N_DRAWS * n_nodes))
            for rows in np.split(of_size, range(step, len(of_size), step)):
                missing = np.nonzero(gaps[rows])[1].reshape(len(rows), size)
                nothing = np.zeros((len(rows), size))
                own = rows, self.values[rows], missing, nothing, nothing + 1.0
                self.groups.append(_Group(*own, positive))

    def start(self, completed, deviation):
        """Begin with given values.

        completed (n_samples, n_nodes), deviation (n_nodes,) or (n_samples, n_nodes).
        """
        deviation = np.broadcast_to(deviation, completed.shape)
        for group in self.groups:
            places = group.rows[:, None], group.missing
            mean, spread = completed[places], deviation[places]
            if self.positive:
                mean = np.maximum(mean, 1e-3 * (np.abs(mean) + spread) + 1e-12)
                spread = np.minimum(spread / mean, 1.0)
                mean = np.log(mean)
            group.mean, group.deviation = mean, np.maximum(spread, 1e-12)

    def start_forward(self, network: Densities):
        """Begin with what the parents say, in topological order."""
        completed = self.values.copy()
        for node in network.topological_order.tolist():
            gap = np.isnan(completed[:, node])
            own = np.array([node])
            eta = np.nan_to_num(completed[gap] @ network.weights[:, own])
            completed[gap, node] = network._family_means(eta, own)[:, 0]
        self.start(completed, network._spread(completed))

    def expectation(self) -> np.ndarray:
        """Expected values of all nodes."""
        completed = self.values.copy()
        for group in self.groups:
            mean = group.mean
            if self.positive:
                mean = np.exp(mean + 0.5 * np.minimum(group.deviation**2, 4.0))
            completed[group.rows[:, None], group.missing] = mean
        return completed

    def variance(self) -> np.ndarray:
        """Variances of missing values, 0 of others; of normal distributions only."""
        variance = np.zeros(self.values.shape)
        for group in self.groups:
            variance[group.rows[:, None], group.missing] = group.deviation**2
        return variance

    def table(self, sample_weight) -> tuple[np.ndarray, np.ndarray]:
        """The points of all rows as a complete table with weights.

        sample_weight (n_samples,) -> X (n_points, n_nodes), weight (n_points,).
        """
        weight = np.ones(len(self.values)) if sample_weight is None else sample_weight
        points = [group.points for group in self.groups]
        weights = [
            np.repeat(weight[group.rows] / own.shape[1], own.shape[1])
            for group, own in zip(self.groups, points, strict=True)
        ]
        tables = [own.reshape(-1, own.shape[2]) for own in points]
        return np.vstack(tables), np.concatenate(weights)

    def _each(self, what) -> np.ndarray:
        """A number for each row, group by group."""
        result = np.empty(len(self.values))
        for group in self.groups:
            result[group.rows] = what(group)
        return result

    def bound(self, network: Densities) -> np.ndarray:
        """Bound of the log-likelihood of each row."""
        return self._each(lambda group: group.bound(network))

    def improve(self, network: Densities, *, max_steps=100, tol=1e-7) -> np.ndarray:
        """Raise the bound of each row as far as it goes."""
        return self._each(lambda group: group.improve(network, max_steps, tol))

    def log_likelihood(self, network: Densities) -> np.ndarray:
        """Log-likelihood of each row, an estimate where values are missing."""
        return self._each(lambda group: group.log_likelihood(network))


def infer(network: Densities, X) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expected values, log-likelihoods, variances of rows with missing values."""
    field, bound = _improved(network, X)
    if np.isnan(field.values).any():
        warn(
            "values are missing or latent and the network is not linear, so their "
            "expectations are approximate: mean field, and importance sampling for "
            "the likelihood.",
            ApproximateInferenceWarning,
        )
        bound = np.maximum(bound, field.log_likelihood(network))
    return field.expectation(), bound, field.variance()


def expect(network: Densities, X) -> np.ndarray:
    """Expected values alone, without a warning."""
    return _improved(network, X)[0].expectation()


def _improved(network: Densities, X) -> tuple[MeanField, np.ndarray]:
    """The mean field of rows, and its bounds of their log-likelihoods."""
    X = np.asarray(X, dtype=float)
    field = MeanField(X, network.n_nodes, positive=network._noise.positive)
    field.start_forward(network)
    return field, field.improve(network)


def expect_each(network: Densities, X) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each feature given the others of its row."""
    mean, variance = np.empty(X.shape), np.empty(X.shape)
    for feature in range(X.shape[1]):
        hidden = X.copy()
        hidden[:, feature] = np.nan
        field, _ = _improved(network, hidden)
        mean[:, feature] = field.expectation()[:, feature]
        variance[:, feature] = field.variance()[:, feature]
    return mean, variance
