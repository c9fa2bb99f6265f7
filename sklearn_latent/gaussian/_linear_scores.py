"""Scores of linear Gaussian families from the covariance matrix alone.

Regression of a node on its parents, and of the residual on any further candidate, are
functions of the covariance matrix, so that one scan scores all candidates of a family
without touching the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from .._core.graphs import parents_of
from ._families import Family
from ._rules import MoveEvaluator
from ._statistics import LOG_2_PI, NOISE_SHARE, GaussianStatistics

# A candidate of which the parents leave less than this share of the variance is a
# linear function of them and has nothing to add.
COLLINEAR = 1e-8
# Added to the diagonal of the parents' correlations where they are singular: parents
# may be required although they are collinear.
JITTER = 1e-10


def _invert(matrix) -> np.ndarray:
    """Invert correlations of parents, which may be singular."""
    # Matrices are small, and NumPy's own function takes three times as long.
    identity = _identity(len(matrix))
    inverse, failed = dposv(matrix, identity)[1:]
    # Of more than this nothing but rounding errors would be left.
    if not failed and max(inverse.diagonal().tolist()) < 0.1 / JITTER:
        return inverse
    return np.linalg.inv(matrix + JITTER * identity)


@lru_cache(maxsize=256)
def _identity(size: int) -> np.ndarray:
    """An identity matrix that is not to be changed."""
    return np.eye(size)


class Partial(NamedTuple):
    """Regressions of a node, and of all others, on the node's parents.

    coefficients: of the regression of each column on the parents, (n_parents, n_nodes)
    precision: diagonal of the inverse of the parents' correlations, (n_parents,)
    covariance, variance: what the parents leave of each column's covariance with the
        node, and of its variance, (n_nodes,)
    """

    coefficients: np.ndarray
    precision: np.ndarray
    covariance: np.ndarray
    variance: np.ndarray

    def unexplained(self, child: int) -> tuple[float, list[float]]:
        """Unexplained share of the node, and without each of its parents."""
        left = max(float(self.variance[child]), 0.0)
        own = zip(
            self.coefficients[:, child].tolist(), self.precision.tolist(), strict=True
        )
        return left, [left + beta * beta / precision for beta, precision in own]


def partial_out(correlation, child: int, parents: tuple[int, ...]) -> Partial:
    """Regress everything on the parents of a node."""
    own, diagonal = correlation[child], correlation.diagonal()
    if not parents:
        return Partial(np.empty((0, len(own))), np.empty(0), own, diagonal)
    if len(parents) == 1:
        # Most families have one parent, and need no inverse.
        row = correlation[parents[0]]
        size = row[parents[0]] or 1.0
        coefficient = row / size
        left = own - row[child] * coefficient, diagonal - row * coefficient
        return Partial(coefficient[None], np.array([1.0 / size]), *left)
    rows = correlation.take(parents, axis=0)
    inverse = _invert(rows.take(parents, axis=1))
    coefficients = inverse @ rows
    covariance = own - rows[:, child] @ coefficients
    rows *= coefficients
    variance = diagonal - np.add.reduce(rows)
    return Partial(coefficients, inverse.diagonal(), covariance, variance)


@dataclass(frozen=True, eq=False)
class Scan:
    """What the moves of a family would leave unexplained.

    Everything is in units of standard deviations.

    covariance: partial covariance of each candidate with the node given the parents:
        the inner product with the ideal parent, equation 8 of Elidan et al. (2007),
        (n_nodes + 1,)
    coefficients: of the regression of each column on the parents, (n_parents, n_nodes
        + 1)
    after: share of the node's variance that is unexplained after each move, (n_parents
        + 1, n_nodes + 1). Row 0 keeps all parents, row i + 1 drops parent i; column z
        adds node z, the last adds none
    """

    covariance: np.ndarray
    coefficients: np.ndarray
    after: np.ndarray


def extended_correlation(correlation) -> np.ndarray:
    """Correlations, and one more node that explains nothing: no move adds it."""
    return np.pad(correlation, (0, 1))


def scan_family(extended, child: int, parents: tuple[int, ...]) -> Scan:
    """Unexplained share of a node after each move that changes its parents.

    extended: correlations, and one more node that explains nothing, (n_nodes + 1, same)
    """
    coefficients, precision, *partial = partial_out(extended, child, parents)
    if not parents:
        after = _explain(partial[0][None], partial[1][None], child)
        return Scan(partial[0], coefficients, after)
    covariance, variance = table = np.empty((2, len(parents) + 1, len(extended)))
    covariance[0], variance[0] = partial
    # What a parent explained of the node and of the candidates is given back.
    scaled = coefficients / precision[:, None]
    np.multiply(scaled, coefficients[:, child, None], out=covariance[1:])
    np.multiply(scaled, coefficients, out=variance[1:])
    table[:, 1:] += table[:, :1]
    return Scan(partial[0], coefficients, _explain(covariance, variance, child))


def _explain(covariance, variance, child) -> np.ndarray:
    """Unexplained share with each candidate; a collinear one explains nothing."""
    usable = variance > COLLINEAR
    explained = covariance * covariance
    explained *= usable
    explained /= np.maximum(variance, COLLINEAR)
    np.subtract(variance[:, child, None], explained, out=explained)
    return np.maximum(explained, 0.0, out=explained)


class LinearEvaluator(MoveEvaluator):
    """Exact scores of all moves of linear Gaussian families.

    parameter_cost, edge_cost: as in `set_costs`
    n_candidates: score only so many additions, and replacements of each parent, those
        most similar to the ideal parent. The scan costs the same, so this is for
        comparison only. C1 and C2 rank candidates alike, by their correlation with the
        ideal parent
    """

    def __init__(
        self,
        statistics: GaussianStatistics,
        *,
        parameter_cost: float | None = None,
        edge_cost: float | np.ndarray = 0.0,
        n_candidates: int | None = None,
    ):
        self.weight = statistics.weight
        self.n_nodes = statistics.n_nodes
        self._log_variance = 2.0 * np.log(statistics.scale)
        self.set_costs(parameter_cost, edge_cost)
        self.n_candidates = n_candidates
        self.correlation = statistics.correlation
        self._extended = extended_correlation(self.correlation)
        # The last scan of each node: restarts, and searches at other prices, end with
        # much the same families.
        self._scans: dict[int, tuple[tuple[int, ...], Scan]] = {}

    def set_costs(self, parameter_cost: float | None, edge_cost) -> None:
        """Prices of parameters, and of edges on top."""
        super().set_costs(parameter_cost, edge_cost)
        # Of all parents of a node together, by their number.
        n_parents = np.arange(self.n_nodes + 1)
        self.parent_costs = self.parameter_cost * n_parents + self.edge_costs
        # Intercept and variance, and the likelihood of the units, by node.
        units = 0.5 * self.weight * (LOG_2_PI + self._log_variance)
        self._constants = (2 * self.parameter_cost + units).tolist()

    def score(self, child: int, n_parents: int, unexplained: float) -> float:
        """Score of a node of which parents leave so much unexplained.

        The log-likelihood minus the penalty of weights, intercept and variance.
        """
        noise = max(unexplained, NOISE_SHARE)
        fit = -0.5 * self.weight * (log(noise) + unexplained / noise)
        return fit - self._constants[child] - float(self.parent_costs[n_parents])

    def family_score(self, child: int, parents: tuple[int, ...]) -> float:
        """Score of one family."""
        partial = partial_out(self.correlation, child, parents)
        unexplained, _ = partial.unexplained(child)
        return self.score(child, len(parents), unexplained)

    def graph_score(self, adjacency) -> float:
        """Score of a graph: the sum over its families."""
        return sum(
            self.family_score(child, parents_of(adjacency, child))
            for child in range(self.n_nodes)
        )

    def move_scores(
        self, families: Sequence[Family], allowed, children, room: Sequence[bool]
    ) -> list[np.ndarray]:
        """Scores of families after each of their moves."""
        each = zip(families, allowed, children, room, strict=True)
        return [self._family_moves(*family, *own) for family, *own in each]

    def _family_moves(
        self, child: int, parents: tuple[int, ...], allowed, children, room: bool
    ) -> np.ndarray:
        """Scores of one family after each of its moves."""
        scan = self._scan(child, parents)
        scores = self._scores(child, len(parents), scan.after)
        kept = np.broadcast_to(allowed, (len(parents) + 1, self.n_nodes))
        self.n_considered += int(np.count_nonzero(kept[not room :])) + len(parents)
        if self.n_candidates is not None and self.n_candidates < self.n_nodes:
            kept = self._most_similar(child, parents, scan, allowed, self.n_candidates)
            kept[0] |= children
            self.n_considered += room * int(np.count_nonzero(children))
        self.n_evaluated += int(np.count_nonzero(kept[not room :])) + len(parents)
        scores[:, :-1][~kept] = -np.inf
        if not room:
            scores[0, :-1] = -np.inf
        return scores

    def _scan(self, child: int, parents: tuple[int, ...]) -> Scan:
        """Scan of a family, which does not depend on prices."""
        known = self._scans.get(child)
        if known is None or known[0] != parents:
            known = parents, scan_family(self._extended, child, parents)
            self._scans[child] = known
        return known[1]

    def _scores(self, child: int, n_parents: int, after) -> np.ndarray:
        """As `score`, of the shares that are unexplained after each move."""
        noise = np.maximum(after, NOISE_SHARE)
        scores = np.log(noise)
        scores += np.divide(after, noise, out=noise)
        scores *= -0.5 * self.weight
        scores -= self._constants[child]
        # One parent more, and without one of them; the last column adds none.
        scores[0, :-1] -= self.parent_costs[min(n_parents + 1, self.n_nodes)]
        scores[1:, :-1] -= self.parent_costs[n_parents]
        scores[0, -1] -= self.parent_costs[n_parents]
        scores[1:, -1] -= self.parent_costs[n_parents - 1]
        return scores

    def _most_similar(
        self, child: int, parents, scan: Scan, allowed, n_candidates: int
    ) -> np.ndarray:
        """Which candidates are the most similar to the ideal parent.

        One row for additions, one for the place of each parent: in the replace profile
        of definition 4.1 the other parents keep their weights. (n_parents + 1, n_nodes)
        """
        similarity = np.tile(scan.covariance[:-1], (len(parents) + 1, 1))
        weights = scan.coefficients[:, [child]]
        similarity[1:] += weights * self.correlation[list(parents)]
        similarity = np.where(allowed, np.abs(similarity), -1.0)
        best = similarity.argpartition(-n_candidates, axis=1)
        kept = np.zeros(similarity.shape, dtype=bool)
        np.put_along_axis(kept, best[:, -n_candidates:], True, axis=1)
        return kept & allowed


def fit_linear(statistics: GaussianStatistics, adjacency, floor=None):
    """Maximum-likelihood parameters of a linear network of known structure.

    floor: smallest noise variance; None is that of the statistics
    adjacency (n_nodes, n_nodes) -> weights (n_nodes, n_nodes), intercept (n_nodes,),
    noise_variance (n_nodes,).
    """
    scale = statistics.scale
    correlation = statistics.covariance / np.outer(scale, scale)
    weights = np.zeros_like(correlation)
    noise = statistics.variance
    for child in np.flatnonzero(adjacency.any(axis=0)):
        parents = np.flatnonzero(adjacency[:, child])
        rows = correlation[parents]
        common = rows[:, child]
        beta = _invert(rows[:, parents]) @ common
        weights[parents, child] = beta * scale[child] / scale[parents]
        left = correlation[child, child] - beta @ common
        noise[child] = left * scale[child] ** 2
    intercept = statistics.mean - statistics.mean @ weights
    floor = statistics.noise_floor if floor is None else floor
    return weights, intercept, np.maximum(noise, floor)
