"""Numbers with a mean and a standard deviation of each state."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ..._core.persistence import Array
from ..._core.validation import check_numbers, check_probabilities
from .base import SMALLEST_LOG, SMOOTHING, Column, Emission, previous_values

# Smallest variance of a state, relative to that of the column: a state of one repeated
# value would otherwise have an infinite density.
VARIANCE_FLOOR = 1e-6

# A spread below this share of the values is rounding.
ROUNDING = 1e-14

# Standardised numbers end here, so that their squares do not overflow.
FARTHEST = 1e50

# Center and scale of a column are those of its numbers within the outer fences of
# Tukey, three times the distance between two quantiles beyond these. With quartiles, a
# class of a quarter of the rows could lie outside; of normal numbers none does.
FIRST_QUANTILE = 1 / 16
FENCE = 3.0
MOST_HALVINGS = 20

# Inner edges of bins of standardised numbers, for shares of numbers by state.
EDGES = np.linspace(-4.0, 4.0, 33)


class Gaussian(Emission):
    """Numbers that are normal given the state, but for a few that are anywhere.

    A normal density alone would let one far value outweigh all others. So a number is
    normal with a probability of ``1 - contamination``, or else Cauchy with `center` and
    `scale`, whatever the state. Predictions are those of normal numbers.

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
        Share of numbers that are anywhere.

    Examples
    --------
    >>> from sklearn_latent.mixed import Gaussian
    >>> emission = Gaussian(mean=[10.0, 20.0], std=[1.0, 2.0])
    >>> emission.predicted([[[0.5, 0.5]]], [[float("nan")]]).round(2)
    array([[[15.  ,  5.24]]])
    """

    kind = "gaussian"
    is_numeric = True
    n_categories = 0
    # Statistics of normal numbers. Two more follow: how many are not, and what these
    # add to the expected log-likelihood whatever the parameters.
    n_own: ClassVar[int] = 3
    _fields: ClassVar = {
        "mean": Array("float", 1),
        "std": Array("float", 1),
        "center": Array("float", 0),
        "scale": Array("float", 0),
        "contamination": Array("float", 0, omitted=True),
    }

    def __init__(
        self,
        mean: ArrayLike,
        std: ArrayLike,
        center: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        contamination: ArrayLike = 0.0,
    ):
        self.mean = check_vector("mean", mean)
        self.std = check_vector("std", std, len(self.mean), positive=True)
        self.center = float(check_vector("center", np.atleast_1d(center), 1)[0])
        scale = check_vector("scale", np.atleast_1d(scale), 1, positive=True)
        self.scale = float(scale[0])
        share = check_vector("contamination", np.atleast_1d(contamination), 1)
        check_probabilities("contamination", share)
        self.contamination = float(share[0])

    @classmethod
    def flat(cls, column: Column) -> Self:
        """Mean and standard deviation of the column; few numbers are far."""
        center, scale = mean_and_spread(fenced(column), column.weights)
        n_known = column.weights @ (~np.isnan(column.values)).sum(axis=1)
        few = SMOOTHING / (n_known + 2 * SMOOTHING)
        return cls([center], [scale], center, scale, few)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.mean)

    @property
    def n_free(self) -> int:
        """Number of free parameters."""
        return 2 * self.n_states + (self.contamination > 0)

    @property
    def key(self) -> tuple:
        """What the design depends on."""
        return self.kind, self.center, self.scale

    @cached_property
    def natural(self) -> np.ndarray:
        """Coefficients of 1, z and z squared; z is the standardised number."""
        return self._padded(self._natural(*self._relative(self.mean, self.std)))

    def _padded(self, natural) -> np.ndarray:
        """Coefficients of normal numbers, and those of the others."""
        far = [np.log(self.contamination) if self.contamination else SMALLEST_LOG, 1.0]
        return np.append(natural, np.tile(far, (len(natural), 1)), axis=1)

    def design(self, values: ArrayLike, previous: ArrayLike) -> np.ndarray:
        """1, z and z squared."""
        z = self._relative_numbers(values)
        none = np.zeros_like(z)
        powers = np.stack([np.ones_like(z), z, z**2, none, none], axis=1)
        return np.where(np.isnan(z)[:, None], 0.0, powers)

    def pseudo_statistics(self, smoothing: float) -> np.ndarray:
        """Standard normal numbers: those of the column."""
        return smoothing * np.array([1.0, 0.0, 1.0, 1.0, 0.0])

    def fitted(self, statistics: np.ndarray, smoothing: float = SMOOTHING) -> Self:
        """Mean and variance of the numbers."""
        statistics = statistics + self.pseudo_statistics(smoothing)
        mean, variance = moments(statistics[:, :3])
        mean, std = self._in_units(mean, variance)
        share = self._contamination(statistics)
        return self._with(mean=mean, std=std, contamination=share)

    def _contamination(self, statistics) -> float:
        """Share of numbers that are anywhere; none of those that do not say so."""
        if not self.contamination:
            return 0.0
        # With memory, those after another number and those after none.
        own, far = (
            statistics[:, : self.n_own : 6].sum(),
            statistics[:, self.n_own].sum(),
        )
        return far / (own + far) if own + far else self.contamination

    def far_from(self, values: ArrayLike) -> np.ndarray:
        """Log-density of numbers that do not depend on the state; missing: -inf."""
        z = self.standardized(values)
        logs = -np.log(np.pi * self.scale) - np.log1p(z**2)
        return np.where(np.isnan(z), -np.inf, logs)

    def draw(self, states: np.ndarray, rng: Any) -> np.ndarray:
        """Draw numbers."""
        drawn = rng.normal(self.mean[states], self.std[states])
        return self._contaminated(drawn, rng)

    def _contaminated(self, drawn: np.ndarray, rng: Any) -> np.ndarray:
        """Replace a few numbers by such that are anywhere."""
        if not self.contamination:
            return drawn
        place = rng.uniform(size=(2, *drawn.shape))
        return np.where(place[0] < self.contamination, self._far_at(place[1]), drawn)

    def _far_at(self, place: np.ndarray) -> np.ndarray:
        """Quantiles of numbers that are anywhere."""
        return self.center + self.scale * np.tan(np.pi * (place - 0.5))

    def _far_below(self, z: np.ndarray) -> np.ndarray:
        """Share of them that is below standardised numbers."""
        return 0.5 + np.arctan(z) / np.pi

    def predicted(self, posterior: ArrayLike, values: ArrayLike) -> np.ndarray:
        """Mean and standard deviation of each number."""
        return self._mixed(posterior, *self._relative(self.mean, self.std))

    def below(self, values: ArrayLike) -> np.ndarray:
        """P(a number is less | state), (n, n_slices, n_states)."""
        z = self.standardized(values)
        mean, variance = self._after(previous_values(z))
        own = ndtr((z[..., None] - mean) / np.sqrt(variance))
        far = self._far_below(z)[..., None]
        return own + self.contamination * (far - own)

    def _after(self, before) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of standardised numbers of each state, after others."""
        return self._relative(self.mean, self.std)

    @property
    def typical(self) -> np.ndarray:
        """Shares of bins of the column's numbers."""
        return bin_shares(*self._relative(self.mean, self.std))

    def standardized(self, values: ArrayLike) -> np.ndarray:
        """Numbers less the center, in units of the scale."""
        return self._relative_numbers(values)

    def restored(self, z: np.ndarray) -> np.ndarray:
        """Numbers of standardised ones."""
        return self.center + self.scale * z

    def _relative_numbers(self, values) -> np.ndarray:
        """Numbers as parameters have them, less the center, in units of the scale."""
        # Half of a number, because differences of the largest would overflow.
        with np.errstate(over="ignore"):
            z = (np.asarray(values) / 2 - self.center / 2) / self.scale * 2
        return np.clip(z, -FARTHEST, FARTHEST)

    def _relative(self, mean, std) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of standardised numbers."""
        return self._relative_numbers(mean), (std / self.scale) ** 2

    def _in_units(self, mean, variance) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation in units of the column."""
        return self.center + self.scale * mean, self.scale * np.sqrt(variance)

    def _natural(self, mean, variance) -> np.ndarray:
        """Coefficients of 1, z and z squared."""
        constant = -(mean**2) / variance - np.log(2 * np.pi * variance)
        constant = constant / 2 - np.log(self.scale)
        constant = constant + np.log1p(-min(self.contamination, 1 - ROUNDING))
        return np.stack([constant, mean / variance, -0.5 / variance], axis=1)

    def _mixed(self, posterior, mean, variance) -> np.ndarray:
        """Mean and standard deviation, in units, of mixtures of standardised ones."""
        return np.stack(self._in_units(*mixed_moments(posterior, mean, variance)), -1)


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


def fenced(column: Column) -> np.ndarray:
    """Numbers of a column, none beyond its outer fences; missing ones stay."""
    known = ~np.isnan(column.values) & (column.weights > 0)[:, None]
    weights = np.broadcast_to(column.weights[:, None], known.shape)[known]
    values, place = np.unique(column.values[known], return_inverse=True)
    if len(values) < 2:
        return column.values
    mass = np.cumsum(np.bincount(place.ravel(), weights))
    # Of a column of many equal values, quantiles farther out.
    shares = mass[-1] * FIRST_QUANTILE * 0.5 ** np.arange(MOST_HALVINGS)
    low = values[np.searchsorted(mass, shares)]
    high = values[np.searchsorted(mass, mass[-1] - shares)]
    first = (high > low).argmax()
    low, high = low[first], high[first]
    if not high > low:
        return column.values
    # The distance may overflow.
    with np.errstate(over="ignore"):
        reach = FENCE * (high - low)
        return np.clip(column.values, low - reach, high + reach)


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


def bin_shares(mean, variance) -> np.ndarray:
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
