"""One loop for everything that climbs by expectation and maximisation (EM)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from math import prod
from typing import Any

import numpy as np

# Steps in a row that must gain little.
PATIENCE = 2

# Differences of rounding errors, relative to the objective, neither grow nor shrink.
ROUNDING = 1e-14

# On a plateau gains shrink ever more slowly and then grow. The ascent goes on if they
# are about to grow while a step still gains this share of the tolerance.
LEAST_GAIN = 0.1

# Longest extrapolation at first, in units of a step; it grows as long as leaps succeed.
FIRST_LEAP = 4.0

# A leap leaves this share of a count: what is near zero comes back slowly.
LEAST_SHARE = 0.05

# Gains of the last cycle of two steps and a leap that are still hoped for.
HOPE = 20.0


class Convergence:
    """Tells from successive objectives whether an ascent has ended.

    It has when `PATIENCE` steps in a row gained at most `tol` and the gains are not
    about to grow again, as they do after a plateau (a saddle point). Near an optimum
    the ratio of successive gains settles below 1, near a saddle point it rises past 1.
    Without patience the first step that gains at most `tol` is the last; objectives of
    several ascents may then come as one array.
    """

    def __init__(self, tol: float, *, patient: bool = True):
        self.tol = tol
        self.patient = patient
        self._last: Any = np.nan
        self._gains = np.nan, np.nan
        self._calm = 0

    def update(self, objective) -> bool:
        """Whether all ascents have converged, given their next objective."""
        last, self._last = self._last, objective
        if not self.patient:
            with np.errstate(invalid="ignore"):
                gain = objective - last
            # Minus infinity that stays there gains nothing.
            return bool(np.all((gain <= self.tol) | (objective == last)))
        objective = float(objective)
        self._count(0.0 if objective == last else objective - last, objective)
        return self._calm >= PATIENCE

    def _count(self, gain: float, objective: float) -> None:
        """Count the steps in a row that gained little and will not gain more."""
        noise = ROUNDING * abs(objective) if np.isfinite(objective) else 0.0
        last, before = self._gains
        ratio = _ratio(gain, last) if gain > noise else np.nan
        rise = ratio - _ratio(last, before)
        grows = ratio >= 1
        if rise > 0 and not grows:
            # Ratios that rise at this rate are 1 after (1 - ratio) / rise steps; until
            # then the gain shrinks by their product.
            lowest = gain * np.exp(-((1 - ratio) ** 2) / (2 * rise))
            grows = lowest > LEAST_GAIN * self.tol
        is_small = gain <= max(self.tol, noise)
        self._calm = self._calm + 1 if is_small and not grows else 0
        self._gains = gain, last


def _ratio(gain: float, before: float) -> float:
    """How gains change, NaN where that is not known."""
    return gain / before if 0 < before < np.inf else np.nan


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
    accelerate: bool = False,
    report: Callable | None = None,
) -> Ascent:
    """Alternate E-steps and M-steps until the objective has converged.

    ``expect(state)`` returns the objective of `state` and expected statistics;
    ``maximize(state, statistics)`` the next state. `tol` is in units of the objective:
    a tolerance per row times the weight of the rows. Without patience the ascent ends
    at the first small gain, which is enough where a search only compares objectives.
    With `accelerate` every third M-step is given extrapolated statistics, which are
    then arrays in tuples, lists or dataclasses; gains are then those of three steps.
    ``report(n_iter, objective)`` is called after each E-step and ends the ascent by
    returning True.
    """
    convergence = Convergence(tol, patient=patient)
    leaps = _Leaps() if accelerate else None
    objectives: list = []
    while True:
        objective, statistics = expect(state)
        if leaps and leaps.fails(objective):
            state = maximize(*leaps.origin)
            objective, statistics = expect(state)
        objectives.append(objective)
        converged = False
        if not leaps or leaps.is_complete:
            converged = convergence.update(objective)
        n_iter = len(objectives) - 1
        stopped = report is not None and bool(report(n_iter, objective))
        if converged or stopped or n_iter >= max_iter:
            trace = np.array(objectives)
            return Ascent(state, statistics, trace, n_iter, converged, stopped)
        if leaps:
            statistics = leaps.next(state, statistics, objective)
        state = maximize(state, statistics)


def is_hopeless(
    objectives: Sequence[float], target: float, passed=-np.inf, hope=HOPE
) -> bool:
    """Whether an accelerated ascent has passed one value and will hardly reach another.

    Gains of steps differ, those of cycles of two steps and a leap hardly.
    """
    n_iter = len(objectives) - 1
    if n_iter < 6 or n_iter % 3 or not passed <= objectives[-1]:
        return False
    gain = objectives[-1] - objectives[-4]
    return bool(objectives[-1] + hope * gain < target)


class _Leaps:
    """Extrapolates the statistics of an ascent that converges slowly.

    Squared extrapolation after two plain steps [1]_. It is applied to statistics, which
    add up, and not to parameters, so that the M-step sees to all constraints. A leap
    that loses is taken back.

    References
    ----------
    .. [1] Varadhan, R. and Roland, C. (2008). Simple and globally convergent methods
       for accelerating the convergence of any EM algorithm. Scandinavian Journal of
       Statistics 35.
    """

    def __init__(self):
        self.origin: Any = None
        self._objective = -np.inf
        self._path: list = []
        self._longest = FIRST_LEAP
        self._is_leap = False

    @property
    def is_complete(self) -> bool:
        """Whether two plain steps and a leap have just been made, or none yet."""
        return not self._path

    def fails(self, objective) -> bool:
        """Whether the last step was a leap that has lost."""
        if not self._is_leap:
            return False
        self._is_leap = False
        lost = not objective >= self._objective
        self._longest = max(self._longest / 4, 2.0) if lost else self._longest
        return lost

    def next(self, state, statistics, objective):
        """Statistics for the next M-step."""
        parts = [array.ravel() for array in _arrays(statistics)]
        self._path.append(parts[0] if len(parts) == 1 else np.concatenate(parts))
        if len(self._path) < 3:
            return statistics
        first, second, third = self._path
        self._path = []
        step, turn = second - first, third - 2 * second + first
        # Cells weigh as in the information of the counts: small ones are not lost.
        scale = 1 / np.sqrt(np.abs(third) + 1e-3)
        bend = float(np.linalg.norm(turn * scale))
        length = float(np.linalg.norm(step * scale)) / max(bend, 1e-12)
        if not length > 1:
            return statistics
        if length > self._longest:
            length, self._longest = self._longest, 4 * self._longest
        self.origin, self._objective, self._is_leap = (
            (state, statistics),
            objective,
            True,
        )
        far = first + 2 * length * step + length**2 * turn
        # Counts are not negative; other statistics may be.
        counts = np.minimum(np.minimum(first, second), third) >= 0
        far = np.where(counts, np.maximum(far, LEAST_SHARE * third), far)
        return _rebuilt(statistics, _Reader(far))


def _arrays(tree) -> list[np.ndarray]:
    """All arrays of nested tuples, lists and dataclasses, in order.

    Not single numbers: a log-likelihood is no statistic, and depends on units.
    """
    if isinstance(tree, np.ndarray):
        return [np.asarray(tree, dtype=float)] if tree.ndim else []
    if is_dataclass(tree):
        tree = [getattr(tree, field.name) for field in fields(tree)]
    if isinstance(tree, tuple | list):
        return [array for part in tree for array in _arrays(part)]
    return []


def _rebuilt(tree: Any, values: _Reader) -> Any:
    """The same nest with other values."""
    if isinstance(tree, tuple | list):
        return type(tree)(_rebuilt(part, values) for part in tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        parts = {f.name: _rebuilt(getattr(tree, f.name), values) for f in fields(tree)}
        return replace(tree, **parts)
    return values.take(np.shape(tree)) if np.ndim(tree) else tree


class _Reader:
    """Reads arrays from a vector, one after the other."""

    def __init__(self, values):
        self.values, self.place = values, 0

    def take(self, shape) -> np.ndarray:
        """The next array."""
        first, self.place = self.place, self.place + prod(shape)
        return self.values[first : self.place].reshape(shape)
