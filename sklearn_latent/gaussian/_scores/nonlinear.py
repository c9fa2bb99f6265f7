"""Scores of families whose parameters need optimisation.

Fitting a candidate costs a thousand times as much as looking at it. So for each family
all candidates are looked at, by their similarity to the ideal parent, and the few most
promising ones are fitted: Algorithm 2 of Elidan et al. (2007).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .._families import FamilyFitter
from .._links import get_link
from .._noise import get_noise
from .moves import Family, MoveEvaluator, with_parent, without_parent
from .scans import IdealScan, TangentScan

# By how many nats a gain may exceed what C3 expects. Deletions are all fitted, for
# reversals: the other half may gain more than an expansion around the present says.
# That is 5% more fits on six networks of 20 columns.
DOUBT = 3.0


class _Fit(NamedTuple):
    """A fitted family, in standard units."""

    score: float
    order: tuple[int, ...]  # parents in the order of the weights
    weights: list[float]
    theta: np.ndarray
    variance: float


class _Scan(NamedTuple):
    """Expected scores, relative to the present one, of the moves of a family."""

    add: np.ndarray  # (n_nodes,)
    replace: np.ndarray  # (n_parents, n_nodes)


# Where a fit begins: order of the parents, their weights, parameters of the link.
_Start = tuple[tuple[int, ...], Sequence[float], np.ndarray]


class NonlinearEvaluator(MoveEvaluator):
    """Scores of families of any link and noise, with or without pruning.

    centred_parents: as in `FamilyFitter`
    parameter_cost, edge_cost: as in `set_costs`
    n_candidates: how many additions and replacements, together, are fitted per family.
        None fits all, which is Algorithm 1
    similarity: how they are chosen, see `IdealScan` ("C1", "C2") and `TangentScan`
        ("C3"). With "C3" moves that are expected to lose by far are not fitted, and
        deletions are pruned too
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
        self.link, self.noise = get_link(link), get_noise(noise)
        self.fitter = FamilyFitter(
            X,
            self.link,
            self.noise,
            sample_weight,
            centred_parents=centred_parents,
            tol=tol,
            max_iter=30,
        )
        self.n_nodes = self.fitter.n_nodes
        self.weight = self.fitter.total
        self._fits: dict[Family, _Fit] = {}
        self.set_costs(parameter_cost, edge_cost)
        self.n_candidates, self.similarity = n_candidates, similarity
        self.is_exhaustive = n_candidates is None
        self.n_evaluated = self.n_considered = 0
        self._scanner: IdealScan | TangentScan
        if similarity == "C3":
            self._scanner = TangentScan(self.fitter)
        else:
            self._scanner = IdealScan(self.fitter, similarity)
        # C3 is close to the gain, so that what it expects to lose by far is not fitted.
        self._hopeless = -DOUBT if similarity == "C3" else -np.inf

    def set_costs(self, parameter_cost: float | None, edge_cost) -> None:
        """Prices of parameters, and of edges on top; fits are kept."""
        self._scans: dict[int, tuple[tuple[int, ...], _Scan]] = {}
        self._queues: dict[int, tuple[tuple[int, ...], bytes, list]] = {}
        sizes = {len(parents) for _, parents in self._fits}
        change = {size: self._cost(size) for size in sizes}
        super().set_costs(parameter_cost, edge_cost)
        change = {size: before - self._cost(size) for size, before in change.items()}
        for family, fit in self._fits.items():
            score = fit.score + change[len(family[1])]
            self._fits[family] = fit._replace(score=score)

    # Scores that the search asks for

    def family_score(self, child: int, parents: tuple[int, ...]) -> float:
        """Score of one family."""
        return self._fit_of((child, parents)).score

    def pair_scores(self, families: Sequence[Family]) -> np.ndarray:
        """Exact scores of any families, fitted together."""
        nothing = np.zeros(3)
        self._fit_all(
            (family, (family[1], (0.0,) * len(family[1]), nothing))
            for family in families
        )
        return np.array([self._fits[family].score for family in families])

    def move_scores(
        self, families: Sequence[Family], allowed, room: Sequence[bool]
    ) -> list[np.ndarray]:
        """Scores of families after each of their moves."""
        added = self.add_scores(families, allowed & np.array(room)[:, None])
        replaced = self.replace_scores(families, allowed)
        result = []
        for family, first, others in zip(families, added, replaced, strict=True):
            last = [self.family_score(*family), *self.delete_scores(*family)]
            result.append(np.column_stack([np.vstack([first, others]), last]))
        return result

    def add_scores(self, families: Sequence[Family], allowed) -> np.ndarray:
        """Scores of families with one more parent."""
        scores = np.full((len(families), self.n_nodes), -np.inf)
        self.n_considered += int(np.count_nonzero(allowed))
        if self.is_exhaustive:
            picked = [
                [(None, z) for z in np.flatnonzero(row).tolist()] for row in allowed
            ]
        else:
            picked = self._queue(families, allowed)
        self._fit_moves(families, picked)
        for row, (family, moves) in enumerate(zip(families, picked, strict=True)):
            for leaving, z in moves:
                if leaving is None:
                    scores[row, z] = self._fits[_changed(family, leaving, z)].score
        return scores

    def replace_scores(self, families: Sequence[Family], allowed) -> list[np.ndarray]:
        """Scores of families with one parent replaced by a candidate."""
        picked = []
        for (child, parents), row in zip(families, allowed, strict=True):
            self.n_considered += len(parents) * int(np.count_nonzero(row))
            known = self._queues.get(child)
            if self.is_exhaustive:
                new = np.flatnonzero(row).tolist()
                picked.append([(leaving, z) for leaving in parents for z in new])
            elif known is not None and known[:2] == (parents, row.tobytes()):
                picked.append([move for move in known[2] if move[0] is not None])
            else:
                # There was no room for additions, so all of the queue is for these.
                picked.append(self._choose((child, parents), row, additions=False))
        self._fit_moves(families, picked)
        result = []
        for family, moves in zip(families, picked, strict=True):
            place = {parent: i for i, parent in enumerate(family[1])}
            scores = np.full((len(family[1]), self.n_nodes), -np.inf)
            for leaving, z in moves:
                scores[place[leaving], z] = self._fits[
                    _changed(family, leaving, z)
                ].score
            result.append(scores)
        return result

    def delete_scores(self, child: int, parents: tuple[int, ...]) -> np.ndarray:
        """Scores of a family without each of its parents."""
        self.n_considered += len(parents)
        family = child, parents
        moves = _deletions(family)
        self._fit_moves([family], [moves])
        return np.array([self._fits[_changed(family, *move)].score for move in moves])

    def reverse_scores(self, families: Sequence[Family], children) -> np.ndarray:
        """Scores of families with one of their children as one more parent.

        With pruning a child is fitted only if it is among the `n_candidates` nodes
        most similar to the ideal parent, whether these are allowed or not.
        """
        scores = np.full((len(families), self.n_nodes), -np.inf)
        picked = []
        for family, row in zip(families, children, strict=True):
            found = np.flatnonzero(row).tolist()
            self.n_considered += len(found)
            if found and self.n_candidates is not None:
                similar = self._scan(family).add.copy()
                similar[[family[0], *family[1]]] = -np.inf
                size = min(self.n_candidates, self.n_nodes)
                limit = np.partition(similar, -size)[-size]
                found = [z for z in found if similar[z] >= limit]
            picked.append([(None, z) for z in found])
        self._fit_moves(families, picked)
        for row, (family, moves) in enumerate(zip(families, picked, strict=True)):
            for _, z in moves:
                scores[row, z] = self._fits[_changed(family, None, z)].score
        return scores

    # Which candidates are worth a fit

    def _queue(self, families, allowed):
        """Best additions and replacements of families, with the deletions."""
        self._scan_roots([child for child, parents in families if not parents])
        picked = []
        for family, row in zip(families, allowed, strict=True):
            child, parents = family
            moves = self._choose(family, row) if row.any() else []
            self._queues[child] = parents, row.tobytes(), moves
            # The search asks for deletions next: one batch is cheaper than two.
            picked.append(moves + _deletions(family))
        return picked

    def _choose(self, family: Family, allowed, *, additions=True):
        """The most promising moves of one family, over all kinds: one queue."""
        scan = self._scan(family)
        expected = np.vstack([scan.add, scan.replace])
        expected[:, ~allowed] = -np.inf
        if not additions:
            expected[0] = -np.inf
        flat = expected.ravel()
        size = self.n_candidates
        if size is not None and size < len(flat):
            top = np.argpartition(-flat, size - 1)[:size]
        else:
            top = np.arange(len(flat))
        leaving = (None, *family[1])
        return [
            (leaving[place // self.n_nodes], place % self.n_nodes)
            for place in top.tolist()
            if flat[place] > self._hopeless
        ]

    def _scan(self, family: Family) -> _Scan:
        """Expected scores of the moves of a family; the last of a child is kept."""
        child, parents = family
        known = self._scans.get(child)
        if known is None or known[0] != parents:
            fit = self._fit_of(family)
            gains = self._scanner.scan(child, *fit[1:])
            if fit.order != parents:
                place = [fit.order.index(parent) for parent in parents]
                gains = gains[0], gains[1][place]
            known = parents, self._minus_cost(len(parents), *gains)
            self._scans[child] = known
        return known[1]

    def _scan_roots(self, children):
        """Scan families without parents together."""
        if not children:
            return
        for child, add in zip(children, self._scanner.roots(children), strict=True):
            scan = self._minus_cost(0, add, np.empty((0, len(add))))
            self._scans[child] = (), scan

    def _minus_cost(self, n_parents, add, replace):
        """Expected gains in score from those in log-likelihood."""
        cost = self._cost(n_parents + 1) - self._cost(n_parents)
        return _Scan(add - cost, replace)

    # Fits

    def _cost(self, n_parents: int) -> float:
        """Penalty of a family: parameters of the mean, variance, edges."""
        n_parameters = 1 + self.link.n_parameters(n_parents)
        return n_parameters * self.parameter_cost + float(self.edge_costs[n_parents])

    def _fit_of(self, family: Family) -> _Fit:
        if family not in self._fits:
            self.pair_scores([family])
        return self._fits[family]

    def _fit_moves(self, families, picked):
        """Fit families after moves (parent that goes, node that comes)."""
        self._fit_all(
            (_changed(family, *move), self._start(family, *move))
            for family, moves in zip(families, picked, strict=True)
            for move in moves
            if _changed(family, *move) not in self._fits
        )

    def _start(self, family, leaving, z) -> _Start:
        """Begin with the parameters of the present family, the newcomer at zero."""
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
        none = (self.n_nodes,) * width
        zero = [0.0] * width
        fitted = self.fitter.fit(
            np.array([child for child, _ in new], dtype=np.intp),
            np.array(
                [(*order, *none[len(order) :]) for order, _, _ in new.values()],
                dtype=np.intp,
            ).reshape(len(new), width),
            np.array(
                [[*start, *zero[len(start) :]] for _, start, _ in new.values()]
            ).reshape(len(new), width),
            np.array([theta for _, _, theta in new.values()]),
        )
        weights, theta, variance, log_likelihood = fitted
        for (family, (order, _, _)), row, *rest in zip(
            new.items(),
            weights.tolist(),
            theta,
            variance.tolist(),
            log_likelihood.tolist(),
            strict=True,
        ):
            score = rest[2] - self._cost(len(order))
            self._fits[family] = _Fit(score, order, row[: len(order)], *rest[:2])


def _deletions(family: Family) -> list:
    """Moves that take one of the parents away."""
    return [(parent, None) for parent in family[1]]


def _changed(family: Family, leaving, z) -> Family:
    """The family after a move."""
    child, parents = family
    if leaving is not None:
        parents = without_parent(parents, leaving)
    if z is not None:
        parents = with_parent(parents, z)
    return child, parents
