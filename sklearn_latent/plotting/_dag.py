"""General acyclic graphs: layers from causes at the top to effects at the bottom."""

from __future__ import annotations

import numpy as np

from ._ink import (
    FEATURE_COLOR,
    LATENT_COLOR,
    NEGATIVE_COLOR,
    POSITIVE_COLOR,
    edge_opacity,
    edge_width,
    shorten,
    sign_legend,
    size_in_points,
    strength_legend,
    text_width,
)
from ._layers import assign_layers, layered_layout

__all__ = ["draw_dag"]

FONT = 9.0
SMALLEST_FONT = 4.5
WIDEST_ROW = 1100.0  # points; longer rows stand in two or three lines
LEGEND_INCHES = 0.35


def draw_dag(graph, ax, *, min_strength, feature_labels, legend, tints=None):
    """Draw an acyclic graph.

    Hidden nodes are filled, edges with a positive weight blue and with a negative one
    orange.
    """
    nodes = list(graph)
    adjacency, strength, sign = _matrices(graph, nodes)
    names = [shorten(name) for name in nodes]
    is_latent = np.array([graph.nodes[node].get("kind") == "latent" for node in nodes])
    layer = assign_layers(adjacency)
    width = np.array([text_width([name], FONT) + 8.0 for name in names])
    n_lines = _lines_per_layer(layer, width)
    layout = layered_layout(adjacency, width / n_lines[layer] if len(nodes) else width)
    x, y = layout.x, -1.4 * layout.layer.astype(float)
    y = y + _stagger(layout, n_lines)

    n_layers = len(n_lines)
    reach = (x - width / 2, x + width / 2) if len(nodes) else (np.zeros(1), np.ones(1))
    left, right = reach[0].min() - 6.0, reach[1].max() + 6.0
    ax = _new_axes(right - left, n_layers + (n_lines - 1).sum()) if ax is None else ax
    ax.set_axis_off()
    scale = size_in_points(ax)[0] / (right - left)
    font = FONT * min(scale, 1.15)
    height = size_in_points(ax)[1]
    span = 1.4 * (n_layers - 1) + 1.0
    legend_span = 72.0 * LEGEND_INCHES / height * span if legend else 0.0
    ax.set_xlim(left, right)
    ax.set_ylim(-1.4 * (n_layers - 1) - 0.6 - legend_span, 0.5)

    shown = [(i, j) for i, j in layout.routes if strength[i, j] >= min_strength]
    shown.sort(key=lambda edge: strength[edge])
    points_per_unit = height / (span + 0.1 + legend_span)
    label = bool(feature_labels) and font >= SMALLEST_FONT
    half = (0.5 * font + 4.5 if label else 4.0) / points_per_unit
    if tints is None:
        hue = {1.0: POSITIVE_COLOR, -1.0: NEGATIVE_COLOR, 0.0: "#404040"}
        hues = [hue[sign[edge]] for edge in shown]
    else:
        hues = [tints(nodes[i], nodes[j]) for i, j in shown]
    edges = _draw_edges(ax, layout, shown, strength, hues, y, half)
    if label:
        _draw_boxes(ax, x, y, names, is_latent, font)
    else:
        colors = np.where(is_latent, LATENT_COLOR, FEATURE_COLOR)
        ax.scatter(x, y, s=36, c=colors, edgecolors="white", linewidths=0.5, zorder=3)
    if not nodes:
        ax.text(0.5, 0.0, "no nodes", ha="center", color="0.5", fontsize=12)
    if legend and shown:
        signs = sign[tuple(np.transpose(shown))]
        strength_legend(ax, sign_legend(signs) if tints is None else tints.legend())
    positions = {
        node: (float(a), float(b)) for node, a, b in zip(nodes, x, y, strict=True)
    }
    return ax, positions, edges


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
    """In how many lines a layer stands, so that labels stay readable."""
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
    """Edges as curves that leave and arrive upright, with a point at the child."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb

    t = np.linspace(0.0, 1.0, 17)
    ease = t * t * (3.0 - 2.0 * t)
    curves, tips = [], []
    for i, j in shown:
        route = layout.routes[i, j].copy()
        route[:, 1] *= -1.4
        route[0, 1], route[-1, 1] = y[i], y[j] + half
        start, end = route[:-1], route[1:]
        xs = start[:, :1] + (end - start)[:, :1] * ease
        ys = start[:, 1:] + (end - start)[:, 1:] * t
        curves.append(np.column_stack([xs.ravel(), ys.ravel()]))
        tips.append(route[-1])
    value = np.clip([strength[edge] for edge in shown], 0.0, 1.0)
    crowd = float(np.clip(np.sqrt(60.0 / max(len(shown), 1)), 0.3, 1.0))
    rgba = np.array(
        [
            (*to_rgb(hue), alpha)
            for hue, alpha in zip(hues, edge_opacity(value), strict=True)
        ]
    ).reshape(-1, 4)
    widths = edge_width(value) * crowd
    lines = LineCollection(curves, colors=rgba, linewidths=widths, zorder=1)
    if tips:
        ax.scatter(
            *np.transpose(tips),
            marker="v",
            c=rgba,
            s=(3.5 + 2.0 * widths) ** 2,
            lw=0,
            zorder=2,
        )
    return ax.add_collection(lines, autolim=False)


def _draw_boxes(ax, x, y, names, is_latent, font) -> None:
    """Names in boxes, those of hidden nodes filled."""
    for a, b, name, hidden in zip(x, y, names, is_latent, strict=True):
        box = {
            "boxstyle": "round,pad=0.3",
            "facecolor": LATENT_COLOR if hidden else "white",
            "edgecolor": LATENT_COLOR if hidden else "0.55",
            "linewidth": 0.8,
        }
        ax.text(
            a,
            b,
            name,
            ha="center",
            va="center",
            fontsize=font,
            color="white" if hidden else "black",
            bbox=box,
            zorder=4,
        )


def _new_axes(points: float, n_rows: int):
    """Axes of a new figure with room for the widest layer and for all layers."""
    import matplotlib.pyplot as plt

    width = float(np.clip(points / 72.0, 6.4, 18.0))
    height = float(np.clip(0.85 * n_rows + 0.6 + LEGEND_INCHES, 3.2, 16.0))
    figure, ax = plt.subplots(figsize=(width, height))
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=0.98)
    return ax
