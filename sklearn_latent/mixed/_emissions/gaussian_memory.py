"""Numbers that follow their own past: an autoregression in each state."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._core.persistence import Array
from .base import SMOOTHING, Column
from .discrete import N_TYPICAL
from .gaussian import (
    VARIANCE_FLOOR,
    Gaussian,
    bin_shares,
    check_vector,
    mixed_moments,
    moments,
)


class GaussianMemory(Gaussian):
    """Numbers that are normal given the state and the number before.

    Where the number before is known, the mean is ``level + slope * (before - center)``
    and the standard deviation `noise`; else they are `mean` and `std`. The model is
    that of recorded numbers given which are recorded, as for categories with memory.

    Parameters
    ----------
    mean, std : array-like of shape (n_states,)
        Of numbers before which none is known.
    level, slope, noise : array-like of shape (n_states,)
        Regression of a number on that before.
    center, scale, contamination : float, default=0, 1 and 0
        As for `Gaussian`.

    Examples
    --------
    >>> from sklearn_latent.mixed import GaussianMemory
    >>> emission = GaussianMemory([0.0], [1.0], level=[0.0], slope=[0.9], noise=[0.1])
    >>> emission.predicted([[[1.0], [1.0]]], [[20.0, float("nan")]])[0, 1]
    array([18. ,  0.1])
    """

    kind = "gaussian memory"
    has_memory = True
    n_own = 9
    _fields: ClassVar = {
        "mean": Array("float", 1),
        "std": Array("float", 1),
        "level": Array("float", 1),
        "slope": Array("float", 1),
        "noise": Array("float", 1),
        "center": Array("float", 0),
        "scale": Array("float", 0),
        "contamination": Array("float", 0, omitted=True),
    }

    def __init__(
        self,
        mean: ArrayLike,
        std: ArrayLike,
        level: ArrayLike,
        slope: ArrayLike,
        noise: ArrayLike,
        center: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        contamination: ArrayLike = 0.0,
    ):
        super().__init__(mean, std, center, scale, contamination)
        self.level = check_vector("level", level, self.n_states)
        self.slope = check_vector("slope", slope, self.n_states)
        self.noise = check_vector("noise", noise, self.n_states, positive=True)

    @classmethod
    def flat(cls, column: Column) -> Self:
        """Mean and standard deviation of the column, and no memory yet."""
        flat = Gaussian.flat(column)
        after = flat.mean, [0.0], flat.std
        column_wide = flat.center, flat.scale, flat.contamination
        return cls(flat.mean, flat.std, *after, *column_wide)

    @property
    def n_free(self) -> int:
        """Number of free parameters."""
        return 5 * self.n_states + (self.contamination > 0)

    @cached_property
    def natural(self) -> np.ndarray:
        """Coefficients of 1, z, z², p, p², zp after a number p; then 1, z, z²."""
        level, noise = self._relative(self.level, self.noise)
        slope = self.slope
        after = np.stack(
            [-level * slope / noise, -(slope**2) / noise / 2, slope / noise], axis=1
        )
        alone = super().natural
        return np.concatenate([self._natural(level, noise), after, alone], axis=1)

    def design(self, values: ArrayLike, previous: ArrayLike) -> np.ndarray:
        """1, z, z² and with the number before, p, also p, p², zp; elsewhere 0."""
        z, p = self._relative_numbers(values), self._relative_numbers(previous)
        powers = np.stack([np.ones_like(z), z, z**2, p, p**2, z * p], axis=1)
        alone = powers[:, :3] * np.isnan(p)[:, None]
        after = np.where(np.isnan(p)[:, None], 0.0, powers)
        rows = np.concatenate([after, alone, np.zeros((len(z), 2))], axis=1)
        return np.where(np.isnan(z)[:, None], 0.0, rows)

    def pseudo_statistics(self, smoothing: float) -> np.ndarray:
        """Pairs of independent standard normal numbers, and single ones."""
        alone = super().pseudo_statistics(smoothing)
        after = smoothing * np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
        return np.concatenate([after, alone])

    def fitted(self, statistics: np.ndarray, smoothing: float = SMOOTHING) -> Self:
        """Mean and spread of numbers, and regression on those before."""
        statistics = statistics + self.pseudo_statistics(smoothing)
        mean, std = self._in_units(*moments(statistics[:, 6:9]))
        level, slope, noise = _regression(statistics[:, :6])
        level, noise = self._in_units(level, noise)
        after = {"level": level, "slope": slope, "noise": noise}
        share = self._contamination(statistics)
        return self._with(mean=mean, std=std, contamination=share, **after)

    def draw(self, states: np.ndarray, rng: Any) -> np.ndarray:
        """Draw numbers slice by slice."""
        values = np.empty(states.shape)
        values[:, 0] = super().draw(states[:, 0], rng)
        for t in range(1, states.shape[1]):
            state = states[:, t]
            before = values[:, t - 1] - self.center
            mean = self.level[state] + self.slope[state] * before
            drawn = rng.normal(mean, self.noise[state])
            values[:, t] = self._contaminated(drawn, rng)
        return values

    def predicted(self, posterior: ArrayLike, values: ArrayLike) -> np.ndarray:
        """Mean and standard deviation of each number."""
        posterior, numbers = np.asarray(posterior), self._relative_numbers(values)
        mean, variance = self._relative(self.mean, self.std)
        level, noise = self._relative(self.level, self.noise)
        found = np.empty((*numbers.shape, 2))
        for t in range(numbers.shape[1]):
            found[:, t] = self._mixed(posterior[:, t], mean, variance)
            before, spread = mixed_moments(posterior[:, t], mean, variance)
            known = ~np.isnan(numbers[:, t])
            before = np.where(known, numbers[:, t], before)[:, None]
            spread = np.where(known, 0.0, spread)[:, None]
            mean = level + self.slope * before
            variance = noise + self.slope**2 * spread
        return found

    def _after(self, before) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = self._relative(self.mean, self.std)
        level, noise = self._relative(self.level, self.noise)
        alone, before = np.isnan(before)[..., None], before[..., None]
        mean = np.where(alone, mean, level + self.slope * before)
        return mean, np.where(alone, variance, noise)

    @property
    def typical(self) -> np.ndarray:
        """Shares of bins in the first slices of a state that stays."""
        mean, variance = self._relative(self.mean, self.std)
        level, noise = self._relative(self.level, self.noise)
        shares = [bin_shares(mean, variance)]
        for _ in range(N_TYPICAL - 1):
            mean = level + self.slope * mean
            variance = noise + self.slope**2 * variance
            shares.append(bin_shares(mean, variance))
        return np.mean(shares, axis=0)


def _regression(statistics) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Level, slope and variance of the rest from sums of 1, z, z², p, p², zp."""
    mean, variance = moments(statistics[:, :3])
    before, spread = moments(statistics[:, [0, 3, 4]])
    total = np.where(statistics[:, 0] > 0, statistics[:, 0], 1.0)
    product = statistics[:, 5] / total - mean * before
    slope = product / spread
    noise = np.maximum(variance - slope * product, VARIANCE_FLOOR)
    return mean - slope * before, slope, noise
