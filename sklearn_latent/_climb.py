"""One loop for everything that climbs by expectation and maximisation (EM)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Ascent", "Convergence", "climb"]

# Steps in a row that must gain little.
PATIENCE = 2

# On a plateau gains shrink ever more slowly and then grow. The ascent goes on if they
# are about to grow while a step still gains this share of the tolerance.
LEAST_GAIN = 0.1


class Convergence:
    """Tells from successive objectives whether an ascent has ended.

    It has when `PATIENCE` steps in a row gained at most `tol` and the gains are not
    about to grow again, as they do after a plateau (a saddle point). Near an optimum
    the ratio of successive gains settles below 1, near a saddle point it rises past 1.
    Objectives of several ascents may come as one array.
    """

    def __init__(self, tol: float):
        self.tol = tol
        self._last: Any = np.nan
        self._gain: Any = np.nan
        self._ratio: Any = np.nan
        self._calm: Any = 0

    def update(self, objective) -> np.ndarray:
        """Whether each ascent has converged, given its next objective."""
        objective = np.asarray(objective, dtype=float)
        # An objective of minus infinity that stays there gains nothing.
        stuck = objective == self._last
        gain = np.where(stuck, 0.0, objective - np.where(stuck, 0.0, self._last))
        # Differences of rounding errors neither grow nor shrink.
        noise = 1e-14 * np.abs(np.where(np.isfinite(objective), objective, 0.0))
        known = (gain > noise) & np.isfinite(gain) & np.isfinite(self._gain)
        ratio = np.full(gain.shape, np.nan)
        np.divide(gain, self._gain, out=ratio, where=known & (self._gain > 0))
        small = gain <= np.maximum(self.tol, noise)
        calm = small & ~self._turns(gain, ratio)
        self._calm = np.where(calm, self._calm + 1, 0)
        self._last, self._gain, self._ratio = objective, gain, ratio
        return self._calm >= PATIENCE

    def _turns(self, gain, ratio) -> np.ndarray:
        """Whether gains grow, or will soon if their ratio goes on as it does."""
        rise = ratio - self._ratio
        left = np.clip(1 - ratio, 0.0, 1.0)
        # Ratios that rise at this rate are 1 after left / rise steps; until then the
        # gain shrinks by their product.
        with np.errstate(over="ignore"):
            fall = np.divide(
                left**2, 2 * rise, out=np.full(gain.shape, np.inf), where=rise > 0
            )
        lowest = np.minimum(gain, self.tol) * np.exp(-fall)
        return (ratio >= 1) | (lowest > LEAST_GAIN * self.tol)


@dataclass(frozen=True)
class Ascent:
    """Where an ascent ended.

    state: parameters, whose objective is the last of `objectives`
    statistics: what the last E-step made of `state`
    objectives: one per E-step
    n_iter: number of M-steps
    converged: whether it ended by itself
    stopped: whether `report` ended it
    """

    state: Any
    statistics: Any
    objectives: np.ndarray
    n_iter: int
    converged: bool
    stopped: bool = False

    @property
    def objective(self):
        """Objective of `state`."""
        return self.objectives[-1]


def climb(
    expect: Callable,
    maximize: Callable,
    state,
    *,
    tol: float,
    max_iter: int,
    report: Callable | None = None,
) -> Ascent:
    """Alternate E-steps and M-steps until the objective has converged.

    ``expect(state)`` returns the objective of `state` and expected statistics;
    ``maximize(state, statistics)`` the next state. `tol` is in units of the objective:
    a tolerance per row times the weight of the rows. ``report(n_iter, objective)`` is
    called after each E-step and ends the ascent by returning True.
    """
    convergence = Convergence(tol)
    objectives: list = []
    while True:
        objective, statistics = expect(state)
        objectives.append(objective)
        converged = bool(np.all(convergence.update(objective)))
        n_iter = len(objectives) - 1
        stopped = report is not None and bool(report(n_iter, objective))
        if converged or stopped or n_iter >= max_iter:
            trace = np.array(objectives)
            return Ascent(state, statistics, trace, n_iter, converged, stopped)
        state = maximize(state, statistics)
