"""Acyclic graphs: layers from causes at the top to effects at the bottom."""

from __future__ import annotations

import numpy as np

from ._edge_colors import GraphOptions
from ._layers import assign_layers, layered_layout
from ._style import (
    FEATURE_COLOR,
    LATENT_COLOR,
    NEGATIVE_COLOR,
    POSITIVE_COLOR,
    draw_curves,
    ease,
    new_graph_axes,
    shorten,
    size_in_points,
    strength_legend,
    text_width,
)

FONT = 9.0
SMALLEST_FONT = 4.5
WIDEST_ROW = 1100.0  # points; longer rows stand in two or three lines
LEGEND_INCHES = 0.35
SIGNS = {1.0: POSITIVE_COLOR, -1.0: NEGATIVE_COLOR, 0.0: "#404040"}


def draw_dag(graph, ax, options: GraphOptions):
    """Draw an acyclic graph, latents filled and edges coloured by sign."""
    nodes = list(graph)
    adjacency, strength, sign = _matrices(graph, nodes)
    names = [shorten(name) for name in nodes]
    kinds = [graph.nodes[node].get("kind") for node in nodes]
    is_latent = np.array([kind in ("latent", "class") for kind in kinds], dtype=bool)
    layer = assign_layers(adjacency)
    width = np.array([text_width([name], FONT) + 8.0 for name in names])
    n_lines = _lines_per_layer(layer, width)
    layout = layered_layout(adjacency, width / n_lines[layer] if len(nodes) else width)
    x, y = layout.x, _stagger(layout, n_lines) - 1.4 * layout.layer

    n_layers = len(n_lines)
    left = np.min(x - width / 2, initial=np.inf if nodes else 0.0) - 6.0
    right = np.max(x + width / 2, initial=-np.inf if nodes else 1.0) + 6.0
    ax = _new_axes(right - left, n_layers + (n_lines - 1).sum()) if ax is None else ax
    ax.set_axis_off()
    wide, high = size_in_points(ax)
    font = FONT * min(wide / (right - left), 1.15)
    span = 1.4 * (n_layers - 1) + 1.0
    legend_span = 72.0 * LEGEND_INCHES / high * span if options.legend else 0.0
    ax.set_xlim(left, right)
    ax.set_ylim(-1.4 * (n_layers - 1) - 0.6 - legend_span, 0.5)

    shown = [edge for edge in layout.routes if strength[edge] >= options.min_strength]
    shown.sort(key=lambda edge: strength[edge])
    label = bool(options.feature_labels) and font >= SMALLEST_FONT
    half = (0.5 * font + 4.5 if label else 4.0) * (span + 0.1 + legend_span) / high
    chosen = options.edge_colors
    hues = [
        chosen(nodes[i], nodes[j]) if chosen else SIGNS[sign[i, j]] for i, j in shown
    ]
    edges = _draw_edges(ax, layout, shown, strength, hues, y, half)
    if label:
        _draw_boxes(ax, x, y, names, is_latent, font)
    else:
        colors = np.where(is_latent, LATENT_COLOR, FEATURE_COLOR)
        ax.scatter(x, y, s=36, c=colors, edgecolors="white", linewidths=0.5, zorder=3)
    if not nodes:
        ax.text(0.5, 0.0, "no nodes", ha="center", color="0.5", fontsize=12)
    if options.legend and shown:
        signs = {sign[edge] for edge in shown}
        strength_legend(ax, chosen.legend() if chosen else _sign_legend(signs))
    places = zip(nodes, x.tolist(), y.tolist(), strict=True)
    return ax, {node: (a, b) for node, a, b in places}, edges


def _matrices(graph, nodes):
    """Edges, their strengths and the signs of their weights as matrices."""
    number = {node: i for i, node in enumerate(nodes)}
    adjacency = np.zeros((len(nodes), len(nodes)), dtype=bool)
    strength = np.zeros(adjacency.shape)
    sign = np.zeros(adjacency.shape)
    for parent, child, data in graph.edges(data=True):
        edge = number[parent], number[child]
        adjacency[edge] = True
        strength[edge] = data.get("strength", 1.0)
        sign[edge] = np.sign(data.get("weight", 0.0))
    return adjacency, strength, sign


def _lines_per_layer(layer, width) -> np.ndarray:
    """Number of lines of each layer, so that labels stay readable."""
    total = np.bincount(layer, weights=width) if len(layer) else np.ones(1)
    return np.clip(np.ceil(total / WIDEST_ROW), 1, 4).astype(int)


def _stagger(layout, n_lines) -> np.ndarray:
    """Move neighbours of a long row to different lines."""
    shift = np.zeros(len(layout.x))
    for k in np.flatnonzero(n_lines > 1):
        nodes = np.flatnonzero(layout.layer == k)
        nodes = nodes[np.argsort(layout.x[nodes])]
        lines = np.arange(len(nodes)) % n_lines[k]
        shift[nodes] = 0.9 * (0.5 - lines / (n_lines[k] - 1)) * min(1.0, n_lines[k] / 3)
    return shift


def _draw_edges(ax, layout, shown, strength, hues, y, half):
    """Edges as curves that leave and arrive upright, with a tip at the child."""
    t = np.linspace(0.0, 1.0, 17)
    curves, tips = [], []
    for i, j in shown:
        route = layout.routes[i, j].copy()
        route[:, 1] *= -1.4
        route[0, 1], route[-1, 1] = y[i], y[j] + half
        start, end = route[:-1], route[1:]
        xs = start[:, :1] + (end - start)[:, :1] * ease(t)
        ys = start[:, 1:] + (end - start)[:, 1:] * t
        curves.append(np.column_stack([xs.ravel(), ys.ravel()]))
        tips.append(route[-1])
    value = [strength[edge] for edge in shown]
    lines, rgba, widths = draw_curves(ax, curves, value, hues, thinnest=0.3)
    if tips:
        size = (3.5 + 2.0 * widths) ** 2
        ax.scatter(*np.transpose(tips), marker="v", c=rgba, s=size, lw=0, zorder=2)
    return lines


def _draw_boxes(ax, x, y, names, is_latent, font) -> None:
    """Names in boxes, those of latents filled."""
    for a, b, name, latent in zip(x, y, names, is_latent, strict=True):
        box = {
            "boxstyle": "round,pad=0.3",
            "facecolor": LATENT_COLOR if latent else "white",
            "edgecolor": LATENT_COLOR if latent else "0.55",
            "linewidth": 0.8,
        }
        style = {"ha": "center", "va": "center", "fontsize": font, "zorder": 4}
        ax.text(a, b, name, color="white" if latent else "black", bbox=box, **style)


def _sign_legend(signs) -> list:
    """Entries of a legend for the signs that occur."""
    from matplotlib.lines import Line2D

    kinds = ((1.0, "positive"), (-1.0, "negative"))
    return [
        (Line2D([], [], color=SIGNS[sign], lw=2.0), label)
        for sign, label in kinds
        if sign in signs
    ]


def _new_axes(points: float, n_rows: int):
    """Axes of a new figure with room for the widest layer and for all layers."""
    width = np.clip(points / 72.0, 6.4, 18.0)
    height = np.clip(0.85 * n_rows + 0.6 + LEGEND_INCHES, 3.2, 16.0)
    return new_graph_axes(float(width), float(height))
