"""Exact inference in a joint Gaussian with values missing, by missingness pattern.

Rows that miss the same values share one linear-algebra call. Patterns that only a few
rows have are stacked with others of the same size and solved in one batched call, so
data in which every row has a pattern of its own needs no loop over rows either.
Latents are nodes that every row misses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from .._statistics.incomplete import IncompleteData, batches, rows_of
from .._statistics.statistics import LOG_2_PI, GaussianStatistics

# Effect of a standard deviation of a node, in those of the noise of its children, from
# which squares lose digits that matter. Learned networks have at most 1e4.
STEEP = 1e6


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

    @cached_property
    def is_steep(self) -> bool:
        """Whether products of effects and noise would lose most of their digits."""
        deviation = np.sqrt(np.diagonal(self.covariance))
        effect = np.abs(self.innovation) * deviation[:, None]
        return bool((effect / np.sqrt(self.noise_variance)).max(initial=0.0) > STEEP)


@dataclass(frozen=True)
class _Batch:
    """Conditional distribution of the missing nodes of patterns of one size."""

    missing: np.ndarray  # (n_patterns, n_missing) nodes
    observed: np.ndarray  # (n_patterns, n_observed) nodes
    covariance: np.ndarray  # (n_patterns, n_missing, n_missing) of missing given rest
    log_det: np.ndarray  # (n_patterns,) of the covariance of the observed nodes
    inverse: np.ndarray | None  # of the observed covariance, where that is smaller
    # (n_patterns, n_nodes, n_missing), from noise to missing nodes, if joint is steep
    gain: np.ndarray | None = None


def _solve_steep(joint: Joint, missing, observed) -> _Batch:
    """Condition by least squares, which needs no products of large and tiny numbers.

    The missing nodes take the values that make the squared noise of all nodes least.
    """
    root = (joint.innovation / np.sqrt(joint.noise_variance))[missing]
    basis, factor = np.linalg.qr(root.transpose(0, 2, 1))
    inverse = np.linalg.inv(factor)
    diagonal = np.abs(np.diagonal(factor, axis1=1, axis2=2))
    log_det = joint.log_det + 2.0 * np.log(diagonal).sum(axis=1)
    covariance = inverse @ inverse.transpose(0, 2, 1)
    gain = basis @ inverse.transpose(0, 2, 1)
    return _Batch(missing, observed, covariance, log_det, None, gain)


def _solve_batch(joint: Joint, observed: np.ndarray, *, steep=False) -> _Batch:
    """Condition on the observed nodes, through the smaller of the two blocks."""
    n_patterns, n_features = observed.shape
    known = np.zeros((n_patterns, joint.n_nodes), dtype=bool)
    known[:, :n_features] = observed
    n_observed = int(known[0].sum())
    observed_nodes = np.nonzero(known)[1].reshape(n_patterns, n_observed)
    missing = np.nonzero(~known)[1].reshape(n_patterns, joint.n_nodes - n_observed)
    if steep:
        return _solve_steep(joint, missing, observed_nodes)
    if missing.shape[1] <= n_observed:
        block = joint.precision[missing[:, :, None], missing[:, None, :]]
        covariance, log_det = _inverse(block)
        # det of the observed covariance = det(covariance) * det(precision block)
        return _Batch(
            missing, observed_nodes, covariance, joint.log_det + log_det, None
        )
    block = joint.covariance[observed_nodes[:, :, None], observed_nodes[:, None, :]]
    inverse, log_det = _inverse(block)
    cross = joint.covariance[missing[:, :, None], observed_nodes[:, None, :]]
    covariance = joint.covariance[
        missing[:, :, None], missing[:, None, :]
    ] - cross @ inverse @ cross.transpose(0, 2, 1)
    return _Batch(missing, observed_nodes, covariance, log_det, inverse)


def _inverse(blocks):
    """Inverses and log-determinants of stacked positive definite matrices."""
    if blocks.shape[-1] == 0:
        return blocks, np.zeros(len(blocks))
    # Scaled to unit diagonal: noise variances may differ by many orders of magnitude.
    scale = 1.0 / np.sqrt(np.diagonal(blocks, axis1=1, axis2=2))
    scaled = blocks * scale[:, :, None] * scale[:, None, :]
    inverse = np.linalg.inv(scaled)
    inverse = 0.5 * (inverse + inverse.transpose(0, 2, 1))
    log_det = np.linalg.slogdet(scaled)[1] - 2.0 * np.log(scale).sum(axis=1)
    return inverse * scale[:, :, None] * scale[:, None, :], log_det


def _fill(joint: Joint, batch: _Batch, pattern, deviation, pull):
    """Fill in expected deviations of the missing nodes of some rows, in place.

    `deviation` holds zeros where nodes are missing, `pull` its product with the
    precision; `pattern` is the place of each row's pattern in the batch.
    """
    rows = np.arange(len(deviation))[:, None]
    missing = batch.missing[pattern]
    if batch.gain is not None:
        noise = deviation @ joint.innovation / np.sqrt(joint.noise_variance)
        expected = -np.einsum("rn,rnm->rm", noise, batch.gain[pattern])
    elif batch.inverse is None:
        expected = -_apply(
            batch.covariance, pattern, np.take_along_axis(pull, missing, axis=1)
        )
    else:
        observed = batch.observed[pattern]
        known = np.take_along_axis(deviation, observed, axis=1)
        weights = np.zeros_like(deviation)
        weights[rows, observed] = _apply(batch.inverse, pattern, known)
        expected = np.take_along_axis(weights @ joint.covariance, missing, axis=1)
    deviation[rows, missing] = expected


def _apply(matrices, pattern, vectors):
    """Multiply each row by the matrix of its pattern."""
    if len(matrices) == 1:
        return vectors @ matrices[0]
    return (matrices[pattern] @ vectors[:, :, None])[:, :, 0]


def _complete_rows(joint: Joint, data: IncompleteData, chosen, *, steep=False):
    """Expected deviations from the mean of all rows of the chosen patterns.

    Returns rows, deviation (n_rows, n_nodes), log_density (n_rows,), solved batches.
    """
    rows = np.flatnonzero(np.repeat(chosen, np.diff(data.starts)))
    position = np.full(len(data.values), -1)
    position[rows] = np.arange(len(rows))
    deviation = np.zeros((len(rows), joint.n_nodes))
    values = data.values[rows] - joint.mean[: data.n_features]
    deviation[:, : data.n_features] = np.nan_to_num(values, nan=0.0)
    # Products over all nodes are taken once for all rows; batches only differ in the
    # small blocks that they solve.
    pull = deviation @ joint.precision
    log_density = np.empty(len(rows))
    solved = []
    for patterns in batches(data, joint.n_nodes, chosen):
        batch = _solve_batch(joint, data.patterns[patterns], steep=steep)
        members, place = rows_of(data, patterns)
        members = position[members]
        part = deviation[members]
        _fill(joint, batch, place, part, pull[members])
        deviation[members] = part
        constant = batch.log_det + batch.observed.shape[1] * LOG_2_PI
        log_density[members] = -0.5 * constant[place]
        solved.append((patterns, batch, members, place))
    # A sum of squares, so that rounding cannot make the distance negative.
    noise = deviation @ joint.innovation
    log_density -= 0.5 * (noise**2 / joint.noise_variance).sum(axis=1)
    return rows, deviation, log_density, solved


def expected_statistics(
    joint: Joint, data: IncompleteData
) -> tuple[GaussianStatistics, float]:
    """Expected sufficient statistics of all nodes given the data: the exact E-step."""
    n_nodes = joint.n_nodes
    total = np.zeros(n_nodes)
    gram = np.zeros((n_nodes, n_nodes))
    log_likelihood = 0.0
    for index, summary in data.summaries.items():
        batch = _solve_batch(joint, data.patterns[[index]])
        log_likelihood += _add_summary(joint, batch, summary, total, gram)
    if not data.dense.all():
        rows, deviation, log_density, solved = _complete_rows(joint, data, ~data.dense)
        weight = data.sample_weight[rows]
        log_likelihood += float(weight @ log_density)
        total += weight @ deviation
        gram += (deviation.T * weight) @ deviation
        for _, batch, members, place in solved:
            _add_covariances(gram, batch, np.bincount(place, weight[members]))
    mean = total / data.weight
    scatter = gram - np.outer(total, mean)
    return (
        GaussianStatistics(data.weight, joint.mean + mean, 0.5 * (scatter + scatter.T)),
        log_likelihood,
    )


def _add_summary(joint, batch, summary, total, gram):
    """Add a pattern that is kept as its statistics; its log-likelihood."""
    weight, mean, scatter = summary
    observed, missing = batch.observed[0], batch.missing[0]
    covariance = batch.covariance[0]
    if batch.inverse is None:
        cross = joint.precision[np.ix_(missing, observed)]
        gain = -covariance @ cross
        inverse = joint.precision[np.ix_(observed, observed)] + cross.T @ gain
    else:
        inverse = batch.inverse[0]
        gain = joint.covariance[np.ix_(missing, observed)] @ inverse
    deviation = mean - joint.mean[observed]
    around = scatter + weight * np.outer(deviation, deviation)
    total[observed] += weight * deviation
    total[missing] += weight * (gain @ deviation)
    cross_moment = gain @ around
    gram[np.ix_(observed, observed)] += around
    gram[np.ix_(missing, observed)] += cross_moment
    gram[np.ix_(observed, missing)] += cross_moment.T
    gram[np.ix_(missing, missing)] += cross_moment @ gain.T + weight * covariance
    return -0.5 * (
        weight * (batch.log_det[0] + len(observed) * LOG_2_PI)
        + float(np.einsum("ij,ij->", inverse, around))
    )


def _add_covariances(gram, batch: _Batch, weight):
    """Add the conditional covariances of the missing nodes of each pattern."""
    n_nodes = len(gram)
    if len(weight) == 1:
        missing = batch.missing[0]
        gram[np.ix_(missing, missing)] += weight[0] * batch.covariance[0]
        return
    place = batch.missing[:, :, None] * n_nodes + batch.missing[:, None, :]
    values = batch.covariance * weight[:, None, None]
    added = np.bincount(place.ravel(), values.ravel(), minlength=n_nodes**2)
    gram += added.reshape(n_nodes, n_nodes)


def condition(joint: Joint, X) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expected values of all nodes given each row, log-likelihoods, variances.

    X (n_samples, n_features) -> completed (n_samples, n_nodes), log_likelihood
    (n_samples,), variance (n_samples, n_nodes), 0 where nodes are observed.
    """
    data = IncompleteData.of(X)
    everything = np.ones(len(data.patterns), dtype=bool)
    _, deviation, log_density, solved = _complete_rows(
        joint, data, everything, steep=joint.is_steep
    )
    completed = np.empty_like(deviation)
    log_likelihood = np.empty_like(log_density)
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
    for _, batch, members, place in solved:
        own = np.diagonal(batch.covariance, axis1=1, axis2=2)
        variance[members[:, None], batch.missing[place]] = own[place]
    return variance


def leave_one_out(joint: Joint, X) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each feature given the *other* observed values of its row.

    X (n_samples, n_features) -> mean, variance (n_samples, n_features).
    """
    data = IncompleteData.of(X)
    everything = np.ones(len(data.patterns), dtype=bool)
    _, deviation, _, solved = _complete_rows(joint, data, everything)
    pull = deviation @ joint.precision
    variance = _variances(solved, deviation.shape)
    for _, batch, members, place in solved:
        observed = batch.observed
        if batch.inverse is None:
            # The diagonal of the inverse of the observed covariance.
            cross = joint.precision[batch.missing[:, :, None], observed[:, None, :]]
            explained = np.einsum("pij,pij->pj", cross, batch.covariance @ cross)
            diagonal = np.diagonal(joint.precision)[observed] - explained
        else:
            diagonal = np.diagonal(batch.inverse, axis1=1, axis2=2)
        # Without value i in the condition its expectation moves by pull / diagonal.
        step = np.take_along_axis(pull[members], observed[place], axis=1)
        deviation[members[:, None], observed[place]] -= step / diagonal[place]
        variance[members[:, None], observed[place]] = 1.0 / diagonal[place]
    moments = np.empty((2, *data.values.shape))
    moments[:, data.order] = np.stack([joint.mean + deviation, variance])[
        :, :, : data.n_features
    ]
    return moments[0], moments[1]
