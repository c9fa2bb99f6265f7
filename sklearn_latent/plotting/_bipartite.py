"""Bipartite graphs: latents above the features that they drive."""

from __future__ import annotations

import numpy as np

from ._edge_colors import GraphOptions
from ._layout import bipartite_matrix, order_layers, place_above, spread_evenly
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


def draw_bipartite(graph, ax, options: GraphOptions):
    """Draw a graph whose edges all run from latents to features."""
    latents, features, strength = bipartite_matrix(graph)
    latent_order, feature_order = order_layers(~np.isnan(strength))
    latents = [latents[i] for i in latent_order]
    features = [features[j] for j in feature_order]
    strength = strength[np.ix_(latent_order, feature_order)]
    captions = [shorten(name) for name in latents]
    names = [shorten(name) for name in features] if options.feature_labels else []

    ax = _new_axes(captions, len(features)) if ax is None else ax
    ax.set_axis_off()
    places, gap = spread_evenly(len(features))
    bottom = _Row(ax, places, gap, names, node=11.0, font=9.0)
    bottom.may_thin = options.feature_labels == "auto"
    places, gap = place_above(~np.isnan(strength), places)
    top = _Row(ax, places, gap, captions, node=32.0, font=10.0)
    priors = [graph.nodes[name].get("prior") for name in latents]
    top.put_numbers(["" if prior is None else f"{prior:#.2g}" for prior in priors])
    _set_limits(ax, top.extent, bottom.extent, options.legend)

    shown = np.argwhere(strength >= options.min_strength)
    # Weak edges first, below strong ones.
    shown = shown[np.argsort(strength[tuple(shown.T)])]
    colors = [PALETTE[i % len(PALETTE)] for i in range(len(latents))]
    chosen = options.edge_colors
    hues = [chosen(latents[i], features[j]) if chosen else colors[i] for i, j in shown]
    t = np.linspace(0.0, 1.0, 25)
    start, end = top.x[shown[:, 0], None], bottom.x[shown[:, 1], None]
    x = start + (end - start) * ease(t)
    curves = np.stack([x, np.broadcast_to(1.0 - t, x.shape)], axis=2)
    edges = draw_curves(ax, curves, strength[tuple(shown.T)], hues, thinnest=0.15)[0]
    top.draw(1.0, colors)
    bottom.draw(0.0, [FEATURE_COLOR] * len(features))
    if not latents:
        ax.text(0.5, 0.6, "no latents", ha="center", color="0.5", fontsize=12)
    if options.legend and len(shown):
        strength_legend(ax, chosen.legend() if chosen else [])
    positions = {name: (float(x), 1.0) for name, x in zip(latents, top.x, strict=True)}
    below = zip(features, bottom.x, strict=True)
    return ax, positions | {name: (float(x), 0.0) for name, x in below}, edges


def _set_limits(ax, above: float, below: float, legend: bool) -> None:
    """Leave room for labels, which are measured in points and not in data units."""
    below += LEGEND_POINTS if legend else 0.0
    height = size_in_points(ax)[1]
    unit = max(height - above - below, 0.3 * height)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(-below / unit, 1.0 + above / unit)


class _Row:
    """Nodes on one line, small enough to stay apart, with readable labels.

    All sizes are in points.

    x: places of the nodes, as shares of the width, (n_nodes,)
    gap: smallest distance of two neighbours, as a share of the width
    labels: names of the nodes, or an empty list
    node, font: largest diameter of a node and largest size of its label
    """

    may_thin = True
    numbers: list[str] | None = None

    def __init__(self, ax, x, gap, labels, *, node, font):
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
        """Draw nodes, numbers and labels at the height `y`, 0 or 1."""
        self.ax.scatter(
            self.x,
            np.full(len(self.x), y),
            s=self.diameter**2,
            facecolors=colors,
            edgecolors="white",
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
        """Write above the upper and below the lower row."""
        self.ax.annotate(
            text,
            (x, y),
            xytext=(0, (1 if y else -1) * (self.diameter / 2 + 4.0)),
            textcoords="offset points",
            ha="center",
            va="bottom" if y else "top",
            rotation=90 if turned else 0,
            fontsize=font,
            annotation_clip=False,
        )


def _new_axes(captions, n_features: int):
    """Axes of a new figure that is wide enough for its rows of nodes."""
    # Latents keep a gap of 0.8 of their share of the width.
    per_latent = max(0.75, text_width(captions, 10.0) / 72.0 / 0.8)
    wanted = max(0.24 * n_features, per_latent * len(captions))
    width = float(np.clip(wanted, 6.4, 16.0))
    return new_graph_axes(width, 4.5 + 0.08 * (width - 6.4))
