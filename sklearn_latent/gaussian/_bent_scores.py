"""Scores of families whose parameters need optimisation.

Fitting a candidate costs a thousand times as much as looking at it. So for each family
all candidates are looked at, by their similarity to the ideal parent, and the few most
promising ones are fitted: Algorithm 2 of Elidan et al. (2007).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ._families import Family, FamilyFitter
from ._ideal_parent import IdealScan, TangentScan
from ._links import get_link
from ._noise import get_noise
from ._rules import MoveEvaluator, with_parent, without_parent

# By how many nats a gain may exceed what C3 expects. Deletions are all fitted, for
# reversals: the other half may gain more than an expansion around the present says.
# That is 5% more fits on six networks of 20 columns.
DOUBT = 3.0


class _Fit(NamedTuple):
    """A fitted family, in standard units."""

    log_likelihood: float
    order: tuple[int, ...]  # parents in the order of the weights
    weights: list[float]
    theta: np.ndarray
    variance: float


# A parent that goes, or None, and a node that comes, or None.
_Move = tuple[int | None, int | None]
# Where a fit begins: order of the parents, their weights, parameters of the link.
_Start = tuple[tuple[int, ...], Sequence[float], np.ndarray]


class NonlinearEvaluator(MoveEvaluator):
    """Scores of families of any link and noise, with or without pruning.

    centred_parents: as in `FamilyFitter`
    parameter_cost, edge_cost: as in `set_costs`
    n_candidates: how many additions and replacements, together, are fitted per family.
        None fits all, which is Algorithm 1
    similarity: how they are chosen, see `IdealScan` ("C1", "C2") and `TangentScan`
        ("C3"). With "C3" moves that are expected to lose by far are not fitted
    """

    def __init__(
        self,
        X,
        *,
        link="sigmoid",
        noise="additive",
        sample_weight=None,
        centred_parents: bool = False,
        parameter_cost: float | None = None,
        edge_cost: float | np.ndarray = 0.0,
        n_candidates: int | None = 5,
        similarity: str = "C3",
        tol: float = 1e-3,
    ):
        self.link = get_link(link)
        self.fitter = FamilyFitter(
            X,
            self.link,
            get_noise(noise),
            sample_weight,
            centred_parents=centred_parents,
            tol=tol,
            max_iter=30,
        )
        self.n_nodes = self.fitter.n_nodes
        self.weight = self.fitter.total
        self.set_costs(parameter_cost, edge_cost)
        self.n_candidates = n_candidates
        self._fits: dict[Family, _Fit] = {}
        # The last scan of each node.
        self._scans: dict[int, tuple[tuple[int, ...], np.ndarray]] = {}
        self._scanner: IdealScan | TangentScan
        if similarity == "C3":
            self._scanner = TangentScan(self.fitter)
        else:
            self._scanner = IdealScan(self.fitter, similarity)
        # C3 is close to the gain, so that what it expects to lose by far is not fitted.
        self._hopeless = -DOUBT if similarity == "C3" else -np.inf

    def family_score(self, child: int, parents: tuple[int, ...]) -> float:
        """Score of one family."""
        return self._score((child, parents))

    def pair_scores(self, families: Sequence[Family]) -> np.ndarray:
        """Exact scores of any families, fitted together."""
        nothing = np.zeros(3)
        self._fit_all(
            (family, (family[1], (0.0,) * len(family[1]), nothing))
            for family in families
        )
        return np.array([self._score(family) for family in families])

    def move_scores(
        self, families: Sequence[Family], allowed, children, room: Sequence[bool]
    ) -> list[np.ndarray]:
        """Scores of families after each of their moves."""
        each = zip(families, allowed, children, room, strict=True)
        picked = [self._pick(*own) for own in each]
        self._fit_all(
            (_changed(family, move), self._start(family, move))
            for family, moves in zip(families, picked, strict=True)
            for move in moves
            if _changed(family, move) not in self._fits
        )
        pairs = zip(families, picked, strict=True)
        return [self._table(family, moves) for family, moves in pairs]

    def _pick(self, family: Family, allowed, children, room: bool) -> list[_Move]:
        """Moves of a family that are worth a fit: deletions, and promising others."""
        parents = family[1]
        leaving = (None, *parents)[not room :]
        possible = np.flatnonzero(allowed).tolist()
        self.n_considered += len(leaving) * len(possible) + len(parents)
        deletions: list[_Move] = [(parent, None) for parent in parents]
        if self.is_exhaustive:
            return deletions + [(gone, z) for gone in leaving for z in possible]
        if not possible and not children.any():
            return deletions
        expected = self._expected(family)
        moves = self._best_moves(expected[not room :], leaving, allowed)
        if room:
            moves += self._reversals(family, expected[0], children)
        return deletions + moves

    def _best_moves(self, expected, leaving, allowed) -> list[_Move]:
        """The most promising additions and replacements, in one queue."""
        flat = np.where(allowed, expected, -np.inf).ravel()
        best = np.argsort(-flat, kind="stable")[: self.n_candidates]
        return [
            (leaving[place // self.n_nodes], place % self.n_nodes)
            for place in best.tolist()
            if flat[place] > self._hopeless
        ]

    def _reversals(self, family: Family, expected, children) -> list[_Move]:
        """Children that are among the nodes most similar to the ideal parent."""
        self.n_considered += int(np.count_nonzero(children))
        similar = expected.copy()
        similar[[family[0], *family[1]]] = -np.inf
        size = min(self.n_candidates or self.n_nodes, self.n_nodes)
        enough = similar >= np.partition(similar, -size)[-size]
        return [(None, z) for z in np.flatnonzero(children & enough).tolist()]

    def _expected(self, family: Family) -> np.ndarray:
        """Expected gains in score: additions, then replacements of each parent."""
        child, parents = family
        known = self._scans.get(child)
        if known is None or known[0] != parents:
            fit = self._fit_of(family)
            gains = self._scanner.scan(child, *fit[1:])
            place = [1 + fit.order.index(parent) for parent in parents]
            known = parents, gains[[0, *place]]
            self._scans[child] = known
        gains = known[1].copy()
        gains[0] -= self._cost(len(parents) + 1) - self._cost(len(parents))
        return gains

    def _table(self, family: Family, moves: list[_Move]) -> np.ndarray:
        """Scores of a family after the moves that were fitted, by place."""
        rows: dict[int | None, int] = {None: 0}
        rows |= {parent: row for row, parent in enumerate(family[1], 1)}
        scores = np.full((len(rows), self.n_nodes + 1), -np.inf)
        scores[0, -1] = self._score(family)
        for gone, z in moves:
            column = -1 if z is None else z
            scores[rows[gone], column] = self._score(_changed(family, (gone, z)))
        return scores

    def _cost(self, n_parents: int) -> float:
        """Penalty of a family: parameters of the mean, variance, edges."""
        n_parameters = 1 + self.link.n_parameters(n_parents)
        return n_parameters * self.parameter_cost + float(self.edge_costs[n_parents])

    def _score(self, family: Family) -> float:
        """Score of a family, which is fitted if it has not been."""
        return self._fit_of(family).log_likelihood - self._cost(len(family[1]))

    def _fit_of(self, family: Family) -> _Fit:
        if family not in self._fits:
            self.pair_scores([family])
        return self._fits[family]

    def _start(self, family: Family, move: _Move) -> _Start:
        """Begin with the parameters of the present family, the newcomer at zero."""
        leaving, z = move
        fit = self._fit_of(family)
        order, weights = fit.order, fit.weights
        if leaving is not None:
            place = order.index(leaving)
            order = order[:place] + order[place + 1 :]
            weights = weights[:place] + weights[place + 1 :]
        if z is not None:
            order, weights = (*order, z), [*weights, 0.0]
        return order, weights, fit.theta

    def _fit_all(self, wanted: Iterable[tuple[Family, _Start]]):
        """Fit the families that are not known yet, all together."""
        new = {family: start for family, start in wanted if family not in self._fits}
        if not new:
            return
        self.n_evaluated += len(new)
        width = max(len(order) for order, _, _ in new.values())
        parents = np.full((len(new), width), self.n_nodes, dtype=np.intp)
        start = np.zeros((len(new), width))
        for row, (order, weights, _) in enumerate(new.values()):
            parents[row, : len(order)] = order
            start[row, : len(order)] = weights
        children = np.array([child for child, _ in new], dtype=np.intp)
        start_theta = np.array([theta for _, _, theta in new.values()])
        fitted = self.fitter.fit(children, parents, start, start_theta)
        for (family, (order, *_)), weights, theta, variance, value in zip(
            new.items(), *fitted, strict=True
        ):
            own = weights[: len(order)].tolist()
            fit = _Fit(float(value), order, own, theta, float(variance))
            self._fits[family] = fit


def _changed(family: Family, move: _Move) -> Family:
    """The family after a move."""
    child, parents = family
    leaving, z = move
    if leaving is not None:
        parents = without_parent(parents, leaving)
    if z is not None:
        parents = with_parent(parents, z)
    return child, parents
