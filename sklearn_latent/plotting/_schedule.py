"""Display of the rounds in which the edges of a noisy-or network are learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._core.validation import MOST_COLUMNS, check_numbers
from ._edge_colors import color_scale
from ._style import (
    add_legend,
    check_cmap,
    check_has,
    check_plot,
    labels_or_default,
    new_axes,
    size_in_points,
    spelled,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# With more rows or columns a cell is smaller than a pixel.
MOST_LATENTS, MOST_FEATURES = 120, 400
FONT = 8.0


class ScheduleDisplay:
    """Matrix of the depths at which edges are learned.

    Latents are rows and features columns. Coloured cells are edges, darker the earlier
    they are learned; edges that only the clean-up reaches are orange. Latents that are
    learned first are at the top. The legend counts the edges of each depth. Structures
    too large for a matrix are drawn as bars, one per depth.

    Parameters
    ----------
    depth : array-like of shape (n_latents, n_features)
        Round in which an edge is learned. NaN means no edge, inf only by clean-up.
    latent_names, feature_names : sequence of str or None, default=None
        Names of the nodes. If None, they are latent0, ... and x0, ...

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> from sklearn_latent.datasets import figure_1_structure
    >>> from sklearn_latent.noisy_or import find_schedule
    >>> from sklearn_latent.plotting import ScheduleDisplay
    >>> schedule = find_schedule(figure_1_structure())
    >>> display = ScheduleDisplay.from_schedule(schedule)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['depth 0: 4 edges', 'depth 1: 3 edges']
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        depth: ArrayLike,
        latent_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.depth = depth
        self.latent_names = latent_names
        self.feature_names = feature_names

    @classmethod
    def from_schedule(
        cls,
        schedule: Any,
        *,
        latent_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the schedule of a structure, which does not depend on data.

        Parameters
        ----------
        schedule : Schedule
            As returned by `find_schedule`.
        latent_names, feature_names : sequence of str or None, default=None
            Names of the nodes.
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : ScheduleDisplay
            The drawn display.
        """
        if not hasattr(schedule, "depth"):
            raise TypeError(
                "schedule must be what find_schedule returns, got an instance of "
                f"{type(schedule).__name__}."
            )
        display = cls(schedule.depth, latent_names, feature_names)
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        latent_names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the depths of a fitted estimator.

        Parameters
        ----------
        estimator : NoisyOrMoMLearner or QuartetStructureLearner
            Fitted estimator with ``depth_``. If it has one depth per latent, as
            `QuartetStructureLearner` does, all edges of a latent share it.
        latent_names : sequence of str or None, default=None
            Names of the latents.
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : ScheduleDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        check_has(estimator, "attribute", "depth_")
        depth = np.asarray(estimator.depth_, dtype=float)
        if depth.ndim == 1:
            depth = np.where(estimator.structure_, depth[:, np.newaxis], np.nan)
        names = getattr(estimator, "feature_names_in_", None)
        return cls(depth, latent_names, names).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, cmap: str = "viridis") -> Self:
        """Draw the depths.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        cmap : str, default="viridis"
            Colour map, from the first round to the last.

        Returns
        -------
        self : ScheduleDisplay
            With the drawing in ``ax_`` and ``figure_``.
        """
        check_plot("ScheduleDisplay", ax)
        check_cmap(cmap)
        depth, latents, features = self._check()
        rounds = np.unique(depth[~np.isnan(depth)])
        last = np.max(rounds, initial=1.0, where=np.isfinite(rounds))
        colors = list(map(color_scale(cmap, 0.0, last), rounds))
        if depth.shape[0] > MOST_LATENTS or depth.shape[1] > MOST_FEATURES:
            self.ax_ = new_axes(6.4, 1.2 + 0.35 * len(rounds)) if ax is None else ax
            _draw_bars(self.ax_, depth, rounds, colors)
        else:
            self.ax_ = _new_matrix_axes(depth, latents, features) if ax is None else ax
            _draw_matrix(self.ax_, depth, latents, features, rounds, colors)
        self.figure_ = self.ax_.figure
        return self

    def _check(self):
        """The matrix and the names of its rows and columns."""
        depth = check_numbers("depth", self.depth)
        if depth.ndim != 2:
            raise ValueError(
                "depth must have shape (n_latents, n_features), got shape "
                f"{depth.shape}."
            )
        rounds = depth[np.isfinite(depth)]
        valid = (rounds >= 0) & (rounds <= MOST_COLUMNS) & (rounds == np.floor(rounds))
        if not valid.all() or np.isneginf(depth).any():
            raise ValueError(
                "depth must hold whole numbers of at least 0, inf or NaN, got others."
            )
        n_latents, n_features = depth.shape
        return (
            depth,
            labels_or_default("latent_names", self.latent_names, "latent", n_latents),
            labels_or_default("feature_names", self.feature_names, "x", n_features),
        )


def _depth_name(value: float) -> str:
    return f"depth {value:.0f}" if np.isfinite(value) else "out of reach"


def _draw_matrix(ax, depth, latents, features, rounds, colors) -> None:
    """Cells for edges, rows in the order in which latents are learned."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    reached = np.where(np.isnan(depth), np.inf, depth)
    order = np.argsort(reached.min(axis=1, initial=np.inf), kind="stable")
    depth = depth[order]
    image = np.ones((*depth.shape, 4))
    for value, color in zip(rounds, colors, strict=True):
        image[depth == value] = to_rgba(color)
    if depth.size:
        ax.imshow(image, aspect="auto", interpolation="nearest")
    else:
        ax.text(0.5, 0.5, "no edges", ha="center", color="0.5", transform=ax.transAxes)
    _grid(ax, depth.shape)
    width, height = size_in_points(ax)
    _label(ax.yaxis, [latents[i] for i in order], height, turned=False)
    _label(ax.xaxis, features, width, turned=True)
    ax.tick_params(length=0)
    ax.spines[:].set_color("0.8")
    entries = []
    for value, color in zip(rounds, colors, strict=True):
        n_edges = int((depth == value).sum())
        plural = "s" if n_edges != 1 else ""
        label = f"{_depth_name(value)}: {n_edges:,} edge{plural}"
        entries.append((Patch(color=color), label))
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    add_legend(ax, entries, ncols=min(len(rounds), 4), **place)


def _grid(ax, shape) -> None:
    """Thin lines between cells that are large enough for them."""
    width, height = size_in_points(ax)
    n_latents, n_features = shape
    if width > 5 * n_features:
        ax.set_xticks(np.arange(n_features + 1) - 0.5, minor=True)
    if height > 5 * n_latents:
        ax.set_yticks(np.arange(n_latents + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="0.9", lw=0.6)
    ax.tick_params(which="minor", length=0)


def _label(axis, names, room, *, turned) -> None:
    """Write every name if there is room, else every second and so on."""
    per_name = room / max(len(names), 1)
    level = turned and text_width(names, FONT) <= per_name
    step = 1 if level else int(np.ceil(1.3 * FONT / max(per_name, 1e-9)))
    places = np.arange(0, len(names), step)
    axis.set_ticks(places, [spelled(names[i]) for i in places])
    axis.set_tick_params(labelsize=FONT)
    if turned and not level:
        axis.set_tick_params(labelrotation=90)


def _draw_bars(ax, depth, rounds, colors) -> None:
    """One bar per depth, with its number of edges."""
    places = np.arange(len(rounds))
    n_edges = np.array([(depth == value).sum() for value in rounds])
    ax.barh(places, n_edges, color=colors, height=0.7)
    ax.set_xscale("log")
    ax.set_xlim(0.5, 4.0 * max(n_edges, default=1))
    ax.set_yticks(places, list(map(_depth_name, rounds)))
    ax.invert_yaxis()
    for place, count in zip(places, n_edges, strict=True):
        ax.text(1.1 * count, place, f"{count:,}", va="center", fontsize=FONT + 1)
    ax.set_xlabel(f"edges, of {depth.shape[0]:,} latents x {depth.shape[1]:,} features")
    ax.spines[["top", "right"]].set_visible(False)


def _new_matrix_axes(depth, latents, features):
    """Axes of a new figure with room for cells and names."""
    n_latents, n_features = depth.shape
    width = np.clip(0.19 * n_features, 3.6, 12.0) + text_width(latents, FONT) / 72
    height = np.clip(0.19 * n_latents, 1.0, 9.0) + text_width(features, FONT) / 72
    return new_axes(float(width + 0.4), float(height + 0.6))
