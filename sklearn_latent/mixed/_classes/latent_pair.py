"""Two hidden classes that depend on each other, by EM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._core.climb import Ascent, climb, is_hopeless
from ..._core.criteria import bic_price, bic_score
from .._emissions.layout import Layout
from .._tables import normalized
from .latent_class import PSEUDO_COUNT, TOLERANCE, Rows

# Share of the own distribution of a feature, mixed into the tables that EM starts from.
SOFTENING = 0.1

# Steps of EM for the table of a feature that may move.
MOVE_ITER = 4

# Gains of the last cycle of EM that are still hoped for. (With 20, as for chains, other
# groups were found in pbcseq and income with one of five seeds.)
HOPE = 100.0


@dataclass(frozen=True)
class LatentPair:
    """Two dependent hidden classes, each with features of its own.

    joint: joint distribution of the two classes, (n_first, n_second)
    first, second: P(category | class) of the features of each, (n_classes,
        sum(n_categories))
    log_likelihood, bic: as in `LatentClasses`
    """

    joint: np.ndarray
    first: np.ndarray
    second: np.ndarray
    log_likelihood: float
    bic: float


def fit_pair(
    rows: Rows,
    in_first,
    first,
    second,
    *,
    max_iter=200,
    rival: LatentPair | None = None,
) -> LatentPair:
    """Fit two hidden classes; `first` and `second` are tables of their own features.

    rival: another model; EM ends early once it has passed its log-likelihood, if its
        BIC is out of reach
    """
    em = _PairEM(rows, in_first)
    start = em.start(first, second)
    n_free = start[0].size - 1 + em.n_free(len(first), len(second))
    penalty = -bic_score(0.0, n_free, rows.total)
    ascent = climb(
        em.expect,
        em.maximize,
        start,
        tol=TOLERANCE,
        max_iter=max_iter,
        patient=False,
        accelerate=True,
        report=_race(rival, penalty),
    )
    value = float(ascent.objective)
    score = bic_score(value, n_free, rows.total)
    joint, first, second = ascent.state
    return LatentPair(joint, first, second, value, score)


class _PairEM:
    """Steps of EM of two hidden classes, each with features of its own."""

    def __init__(self, rows: Rows, in_first):
        self.weights = rows.weights
        columns = np.repeat(in_first, rows.n_categories)
        one_hot, marginals = rows.one_hot(), rows.marginals()
        sides = columns, ~columns
        self.tables = [np.ascontiguousarray(one_hot[:, side].T) for side in sides]
        self.marginals = [marginals[side] for side in sides]
        self.layouts = [
            Layout(rows.n_categories[side]) for side in (in_first, ~in_first)
        ]

    def n_free(self, *sizes: int) -> int:
        """Number of free parameters of the tables."""
        each = zip(self.layouts, sizes, strict=True)
        return sum(layout.n_free(size) for layout, size in each)

    def start(self, *tables) -> tuple:
        """Joint shares of states, and tables that are less certain.

        Few features alone may suggest certainty, from which EM hardly moves.
        """
        size = tuple(len(table) for table in tables)
        soft = [SOFTENING * own for own in self.marginals]
        return np.full(size, 1.0 / np.prod(size)), *self._normalized(tables, soft)

    def expect(self, state) -> tuple:
        """Log-likelihood and expected counts."""
        joint, *emission = state
        # Classes come first in all arrays: sums over few classes are quick that way.
        logs = [
            np.log(e) @ table for table, e in zip(self.tables, emission, strict=True)
        ]
        peaks = [log.max(axis=0) for log in logs]
        a, b = (np.exp(log - peak) for log, peak in zip(logs, peaks, strict=True))
        from_a, from_b = joint.T @ a, joint @ b
        likelihood = (from_a * b).sum(axis=0)
        value = self.weights @ (np.log(likelihood) + peaks[0] + peaks[1])
        share = self.weights / likelihood
        a = a * share
        posteriors = a * from_b, b * from_a * share
        counts = [p @ t.T for p, t in zip(posteriors, self.tables, strict=True)]
        return value, (joint * (a @ b.T), *counts)

    def maximize(self, _, statistics) -> tuple:
        """Joint shares of states and tables, from expected counts."""
        joint, *counts = statistics
        joint = joint + PSEUDO_COUNT / joint.size
        prior = [PSEUDO_COUNT * own for own in self.marginals]
        return joint / joint.sum(), *self._normalized(counts, prior)

    def _normalized(self, counts, added) -> list[np.ndarray]:
        """Tables from counts of each class, and what is added to them."""
        each = zip(self.layouts, counts, added, strict=True)
        return [layout.normalized(count + more) for layout, count, more in each]


def _race(rival: LatentPair | None, penalty: float):
    """Tells from the log-likelihoods so far whether EM may end, as `climb` asks."""
    reached: list[float] = []

    def ends(_, value):
        reached.append(value)
        return rival is not None and is_hopeless(
            reached, rival.bic + penalty, rival.log_likelihood, HOPE
        )

    return ends


@dataclass(frozen=True)
class Move:
    """A feature that changes its class.

    gain: about how much BIC gains
    sides: tables of the features of each class, by feature
    feature, table: the feature, and about its best table in the other class
    """

    gain: float
    sides: list[dict]
    feature: int
    table: np.ndarray

    def tables(self) -> list[np.ndarray]:
        """Tables of both classes after the move, as `fit_pair` takes them."""
        moved = []
        for side in self.sides:
            after = {f: table for f, table in side.items() if f != self.feature}
            if len(after) == len(side):
                after[self.feature] = self.table
            moved.append(np.hstack([after[f] for f in sorted(after)]))
        return moved


def candidate_moves(rows: Rows, in_first, model: LatentPair) -> list[Move]:
    """The move of each feature to the other class.

    Each feature is predicted from all others, through its own class and through the
    other one.
    """
    price = bic_price(rows.total)
    # Classes and categories come first in all arrays, as above.
    columns = np.ascontiguousarray(rows.one_hot().T)
    values = np.split(columns, rows.layout.offsets[1:])
    moves: dict[int, Move] = {}
    sides = [
        _by_feature(rows, features, emission)
        for features, emission in (
            (np.flatnonzero(in_first), model.first),
            (np.flatnonzero(~in_first), model.second),
        )
    ]
    logs = [
        np.log(np.hstack([*side.values()])) @ np.vstack([values[f] for f in side])
        for side in sides
    ]
    for side, joint in ((0, model.joint), (1, model.joint.T)):
        others = _likelihood(logs[1 - side])
        through = joint @ others
        for f, table in sides[side].items():
            # A value that is missing is certain, whatever the class.
            gap = 1.0 - values[f].sum(axis=0)
            rest = _likelihood(logs[side] - np.log(table) @ values[f])
            stay = _scaled(rest * through)
            leave = _scaled(others * (joint.T @ rest))
            likelihood = (stay * (table @ values[f] + gap)).sum(axis=0)
            value = rows.weights @ np.log(likelihood)
            found = _predict(leave, values[f], gap, rows.weights)
            n_more = (len(leave) - len(stay)) * (len(values[f]) - 1)
            gain = found.objective - value - price * n_more
            moves[f] = Move(gain, sides, f, found.state)
    return [moves[f] for f in sorted(moves)]


def _by_feature(rows: Rows, features, emission) -> dict:
    """Tables of features by their numbers."""
    tables = Layout(rows.n_categories[features]).split(emission)
    return dict(zip(features.tolist(), tables, strict=True))


def _likelihood(logs) -> np.ndarray:
    return np.exp(logs - logs.max(axis=0))


def _scaled(weights) -> np.ndarray:
    return weights / weights.sum(axis=0)


def _predict(posterior, values, gap, weights) -> Ascent:
    """Ascent to the best table of a feature given classes, to the log-likelihood."""

    def expect(table):
        joint = posterior * (table @ values + gap)
        likelihood = joint.sum(axis=0)
        return weights @ np.log(likelihood), joint * (weights / likelihood)

    def maximize(_, weighted):
        return normalized(weighted @ values.T + 1e-3)

    start = maximize(None, posterior * weights)
    return climb(
        expect, maximize, start, tol=TOLERANCE, max_iter=MOVE_ITER, patient=False
    )
