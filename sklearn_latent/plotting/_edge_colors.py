"""Colours of edges, and the other options of drawings of graphs."""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple

import numpy as np

from .._core.validation import shown
from ._style import NEGATIVE_COLOR, POSITIVE_COLOR, UNREACHED_COLOR

UNKNOWN_COLOR = "#9A9A9A"
MOST_ENTRIES = 5
SIGNS = {1: POSITIVE_COLOR, -1: NEGATIVE_COLOR, 0: "#404040"}


def color_scale(cmap, low: float, high: float):
    """Function from a value to its colour; infinite values have one of their own."""
    import matplotlib as mpl

    colors = mpl.colormaps.get_cmap(cmap)

    def color(value: float):
        if not np.isfinite(value):
            return UNREACHED_COLOR
        # The end of most colour maps is too pale on white.
        return colors(0.85 * (value - low) / (high - low) if high > low else 0.0)

    return color


class EdgeColors:
    """One colour per edge, and a legend of the colours.

    attribute: name of a numeric attribute of edges. Edges without it are grey
    """

    def __init__(self, graph, attribute: str):
        self.attribute = attribute
        if not isinstance(attribute, str):
            raise ValueError(
                f"color_by must be an attribute of the edges, got {shown(attribute)}."
            )
        self._values = {
            (parent, child): float(value)
            for parent, child, value in graph.edges(data=attribute)
            if isinstance(value, Real) and not np.isnan(float(value))
        }
        if not self._values:
            known = sorted({key for *_, data in graph.edges(data=True) for key in data})
            raise ValueError(
                "color_by must be a numeric attribute of the edges, which have "
                f"{known}, got {attribute!r}."
            )
        self._finite = np.unique([v for v in self._values.values() if np.isfinite(v)])
        limits = self._finite[[0, -1]] if len(self._finite) else (0.0, 0.0)
        self._color = color_scale("viridis", *limits)

    def __call__(self, parent, child):
        """Colour of an edge."""
        value = self._values.get((parent, child))
        return UNKNOWN_COLOR if value is None else self._color(value)

    def legend(self) -> list:
        """Entries of a legend: all values, or some of them if there are many."""
        from matplotlib.lines import Line2D

        named = self._finite.tolist()
        if len(named) > MOST_ENTRIES:
            named = np.linspace(named[0], named[-1], 3).tolist()
        whole = all(value == round(value) for value in named)
        labels = [f"{self.attribute} {v:.0f}" if whole else f"{v:.2g}" for v in named]
        if not all(map(np.isfinite, self._values.values())):
            named, labels = [*named, np.inf], [*labels, "out of reach"]
        colors = map(self._color, named)
        handles = [Line2D([], [], color=color, lw=2.0) for color in colors]
        return list(zip(handles, labels, strict=True))


class SignColors:
    """Colours of edges by the signs of their weights."""

    def __init__(self, graph):
        self._signs = {
            (parent, child): _sign(weight)
            for parent, child, weight in graph.edges(data="weight")
        }

    def __call__(self, parent, child):
        """Colour of an edge."""
        return SIGNS[self._signs[parent, child]]

    @property
    def has_negative(self) -> bool:
        """Whether any edge has a negative weight."""
        return -1 in self._signs.values()

    def legend(self) -> list:
        """Entries of a legend for the signs that occur."""
        from matplotlib.lines import Line2D

        return [
            (Line2D([], [], color=SIGNS[sign], lw=2.0), label)
            for sign, label in ((1, "positive"), (-1, "negative"))
            if sign in self._signs.values()
        ]


def _sign(weight) -> int:
    """Sign of a weight, 0 if it is none."""
    if not isinstance(weight, Real) or np.isnan(float(weight)):
        return 0
    return int(np.sign(float(weight)))


class GraphOptions(NamedTuple):
    """How to draw a graph; see `LatentGraphDisplay.plot`.

    note: what is not shown
    """

    note: str
    feature_labels: str | bool
    legend: bool
    edge_colors: EdgeColors | SignColors | None
