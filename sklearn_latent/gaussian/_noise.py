"""Noise models: how a child scatters around its mean.

A noise model is the density ``q(x : g, variance)`` of Section 8 of Elidan, Nachman and
Friedman (2007). What the search needs of it are the derivatives by the mean ``g``, the
mean that makes a value most probable (the ideal parent leads to it) and the best
variance for given means.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from ._statistics import LOG_2_PI

Floats = NDArray[np.float64]
_SMALLEST_MEAN = 1e-12  # a mean that must be positive is not allowed below
# Steps of EM for the scale of a t distribution: with 1.5 degrees of freedom 20 leave a
# relative error of 2e-5, with more a smaller one.
EM_STEPS = 20
# Degrees of freedom that are estimated: from 1, Cauchy, to what is as good as normal.
LOG_DF = 0.0, float(np.log(200.0))


class Noise(ABC):
    """Base class of noise models.

    All methods work elementwise and broadcast; `x` are values, `g` their means and
    `variance` the variance of the noise.

    Attributes
    ----------
    name : str
        How it is called in messages.
    positive : bool
        Whether values and means must be positive.
    n_parameters : int
        Number of parameters that all nodes share.
    """

    name: ClassVar[str]
    positive: ClassVar[bool] = False
    n_parameters: ClassVar[int] = 0

    @abstractmethod
    def log_density(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Logarithm of the density of x."""

    @abstractmethod
    def score(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Derivative of the log-density by the mean."""

    @abstractmethod
    def information(self, g: Floats, variance: Floats) -> Floats:
        """Expected value of the squared score: the Fisher information of the mean."""

    @abstractmethod
    def squared_error(self, x: Floats, g: Floats) -> Floats:
        """Squared noise."""

    def best_variance(self, x: Floats, g: Floats, weight: Floats | None) -> Floats:
        """Variance of maximum likelihood, over the last axis: a mean of squares."""
        return np.average(self.squared_error(x, g), axis=-1, weights=weight)

    @property
    def root(self) -> Noise:
        """Noise of nodes without parents."""
        return Additive() if self.positive else self

    def centre(self, x: Floats, weight: Floats | None) -> Floats:
        """Mean of maximum likelihood where it is constant, over the last axis."""
        return np.average(x, axis=-1, weights=weight)

    @abstractmethod
    def ideal_mean(self, x: Floats, variance: Floats) -> Floats:
        """The mean that makes x most probable, equation (17)."""

    @abstractmethod
    def ideal_curvature(self, g: Floats, variance: Floats) -> Floats:
        r""":math:`-\frac{1}{q} \frac{\partial^2 q}{\partial g^2}` at an ideal mean g.

        The sensitivity of Theorem 8.2; ``ideal_mean(x) == g``.
        """

    @abstractmethod
    def draw(self, g: Floats, variance: Floats, rng: np.random.RandomState) -> Floats:
        """Random values with these means."""

    def admissible(self, g: Floats) -> NDArray[np.bool_]:
        """Which means the density is defined for."""
        return g > 0 if self.positive else np.isfinite(g)

    def clip(self, g: Floats) -> Floats:
        """Means moved to where the density is defined."""
        return np.maximum(g, _SMALLEST_MEAN) if self.positive else g

    def check(self, X: Floats, name: str = "X") -> None:
        """Raise unless the values, NaN where missing, can come from this noise."""
        if not self.positive:
            return
        smallest = np.min(X, initial=np.inf, where=~np.isnan(X))
        if smallest <= 0:
            raise ValueError(
                f"{self.name} noise needs positive values, got a minimum of "
                f"{smallest:g} in {name}. Use noise='additive', or shift or "
                "exponentiate the data."
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Additive(Noise):
    """Gaussian noise of constant variance, equation (3).

    Examples
    --------
    >>> from sklearn_latent.gaussian import Additive
    >>> Additive().ideal_mean(2.0, 0.5)
    2.0
    """

    name = "additive"

    def log_density(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Logarithm of the density of x."""
        return -0.5 * (LOG_2_PI + np.log(variance) + (x - g) ** 2 / variance)

    def score(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Derivative of the log-density by the mean."""
        return (x - g) / variance

    def information(self, g: Floats, variance: Floats) -> Floats:
        """Expected value of the squared score."""
        return np.broadcast_to(1.0 / variance, np.broadcast(g, variance).shape)

    def squared_error(self, x: Floats, g: Floats) -> Floats:
        """Squared noise."""
        return (x - g) ** 2

    def ideal_mean(self, x: Floats, variance: Floats) -> Floats:
        """The mean that makes x most probable: x."""
        return x

    def ideal_curvature(self, g: Floats, variance: Floats) -> Floats:
        """Sensitivity of Theorem 8.2, constant here."""
        return self.information(g, variance)

    def draw(self, g: Floats, variance: Floats, rng: np.random.RandomState) -> Floats:
        """Random values with these means."""
        return g + np.sqrt(variance) * rng.standard_normal(np.shape(g))


class Multiplicative(Noise):
    """Noise in proportion to the mean, ``x = g (1 + e)``, equation (16).

    Values and means must be positive.

    Examples
    --------
    >>> from sklearn_latent.gaussian import Multiplicative
    >>> print(Multiplicative().ideal_mean(1.0, 0.01).round(4))
    0.9902
    """

    name = "multiplicative"
    positive = True

    def log_density(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Logarithm of the density of x."""
        return -0.5 * (
            LOG_2_PI + np.log(variance) + (x / g - 1.0) ** 2 / variance
        ) - np.log(g)

    def score(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Derivative of the log-density by the mean."""
        ratio = x / g
        return ((ratio - 1.0) * ratio / variance - 1.0) / g

    def information(self, g: Floats, variance: Floats) -> Floats:
        """Expected value of the squared score."""
        return (1.0 / variance + 2.0) / g**2

    def squared_error(self, x: Floats, g: Floats) -> Floats:
        """Squared noise."""
        return (x / g - 1.0) ** 2

    def ideal_mean(self, x: Floats, variance: Floats) -> Floats:
        """The mean that makes x most probable, equation (22)."""
        # The same as x (sqrt(1 + 4v) - 1) / 2v, which cancels for small v.
        return x * 2.0 / (1.0 + np.sqrt(1.0 + 4.0 * variance))

    def ideal_curvature(self, g: Floats, variance: Floats) -> Floats:
        """Sensitivity of Theorem 8.2."""
        ratio = (1.0 + np.sqrt(1.0 + 4.0 * variance)) / 2.0
        return (1.0 + ratio**2 / variance) / g**2

    def draw(self, g: Floats, variance: Floats, rng: np.random.RandomState) -> Floats:
        """Random values with these means; negative ones, rare, are cut off."""
        g = self.clip(g)
        noise = np.sqrt(variance) * rng.standard_normal(np.shape(g))
        return g * np.maximum(1.0 + noise, 1e-3)


class Student(Noise):
    """Heavy-tailed noise: Student's t distribution, also of nodes without parents.

    What is called the variance of the noise is its squared scale; the variance of a t
    distribution is df / (df - 2) times as large, or infinite.

    Parameters
    ----------
    df : float or None, default=None
        Degrees of freedom, the same for all nodes; None leaves them to be estimated.

    Examples
    --------
    >>> from sklearn_latent.gaussian import Student
    >>> round(float(Student(4.0).score(3.0, 0.0, 1.0)), 3)
    1.154
    """

    name = "student"
    n_parameters = 1

    def __init__(self, df: float | None = None) -> None:
        if df is not None and not 0.0 < df < np.inf:
            raise ValueError(f"df must be a positive number or None, got {df!r}.")
        self.df = df

    @property
    def _df(self) -> float:
        if self.df is None:
            raise ValueError(
                "noise must have its degrees of freedom here, as 'student(4)' has, got "
                "'student'."
            )
        return self.df

    def log_density(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Logarithm of the density of x."""
        df = self._df
        constant = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df)
        constant -= 0.5 * np.log(np.pi * df)
        tail = np.log1p((x - g) ** 2 / (df * variance))
        return constant - 0.5 * np.log(variance) - 0.5 * (df + 1.0) * tail

    def _weight(self, squares, variance):
        """Weights of squared errors, with which they are as those of normal noise."""
        return (self._df + 1.0) / (self._df + squares / variance)

    def score(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Derivative of the log-density by the mean."""
        return self._weight((x - g) ** 2, variance) * (x - g) / variance

    def information(self, g: Floats, variance: Floats) -> Floats:
        """Expected value of the squared score."""
        share = (self._df + 1.0) / (self._df + 3.0)
        return np.broadcast_to(share / variance, np.broadcast(g, variance).shape)

    def squared_error(self, x: Floats, g: Floats) -> Floats:
        """Squared noise."""
        return (x - g) ** 2

    def best_variance(self, x: Floats, g: Floats, weight: Floats | None) -> Floats:
        """Squared scale of maximum likelihood, over the last axis."""
        return self._best(x - g, weight, moving=False)[1]

    def centre(self, x: Floats, weight: Floats | None) -> Floats:
        """Location of maximum likelihood, over the last axis."""
        return self._best(x, weight, moving=True)[0]

    def _best(self, x, weight, *, moving):
        """Location, or 0, and squared scale: EM of Liu and Rubin with a free scale."""
        rows = np.ones(x.shape[-1]) if weight is None else weight
        # The median of all values is close to the location even with heavy tails.
        location = np.median(x, axis=-1) if moving else np.zeros(x.shape[:-1])
        variance = (x - location[..., None]) ** 2 @ rows / rows.sum()
        for _ in range(EM_STEPS):
            squares = (x - location[..., None]) ** 2
            shares = rows * self._weight(squares, _above_zero(variance)[..., None])
            total = shares.sum(axis=-1)
            if moving:
                location = (shares * x).sum(axis=-1) / total
            variance = (shares * squares).sum(axis=-1) / total
        return location, variance

    def fitted(self, errors: Floats, weight: Floats | None = None) -> Student:
        """Noise of the degrees of freedom that fit errors best.

        errors (n_nodes, n_samples): each with a scale of its own.
        """
        rows = np.ones(errors.shape[-1]) if weight is None else weight
        mean = np.zeros((len(errors), 1))

        def loss(log_df):
            noise = Student(float(np.exp(log_df)))
            variance = _above_zero(noise.best_variance(errors, mean, weight))[:, None]
            return -float((noise.log_density(errors, mean, variance) @ rows).sum())

        found = minimize_scalar(loss, bounds=LOG_DF, method="bounded")
        return Student(float(np.exp(found.x)))

    def ideal_mean(self, x: Floats, variance: Floats) -> Floats:
        """The mean that makes x most probable: x."""
        return x

    def ideal_curvature(self, g: Floats, variance: Floats) -> Floats:
        """Sensitivity of Theorem 8.2, constant here."""
        share = (self._df + 1.0) / self._df
        return np.broadcast_to(share / variance, np.broadcast(g, variance).shape)

    def draw(self, g: Floats, variance: Floats, rng: np.random.RandomState) -> Floats:
        """Random values with these means."""
        return g + np.sqrt(variance) * rng.standard_t(self._df, np.shape(g))

    def __repr__(self) -> str:
        return f"Student({self.df!r})"


def _above_zero(variance):
    """Scales of errors that are all zero must not divide by it."""
    return np.maximum(variance, np.finfo(float).tiny)


NOISES: dict[str, Noise] = {
    "additive": Additive(),
    "multiplicative": Multiplicative(),
    "student": Student(),
}


def get_noise(noise) -> Noise:
    """The noise model of a name, as "student(4)", or the noise model itself."""
    if isinstance(noise, Noise):
        return noise
    if isinstance(noise, str) and noise in NOISES:
        return NOISES[noise]
    match = re.fullmatch(r"student\((.+)\)", noise) if isinstance(noise, str) else None
    if match:
        try:
            return Student(float(match[1]))
        except ValueError:
            pass
    raise ValueError(
        f"noise must be one of {sorted(NOISES)}, a name with degrees of freedom, as "
        f"'student(4)', or an instance of Noise, got {noise!r}."
    )


def noise_name(noise) -> str | Noise:
    """Name from which `get_noise` makes the same noise; others stay as they are."""
    noise = get_noise(noise)
    if isinstance(noise, Student):
        return noise.name if noise.df is None else f"{noise.name}({noise.df!r})"
    return noise.name if type(noise) in map(type, NOISES.values()) else noise


@dataclass(frozen=True)
class NoiseName:
    """Field of a model object: the name of a noise model."""

    def encode(self, value):
        """The name."""
        name = noise_name(value)
        if not isinstance(name, str):
            raise ValueError(f"Only {', '.join(NOISES)} can be written, got {value!r}.")
        return name

    def decode(self, name, value):
        """The name."""
        if type(value) is not str:
            raise ValueError(f"{name} must be a string, got {type(value).__name__}.")
        return noise_name(value)
