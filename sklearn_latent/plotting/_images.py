"""Display of latents whose features are the pixels of images."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.validation import check_names, check_numbers
from ._style import (
    check_cmap,
    check_has,
    check_plot,
    fit_width,
    size_in_points,
    spelled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

LARGEST_GRID = 8  # images in a row
TITLE_FONT = 8.0


class LatentImagesDisplay:
    """One image per latent of the features that it drives.

    The brightness of a pixel is the strength of its edge, 1 - failure: black means no
    edge, white an edge that never fails.

    Parameters
    ----------
    strength : array-like of shape (n_latents, n_features)
        1 - failure.
    shape : tuple of two int
        Height and width of the images.
    titles : sequence of str or None, default=None
        Titles of the images.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_latents,)
        One per latent.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> from sklearn_latent.datasets import image_sources
    >>> from sklearn_latent.plotting import LatentImagesDisplay
    >>> display = LatentImagesDisplay(image_sources(), (8, 8)).plot()
    >>> len(display.axes_)
    8
    """

    axes_: NDArray[Any]
    figure_: Figure | SubFigure

    def __init__(
        self,
        strength: ArrayLike,
        shape: tuple[int, int],
        titles: Sequence[str] | None = None,
    ) -> None:
        self.strength = strength
        self.shape = shape
        self.titles = titles

    @classmethod
    def from_estimator(
        cls, estimator: Any, shape: tuple[int, int], *, axes: Any = None, **kwargs: Any
    ) -> Self:
        """Draw a fitted estimator of a noisy-or network.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with ``failure_`` and ``prior_``.
        shape : tuple of two int
            Height and width of the images.
        axes : array-like of matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : LatentImagesDisplay
            The drawn display. The titles are the names of the latents, their priors
            and, if the estimator has it, the depth at which they were discovered.
        """
        check_is_fitted(estimator)
        check_has(estimator, "attribute", "failure_", "prior_")
        pairs = zip(estimator.get_feature_names_out(), estimator.prior_, strict=True)
        titles = [f"{name}\nprior {prior:.2f}" for name, prior in pairs]
        depth = getattr(estimator, "depth_", None)
        if depth is not None and np.ndim(depth) == 1:
            titles = [
                f"{title}, depth {value:.0f}" if np.isfinite(value) else title
                for title, value in zip(titles, depth, strict=True)
            ]
        display = cls(1.0 - estimator.failure_, shape, titles)
        return display.plot(axes=axes, **kwargs)

    def plot(self, axes: Any = None, *, cmap: str = "gray") -> Self:
        """Draw the images.

        Parameters
        ----------
        axes : array-like of matplotlib Axes or None, default=None
            At least one per latent. If None, a new figure is created.
        cmap : str, default="gray"
            Colour map, from no edge to an edge that never fails.

        Returns
        -------
        self : LatentImagesDisplay
            With the drawing in ``axes_`` and ``figure_``.
        """
        check_plot("LatentImagesDisplay", None)
        images = self._images()
        check_cmap(cmap)
        titles = self.titles
        if titles is not None:
            titles = check_names("titles", titles, len(images))
        if axes is None:
            axes = _new_axes(len(images), 1.3 if titles is None else 1.7)
        axes = np.ravel(np.asarray(axes, dtype=object))
        for ax in axes:
            # None, which stands for a new figure elsewhere, is an error here.
            check_plot("LatentImagesDisplay", False if ax is None else ax, "axes")
        if len(axes) < max(1, len(images)):
            raise ValueError(
                f"axes must hold one Axes per latent, expected {len(images)}, "
                f"got {len(axes)}."
            )
        for ax in axes:
            ax.set_axis_off()
        for number, (ax, image) in enumerate(zip(axes, images, strict=False)):
            ax.imshow(image, vmin=0.0, vmax=1.0, cmap=cmap, interpolation="nearest")
            # Without a frame, bright pixels at the border could not be seen.
            ax.set_axis_on()
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_color("0.6")
            if titles is not None:
                title = spelled(_fitted(ax, str(titles[number])))
                ax.set_title(title, fontsize=TITLE_FONT)
        self.axes_ = axes[: len(images)]
        self.figure_ = axes[0].figure
        return self

    def _images(self) -> NDArray[np.float64]:
        """Images (n_latents, height, width)."""
        strength = check_numbers("strength", self.strength)
        if strength.ndim != 2:
            raise ValueError(
                "strength must have shape (n_latents, n_features), got shape "
                f"{strength.shape}."
            )
        shape = self.shape
        if (
            not isinstance(shape, tuple)
            or len(shape) != 2
            or not all(isinstance(side, Integral) and int(side) >= 0 for side in shape)
            or shape[0] * shape[1] != strength.shape[1]
        ):
            raise ValueError(
                "shape must be a tuple (height, width) with height * width = "
                f"{strength.shape[1]}, the number of features, got {shape!r}."
            )
        return np.clip(strength, 0.0, 1.0).reshape(len(strength), *shape)


def _fitted(ax, title: str) -> str:
    """Title whose lines are as wide as the image, or its share of the figure."""
    room = size_in_points(ax)[0]
    if ax.get_subplotspec() is not None:
        width = ax.figure.bbox.width / ax.figure.dpi
        share = 72.0 * width / ax.get_gridspec().ncols
        room = max(room, 0.94 * share)
    return "\n".join(fit_width(line, room, TITLE_FONT) for line in title.splitlines())


def _new_axes(n_images, row_height):
    """Axes of a new figure, in rows of at most LARGEST_GRID."""
    import matplotlib.pyplot as plt

    n_columns = int(np.clip(n_images, 1, LARGEST_GRID))
    n_rows = max(1, -(-n_images // n_columns))
    size = (max(3.0, 1.3 * n_columns), row_height * n_rows)
    return plt.subplots(n_rows, n_columns, figsize=size, layout="constrained")[1]
