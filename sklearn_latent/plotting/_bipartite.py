"""Bipartite graphs: latents above the features that they drive.

A hidden class, if there is one, stands above the latents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._core.text import shorten
from ._edge_colors import GraphOptions
from ._frame import Frame, strength_entries
from ._layout import (
    bipartite_matrix,
    class_edges,
    order_layers,
    place_above,
    spread_evenly,
)
from ._row import Row
from ._style import (
    FEATURE_COLOR,
    PALETTE,
    draw_curves,
    ease,
    new_graph_axes,
    size_in_points,
    text_width,
)

# Share of the height for classes above latents, unless labels need more.
CLASS_SHARE = 0.37
# Rotated labels may take this share of the height of given axes.
LONGEST_SHARE = 0.3
# Widths in points: of a picture, and of one that is widened to keep names level.
WIDEST = 1130.0
WIDEST_LEVEL = 700.0


class _Nodes(NamedTuple):
    """Names of the nodes from left to right, and how latents drive features.

    strength: NaN where there is no edge, (n_latents, n_features)
    flipped: whether each feature is read as its opposite
    """

    classes: list
    latents: list
    features: list
    strength: np.ndarray
    flipped: list[bool]

    @classmethod
    def of(cls, graph) -> _Nodes:
        """Order nodes so that few edges cross."""
        latents, features, strength = bipartite_matrix(graph)
        latent_order, feature_order = order_layers(~np.isnan(strength))
        features = [features[j] for j in feature_order]
        return cls(
            [node for node, kind in graph.nodes(data="kind") if kind == "class"],
            [latents[i] for i in latent_order],
            features,
            strength[np.ix_(latent_order, feature_order)],
            [graph.nodes[name].get("polarity") == -1 for name in features],
        )


def draw_bipartite(graph, ax, options: GraphOptions):
    """Draw a graph whose edges run from latents to features, or classes to latents."""
    nodes = _Nodes.of(graph)
    width, height = _new_size(nodes) if ax is None else size_in_points(ax)
    rows = _make_rows(graph, nodes, (width, height), options)
    top, middle, bottom = rows
    frame = Frame(options.note, _legend_entries(graph, nodes, options))
    below = bottom.extent + frame.below(width)
    above = (middle if top is None else top).extent + frame.above(width)
    if ax is None:
        height = above + below + _new_height(rows, width)
        ax = new_graph_axes(width, height)
    ax.set_axis_off()
    class_height, unit = _heights(rows, height - above - below)
    ax.set_xlim(0.0, 1.0)
    highest = 1.0 if top is None else class_height
    ax.set_ylim(-below / unit, highest + above / unit)
    colors = [PALETTE[i % len(PALETTE)] for i in range(len(nodes.latents))]
    curves = _Curves(options)
    layers = [(nodes.features, bottom, 0.0), (nodes.latents, middle, 1.0)]
    if top is not None:
        layers.append((nodes.classes, top, class_height))
        _add_class_edges(curves, graph, layers[2], layers[1])
    _add_latent_edges(curves, nodes, middle.x, bottom.x, colors)
    lines = curves.draw(ax)
    for names, row, y in layers:
        row.draw(ax, y, colors if row is middle else [FEATURE_COLOR] * len(names))
    if not nodes.latents:
        ax.text(0.5, 0.6, "no latents", ha="center", color="0.5", fontsize=12)
    frame.draw(ax)
    positions = {
        name: (float(x), y)
        for names, row, y in layers
        for name, x in zip(names, row.x, strict=True)
    }
    return ax, positions, lines


def _make_rows(graph, nodes: _Nodes, size, options: GraphOptions):
    """Rows of classes (None without any), latents and features."""
    width, height = size
    names = []
    if options.feature_labels:
        pairs = zip(nodes.features, nodes.flipped, strict=True)
        names = [f"not {name}" if flip else str(name) for name, flip in pairs]
    room = LONGEST_SHARE * height * (0.75 if nodes.classes else 1.0)
    places, gap = spread_evenly(len(nodes.features))
    bottom = Row(places, gap * width, names, room=room, node=11.0, font=9.0)
    bottom.may_thin = options.feature_labels == "auto"
    bottom.hollow = nodes.flipped
    places, gap = place_above(~np.isnan(nodes.strength), places)
    priors = [graph.nodes[name].get("prior") for name in nodes.latents]
    numbers = ["" if prior is None else f"{prior:#.2g}" for prior in priors]
    middle = Row(places, gap * width, nodes.latents, numbers, room=room)
    if not nodes.classes:
        return None, middle, bottom
    places, gap = spread_evenly(len(nodes.classes))
    counts = [graph.nodes[name].get("n_classes") for name in nodes.classes]
    numbers = ["" if count is None else str(count) for count in counts]
    top = Row(places, gap * width, nodes.classes, numbers, room=room)
    # Edges from the class would cross out the names.
    middle.is_boxed = True
    return top, middle, bottom


def _legend_entries(graph, nodes: _Nodes, options: GraphOptions) -> list:
    """Entries of the legend; none if there are no edges."""
    from matplotlib.lines import Line2D

    if not options.legend or not graph.number_of_edges():
        return []
    entries = strength_entries()
    if options.edge_colors:
        entries += options.edge_colors.legend()
    if any(nodes.flipped):
        ring = Line2D([], [], marker="o", ls="", mfc="white", mec=FEATURE_COLOR, ms=6.0)
        entries.append((ring, "read as its opposite"))
    return entries


def _heights(rows, room: float) -> tuple[float, float]:
    """Height of classes, if latents are at 1, and points of a unit.

    room: points between the lowest row and the highest
    """
    top, middle, _ = rows
    room = max(room, 20.0)
    if top is None:
        return 1.0, room
    between = max(CLASS_SHARE * room, middle.extent + top.diameter / 2 + 12.0)
    between = min(between, 0.7 * room)
    return 1.0 + between / (room - between), room - between


def _new_size(nodes: _Nodes) -> tuple[float, float]:
    """Width of a new picture, and a height to begin with, in points."""
    # Latents keep a gap of 0.8 of their share of the width.
    per_latent = max(54.0, (text_width(map(shorten, nodes.latents), 10.0) + 6.0) / 0.8)
    level = (text_width(map(shorten, nodes.features), 9.0) + 6.0) * len(nodes.features)
    wanted = max(
        17.0 * len(nodes.features),
        min(per_latent * len(nodes.latents), 900.0),
        22.0 * len(nodes.latents),
        level if level <= WIDEST_LEVEL else 0.0,
    )
    return float(np.clip(wanted, 450.0, WIDEST)), 1000.0


def _new_height(rows, width: float) -> float:
    """Points between the lowest row and the highest of a new picture."""
    top, middle, _ = rows
    height = 190.0 + 0.08 * (width - 450.0)
    return height if top is None else height + max(100.0, middle.extent + 40.0)


def _add_class_edges(curves: _Curves, graph, upper, lower) -> None:
    """Edges from classes to latents; upper and lower are (names, row, height)."""
    of_class = dict(zip(upper[0], upper[1].x, strict=True))
    of_latent = dict(zip(lower[0], lower[1].x, strict=True))
    for parent, child, value in class_edges(graph):
        x, y = (of_class[parent], of_latent[child]), (upper[2], lower[2])
        curves.add(parent, child, x, y, value, FEATURE_COLOR)


def _add_latent_edges(curves: _Curves, nodes: _Nodes, upper, lower, colors) -> None:
    """Edges from latents, at the places `upper`, to features: weak ones first."""
    edges = np.argwhere(~np.isnan(nodes.strength))
    for i, j in edges[np.argsort(np.abs(nodes.strength[tuple(edges.T)]))]:
        x, y = (upper[i], lower[j]), (1.0, 0.0)
        strength = nodes.strength[i, j]
        curves.add(nodes.latents[i], nodes.features[j], x, y, strength, colors[i])


class _Curves:
    """Edges as curves."""

    def __init__(self, options: GraphOptions):
        self.options = options
        self.points: list[np.ndarray] = []
        self.strength: list[float] = []
        self.hues: list = []

    def add(self, parent, child, x, y, strength, color) -> None:
        """Add an edge from the first place to the second."""
        t = np.linspace(0.0, 1.0, 25)
        across = x[0] + (x[1] - x[0]) * ease(t)
        self.points.append(np.column_stack([across, y[0] + (y[1] - y[0]) * t]))
        self.strength.append(abs(strength))
        chosen = self.options.edge_colors
        self.hues.append(chosen(parent, child) if chosen else color)

    def draw(self, ax):
        """Draw all edges, in the order in which they came."""
        return draw_curves(ax, self.points, self.strength, self.hues, thinnest=0.15)[0]
