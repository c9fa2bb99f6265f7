"""Grow-shrink trees (Andrews et al., 2023): parents among any set of predecessors."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from ..._graphs import parents_of
from .._scores.linear import COLLINEAR, LinearEvaluator, regress
from .._scores.moves import Rules, with_parent, without_parent
from .._statistics.statistics import NOISE_SHARE

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

    candidates, gains: those that improve it at some price, and minus what each of them
        explains of what the parents leave unexplained
    ranked: those that improve it at the present price, and their bits
    """

    __slots__ = (
        "bits",
        "candidates",
        "gains",
        "parents",
        "ranked",
        "regression",
        "shrunk",
        "steps",
    )

    def __init__(self, parents: tuple[int, ...], candidates: list[int], gains):
        self.parents = parents
        self.candidates, self.gains = candidates, gains
        self.regression: tuple[float, np.ndarray] | None = None
        self.steps: dict[int, _Step] = {}

    def price(self, worth: float) -> None:
        """Keep the candidates that leave at most that share unexplained."""
        self.ranked = self.candidates[: bisect_left(self.gains, worth - 1.0)]
        self.bits = sum([1 << node for node in self.ranked])
        self.shrunk: tuple[float, tuple[int, ...]] | None = None


class _Regression:
    """Partial variances and covariances that are updated parent by parent.

    A Cholesky factorisation of the parents' correlations, one row at a time, carried
    along for all columns.
    """

    def __init__(self, correlation, child):
        self.correlation = correlation
        self.child = child
        self.parents: tuple[int, ...] = ()
        self.rows = np.empty((8, len(correlation)))
        self.n_rows = 0
        self.variance = correlation.diagonal().copy()
        self.covariance = correlation[child].copy()

    def add(self, parent: int) -> None:
        """Condition on one more parent."""
        self.parents = with_parent(self.parents, parent)
        left = self.variance[parent]
        if left <= COLLINEAR:
            return  # a required parent that says nothing new
        if self.n_rows == len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        before = self.rows[: self.n_rows]
        row = self.correlation[parent] - before[:, parent] @ before
        row /= np.sqrt(left)
        self.rows[self.n_rows] = row
        self.n_rows += 1
        self.variance -= row * row
        self.covariance -= row * row[self.child]


class GrowShrinkTree:
    """Grown and shrunk sets of parents of one node, remembered.

    Sets that are reached in different ways are one, which makes the tree a graph. Sets
    of predecessors are the bits of a number, which cost less to look at than arrays.
    """

    def __init__(self, evaluator: LinearEvaluator, child: int, rules: Rules):
        self.evaluator = evaluator
        self.child = child
        self.allowed = ~(rules.forbidden[:, child] | rules.required[:, child])
        self.required = parents_of(rules.required, child)
        self.n_allowed = int(self.allowed.sum())
        self.max_parents = max(rules.max_parents, len(self.required))
        self.limit = max(REMEMBERED // len(self.allowed), REMEMBERED_EACH)
        self._known: dict[tuple[int, ...], _Step] = {}
        self._regression = _Regression(evaluator.correlation, child)
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
            self._root = self._step(self.required)
        for step in (self._root, *self._known.values()):
            step.price(self._worth(step.parents))

    def _worth(self, parents) -> float:
        """What one more parent must leave unexplained at most; 0 without room."""
        return self.worth[len(parents)] if len(parents) < self.max_parents else 0.0

    def grow(self, predecessors: int) -> Growth:
        """Grow parents one by one, the best first, then shrink them."""
        step, sensitive = self._root, 0
        while step.bits & predecessors:
            for chosen in step.ranked:
                bit = 1 << chosen
                sensitive |= bit
                if predecessors & bit:
                    break
            following = step.steps.get(chosen)
            if following is None:
                following = self._step(with_parent(step.parents, chosen))
                step.steps[chosen] = following
            step = following
        if step.shrunk is None:
            step.shrunk = self._shrink(step)
        return Growth(*step.shrunk, sensitive | step.bits)

    def _step(self, parents) -> _Step:
        """The step of a set of parents."""
        known = self._known.get(parents)
        if known is None:
            known = _Step(parents, *self._rank(self._condition(parents)))
            known.price(self._worth(parents))
            if len(self._known) >= self.limit:
                self._known.clear()
                self._root.steps.clear()
            self._known[parents] = known
        return known

    def _condition(self, parents) -> _Regression:
        """Regression on the parents, from the last one if that had fewer."""
        if not set(self._regression.parents) <= set(parents):
            self._regression = _Regression(self.evaluator.correlation, self.child)
        for parent in parents:
            if parent not in self._regression.parents:
                self._regression.add(parent)
        return self._regression

    def _rank(self, regression) -> tuple[list[int], list[float]]:
        """Candidates that may improve the score of a set of parents, best first."""
        parents = regression.parents
        unexplained = regression.variance[self.child]
        full = len(parents) >= self.max_parents
        if full or self._loosest * unexplained <= NOISE_SHARE:
            return [], []
        count = self.n_allowed - len(parents) + len(self.required)
        self.evaluator.n_evaluated += count
        self.evaluator.n_considered += count
        variance = regression.variance
        usable = variance > COLLINEAR
        usable &= self.allowed
        gains = regression.covariance**2
        gains /= np.maximum(variance, COLLINEAR) * -unexplained
        usable &= gains < self._loosest - 1.0
        found = usable.nonzero()[0]
        gains = gains[found]
        order = gains.argsort()
        return found[order].tolist(), gains[order].tolist()

    def _shrink(self, step: _Step) -> tuple[float, tuple[int, ...]]:
        """Drop parents as long as that improves the score; score, parents."""
        evaluator, kept = self.evaluator, step.parents
        if step.regression is None:
            step.regression = regress(evaluator.correlation, self.child, kept)
        unexplained, without = step.regression
        while len(kept) > len(self.required):
            if self.required:
                fixed = [parent in self.required for parent in kept]
                without = np.where(fixed, np.inf, without)
            place = int(without.argmin())
            worth = self.worth[len(kept) - 1]
            if max(unexplained, NOISE_SHARE) < worth * max(without[place], NOISE_SHARE):
                break
            kept = without_parent(kept, kept[place])
            unexplained, without = regress(evaluator.correlation, self.child, kept)
        return evaluator.score(self.child, len(kept), unexplained), kept
