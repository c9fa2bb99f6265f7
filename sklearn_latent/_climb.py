"""One loop for everything that climbs by expectation and maximisation (EM)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

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
        self._gains: tuple[Any, Any] = np.nan, np.nan
        self._calm: Any = 0

    def update(self, objective) -> np.ndarray:
        """Whether each ascent has converged, given its next objective."""
        objective = np.asarray(objective, dtype=float)
        with np.errstate(invalid="ignore"):
            gain = objective - self._last
        # Differences of rounding errors neither grow nor shrink.
        noise = 1e-14 * np.abs(objective)
        # Most steps gain much, and many are short: this must not take long.
        if gain.min(initial=np.inf) > max(self.tol, noise.max(initial=0.0)):
            self._calm = np.zeros(objective.shape, dtype=int)
        else:
            gain = self._settle(objective, gain, noise)
        self._last, self._gains = objective, (gain, self._gains[0])
        return self._calm >= PATIENCE

    def _settle(self, objective, gain, noise) -> np.ndarray:
        """Count the steps in a row that gained little; the gains."""
        # An objective of minus infinity that stays there gains nothing.
        gain = np.where(objective == self._last, 0.0, gain)
        noise = np.where(np.isfinite(objective), noise, 0.0)
        last, before = self._gains
        ratio = np.where(gain > noise, _ratio(gain, last), np.nan)
        small = gain <= np.maximum(self.tol, noise)
        turns = self._turns(gain, ratio, ratio - _ratio(last, before))
        self._calm = np.where(small & ~turns, self._calm + 1, 0)
        return gain

    def _turns(self, gain, ratio, rise) -> np.ndarray:
        """Whether gains grow, or will soon if their ratio goes on as it does."""
        # Ratios that rise at this rate are 1 after (1 - ratio) / rise steps; until
        # then the gain shrinks by their product.
        with np.errstate(all="ignore"):
            lowest = gain * np.exp(-((1 - ratio) ** 2) / (2 * rise))
        return (ratio >= 1) | ((rise > 0) & (lowest > LEAST_GAIN * self.tol))


def _ratio(gain, before):
    """How gains change, NaN where that is not known."""
    with np.errstate(all="ignore"):
        known = (before > 0) & (before < np.inf)
        return np.where(known, gain / before, np.nan)


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
        converged = bool(convergence.update(objective).all())
        n_iter = len(objectives) - 1
        stopped = report is not None and bool(report(n_iter, objective))
        if converged or stopped or n_iter >= max_iter:
            trace = np.array(objectives)
            return Ascent(state, statistics, trace, n_iter, converged, stopped)
        state = maximize(state, statistics)
