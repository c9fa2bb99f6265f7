"""Noise models: how a child scatters around its mean.

A noise model is the density ``q(x : g, variance)`` of Section 8 of Elidan, Nachman and
Friedman (2007). What the search needs of it are the derivatives by the mean ``g``, the
mean that makes a value most probable (the ideal parent leads to it) and the best
variance for given means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ._statistics import LOG_2_PI

Floats = NDArray[np.float64]


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
    """

    name: ClassVar[str]
    positive: ClassVar[bool] = False

    @abstractmethod
    def log_density(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Logarithm of the density of x."""

    @abstractmethod
    def score(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Derivative of the log-density by the mean."""

    def slope(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Derivative of the log-density by x."""
        step = 1e-5 * np.maximum(np.abs(x), 1e-12)
        rise = self.log_density(x + step, g, variance)
        return (rise - self.log_density(x - step, g, variance)) / (2.0 * step)

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
        return np.maximum(g, 1e-12) if self.positive else g

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

    def slope(self, x: Floats, g: Floats, variance: Floats) -> Floats:
        """Derivative of the log-density by x."""
        return (g - x) / variance

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


NOISES: dict[str, Noise] = {
    "additive": Additive(),
    "multiplicative": Multiplicative(),
}
# These are known by name.
KNOWN = tuple(map(type, NOISES.values()))


def get_noise(noise) -> Noise:
    """The noise model of a name, or the noise model itself."""
    if isinstance(noise, Noise):
        return noise
    if isinstance(noise, str) and noise in NOISES:
        return NOISES[noise]
    raise ValueError(
        f"noise must be one of {sorted(NOISES)} or an instance of Noise, got {noise!r}."
    )
