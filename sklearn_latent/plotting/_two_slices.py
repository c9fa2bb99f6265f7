"""Two slices of a temporal model: now on the left, the next slice on the right."""

from __future__ import annotations

import numpy as np

from ._edge_colors import GraphOptions
from ._style import (
    FEATURE_COLOR,
    PALETTE,
    add_legend,
    ease,
    edge_opacity,
    edge_width,
    new_graph_axes,
    shorten,
    size_in_points,
    text_color_on,
    text_width,
)

# Columns of the picture: features, latents | latents, features.
LATENT_X = (0.3, 0.7)
FEATURE_X = (0.0, 1.0)
COLORS = {"inter": "#B2182B", "intra": "#303030", "measurement": "#8C8C8C"}
DASHED = (0, (4, 3))


def draw_two_slices(graph, ax, options: GraphOptions):
    """Draw a two-slice graph: features outside, latents inside, time to the right.

    Edges within a slice are bent, those between slices run across the middle; edges
    without a direction have no arrow. The number on an edge is its support. Without
    edges between slices, one slice is drawn.
    """
    n_slices = 2 if any(k == "inter" for *_, k in graph.edges(data="kind")) else 1
    if n_slices == 1:
        graph = graph.subgraph([n for n, when in graph.nodes(data="slice") if not when])
    positions, n_rows = _positions(graph)
    longest = text_width([_label(graph, node) for node in graph], 9.0) * bool(graph)
    ax = _new_axes(n_rows, longest) if ax is None else ax
    ax.set_axis_off()
    width, height = size_in_points(ax)
    margin = (longest + 14.0) / max(width - 2 * (longest + 14.0), 0.4 * width)
    ax.set_xlim(-margin, 1.0 + margin if n_slices == 2 else LATENT_X[1])
    top = 30.0 / height * (n_rows + 1.5)
    ax.set_ylim(-n_rows - 0.4 - 2 * top * bool(options.legend), 0.2 + top)
    row = height / (n_rows + 0.6 + top * (1 + 2 * bool(options.legend)))
    # A latent's circle must fit between its neighbours in the column.
    latents = [node for node in graph if _is_latent(graph, node)]
    n_latents = len(latents) // n_slices
    diameter = float(np.clip(0.62 * row * n_rows / max(n_latents, 1), 6.0, 34.0))
    font = float(np.clip(0.8 * row, 0.0, 9.0))

    edges = _draw_edges(ax, graph, positions, diameter, options)
    for number, node in enumerate(latents):
        color = PALETTE[number % n_latents % len(PALETTE)]
        _draw_latent(ax, positions[node], _label(graph, node), color, diameter)
    if options.feature_labels != "auto":
        font = max(font, 5.0) if options.feature_labels else 0.0
    _draw_features(ax, graph, positions, font)
    titles = ("time t", "time t + 1") if n_slices == 2 else ()
    for x, title in zip(LATENT_X, titles, strict=False):
        ax.text(x, 0.2 + 0.4 * top, title, ha="center", fontsize=10, color="0.35")
    note = graph.graph.get("note", "")
    ax.text(0.5, 0.2 + 0.8 * top, note, ha="center", fontsize=8, color="0.35")
    if not n_latents:
        ax.text(0.5, -n_rows / 2, "no latents", ha="center", color="0.5", fontsize=12)
    if options.legend:
        _draw_legend(ax, graph, options.edge_colors)
    return ax, positions, edges


def _is_latent(graph, node) -> bool:
    return graph.nodes[node].get("kind") == "latent"


def _label(graph, node) -> str:
    """Short name of a node without its slice."""
    return shorten(graph.nodes[node].get("name", node))


def _positions(graph) -> tuple[dict, int]:
    """Features stacked by their latent, latents beside the middle of their features."""
    positions: dict = {}
    n_rows = 1
    for when in (0, 1):
        nodes = [node for node, place in graph.nodes(data="slice") if place == when]
        children = {
            latent: [
                child
                for _, child, kind in graph.out_edges(latent, data="kind")
                if kind == "measurement"
            ]
            for latent in nodes
            if _is_latent(graph, latent)
        }
        taken = {child for group in children.values() for child in group}
        loose = [node for node in nodes if node not in taken and node not in children]
        row = 0.0
        for latent, group in children.items():
            height = max(len(group), 1.6)
            positions[latent] = (LATENT_X[when], -row - height / 2)
            first = row + (height - len(group)) / 2 + 0.5
            for k, child in enumerate(group):
                positions[child] = (FEATURE_X[when], -first - k)
            row += height + 0.5
        for k, node in enumerate(loose):
            positions[node] = (FEATURE_X[when], -row - 0.5 - k)
        n_rows = max(n_rows, int(np.ceil(row + len(loose))))
    return positions, n_rows


NODE_STYLE = {"edgecolors": "white", "linewidths": 1.0, "zorder": 3}


def _draw_latent(ax, place, name, color, diameter) -> None:
    """A circle with its name inside, or above if it is too long."""
    ax.scatter(*np.transpose([place]), s=diameter**2, facecolors=[color], **NODE_STYLE)
    inside = text_width([name], 8.0) <= diameter + 6.0
    ax.annotate(
        name,
        place,
        xytext=(0, 0 if inside else diameter / 2 + 2.0),
        textcoords="offset points",
        ha="center",
        va="center" if inside else "bottom",
        fontsize=8.0,
        color=text_color_on(color) if inside else "black",
        zorder=5,
    )


def _draw_features(ax, graph, positions, font) -> None:
    """Dots with their names outside, if the font is readable."""
    for node in graph:
        if _is_latent(graph, node):
            continue
        x, y = positions[node]
        ax.scatter([x], [y], s=30, facecolors=FEATURE_COLOR, **NODE_STYLE)
        if font >= 5.0:
            ax.annotate(
                _label(graph, node),
                (x, y),
                xytext=(-6 if x < 0.5 else 6, 0),
                textcoords="offset points",
                ha="right" if x < 0.5 else "left",
                va="center",
                fontsize=font,
                annotation_clip=False,
            )


def _draw_edges(ax, graph, positions, diameter, options: GraphOptions):
    """All edges as curves; arrows at the ends of directed ones between latents."""
    from matplotlib.collections import LineCollection

    curves, widths, colors, styles = [], [], [], []
    drawn = set()
    # Mutual information is small even of strong edges, so the strongest sets the scale.
    strongest = max(
        (
            data.get("strength", 1.0)
            for *_, data in graph.edges(data=True)
            if data.get("kind", "measurement") != "measurement"
        ),
        default=1.0,
    )
    for parent, child, data in graph.edges(data=True):
        strength = float(np.clip(data.get("strength", 1.0), 0.0, 1.0))
        directed = data.get("directed", True)
        seen = not directed and (child, parent) in drawn
        if strength < options.min_strength or seen:
            continue
        drawn.add((parent, child))
        kind = data.get("kind", "measurement")
        curve = _curve(positions[parent], positions[child], kind)
        between = kind != "measurement"
        share = min(strength / strongest, 1.0) if strongest > 0 else 1.0
        curves.append(curve)
        widths.append(edge_width(share) if between else 1.1)
        shade = COLORS.get(kind, COLORS["measurement"])
        if between and options.edge_colors:
            shade = options.edge_colors(parent, child)
        colors.append((shade, float(edge_opacity(share)) if between else 0.7))
        styles.append(DASHED if kind == "intra" and not directed else "solid")
        if between:
            if directed:
                _arrow(ax, curve, colors[-1], widths[-1], diameter)
            _write_support(ax, curve, data.get("support"), shade)
    lines = LineCollection(
        curves, colors=colors, linewidths=widths, linestyles=styles, zorder=1
    )
    return ax.add_collection(lines, autolim=False)


def _curve(start, end, kind):
    """Straight to features, across for time, bent within a slice."""
    t = np.linspace(0.0, 1.0, 33)[:, np.newaxis]
    start, end = np.asarray(start), np.asarray(end)
    line = start + (end - start) * t
    if kind == "intra":
        inwards = 1.0 if start[0] < 0.5 else -1.0
        bend = 0.05 + 0.012 * abs(end[1] - start[1])
        line[:, :1] += inwards * min(bend, 0.14) * 4 * t * (1 - t)
    elif kind == "inter":
        line[:, 1:] = start[1] + (end[1] - start[1]) * ease(t)
    return line


def _arrow(ax, curve, color, width, diameter) -> None:
    """Point an arrow at the end of a curve, clear of the node's circle."""
    style = {"arrowstyle": "-|>", "color": color, "lw": 0.0, "shrinkA": 0.0}
    style |= {"mutation_scale": 9.0 + 2.0 * width, "shrinkB": diameter / 2}
    ax.annotate("", xy=curve[-1], xytext=curve[-12], arrowprops=style, zorder=2)


def _write_support(ax, curve, support, color) -> None:
    """Share of local graphs behind an edge, on its middle."""
    if support is None or not np.isfinite(support):
        return
    # Edges that cross meet in the middle, so sloping ones are labelled earlier.
    level = np.isclose(*curve[[0, -1], 1]) or np.isclose(*curve[[0, -1], 0])
    ax.text(
        *curve[len(curve) // (2 if level else 3)],
        f"{support:.0%}",
        ha="center",
        va="center",
        fontsize=7,
        color=color,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        zorder=4,
    )


def _draw_legend(ax, graph, edge_colors) -> None:
    """Name the kinds of edges that occur."""
    from matplotlib.lines import Line2D

    kinds = {
        (data.get("kind"), data.get("directed", True))
        for _, _, data in graph.edges(data=True)
    }
    entries = [
        (("inter", True), "solid", "to the next slice"),
        (("intra", True), "solid", "within a slice"),
        (("intra", False), DASHED, "direction unknown"),
        (("measurement", True), "solid", "measured by"),
    ]
    shown = [
        (Line2D([], [], color=COLORS[kind[0]], ls=style), label)
        for kind, style, label in entries
        if kind in kinds and (edge_colors is None or kind[0] == "measurement")
    ]
    add_legend(ax, shown + ([] if edge_colors is None else edge_colors.legend()))


def _new_axes(n_rows: int, longest: float):
    """Axes of a new figure with a line for every feature."""
    width = np.clip(5.0 + 2 * longest / 72.0, 6.4, 12.0)
    height = np.clip(0.26 * n_rows + 1.2, 3.2, 18.0)
    return new_graph_axes(float(width), float(height))
