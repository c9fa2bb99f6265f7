"""Best-order search (Andrews et al., 2023): orders of the nodes instead of graphs.

Given an order, every node grows and shrinks its parents among its predecessors. What it
grows from any set of them is remembered in a tree. Moving one node to its best place
changes few of the others, and which those are is known from the way each of them grew
its parents, so that a move costs a handful of growths instead of one per node and
place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._core.graphs import parents_of, topological_order
from .._core.validation import check_random_state
from ._backward import backward_search
from ._linear_scores import COLLINEAR, LinearEvaluator, Partial, partial_out
from ._rules import (
    TIE,
    Rules,
    SearchResult,
    least_gain,
    with_parent,
    without_parent,
)
from ._statistics import NOISE_SHARE

# Nodes that a restart moves to random places, as a share of all, and restarts in a row
# that find nothing better before the search ends. On 16 scale-free graphs of 50 nodes
# the mean SHD is 29.1; with a tenth of the nodes and three restarts it is 35.5, and 9
# graphs instead of 3 score worse than the true one.
RESTART_SHARE = 0.3
PATIENCE = 2
# Number of nodes up to which deletions are tried over equivalence classes.
MAX_BACKWARD = 300
# Sets of parents that are remembered for one node. Forgetting them costs time only.
REMEMBERED = 10_000


class Growth(NamedTuple):
    """Parents that a node grew from its predecessors, and the score of the family.

    sensitive: bits of the nodes whose presence among the predecessors matters: those
        that were chosen on the way, and those that would have been chosen had they been
        there
    """

    score: float
    parents: tuple[int, ...]
    sensitive: int


class _Step:
    """A set of parents, and the candidates that improve its score, the best first.

    members, bits: the parents, and these candidates, as bits
    regression: unexplained share of the node, and without each of the parents
    shrunk: score and parents that are left, once they are asked for
    """

    __slots__ = "bits", "members", "parents", "ranked", "regression", "shrunk"

    def __init__(self, parents: tuple[int, ...], ranked: list[int], regression):
        self.parents, self.ranked, self.regression = parents, ranked, regression
        self.members, self.bits = _as_bits(parents), _as_bits(ranked)
        self.shrunk: tuple[float, tuple[int, ...]] | None = None


def _as_bits(nodes) -> int:
    """A set of nodes as the bits of a number."""
    return sum([1 << node for node in nodes])


class GrowShrinkTree:
    """Grown and shrunk sets of parents of one node, remembered.

    Sets that are reached in different ways are one, which makes the tree a graph. Sets
    of predecessors are the bits of a number, which cost less to look at than arrays.
    """

    def __init__(self, evaluator: LinearEvaluator, child: int, rules: Rules):
        self.evaluator, self.child = evaluator, child
        allowed = ~(rules.forbidden[:, child] | rules.required[:, child])
        # What the parents must leave of a candidate's variance.
        self.least_left = np.where(allowed, COLLINEAR, np.inf)
        self.n_allowed = int(allowed.sum())
        self.required = parents_of(rules.required, child)
        self.max_parents = max(rules.max_parents, len(self.required))
        # What one more parent must leave unexplained at most to be worth its cost, by
        # the number of those that are there.
        costs = np.diff(evaluator.parent_costs)
        self.worth = np.exp(-2.0 * costs / evaluator.weight).tolist()
        self._known: dict[int, _Step] = {}
        self._root = self._make_step(self.required)

    def grow(self, predecessors: int) -> Growth:
        """Grow parents one by one, the best first, then shrink them."""
        step, sensitive = self._root, 0
        while step.bits & predecessors:
            for chosen in step.ranked:
                bit = 1 << chosen
                sensitive |= bit
                if predecessors & bit:
                    break
            known = self._known.get(step.members | bit)
            step = known or self._make_step(with_parent(step.parents, chosen))
        if step.shrunk is None:
            step.shrunk = self._shrink(step)
        return Growth(*step.shrunk, sensitive | step.bits)

    def _make_step(self, parents) -> _Step:
        """Regress on a set of parents, rank candidates, and remember both."""
        partial = partial_out(self.evaluator.correlation, self.child, parents)
        ranked = self._rank(parents, partial)
        step = _Step(parents, ranked, partial.unexplained(self.child))
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[step.members] = step
        return step

    def _rank(self, parents, partial: Partial) -> list[int]:
        """Candidates that improve the score of a set of parents, best first."""
        unexplained = partial.variance[self.child]
        if len(parents) >= self.max_parents:
            return []
        worth = self.worth[len(parents)]
        if worth * unexplained <= NOISE_SHARE:
            return []
        count = self.n_allowed - len(parents) + len(self.required)
        self.evaluator.n_evaluated += count
        self.evaluator.n_considered += count
        usable = partial.variance > self.least_left
        gains = partial.covariance**2
        gains /= np.maximum(partial.variance, COLLINEAR) * -unexplained
        usable &= gains < worth - 1.0
        found = usable.nonzero()[0]
        return found[gains[found].argsort()].tolist()

    def _shrink(self, step: _Step) -> tuple[float, tuple[int, ...]]:
        """Drop parents as long as that improves the score; score, parents."""
        evaluator, kept = self.evaluator, step.parents
        unexplained, without = step.regression
        while len(kept) > len(self.required):
            if self.required:
                fixed = [parent in self.required for parent in kept]
                without = np.where(fixed, np.inf, without).tolist()
            least = min(without)
            worth = self.worth[len(kept) - 1]
            if max(unexplained, NOISE_SHARE) < worth * max(least, NOISE_SHARE):
                break
            kept = without_parent(kept, kept[without.index(least)])
            partial = partial_out(evaluator.correlation, self.child, kept)
            unexplained, without = partial.unexplained(self.child)
        return evaluator.score(self.child, len(kept), unexplained), kept


class _OrderState:
    """An order, and what every node grew from its predecessors.

    before: bits of the first k nodes of the order, for all k
    """

    def __init__(self, trees, order, required):
        self.trees = trees
        self.required = required
        self.is_bound = bool(required.any())
        self.order = [int(node) for node in order]
        self.position = [0] * len(self.order)
        self.before = [0] * (len(self.order) + 1)
        self._number(0, len(self.order))
        self.growths: list[Growth] = [
            tree.grow(self.before[place])
            for tree, place in zip(trees, self.position, strict=True)
        ]

    def _number(self, first, last):
        """Renew positions and predecessors of a part of the order."""
        for place in range(first, last):
            node = self.order[place]
            self.position[node] = place
            self.before[place + 1] = self.before[place] | (1 << node)

    @property
    def score(self) -> float:
        """Score of the order."""
        return float(sum(growth.score for growth in self.growths))

    def toggled(self, node) -> dict[int, Growth]:
        """What others would grow if the node changed sides with them."""
        bit = 1 << node
        return {
            y: self.trees[y].grow(self.before[self.position[y]] ^ bit)
            for y, growth in enumerate(self.growths)
            if growth.sensitive & bit
        }

    def improve(self, node, tol) -> float:
        """Move a node to its best place; returns the gain, 0 if it stays."""
        here = self.position[node]
        toggled = self.toggled(node)
        # Places of the others once the node is taken out, and what each of them gains.
        gains = []
        for y, growth in toggled.items():
            place = self.position[y]
            change = growth.score - self.growths[y].score
            gains.append((place - (place > here), change))
        found = self._best_place(node, here, sorted(gains), tol)
        if found is None:
            return 0.0
        place, grown, gain = found
        self.order.insert(place, self.order.pop(here))
        low, high = min(here, place), max(here, place)
        for y, growth in toggled.items():
            if low <= self.position[y] <= high:
                self.growths[y] = growth
        self.growths[node] = grown
        self._number(low, high + 1)
        return gain

    def _best_place(self, node, here, gains, tol) -> tuple[int, Growth, float] | None:
        """Where to put a node: place, what it grows there, gain of the whole order.

        None if no place gains more than `tol`.

        More predecessors rarely hurt, so of places that are the same to all others the
        last is taken; and the score with all others as predecessors bounds what the
        node can contribute anywhere. Both hold exactly if parents are chosen optimally
        and nearly so as they are grown.
        """
        low, high = self.place_range(node)
        # Moved there, the node changes sides with all others on the way.
        changes = {}
        total = -sum([gain for place, gain in gains if place < here])
        for place, gain in gains:
            if place >= high:
                break
            if gain and place >= low:
                changes[place] = total if place > here else -total
            total += gain
        changes[high] = total
        places = sorted(changes, key=lambda place: -changes[place])
        tree, bit, score = self.trees[node], 1 << node, self.growths[node].score
        bound = tree.grow(self.before[-1] ^ bit).score - score
        floor, found = tol, []
        for place in places:
            if changes[place] + bound <= floor:
                break
            growth = tree.grow(self.before[place + (place > here)] & ~bit)
            gain = changes[place] + growth.score - score
            if gain > floor:
                found.append((place, growth, gain))
                floor = max(floor, gain - TIE)
        return min((entry for entry in found if entry[2] > floor), default=None)

    def place_range(self, node) -> tuple[int, int]:
        """First and last place among the others that required edges allow."""
        last = len(self.order) - 1
        if not self.is_bound:
            return 0, last
        here = self.position[node]
        parents = [self.position[y] for y in parents_of(self.required, node)]
        children = [self.position[y] for y in parents_of(self.required.T, node)]
        low = max((place - (place > here) + 1 for place in parents), default=0)
        return low, min((place - (place > here) for place in children), default=last)

    @property
    def adjacency(self) -> np.ndarray:
        """The graph that the order stands for."""
        adjacency = np.zeros((len(self.order), len(self.order)), dtype=bool)
        for y, growth in enumerate(self.growths):
            adjacency[list(growth.parents), y] = True
        return adjacency

    def shuffled(self, rng, n_moves) -> list[int]:
        """The order with some nodes moved to random places."""
        here, n = self.order, len(self.order)
        for node in rng.choice(n, size=n_moves, replace=False).tolist():
            low, high = self.place_range(node)
            self.order = [other for other in self.order if other != node]
            self.order.insert(rng.randint(low, high + 1), node)
            self._number(0, n)
        shuffled, self.order = self.order, here
        self._number(0, n)
        return shuffled


def _settle(state: _OrderState, rules: Rules, rng, history: list) -> bool:
    """Move nodes until no move improves the score; whether to stop."""
    # How many moves there were when a node was last found to be in its best place.
    settled = [-1] * len(state.order)
    n_moves = 0
    for number in range(rules.max_iter):
        total = 0.0
        for node in rng.permutation(len(state.order)).tolist():
            if settled[node] == n_moves:
                continue
            gain = state.improve(node, rules.tol)
            if gain:
                total += gain
                n_moves += 1
                history.append((("move", node, state.position[node]), gain))
            else:
                settled[node] = n_moves
        if rules.progress is not None and rules.progress(
            f"pass {number + 1} over the nodes: gain {total:.4g}, score "
            f"{state.score:.8g}"
        ):
            return True
        if total <= rules.tol:
            break
    return False


def order_search(
    evaluator: LinearEvaluator,
    rules: Rules | None = None,
    *,
    initial=None,
    n_restarts=0,
) -> SearchResult:
    """Best-order score search with grow-shrink trees, then backward search."""
    n = evaluator.n_nodes
    rules = Rules.free(n) if rules is None else rules
    alone = [evaluator.family_score(node, ()) for node in range(n)]
    rules = replace(rules, tol=max(rules.tol, least_gain(np.array(alone))))
    trees = [GrowShrinkTree(evaluator, child, rules) for child in range(n)]
    rng = check_random_state(rules.random_state)
    start = rules.required if initial is None else initial | rules.required
    history: list = []
    best = _OrderState(trees, topological_order(start), rules.required)
    stop = _settle(best, rules, rng, history)
    n_failed = 0
    for _ in range(n_restarts if n > 1 else 0):
        if stop or n_failed == PATIENCE:
            break
        order = best.shuffled(rng, max(1, int(RESTART_SHARE * n)))
        moves: list = [(("restart",), 0.0)]
        trial = _OrderState(trees, order, rules.required)
        stop = _settle(trial, rules, rng, moves)
        n_failed += 1
        if trial.score > best.score + rules.tol:
            best, n_failed = trial, 0
            history += moves
    result = SearchResult(best.adjacency, best.score, history)
    # Graphs of one class keep the same rules only if there are none.
    is_free = not rules.required.any() and rules.forbidden.sum() == n
    if stop or not is_free or n > MAX_BACKWARD:
        return result
    return backward_search(evaluator, result, tol=rules.tol)
