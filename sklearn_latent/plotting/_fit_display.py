"""Display of how well a model fits: observed against modelled rates and pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.checks import comparisons_to_frame
from .._core.text import shorten
from .._core.validation import check_count, shown
from ._display import (
    FEATURE_COLOR,
    FONT,
    NEGATIVE_COLOR,
    Display,
    spelled,
    split_axes,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Checks that are drawn in each of the two panels, and points of a kind at most.
PANELS = (("rate", "mean", "spread"), ("pair",))
MOST_POINTS = 5000
MOST_LABELS = 20
NEEDED = "check", "what", "observed", "expected", "z", "ok"


class FitDisplay(Display):
    """Observed against modelled rates (or means and spreads), and pairs.

    Each feature is a point of the left panel, each pair one of the right. On the
    diagonal, data and model agree. Crosses differ by more than chance explains, and
    the worst of them have labels.

    Parameters
    ----------
    checks : pandas.DataFrame
        Checks with the columns of `diagnose`. Those named "rate", "mean" or "spread"
        are drawn on the left, those named "pair" on the right.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes that hold both panels.
    axes_ : ndarray of matplotlib Axes of shape (2,)
        Both panels.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> from sklearn_latent import NoisyOrEM
    >>> from sklearn_latent.datasets import make_noisy_or
    >>> from sklearn_latent.plotting import FitDisplay
    >>> X = make_noisy_or(n_samples=500, random_state=0).X
    >>> model = NoisyOrEM(n_latents=2, random_state=0).fit(X)
    >>> display = FitDisplay.from_estimator(model, X)
    >>> [ax.get_title() for ax in display.axes_]
    ['rate: 0 of 5 differ', 'pair: 0 of 10 differ']
    """

    axes_: NDArray[Any]

    def __init__(self, checks: pd.DataFrame) -> None:
        self.checks = checks

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Compare rows with a fitted estimator, and draw it.

        Parameters
        ----------
        estimator : estimator of this library
            Fitted estimator.
        X : array-like
            Data, as `diagnose` takes them.
        ax : matplotlib Axes or None, default=None
            Axes that both panels are drawn in. If None, a new figure is created.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : FitDisplay
            The drawn display. Continuous features are in units of the model: the mean
            as its distance from the modelled one, in standard deviations, and the
            spread as a multiple of the modelled one.
        """
        cls._check(ax, estimator, "diagnose", "_compare")
        checks = comparisons_to_frame(estimator._compare(X), MOST_POINTS)
        return cls(checks).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Axes | None = None, n_labels: int = 5) -> Self:
        """Draw both panels.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes that both panels are drawn in. If None, a new figure is created.
        n_labels : int, default=5
            Number of the worst failing points of a panel that have a label, at most 20.

        Returns
        -------
        self : FitDisplay
            The drawn display.
        """
        n_labels = check_count("n_labels", n_labels, 0, MOST_LABELS)
        missing = [n for n in NEEDED if n not in getattr(self.checks, "columns", ())]
        if missing:
            raise ValueError(
                f"checks must be a data frame with the columns {', '.join(NEEDED)}, "
                f"got {shown(self.checks)}."
            )
        axes = split_axes(self._start(ax, 9.0, 4.8), 1, 2, gap=(0.0, 0.18))[0]
        for panel, kinds in zip(axes, PANELS, strict=True):
            _draw_panel(panel, self.checks[self.checks.check.isin(kinds)], n_labels)
        axes[0].set_ylabel("observed")
        self.axes_ = axes
        return self


def _draw_panel(panel: Axes, checks: pd.DataFrame, n_labels: int) -> None:
    """Points, diagonal and labels of the worst."""
    checks = checks[np.isfinite(checks.observed) & np.isfinite(checks.expected)]
    ok = checks.ok.to_numpy(dtype=bool)
    x, y = (checks[name].to_numpy(float) for name in ("expected", "observed"))
    styles = ((ok, "o", 16, FEATURE_COLOR, 0.5), (~ok, "X", 30, NEGATIVE_COLOR, 0.9))
    for chosen, marker, size, color, alpha in styles:
        panel.scatter(
            x[chosen],
            y[chosen],
            s=size,
            marker=marker,
            color=color,
            alpha=alpha,
            linewidths=0,
        )
    values = np.concatenate([x, y])
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    room = 0.06 * (high - low) or 0.5
    low, high = low - room, high + room
    panel.plot([low, high], [low, high], color="0.6", lw=0.8, zorder=0)
    panel.set(xlim=(low, high), ylim=(low, high), xlabel="expected by the model")
    kinds = spelled(", ".join(dict.fromkeys(checks.check)) or "nothing")
    panel.set_title(f"{kinds}: {int((~ok).sum()):,} of {len(ok):,} differ")
    worst = checks[~ok].sort_values("z", key=lambda z: -z.abs(), kind="stable")
    for point in worst.head(n_labels).itertuples():
        is_right = point.expected > (low + high) / 2
        panel.annotate(
            spelled(shorten(point.what)),
            (point.expected, point.observed),
            xytext=(-6 if is_right else 6, 0),
            textcoords="offset points",
            ha="right" if is_right else "left",
            va="center",
            fontsize=FONT,
        )
