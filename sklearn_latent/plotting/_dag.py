"""Acyclic graphs: layers from causes at the top to effects at the bottom."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.isotonic import isotonic_regression

from .._core.text import LONGEST_NAME, shorten
from ._edge_colors import GraphOptions, SignColors
from ._frame import Frame, strength_entries
from ._layers import assign_layers, layered_layout
from ._style import (
    FEATURE_COLOR,
    LATENT_COLOR,
    SMALLEST_FONT,
    draw_curves,
    ease,
    new_graph_axes,
    size_in_points,
    spelled,
    text_width,
)

FONTS = (9.0, 8.0, 7.0, SMALLEST_FONT)
# Names of large graphs are shorter.
MANY_NODES, SHORT_LABEL = 40, 16
# Sizes of a new picture in points.
WIDEST, NARROWEST, LOWEST = 1130.0, 450.0, 150.0
DEEPEST = 540.0  # height of all spaces between layers, unless there are very many
# Distances between lines of a layer and between layers, as multiples of the font.
LINE, LAYER = 2.3, 6.5
SMALLEST_LAYER = 1.0
MOST_STRETCH = 1.8  # of small graphs in wide axes
BOX_PAD = 0.3  # around names, as a multiple of the font


def draw_dag(graph, ax, options: GraphOptions):
    """Draw an acyclic graph, latents filled and edges coloured by sign."""
    nodes = list(graph)
    adjacency, strength = _matrices(graph, nodes)
    colors = options.edge_colors or SignColors(graph)
    entries = [*strength_entries(), *colors.legend()]
    frame = Frame(options.note, entries if options.legend and adjacency.any() else [])
    size = None if ax is None else size_in_points(ax)
    plan = _plan(adjacency, nodes, size, frame, label=bool(options.feature_labels))
    if ax is None:
        ax = new_graph_axes(plan.width, plan.height)
    ax.set_axis_off()
    ax.set_xlim(0.0, plan.width)
    ax.set_ylim(-plan.height, 0.0)

    shown = sorted(plan.routes, key=lambda edge: strength[edge])
    hues = [colors(nodes[i], nodes[j]) for i, j in shown]
    edges = _draw_edges(ax, plan, shown, [strength[edge] for edge in shown], hues)
    kinds = [graph.nodes[node].get("kind") for node in nodes]
    is_latent = np.array([kind in ("latent", "class") for kind in kinds], dtype=bool)
    _draw_nodes(ax, plan, is_latent)
    if not nodes:
        middle = plan.width / 2, -plan.height / 2
        ax.text(*middle, "no nodes", ha="center", color="0.5", fontsize=12)
    frame.draw(ax)
    places = zip(nodes, plan.x.tolist(), plan.y.tolist(), strict=True)
    return ax, {node: (a, b) for node, a, b in places}, edges


def _matrices(graph, nodes):
    """Edges and the sizes of their strengths as matrices."""
    number = {node: i for i, node in enumerate(nodes)}
    adjacency = np.zeros((len(nodes), len(nodes)), dtype=bool)
    strength = np.zeros(adjacency.shape)
    for parent, child, value in graph.edges(data="strength", default=1.0):
        edge = number[parent], number[child]
        adjacency[edge] = True
        strength[edge] = abs(value)
    return adjacency, strength


class _Plan(NamedTuple):
    """Where to draw what, in points from the upper left corner of the axes.

    labels, font: names and their size, 0.0 if there is no room for them
    x, y: places of the nodes, (n_nodes,)
    routes: points of each edge, by (parent, child)
    """

    width: float
    height: float
    labels: list[str]
    font: float
    x: np.ndarray
    y: np.ndarray
    routes: dict


def _plan(adjacency, names, size, frame: Frame, *, label: bool) -> _Plan:
    """Place nodes, with the largest labels that given axes have room for."""
    layer = assign_layers(adjacency)
    widest, highest = (WIDEST, np.inf) if size is None else size
    longest = SHORT_LABEL if len(names) > MANY_NODES else LONGEST_NAME
    sizes = [(font, longest) for font in FONTS] + [(FONTS[-1], n) for n in (10, 7)]
    for font, n_letters in [*sizes, (0.0, 1)] if label else [(0.0, 1)]:
        labels = [shorten(name, min(n_letters, longest)) for name in names]
        room = np.array([_box_width(name, font) for name in labels])
        lines = _lines(layer, room, widest)
        above, below = frame.above(widest), frame.below(widest)
        free = highest - above - below
        n_lines = np.array([line.max() + 1 for line in _by_layer(lines, layer)])
        unit = font or 8.0
        needed = LINE * unit * n_lines.sum() + SMALLEST_LAYER * unit * (
            len(n_lines) - 1
        )
        if needed <= free and room.max(initial=0.0) <= widest:
            break
    layout = layered_layout(adjacency, room / n_lines[layer] if len(room) else room)
    span = _span(layout, room)
    width = float(np.clip(span[1] - span[0], NARROWEST, WIDEST))
    if size is not None:
        width = size[0]
    elif frame.entries or frame.note:
        above, below = frame.above(width), frame.below(width)
    gap = LAYER * unit * np.clip(width / 600.0, 1.0, 1.6)
    gap = min(gap, max(3.5 * unit, DEEPEST / max(len(n_lines) - 1, 1)))
    height = above + below + LINE * unit * n_lines.sum() + gap * (len(n_lines) - 1)
    height = max(height, LOWEST) if size is None else highest
    x, way = _fit(layout, span, room, lines, width)
    y, centre = _levels(layout.layer, lines, n_lines, unit, (above, height - below))
    routes = {
        edge: np.column_stack([way(route[:, 0]), -centre[route[:, 1].astype(int)]])
        for edge, route in layout.routes.items()
    }
    half = unit * (0.5 + BOX_PAD) + 2.0 if font else 4.0
    for (i, j), route in routes.items():
        route[0], route[-1] = (x[i], y[i]), (x[j], y[j] + half)
    return _Plan(width, float(height), labels, font, x, y, routes)


def _box_width(name: str, font: float) -> float:
    """Width of a node with its box, and the space beside it."""
    return text_width([name], font) + (2 * BOX_PAD + 0.8) * font if font else 9.0


def _by_layer(values, layer) -> list[np.ndarray]:
    """Values of the nodes of each layer; one layer if there are no nodes."""
    if not len(layer):
        return [np.zeros(1, dtype=int)]
    return [values[layer == k] for k in range(layer.max() + 1)]


def _lines(layer, room, widest: float) -> np.ndarray:
    """Number of the line of each node within its layer, so that all lines fit."""
    line = np.zeros(len(layer), dtype=int)
    for k in np.unique(layer):
        nodes = np.flatnonzero(layer == k)
        for n_lines in range(1, len(nodes) + 1):
            line[nodes] = np.arange(len(nodes)) % n_lines
            if np.bincount(line[nodes], weights=room[nodes]).max() <= widest:
                break
    return line


def _span(layout, room) -> tuple[float, float]:
    """First and last place that nodes and routes take."""
    ends = [layout.x - room / 2, layout.x + room / 2]
    ends += [route[:, 0] for route in layout.routes.values()]
    places = np.concatenate(ends) if len(room) else np.zeros(1)
    return float(places.min()), float(places.max())


def _fit(layout, span, room, lines, width: float):
    """Places of the nodes within the width, and how routes are moved."""
    first, last = span
    scale = min(MOST_STRETCH, width / max(last - first, 1e-9))
    left = (width - scale * (last - first)) / 2

    def way(x):
        return left + scale * (x - first)

    x = way(layout.x) if len(room) else layout.x
    for k, line in {(k, line) for k, line in zip(layout.layer, lines, strict=True)}:
        nodes = np.flatnonzero((layout.layer == k) & (lines == line))
        nodes = nodes[np.argsort(x[nodes], kind="stable")]
        offset = np.cumsum(room[nodes]) - room[nodes] / 2
        most = max(width - room[nodes].sum(), 0.0)
        x[nodes] = offset + isotonic_regression(x[nodes] - offset, y_min=0, y_max=most)
    return x, way


def _levels(layer, lines, n_lines, unit, limits):
    """Heights of the nodes, and the middles of the layers."""
    first, last = limits
    high = LINE * unit * n_lines
    gap = (last - first - high.sum()) / max(len(n_lines) - 1, 1)
    # Layers of a graph with few of them would be torn apart by all the room.
    gap = float(np.clip(gap, 0.0, 14.0 * unit))
    free = last - first - high.sum() - gap * (len(n_lines) - 1)
    tops = first + max(free, 0.0) / 2 + np.cumsum(high + gap) - high - gap
    y = tops[layer] + LINE * unit * (lines + 0.5) if len(layer) else np.zeros(0)
    return -y, tops + high / 2


def _draw_edges(ax, plan: _Plan, shown, strength, hues):
    """Edges as curves that leave and arrive upright, with a tip at the child."""
    t = np.linspace(0.0, 1.0, 17)
    curves, tips = [], []
    for edge in shown:
        route = plan.routes[edge]
        start, end = route[:-1], route[1:]
        xs = start[:, :1] + (end - start)[:, :1] * ease(t)
        ys = start[:, 1:] + (end - start)[:, 1:] * t
        curves.append(np.column_stack([xs.ravel(), ys.ravel()]))
        tips.append(route[-1])
    lines, rgba, widths = draw_curves(ax, curves, strength, hues, thinnest=0.3)
    if tips:
        size = (3.5 + 2.0 * widths) ** 2
        ax.scatter(*np.transpose(tips), marker="v", c=rgba, s=size, lw=0, zorder=2)
    return lines


def _draw_nodes(ax, plan: _Plan, is_latent) -> None:
    """Names in boxes, those of latents filled; or dots without names."""
    if not plan.font:
        colors = np.where(is_latent, LATENT_COLOR, FEATURE_COLOR)
        style = {"edgecolors": "white", "linewidths": 0.5, "zorder": 3}
        ax.scatter(plan.x, plan.y, s=36, c=colors, **style)
        return
    for x, y, name, latent in zip(plan.x, plan.y, plan.labels, is_latent, strict=True):
        box = {
            "boxstyle": f"round,pad={BOX_PAD}",
            "facecolor": LATENT_COLOR if latent else "white",
            "edgecolor": LATENT_COLOR if latent else "0.55",
            "linewidth": 0.8,
        }
        style = {"ha": "center", "va": "center", "fontsize": plan.font, "zorder": 4}
        color = "white" if latent else "black"
        ax.text(x, y, spelled(name), color=color, bbox=box, **style)
