"""Scores of linear Gaussian families from the covariance matrix alone.

Regression of a node on its parents, and of the residual on any further candidate, are
functions of the covariance matrix, so that one scan scores all candidates of a family
without touching the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._graphs import parents_of
from .._statistics.statistics import LOG_2_PI, NOISE_SHARE, GaussianStatistics
from .moves import Family, MoveEvaluator

# A candidate of which the parents leave less than this share of the variance is a
# linear function of them and has nothing to add.
COLLINEAR = 1e-8
# Added to the diagonal of the parents' correlations where they are singular: parents
# may be required although they are collinear.
JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class Scan:
    """Regressions of a node, and of all others, on the node's parents.

    Everything is in units of standard deviations.

    unexplained: share of the node's variance that its parents leave
    covariance: partial covariance of each candidate with the node given the parents:
        the inner product with the ideal parent, equation 8 of Elidan et al. (2007),
        (n_nodes,)
    variance: partial variance of each candidate given the parents, (n_nodes,)
    coefficients: of the regression of each column on the parents, (n_parents, n_nodes)
    precision: diagonal of the inverse of the parents' correlations, (n_parents,)
    """

    unexplained: float
    covariance: np.ndarray
    variance: np.ndarray
    coefficients: np.ndarray
    precision: np.ndarray

    @cached_property
    def after_addition(self) -> np.ndarray:
        """Unexplained share with each candidate as one more parent."""
        return _explain(self.unexplained, self.covariance, self.variance)

    def after_deletion(self, child: int) -> np.ndarray:
        """Unexplained share without each of the parents."""
        return self.unexplained + self.coefficients[:, child] ** 2 / self.precision

    def after_replacement(self, child: int) -> np.ndarray:
        """Unexplained share with each parent replaced by each candidate.

        What a parent explained of the node and of the candidates is given back, then
        the candidate is added.
        """
        own = self.coefficients[:, child, None]
        scaled = self.coefficients / self.precision[:, None]
        return _explain(
            self.after_deletion(child)[:, None],
            self.covariance + scaled * own,
            self.variance + scaled * self.coefficients,
        )


def _explain(unexplained, covariance, variance):
    """Subtract what a candidate explains; a collinear one explains nothing."""
    usable = variance > COLLINEAR
    explained = covariance**2 / np.where(usable, variance, 1.0)
    return np.maximum(unexplained - np.where(usable, explained, 0.0), 0.0)


def _invert(matrix) -> np.ndarray:
    """Invert correlations of parents, which may be singular."""
    try:
        inverse = np.linalg.inv(matrix)
        # Of more than this nothing but rounding errors would be left.
        if np.abs(inverse).max() < 0.1 / JITTER:
            return inverse
    except np.linalg.LinAlgError:
        pass
    return np.linalg.inv(matrix + JITTER * np.eye(len(matrix)))


def scan_family(correlation, child: int, parents: tuple[int, ...]) -> Scan:
    """Regress everything on the parents of a node."""
    variance = correlation.diagonal()
    if not parents:
        nothing = np.empty((0, len(correlation)))
        return Scan(variance[child], correlation[child], variance, nothing, np.empty(0))
    index = list(parents)
    rows = correlation[index]
    inverse = _invert(rows[:, index])
    coefficients = inverse @ rows
    left = variance - np.einsum("ij,ij->j", rows, coefficients)
    covariance = correlation[child] - rows[:, child] @ coefficients
    return Scan(
        max(left[child], 0.0), covariance, left, coefficients, inverse.diagonal()
    )


def regress(correlation, child: int, parents: tuple[int, ...]):
    """Unexplained share of a node, and without each of its parents.

    The part of a scan that shrinking parents needs.

    correlation (n_nodes, n_nodes) -> after_deletion (n_parents,).
    """
    if not parents:
        return correlation[child, child], np.empty(0)
    index = list(parents)
    rows = correlation[index]
    inverse = _invert(rows[:, index])
    common = rows[:, child]
    beta = inverse @ common
    unexplained = max(correlation[child, child] - float(beta @ common), 0.0)
    return unexplained, unexplained + beta**2 / inverse.diagonal()


class LinearEvaluator(MoveEvaluator):
    """Exact scores of all moves of linear Gaussian families.

    parameter_cost, edge_cost: as in `set_costs`
    n_candidates: score only so many candidates per family, those most similar to the
        ideal parent. The scan costs the same, so this is for comparison only. C1
        and C2 rank candidates alike, by their correlation with the ideal parent. None
        scores all
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
        self.set_costs(parameter_cost, edge_cost)
        self.n_candidates = n_candidates
        self.is_exhaustive = n_candidates is None
        self.n_evaluated = self.n_considered = 0
        self.correlation = statistics.correlation
        self._log_variance = 2.0 * np.log(statistics.scale)
        self._scans: dict[int, tuple[tuple[int, ...], Scan]] = {}

    def set_costs(self, parameter_cost: float | None, edge_cost) -> None:
        """Prices of parameters, and of edges on top."""
        super().set_costs(parameter_cost, edge_cost)
        # Of all parents of a node together, by their number.
        n_parents = np.arange(self.n_nodes + 1)
        self.parent_costs = self.parameter_cost * n_parents + self.edge_costs

    def scan(self, child: int, parents: tuple[int, ...]) -> Scan:
        """Scan of a family; the last one of each node is kept."""
        known = self._scans.get(child)
        if known is None or known[0] != parents:
            known = parents, scan_family(self.correlation, child, parents)
            self._scans[child] = known
        return known[1]

    def log_likelihood(self, child, unexplained):
        """Log-likelihood of a node of which so much is left unexplained."""
        noise = np.maximum(unexplained, NOISE_SHARE)
        fit = np.log(noise)
        fit += unexplained / noise
        fit += LOG_2_PI + self._log_variance[child]
        return (-0.5 * self.weight) * fit

    def score(self, child, n_parents, unexplained):
        """Log-likelihood minus the penalty of weights, intercept and variance."""
        cost = 2 * self.parameter_cost + self.parent_costs[n_parents]
        return self.log_likelihood(child, unexplained) - cost

    def family_score(self, child: int, parents: tuple[int, ...]) -> float:
        """Score of one family."""
        unexplained = self.scan(child, parents).unexplained
        return float(self.score(child, len(parents), unexplained))

    def graph_score(self, adjacency) -> float:
        """Score of a graph: the sum over its families."""
        return sum(
            self.family_score(child, parents_of(adjacency, child))
            for child in range(self.n_nodes)
        )

    def add_scores(self, families: Sequence[Family], allowed) -> np.ndarray:
        """Scores of families with one more parent."""
        scores = np.empty((len(families), self.n_nodes))
        similarity = np.empty((len(families), self.n_nodes))
        for row, (child, parents) in enumerate(families):
            scan = self.scan(child, parents)
            scores[row] = self.score(child, len(parents) + 1, scan.after_addition)
            np.abs(scan.covariance, out=similarity[row])
        scores[~self._select(similarity, allowed)] = -np.inf
        return scores

    def delete_scores(self, child: int, parents: tuple[int, ...]) -> np.ndarray:
        """Scores of a family without each of its parents."""
        self.n_evaluated += len(parents)
        self.n_considered += len(parents)
        unexplained = self.scan(child, parents).after_deletion(child)
        return self.score(child, len(parents) - 1, unexplained)

    def replace_scores(self, families: Sequence[Family], allowed) -> list[np.ndarray]:
        """Scores of families with one parent replaced by a candidate."""
        result = []
        for row, (child, parents) in enumerate(families):
            if not parents:
                result.append(np.empty((0, self.n_nodes)))
                continue
            scan = self.scan(child, parents)
            scores = self.score(child, len(parents), scan.after_replacement(child))
            # The replace profile of definition 4.1: the other parents keep their
            # weights.
            own = scan.coefficients[:, child, None]
            profile = scan.covariance + own * self.correlation[list(parents)]
            free = np.broadcast_to(allowed[row], scores.shape)
            scores[~self._select(np.abs(profile), free)] = -np.inf
            result.append(scores)
        return result

    def reverse_scores(self, families: Sequence[Family], children) -> np.ndarray:
        """Scores of families with one of their children as one more parent."""
        scores = np.full((len(families), self.n_nodes), -np.inf)
        for row, (child, parents) in enumerate(families):
            new = children[row]
            self.n_evaluated += int(new.sum())
            self.n_considered += int(new.sum())
            unexplained = self.scan(child, parents).after_addition[new]
            scores[row, new] = self.score(child, len(parents) + 1, unexplained)
        return scores

    def _select(self, similarity, allowed) -> np.ndarray:
        """Mask of the candidates to score: all, or the most similar ones of each row.

        similarity, allowed (n_rows, n_nodes) -> kept (n_rows, n_nodes).
        """
        kept = allowed
        n_candidates = self.n_candidates
        if n_candidates is not None and n_candidates < self.n_nodes:
            masked = np.where(allowed, -similarity, 1.0)
            best = masked.argpartition(n_candidates - 1, axis=1)[:, :n_candidates]
            kept = np.zeros(allowed.shape, dtype=bool)
            kept[np.arange(len(best))[:, None], best] = True
            kept &= allowed
        self.n_considered += int(np.count_nonzero(allowed))
        self.n_evaluated += int(np.count_nonzero(kept))
        return kept


def fit_linear(statistics: GaussianStatistics, adjacency):
    """Maximum-likelihood parameters of a linear network of known structure.

    adjacency (n_nodes, n_nodes) -> weights (n_nodes, n_nodes), intercept (n_nodes,),
    noise_variance (n_nodes,).
    """
    scale = statistics.scale
    correlation = statistics.covariance / np.outer(scale, scale)
    weights = np.zeros_like(correlation)
    noise = statistics.variance
    for child in np.flatnonzero(adjacency.any(axis=0)):
        parents = np.flatnonzero(adjacency[:, child])
        inverse = _invert(correlation[np.ix_(parents, parents)])
        beta = inverse @ correlation[parents, child]
        weights[parents, child] = beta * scale[child] / scale[parents]
        left = correlation[child, child] - beta @ correlation[parents, child]
        noise[child] = left * scale[child] ** 2
    intercept = statistics.mean - statistics.mean @ weights
    return weights, intercept, np.maximum(noise, statistics.noise_floor)
