"""Display of how the cells of a row move the posterior of a latent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from .._core.text import shorten
from .._core.validation import check_choice, check_count, check_names, check_numbers
from ._display import (
    FEATURE_COLOR,
    FONT,
    NEGATIVE_COLOR,
    POSITIVE_COLOR,
    Display,
    spelled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bars that are shown at most; further ones would be too small to read.
MOST_CELLS = 40
SCALES = ("log-odds", "mean")


class ExplanationDisplay(Display):
    """Waterfall of the contributions of cells to the posterior of a latent.

    The lowest bar starts at what is believed of the latent before any cell is seen;
    each bar starts where the one below it ends.

    Parameters
    ----------
    contributions : array-like of shape (n_cells,)
        How much each cell adds to those before it.
    labels : sequence of str
        What the cells are called, such as "fever = 1".
    base : float or None, default=0.0
        What is believed before any cell is seen, in the same scale. None: there is
        nothing to explain, and the picture shows the title alone.
    title : str or None, default=None
        Title of the picture.
    scale : {"log-odds", "mean"}, default="log-odds"
        What is explained. Both ends of log-odds also have their probability.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure of these axes.

    See Also
    --------
    sklearn_latent.Explanation : What is drawn.

    Examples
    --------
    >>> from sklearn_latent.plotting import ExplanationDisplay
    >>> display = ExplanationDisplay([2.1, -0.8], ["fever = 1", "cough = 0"], -2.0)
    >>> [label.get_text() for label in display.plot().ax_.get_yticklabels()]
    ['before', 'fever = 1', 'cough = 0', 'after']
    """

    def __init__(
        self,
        contributions: ArrayLike,
        labels: Sequence[str],
        base: float | None = 0.0,
        *,
        title: str | None = None,
        scale: str = "log-odds",
    ) -> None:
        self.contributions = contributions
        self.labels = labels
        self.base = base
        self.title = title
        self.scale = scale

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        row: Any,
        *,
        latent: Any = None,
        ax: Axes | None = None,
        max_cells: int = 10,
        **kwargs: Any,
    ) -> Self:
        """Explain a row, and draw it.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with the method ``explain``.
        row : array-like, Series, dict or data frame of one row
            The row; NaN is missing.
        latent : str, int or None, default=None
            The latent to draw; None: the one whose posterior differs most from its
            prior.
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        max_cells : int, default=10
            Maximum number of cells to show; the others are added up.
        **kwargs : dict
            Passed to ``explain``.

        Returns
        -------
        display : ExplanationDisplay
            The drawn display.
        """
        cls._check(ax, estimator, "explain")
        if latent is not None:
            kwargs = {"latents": latent} | kwargs
        return estimator.explain(row, **kwargs).plot(ax=ax, max_cells=max_cells)

    def plot(self, ax: Axes | None = None, *, max_cells: int = 10) -> Self:
        """Draw the waterfall.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        max_cells : int, default=10
            Maximum number of cells to show, at most 40: those that contribute most.
            The others are added up.

        Returns
        -------
        self : ExplanationDisplay
            The drawn display.
        """
        check_choice("scale", self.scale, SCALES)
        max_cells = check_count("max_cells", max_cells, 1, MOST_CELLS)
        sizes = check_numbers("contributions", self.contributions)
        if sizes.ndim != 1 or not np.isfinite(sizes).all():
            raise ValueError(
                "contributions must be a list of finite numbers, got shape "
                f"{sizes.shape}."
            )
        names = [str(name) for name in check_names("labels", self.labels, len(sizes))]
        names, sizes = _folded(names, sizes, max_cells)
        ax = self._start(ax, 6.4, 1.5 + 0.28 * (len(names) + 2))
        if self.base is None:
            ax.set_axis_off()
            text = spelled(self.title or "nothing to explain")
            ax.text(0.5, 0.5, text, ha="center", color="0.5", transform=ax.transAxes)
            return self
        ends = self.base + np.concatenate([[0.0], np.cumsum(sizes)])
        _draw_bars(ax, ends)
        self._draw_ends(ax, ends[[0, -1]], [0, len(ends)])
        places = np.arange(len(names) + 2)
        labels = ["before", *map(shorten_cell, names), "after"]
        ax.set_yticks(places, list(map(spelled, labels)), fontsize=FONT)
        ax.set_ylim(-0.6, len(names) + 1.6)
        self._label_axes(ax, ends)
        return self

    def _draw_ends(self, ax, values, places) -> None:
        """Dots at what is believed before and after, in numbers."""
        ax.plot(values, places, "o", ms=6, color=FEATURE_COLOR)
        for value, place in zip(values, places, strict=True):
            text = f"{value:.3g}" if self.scale == "mean" else chance_text(value)
            style = {"va": "center", "fontsize": FONT, "textcoords": "offset points"}
            ax.annotate(text, (value, place), (7, 0), **style)

    def _label_axes(self, ax, ends) -> None:
        """Name the axes."""
        low, high = ends.min(), ends.max()
        margin = 0.18 * (high - low) or 1.0
        ax.set_xlim(low - margin, high + margin)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=FONT)
        if self.title is not None:
            ax.set_title(spelled(self.title), fontsize=FONT + 2)
        label = {"mean": "mean of the latent"}.get(self.scale, self.scale)
        ax.set_xlabel(label, fontsize=FONT)


def chance_text(log_odds: float) -> str:
    """Probability of log-odds, which is hardly ever 0 or 1."""
    chance = expit(log_odds)
    if 0.001 <= chance <= 0.999:
        return f"P = {chance:.3g}"
    return "P < 0.001" if chance < 0.5 else "P > 0.999"


def shorten_cell(label: str) -> str:
    """Cut the name of a long label, but not its value."""
    name, equals, value = label.rpartition(" = ")
    return f"{shorten(name)}{equals}{shorten(value)}" if equals else shorten(label)


def _folded(names, sizes, max_cells: int):
    """The largest contributions in their order, then the sum of the others."""
    told = np.abs(sizes) > 1e-9 * np.abs(sizes).max(initial=0.0)
    order = np.argsort(-np.abs(sizes), kind="stable")[:max_cells]
    shown = np.sort(order[told[order]])
    n_others = len(sizes) - len(shown)
    kept = [names[i] for i in shown]
    if not n_others:
        return kept, sizes
    others = sizes.sum() - sizes[shown].sum()
    text = "1 other" if n_others == 1 else f"{n_others} others"
    return [*kept, text], np.append(sizes[shown], others)


def _draw_bars(ax, ends) -> None:
    """Bars from each end to the next, thin lines between, and the two values."""
    steps = np.diff(ends)
    places = np.arange(1, len(ends))
    colors = np.where(steps >= 0, POSITIVE_COLOR, NEGATIVE_COLOR)
    ax.barh(places, steps, left=ends[:-1], color=colors.tolist(), height=0.7)
    # A line joins the end of a bar to the start of the next.
    heights = np.arange(len(ends))
    ax.vlines(ends, heights, heights + 1, color="0.6", lw=0.8, zorder=0)
    reach = np.ptp(ends) or 1.0
    for place, step, end in zip(places, steps, ends[1:], strict=True):
        side = 1 if step >= 0 else -1
        ax.text(
            end + 0.012 * side * reach,
            place,
            f"{step:+.2g}",
            ha="left" if side > 0 else "right",
            va="center",
            fontsize=FONT,
        )
