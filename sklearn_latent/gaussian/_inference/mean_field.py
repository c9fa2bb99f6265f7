"""Missing and latent values of networks that are not jointly Gaussian.

The posterior of the missing values of a row is approximated by independent normal
distributions, one per value (Section 6 of Elidan et al., 2007). Expectations under it
are averages over a few points per row, which have exactly its means, variances and zero
covariances (Stroud, 1957). These points are rows of a complete table, so that families
are fitted and structures scored by the code for complete data, on the very objective
that inference improves: the bound never falls. For linear networks the averages, and so
the means, are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import hadamard
from scipy.special import logsumexp

from ..._core.warn import warn
from ...exceptions import ApproximateInferenceWarning
from .._conditional import CHUNK
from .._densities import Densities

# Largest number of missing values of a row whose points are free of covariance.
MAX_SIGNS = 64
# Steps of the ascent for one row, and the gain in nats at which it stops.
MAX_STEPS = 100
TOLERANCE = 1e-7
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
    noise = network._noise
    eta = points @ network.weights
    nodes = np.arange(network.n_nodes)
    mean = network._family_means(eta, nodes)
    has_parents = network.adjacency.any(axis=0)
    variance = network.noise_variance
    score = noise.root.score(points, mean, variance)
    own_gradient = -score
    information = noise.root.information(mean, variance)
    if noise.positive:
        clipped = noise.clip(mean)
        size = 1e-5 * np.maximum(np.abs(points), 1e-12)
        slope = (
            noise.log_density(points + size, clipped, variance)
            - noise.log_density(points - size, clipped, variance)
        ) / (2.0 * size)
        own_gradient = np.where(has_parents, slope, own_gradient)
        score = np.where(has_parents, noise.score(points, clipped, variance), score)
        information = np.where(
            has_parents, noise.information(clipped, variance), information
        )
    if network.link_parameters is None:
        bend = np.ones_like(eta)
    else:
        bend = network._link.derivative(eta, network.link_parameters)
    bend = np.where(has_parents, bend, 0.0)
    # [row, missing, node]: weight of the missing value in each family.
    weights = network.weights[missing]
    effect = bend[:, :, None, :] * weights[:, None]
    gradient = np.einsum("rpdn,rpn->rpd", effect, score)
    gradient += np.take_along_axis(
        own_gradient, np.broadcast_to(missing[:, None], gradient.shape), 2
    )
    place = np.broadcast_to(missing[:, None, :, None], (*gradient.shape, 1))
    residual = np.take_along_axis(effect, place, 3) - 1.0
    np.put_along_axis(effect, place, residual, 3)
    metric = (effect * information[:, :, None]) @ effect.transpose(0, 1, 3, 2)
    return gradient, metric


@dataclass(eq=False)
class _Group:
    """Rows with the same number of missing values."""

    rows: np.ndarray  # (n_rows,)
    missing: np.ndarray  # (n_rows, n_missing) nodes
    points: np.ndarray  # (n_points, n_missing)
    mean: np.ndarray  # (n_rows, n_missing), of the value or of its logarithm
    deviation: np.ndarray  # (n_rows, n_missing)

    def some(self, which) -> _Group:
        """Some of the rows, as a group of their own."""
        return _Group(
            self.rows[which],
            self.missing[which],
            self.points,
            self.mean[which],
            self.deviation[which],
        )


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
        for size in np.unique(count):
            rows = np.flatnonzero(count == size)
            missing = np.nonzero(gaps[rows])[1].reshape(len(rows), size)
            step = max(1, CHUNK // max(1, size * (size + n_nodes)))
            for first in range(0, len(rows), step):
                part = slice(first, first + step)
                nothing = np.zeros((len(rows[part]), size))
                self.groups.append(
                    _Group(
                        rows[part],
                        missing[part],
                        sign_points(int(size)),
                        nothing,
                        nothing + 1.0,
                    )
                )

    def start(self, completed, deviation):
        """Begin with given values.

        completed (n_samples, n_nodes), deviation (n_nodes,) or (n_samples, n_nodes).
        """
        deviation = np.broadcast_to(deviation, completed.shape)
        for group in self.groups:
            mean = np.take_along_axis(completed[group.rows], group.missing, axis=1)
            spread = np.take_along_axis(deviation[group.rows], group.missing, axis=1)
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
            if gap.any():
                own = np.array([node])
                eta = completed[gap] @ network.weights[:, own]
                completed[gap, node] = network._family_means(np.nan_to_num(eta), own)[
                    :, 0
                ]
        spread = np.sqrt(network.noise_variance)
        if self.positive:
            has_parents = network.adjacency.any(axis=0)
            spread = np.where(has_parents, spread * np.abs(completed), spread)
        self.start(completed, spread)

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
        tables, weights = [], []
        for group in self.groups:
            points = self._points(group, group.mean, group.deviation)
            own = np.ones(len(group.rows))
            if sample_weight is not None:
                own = np.asarray(sample_weight, dtype=float)[group.rows]
            tables.append(points.reshape(-1, points.shape[2]))
            weights.append(np.repeat(own / points.shape[1], points.shape[1]))
        return np.vstack(tables), np.concatenate(weights)

    def _points(self, group: _Group, mean, deviation) -> np.ndarray:
        """Points of the rows of a group, (n_rows, n_points, n_nodes)."""
        return self.completed(group, mean[:, None] + deviation[:, None] * group.points)

    def completed(self, group: _Group, missing) -> np.ndarray:
        """Rows with several choices of their missing values, or of the logarithms.

        missing (n_rows, n_choices, n_missing) -> values (n_rows, n_choices, n_nodes).
        """
        values = np.repeat(self.values[group.rows][:, None], missing.shape[1], axis=1)
        if self.positive:
            missing = np.exp(np.clip(missing, -300.0, 300.0))
        place = np.broadcast_to(group.missing[:, None], missing.shape)
        np.put_along_axis(values, place, missing, 2)
        return values

    def bound(self, network: Densities) -> np.ndarray:
        """Bound of each row: expected log-density plus the entropy of the posterior."""
        result = np.empty(len(self.values))
        for group in self.groups:
            result[group.rows] = self._group_bound(
                network, group, group.mean, group.deviation
            )
        return result

    def _group_bound(self, network, group, mean, deviation) -> np.ndarray:
        points = self._points(group, mean, deviation)
        with np.errstate(over="ignore", invalid="ignore"):
            density = network._family_log_likelihoods(points).sum(axis=2).mean(axis=1)
        entropy = (np.log(deviation) + 0.5 * np.log(2 * np.pi * np.e)).sum(axis=1)
        if self.positive:
            entropy += mean.sum(axis=1)
        return np.nan_to_num(density + entropy, nan=-np.inf, neginf=-np.inf)

    def improve(
        self, network: Densities, *, max_steps=MAX_STEPS, tol=TOLERANCE
    ) -> np.ndarray:
        """Raise the bound of each row as far as it goes."""
        result = np.empty(len(self.values))
        for group in self.groups:
            result[group.rows] = self._improve_group(network, group, max_steps, tol)
        return result

    def _improve_group(self, network, group: _Group, max_steps, tol):
        bound = self._group_bound(network, group, group.mean, group.deviation)
        if group.missing.shape[1] == 0:
            return bound
        active = np.arange(len(group.rows))
        for _ in range(max_steps):
            part = group.some(active)
            step, ratio, promise, _ = self._newton(network, part)
            gain = np.zeros(len(active))
            going = np.flatnonzero(promise > tol)
            gain[going] = self._line_search(
                network, part, going, bound[active[going]], step, ratio
            )
            group.mean[active], group.deviation[active] = part.mean, part.deviation
            bound[active] += gain
            active = active[gain > tol]
            if not len(active):
                break
        return bound

    def _line_search(self, network, part: _Group, left, bound, step, ratio):
        """Steps of some rows that raise their bounds, halved until they do; gains."""
        gain = np.zeros(len(bound))
        open_ = np.arange(len(left))
        for halving in range(8):
            share = 0.5**halving
            rows = left[open_]
            mean = part.mean[rows] + share * step[rows]
            width = part.deviation[rows] * np.exp(share * ratio[rows])
            found = self._group_bound(network, part.some(rows), mean, width)
            found -= bound[open_]
            better = found > 0.0
            part.mean[rows[better]] = mean[better]
            part.deviation[rows[better]] = width[better]
            gain[open_[better]] = found[better]
            open_ = open_[~better]
            if not len(open_):
                break
        return gain

    def _newton(self, network: Densities, group: _Group):
        """Step by Gauss and Newton.

        Returns step, ratio (n_rows, n_missing), promise (n_rows,), metric (n_rows,
        n_missing, n_missing).
        """
        points = self._points(group, group.mean, group.deviation)
        gradient, metric = derivatives(network, points, group.missing)
        if self.positive:
            z = np.take_along_axis(
                points, np.broadcast_to(group.missing[:, None], gradient.shape), 2
            )
            gradient = gradient * z + 1.0
            metric = metric * z[..., :, None] * z[..., None, :]
            # The log has a curvature of its own; a floor keeps the steps in bounds.
            metric = metric + np.eye(z.shape[2])
        gradient, metric = gradient.mean(axis=1), metric.mean(axis=1)
        own = np.diagonal(metric, axis1=1, axis2=2)
        step = np.linalg.solve(
            metric + 1e-12 * own[..., None] * np.eye(own.shape[1]), gradient[..., None]
        )[..., 0]
        ratio = -0.5 * np.log(np.maximum(own, 1e-300)) - np.log(group.deviation)
        promise = 0.5 * (step * gradient).sum(axis=1) + (ratio**2).sum(axis=1)
        return step, np.clip(ratio, -3.0, 3.0), promise, metric


def infer(network: Densities, X) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expected values, log-likelihoods, variances of rows with missing values."""
    field, bound = _improved(network, X)
    if any(group.missing.shape[1] for group in field.groups):
        warn(
            "values are missing or latent and the network is not linear, so their "
            "expectations are approximate: mean field, and importance sampling for "
            "the likelihood.",
            ApproximateInferenceWarning,
        )
    log_likelihood = bound.copy()
    for group in field.groups:
        if group.missing.shape[1]:
            log_likelihood[group.rows] = np.maximum(
                bound[group.rows], _importance(field, network, group)
            )
    return field.expectation(), log_likelihood, field.variance()


def expect(network: Densities, X) -> np.ndarray:
    """Expected values alone, without a warning."""
    return _improved(network, X)[0].expectation()


def _improved(network: Densities, X) -> tuple[MeanField, np.ndarray]:
    """The mean field of rows, and its bounds of their log-likelihoods."""
    X = np.asarray(X, dtype=float)
    field = MeanField(X, network.n_nodes, positive=network._noise.positive)
    field.start_forward(network)
    return field, field.improve(network)


def _importance(field: MeanField, network, group: _Group) -> np.ndarray:
    """Log-likelihood of the rows of a group by importance sampling."""
    n_missing = group.missing.shape[1]
    half = np.random.RandomState(0).standard_normal((N_DRAWS // 2, n_missing))
    draws = np.vstack([half, -half])
    result = np.empty(len(group.rows))
    step = max(1, CHUNK // (N_DRAWS * network.n_nodes))
    for first in range(0, len(group.rows), step):
        part = slice(first, first + step)
        rows = group.some(part)
        *_, metric = field._newton(network, rows)
        own = np.diagonal(metric, axis1=1, axis2=2)
        metric = metric + 1e-10 * own[..., None] * np.eye(n_missing)
        factor = np.linalg.cholesky(metric)
        # A normal distribution whose precision is the metric.
        spread = np.linalg.solve(
            factor.transpose(0, 2, 1),
            np.broadcast_to(draws.T, (len(own), *draws.T.shape)),
        ).transpose(0, 2, 1)
        log_scale = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        log_draw = -0.5 * ((draws**2).sum(axis=1) + n_missing * np.log(2 * np.pi))
        values = field.completed(rows, rows.mean[:, None] + spread)
        with np.errstate(over="ignore", invalid="ignore"):
            density = network._family_log_likelihoods(values).sum(axis=2)
        if field.positive:
            density += (rows.mean[:, None] + spread).sum(axis=2)
        ratio = np.nan_to_num(density - log_draw, nan=-np.inf, neginf=-np.inf)
        result[part] = logsumexp(ratio, axis=1) - np.log(N_DRAWS) - log_scale
    return result
