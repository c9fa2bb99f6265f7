"""What all displays share: checks of arguments, axes, colours, names and legends."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.text import LONGEST_NAME, shorten
from .._core.validation import check_names, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colour-blind safe hues (Okabe and Ito), the pale yellow left out.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#6A51A3")
FEATURE_COLOR = "#4D4D4D"
LATENT_COLOR = "#6A51A3"
POSITIVE_COLOR = "#0072B2"
NEGATIVE_COLOR = UNREACHED_COLOR = "#D55E00"
LEGEND_FONT = 8.0
MARGIN_INCHES = 0.08
SMALLEST_FONT = 6.0  # in points; smaller letters cannot be read


def check_plot(display: str, ax: Any, name: str = "ax") -> None:
    """Refuse to draw without matplotlib, or on what is neither None nor axes."""
    try:
        import matplotlib.axes
    except ImportError as error:
        raise ImportError(
            f"{display}.plot needs matplotlib. Install it, or this package with its "
            "extra: sklearn-latent[plot]."
        ) from error
    if ax is not None and not isinstance(ax, matplotlib.axes.Axes):
        raise TypeError(f"{name} must be matplotlib Axes, got {shown(ax)}.")


def check_has(estimator: Any, kind: str, *names: str) -> None:
    """Refuse an estimator that lacks a method or an attribute."""
    for name in names:
        if not hasattr(estimator, name):
            raise TypeError(
                f"estimator must have the {kind} {name}, got an instance of "
                f"{type(estimator).__name__}."
            )


def check_cmap(cmap: Any) -> None:
    """Refuse what is not a colour map of matplotlib."""
    import matplotlib as mpl

    if not isinstance(cmap, mpl.colors.Colormap) and not (
        isinstance(cmap, str) and cmap in mpl.colormaps
    ):
        raise ValueError(
            f"cmap must be the name of a colour map of matplotlib, got {shown(cmap)}."
        )


def new_axes(width: float, height: float) -> Axes:
    """Axes of a new figure with room for labels around them."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def new_graph_axes(width: float, height: float) -> Axes:
    """Axes of this size in points, which nearly fill a new figure."""
    import matplotlib.pyplot as plt

    size = np.array([width, height]) / 72.0 + 2 * MARGIN_INCHES
    figure, ax = plt.subplots(figsize=tuple(size.tolist()))
    left, bottom = MARGIN_INCHES / size
    figure.subplots_adjust(left=left, right=1 - left, bottom=bottom, top=1 - bottom)
    return ax


def split_axes(ax: Axes, n_rows: int, n_columns: int = 1, *, gap=(0.06, 0.03)):
    """Divide axes into a grid of panels (n_rows, n_columns)."""
    ax.set_axis_off()
    high = (1.0 - gap[0] * (n_rows - 1)) / n_rows
    wide = (1.0 - gap[1] * (n_columns - 1)) / n_columns
    panels = np.empty((n_rows, n_columns), dtype=object)
    for i, j in np.ndindex(n_rows, n_columns):
        corner = (j * (wide + gap[1]), 1.0 - high - i * (high + gap[0]))
        panels[i, j] = ax.inset_axes((*corner, wide, high))
    return panels


def size_in_points(ax) -> tuple[float, float]:
    """Width and height of axes, in the unit of fonts."""
    points = 72.0 / ax.figure.dpi  # of a pixel; a subfigure has no size in inches
    return points * ax.bbox.width, points * ax.bbox.height


def spelled(text: Any) -> str:
    """Text for matplotlib, which would read what is between dollars as a formula.

    The only place that escapes: labels are plain until they are handed over.
    """
    return str(text).replace("$", r"\$")


def fit_width(name: Any, room: float, font: float) -> str:
    """Name cut until it is at most `room` points wide."""
    for longest in range(LONGEST_NAME, 1, -1):
        label = shorten(name, longest)
        if text_width([label], font) <= room:
            break
    return label


def labels_or_default(argument: str, given, prefix: str, size: int) -> list[str]:
    """Short labels from given names, or from numbers."""
    if given is None:
        return [f"{prefix}{i}" for i in range(size)]
    return [shorten(name) for name in check_names(argument, given, size)]


def text_width(labels, font: float) -> float:
    """Width of the longest label in points."""
    import matplotlib as mpl

    family = tuple(mpl.rcParams["font.family"])
    return font * max((_width_in_fonts(label, family) for label in labels), default=0.0)


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


def wrap(text: str, room: float, font: float) -> list[str]:
    """Lines of at most `room` points."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width([f"{lines[-1]} {word}"], font) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def text_color_on(color) -> str:
    """Black or white, whichever contrasts more."""
    from matplotlib.colors import to_rgb

    luminance = np.dot(to_rgb(color), (0.299, 0.587, 0.114))
    return "black" if luminance > 0.58 else "white"


def ease(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smooth step from 0 to 1, for curves that leave and arrive at right angles."""
    return t * t * (3.0 - 2.0 * t)


def edge_width(strength: ArrayLike) -> NDArray[np.float64]:
    """Width of an edge in points."""
    return 0.6 + 2.6 * np.asarray(strength)


def edge_opacity(strength: ArrayLike) -> NDArray[np.float64]:
    """Opacity of an edge, from 0 to 1."""
    return 0.25 + 0.65 * np.asarray(strength)


def draw_curves(ax: Axes, curves, strength, hues, *, thinnest: float):
    """Draw edges, thinner the more there are; return them, colours and widths."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb

    value = np.clip(strength, 0.0, 1.0)
    rgba = np.empty((len(curves), 4))
    rgba[:, :3] = np.reshape([to_rgb(hue) for hue in hues], (-1, 3))
    rgba[:, 3] = edge_opacity(value)
    # A thousand edges at full width would cover the picture.
    crowd = np.clip(np.sqrt(60.0 / max(len(curves), 1)), thinnest, 1.0)
    widths = edge_width(value) * crowd
    lines = LineCollection(list(curves), colors=rgba, linewidths=widths, zorder=1)
    return ax.add_collection(lines, autolim=False), rgba, widths


def add_legend(ax: Axes, entries, **options) -> None:
    """Legend of (handle, label) pairs in one line at the bottom."""
    if not entries:
        return
    place = {"loc": "lower center", "borderaxespad": 0.0, "ncols": len(entries)}
    style = place | {"frameon": False, "fontsize": LEGEND_FONT} | options
    handles, labels = zip(*entries, strict=True)
    ax.legend(handles, list(map(spelled, labels)), **style)
