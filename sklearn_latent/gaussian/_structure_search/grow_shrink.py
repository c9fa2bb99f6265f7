"""Grow-shrink trees (Andrews et al., 2023): parents among any set of predecessors."""

from __future__ import annotations

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
    """A set of parents, and the candidates that improve its score, the best first."""

    __slots__ = ("bits", "parents", "ranked", "shrunk", "steps")

    def __init__(self, parents: tuple[int, ...], ranked: list[int]):
        self.parents, self.ranked = parents, ranked
        self.bits = sum(1 << node for node in ranked)
        self.steps: dict[int, _Step] = {}
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
        # What one more parent must leave unexplained at most to be worth its cost, by
        # the number of those that are there.
        self.worth = np.exp(-2.0 * np.diff(evaluator.parent_costs) / evaluator.weight)
        self.limit = max(REMEMBERED // len(self.allowed), REMEMBERED_EACH)
        self._known: dict[tuple[int, ...], _Step] = {}
        self._regression = _Regression(evaluator.correlation, child)
        self._root = self._step(self.required)

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
            step.shrunk = self._shrink(step.parents)
        return Growth(*step.shrunk, sensitive | step.bits)

    def _step(self, parents) -> _Step:
        """The step of a set of parents."""
        known = self._known.get(parents)
        if known is None:
            known = _Step(parents, self._rank(self._condition(parents)))
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

    def _rank(self, regression) -> list[int]:
        """Candidates that improve the score of a set of parents, best first."""
        parents = regression.parents
        unexplained = regression.variance[self.child]
        worth = self.worth[len(parents)] if len(parents) < self.max_parents else 0.0
        if worth * unexplained <= NOISE_SHARE:
            return []
        count = self.n_allowed - len(parents) + len(self.required)
        self.evaluator.n_evaluated += count
        self.evaluator.n_considered += count
        variance = regression.variance
        usable = variance > COLLINEAR
        usable &= self.allowed
        explained = regression.covariance**2
        explained /= np.maximum(variance, COLLINEAR)
        usable &= explained > (1.0 - worth) * unexplained
        found = usable.nonzero()[0]
        return found[explained[found].argsort()[::-1]].tolist()

    def _shrink(self, parents) -> tuple[float, tuple[int, ...]]:
        """Drop parents as long as that improves the score; score, parents."""
        evaluator, kept = self.evaluator, parents
        unexplained, without = regress(evaluator.correlation, self.child, kept)
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
