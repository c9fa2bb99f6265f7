"""Numbers that are normal given the state, or whose logarithms are.

With memory they follow their own past: an autoregression in each state.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ..._core.persistence import Array
from ..._core.validation import check_numbers, check_probabilities
from .emission import (
    N_TYPICAL,
    SMALLEST_LOG,
    SMOOTHING,
    Column,
    Emission,
    previous_values,
)

# Smallest variance of a state, relative to that of the column: a state of one repeated
# value would otherwise have an infinite density.
VARIANCE_FLOOR = 1e-6

# A spread below this share of the values is rounding.
ROUNDING = 1e-14

# Standardised numbers end here, so that their squares do not overflow.
FARTHEST = 1e50

# Logarithms end here: a number that is not positive is all but impossible, and the
# square of the largest does not overflow.
LEAST, MOST = -690.0, 350.0

# Center and scale of a column are those of its numbers within the outer fences of
# Tukey, three times the distance between two quantiles beyond these. With quartiles, a
# class of a quarter of the rows could lie outside; of normal numbers none does.
FIRST_QUANTILE = 1 / 16
FENCE = 3.0

# Inner edges of bins of standardised numbers, for shares of numbers by state.
EDGES = np.linspace(-4.0, 4.0, 33)

_ALONE = ("mean", "std")
_AFTER = ("level", "slope", "noise")
_COLUMN = ("center", "scale", "contamination")


def _made_of(vectors: tuple[str, ...]) -> dict:
    """What an emission is made of: vectors by state, and numbers of the column."""
    of_column = {"contamination": Array("float", 0, omitted=True)}
    of_column = {"center": Array("float", 0), "scale": Array("float", 0)} | of_column
    return {name: Array("float", 1) for name in vectors} | of_column


class Numbers(Emission):
    """What emissions of numbers have in common.

    A normal density alone would let one far value outweigh all others. So a number is
    normal with a probability of ``1 - contamination``, or else Cauchy with `center` and
    `scale`, whatever the state. Predictions are those of normal numbers.

    Of logarithms, parameters are those of logarithms; numbers that are anywhere have a
    half-Cauchy density, whose median is that of all: it is finite at zero, where that
    of a logarithm is not. Their last statistic is the logarithm with a minus, that of
    the derivative: likelihoods are densities of numbers.
    """

    is_numeric = True
    n_categories = 0
    is_logarithm: ClassVar[bool] = False
    mean: np.ndarray
    std: np.ndarray
    level: np.ndarray
    slope: np.ndarray
    noise: np.ndarray
    center: float
    scale: float

    def _set(self, vectors: dict, **of_column) -> None:
        """Check and keep the parameters."""
        for name, values in vectors.items():
            n_states = None if name == "mean" else len(self.mean)
            positive = name in ("std", "noise")
            setattr(self, name, check_vector(name, values, n_states, positive=positive))
        for name, value in of_column.items():
            number = np.atleast_1d(value)
            found = check_vector(name, number, 1, positive=name == "scale")
            setattr(self, name, float(found[0]))
        check_probabilities("contamination", np.array([self.contamination]))

    @classmethod
    def flat(cls, column: Column) -> Self:
        """Mean and standard deviation of the column, no memory; few numbers are far."""
        values = logarithms(column.values) if cls.is_logarithm else column.values
        center, scale = mean_and_spread(fenced(values, column.weights), column.weights)
        n_known = column.weights @ (~np.isnan(values)).sum(axis=1)
        few = SMOOTHING / (n_known + 2 * SMOOTHING)
        after = ([center], [0.0], [scale]) if cls.has_memory else ()
        return cls([center], [scale], *after, center, scale, few)  # type: ignore[call-arg]

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.mean)

    @property
    def n_free(self) -> int:
        """Number of free parameters."""
        return (5 if self.has_memory else 2) * self.n_states + (self.contamination > 0)

    @property
    def key(self) -> tuple:
        """What the design depends on."""
        return self.kind, self.center, self.scale

    @property
    def n_own(self) -> int:
        """Statistics of normal numbers.

        Two more follow: how many are not, and what these add to the expected
        log-likelihood whatever the parameters; then the derivative of logarithms.
        """
        return 9 if self.has_memory else 3

    @cached_property
    def natural(self) -> np.ndarray:
        """Coefficients of the statistics, (n_states, n_statistics)."""
        parts = [self._coefficients(*self._alone)]
        if self.has_memory:
            (level, noise), slope = self._after, self.slope
            cross = [-level * slope / noise, -(slope**2) / noise / 2, slope / noise]
            parts = [self._coefficients(level, noise), np.stack(cross, axis=1), *parts]
        far = [np.log(self.contamination) if self.contamination else SMALLEST_LOG, 1.0]
        far += [1.0] * self.is_logarithm
        return np.concatenate([*parts, np.tile(far, (self.n_states, 1))], axis=1)

    def _coefficients(self, mean, variance) -> np.ndarray:
        """Coefficients of 1, z and z squared; z is the standardised number."""
        constant = -(mean**2) / variance - np.log(2 * np.pi * variance)
        constant = constant / 2 - np.log(self.scale)
        constant = constant + np.log1p(-min(self.contamination, 1 - ROUNDING))
        return np.stack([constant, mean / variance, -0.5 / variance], axis=1)

    def design(self, values: ArrayLike, previous: ArrayLike) -> np.ndarray:
        """1, z and z²; with memory 1, z, z², p, p², zp of z after p, then those."""
        z, p = self.standardized(values), self.standardized(previous)
        powers = np.stack([np.ones_like(z), z, z**2, p, p**2, z * p], axis=1)
        parts = [powers[:, :3]]
        if self.has_memory:
            first = np.isnan(p)[:, None]
            parts = [np.where(first, 0.0, powers), powers[:, :3] * first]
        parts.append(np.zeros((len(z), 2)))
        if self.is_logarithm:
            parts.append(-logarithms(values)[:, None])
        return np.where(np.isnan(z)[:, None], 0.0, np.concatenate(parts, axis=1))

    def pseudo_statistics(self, smoothing: float) -> np.ndarray:
        """Independent standard normal numbers: those of the column."""
        after = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0] * self.has_memory
        alone = [1.0, 0.0, 1.0, 1.0, 0.0, *[0.0] * self.is_logarithm]
        return smoothing * np.array([*after, *alone])

    def fitted(self, statistics: np.ndarray, smoothing: float = SMOOTHING) -> Self:
        """Mean and variance of the numbers, and regression on those before."""
        statistics = statistics + self.pseudo_statistics(smoothing)
        own = statistics[:, : self.n_own]
        found = dict(zip(_ALONE, self._in_units(*moments(own[:, -3:])), strict=True))
        if self.has_memory:
            level, slope, noise = _regression(own[:, :6])
            found["level"], found["noise"] = self._in_units(level, noise)
            found["slope"] = slope
        share = self.contamination
        if share:
            # With memory, those after another number and those after none.
            near, far = own[:, ::6].sum(), statistics[:, self.n_own].sum()
            share = far / (near + far) if near + far else share
        return self._with(**found, contamination=share)

    def far_from(self, values: ArrayLike) -> np.ndarray:
        """Log-density of numbers that do not depend on the state; missing: -inf."""
        z = self.standardized(values)
        missing = np.isnan(z)
        if self.is_logarithm:
            distance = np.where(missing, 0.0, logarithms(values) - self.center)
            logs = np.log(2 / np.pi) - self.center - np.logaddexp(0.0, 2 * distance)
        else:
            logs = -np.log(np.pi * self.scale) - np.log1p(z**2)
        return np.where(missing, -np.inf, logs)

    def draw(self, states: np.ndarray, rng: Any) -> np.ndarray:
        """Draw numbers, slice by slice if each depends on the last."""
        if not self.has_memory:
            return self._drawn(self.mean[states], self.std[states], rng)
        logs = np.empty(states.shape)
        for t, state in enumerate(states.T):
            if t:
                before = logs[:, t - 1] - self.center
                mean = self.level[state] + self.slope[state] * before
                values = self._drawn(mean, self.noise[state], rng)
            else:
                values = self._drawn(self.mean[state], self.std[state], rng)
            logs[:, t] = np.log(values) if self.is_logarithm else values
        return np.exp(logs) if self.is_logarithm else logs

    def _drawn(self, mean, std, rng) -> np.ndarray:
        """Draw numbers of given means; a few are anywhere."""
        drawn = rng.normal(mean, std)
        if self.contamination:
            chance, place = rng.uniform(size=(2, *drawn.shape))
            far = self.scale * np.tan(np.pi * (place - 0.5))
            if self.is_logarithm:
                far = np.log(np.tan(np.pi / 2 * place))
            drawn = np.where(chance < self.contamination, self.center + far, drawn)
        return np.exp(np.clip(drawn, LEAST, MOST)) if self.is_logarithm else drawn

    def predicted(self, posterior: ArrayLike, values: ArrayLike) -> np.ndarray:
        """Mean and standard deviation of each number."""
        posterior = np.asarray(posterior)
        if not self.has_memory:
            return self._mixed(posterior, *self._alone)
        numbers, (mean, variance) = self.standardized(values), self._alone
        level, noise = self._after
        found = np.empty((*numbers.shape, 2))
        for t, number in enumerate(numbers.T):
            found[:, t] = self._mixed(posterior[:, t], mean, variance)
            before, spread = mixed_moments(posterior[:, t], mean, variance)
            known = ~np.isnan(number)
            before = np.where(known, number, before)[:, None]
            spread = np.where(known, 0.0, spread)[:, None]
            mean = level + self.slope * before
            variance = noise + self.slope**2 * spread
        return found

    def _mixed(self, posterior, mean, variance) -> np.ndarray:
        """Mean and standard deviation, in units, of mixtures of standardised ones."""
        if not self.is_logarithm:
            mixed = self._in_units(*mixed_moments(posterior, mean, variance))
            return np.stack(mixed, axis=-1)
        mean, std = self._in_units(mean, variance)
        means = np.exp(np.clip(mean + std**2 / 2, LEAST, MOST))
        mixed = (posterior * means).sum(axis=-1)
        factor = np.expm1(np.minimum(std**2, 1.0 * MOST / 2))
        # Squares of the largest numbers would overflow, those of shares do not.
        largest = means.max(axis=-1, keepdims=True)
        shares = means / largest
        spread = shares**2 * factor + (shares - mixed[..., None] / largest) ** 2
        spread = largest[..., 0] * np.sqrt((posterior * spread).sum(axis=-1))
        return np.stack([mixed, spread], axis=-1)

    def below(self, values: ArrayLike) -> np.ndarray:
        """P(a number is less | state), (n, n_slices, n_states)."""
        z, (mean, variance) = self.standardized(values), self._alone
        if self.has_memory:
            before, (level, noise) = previous_values(z)[..., None], self._after
            first = np.isnan(before)
            mean = np.where(first, mean, level + self.slope * before)
            variance = np.where(first, variance, noise)
        own = ndtr((z[..., None] - mean) / np.sqrt(variance))
        far = 0.5 + np.arctan(z) / np.pi
        if self.is_logarithm:
            far = 2 / np.pi * np.arctan(np.exp(np.minimum(self.scale * z, MOST)))
        return own + self.contamination * (far[..., None] - own)

    @property
    def typical(self) -> np.ndarray:
        """Shares of bins; with memory, in the first slices of a state that stays."""
        mean, variance = self._alone
        shares = [_bin_shares(mean, variance)]
        for _ in range(N_TYPICAL - 1 if self.has_memory else 0):
            level, noise = self._after
            mean = level + self.slope * mean
            variance = noise + self.slope**2 * variance
            shares.append(_bin_shares(mean, variance))
        return np.mean(shares, axis=0)

    def standardized(self, values: ArrayLike) -> np.ndarray:
        """Numbers, or their logarithms, less the center, in units of the scale."""
        return self._relative(logarithms(values) if self.is_logarithm else values)

    def restored(self, z: np.ndarray) -> np.ndarray:
        """Numbers of standardised ones."""
        values = self.center + self.scale * z
        return np.exp(np.clip(values, LEAST, MOST)) if self.is_logarithm else values

    def _relative(self, values) -> np.ndarray:
        """Numbers as parameters have them, less the center, in units of the scale."""
        # Half of a number, because differences of the largest would overflow.
        with np.errstate(over="ignore"):
            z = (np.asarray(values) / 2 - self.center / 2) / self.scale * 2
        return np.clip(z, -FARTHEST, FARTHEST)

    @property
    def _alone(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of standardised numbers after none."""
        return self._relative(self.mean), (self.std / self.scale) ** 2

    @property
    def _after(self) -> tuple[np.ndarray, np.ndarray]:
        """Level and variance of standardised numbers after others."""
        return self._relative(self.level), (self.noise / self.scale) ** 2

    def _in_units(self, mean, variance) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation in units of the column."""
        return self.center + self.scale * mean, self.scale * np.sqrt(variance)


class Gaussian(Numbers):
    """Numbers that are normal given the state, but for a few that are anywhere.

    Parameters
    ----------
    mean, std : array-like of shape (n_states,)
        Mean and standard deviation of the numbers in each state.
    center, scale : float, default=0 and 1
        Mean and standard deviation of the whole column without far values. Statistics
        are those of standardised numbers, which keeps their digits; the prior of a
        state is a tenth of an observation of the whole column, and its variance is at
        least a millionth of the column's.
    contamination : float, default=0
        Share of numbers that are anywhere, Cauchy with `center` and `scale`.

    Examples
    --------
    >>> from sklearn_latent.mixed import Gaussian
    >>> emission = Gaussian(mean=[10.0, 20.0], std=[1.0, 2.0])
    >>> emission.predicted([[[0.5, 0.5]]], [[float("nan")]]).round(2)
    array([[[15.  ,  5.24]]])
    """

    kind = "gaussian"
    _fields: ClassVar = _made_of(_ALONE)

    def __init__(
        self,
        mean: ArrayLike,
        std: ArrayLike,
        center: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        contamination: ArrayLike = 0.0,
    ):
        vectors = {"mean": mean, "std": std}
        self._set(vectors, center=center, scale=scale, contamination=contamination)


class LogNormal(Gaussian):
    """Positive numbers whose logarithms are normal given the state.

    Parameters
    ----------
    mean, std : array-like of shape (n_states,)
        Mean and standard deviation of the logarithms in each state.
    center, scale, contamination : float, default=0, 1 and 0
        Of the logarithms of the whole column; see `Gaussian`. Numbers that are anywhere
        are half-Cauchy.

    Examples
    --------
    >>> from sklearn_latent.mixed import LogNormal
    >>> emission = LogNormal(mean=[0.0, 3.0], std=[0.5, 0.5])
    >>> emission.predicted([[[0.5, 0.5]]], [[float("nan")]]).round(2)
    array([[[11.95, 13.81]]])
    """

    kind = "lognormal"
    is_logarithm = True


class GaussianMemory(Numbers):
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
    _fields: ClassVar = _made_of((*_ALONE, *_AFTER))

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
        vectors = {"mean": mean, "std": std}
        vectors |= {"level": level, "slope": slope, "noise": noise}
        self._set(vectors, center=center, scale=scale, contamination=contamination)


class LogNormalMemory(GaussianMemory):
    """Positive numbers whose logarithms follow those before.

    Parameters
    ----------
    mean, std : array-like of shape (n_states,)
        Of logarithms of numbers before which none is known.
    level, slope, noise : array-like of shape (n_states,)
        Regression of a logarithm on that before; see `GaussianMemory`.
    center, scale, contamination : float, default=0, 1 and 0
        Of the logarithms of the whole column; see `LogNormal`.

    Examples
    --------
    >>> from sklearn_latent.mixed import LogNormalMemory
    >>> emission = LogNormalMemory([0.0], [1.0], level=[0.0], slope=[0.9], noise=[0.1])
    >>> emission.predicted([[[1.0], [1.0]]], [[20.0, float("nan")]])[0, 1].round(2)
    array([14.9 ,  1.49])
    """

    kind = "lognormal memory"
    is_logarithm = True


def logarithms(values) -> np.ndarray:
    """Logarithms of numbers, far below all others where a number is not positive."""
    values = np.asarray(values, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(values > 0, values, 0.0))
    return np.where(np.isnan(values), np.nan, np.maximum(logs, LEAST))


def mean_and_spread(values, weights=None) -> tuple[float, float]:
    """Mean and standard deviation of the known numbers; 0 and 1 if there are none.

    values (n, n_slices), weights (n,).
    """
    known = ~np.isnan(values)
    weights = np.ones(len(values)) if weights is None else weights
    weights = np.broadcast_to(weights[:, None], known.shape)[known]
    values = values[known]
    if not weights.any():
        return 0.0, 1.0
    # Relative to the largest, whose square may overflow.
    largest = np.abs(values).max() or 1.0
    weights, values = weights / weights.max(), values / largest
    center = np.average(values, weights=weights)
    spread = np.sqrt(np.average((values - center) ** 2, weights=weights))
    if spread <= ROUNDING * abs(center):
        spread = abs(center) or 1.0
    return float(center * largest), float(spread * largest)


def fenced(values, weights) -> np.ndarray:
    """Numbers of a column, none beyond its outer fences; missing ones stay."""
    known = ~np.isnan(values) & (weights > 0)[:, None]
    mass = np.broadcast_to(weights[:, None], known.shape)[known]
    distinct, place = np.unique(values[known], return_inverse=True)
    if len(distinct) < 2:
        return values
    mass = np.cumsum(np.bincount(place.ravel(), mass))
    # Of a column of many equal values, quantiles farther out.
    shares = mass[-1] * FIRST_QUANTILE * 0.5 ** np.arange(20)
    low = distinct[np.searchsorted(mass, shares)]
    high = distinct[np.searchsorted(mass, mass[-1] - shares)]
    first = (high > low).argmax()
    low, high = low[first], high[first]
    if not high > low:
        return values
    # The distance may overflow.
    with np.errstate(over="ignore"):
        reach = FENCE * (high - low)
        return np.clip(values, low - reach, high + reach)


def moments(statistics) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance from sums of 1, z and z squared; 0 and 1 of nothing."""
    total, first, second = np.moveaxis(statistics, -1, 0)
    nothing = total <= 0
    total = np.where(nothing, 1.0, total)
    mean = first / total
    variance = np.where(nothing, 1.0, second / total - mean**2)
    return mean, np.maximum(variance, VARIANCE_FLOOR)


def mixed_moments(posterior, mean, variance) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of mixtures over the last axis."""
    mixed = (posterior * mean).sum(axis=-1)
    spread = variance + (mean - mixed[..., None]) ** 2
    return mixed, (posterior * spread).sum(axis=-1)


def _bin_shares(mean, variance) -> np.ndarray:
    """Shares of bins of standardised numbers, (n_states, n_bins)."""
    below = ndtr((EDGES - mean[:, None]) / np.sqrt(variance)[:, None])
    ends = np.zeros((len(mean), 1)), np.ones((len(mean), 1))
    return np.diff(np.concatenate([ends[0], below, ends[1]], axis=1), axis=1)


def check_vector(name: str, values, length=None, *, positive=False) -> np.ndarray:
    """Validate a parameter with one finite number per state; read-only."""
    array = np.array(check_numbers(name, values))
    if array.ndim != 1 or length not in (None, len(array)):
        size = "n_states" if length is None else length
        raise ValueError(f"{name} must have shape ({size},), got {array.shape}.")
    if not np.isfinite(array).all() or (positive and array.min(initial=1.0) <= 0):
        kind = "positive" if positive else "finite"
        raise ValueError(f"{name} must hold {kind} numbers, got others.")
    array.setflags(write=False)
    return array


def _regression(statistics) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Level, slope and variance of the rest from sums of 1, z, z², p, p², zp."""
    mean, variance = moments(statistics[:, :3])
    before, spread = moments(statistics[:, [0, 3, 4]])
    total = np.where(statistics[:, 0] > 0, statistics[:, 0], 1.0)
    product = statistics[:, 5] / total - mean * before
    slope = product / spread
    noise = np.maximum(variance - slope * product, VARIANCE_FLOOR)
    return mean - slope * before, slope, noise
