"""Whether it depends on the value of a feature that another is missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._core.checks import count_z, critical_z
from ..._core.warn import warn
from ..._tables.thin import evenly_spaced
from ...exceptions import PoorDataWarning
from .patterns import Patterns

# Rows to count in: as many as have so many values, but at least so many.
MOST_VALUES, LEAST_ROWS = 1 << 22, 1000
# A warning should be rarer than a failing check: where gaps depend on nothing, 2 of 900
# tables got one, and 45 at the level of the checks.
CAUTION = 10


@dataclass(frozen=True)
class Gaps:
    """Counts of two features, one of which may be missing; those of batches add up.

    known: weight of the rows that have both, (n_features, n_features)
    on: of those in which the first is on
    """

    known: np.ndarray
    on: np.ndarray

    @classmethod
    def of(cls, patterns: Patterns) -> Gaps:
        """Count in rows, in some of many."""
        n_rows, n_features = patterns.on.shape
        most = max(LEAST_ROWS, MOST_VALUES // max(n_features, 1))
        patterns = patterns.take(evenly_spaced(n_rows, most))
        weights = patterns.weights
        if patterns.observed is None:
            on = np.repeat(weights @ patterns.on, n_features).reshape(n_features, -1)
            return cls(np.full_like(on, weights.sum()), on)
        known = patterns.observed.astype(np.float64)
        return cls(*((part.T * weights) @ known for part in (known, patterns.on)))

    def __add__(self, other: Gaps) -> Gaps:
        return Gaps(self.known + other.known, self.on + other.on)

    @property
    def z(self) -> np.ndarray:
        """How much more often features are on where others are missing."""
        total, on = (np.diagonal(part)[:, np.newaxis] for part in (self.known, self.on))
        missing, rate = total - self.known, on / np.maximum(total, 1.0)
        mean = missing * rate
        variance = mean * (1.0 - rate) * self.known / np.maximum(total, 1.0)
        return np.where(variance > 0, count_z(on - self.on, mean, variance), 0.0)

    def warn(self, names) -> None:
        """Say so if rows that have two features are not like others."""
        z = np.abs(self.z)
        if z.max(initial=0.0) > critical_z(int((z > 0).sum()), CAUTION):
            first, second = np.unravel_index(z.argmax(), z.shape)
            warn(
                f"Whether a value is missing depends on other features, as of "
                f"{names[second]} on {names[first]}. Moments of rows that have "
                "certain features are biased then; refine=True corrects for it "
                "where components of the network are small.",
                PoorDataWarning,
            )
