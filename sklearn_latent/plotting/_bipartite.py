"""Bipartite graphs: latents above the features that they drive.

A hidden class, if there is one, stands above the latents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._edge_colors import GraphOptions
from ._layout import (
    bipartite_matrix,
    class_edges,
    order_layers,
    place_above,
    spread_evenly,
)
from ._style import (
    FEATURE_COLOR,
    PALETTE,
    draw_curves,
    ease,
    new_graph_axes,
    shorten,
    size_in_points,
    strength_legend,
    text_color_on,
    text_width,
)

LEGEND_POINTS = 22.0
# Latents are at a height of 1, classes here.
CLASS_HEIGHT = 1.6


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
    if ax is None:
        captions = [shorten(name) for name in nodes.latents]
        ax = _new_axes(captions, len(nodes.features), bool(nodes.classes))
    ax.set_axis_off()
    top, middle, bottom = _make_rows(graph, nodes, ax, options)
    _set_limits(ax, top, middle, bottom, options.legend)
    colors = [PALETTE[i % len(PALETTE)] for i in range(len(nodes.latents))]
    curves = _Curves(options)
    layers = [(nodes.features, bottom, 0.0), (nodes.latents, middle, 1.0)]
    if top is not None:
        layers.append((nodes.classes, top, CLASS_HEIGHT))
        _add_class_edges(curves, graph, nodes, top.x, middle.x)
    _add_latent_edges(curves, nodes, middle.x, bottom.x, colors)
    lines = curves.draw(ax)
    for names, row, y in layers:
        row.draw(y, colors if row is middle else [FEATURE_COLOR] * len(names))
    if not nodes.latents:
        ax.text(0.5, 0.6, "no latents", ha="center", color="0.5", fontsize=12)
    if options.legend and curves.points:
        chosen = options.edge_colors
        more = _flipped_legend() if any(nodes.flipped) else []
        strength_legend(ax, [*(chosen.legend() if chosen else []), *more])
    positions = {
        name: (float(x), y)
        for names, row, y in layers
        for name, x in zip(names, row.x, strict=True)
    }
    return ax, positions, lines


def _make_rows(graph, nodes: _Nodes, ax, options: GraphOptions):
    """Rows of classes (None without any), latents and features."""
    names = []
    if options.feature_labels:
        pairs = zip(nodes.features, nodes.flipped, strict=True)
        names = [shorten(f"not {name}" if flip else name) for name, flip in pairs]
    places, gap = spread_evenly(len(nodes.features))
    bottom = _Row(ax, places, gap, names, node=11.0, font=9.0)
    bottom.may_thin = options.feature_labels == "auto"
    bottom.hollow = nodes.flipped
    places, gap = place_above(~np.isnan(nodes.strength), places)
    middle = _Row(ax, places, gap, list(map(shorten, nodes.latents)))
    priors = [graph.nodes[name].get("prior") for name in nodes.latents]
    middle.put_numbers(["" if prior is None else f"{prior:#.2g}" for prior in priors])
    if not nodes.classes:
        return None, middle, bottom
    places, gap = spread_evenly(len(nodes.classes))
    top = _Row(ax, places, gap, list(map(shorten, nodes.classes)))
    counts = [graph.nodes[name].get("n_classes") for name in nodes.classes]
    top.put_numbers(["" if count is None else str(count) for count in counts])
    # Edges from the class would cross out the names.
    middle.is_boxed = True
    return top, middle, bottom


def _add_class_edges(curves: _Curves, graph, nodes: _Nodes, upper, lower) -> None:
    """Edges from classes, at the places `upper`, to latents."""
    of_class = dict(zip(nodes.classes, upper, strict=True))
    of_latent = dict(zip(nodes.latents, lower, strict=True))
    for parent, child, value in class_edges(graph):
        x, y = (of_class[parent], of_latent[child]), (CLASS_HEIGHT, 1.0)
        curves.add(parent, child, x, y, value, FEATURE_COLOR)


def _add_latent_edges(curves: _Curves, nodes: _Nodes, upper, lower, colors) -> None:
    """Edges from latents, at the places `upper`, to features: weak ones first."""
    edges = np.argwhere(~np.isnan(nodes.strength))
    for i, j in edges[np.argsort(nodes.strength[tuple(edges.T)])]:
        x, y = (upper[i], lower[j]), (1.0, 0.0)
        strength = nodes.strength[i, j]
        curves.add(nodes.latents[i], nodes.features[j], x, y, strength, colors[i])


class _Curves:
    """Edges that are strong enough to be shown, as curves."""

    def __init__(self, options: GraphOptions):
        self.options = options
        self.points: list[np.ndarray] = []
        self.strength: list[float] = []
        self.hues: list = []

    def add(self, parent, child, x, y, strength, color) -> None:
        """Add an edge from the first place to the second."""
        if not strength >= self.options.min_strength:
            return
        t = np.linspace(0.0, 1.0, 25)
        across = x[0] + (x[1] - x[0]) * ease(t)
        self.points.append(np.column_stack([across, y[0] + (y[1] - y[0]) * t]))
        self.strength.append(strength)
        chosen = self.options.edge_colors
        self.hues.append(chosen(parent, child) if chosen else color)

    def draw(self, ax):
        """Draw all edges, in the order in which they came."""
        return draw_curves(ax, self.points, self.strength, self.hues, thinnest=0.15)[0]


def _flipped_legend() -> list:
    """Entry of the legend for features that are read as their opposite."""
    from matplotlib.lines import Line2D

    ring = Line2D([], [], marker="o", ls="", mfc="white", mec=FEATURE_COLOR, ms=6.0)
    return [(ring, "read as its opposite")]


def _set_limits(ax, top, middle, bottom, legend: bool) -> None:
    """Leave room for labels, which are measured in points and not in data units."""
    above = middle.extent if top is None else top.extent
    below = bottom.extent + (LEGEND_POINTS if legend else 0.0)
    height = size_in_points(ax)[1]
    highest = 1.0 if top is None else CLASS_HEIGHT
    unit = max(height - above - below, 0.3 * height) / highest
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(-below / unit, highest + above / unit)


class _Row:
    """Nodes on one line, small enough to stay apart, with readable labels.

    All sizes are in points.

    x: places of the nodes, as shares of the width, (n_nodes,)
    gap: smallest distance of two neighbours, as a share of the width
    labels: names of the nodes, or an empty list
    node, font: largest diameter of a node and largest size of its label
    hollow: which nodes are drawn as rings
    is_boxed: whether labels hide what is behind them
    """

    may_thin = True
    is_boxed = False
    numbers: list[str] | None = None
    hollow: list[bool] | None = None

    def __init__(self, ax, x, gap, labels, *, node=32.0, font=10.0):
        self.ax = ax
        self.x = x
        self.labels = labels
        self.spacing = gap * size_in_points(ax)[0]
        self.diameter = float(np.clip(0.7 * self.spacing, 1.0, node))
        # A somewhat smaller font reads better than rotated text.
        level = font * self.spacing / max(text_width(labels, font), 1.0)
        self.font = font if level >= font else max(level, 0.8 * font)
        if self.is_turned:
            self.font = float(np.clip(0.8 * self.spacing, 6.0, font))

    def put_numbers(self, numbers) -> None:
        """Write a number into every node, or behind its name if nodes are small."""
        if self.diameter >= 24.0:
            self.numbers = numbers
        else:
            pairs = zip(self.labels, numbers, strict=True)
            self.labels = [f"{name}  {number}".rstrip() for name, number in pairs]

    @property
    def is_turned(self) -> bool:
        """Whether labels must be rotated."""
        return text_width(self.labels, self.font) > 1.001 * self.spacing

    @property
    def step(self) -> int:
        """Label every how many-th node; 0 for none."""
        if not self.may_thin or not self.is_turned:
            return 1
        # A rotated label needs the height of a line. If more than every other name
        # is missing, the remaining ones do not help.
        step = int(np.ceil(1.05 * self.font / self.spacing))
        return step if step <= 2 else 0

    @property
    def extent(self) -> float:
        """How far nodes and labels reach from the line of the row."""
        room = self.diameter / 2 + 8.0
        if self.labels and self.step and self.is_turned:
            return room + text_width(self.labels, self.font)
        return room + 1.3 * self.font

    def draw(self, y, colors) -> None:
        """Draw nodes, numbers and labels at the height `y`, 0 for the lowest row."""
        rings = self.hollow or [False] * len(colors)
        pairs = list(zip(colors, rings, strict=True))
        self.ax.scatter(
            self.x,
            np.full(len(self.x), y),
            s=self.diameter**2,
            facecolors=["white" if ring else color for color, ring in pairs],
            edgecolors=[color if ring else "white" for color, ring in pairs],
            linewidths=min(1.0, self.diameter / 12),
            clip_on=False,
            zorder=3,
        )
        for x, number, color in zip(self.x, self.numbers or [], colors, strict=False):
            size = 0.25 * self.diameter
            style = {"ha": "center", "va": "center", "color": text_color_on(color)}
            self.ax.text(x, y, number, fontsize=size, zorder=4, **style)
        if self.labels and self.step:
            for i in range(0, len(self.labels), self.step):
                self._write(self.x[i], y, self.labels[i], self.font, self.is_turned)
        elif self.labels:
            noun = "latents" if y else "features"
            self._write(0.5, y, f"{len(self.labels):,} {noun}", 9.0, False)

    def _write(self, x, y, text, font, turned) -> None:
        """Write above the upper rows and below the lowest one."""
        box = {"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.85}
        self.ax.annotate(
            text,
            (x, y),
            xytext=(0, (1 if y else -1) * (self.diameter / 2 + 4.0)),
            textcoords="offset points",
            ha="center",
            va="bottom" if y else "top",
            rotation=90 if turned else 0,
            fontsize=font,
            bbox=box if self.is_boxed else None,
            annotation_clip=False,
        )


def _new_axes(captions, n_features: int, has_classes: bool):
    """Axes of a new figure that is wide enough for its rows of nodes."""
    # Latents keep a gap of 0.8 of their share of the width.
    per_latent = max(0.75, text_width(captions, 10.0) / 72.0 / 0.8)
    wanted = max(0.24 * n_features, per_latent * len(captions))
    width = float(np.clip(wanted, 6.4, 16.0))
    height = 5.7 if has_classes else 4.5
    return new_graph_axes(width, height + 0.08 * (width - 6.4))
