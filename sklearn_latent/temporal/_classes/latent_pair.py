"""Two hidden classes that depend on each other, by EM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._climb import climb
from ..._criteria import bic_price, bic_score
from .._emissions.layout import Layout
from .._tables import normalized
from .latent_class import PSEUDO_COUNT, TOLERANCE, Rows

# Share of the own distribution of a feature, mixed into the tables that EM starts from.
SOFTENING = 0.1

# Steps of EM for the table of a feature that may move.
MOVE_ITER = 4


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


def fit_pair(rows: Rows, in_first, first, second, *, max_iter=200) -> LatentPair:
    """Fit two hidden classes; `first` and `second` are tables of their own features."""
    columns = np.repeat(in_first, rows.n_categories)
    one_hot = rows.one_hot()
    marginals = rows.marginals()
    tables = [np.ascontiguousarray(one_hot[:, side].T) for side in (columns, ~columns)]
    priors = [PSEUDO_COUNT * marginals[side] for side in (columns, ~columns)]
    layouts = [Layout(rows.n_categories[side]) for side in (in_first, ~in_first)]

    def expect(state):
        joint, *emission = state
        # Classes come first in all arrays: sums over few classes are quick that way.
        logs = [np.log(e) @ table for table, e in zip(tables, emission, strict=True)]
        peaks = [log.max(axis=0) for log in logs]
        a, b = (np.exp(log - peak) for log, peak in zip(logs, peaks, strict=True))
        from_a, from_b = joint.T @ a, joint @ b
        likelihood = (from_a * b).sum(axis=0)
        value = rows.weights @ (np.log(likelihood) + peaks[0] + peaks[1])
        share = rows.weights / likelihood
        a = a * share
        posteriors = a * from_b, b * from_a * share
        counts = [p @ t.T for p, t in zip(posteriors, tables, strict=True)]
        return value, (joint * (a @ b.T), *counts)

    def maximize(state, statistics):
        joint, *counts = statistics
        joint = joint + PSEUDO_COUNT / joint.size
        emission = [
            layout.normalized(count + prior)
            for layout, count, prior in zip(layouts, counts, priors, strict=True)
        ]
        return joint / joint.sum(), *emission

    size = len(first), len(second)
    start = (
        np.full(size, 1.0 / np.prod(size)),
        *(
            # Few features alone may suggest certainty, from which EM hardly moves.
            layout.normalized(table + SOFTENING * marginals[side])
            for layout, table, side in zip(
                layouts, (first, second), (columns, ~columns), strict=True
            )
        ),
    )
    ascent = climb(
        expect,
        maximize,
        start,
        tol=TOLERANCE,
        max_iter=max_iter,
        patient=False,
        accelerate=True,
    )
    joint, first, second = ascent.state
    n_free = joint.size - 1
    n_free += layouts[0].n_free(len(first)) + layouts[1].n_free(len(second))
    value = float(ascent.objective)
    score = bic_score(value, n_free, rows.total)
    return LatentPair(joint, first, second, value, score)


def move_gains(rows: Rows, in_first, model: LatentPair) -> list[float]:
    """About how much BIC gains when a feature changes its class.

    Each feature is predicted from all others, through its own class and through the
    other one.
    """
    one_hot = rows.one_hot()
    columns = np.repeat(in_first, rows.n_categories)
    logs = [
        one_hot[:, columns] @ np.log(model.first).T,
        one_hot[:, ~columns] @ np.log(model.second).T,
    ]
    price = bic_price(rows.total)
    gains = []
    for place, width in enumerate(rows.n_categories):
        side = 0 if in_first[place] else 1
        offset = rows.layout.offsets[place]
        values = one_hot[:, offset : offset + width]
        known = values.any(axis=1)
        values, weights = values[known], rows.weights[known]
        start = int(
            rows.n_categories[:place][in_first[:place] == in_first[place]].sum()
        )
        table = (model.first, model.second)[side][:, start : start + width]
        own = logs[side][known] - values @ np.log(table).T
        other = logs[1 - side][known]
        own = np.exp(own - own.max(axis=1, keepdims=True))
        other = np.exp(other - other.max(axis=1, keepdims=True))
        joint = model.joint if side == 0 else model.joint.T
        stay = _scaled(own * (other @ joint.T))
        leave = _scaled(other * (own @ joint))
        value = weights @ np.log((stay * (values @ table.T)).sum(axis=1))
        moved_value = _predict(leave, values, weights)
        n_more = (leave.shape[1] - stay.shape[1]) * (width - 1)
        gains.append(float(moved_value - value - price * n_more))
    return gains


def _scaled(weights):
    return weights / weights.sum(axis=1, keepdims=True)


def _predict(posterior, values, weights) -> float:
    """Log-likelihood of a feature given classes, with about the best table for it."""

    def expect(table):
        joint = posterior * (values @ table.T)
        likelihood = joint.sum(axis=1)
        return weights @ np.log(likelihood), joint * (weights / likelihood)[:, None]

    def maximize(_, weighted):
        return normalized(weighted.T @ values + 1e-3)

    start = maximize(None, posterior * weights[:, None])
    return climb(
        expect, maximize, start, tol=TOLERANCE, max_iter=MOVE_ITER, patient=False
    ).objective
