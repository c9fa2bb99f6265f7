"""Display of latents whose features are the pixels of images."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.validation import check_names, check_numbers
from ._display import FONT, Display, fitted_to, size_in_points, split_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_GRID = 8  # images in a row


class LatentImagesDisplay(Display):
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
    ax_ : matplotlib Axes
        Axes that hold all images.
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
        cls,
        estimator: Any,
        shape: tuple[int, int],
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a fitted estimator of a noisy-or network.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with ``failure_`` and ``prior_``.
        shape : tuple of two int
            Height and width of the images.
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : LatentImagesDisplay
            The drawn display. The titles are the names of the latents, their priors
            and, if the estimator has it, the depth at which they were discovered.
        """
        cls._check(ax, estimator, "failure_", "prior_")
        pairs = zip(estimator.get_feature_names_out(), estimator.prior_, strict=True)
        titles = [f"{name}\nprior {prior:.2f}" for name, prior in pairs]
        depth = getattr(estimator, "depth_", None)
        if depth is not None and np.ndim(depth) == 1:
            titles = [
                f"{title}\ndepth {value:.0f}" if np.isfinite(value) else title
                for title, value in zip(titles, depth, strict=True)
            ]
        display = cls(1.0 - estimator.failure_, shape, titles)
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, cmap: str = "gray") -> Self:
        """Draw the images.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        cmap : str, default="gray"
            Colour map, from no edge to an edge that never fails.

        Returns
        -------
        self : LatentImagesDisplay
            With the drawing in ``ax_``, ``axes_`` and ``figure_``.
        """
        images = self._images()
        n = len(images)
        titles = [""] * n
        if self.titles is not None:
            titles = [str(title) for title in check_names("titles", self.titles, n)]
        n_columns = int(np.clip(n, 1, LARGEST_GRID))
        n_rows = max(1, -(-n // n_columns))
        size = max(3.0, 1.3 * n_columns), (1.3 + 0.5 * any(titles)) * n_rows
        gap = (0.3 if any(titles) else 0.06) / n_rows, 0.03
        panels = split_axes(self._start(ax, *size), n_rows, n_columns, gap=gap).ravel()
        for panel in panels[n:]:
            panel.set_axis_off()
        for panel, image, title in zip(panels, images, titles, strict=False):
            panel.imshow(image, vmin=0.0, vmax=1.0, cmap=cmap, interpolation="nearest")
            panel.set(xticks=[], yticks=[])
            # Without a frame, bright pixels at the border could not be seen.
            panel.spines[:].set_color("0.6")
            room = size_in_points(self.ax_)[0] / n_columns
            lines = [fitted_to(line, room, FONT) for line in title.splitlines()]
            panel.set_title("\n".join(lines), fontsize=FONT)
        self.axes_ = panels[:n]
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
