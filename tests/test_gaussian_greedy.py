"""Greedy search, and what it shares with the search over orders."""

from functools import partial

import numpy as np
import pytest
from gaussian_strategies import random_graph, sampled_evaluator, total_score
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_latent._core.graphs import reaches, topological_order
from sklearn_latent.gaussian._greedy import _State, greedy_search
from sklearn_latent.gaussian._linear_scores import LinearEvaluator
from sklearn_latent.gaussian._orders import order_search
from sklearn_latent.gaussian._rules import MoveEvaluator, Rules
from sklearn_latent.gaussian._statistics import GaussianStatistics


def make_evaluator(n_features=8, n_rows=200, seed=0, **options):
    return sampled_evaluator(n_features, n_rows, seed, **options)


def all_moves(graph, evaluator, max_parents):
    """Gains of all legal moves, by brute force."""
    before, found = total_score(evaluator, graph), {}

    def consider(move, *changes):
        changed = graph.copy()
        for edge in changes:
            changed[edge] ^= True
        try:
            topological_order(changed)
        except ValueError:
            return
        if changed.sum(axis=0).max() <= max_parents:
            found[move] = total_score(evaluator, changed) - before

    joined = graph | graph.T | np.eye(len(graph), dtype=bool)
    for u, x in np.argwhere(~joined).tolist():
        consider(("add", u, x), (u, x))
    for u, x in np.argwhere(graph).tolist():
        consider(("delete", u, x), (u, x))
        consider(("reverse", u, x), (u, x), (x, u))
        for z in np.flatnonzero(~joined[:, x]).tolist():
            consider(("replace", u, z, x), (u, x), (z, x))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_best_move_is_the_best_of_all(seed):
    evaluator = make_evaluator(5, 60, seed)
    rng = np.random.default_rng(seed)
    graph = random_graph(5, rng)
    limit = max(3, int(graph.sum(axis=0).max()))
    state = _State(evaluator, graph, Rules.free(5, max_parents=limit))
    for _ in range(6):
        gain, move = state.best_move()
        expected = all_moves(state.adjacency, evaluator, limit)
        assert move in expected
        assert_allclose(gain, max(expected.values()), atol=2e-6)
        assert_allclose(gain, expected[move], atol=2e-6)
        # A move that is not the best, to see other graphs as well.
        moves = sorted(expected)
        state.apply(moves[rng.integers(len(moves))])
        assert_array_equal(state.reach, reaches(state.adjacency))
        assert_allclose(state.scores.sum(), total_score(evaluator, state.adjacency))


class Plain(MoveEvaluator):
    """The methods of the base class only, around a linear evaluator."""

    is_exhaustive = False

    def __init__(self, inner):
        self.inner = inner
        self.n_nodes = inner.n_nodes

    def family_score(self, child, parents):
        return self.inner.family_score(child, parents)

    def move_scores(self, families, allowed, children, room):
        # Only what is asked for.
        scores = self.inner.move_scores(families, allowed, children, room)
        for own, candidates, reversed_ in zip(scores, allowed, children, strict=True):
            own[0, :-1][~(candidates | reversed_)] = -np.inf
            own[1:, :-1][:, ~candidates] = -np.inf
        return scores


@pytest.mark.parametrize("seed", range(5))
def test_scoring_reversals_one_by_one_makes_no_difference(seed):
    evaluator = make_evaluator(seed=seed)
    expected = greedy_search(evaluator)
    result = greedy_search(Plain(evaluator))
    assert_array_equal(result.adjacency, expected.adjacency)
    assert_allclose(result.score, expected.score)


@pytest.mark.parametrize(
    ("search", "n_candidates"),
    [
        (greedy_search, 1),
        (greedy_search, None),
        (partial(order_search, n_restarts=3), None),
    ],
)
def test_forbidden_and_required_edges_are_respected(search, n_candidates):
    evaluator = make_evaluator(n_candidates=n_candidates)
    free = search(evaluator).adjacency
    required = np.zeros_like(free)
    required[7, 0] = required[0, 3] = True
    forbidden = free & ~required
    rules = Rules.free(8, forbidden=forbidden, required=required, max_parents=2)
    found = search(evaluator, rules).adjacency
    topological_order(found)
    assert not (found & forbidden).any()
    assert found[required].all()
    assert found.sum(axis=0).max() <= 2


def test_pruning_evaluates_fewer_families():
    full, pruned = make_evaluator(12), make_evaluator(12, n_candidates=2)
    greedy_search(full)
    greedy_search(pruned)
    assert pruned.n_evaluated < pruned.n_considered
    assert full.n_evaluated == full.n_considered


def test_search_from_a_graph_and_limits():
    evaluator = make_evaluator()
    first = greedy_search(evaluator, Rules.free(8, max_iter=3))
    assert len(first.history) == 3
    rest = greedy_search(evaluator, initial=first.adjacency)
    whole = greedy_search(evaluator)
    assert_array_equal(rest.adjacency, whole.adjacency)
    assert greedy_search(evaluator, initial=whole.adjacency).history == []
    idle = greedy_search(evaluator, Rules.free(8, tol=np.inf))
    assert idle.adjacency.sum() == 0


@pytest.mark.parametrize(("search", "n_moves"), [(greedy_search, 2), (order_search, 1)])
def test_progress_may_stop_the_search(search, n_moves):
    messages = []

    def stop(message):
        messages.append(message)
        return len(messages) == n_moves

    result = search(make_evaluator(), Rules.free(8, progress=stop))
    assert len(messages) == n_moves
    if search is greedy_search:
        assert len(result.history) == result.adjacency.sum() == 2


def test_a_required_parent_stays_beside_a_better_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:, 2] += 2.0 * X[:, 0]
    required = np.zeros((3, 3), dtype=bool)
    required[1, 2] = True
    evaluator = LinearEvaluator(GaussianStatistics.of(X))
    rules = Rules.free(3, required=required)
    result = greedy_search(evaluator, rules)
    assert result.adjacency[1, 2]
    assert result.adjacency[0, 2] or result.adjacency[2, 0]
    # Alone it would go: it explains nothing.
    free = greedy_search(evaluator, Rules.free(3), initial=result.adjacency)
    assert not free.adjacency[1, 2]
