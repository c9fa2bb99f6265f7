"""Colours of edges by one of their attributes."""

from __future__ import annotations

from numbers import Real

import numpy as np

from .._validation import shown

__all__ = ["Tints"]

UNREACHED_COLOR = "#D55E00"
UNKNOWN_COLOR = "#9A9A9A"
MOST_ENTRIES = 5


class Tints:
    """One colour per edge, and a legend of what the colours mean.

    graph: the graph
    attribute: name of a numeric attribute of edges. Edges without it are grey; infinite
        values have a colour of their own
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

    def __call__(self, parent, child) -> tuple[float, float, float]:
        """Colour of an edge, as red, green and blue."""
        from matplotlib.colors import to_rgb

        value = self._values.get((parent, child))
        return to_rgb(UNKNOWN_COLOR if value is None else self._color(value))

    def _color(self, value: float):
        """Colour of a value."""
        import matplotlib as mpl

        if not np.isfinite(value):
            return UNREACHED_COLOR
        low, high = self._finite[0], self._finite[-1]
        place = (value - low) / (high - low) if high > low else 0.0
        return mpl.colormaps["viridis"](0.85 * place)

    def legend(self) -> list:
        """Entries of a legend: all values, or some of them if there are many."""
        from matplotlib.lines import Line2D

        named = self._finite
        if len(named) > MOST_ENTRIES:
            named = np.linspace(named[0], named[-1], 3)
        whole = np.all(named == np.round(named))
        entries = [
            (
                Line2D([], [], color=self._color(value), lw=2.0),
                f"{self.attribute} {value:.0f}" if whole else f"{value:.2g}",
            )
            for value in named
        ]
        if not all(np.isfinite(v) for v in self._values.values()):
            entries.append(
                (Line2D([], [], color=UNREACHED_COLOR, lw=2.0), "out of reach")
            )
        return entries
