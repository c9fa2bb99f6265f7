"""Exact conditioning of a joint Gaussian against formulas applied row by row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from sklearn_latent.gaussian import _conditional
from sklearn_latent.gaussian._conditional import (
    IncompleteData,
    Joint,
    condition,
    expected_statistics,
    leave_one_out,
)
from sklearn_latent.gaussian._statistics import GaussianStatistics


def random_joint(n_nodes, seed=0):
    rng = np.random.RandomState(seed)
    weights = np.triu(rng.normal(size=(n_nodes, n_nodes)), 1)
    return Joint(weights, rng.normal(size=n_nodes), rng.uniform(0.2, 2, n_nodes))


def incomplete(joint, n_rows, share, n_latents=0, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.multivariate_normal(joint.mean, joint.covariance, n_rows)
    X = X[:, : joint.n_nodes - n_latents]
    X[rng.uniform(size=X.shape) < share] = np.nan
    return X


def by_row(joint, X):
    """Completed rows, conditional covariances and log-likelihoods, one row a time."""
    mean, covariance = joint.mean, joint.covariance
    completed, extra, log_likelihood = [], [], []
    for row in X:
        known = np.zeros(len(mean), dtype=bool)
        known[: len(row)] = ~np.isnan(row)
        values = row[~np.isnan(row)]
        full, spread = mean.copy(), covariance.copy()
        density = 0.0
        if known.any():
            inner = covariance[np.ix_(known, known)]
            gain = np.linalg.solve(inner, covariance[known]).T
            full = mean + gain @ (values - mean[known])
            spread = covariance - gain @ covariance[known]
            density = multivariate_normal(mean[known], inner).logpdf(values)
        completed.append(full)
        extra.append(spread)
        log_likelihood.append(density)
    return np.array(completed), np.array(extra), np.array(log_likelihood)


@pytest.fixture(
    params=[
        # few patterns, many rows; a pattern per row; mostly missing; all of it hidden
        (200, 3, 0, 0.3),
        (60, 9, 0, 0.2),
        (60, 9, 0, 0.8),
        (80, 6, 2, 0.4),
        (80, 6, 5, 0.3),
        (50, 4, 1, 0.0),
        (20, 3, 1, 1.0),
    ],
    ids=str,
)
def case(request):
    n_rows, n_nodes, n_latents, share = request.param
    joint = random_joint(n_nodes)
    return joint, incomplete(joint, n_rows, share, n_latents)


class TestJoint:
    def test_precision_is_the_inverse_of_the_covariance(self):
        joint = random_joint(6)
        assert_allclose(joint.precision @ joint.covariance, np.eye(6), atol=1e-8)
        assert_allclose(joint.log_det, np.linalg.slogdet(joint.covariance)[1])

    def test_moments_come_back(self):
        joint = random_joint(5)
        again = Joint.of_moments(joint.mean, joint.covariance)
        assert_allclose(again.mean, joint.mean)
        assert_allclose(again.covariance, joint.covariance, atol=1e-10)

    def test_nodes_need_not_be_in_topological_order(self):
        weights = np.zeros((3, 3))
        weights[2, 0], weights[0, 1] = 2.0, -1.0  # 2 -> 0 -> 1
        joint = Joint(weights, np.array([1.0, 0.5, 3.0]), np.array([1.0, 2.0, 0.5]))
        assert_allclose(joint.mean, [7.0, -6.5, 3.0])
        assert_allclose(joint.covariance[0, 0], 1.0 + 4 * 0.5)
        assert_allclose(joint.covariance[2, 1], -2.0 * 0.5)


class TestConditioning:
    def test_against_rows(self, case):
        joint, X = case
        completed, log_likelihood = condition(joint, X)[:2]
        expected, _, densities = by_row(joint, X)
        assert_allclose(completed, expected, atol=1e-8)
        assert_allclose(log_likelihood, densities, atol=1e-7)
        known = ~np.isnan(X)
        assert_array_equal(completed[:, : X.shape[1]][known], X[known])

    def test_small_chunks_give_the_same(self, case, monkeypatch):
        joint, X = case
        data = IncompleteData.of(X)
        whole, (sums, total) = condition(joint, X), expected_statistics(joint, data)
        monkeypatch.setattr(_conditional, "CHUNK", 100)
        for one, other in zip(condition(joint, X), whole, strict=True):
            assert_allclose(one, other, atol=1e-9)
        parts, again = expected_statistics(joint, data)
        assert_allclose(parts.scatter, sums.scatter, atol=1e-8)
        assert_allclose(again, total)


class TestExpectedStatistics:
    def test_against_rows(self, case):
        joint, X = case
        weight = np.random.RandomState(1).uniform(0.5, 2, len(X))
        completed, extra, log_likelihood = by_row(joint, X)
        reference = GaussianStatistics.of(completed, weight)
        scatter = reference.scatter + np.tensordot(weight, extra, 1)
        statistics, total = expected_statistics(joint, IncompleteData.of(X, weight))
        assert_allclose(statistics.weight, weight.sum())
        assert_allclose(statistics.mean, reference.mean, atol=1e-8)
        assert_allclose(statistics.scatter, scatter, atol=1e-6)
        assert_allclose(total, weight @ log_likelihood, rtol=1e-9)


class TestLeaveOneOut:
    def test_against_hiding_one_value(self, case):
        joint, X = case
        expected = np.empty_like(X)
        for feature in range(X.shape[1]):
            hidden = X.copy()
            hidden[:, feature] = np.nan
            expected[:, feature] = condition(joint, hidden)[0][:, feature]
        assert_allclose(leave_one_out(joint, X)[0], expected, atol=1e-7)
