"""What all displays share: axes, checks of arguments, colours, names and legends."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.text import shorten
from .._core.validation import check_names, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Colour-blind safe hues (Okabe and Ito), the pale yellow left out.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#6A51A3")
FEATURE_COLOR = "#4D4D4D"
POSITIVE_COLOR = "#0072B2"
NEGATIVE_COLOR = "#D55E00"
FONT = 8.0  # of legends and labels, in points


class Display:
    """Base of all displays.

    A display is made of plain arrays; ``from_estimator`` makes it of a fitted
    estimator and calls ``plot``, which draws it.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure of these axes.
    """

    ax_: Axes
    figure_: Figure | SubFigure

    @classmethod
    def _check(cls, ax: Any, estimator: Any = None, *needed: str) -> None:
        """Refuse to draw without matplotlib, on other axes or what lacks a name."""
        check_plot(cls.__name__, ax)
        # What a fit makes can be missed only after it.
        for fitted in (False, True):
            for name in needed:
                if name.endswith("_") is fitted and not hasattr(estimator, name):
                    raise TypeError(
                        f"estimator must have {name}, got an instance of "
                        f"{type(estimator).__name__}."
                    )
            if needed and not fitted:
                check_is_fitted(estimator)

    def _start(self, ax: Axes | None, width: float, height: float) -> Axes:
        """Keep the axes, or those of a new figure of this size in inches."""
        check_plot(type(self).__name__, ax)
        if ax is None:
            import matplotlib.pyplot as plt

            size = width, height
            ax = plt.subplots(figsize=size, layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def check_plot(display: str, ax: Any = None) -> None:
    """Refuse to draw without matplotlib, or on what is neither None nor axes."""
    try:
        import matplotlib.axes
    except ImportError as error:
        raise ImportError(
            f"{display}.plot needs matplotlib. Install it, or this package with its "
            "extra: sklearn-latent[plot]."
        ) from error
    if ax is not None and not isinstance(ax, matplotlib.axes.Axes):
        raise TypeError(f"ax must be matplotlib Axes, got {shown(ax)}.")


def split_axes(ax: Axes, n_rows: int, n_columns: int, *, gap) -> NDArray[Any]:
    """Divide axes into a grid of panels (n_rows, n_columns)."""
    ax.set_axis_off()
    high = (1.0 - gap[0] * (n_rows - 1)) / n_rows
    wide = (1.0 - gap[1] * (n_columns - 1)) / n_columns
    panels = np.empty((n_rows, n_columns), dtype=object)
    for i, j in np.ndindex(n_rows, n_columns):
        corner = (j * (wide + gap[1]), 1.0 - high - i * (high + gap[0]))
        panels[i, j] = ax.inset_axes((*corner, wide, high))
    return panels


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Width and height of axes, in the unit of fonts."""
    points = 72.0 / ax.figure.dpi  # of a pixel; a subfigure has no size in inches
    return points * ax.bbox.width, points * ax.bbox.height


def spelled(text: Any) -> str:
    """Text for matplotlib, which would read what is between dollars as a formula.

    The only place that escapes: labels are plain until they are handed over.
    """
    return str(text).replace("$", r"\$")


def fitted_to(name: Any, room: float, font: float) -> str:
    """Name spelled out, with at most as many letters as usually fit into a room."""
    return spelled(shorten(name, max(2, min(24, int(room / (0.6 * font))))))


def labels_or_default(argument: str, given, prefix: str, size: int) -> list[str]:
    """Short labels from given names, or from numbers."""
    if given is None:
        return [f"{prefix}{i}" for i in range(size)]
    return [shorten(name) for name in check_names(argument, given, size)]


def text_width(label: str, font: float) -> float:
    """Width of a label in points."""
    import matplotlib as mpl

    return font * _width_in_fonts(label, tuple(mpl.rcParams["font.family"]))


@lru_cache(maxsize=8192)
def _width_in_fonts(label: str, family: tuple[str, ...]) -> float:
    """Width of a label as a multiple of the font size, in this family of fonts."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with warnings.catch_warnings():
        # Letters that the font lacks are reported when they are drawn.
        warnings.simplefilter("ignore")
        width, _, _ = text_to_path.get_text_width_height_descent(
            label, FontProperties(size=10.0), ismath=False
        )
    return 0.102 * width  # hinting makes letters up to 2% wider


def text_color_on(color) -> str:
    """Black or white, whichever contrasts more."""
    from matplotlib.colors import to_rgb

    luminance = np.dot(to_rgb(color), (0.299, 0.587, 0.114))
    return "black" if luminance > 0.58 else "white"


def add_legend(ax: Axes, entries, **options) -> None:
    """Legend of (handle, label) pairs without a frame, if there are any."""
    if entries:
        handles, labels = zip(*entries, strict=True)
        style = {"frameon": False, "fontsize": FONT, "borderaxespad": 0.0} | options
        ax.legend(handles, list(map(spelled, labels)), **style)
