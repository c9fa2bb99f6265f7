"""Display of how many rows recover the latents of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._core.validation import check_numbers
from ._style import (
    NEGATIVE_COLOR,
    POSITIVE_COLOR,
    add_legend,
    check_has,
    check_plot,
    new_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class RowsNeededDisplay:
    """Share of the fits that recover the latents of a network, by number of rows.

    Parameters
    ----------
    sizes : array-like of shape (n_sizes,)
        Numbers of rows.
    share : array-like of shape (n_sizes,)
        Share of the fits that recovered the latents.
    low, high : array-like of shape (n_sizes,)
        Ends of its confidence interval.
    probability : float, default=0.9
        Share that is sought.
    n_rows : float, default=inf
        Number of rows at which it is reached.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> from sklearn_latent.plotting import RowsNeededDisplay
    >>> display = RowsNeededDisplay(
    ...     [100, 200, 400], [0.1, 0.6, 0.95], [0.0, 0.4, 0.8], [0.3, 0.8, 1.0]
    ... )
    >>> display.plot().ax_.get_xlabel()
    'rows'
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        sizes: ArrayLike,
        share: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        *,
        probability: float = 0.9,
        n_rows: float = np.inf,
    ) -> None:
        self.sizes = sizes
        self.share = share
        self.low = low
        self.high = high
        self.probability = probability
        self.n_rows = n_rows

    @classmethod
    def from_result(cls, result: Any, *, ax: Axes | None = None) -> Self:
        """Draw the result of `rows_needed`.

        Parameters
        ----------
        result : RowsNeeded
            The result.
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        display : RowsNeededDisplay
            The drawn display.
        """
        check_has(result, "method", "to_frame")
        check_has(result, "attribute", "probability", "n_rows")
        table = result.to_frame()
        columns = [table[name].to_numpy() for name in ("n_rows", "share")]
        ends = [table[name].to_numpy() for name in ("low", "high")]
        display = cls(
            *columns,
            *ends,
            probability=result.probability,
            n_rows=result.n_rows,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw points with their intervals, and where they are high enough.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        self : RowsNeededDisplay
            The drawn display.
        """
        check_plot(type(self).__name__, ax)
        sizes, share, low, high = (
            check_numbers(name, getattr(self, name))
            for name in ("sizes", "share", "low", "high")
        )
        if ax is None:
            ax = new_axes(6.0, 3.6)
        lengths = np.abs([share - low, high - share])
        points = ax.errorbar(
            sizes, share, lengths, fmt="o", ms=4, color=POSITIVE_COLOR, lw=1
        )
        entries: list[tuple[Any, str]] = [(points, "share of fits, 95% interval")]
        ax.axhline(self.probability, color="0.75", lw=0.8, ls=":")
        if np.isfinite(self.n_rows):
            needed = ax.axvline(self.n_rows, color=NEGATIVE_COLOR, lw=1, ls="--")
            entries.append((needed, f"{self.n_rows:,} rows"))
        ax.set_xscale("log")
        _label_sizes(ax, sizes)
        ax.set(xlabel="rows", ylabel="latents recovered", ylim=(-0.03, 1.03))
        add_legend(ax, entries, loc="lower left", bbox_to_anchor=(0.0, 1.01))
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _label_sizes(ax: Axes, sizes) -> None:
    """Plain numbers at 1, 2 and 5 times powers of ten, as far as sizes go."""
    powers = 10.0 ** np.arange(0, 12)
    ticks = np.sort(np.outer(powers, [1, 2, 5]).ravel())
    ticks = ticks[(ticks >= sizes.min() / 1.3) & (ticks <= sizes.max() * 1.3)]
    ax.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    ax.minorticks_off()
