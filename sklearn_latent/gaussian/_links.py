"""Link functions: how the mean of a child depends on its parents.

A family has mean ``offset + scale * shape(eta + bias)`` where ``eta`` is the weighted
sum of its parents. The shape is the link's own; offset, scale and bias, the row
``theta`` of a family, are common to all links. A new link is one small class::

    class Tanh(Link):
        name = "tanh"
        image = (-1.0, 1.0)

        def shape(self, eta: Floats) -> Floats:
            return np.tanh(eta)

        def shape_inverse(self, level: Floats) -> Floats:
            return np.arctanh(level)

        def shape_derivative(self, eta: Floats) -> Floats:
            return 1.0 - np.tanh(eta) ** 2

and can be given wherever the name of a link can: ``link=Tanh()``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

Floats = NDArray[np.float64]
N_THETA = 3  # offset, scale, bias
_MARGIN = 1e-3  # share of the image, at either end, that the inverse keeps away from


class Link(ABC):
    r"""Base class: the mean of a child is :math:`\theta_0 + \theta_1 s(\eta + b)`.

    A subclass gives the increasing function :math:`s` (`shape`), its inverse and its
    derivative, and gets the rest from here. ``theta`` is an array whose last axis is
    (offset, scale, bias); the bias may be left out, then it is 0.

    Attributes
    ----------
    name : str
        How the link is called in messages.
    image : (float, float)
        The open interval of the values of `shape`.
    scaled : bool
        Whether the scale is a parameter. It is 1 for links that are closed under
        scaling of the parents, as the linear one.
    """

    name: ClassVar[str]
    image: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    scaled: bool = True

    @abstractmethod
    def shape(self, eta: Floats) -> Floats:
        """Value of the shape, elementwise."""

    @abstractmethod
    def shape_inverse(self, level: Floats) -> Floats:
        """Argument at which the shape takes a value inside `image`."""

    @abstractmethod
    def shape_derivative(self, eta: Floats) -> Floats:
        """Derivative of the shape, elementwise and positive."""

    def n_parameters(self, n_parents: Any) -> Any:
        """Free parameters of the mean of a family: scales, offset, scale."""
        return 1 + n_parents + int(self.scaled) * (n_parents != 0)

    def value(self, eta: Floats, theta: ArrayLike) -> Floats:
        """Mean of the child, given the weighted sum `eta` of its parents."""
        offset, scale, bias = _split(theta)
        return offset + scale * self.shape(eta + bias)

    def derivative(self, eta: Floats, theta: ArrayLike) -> Floats:
        """Derivative of `value` by `eta`."""
        _, scale, bias = _split(theta)
        return scale * self.shape_derivative(eta + bias)

    def inverse(self, mean: Floats, theta: ArrayLike) -> Floats:
        """Argument at which `value` comes closest to a mean.

        Means outside the image are moved to its inside (Section 3.1.3 of the paper:
        the closest point of the image), where a small margin keeps the result finite.
        A scale of 0 has no inverse and gives 0.
        """
        offset, scale, bias = _split(theta)
        flat = np.abs(scale) < np.finfo(float).tiny
        level = (mean - offset) / np.where(flat, 1.0, scale)
        low, high = self.image
        margin = _MARGIN * (high - low if np.isfinite(high - low) else 1.0)
        level = np.clip(level, low + margin, high - margin)
        return np.where(flat, 0.0, self.shape_inverse(level) - bias)

    def spanning(self, mean: ArrayLike, reach: ArrayLike) -> Floats:
        """Offset, scale and bias whose image contains all values of a child.

        A family without parents says nothing on the shape; its ideal parent is found
        with these. The child, at most `reach` away from its mean, takes at most the
        middle 80% of a bounded image.
        """
        mean, reach = np.asarray(mean, dtype=float), np.asarray(reach, dtype=float)
        centre = float(self.shape(np.zeros(1))[0])
        room = min(centre - self.image[0], self.image[1] - centre)
        theta = np.zeros((*mean.shape, N_THETA))
        theta[..., 1] = 1.0
        if self.scaled and np.isfinite(room):
            theta[..., 1] = np.where(reach > 0, reach, 1.0) / (0.8 * room)
        theta[..., 0] = mean - theta[..., 1] * centre
        return theta

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Linear(Link):
    """The linear Gaussian: the mean is the offset plus the sum of the parents.

    Examples
    --------
    >>> from sklearn_latent.gaussian import Linear
    >>> Linear().value(2.0, [1.0, 1.0, 0.0])
    np.float64(3.0)
    """

    name = "linear"
    scaled = False

    def shape(self, eta: Floats) -> Floats:
        """Value of the shape, elementwise."""
        return eta

    def shape_inverse(self, level: Floats) -> Floats:
        """Argument at which the shape takes a value inside `image`."""
        return level

    def shape_derivative(self, eta: Floats) -> Floats:
        """Derivative of the shape, elementwise and positive."""
        return np.ones_like(eta)


class Sigmoid(Link):
    """A response that saturates at both ends, as in equation (4) of the paper.

    `IdealParentGaussianBN` puts the zero of each parent at its mean, so that shifts do
    not matter. On yeast gene expression a free point of inflection raised the
    likelihood of the training rows and lowered that of held-out rows, because it bends
    responses around single outliers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.gaussian import Sigmoid
    >>> theta = np.array([0.0, 1.0, -2.0])
    >>> Sigmoid().inverse(0.5, theta)
    array(2.)
    """

    name = "sigmoid"
    image = (0.0, 1.0)

    def shape(self, eta: Floats) -> Floats:
        """Value of the shape, elementwise."""
        return expit(eta)

    def shape_inverse(self, level: Floats) -> Floats:
        """Argument at which the shape takes a value inside `image`."""
        return logit(level)

    def shape_derivative(self, eta: Floats) -> Floats:
        """Derivative of the shape, elementwise and positive."""
        level = expit(eta)
        return level * (1.0 - level)


LINKS: dict[str, Link] = {"linear": Linear(), "sigmoid": Sigmoid()}


def get_link(link) -> Link:
    """The link of a name, or the link itself."""
    if isinstance(link, Link):
        return link
    if isinstance(link, str) and link in LINKS:
        return LINKS[link]
    raise ValueError(
        f"link must be one of {sorted(LINKS)} or an instance of Link, got {link!r}."
    )


def _split(theta):
    """Offset, scale and bias, ready to broadcast against values."""
    theta = np.asarray(theta)
    if theta.shape[-1] == 2:
        return theta[..., 0], theta[..., 1], 0.0
    return theta[..., 0], theta[..., 1], theta[..., 2]
