"""Statistics of rows, and the linear families and searches on them."""

import numpy as np
import pytest
from gaussian_strategies import exact_evaluator, random_linear_network, total_score
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_latent.gaussian._greedy import greedy_search
from sklearn_latent.gaussian._linear_scores import (
    LinearEvaluator,
    extended_correlation,
    fit_linear,
    partial_out,
    scan_family,
)
from sklearn_latent.gaussian._orders import order_search
from sklearn_latent.gaussian._rules import Rules
from sklearn_latent.gaussian._statistics import GaussianStatistics

POOR = {
    "constant": lambda X: np.column_stack([X, np.full(len(X), 3.0)]),
    "zero": lambda X: np.column_stack([X, np.zeros(len(X))]),
    "duplicate": lambda X: np.column_stack([X, X[:, 0]]),
    "collinear": lambda X: np.column_stack([X, X @ np.arange(1.0, X.shape[1] + 1)]),
    "huge": lambda X: X * 1e150,
    "tiny": lambda X: X * 1e-150,
    "two rows": lambda X: X[:2],
    "one row": lambda X: X[:1],
    "all alike": lambda X: np.ones_like(X),
}


@pytest.fixture
def X():
    return random_linear_network(4, 3).sample(60, 0)[0]


@pytest.mark.parametrize("kind", POOR)
@pytest.mark.parametrize("search", [greedy_search, order_search])
def test_poor_data_give_finite_parameters(X, kind, search):
    statistics = GaussianStatistics.of(POOR[kind](X))
    evaluator = LinearEvaluator(statistics)
    result = search(evaluator)
    assert np.isfinite(result.score)
    weights, intercept, noise_variance = fit_linear(statistics, result.adjacency)
    assert np.isfinite(weights).all() and np.isfinite(intercept).all()
    assert (noise_variance > 0).all()


def test_parents_that_are_collinear_and_required(X):
    X = np.column_stack([X, X[:, 0], np.ones(len(X))])
    statistics = GaussianStatistics.of(X)
    required = np.zeros((6, 6), dtype=bool)
    required[[0, 4, 5], 1] = True
    for search in (greedy_search, order_search):
        result = search(LinearEvaluator(statistics), Rules.free(6, required=required))
        assert result.adjacency[[0, 4, 5], 1].all()
        weights, *_ = fit_linear(statistics, result.adjacency)
        assert np.isfinite(weights).all()
        assert np.abs(weights[:, 1]).max() < 1e3


def test_a_candidate_that_is_a_sum_of_the_parents_adds_nothing(X):
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    evaluator = LinearEvaluator(GaussianStatistics.of(X))
    allowed = np.array([[False, False, False, True, True]])
    (scores,) = evaluator.move_scores([(2, (0, 1))], allowed, ~allowed, [True])
    alone = evaluator.family_score(2, (0, 1))
    assert_allclose(scores[0, 4], alone - evaluator.parameter_cost)


def test_partial_regression_agrees_with_the_full_scan(X):
    correlation = np.corrcoef(X.T)
    for parents in [(), (0,), (0, 2, 3)]:
        after = scan_family(extended_correlation(correlation), 1, parents).after
        unexplained, without = partial_out(correlation, 1, parents).unexplained(1)
        assert_allclose([unexplained, *without], after[:, -1])


def test_expected_statistics_need_not_come_from_rows():
    network = random_linear_network(5, 0)
    evaluator, graph = exact_evaluator(network, 2.5), network.adjacency
    log_det = np.linalg.slogdet(2 * np.pi * network.joint()[1])[1]
    price = evaluator.parameter_cost * (10 + graph.sum())
    assert_allclose(total_score(evaluator, graph), -1.25 * (log_det + 5) - price)


def test_penalties():
    statistics = GaussianStatistics.of(np.random.default_rng(0).normal(size=(50, 3)))
    plain = LinearEvaluator(statistics)
    dear = LinearEvaluator(statistics, parameter_cost=7.0, edge_cost=2.0)
    for parents in [(), (0,), (0, 2)]:
        difference = plain.family_score(1, parents) - dear.family_score(1, parents)
        expected = (7.0 - np.log(50) / 2) * (2 + len(parents)) + 2.0 * len(parents)
        assert_allclose(difference, expected)


def test_covariance_is_that_of_numpy():
    X = np.random.default_rng(0).normal(size=(50, 4))
    weights = np.arange(50)
    covariance = GaussianStatistics.of(X, weights).covariance
    assert_allclose(covariance, np.cov(X.T, bias=True, fweights=weights))


def test_constant_columns_have_no_variance_but_a_noise_floor():
    X = np.column_stack([np.full(7, 0.1), np.zeros(7), np.arange(7.0)])
    statistics = GaussianStatistics.of(X)
    assert_array_equal(statistics.variance[:2], 0.0)
    assert (statistics.noise_floor > 0).all()
    assert statistics.noise_floor[2] < 1e-6 * statistics.variance[2]
    assert statistics.__add__(3) is NotImplemented
