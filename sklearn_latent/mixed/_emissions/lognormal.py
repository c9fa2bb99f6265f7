"""Positive numbers whose logarithms are normal."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .base import Column
from .gaussian import Gaussian
from .gaussian_memory import GaussianMemory

# Logarithms end here: a number that is not positive is all but impossible, and the
# square of the largest does not overflow.
LEAST, MOST = -690.0, 350.0


class Logarithmic(Gaussian):
    """What emissions of logarithms add to those of numbers.

    Numbers that are anywhere have a half-Cauchy density, whose median is that of all:
    it is finite at zero, where that of a logarithm is not.

    Parameters are those of logarithms. The last statistic of a number is its logarithm
    with a minus, the logarithm of the derivative: likelihoods are densities of numbers.
    """

    @classmethod
    def flat(cls, column: Column) -> Self:
        """Mean and standard deviation of the logarithms of the column."""
        return super().flat(replace(column, values=logarithms(column.values)))

    @cached_property
    def natural(self) -> np.ndarray:
        """Coefficients of the logarithms' statistics, and 1."""
        return np.append(super().natural, np.ones((self.n_states, 1)), axis=1)

    def design(self, values: ArrayLike, previous: ArrayLike) -> np.ndarray:
        """Statistics of the logarithms, and the logarithm of the derivative."""
        logs = logarithms(values)
        rows = super().design(logs, logarithms(previous))
        slope = np.where(np.isnan(logs), 0.0, -logs)
        return np.append(rows, slope[:, None], axis=1)

    def pseudo_statistics(self, smoothing: float) -> np.ndarray:
        """Those of logarithms."""
        return np.append(super().pseudo_statistics(smoothing), 0.0)

    def far_from(self, values: ArrayLike) -> np.ndarray:
        """Log-density of numbers that do not depend on the state; missing: -inf."""
        logs = logarithms(values)
        missing = np.isnan(logs)
        distance = np.where(missing, 0.0, logs - self.center)
        density = np.log(2 / np.pi) - self.center - np.logaddexp(0.0, 2 * distance)
        return np.where(missing, -np.inf, density)

    def _far_at(self, place: np.ndarray) -> np.ndarray:
        return self.center + np.log(np.tan(np.pi / 2 * place))

    def _far_below(self, z: np.ndarray) -> np.ndarray:
        return 2 / np.pi * np.arctan(np.exp(np.minimum(self.scale * z, MOST)))

    def draw(self, states: np.ndarray, rng: Any) -> np.ndarray:
        """Draw positive numbers."""
        return np.exp(np.minimum(super().draw(states, rng), MOST))

    def predicted(self, posterior: ArrayLike, values: ArrayLike) -> np.ndarray:
        """Mean and standard deviation of each number."""
        return super().predicted(posterior, logarithms(values))

    def standardized(self, values: ArrayLike) -> np.ndarray:
        """Standardised logarithms of numbers."""
        return super().standardized(logarithms(values))

    def restored(self, z: np.ndarray) -> np.ndarray:
        """Numbers of standardised logarithms."""
        return np.exp(np.clip(super().restored(z), LEAST, MOST))

    def _mixed(self, posterior, mean, variance) -> np.ndarray:
        """Mean and standard deviation of mixtures of numbers."""
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


class LogNormal(Logarithmic):
    """Positive numbers whose logarithms are normal given the state.

    Parameters
    ----------
    mean, std : array-like of shape (n_states,)
        Mean and standard deviation of the logarithms in each state.
    center, scale, contamination : float, default=0, 1 and 0
        Of the logarithms of the whole column; see `Gaussian`.

    Examples
    --------
    >>> from sklearn_latent.mixed import LogNormal
    >>> emission = LogNormal(mean=[0.0, 3.0], std=[0.5, 0.5])
    >>> emission.predicted([[[0.5, 0.5]]], [[float("nan")]]).round(2)
    array([[[11.95, 13.81]]])
    """

    kind = "lognormal"


class LogNormalMemory(Logarithmic, GaussianMemory):
    """Positive numbers whose logarithms follow those before.

    Parameters
    ----------
    mean, std : array-like of shape (n_states,)
        Of logarithms of numbers before which none is known.
    level, slope, noise : array-like of shape (n_states,)
        Regression of a logarithm on that before; see `GaussianMemory`.
    center, scale, contamination : float, default=0, 1 and 0
        Of the logarithms of the whole column; see `Gaussian`.

    Examples
    --------
    >>> from sklearn_latent.mixed import LogNormalMemory
    >>> emission = LogNormalMemory([0.0], [1.0], level=[0.0], slope=[0.9], noise=[0.1])
    >>> emission.predicted([[[1.0], [1.0]]], [[20.0, float("nan")]])[0, 1].round(2)
    array([14.9 ,  1.49])
    """

    kind = "lognormal memory"


def logarithms(values) -> np.ndarray:
    """Logarithms of numbers, far below all others where a number is not positive."""
    values = np.asarray(values, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(values > 0, values, 0.0))
    return np.where(np.isnan(values), np.nan, np.maximum(logs, LEAST))
