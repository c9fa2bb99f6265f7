"""Best-order search (Andrews et al., 2023): orders of the nodes instead of graphs.

Given an order, every node grows and shrinks its parents among its predecessors. Moving
one node to its best place changes few of the others, and which those are is known from
the way each of them grew its parents, so that a move costs a handful of growths
instead of one per node and place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.utils import check_random_state

from ..._graphs import topological_order
from .._scores.linear import LinearEvaluator
from .._scores.moves import Rules, SearchResult, rounding_error
from .backward import backward_search
from .greedy import greedy_search
from .grow_shrink import GrowShrinkTree, Growth

# Nodes that a restart moves to random places, as a share of all.
RESTART_SHARE = 0.1
# Number of nodes up to which deletions are tried over equivalence classes.
MAX_BACKWARD = 300


class _OrderState:
    """An order, and what every node grew from its predecessors."""

    def __init__(self, trees, order, required):
        self.trees = trees
        self.required = required
        n = len(order)
        self.order = np.array(order, dtype=int)
        self.position = np.empty(n, dtype=int)
        self.position[self.order] = np.arange(n)
        self.growths: list[Growth] = []
        self.scores = np.zeros(n)
        # [x, y]: whether x precedes y matters for y.
        self.sensitive = np.zeros((n, n), dtype=bool)
        for y in range(n):
            growth = trees[y].grow(self.position < self.position[y])
            self.growths.append(growth)
            self.sensitive[growth.sensitive, y] = True
            self.scores[y] = growth.score

    def store(self, node, growth):
        """Keep what a node grew."""
        self.sensitive[self.growths[node].sensitive, node] = False
        self.growths[node] = growth
        self.sensitive[growth.sensitive, node] = True
        self.scores[node] = growth.score

    def toggled(self, node) -> dict[int, Growth]:
        """What others would grow if the node changed sides with them."""
        result = {}
        for y in np.flatnonzero(self.sensitive[node]).tolist():
            predecessors = self.position < self.position[y]
            predecessors[node] = not predecessors[node]
            result[y] = self.trees[y].grow(predecessors)
        return result

    def improve(self, node, tol) -> float:
        """Move a node to its best place; returns the gain, 0 if it stays."""
        here = int(self.position[node])
        others = np.delete(self.order, here)
        was_after = self.position > here
        toggled = self.toggled(node)
        changed = self.scores.copy()
        changed[list(toggled)] = [growth.score for growth in toggled.values()]
        with_node = np.where(was_after, self.scores, changed)[others]
        without_node = np.where(was_after, changed, self.scores)[others]
        # Score of all others with the node at each place.
        rest = np.zeros(len(self.order))
        rest[1:] = np.cumsum(without_node)
        rest[:-1] += np.cumsum(with_node[::-1])[::-1]
        before = rest[here] + self.scores[node]
        place, growth, total = self._best_place(
            node, others, rest, with_node != without_node, before
        )
        if growth is None or total - before <= tol:
            return 0.0
        self.order = np.insert(others, place, node)
        self.position[self.order] = np.arange(len(self.order))
        self.store(node, growth)
        is_after = self.position > place
        for y, grown in toggled.items():
            if was_after[y] != is_after[y]:
                self.store(y, grown)
        return float(total - before)

    def _best_place(self, node, others, rest, differs, before):
        """Where to put a node: place, what it grows there, score of the whole order.

        More predecessors rarely hurt, so of places that are the same to all others the
        last is taken; and the score with all others as predecessors bounds what the
        node can contribute anywhere. Both hold exactly if parents are chosen optimally
        and nearly so as they are grown.
        """
        low, high = self.place_range(node, others)
        places = np.append(np.flatnonzero(differs[low:high]) + low, high)
        places = places[np.argsort(-rest[places], kind="stable")].tolist()
        tree = self.trees[node]
        predecessors = np.ones(len(self.order), dtype=bool)
        predecessors[node] = False
        bound = tree.grow(predecessors).score
        best = int(self.position[node]), None, before
        for place in places:
            if rest[place] + bound <= best[2]:
                break
            predecessors[:] = False
            predecessors[others[:place]] = True
            growth = tree.grow(predecessors)
            if rest[place] + growth.score > best[2]:
                best = place, growth, rest[place] + growth.score
        return best

    def place_range(self, node, others) -> tuple[int, int]:
        """First and last place among the others that required edges allow."""
        parents = np.flatnonzero(self.required[others, node])
        children = np.flatnonzero(self.required[node, others])
        low = int(parents[-1]) + 1 if len(parents) else 0
        high = int(children[0]) if len(children) else len(others)
        return low, high

    @property
    def adjacency(self) -> np.ndarray:
        """The graph that the order stands for."""
        adjacency = np.zeros((len(self.order), len(self.order)), dtype=bool)
        for y, growth in enumerate(self.growths):
            adjacency[list(growth.parents), y] = True
        return adjacency

    def shuffled(self, rng, n_moves) -> np.ndarray:
        """The order with some nodes moved to random places."""
        order = self.order
        for node in rng.choice(len(order), size=n_moves, replace=False):
            others = order[order != node]
            low, high = self.place_range(node, others)
            order = np.insert(others, rng.randint(low, high + 1), node)
        return order


class _OrderSearch:
    """Passes over the nodes, polished by greedy moves."""

    def __init__(self, evaluator: LinearEvaluator, rules: Rules):
        self.evaluator = evaluator
        alone = [evaluator.family_score(x, ()) for x in range(evaluator.n_nodes)]
        self.tol = max(rules.tol, rounding_error(np.array(alone)))
        self.rules = replace(rules, tol=self.tol, progress=None)
        self.progress = rules.progress
        # Graphs of one class keep the same rules only if there are none.
        n_forbidden = rules.forbidden.sum()
        self.is_free = not rules.required.any() and n_forbidden == evaluator.n_nodes
        self.rng = check_random_state(rules.random_state)
        self.trees = [
            GrowShrinkTree(evaluator, child, rules)
            for child in range(evaluator.n_nodes)
        ]

    def settle(self, order, history) -> tuple[_OrderState, bool]:
        """Move nodes until no move improves the score; whether to stop."""
        state = _OrderState(self.trees, order, self.rules.required)
        for number in range(self.rules.max_iter):
            total = 0.0
            for node in self.rng.permutation(len(order)).tolist():
                gain = state.improve(node, self.tol)
                if gain:
                    total += gain
                    history.append((("move", node, int(state.position[node])), gain))
            if self.progress is not None and self.progress(
                f"pass {number + 1} over the nodes: gain {total:.4g}, score "
                f"{state.scores.sum():.8g}"
            ):
                return state, True
            if total <= self.tol:
                break
        return state, False

    def polish(self, adjacency) -> SearchResult:
        """Leave the corner in which moving one node at a time is stuck."""
        result = greedy_search(self.evaluator, self.rules, initial=adjacency)
        if self.is_free and len(adjacency) <= MAX_BACKWARD:
            back = backward_search(self.evaluator, result.adjacency, tol=self.tol)
            if back.score > result.score + self.tol:
                history = result.history + back.history
                return SearchResult(back.adjacency, back.score, history)
        return result

    def run(self, order) -> tuple[SearchResult, _OrderState, bool]:
        """Settle and polish in turn, until neither improves the score."""
        history: list = []
        state, stop = self.settle(order, history)
        best = SearchResult(state.adjacency, float(state.scores.sum()), history)
        while not stop:
            polished = self.polish(best.adjacency)
            if polished.score <= best.score + self.tol:
                break
            history += polished.history
            best = SearchResult(polished.adjacency, polished.score, history)
            moves: list = []
            again, stop = self.settle(topological_order(polished.adjacency), moves)
            score = float(again.scores.sum())
            if score <= best.score + self.tol:
                break
            history += moves
            state = again
            best = SearchResult(state.adjacency, score, history)
        return best, state, stop


def order_search(
    evaluator: LinearEvaluator,
    rules: Rules | None = None,
    *,
    initial=None,
    n_restarts=0,
) -> SearchResult:
    """Best-order score search with grow-shrink trees."""
    n = evaluator.n_nodes
    rules = Rules.free(n) if rules is None else rules
    search = _OrderSearch(evaluator, rules)
    start = rules.required if initial is None else initial | rules.required
    best, state, stop = search.run(topological_order(start))
    for _ in range(n_restarts if n > 1 else 0):
        if stop:
            break
        order = state.shuffled(search.rng, max(1, int(RESTART_SHARE * n)))
        found, new_state, stop = search.run(order)
        if found.score > best.score + search.tol:
            history = [*best.history, (("restart",), 0.0), *found.history]
            best = SearchResult(found.adjacency, found.score, history)
            state = new_state
    return best
