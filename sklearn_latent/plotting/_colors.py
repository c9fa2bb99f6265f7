"""Colours and widths of the nodes and edges of graphs, and the legend of them."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._core.validation import shown
from ._display import FEATURE_COLOR, NEGATIVE_COLOR, PALETTE, POSITIVE_COLOR

SIGNS = {1.0: (POSITIVE_COLOR, "positive"), -1.0: (NEGATIVE_COLOR, "negative")}
UNKNOWN_COLOR = "#9A9A9A"
DASHED = (0, (4, 3))
# Edges of temporal models by kind and whether they have a direction.
KINDS = {
    ("inter", True): ("#B2182B", "to the next slice"),
    ("intra", True): ("#303030", "between latents"),
    ("intra", False): ("#303030", "direction unknown"),
    ("measurement", True): ("#8C8C8C", "measured by"),
}


class EdgeStyle(NamedTuple):
    """How to draw an edge."""

    strength: float
    color: Any
    line: Any
    has_tip: bool

    @property
    def width(self) -> float:
        """Width in points."""
        return 0.6 + 2.6 * self.strength

    @property
    def opacity(self) -> float:
        """From 0 to 1."""
        return 0.25 + 0.65 * self.strength


def node_colors(graph) -> dict:
    """Colours of latents and classes by name; features have none."""
    data = graph.nodes(data=True)
    latents = dict.fromkeys(
        about.get("name", node) for node, about in data if about.get("kind") == "latent"
    )
    colors = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(latents)}
    classes = [node for node, about in data if about.get("kind") == "class"]
    return colors | dict.fromkeys(classes, FEATURE_COLOR)


def edge_styles(graph, form: str, color_by) -> tuple[dict, list]:
    """Styles by edge, and (color, line, label) of what the colours say.

    form: "timed", "layered" for latents above features, or "free"
    """
    data = [about for *_, about in graph.edges(data=True)]
    is_usual = color_by is None
    hue, meaning = _hues(graph, form, data) if is_usual else _scale(data, color_by)
    # Mutual information is small even of strong edges: the strongest sets the scale.
    between = [about for about in data if _kind(about)[0] != "measurement"]
    most = max((abs(about.get("strength", 1.0)) for about in between), default=0.0)
    styles = {}
    for parent, child, about in graph.edges(data=True):
        kind, is_directed = _kind(about)
        strength, color = min(abs(about.get("strength", 1.0)), 1.0), hue(parent, about)
        if form == "timed":
            strength = strength / (most or 1.0)
            if kind == "measurement":
                strength, color = 0.2, KINDS["measurement", True][0]
        # Arrows say nothing where all edges point to features.
        has_tip = {"timed": is_directed and kind != "measurement", "free": True}
        line = "solid" if is_directed else DASHED
        styles[parent, child] = EdgeStyle(
            strength, color, line, has_tip.get(form, False)
        )
    if form == "timed" and not is_usual:
        meaning = [(*KINDS["measurement", True], "solid"), *meaning]
    return styles, meaning


def _kind(data) -> tuple[str, bool]:
    """Kind of an edge of a temporal model, and whether it has a direction."""
    kind = data.get("kind"), bool(data.get("directed", True))
    return kind if kind in KINDS else ("measurement", True)


def _hues(graph, form: str, data) -> tuple[Callable, list]:
    """Colours by kind, by sign or by latent, and what they mean."""
    if form == "timed":
        kinds = set(map(_kind, data))
        lines = {
            kind: "solid" if kind[1] else DASHED for kind in KINDS if kind in kinds
        }
        meaning = [(*KINDS[kind], line) for kind, line in lines.items()]
        return lambda parent, about: KINDS[_kind(about)][0], meaning
    signs = set(map(_sign, data))
    if form == "free" or -1.0 in signs:
        meaning = [(*SIGNS[sign], "solid") for sign in SIGNS if sign in signs]
        return lambda parent, about: SIGNS.get(_sign(about), ("#404040",))[0], meaning
    colors = node_colors(graph)
    return lambda parent, about: colors.get(parent, FEATURE_COLOR), []


def _number(value) -> float:
    """A number, or NaN for what is none."""
    return float(value) if isinstance(value, Real) else np.nan


def _sign(data) -> float:
    return float(np.sign(_number(data.get("weight"))))


def _scale(data, attribute) -> tuple[Callable, list]:
    """Colours by a numeric attribute of the edges, and what they mean."""
    import matplotlib as mpl

    is_name = isinstance(attribute, str)
    given = [_number(about.get(attribute)) if is_name else np.nan for about in data]
    values = np.unique(given)
    values = values[~np.isnan(values)]
    if not len(values):
        raise ValueError(
            "color_by must be a numeric attribute of the edges, which have "
            f"{sorted({key for about in data for key in about})}, got "
            f"{shown(attribute)}."
        )
    finite = values[np.isfinite(values)]
    low, high = (finite[0], finite[-1]) if len(finite) else (0.0, 0.0)
    colors = mpl.colormaps["viridis"]

    def color(value: float):
        if not np.isfinite(value):
            return UNKNOWN_COLOR if np.isnan(value) else NEGATIVE_COLOR
        # The end of most colour maps is too pale on white.
        return colors(0.85 * (value - low) / (high - low) if high > low else 0.0)

    # All values, or some of them if there are many.
    named = finite if len(finite) <= 5 else np.linspace(low, high, 3)
    meaning = [(color(v), f"{attribute} {v:.2g}", "solid") for v in named]
    if len(finite) < len(values):
        meaning.append((NEGATIVE_COLOR, "out of reach", "solid"))
    return lambda parent, about: color(_number(about.get(attribute))), meaning


def legend_entries(graph, form: str, meaning: list) -> list[tuple[Any, str]]:
    """Entries of a legend: widths, colours and features read as their opposite."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: list[tuple[Any, str]] = []
    if not graph.number_of_edges():
        return entries
    for strength in (0.1, 0.5, 0.9) if form != "timed" else ():
        style = EdgeStyle(strength, "0.25", "solid", False)
        line = Line2D([], [], color=style.color, lw=style.width, alpha=style.opacity)
        entries.append((line, f"strength {strength}"))
    for color, label, line in meaning:
        entries.append((Line2D([], [], color=color, lw=2.0, ls=line), label))
    if any(sign == -1 for _, sign in graph.nodes(data="polarity")):
        box = Patch(facecolor="white", edgecolor="0.3", linestyle="--")
        entries.append((box, "read as its opposite"))
    return entries
