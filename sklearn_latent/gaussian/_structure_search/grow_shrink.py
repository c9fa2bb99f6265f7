"""Grow-shrink trees (Andrews et al., 2023): parents among any set of predecessors."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from ..._core.graphs import parents_of
from .._scores.linear import COLLINEAR, LinearEvaluator, Partial, partial_out, regress
from .._scores.moves import Rules, with_parent, without_parent
from .._statistics import NOISE_SHARE

# Sets of parents that are remembered in all, and at least for one node. Forgetting them
# costs time only.
REMEMBERED = 1_000_000
REMEMBERED_EACH = 1_000


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

    members: the parents as bits
    candidates, gains: those that improve it at some price, and minus what each of them
        explains of what the parents leave unexplained
    regression: unexplained share of the node, and without each of the parents
    ranked, bits: those that improve it at the prices that `worth` stands for
    shrunk: score and parents that are left at these prices, once they are asked for
    """

    __slots__ = (
        "bits",
        "candidates",
        "gains",
        "members",
        "parents",
        "ranked",
        "regression",
        "shrunk",
        "worth",
    )

    def __init__(self, parents: tuple[int, ...], candidates, gains, regression):
        self.parents = parents
        self.members = _as_bits(parents)
        self.candidates, self.gains = candidates, gains
        self.regression = regression
        self.worth: list[float] | None = None

    def price(self, worth: list[float]) -> None:
        """Keep the candidates that leave little enough unexplained."""
        self.worth = worth
        self.ranked = self.candidates
        if self.ranked:
            least = worth[len(self.parents)] - 1.0
            self.ranked = self.candidates[: bisect_left(self.gains, least)]
        self.bits = _as_bits(self.ranked)
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
        self.evaluator = evaluator
        self.child = child
        allowed = ~(rules.forbidden[:, child] | rules.required[:, child])
        # What the parents must leave of a candidate's variance.
        self.least_left = np.where(allowed, COLLINEAR, np.inf)
        self.n_allowed = int(allowed.sum())
        self.required = parents_of(rules.required, child)
        self.max_parents = max(rules.max_parents, len(self.required))
        self.limit = max(REMEMBERED // evaluator.n_nodes, REMEMBERED_EACH)
        self._known: dict[int, _Step] = {}
        self._loosest = -1.0
        self.price()

    def price(self) -> None:
        """Take the prices of the evaluator, which may have changed."""
        evaluator = self.evaluator
        # What one more parent must leave unexplained at most to be worth its cost, by
        # the number of those that are there.
        costs = np.diff(evaluator.parent_costs)
        self.worth = np.exp(-2.0 * costs / evaluator.weight).tolist()
        if max(self.worth) > self._loosest:
            # Edges cost at least a parameter, whatever their number.
            least = min(evaluator.parameter_cost, *costs)
            self._loosest = float(np.exp(-2.0 * least / evaluator.weight))
            self._known.clear()
            self._root = self._make_step(self.required)

    def grow(self, predecessors: int) -> Growth:
        """Grow parents one by one, the best first, then shrink them."""
        step, sensitive = self._root, 0
        while True:
            if step.worth is not self.worth:
                step.price(self.worth)
            if not step.bits & predecessors:
                break
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
        regression = partial.unexplained(self.child)
        step = _Step(parents, *self._rank(parents, partial), regression)
        if len(self._known) >= self.limit:
            self._known.clear()
        self._known[step.members] = step
        return step

    def _rank(self, parents, partial: Partial) -> tuple[list[int], list[float]]:
        """Candidates that may improve the score of a set of parents, best first."""
        variance = partial.variance
        unexplained = variance[self.child]
        full = len(parents) >= self.max_parents
        if full or self._loosest * unexplained <= NOISE_SHARE:
            return [], []
        count = self.n_allowed - len(parents) + len(self.required)
        self.evaluator.n_evaluated += count
        self.evaluator.n_considered += count
        usable = variance > self.least_left
        gains = partial.covariance**2
        gains /= np.maximum(variance, COLLINEAR) * -unexplained
        usable &= gains < self._loosest - 1.0
        found = usable.nonzero()[0]
        if not len(found):
            return [], []
        gains = gains[found]
        order = gains.argsort()
        return found[order].tolist(), gains[order].tolist()

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
            unexplained, without = regress(evaluator.correlation, self.child, kept)
        return evaluator.score(self.child, len(kept), unexplained), kept
