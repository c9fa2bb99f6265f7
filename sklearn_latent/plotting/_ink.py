"""What all pictures share: colours, names that fit, sizes in points."""

from __future__ import annotations

import numpy as np

from .._validation import shown

__all__ = [
    "FEATURE_COLOR",
    "LATENT_COLOR",
    "NEGATIVE_COLOR",
    "PALETTE",
    "POSITIVE_COLOR",
    "check_axes",
    "check_cmap",
    "check_matplotlib",
    "edge_opacity",
    "edge_width",
    "ink_on",
    "shorten",
    "sign_legend",
    "size_in_points",
    "strength_legend",
    "text_width",
]

# Colour-blind safe hues (Okabe and Ito), the pale yellow left out.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#6A51A3")
FEATURE_COLOR = "#4D4D4D"
LATENT_COLOR = "#6A51A3"
POSITIVE_COLOR = "#0072B2"
NEGATIVE_COLOR = "#D55E00"
LONGEST_LABEL = 24


def check_matplotlib(display: str) -> None:
    """Say what to install; matplotlib is not required for anything else."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{display}.plot needs matplotlib. Install it, or this package with its "
            "extra: sklearn-latent[plot]."
        ) from error


def check_axes(name: str, ax) -> None:
    """Refuse what is neither None nor axes to draw on."""
    from matplotlib.axes import Axes

    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"{name} must be matplotlib Axes, got {shown(ax)}.")


def check_cmap(cmap) -> None:
    """Refuse what is no colour map of matplotlib."""
    import matplotlib as mpl

    if not isinstance(cmap, mpl.colors.Colormap) and not (
        isinstance(cmap, str) and cmap in mpl.colormaps
    ):
        raise ValueError(
            f"cmap must be the name of a colour map of matplotlib, got {shown(cmap)}."
        )


def size_in_points(ax) -> tuple[float, float]:
    """Width and height of axes, in the unit of fonts."""
    box = ax.get_position()
    width, height = ax.figure.get_size_inches()
    return 72.0 * width * box.width, 72.0 * height * box.height


def shorten(name) -> str:
    """Cut names that would need half the picture."""
    name = str(name)
    return name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…"


def ink_on(color) -> str:
    """Black or white, whichever stands out."""
    from matplotlib.colors import to_rgb

    luminance = np.dot(to_rgb(color), (0.299, 0.587, 0.114))
    return "black" if luminance > 0.58 else "white"


def text_width(labels, font: float) -> float:
    """Room for the longest label, whose letters are about 0.6 of their height wide."""
    return font * (0.6 * max(map(len, labels), default=0) + 0.8)


def edge_width(strength):
    """Width of an edge in points."""
    return 0.6 + 2.6 * np.asarray(strength)


def edge_opacity(strength):
    """Opacity of an edge, from 0 to 1."""
    return 0.25 + 0.65 * np.asarray(strength)


def strength_legend(ax, more=()) -> None:
    """Show what weak and strong edges look like."""
    from matplotlib.lines import Line2D

    entries = [
        (
            Line2D(
                [], [], color="0.25", lw=edge_width(s), alpha=float(edge_opacity(s))
            ),
            f"strength {s}",
        )
        for s in (0.1, 0.5, 0.9)
    ]
    handles, labels = zip(*entries, *more, strict=True)
    ax.legend(
        handles,
        labels,
        loc="lower center",
        ncols=len(handles),
        frameon=False,
        fontsize=8,
        borderaxespad=0.0,
    )


def sign_legend(signs) -> list:
    """Entries of a legend for the signs that occur."""
    from matplotlib.lines import Line2D

    kinds = ((1.0, POSITIVE_COLOR, "positive"), (-1.0, NEGATIVE_COLOR, "negative"))
    return [
        (Line2D([], [], color=color, lw=2.0), label)
        for sign, color, label in kinds
        if np.any(np.asarray(signs) == sign)
    ]
