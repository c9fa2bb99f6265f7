"""Laws of linear networks: scores from covariances, searches on exact ones."""

from functools import partial

import numpy as np
import pytest
from gaussian_strategies import (
    exact_evaluator,
    lstsq_score,
    random_graph,
    random_linear_network,
    sampled_tables,
    total_score,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from strategies import seeds

from sklearn_latent._core.graphs import equivalence_class, topological_order
from sklearn_latent.gaussian import IdealParentGaussianBN
from sklearn_latent.gaussian._backward import extend
from sklearn_latent.gaussian._greedy import greedy_search
from sklearn_latent.gaussian._linear_scores import LinearEvaluator, fit_linear
from sklearn_latent.gaussian._orders import order_search
from sklearn_latent.gaussian._rules import Rules
from sklearn_latent.gaussian._statistics import GaussianStatistics


def draw_family(data, n_features, at_least=0):
    nodes = data.draw(st.permutations(range(n_features)))
    n_parents = data.draw(st.integers(at_least, n_features - 1))
    return nodes[0], tuple(sorted(nodes[1 : 1 + n_parents]))


@given(sampled_tables(), st.data())
def test_family_scores_are_those_of_regressions(X, data):
    child, parents = draw_family(data, X.shape[1])
    evaluator = LinearEvaluator(GaussianStatistics.of(X))
    expected = lstsq_score(X, child, parents, evaluator.parameter_cost)
    assert_allclose(evaluator.family_score(child, parents), expected)


@given(sampled_tables(), st.data())
def test_move_scores_are_those_of_changed_families(X, data):
    n = X.shape[1]
    child, parents = draw_family(data, n)
    evaluator = LinearEvaluator(GaussianStatistics.of(X))
    cost = evaluator.parameter_cost
    allowed = np.ones((1, n), dtype=bool)
    allowed[0, [child, *parents]] = False
    (scores,) = evaluator.move_scores([(child, parents)], allowed, ~allowed, [True])
    assert scores.shape == (len(parents) + 1, n + 1)
    added, deleted, replaced = scores[0, :-1], scores[1:, -1], scores[1:, :-1]
    assert_allclose(scores[0, -1], lstsq_score(X, child, parents, cost))
    for z in range(n):
        if not allowed[0, z]:
            assert added[z] == -np.inf
            continue
        expected = lstsq_score(X, child, (*parents, z), cost)
        assert_allclose(added[z], expected)
    for place, parent in enumerate(parents):
        rest = tuple(p for p in parents if p != parent)
        assert_allclose(deleted[place], lstsq_score(X, child, rest, cost))
        for z in np.flatnonzero(allowed[0]):
            expected = lstsq_score(X, child, (*rest, z), cost)
            assert_allclose(replaced[place, z], expected)


@given(sampled_tables(max_features=8), st.integers(1, 8), st.data())
def test_pruned_candidates_are_the_most_similar(X, n_candidates, data):
    child, parents = draw_family(data, X.shape[1])
    statistics = GaussianStatistics.of(X)
    evaluator = LinearEvaluator(statistics, n_candidates=n_candidates)
    allowed = np.ones((1, X.shape[1]), dtype=bool)
    allowed[0, [child, *parents]] = False
    nothing = np.zeros_like(allowed)
    (scores,) = evaluator.move_scores([(child, parents)], allowed, nothing, [True])
    kept = np.isfinite(scores[0, :-1])
    n_kept = min(n_candidates, allowed.sum())
    assert (np.isfinite(scores[:, :-1]).sum(axis=1) == n_kept).all()
    n_rows = len(parents) + 1
    assert evaluator.n_considered == n_rows * allowed.sum() + len(parents)
    assert evaluator.n_evaluated == n_rows * n_kept + len(parents)
    # The ideal parent is the residual; C1 and C2 grow with the squared correlation.
    design = np.column_stack([np.ones(len(X)), X[:, list(parents)]])
    ideal = X[:, child] - design @ np.linalg.lstsq(design, X[:, child])[0]
    centred = X - X.mean(axis=0)
    similarity = np.abs(ideal @ centred) / np.linalg.norm(centred, axis=0)
    left_out = allowed[0] & ~kept
    if left_out.any() and kept.any():
        assert similarity[kept].min() >= similarity[left_out].max() - 1e-6


@given(sampled_tables(), seeds)
def test_searches_return_the_score_of_their_graph(X, seed):
    evaluator = LinearEvaluator(GaussianStatistics.of(X))
    rules = Rules.free(X.shape[1], random_state=seed, max_parents=3)
    for search in (greedy_search, partial(order_search, n_restarts=2)):
        result = search(evaluator, rules)
        topological_order(result.adjacency)
        assert result.adjacency.sum(axis=0).max() <= 3
        expected = total_score(evaluator, result.adjacency)
        assert_allclose(result.score, expected)


@given(sampled_tables())
def test_history_leads_to_the_score(X):
    evaluator = LinearEvaluator(GaussianStatistics.of(X))
    empty = np.zeros((X.shape[1], X.shape[1]), dtype=bool)
    result = greedy_search(evaluator)
    gains = np.cumsum([0.0, *[gain for _, gain in result.history]])
    start = total_score(evaluator, empty)
    assert_allclose(start + gains[-1], result.score, rtol=1e-9)
    assert (np.diff(gains) > 0).all()


@given(st.integers(2, 8), seeds)
def test_exact_covariance_gives_back_the_equivalence_class(n_features, seed):
    network = random_linear_network(n_features, seed)
    evaluator = exact_evaluator(network)
    result = order_search(evaluator)
    truth = total_score(evaluator, network.adjacency)
    assert result.score >= truth - 1e-3
    # Where effects nearly cancel a smaller graph may do; else it is the true class.
    if result.score < truth + 1e-3:
        assert_array_equal(
            equivalence_class(result.adjacency), equivalence_class(network.adjacency)
        )


@given(st.integers(1, 8), seeds)
def test_graphs_of_a_class_have_one_class_and_one_score(n_features, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(n_features, rng)
    pattern = equivalence_class(graph)
    other = extend(pattern, [int(rng.integers(n_features))])
    topological_order(other)
    assert_array_equal(equivalence_class(other), pattern)
    X = rng.normal(size=(50, n_features)) @ rng.normal(size=(n_features, n_features))
    evaluator = LinearEvaluator(GaussianStatistics.of(X))
    assert_allclose(
        total_score(evaluator, graph), total_score(evaluator, other), rtol=1e-6
    )


@given(st.integers(1, 6), seeds)
def test_parameters_come_back_from_exact_statistics(n_features, seed):
    network = random_linear_network(n_features, seed)
    mean, covariance = network.joint()
    weights, intercept, noise_variance = fit_linear(
        GaussianStatistics(100.0, mean, 100.0 * covariance), network.adjacency
    )
    assert_allclose(weights, network.weights, atol=1e-6)
    assert_allclose(intercept, network.intercept, atol=1e-6)
    assert_allclose(noise_variance, network.noise_variance, rtol=1e-6)


@st.composite
def other_units(draw, n_features):
    """Factors, shifts and an order of the columns."""
    factors = st.sampled_from([1.0, 10.0, 1000.0, -3.0, 1e-6, 7.3])
    shifts = st.sampled_from([0.0, 1.0, -40.0, 1e4])
    return (
        np.array(draw(st.lists(factors, min_size=n_features, max_size=n_features))),
        np.array(draw(st.lists(shifts, min_size=n_features, max_size=n_features))),
        np.array(draw(st.permutations(range(n_features)))),
    )


def assert_same_class(one, two, order):
    """Fits to columns and to the same columns in another order agree."""
    order = np.append(order, np.arange(len(order), len(one.adjacency_)))
    assert_array_equal(
        equivalence_class(one.adjacency_)[np.ix_(order, order)],
        equivalence_class(two.adjacency_),
    )


def assert_same_in_units(model, X, units, seed):
    """A model, fitted, is that of the rows in other units, and densities follow."""
    factors, shifts, order = units
    rows = np.random.default_rng(seed).permutation(len(X))
    Y = (X * factors + shifts * np.abs(factors))[rows][:, order]
    model.fit(X)
    other = clone(model).fit(Y)
    assert_same_class(model, other, order)
    slopes = (~np.isnan(X)).sum(axis=0) @ np.log(np.abs(factors))
    expected = model.log_likelihood_ - slopes
    assert_allclose(other.log_likelihood_, expected, rtol=1e-6, atol=1e-3)
    return Y, other


@settings(max_examples=40)
@given(
    seeds,
    st.sampled_from([15, 60, 400]),
    st.sampled_from(["auto", "order", "greedy"]),
    other_units(7),
)
# Bent margins and normal ones predict exactly alike.
@example(9033, 60, "auto", (np.ones(7), np.zeros(7), np.array([0, 1, 2, 3, 5, 4, 6])))
def test_units_and_orders_do_not_matter(seed, n_rows, search, units):
    X = random_linear_network(7, seed).sample(n_rows, seed)[0]
    model = IdealParentGaussianBN(search=search)
    Y, other = assert_same_in_units(model, X, units, seed)
    cut = int(np.random.default_rng(seed).integers(1, n_rows))
    assert_same_class(model, clone(other).fit(iter([Y[:cut], Y[cut:]])), units[2])


@settings(max_examples=8)
@given(
    seeds,
    st.sampled_from(["auto", "order", "greedy"]),
    st.sampled_from([0, 1]),
    other_units(5),
)
@example(14, "greedy", 0, (np.ones(5), np.zeros(5), np.array([4, 0, 3, 1, 2])))
@example(21, "auto", 1, (np.ones(5), np.array([-40, 1e4, 0, 0, 1e4]), np.arange(5)))
def test_units_and_orders_do_not_matter_to_em(seed, search, max_latents, units):
    X = random_linear_network(5, seed).sample(60, seed)[0]
    X[np.random.default_rng(seed).random(X.shape) < 0.2] = np.nan
    X[0] = 0.0  # all columns have a value
    model = IdealParentGaussianBN(search=search, max_latents=max_latents)
    assert_same_in_units(model.set_params(margins="normal"), X, units, seed)


@pytest.mark.filterwarnings("ignore:1 of 10 features have few different values")
@pytest.mark.filterwarnings("ignore:A mixture of")
@pytest.mark.parametrize("factor", [10.0, 1000.0, -0.3])
@pytest.mark.parametrize("load", [load_wine, load_diabetes, load_breast_cancer])
def test_units_of_real_tables_do_not_matter(load, factor):
    X = load().data
    order = np.random.default_rng(0).permutation(X.shape[1])
    model = IdealParentGaussianBN()
    assert_same_class(model.fit(X), clone(model).fit(X[:, order] * factor), order)


@settings(max_examples=20)
@given(seeds, st.sampled_from(["auto", "greedy"]), st.sampled_from([1e13, -1e13]))
def test_columns_far_from_zero(seed, search, shift):
    # Values that are still exact there.
    X = np.round(random_linear_network(5, seed).sample(300, seed)[0] * 64.0) / 64.0
    model = IdealParentGaussianBN(search=search).fit(X)
    far = clone(model).fit(X + shift)
    assert_array_equal(far.adjacency_, model.adjacency_)
    assert_allclose(far.weights_, model.weights_, rtol=1e-6)
    assert_allclose(far.noise_variance_, model.noise_variance_, rtol=1e-6)
    assert abs(far.score(X + shift) - model.score(X)) < 1e-2
