"""One loop for everything that climbs by expectation and maximisation (EM)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Ascent", "Convergence", "climb"]

# Steps in a row that must gain little. EM may pause at a saddle point: there one step
# gains little after others gained much, and the gains then grow again.
PATIENCE = 3


class Convergence:
    """Tells from successive objectives whether an ascent has ended.

    It has when, `patience` times in a row, a step gained at most `tol` and no more than
    the step before. Objectives of several ascents may come as one array.
    """

    def __init__(self, tol: float, patience: int = PATIENCE):
        self.tol = tol
        self.patience = patience
        self._last: Any = -np.inf
        self._gain: Any = np.inf
        self._calm: Any = 0

    def update(self, objective) -> np.ndarray:
        """Whether each ascent has converged, given its next objective."""
        objective = np.asarray(objective, dtype=float)
        # An objective of minus infinity that stays there gains nothing.
        stuck = objective == self._last
        gain = np.where(stuck, 0.0, objective - np.where(stuck, 0.0, self._last))
        # Differences of rounding errors neither grow nor shrink.
        noise = 1e-14 * np.abs(np.where(np.isfinite(objective), objective, 0.0))
        falls = (gain <= self._gain) | (gain <= noise)
        calm = (gain <= np.maximum(self.tol, noise)) & falls
        self._calm = np.where(calm, self._calm + 1, 0)
        self._last, self._gain = objective, gain
        return self._calm >= self.patience


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
    patience: int = PATIENCE,
) -> Ascent:
    """Alternate E-steps and M-steps until the objective has converged.

    ``expect(state)`` returns the objective of `state` and expected statistics;
    ``maximize(state, statistics)`` the next state. `tol` is in units of the objective:
    a tolerance per row times the weight of the rows. ``report(n_iter, objective)`` is
    called after each E-step and ends the ascent by returning True. An M-step that makes
    several steps of EM at once needs less `patience`.
    """
    convergence = Convergence(tol, patience)
    objectives: list = []
    while True:
        objective, statistics = expect(state)
        objectives.append(objective)
        converged = bool(np.all(convergence.update(objective)))
        stopped = report is not None and bool(report(len(objectives) - 1, objective))
        if converged or stopped or len(objectives) > max_iter:
            return Ascent(
                state,
                statistics,
                np.array(objectives),
                len(objectives) - 1,
                converged,
                stopped,
            )
        state = maximize(state, statistics)
