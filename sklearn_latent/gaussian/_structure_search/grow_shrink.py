"""Grow-shrink trees (Andrews et al., 2023): parents among any set of predecessors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._graphs import parents_of
from .._scores.linear import COLLINEAR, LinearEvaluator, regress
from .._scores.moves import Rules, with_parent, without_parent
from .._statistics.statistics import NOISE_SHARE

# Sets of parents that are remembered in all, and at least for one node. Forgetting them
# costs time only.
REMEMBERED = 1_000_000
REMEMBERED_EACH = 1_000


@dataclass(frozen=True, eq=False)
class Growth:
    """Parents that a node grew from its predecessors, and the score of the family.

    sensitive: the nodes whose presence among the predecessors matters: those that were
        chosen on the way, and those that would have been chosen had they been there
    """

    score: float
    parents: tuple[int, ...]
    sensitive: np.ndarray


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

    Sets that are reached in different ways are one, which makes the tree a graph.
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
        self._ranked: dict[tuple[int, ...], np.ndarray] = {}
        self._shrunk: dict[tuple[int, ...], tuple[float, tuple[int, ...]]] = {}

    def grow(self, predecessors) -> Growth:
        """Grow parents one by one, the best first, then shrink them."""
        parents, regression = self.required, None
        sensitive = []
        while True:
            ranked = self._ranked.get(parents)
            if ranked is None:
                regression = self._condition(regression, parents)
                ranked = self._rank(regression)
            if not len(ranked):
                break
            present = predecessors[ranked]
            first = int(present.argmax())
            if not present[first]:
                sensitive.append(ranked)
                break
            sensitive.append(ranked[: first + 1])
            chosen = int(ranked[first])
            if regression is not None and regression.parents == parents:
                regression.add(chosen)
            parents = with_parent(parents, chosen)
        score, shrunk = self._shrink(parents)
        if len(sensitive) == 1:
            return Growth(score, shrunk, sensitive[0])
        return Growth(score, shrunk, np.concatenate(sensitive) if sensitive else ranked)

    def _condition(self, regression, parents) -> _Regression:
        """Regression on the parents; the one at hand if it is that."""
        if regression is None or regression.parents != parents:
            regression = _Regression(self.evaluator.correlation, self.child)
            for parent in parents:
                regression.add(parent)
        return regression

    def _rank(self, regression) -> np.ndarray:
        """Candidates that improve the score of a set of parents, best first."""
        parents = regression.parents
        unexplained = regression.variance[self.child]
        worth = self.worth[len(parents)]
        if len(parents) >= self.max_parents or worth * unexplained <= NOISE_SHARE:
            ranked = np.empty(0, dtype=np.int32)
        else:
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
            ranked = found[explained[found].argsort()[::-1]].astype(np.int32)
        if len(self._ranked) >= self.limit:
            self._ranked.clear()
        self._ranked[parents] = ranked
        return ranked

    def _shrink(self, parents) -> tuple[float, tuple[int, ...]]:
        """Drop parents as long as that improves the score."""
        known = self._shrunk.get(parents)
        if known is not None:
            return known
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
        if len(self._shrunk) >= self.limit:
            self._shrunk.clear()
        score = float(evaluator.score(self.child, len(kept), unexplained))
        self._shrunk[parents] = score, kept
        return score, kept
