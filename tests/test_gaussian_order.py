import numpy as np
import pytest
from gaussian_strategies import (
    exact_evaluator,
    random_linear_network,
    sampled_evaluator,
    total_score,
)
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_latent._core.graphs import equivalence_class
from sklearn_latent.gaussian._backward import backward_search
from sklearn_latent.gaussian._greedy import greedy_search
from sklearn_latent.gaussian._orders import GrowShrinkTree, _OrderState, order_search
from sklearn_latent.gaussian._rules import (
    Rules,
    SearchResult,
    with_parent,
    without_parent,
)


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
    evaluator = sampled_evaluator(seed=seed)
    trees = make_trees(evaluator)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        child = int(rng.integers(8))
        predecessors = rng.random(8) < 0.6
        predecessors[child] = False
        growth = trees[child].grow(bits(predecessors))
        assert growth.parents == grow_plainly(evaluator, child, predecessors)
        assert_allclose(growth.score, evaluator.family_score(child, growth.parents))


@pytest.mark.parametrize("seed", range(4))
def test_only_sensitive_nodes_change_what_is_grown(seed):
    evaluator = sampled_evaluator(seed=seed)
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
    evaluator = sampled_evaluator(seed=seed)
    trees = make_trees(evaluator)
    nothing = np.zeros((8, 8), dtype=bool)
    state = _OrderState(trees, np.arange(8), nothing)
    for node in np.random.default_rng(seed).integers(0, 8, 25).tolist():
        before = state.score
        gain = state.improve(node, 1e-6)
        fresh = _OrderState(trees, state.order, nothing)
        assert state.growths == fresh.growths
        assert (state.position, state.before) == (fresh.position, fresh.before)
        assert_allclose(state.score, before + gain)


def test_same_seed_same_graph():
    evaluator = sampled_evaluator(10)
    rules = Rules.free(10, random_state=5)
    a, b = (order_search(evaluator, rules, n_restarts=2) for _ in range(2))
    assert_array_equal(a.adjacency, b.adjacency)


@pytest.mark.parametrize("seed", range(6))
def test_backward_search_thins_out_a_full_graph(seed):
    network = random_linear_network(6, seed)
    evaluator = exact_evaluator(network)
    full = np.triu(np.ones((6, 6), dtype=bool), 1)
    result = backward_search(evaluator, SearchResult(full, 0.0), tol=1e-3)
    assert_allclose(result.score, total_score(evaluator, result.adjacency))
    assert_array_equal(
        equivalence_class(result.adjacency), equivalence_class(network.adjacency)
    )


def test_greedy_misses_what_orders_find_and_one_start_what_restarts_find():
    gains = []
    for seed in range(6):
        evaluator = sampled_evaluator(15, 150, seed)
        once = order_search(evaluator).score
        assert once >= greedy_search(evaluator).score - 1e-6
        gains.append(order_search(evaluator, n_restarts=5).score - once)
    assert min(gains) >= 0 < max(gains)
