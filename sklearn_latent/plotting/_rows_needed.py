"""Display of how many rows recover the latents of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._core.validation import shown
from ._display import NEGATIVE_COLOR, POSITIVE_COLOR, Display, add_legend

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class RowsNeededDisplay(Display):
    """Share of the fits that recover the latents of a network, by number of rows.

    Parameters
    ----------
    table : pandas.DataFrame
        As the method ``to_frame`` of the result of `rows_needed`: ``n_rows``, and the
        ``share`` of the fits with the ends ``low`` and ``high`` of its interval.
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
    >>> import pandas as pd
    >>> from sklearn_latent.plotting import RowsNeededDisplay
    >>> table = pd.DataFrame({"n_rows": [100, 400], "share": [0.1, 0.95]})
    >>> table = table.assign(low=[0.0, 0.8], high=[0.3, 1.0])
    >>> RowsNeededDisplay(table).plot().ax_.get_xlabel()
    'rows'
    """

    def __init__(
        self, table: pd.DataFrame, *, probability: float = 0.9, n_rows: float = np.inf
    ) -> None:
        self.table = table
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
        if not hasattr(result, "to_frame") or not hasattr(result, "n_rows"):
            raise TypeError(
                f"result must be what rows_needed returns, got {shown(result)}."
            )
        display = cls(
            result.to_frame(), probability=result.probability, n_rows=result.n_rows
        )
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
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
        ax = self._start(ax, 6.0, 3.6)
        table = self.table
        lengths = np.abs([table.share - table.low, table.high - table.share])
        points = ax.errorbar(
            table.n_rows, table.share, lengths, fmt="o", ms=4, color=POSITIVE_COLOR
        )
        entries: list[tuple[Any, str]] = [(points, "share of fits, 95% interval")]
        ax.axhline(self.probability, color="0.75", lw=0.8, ls=":")
        if np.isfinite(self.n_rows):
            needed = ax.axvline(self.n_rows, color=NEGATIVE_COLOR, lw=1, ls="--")
            entries.append((needed, f"{self.n_rows:,} rows"))
        ax.set_xscale("log")
        ticks = np.unique(np.append(table.n_rows.iloc[[0, -1]], table.n_rows.median()))
        ax.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
        ax.minorticks_off()
        ax.set(xlabel="rows", ylabel="latents recovered", ylim=(-0.03, 1.03))
        add_legend(ax, entries, loc="lower left", bbox_to_anchor=(0.0, 1.01))
        return self
