"""EM for the classes of rows: one graph, parameters of each class of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from ..._core.climb import climb
from .._conditional import IncompleteData, Joint, condition, expected_statistics
from .._linear_scores import JITTER
from .._network import GaussianNetwork
from .._rows import Rows
from .._statistics import LOG_2_PI, NOISE_SHARE, GaussianStatistics

# Rows of the mean covariance within classes that are added to that of each class, so
# that a class of few rows does not collapse (Fraley and Raftery, 2007, Journal of
# Classification 24). Five or ten predict olives worse, other tables alike.
PRIOR_ROWS = 2.0
# Smallest weight of a row in a class. Groups may be 1e8 times as far apart as they are
# wide, and squares of these distances must not count.
LEAST_SHARE = 1e-30
# Variance within classes, in standard units, that is rounding.
ROUNDING = 1e-24
MAX_ITER = 100
# Gain per row at which EM ends.
TOL = 1e-4


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Weights, means and covariances of classes; covariances are drawn to their mean.

    weight (n_classes,), mean (n_classes, n_nodes), covariance (n_classes, n_nodes,
    n_nodes)
    floor: smallest variance of a node within a class, (n_nodes,)
    """

    weight: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    floor: np.ndarray

    @classmethod
    def of(cls, rows: Rows, share, before: ClassParameters | None) -> ClassMoments:
        """Moments of rows in standard units.

        share: P(class) of each row, (n_rows, n_classes)
        before: what missing values are expected by
        """
        weights = np.maximum(share, LEAST_SHARE).T
        if rows.weights is not None:
            weights = weights * rows.weights
        if rows.has_gaps:
            assert before is not None
            moments = _expected_moments(rows, weights, before)
        else:
            moments = _complete_moments(rows.X, weights)
        weight, mean, scatter = map(np.array, zip(*moments, strict=True))
        pooled = scatter.sum(axis=0) / weight.sum()
        total = (weight + PRIOR_ROWS)[:, None, None]
        within = np.diagonal(pooled)
        floor = NOISE_SHARE * np.where(within > ROUNDING, within, 1.0)
        return cls(weight, mean, (scatter + PRIOR_ROWS * pooled) / total, floor)

    @property
    def statistics(self) -> list[GaussianStatistics]:
        """Statistics of each class."""
        each = zip(self.weight, self.mean, self.covariance, strict=True)
        return [GaussianStatistics(float(w), mean, w * c) for w, mean, c in each]


def _complete_moments(X, weights):
    """Weight, mean and scatter of each class of complete rows."""
    for own in weights:
        weight = own.sum()
        mean = own @ X / weight
        # Around their own mean, classes that are far apart keep their digits.
        centred = X - mean
        yield weight, mean, (centred.T * own) @ centred


def _expected_moments(rows: Rows, weights, before: ClassParameters):
    """Expected weight, mean and scatter of each class of rows with gaps."""
    for own, joint in zip(weights, before.joints, strict=True):
        expected, _ = expected_statistics(joint, IncompleteData.of(rows.X, own))
        yield expected.weight, expected.mean, expected.scatter


@dataclass(frozen=True, eq=False)
class ClassParameters:
    """Parameters of all classes, the first axis of all arrays but `adjacency`."""

    adjacency: np.ndarray
    weight: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    noise_variance: np.ndarray

    @classmethod
    def of(cls, adjacency, moments: ClassMoments) -> ClassParameters:
        """Most probable parameters; all classes are solved in one call per node."""
        variance = np.einsum("kii->ki", moments.covariance)
        variance = np.maximum(variance, moments.floor)
        scale = np.sqrt(variance)
        correlation = moments.covariance / (scale[:, :, None] * scale[:, None, :])
        weights = np.zeros_like(correlation)
        left = np.ones_like(variance)
        for child in np.flatnonzero(adjacency.any(axis=0)):
            parents = np.flatnonzero(adjacency[:, child])
            common = correlation[:, parents, child]
            block = correlation[:, parents[:, None], parents]
            block = block + JITTER * np.eye(len(parents))
            beta = np.linalg.solve(block, common[:, :, None])[:, :, 0]
            weights[:, parents, child] = beta * scale[:, [child]] / scale[:, parents]
            left[:, child] -= np.einsum("kp,kp->k", beta, common)
        intercept = moments.mean - np.einsum("ki,kij->kj", moments.mean, weights)
        noise = np.maximum(left, NOISE_SHARE) * variance
        share = moments.weight / moments.weight.sum()
        return cls(adjacency, share, weights, intercept, noise)

    @property
    def joints(self) -> list[Joint]:
        """Joint distribution of the nodes in each class."""
        each = zip(self.weights, self.intercept, self.noise_variance, strict=True)
        return [Joint(*own) for own in each]

    def log_densities(self, rows: Rows) -> np.ndarray:
        """Log of P(class) and density of each row in it, (n_rows, n_classes)."""
        if rows.has_gaps:
            each = [condition(joint, rows.X)[1] for joint in self.joints]
        else:
            scale = np.sqrt(self.noise_variance)
            constant = 0.5 * LOG_2_PI * rows.n_features + np.log(scale).sum(axis=1)
            each = [
                -0.5 * (((rows.X - rows.X @ weights - mean) / own) ** 2).sum(axis=1)
                for weights, mean, own in zip(
                    self.weights, self.intercept, scale, strict=True
                )
            ]
            return np.column_stack(each) + np.log(self.weight) - constant
        return np.column_stack(each) + np.log(self.weight)

    @property
    def network(self) -> GaussianNetwork:
        """The same as a network."""
        own = self.weights, self.intercept, self.noise_variance
        return GaussianNetwork(self.adjacency, *own, class_weight=self.weight)


def fit_classes(
    rows: Rows, adjacency, moments: ClassMoments
) -> tuple[ClassParameters, np.ndarray, float]:
    """Parameters by EM, P(class) of each row, log-likelihood of all."""

    def expect(parameters):
        log_densities = parameters.log_densities(rows)
        return rows.sum(logsumexp(log_densities, axis=1)), softmax(
            log_densities, axis=1
        )

    def maximize(parameters, share):
        return ClassParameters.of(adjacency, ClassMoments.of(rows, share, parameters))

    start = ClassParameters.of(adjacency, moments)
    tol = TOL * rows.weight
    ascent = climb(expect, maximize, start, tol=tol, max_iter=MAX_ITER, patient=False)
    return ascent.state, ascent.statistics, float(ascent.objective)
