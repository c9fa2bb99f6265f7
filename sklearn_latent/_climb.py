"""One loop for everything that climbs by expectation and maximisation (EM)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Steps in a row that must gain little.
PATIENCE = 2

# Differences of rounding errors, relative to the objective, neither grow nor shrink.
ROUNDING = 1e-14

# On a plateau gains shrink ever more slowly and then grow. The ascent goes on if they
# are about to grow while a step still gains this share of the tolerance.
LEAST_GAIN = 0.1


class Convergence:
    """Tells from successive objectives whether an ascent has ended.

    It has when `PATIENCE` steps in a row gained at most `tol` and the gains are not
    about to grow again, as they do after a plateau (a saddle point). Near an optimum
    the ratio of successive gains settles below 1, near a saddle point it rises past 1.
    Without patience the first step that gains at most `tol` is the last.
    Objectives of several ascents may come as one array.
    """

    def __init__(self, tol: float, *, patient: bool = True):
        self.tol = tol
        self.patient = patient
        self._last: Any = np.nan
        self._gains: tuple[Any, Any] = np.nan, np.nan
        self._calm: Any = 0

    def update(self, objective) -> Any:
        """Whether each ascent has converged, given its next objective."""
        # Many steps are short, so this must not take long: numbers stay numbers, and
        # after a step that gained much there is nothing to count.
        if isinstance(objective, float):
            objective = float(objective)
            gain = objective - self._last
        else:
            objective = np.asarray(objective, dtype=float)
            with np.errstate(invalid="ignore"):
                gain = objective - self._last
        if not self.patient:
            # Minus infinity that stays there gains nothing.
            converged = (gain <= self.tol) | (objective == self._last)
        else:
            gain = self._count(objective, gain)
            converged = self._calm >= PATIENCE
        self._last, self._gains = objective, (gain, self._gains[0])
        return converged

    def _count(self, objective, gain):
        """Count the steps in a row that gained little; the gains."""
        noise = ROUNDING * abs(objective)
        least = max(self.tol, np.max(noise, initial=0.0))
        if np.min(gain, initial=np.inf) > least:
            self._calm = 0 * objective
            return gain
        # Minus infinity that stays there gains nothing.
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
    patient: bool = True,
    report: Callable | None = None,
) -> Ascent:
    """Alternate E-steps and M-steps until the objective has converged.

    ``expect(state)`` returns the objective of `state` and expected statistics;
    ``maximize(state, statistics)`` the next state. `tol` is in units of the objective:
    a tolerance per row times the weight of the rows. Without patience the ascent ends
    at the first small gain, which is enough where a search only compares objectives.
    ``report(n_iter, objective)`` is called after each E-step and ends the ascent by
    returning True.
    """
    convergence = Convergence(tol, patient=patient)
    objectives: list = []
    while True:
        objective, statistics = expect(state)
        objectives.append(objective)
        converged = convergence.update(objective)
        if not isinstance(converged, bool):
            converged = bool(converged.all())
        n_iter = len(objectives) - 1
        stopped = report is not None and bool(report(n_iter, objective))
        if converged or stopped or n_iter >= max_iter:
            trace = np.array(objectives)
            return Ascent(state, statistics, trace, n_iter, converged, stopped)
        state = maximize(state, statistics)
