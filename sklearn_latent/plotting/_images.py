"""Pictures of latents whose features are the pixels of images."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import check_names, check_numbers
from ._ink import check_axes, check_cmap, check_matplotlib

__all__ = ["LatentImagesDisplay"]

LARGEST_GRID = 8  # images in a row


class LatentImagesDisplay:
    """Children of each latent as an image.

    The brightness of a pixel is the strength of its edge, 1 - failure: black is no
    edge, white one that never fails.

    Parameters
    ----------
    strength : array-like of shape (n_latents, n_features)
        1 - failure.

    shape : tuple of two int
        Height and width of the images.

    titles : sequence of str or None, default=None
        What to write above each image.

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

    def __init__(self, strength, shape, titles=None):
        self.strength = strength
        self.shape = shape
        self.titles = titles

    @classmethod
    def from_estimator(cls, estimator, shape, *, axes=None, **kwargs):
        """Draw a fitted estimator of a noisy-or network.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with ``failure_`` and ``prior_``.

        shape : tuple of two int
            Height and width of the images.

        axes : array-like of matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        **kwargs : dict
            Passed on to `plot`.

        Returns
        -------
        display : LatentImagesDisplay
            The drawn display. Above each image stand the name of the latent, its prior
            and, if the estimator has it, the depth at which it was discovered.
        """
        check_is_fitted(estimator)
        for name in ("failure_", "prior_"):
            if not hasattr(estimator, name):
                raise TypeError(
                    f"estimator must have the attribute {name}, got an instance of "
                    f"{type(estimator).__name__}."
                )
        names = estimator.get_feature_names_out()
        titles = [
            f"{name}\nprior {prior:.2f}"
            for name, prior in zip(names, estimator.prior_, strict=True)
        ]
        depth = getattr(estimator, "depth_", None)
        if depth is not None and np.ndim(depth) == 1:
            titles = [
                f"{title}, depth {value:.0f}" if np.isfinite(value) else title
                for title, value in zip(titles, depth, strict=True)
            ]
        display = cls(1.0 - estimator.failure_, shape, titles)
        return display.plot(axes=axes, **kwargs)

    def plot(self, axes=None, *, cmap="gray"):
        """Draw the images.

        Parameters
        ----------
        axes : array-like of matplotlib Axes or None, default=None
            At least one per latent; None makes a new figure.

        cmap : str, default="gray"
            Colours from no edge to one that never fails.

        Returns
        -------
        self : LatentImagesDisplay
            With the drawing in ``axes_`` and ``figure_``.
        """
        check_matplotlib("LatentImagesDisplay")
        images = self._images()
        check_cmap(cmap)
        titles = self.titles
        if titles is not None:
            titles = check_names("titles", titles, len(images))
        if axes is None:
            axes = _new_axes(len(images), 1.3 if titles is None else 1.7)
        axes = np.ravel(np.asarray(axes, dtype=object))
        for ax in axes:
            if ax is None:
                raise TypeError("axes must hold matplotlib Axes, got None.")
            check_axes("axes", ax)
        if len(axes) < max(1, len(images)):
            raise ValueError(
                f"axes must hold one Axes per latent, expected {len(images)}, "
                f"got {len(axes)}."
            )
        for ax in axes:
            ax.set_axis_off()
        for number, (ax, image) in enumerate(zip(axes, images, strict=False)):
            ax.imshow(image, vmin=0.0, vmax=1.0, cmap=cmap, interpolation="nearest")
            # A frame, because bright pixels at the edge would fade into the page.
            ax.set_axis_on()
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_color("0.6")
            if titles is not None:
                ax.set_title(titles[number], fontsize=8)
        self.axes_ = axes[: len(images)]
        self.figure_ = axes[0].figure
        return self

    def _images(self):
        """Check the shape."""
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


def _new_axes(n_images, row_height):
    """Axes of a new figure, in rows of at most LARGEST_GRID."""
    import matplotlib.pyplot as plt

    n_columns = int(np.clip(n_images, 1, LARGEST_GRID))
    n_rows = max(1, -(-n_images // n_columns))
    _, axes = plt.subplots(
        n_rows,
        n_columns,
        figsize=(max(3.0, 1.3 * n_columns), row_height * n_rows),
        squeeze=False,
        layout="constrained",
    )
    return axes
