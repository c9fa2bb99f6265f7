"""Exact inference in linear networks with values missing, by missingness pattern.

Rows that miss the same values share one linear-algebra call. Patterns that only a few
rows have are stacked with others of the same size and solved in one batched call, so
data in which every row has a pattern of its own needs no loop over rows either.
Latents are nodes that every row misses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from ._statistics import LOG_2_PI, GaussianStatistics

# A pattern with this many rows is worth a call of its own.
OWN_CALL = 16
# Numbers held at a time.
CHUNK = 4_000_000


@dataclass(frozen=True)
class IncompleteData:
    """Data whose rows are grouped by which of their values are missing.

    Built once, used by every E-step. A pattern with more rows than observed features is
    kept as its weight, mean and scatter only.

    patterns: true where a value is observed, (n_patterns, n_features)
    values: rows, sorted by pattern; NaN is missing, (n_rows, n_features)
    sample_weight: row weights, (n_rows,)
    starts: where the rows of each pattern start, (n_patterns + 1,)
    order: place of each sorted row in the data that came, (n_rows,)
    """

    patterns: np.ndarray
    values: np.ndarray
    sample_weight: np.ndarray
    starts: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, X, sample_weight=None) -> IncompleteData:
        """Group the rows of `X`, in which NaN is missing."""
        X = np.asarray(X, dtype=float)
        observed = ~np.isnan(X)
        # Packed bits sort eight times as fast as the flags themselves.
        _, first, inverse = np.unique(
            np.packbits(observed, axis=1),
            axis=0,
            return_index=True,
            return_inverse=True,
        )
        order = np.argsort(inverse.ravel(), kind="stable")
        starts = np.searchsorted(inverse.ravel()[order], np.arange(len(first) + 1))
        if sample_weight is None:
            sample_weight = np.ones(len(X))
        weight = np.asarray(sample_weight, dtype=float)[order]
        return cls(observed[first], X[order], weight, starts, order)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.patterns.shape[1]

    @property
    def n_missing(self) -> int:
        """Number of missing values."""
        return int((~self.patterns).sum(axis=1) @ np.diff(self.starts))

    @cached_property
    def weight(self) -> float:
        """Sum of the row weights."""
        return float(self.sample_weight.sum())

    @cached_property
    def dense(self) -> np.ndarray:
        """Patterns that are kept as their statistics."""
        return np.diff(self.starts) > self.patterns.sum(axis=1) + 1

    @cached_property
    def summaries(self) -> dict[int, GaussianStatistics]:
        """Statistics of the observed features of dense patterns."""
        result = {}
        for index in np.flatnonzero(self.dense).tolist():
            rows = slice(self.starts[index], self.starts[index + 1])
            weight = self.sample_weight[rows]
            if weight.any():
                values = self.values[rows][:, self.patterns[index]]
                result[index] = GaussianStatistics.of(values, weight)
        return result

    @cached_property
    def others(self) -> IncompleteData:
        """The rows of all other patterns."""
        counts = np.diff(self.starts)
        rows = np.repeat(~self.dense, counts)
        return IncompleteData(
            self.patterns[~self.dense],
            self.values[rows],
            self.sample_weight[rows],
            np.append(0, np.cumsum(counts[~self.dense])),
            self.order[rows],
        )

    def batches(self, n_nodes: int) -> Iterator[np.ndarray]:
        """Patterns solved in one call: large ones alone, small ones by size."""
        counts = np.diff(self.starts)
        alone = counts >= OWN_CALL
        for index in np.flatnonzero(alone):
            yield np.array([index])
        n_observed = self.patterns.sum(axis=1)
        small = np.flatnonzero(~alone)
        for size in np.unique(n_observed[small]):
            batch = small[n_observed[small] == size]
            numbers = np.cumsum(counts[batch]) * max(n_nodes - size, size) ** 2
            yield from np.split(batch, np.flatnonzero(np.diff(numbers // CHUNK)) + 1)

    def rows_of(self, patterns) -> tuple[np.ndarray, np.ndarray]:
        """Sorted rows of some patterns, and the place of each row's pattern."""
        counts = self.starts[patterns + 1] - self.starts[patterns]
        place = np.repeat(np.arange(len(patterns)), counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.repeat(self.starts[patterns], counts)
        return rows + np.arange(len(place)) - first, place


class Joint:
    """Joint Gaussian of all nodes of a linear network.

    weights: ``[i, j]`` is the coefficient of node i in node j, (n_nodes, n_nodes)
    intercept: value of each node when its parents are zero, (n_nodes,)
    noise_variance: variance of each node given its parents, positive, (n_nodes,)
    """

    def __init__(self, weights, intercept, noise_variance):
        self.noise_variance = np.asarray(noise_variance, dtype=float)
        # x @ innovation = intercept + noise, so the precision needs no inverse.
        self.innovation = np.eye(len(self.noise_variance)) - weights
        self.mean = np.linalg.solve(self.innovation.T, np.asarray(intercept, float))
        self.log_det = float(np.log(self.noise_variance).sum())

    @classmethod
    def of_moments(cls, mean, covariance) -> Joint:
        """Joint with a given mean and (positive definite) covariance."""
        factor = np.linalg.cholesky(covariance)
        # Node j given those before it: a network in the order of the columns.
        inverse = solve_triangular(factor, np.eye(len(factor)), lower=True)
        scale = np.diagonal(factor)
        innovation = (inverse * scale[:, None]).T
        weights = np.eye(len(factor)) - innovation
        return cls(weights, np.asarray(mean) @ innovation, scale**2)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.mean)

    @cached_property
    def precision(self) -> np.ndarray:
        """Inverse of the covariance."""
        return (self.innovation / self.noise_variance) @ self.innovation.T

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance of the nodes."""
        effect = np.linalg.inv(self.innovation)
        return (effect.T * self.noise_variance) @ effect


@dataclass(frozen=True)
class _Solved:
    """Patterns that miss as many nodes, and how these are distributed given the rest.

    rows, place: rows of these patterns, and the place of each row's pattern
    missing, observed: nodes, (n_patterns, n_missing) and (n_patterns, n_observed)
    covariance: of the missing nodes given the others, (n_patterns, n_missing, same)
    log_det: of the covariance of the observed nodes, (n_patterns,)
    """

    rows: np.ndarray
    place: np.ndarray
    missing: np.ndarray
    observed: np.ndarray
    covariance: np.ndarray
    log_det: np.ndarray

    @classmethod
    def of(cls, joint: Joint, data: IncompleteData, patterns) -> _Solved:
        """Condition on what is observed: invert the missing part of the precision."""
        n, observed = len(patterns), data.patterns[patterns]
        known = np.pad(observed, [(0, 0), (0, joint.n_nodes - data.n_features)])
        missing = np.nonzero(~known)[1].reshape(n, -1)
        block = joint.precision[missing[:, :, None], missing[:, None, :]]
        # Noise variances may differ by many orders of magnitude: to a unit diagonal.
        scale = 1.0 / np.sqrt(np.diagonal(block, axis1=1, axis2=2))
        scaled = block * scale[:, :, None] * scale[:, None, :]
        inverse = np.linalg.inv(scaled)
        covariance = 0.5 * (inverse + inverse.transpose(0, 2, 1))
        covariance *= scale[:, :, None] * scale[:, None, :]
        log_det = np.linalg.slogdet(scaled)[1] - 2.0 * np.log(scale).sum(axis=1)
        seen = np.nonzero(known)[1].reshape(n, -1)
        # det of the observed covariance = det(covariance) * det(precision block), and
        # exactly 1 of rows that show nothing.
        log_det = (joint.log_det + log_det) * (seen.shape[1] > 0)
        return cls(*data.rows_of(patterns), missing, seen, covariance, log_det)

    def apply(self, vectors) -> np.ndarray:
        """Each row multiplied by the covariance of its pattern."""
        if len(self.covariance) == 1:
            return vectors @ self.covariance[0]
        return (self.covariance[self.place] @ vectors[:, :, None])[:, :, 0]


def _solve(joint: Joint, data: IncompleteData):
    """Expected deviations of all nodes from their mean.

    Returns deviation (n_rows, n_nodes), log_density (n_rows,), both of sorted rows, and
    the solved batches.
    """
    deviation = np.zeros((len(data.values), joint.n_nodes))
    values = data.values - joint.mean[: data.n_features]
    deviation[:, : data.n_features] = np.where(np.isnan(data.values), 0.0, values)
    # Products over all nodes are taken once for all rows; batches only differ in the
    # small blocks that they solve.
    pull = deviation @ joint.precision
    log_density = np.empty(len(deviation))
    solved = []
    for patterns in data.batches(joint.n_nodes):
        batch = _Solved.of(joint, data, patterns)
        places = batch.rows[:, None], batch.missing[batch.place]
        deviation[places] = -batch.apply(pull[places])
        constant = batch.log_det + batch.observed.shape[1] * LOG_2_PI
        log_density[batch.rows] = -0.5 * constant[batch.place]
        solved.append(batch)
    # A sum of squares, so that rounding cannot make the distance negative.
    noise = deviation @ joint.innovation
    log_density -= 0.5 * (noise**2 / joint.noise_variance).sum(axis=1)
    return deviation, log_density, solved


def expected_statistics(
    joint: Joint, data: IncompleteData
) -> tuple[GaussianStatistics, float]:
    """Expected sufficient statistics of all nodes given the data: the exact E-step."""
    n_nodes = joint.n_nodes
    total, gram = np.zeros(n_nodes), np.zeros((n_nodes, n_nodes))
    log_likelihood = 0.0
    for index, summary in data.summaries.items():
        batch = _Solved.of(joint, data, np.array([index]))
        log_likelihood += _add_summary(joint, batch, summary, total, gram)
    if not data.dense.all():
        weight = data.others.sample_weight
        deviation, log_density, solved = _solve(joint, data.others)
        log_likelihood += float(weight @ log_density)
        total += weight @ deviation
        gram += (deviation.T * weight) @ deviation
        for batch in solved:
            _add_covariances(gram, batch, weight[batch.rows])
    mean = total / data.weight
    scatter = gram - np.outer(total, mean)
    scatter = 0.5 * (scatter + scatter.T)
    statistics = GaussianStatistics(data.weight, joint.mean + mean, scatter)
    return statistics, log_likelihood


def _add_summary(joint, batch: _Solved, summary: GaussianStatistics, total, gram):
    """Add a pattern that is kept as its statistics; its log-likelihood."""
    observed, missing = batch.observed[0], batch.missing[0]
    covariance, weight = batch.covariance[0], summary.weight
    cross = joint.precision[np.ix_(missing, observed)]
    # From deviations of the observed nodes to expected ones of all nodes.
    gain = np.zeros((joint.n_nodes, len(observed)))
    gain[observed], gain[missing] = np.eye(len(observed)), -covariance @ cross
    deviation = summary.mean - joint.mean[observed]
    around = summary.scatter + weight * np.outer(deviation, deviation)
    moment = gain @ around @ gain.T
    total += weight * (gain @ deviation)
    gram += moment
    gram[np.ix_(missing, missing)] += weight * covariance
    constant = batch.log_det[0] + len(observed) * LOG_2_PI
    return -0.5 * (weight * constant + float((joint.precision * moment).sum()))


def _add_covariances(gram, batch: _Solved, weight):
    """Add the conditional covariances of the missing nodes of each pattern."""
    n_nodes = len(gram)
    values = batch.covariance * np.bincount(batch.place, weight)[:, None, None]
    place = batch.missing[:, :, None] * n_nodes + batch.missing[:, None, :]
    added = np.bincount(place.ravel(), values.ravel(), minlength=n_nodes**2)
    gram += added.reshape(n_nodes, n_nodes)


def condition(joint: Joint, X) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expected values of all nodes given each row, log-likelihoods, variances.

    X (n_samples, n_features) -> completed (n_samples, n_nodes), log_likelihood
    (n_samples,), variance (n_samples, n_nodes), 0 where nodes are observed.
    """
    data = IncompleteData.of(X)
    deviation, log_density, solved = _solve(joint, data)
    completed, log_likelihood = np.empty_like(deviation), np.empty_like(log_density)
    variance = np.empty_like(deviation)
    variance[data.order] = _variances(solved, deviation.shape)
    completed[data.order] = joint.mean + deviation
    log_likelihood[data.order] = log_density
    # What was observed stays as it is, to the last bit.
    known = np.pad(~np.isnan(X), [(0, 0), (0, joint.n_nodes - data.n_features)])
    completed[known] = np.asarray(X, dtype=float)[~np.isnan(X)]
    return completed, log_likelihood, variance


def _variances(solved, shape) -> np.ndarray:
    """Conditional variances of missing nodes, 0 of others."""
    variance = np.zeros(shape)
    for batch in solved:
        own = np.diagonal(batch.covariance, axis1=1, axis2=2)
        variance[batch.rows[:, None], batch.missing[batch.place]] = own[batch.place]
    return variance


def leave_one_out(joint: Joint, X) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each feature given the *other* observed values of its row.

    X (n_samples, n_features) -> mean, variance (n_samples, n_features).
    """
    data = IncompleteData.of(X)
    deviation, _, solved = _solve(joint, data)
    pull = deviation @ joint.precision
    variance = _variances(solved, deviation.shape)
    for batch in solved:
        # The diagonal of the inverse of the observed covariance.
        cross = joint.precision[batch.missing[:, :, None], batch.observed[:, None, :]]
        explained = np.einsum("pij,pij->pj", cross, batch.covariance @ cross)
        own = (np.diagonal(joint.precision)[batch.observed] - explained)[batch.place]
        places = batch.rows[:, None], batch.observed[batch.place]
        # Without value i in the condition its expectation moves by pull / own.
        deviation[places] -= pull[places] / own
        variance[places] = 1.0 / own
    moments = np.empty((2, *data.values.shape))
    moments[0, data.order] = (joint.mean + deviation)[:, : data.n_features]
    moments[1, data.order] = variance[:, : data.n_features]
    return moments[0], moments[1]
