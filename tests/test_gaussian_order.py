import numpy as np
import pytest
from gaussian_strategies import random_linear_network, total_score

from sklearn_latent._core.graphs import equivalence_class, topological_order
from sklearn_latent.gaussian._backward import backward_search
from sklearn_latent.gaussian._greedy import greedy_search
from sklearn_latent.gaussian._linear_scores import LinearEvaluator
from sklearn_latent.gaussian._orders import GrowShrinkTree, _OrderState, order_search
from sklearn_latent.gaussian._rules import (
    Rules,
    SearchResult,
    with_parent,
    without_parent,
)
from sklearn_latent.gaussian._statistics import GaussianStatistics


def make_evaluator(n_features=8, n_rows=300, seed=0):
    X = random_linear_network(n_features, seed).sample(n_rows, seed)[0]
    return LinearEvaluator(GaussianStatistics.of(X))


def make_trees(evaluator):
    n = evaluator.n_nodes
    return [GrowShrinkTree(evaluator, child, Rules.free(n)) for child in range(n)]


def bits(mask):
    """A set of nodes as the bits of a number."""
    return sum(1 << node for node in np.flatnonzero(mask).tolist())


def grow_plainly(evaluator, child, predecessors):
    """Grow and shrink by scores of whole families."""
    parents = ()
    while True:
        moves = [
            with_parent(parents, int(z))
            for z in np.flatnonzero(predecessors)
            if z not in parents
        ]
        scores = [evaluator.family_score(child, moved) for moved in moves]
        if not moves or max(scores) <= evaluator.family_score(child, parents):
            break
        parents = moves[int(np.argmax(scores))]
    while parents:
        moves = [without_parent(parents, p) for p in parents]
        scores = [evaluator.family_score(child, moved) for moved in moves]
        if max(scores) <= evaluator.family_score(child, parents):
            break
        parents = moves[int(np.argmax(scores))]
    return parents


@pytest.mark.parametrize("seed", range(6))
def test_growing_agrees_with_the_plain_way(seed):
    evaluator = make_evaluator(seed=seed)
    trees = make_trees(evaluator)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        child = int(rng.integers(8))
        predecessors = rng.random(8) < 0.6
        predecessors[child] = False
        growth = trees[child].grow(bits(predecessors))
        assert growth.parents == grow_plainly(evaluator, child, predecessors)
        np.testing.assert_allclose(
            growth.score, evaluator.family_score(child, growth.parents)
        )


@pytest.mark.parametrize("seed", range(4))
def test_only_sensitive_nodes_change_what_is_grown(seed):
    evaluator = make_evaluator(seed=seed)
    trees = make_trees(evaluator)
    rng = np.random.default_rng(seed)
    for child in range(8):
        predecessors = rng.random(8) < 0.5
        predecessors[child] = False
        growth = trees[child].grow(bits(predecessors))
        for other in set(range(8)) - {child}:
            if not growth.sensitive >> other & 1:
                toggled = bits(predecessors) ^ 1 << other
                assert trees[child].grow(toggled).parents == growth.parents


@pytest.mark.parametrize("seed", range(4))
def test_moves_keep_the_state_consistent(seed):
    evaluator = make_evaluator(seed=seed)
    trees = make_trees(evaluator)
    nothing = np.zeros((8, 8), dtype=bool)
    state = _OrderState(trees, np.arange(8), nothing)
    for node in np.random.default_rng(seed).integers(0, 8, 25).tolist():
        before = state.score
        gain = state.improve(node, 1e-6)
        fresh = _OrderState(trees, state.order, nothing)
        assert state.growths == fresh.growths
        assert (state.position, state.before) == (fresh.position, fresh.before)
        np.testing.assert_allclose(state.score, before + gain)


def test_order_search_is_at_least_as_good_as_greedy():
    for seed in range(5):
        evaluator = make_evaluator(12, 500, seed)
        ordered = order_search(evaluator)
        assert ordered.score >= greedy_search(evaluator).score - 1e-6


def test_forbidden_and_required_edges_are_respected():
    evaluator = make_evaluator()
    free = order_search(evaluator).adjacency
    required = np.zeros_like(free)
    required[7, 0] = required[0, 3] = True
    forbidden = free & ~required
    rules = Rules.free(8, forbidden=forbidden, required=required, max_parents=2)
    result = order_search(evaluator, rules, n_restarts=3)
    topological_order(result.adjacency)
    assert not (result.adjacency & forbidden).any()
    assert result.adjacency[required].all()
    assert result.adjacency.sum(axis=0).max() <= 2


def test_same_seed_same_graph():
    evaluator = make_evaluator(10)
    rules = Rules.free(10, random_state=5)
    a, b = (order_search(evaluator, rules, n_restarts=2) for _ in range(2))
    np.testing.assert_array_equal(a.adjacency, b.adjacency)


def test_progress_may_stop_the_search():
    messages = []
    rules = Rules.free(8, progress=lambda text: messages.append(text) or True)
    order_search(make_evaluator(), rules)
    assert len(messages) == 1


@pytest.mark.parametrize("seed", range(6))
def test_backward_search_thins_out_a_full_graph(seed):
    network = random_linear_network(6, seed)
    mean, covariance = network.joint()
    evaluator = LinearEvaluator(GaussianStatistics(1e9, mean, 1e9 * covariance))
    full = np.triu(np.ones((6, 6), dtype=bool), 1)
    result = backward_search(evaluator, SearchResult(full, 0.0), tol=1e-3)
    np.testing.assert_allclose(result.score, total_score(evaluator, result.adjacency))
    np.testing.assert_array_equal(
        equivalence_class(result.adjacency), equivalence_class(network.adjacency)
    )


def test_restarts_find_what_one_start_misses():
    gains = []
    for seed in range(6):
        evaluator = make_evaluator(15, 150, seed)
        often = order_search(evaluator, n_restarts=5)
        gains.append(often.score - order_search(evaluator).score)
    assert min(gains) >= 0 < max(gains)
