import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import seeds

from sklearn_latent.gaussian._statistics import GaussianStatistics


def assert_same(a, b):
    np.testing.assert_allclose(a.weight, b.weight)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-10)
    np.testing.assert_allclose(a.scatter, b.scatter, atol=1e-8)


@settings(deadline=None)
@given(seeds, st.integers(1, 5), st.integers(1, 20), st.integers(1, 20))
def test_statistics_of_parts_add_up(seed, n_features, first, second):
    X = np.random.default_rng(seed).normal(3.0, 2.0, (first + second, n_features))
    parts = GaussianStatistics.of(X[:first]) + GaussianStatistics.of(X[first:])
    assert_same(parts, GaussianStatistics.of(X))


@settings(deadline=None)
@given(seeds)
def test_weight_is_repetition(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 3))
    weights = rng.integers(0, 4, 12)
    weights[0] = 1
    assert_same(
        GaussianStatistics.of(X, weights), GaussianStatistics.of(X.repeat(weights, 0))
    )


def test_covariance_is_that_of_numpy():
    X = np.random.default_rng(0).normal(size=(50, 4))
    weights = np.arange(1, 51)
    np.testing.assert_allclose(
        GaussianStatistics.of(X, weights).covariance,
        np.cov(X.T, bias=True, fweights=weights),
    )


def test_columns_far_from_zero_keep_their_digits():
    X = np.random.default_rng(0).normal(size=(100, 2))
    moved = GaussianStatistics.of(X + 1e7)
    np.testing.assert_allclose(
        moved.covariance, GaussianStatistics.of(X).covariance, rtol=1e-6
    )


def test_constant_columns_have_no_variance_but_a_noise_floor():
    X = np.column_stack([np.full(7, 0.1), np.zeros(7), np.arange(7.0)])
    statistics = GaussianStatistics.of(X)
    np.testing.assert_array_equal(statistics.variance[:2], 0.0)
    assert (statistics.noise_floor > 0).all()
    assert statistics.noise_floor[2] < 1e-6 * statistics.variance[2]


def test_adding_something_else_is_refused():
    statistics = GaussianStatistics.of(np.eye(3))
    assert statistics.__add__(3) is NotImplemented
