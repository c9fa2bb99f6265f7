"""Margins: increasing functions that turn the values of a column into normal scores.

A network describes the scores; its margins say how they become values of the columns,
and add the logarithm of their slopes to every log-density, so that likelihoods are
those of the columns. A new margin is one small class with three methods, as in the
example of `Margin`, and can be given to the estimator for all columns, or in a list for
some of them: ``margins=[Log(), "normal", "smooth"]``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr, logsumexp, ndtr, ndtri_exp

from .._core.persistence import Array, Persistent
from .._core.validation import check_numbers
from ._statistics import LOG_2_PI

Floats = NDArray[np.float64]

# Points of the expectation of a value whose score is normal, and how many standard
# deviations they reach. A jump between two peaks is integrated to 1% of its height.
N_POINTS, REACH = 257, 6.0


class Margin(ABC):
    """Base class of margins.

    A subclass gives an increasing function of the values of a column (`scores`), its
    inverse (`values`) and the logarithm of its derivative (`log_slopes`), all
    elementwise. The network describes the scores.

    Attributes
    ----------
    name : str
        How it is called in messages.
    n_parameters : int
        Number of parameters that were estimated from the column, apart from location
        and scale, which the network has.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.gaussian import IdealParentGaussianBN, Margin
    >>> class Log(Margin):
    ...     name = "log"
    ...     def scores(self, values):
    ...         return np.log(values)
    ...     def log_slopes(self, values):
    ...         return -np.log(values)
    ...     def values(self, scores):
    ...         return np.exp(scores)
    >>> X = np.exp(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model = IdealParentGaussianBN(margins=Log()).fit(X)
    >>> bool((model.sample(5, random_state=0)[0] > 0).all())
    True
    """

    name: ClassVar[str]
    n_parameters: int = 0

    @abstractmethod
    def scores(self, values: Floats) -> Floats:
        """Scores of values."""

    @abstractmethod
    def log_slopes(self, values: Floats) -> Floats:
        """Logarithm of the derivative of `scores`."""

    @abstractmethod
    def values(self, scores: Floats) -> Floats:
        """Values that have these scores."""

    def scored(self, values: Floats) -> tuple[Floats, Floats]:
        """Scores and the logarithms of their derivatives; may share work."""
        return self.scores(values), self.log_slopes(values)

    def atoms_of(self, values: Floats, share: float = 0.5) -> tuple[Any, Any, Any]:
        """Which values have a probability, the log of that, and log of what is left.

        share: of values other than that of a constant column
        """
        return np.zeros(len(values), dtype=bool), 0.0, 0.0

    def expectation(self, mean: Floats, variance: Floats) -> Floats:
        """Expected values where scores are normal with these means and variances.

        The mean of the values, not the value of the mean, by the trapezoidal rule.
        """
        mean, deviation = np.asarray(mean, dtype=float), np.sqrt(variance)
        points = np.linspace(-REACH, REACH, N_POINTS)
        weights = np.exp(-0.5 * points**2)
        weights /= weights.sum()
        expected = np.empty(mean.shape)
        # Few enough at a time to stay in the cache.
        for part in np.array_split(np.arange(len(mean)), len(mean) // 2**14 + 1):
            scores = mean[part, None] + deviation[part, None] * points
            expected[part] = self._quick_values(scores) @ weights
        return expected

    def _quick_values(self, scores: Floats) -> Floats:
        """Values of many scores, perhaps to fewer digits."""
        return self.values(scores)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NormalMargin(Persistent, Margin):
    """A column that is its own score.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.gaussian import NormalMargin
    >>> NormalMargin().scores(np.array([1.0, 2.0]))
    array([1., 2.])
    """

    name = "normal"
    _fields: ClassVar = {}

    def scores(self, values: Floats) -> Floats:
        """Scores of values: the values."""
        return values

    def log_slopes(self, values: Floats) -> Floats:
        """Logarithm of the derivative of `scores`."""
        return np.zeros_like(values)

    def values(self, scores: Floats) -> Floats:
        """Values that have these scores."""
        return scores

    def expectation(self, mean: Floats, variance: Floats) -> Floats:
        """Expected values: the means."""
        return mean


class EstimatedMargin(Persistent, Margin):
    """A margin that computes scores and slopes together."""

    def scores(self, values: Floats) -> Floats:
        """Scores of values."""
        return self.scored(values)[0]

    def log_slopes(self, values: Floats) -> Floats:
        """Logarithm of the derivative of `scores`."""
        return self.scored(values)[1]


class MixtureMargin(EstimatedMargin):
    r"""A column with the density of a mixture of normal distributions.

    The score of a value is the standard normal quantile of its cumulative probability,
    :math:`z = \Phi^{-1}\bigl(\sum_k w_k \Phi((x - \mu_k) / \sigma_k)\bigr)`. In the
    tails, and beyond the data, it is a nearly linear function of the value.

    Parameters
    ----------
    weight : array-like of shape (n_components,)
        Positive weights of the components, with a sum of 1.
    mean, deviation : array-like of shape (n_components,)
        Their means and standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.gaussian import MixtureMargin
    >>> margin = MixtureMargin([0.5, 0.5], [-2.0, 2.0], [1.0, 1.0])
    >>> scores = margin.scores(np.array([-2.0, -1.0, 2.0]))
    >>> scores.round(3)
    array([-0.674, -0.198,  0.674])
    >>> margin.values(scores).round(3)
    array([-2., -1.,  2.])
    """

    name = "smooth"
    _fields: ClassVar = {
        "weight": Array(ndim=1),
        "mean": Array(ndim=1),
        "deviation": Array(ndim=1),
    }

    def __init__(self, weight: ArrayLike, mean: ArrayLike, deviation: ArrayLike):
        self.weight = _own("weight", weight)
        self.mean = _own("mean", mean)
        self.deviation = _own("deviation", deviation)
        sizes = {array.shape for array in (self.weight, self.mean, self.deviation)}
        if len(sizes) > 1 or self.weight.ndim != 1 or not len(self.weight):
            raise ValueError(
                "weight, mean and deviation must have one value per component, got "
                f"shapes {self.weight.shape}, {self.mean.shape} and "
                f"{self.deviation.shape}."
            )
        if not (self.weight > 0).all() or abs(self.weight.sum() - 1.0) > 1e-6:
            raise ValueError(
                "weight must hold positive numbers with a sum of 1, got a minimum of "
                f"{self.weight.min()} and a sum of {self.weight.sum()}."
            )
        if not (self.deviation > 0).all():
            raise ValueError(
                f"deviation must be positive, got a minimum of {self.deviation.min()}."
            )

    def __repr__(self) -> str:
        return f"MixtureMargin({len(self.weight)} components)"

    # A plain attribute in the base class, so that a subclass need not compute it.
    @property
    def n_parameters(self) -> int:  # type: ignore[override]
        """Three parameters for each component but the first."""
        return 3 * (len(self.weight) - 1)

    def log_density(self, values: ArrayLike) -> Floats:
        """Logarithm of the density of the column.

        Parameters
        ----------
        values : array-like
            Values of the column.

        Returns
        -------
        log_density : ndarray
            One number per value.
        """
        away = self._away(values)
        constant = np.log(self.weight / self.deviation) - 0.5 * LOG_2_PI
        return logsumexp(constant - 0.5 * away**2, axis=-1)

    def scored(self, values: Floats) -> tuple[Floats, Floats]:
        """Scores and the logarithms of their derivatives."""
        away = self._away(values)
        # From the nearer end, where probabilities keep their digits, and as logarithms,
        # which they keep however far out.
        side = np.where(ndtr(away) @ self.weight < 0.5, 1.0, -1.0)
        away *= side[..., None]
        log_share = log_ndtr(away) + np.log(self.weight)
        log_probability = logsumexp(log_share, axis=-1)
        z = ndtri_exp(log_probability)
        # Density over probability, of the components and of the score: densities
        # themselves would cancel.
        share = np.exp(log_share - log_probability[..., None])
        rate = (share * _hazard(away) / self.deviation).sum(axis=-1)
        return side * z, np.log(rate) - np.log(_hazard(z))

    def values(self, scores: Floats) -> Floats:
        """Values that have these scores, by Newton's method within bounds."""
        # Scores are known to about so many digits; beyond, values would not increase.
        scores = np.round(np.asarray(scores, dtype=float), 12)
        # A quantile of a mixture lies between those of its components.
        own = self.mean + self.deviation * scores[..., None]
        low, high = own.min(axis=-1), own.max(axis=-1)
        x = 0.5 * (low + high)
        step = 0
        while (
            high - low > 1e-15 * (np.abs(x - self.mean[0]) + self.deviation.min())
        ).any():
            z, log_slope = self.scored(x)
            low, high = np.where(z <= scores, x, low), np.where(z >= scores, x, high)
            with np.errstate(over="ignore"):
                new = x - (z - scores) * np.exp(-log_slope)
            # Every third step halves the bracket, whatever the shape.
            inside = (new > low) & (new < high) & (step % 3 < 2)
            new = np.where(inside, new, 0.5 * (low + high))
            if (new == x).all():
                break
            x, step = new, step + 1
        return x

    def _away(self, values) -> Floats:
        """Distances from the components, (..., n_components), of bounded squares."""
        away = np.asarray(values, dtype=float)[..., None] - self.mean
        return np.clip(away / self.deviation, -1e120, 1e120)

    def _quick_values(self, scores: Floats) -> Floats:
        """Values of many scores, from a table; tails are straight lines."""
        knots, values = self._table
        found = np.interp(scores, knots, values)
        step = knots[1] - knots[0]
        found += np.minimum(scores - knots[0], 0.0) * (values[1] - values[0]) / step
        found += np.maximum(scores - knots[-1], 0.0) * (values[-1] - values[-2]) / step
        return found

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Scores and their values."""
        knots = np.linspace(-9.0, 9.0, 2049)
        return knots, self.values(knots)


def _hazard(z) -> Floats:
    """Standard normal density over the probability below z."""
    return np.sqrt(2.0 / np.pi) / erfcx(-z / np.sqrt(2.0))


def _own(name, values) -> Floats:
    """Finite numbers as an array that nobody can change."""
    array = check_numbers(name, values).copy()
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    array.flags.writeable = False
    return array
