"""Two slices of a temporal model: now on the left, the next slice on the right."""

from __future__ import annotations

import numpy as np

from .._core.text import shorten
from ._edge_colors import GraphOptions
from ._frame import Frame
from ._selection import name_of
from ._slice_edges import COLORS, DASHED, draw_edges
from ._style import (
    FEATURE_COLOR,
    PALETTE,
    SMALLEST_FONT,
    fit_width,
    new_graph_axes,
    size_in_points,
    spelled,
    text_color_on,
    text_width,
)

# Columns of the picture: features, latents | latents, features.
LATENT_X = (0.3, 0.7)
FEATURE_X = (0.0, 1.0)
# Rows that a latent without features takes, and those between latents.
FEWEST_ROWS, ROWS_BETWEEN = 1.6, 0.5
# Sizes in points.
FONT, ROW, MARGIN = 9.0, 14.5, 14.0
NAME_ROOM, TITLE_ROOM = 10.0, 15.0  # above the first latent, and for titles
MIDDLE, WIDEST, HIGHEST, LOWEST = 380.0, 860.0, 1296.0, 210.0
LARGEST_LATENT, LATENT_FONTS = 38.0, (8.0, 7.5, 7.0, 6.5)
# Labels may take this share of the width on either side.
LABEL_SHARE = 0.3
NODE_STYLE = {"edgecolors": "white", "linewidths": 1.0, "zorder": 3}


def draw_two_slices(graph, ax, options: GraphOptions):
    """Draw a two-slice graph: features outside, latents inside, time to the right.

    Edges within a slice are bent, those between slices run across the middle; edges
    without a direction have no arrow. The number on an edge is its support. Without
    edges between slices there is one slice.
    """
    n_slices = 1 + any(graph.nodes[node]["slice"] for node in graph)
    latents = [node for node in graph if _is_latent(graph, node)]
    features = [node for node in graph if not _is_latent(graph, node)]
    positions, n_rows = _positions(graph)
    notes = [graph.graph.get("note", ""), options.note]
    entries = (
        _legend_entries(graph, options.edge_colors, over_time=n_slices == 2)
        if options.legend
        else []
    )
    frame = Frame("; ".join(note for note in notes if note), entries)
    names = [shorten(name_of(graph, node)) for node in features]
    longest = text_width(names, FONT)
    captions = [shorten(name_of(graph, node)) for node in latents]
    if ax is None:
        middle = max(MIDDLE, 3.4 * text_width(captions, LATENT_FONTS[0]))
        width = float(np.clip(middle + 2 * (longest + MARGIN), 430.0, WIDEST))
        height = frame.above(width) + NAME_ROOM + TITLE_ROOM + frame.below(width)
        height += ROW * n_rows
        ax = new_graph_axes(width, float(np.clip(height, LOWEST, HIGHEST)))
    ax.set_axis_off()
    width, height = size_in_points(ax)
    longest = min(longest, LABEL_SHARE * width)
    margin = (longest + MARGIN) / (width - (longest + MARGIN) * n_slices)
    ax.set_xlim(-margin, 1.0 + margin if n_slices == 2 else LATENT_X[1])
    above = frame.above(width) + NAME_ROOM + TITLE_ROOM * (n_slices - 1)
    row = max(height - above - frame.below(width), 0.2 * height) / n_rows
    ax.set_ylim(-n_rows - frame.below(width) / row, above / row)

    gap = row * _smallest_gap([positions[node][1] for node in latents])
    diameter, font = _latent_size(captions, gap)
    if not font:
        room = 0.37 * width / (1.0 + margin * n_slices)
        names = [name_of(graph, node) for node in latents]
        captions = [fit_width(name, room, LATENT_FONTS[0]) for name in names]
    places = [positions[node] for node in latents]
    taken = _taken(places, captions, diameter, 0.0 if font else 1.0 / row)
    edges = draw_edges(ax, graph, positions, diameter, options.edge_colors, taken)
    n_latents = len(latents) // n_slices
    colors = [PALETTE[i % n_latents % len(PALETTE)] for i in range(len(places))]
    if places:
        style = {"s": diameter**2, "facecolors": colors, **NODE_STYLE}
        ax.scatter(*np.transpose(places), **style)
    for place, name, color in zip(places, captions, colors, strict=True):
        _write_latent(ax, place, name, color, diameter, font)
    size = float(np.clip(0.8 * row, 0.0, FONT))
    if options.feature_labels != "auto":
        size = max(size, SMALLEST_FONT) if options.feature_labels else 0.0
    _draw_features(ax, graph, features, positions, (size, longest))
    titles = ("time t", "time t + 1") if n_slices == 2 else ()
    for x, title in zip(LATENT_X, titles, strict=False):
        ax.text(
            x, (NAME_ROOM + 2.0) / row, title, ha="center", fontsize=10, color="0.35"
        )
    if not latents:
        ax.text(0.5, -n_rows / 2, "no latents", ha="center", color="0.5", fontsize=12)
    frame.draw(ax)
    return ax, positions, edges


def _is_latent(graph, node) -> bool:
    return graph.nodes[node].get("kind") == "latent"


def _positions(graph) -> tuple[dict, float]:
    """Features stacked by their latent, latents beside the middle of their features."""
    positions: dict = {}
    n_rows = 1.0
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
            height = max(len(group), FEWEST_ROWS)
            positions[latent] = (LATENT_X[when], -row - height / 2)
            first = row + (height - len(group)) / 2 + 0.5
            for k, child in enumerate(group):
                positions[child] = (FEATURE_X[when], -first - k)
            row += height + ROWS_BETWEEN
        for k, node in enumerate(loose):
            positions[node] = (FEATURE_X[when], -row - 0.5 - k)
        n_rows = max(n_rows, row + len(loose) - ROWS_BETWEEN * (not loose))
    return positions, n_rows


def _smallest_gap(heights) -> float:
    """Smallest distance between nodes of a column."""
    return float(np.min(np.diff(np.unique(np.round(heights, 6))), initial=100.0))


def _latent_size(labels, gap: float) -> tuple[float, float]:
    """Diameter of latents and the font of names within them; 0.0 if above them."""
    diameter = float(np.clip(0.8 * gap, 6.0, LARGEST_LATENT))
    for font in LATENT_FONTS:
        if np.hypot(text_width(labels, font), font) <= 0.92 * diameter:
            return diameter, font
    # Names stand above, so that circle and name together must fit into the gap.
    return float(np.clip(gap - 15.0, 6.0, 20.0)), 0.0


def _taken(places, captions, diameter, unit) -> list:
    """Places of latents and of names above them, and their sizes in points.

    unit: height of a point in the data, 0.0 if names are within circles
    """
    circles = [(np.array(place), (diameter, diameter)) for place in places]
    if not unit:
        return circles
    font = LATENT_FONTS[0]
    shift = np.array([0.0, unit * (diameter / 2 + 2.0 + 0.6 * font)])
    sizes = [(text_width([name], font) + 2.0, 1.4 * font) for name in captions]
    texts = zip(places, sizes, strict=True)
    return circles + [(place + shift, size) for place, size in texts]


def _write_latent(ax, place, name, color, diameter, font) -> None:
    """Write the name of a latent inside its circle, or above if it is too long."""
    # Edges would cross out a name outside of the circle.
    box = {"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.85}
    ax.annotate(
        spelled(name),
        place,
        xytext=(0, 0 if font else diameter / 2 + 2.0),
        textcoords="offset points",
        ha="center",
        va="center" if font else "bottom",
        fontsize=font or LATENT_FONTS[0],
        color=text_color_on(color) if font else "black",
        bbox=None if font else box,
        zorder=5,
    )


def _draw_features(ax, graph, features, positions, size) -> None:
    """Dots with their names outside, if the font is readable; size: (font, room)."""
    font, room = size
    if features:
        places = np.transpose([positions[node] for node in features])
        ax.scatter(*places, s=30, facecolors=FEATURE_COLOR, **NODE_STYLE)
    for node in features:
        x, y = positions[node]
        if font >= SMALLEST_FONT:
            ax.annotate(
                spelled(fit_width(name_of(graph, node), room, font)),
                (x, y),
                xytext=(-6 if x < 0.5 else 6, 0),
                textcoords="offset points",
                ha="right" if x < 0.5 else "left",
                va="center",
                fontsize=font,
                annotation_clip=False,
            )


def _legend_entries(graph, edge_colors, *, over_time: bool) -> list:
    """Name the kinds of edges that occur."""
    from matplotlib.lines import Line2D

    kinds = {
        (data.get("kind"), data.get("directed", True))
        for _, _, data in graph.edges(data=True)
    }
    entries = [
        (("inter", True), "solid", "to the next slice"),
        (
            ("intra", True),
            "solid",
            "within a slice" if over_time else "between latents",
        ),
        (("intra", False), DASHED, "direction unknown"),
        (("measurement", True), "solid", "measured by"),
    ]
    shown = [
        (Line2D([], [], color=COLORS[kind[0]], ls=style), label)
        for kind, style, label in entries
        if kind in kinds and (edge_colors is None or kind[0] == "measurement")
    ]
    return shown + ([] if edge_colors is None else edge_colors.legend())
