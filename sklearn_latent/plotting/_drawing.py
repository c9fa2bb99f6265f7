"""Drawing of graphs: names in boxes, layer by layer, and curves between them.

Sizes and places are in points. Places have two coordinates, along the layers and across
them: layers are rows from the top, or columns from the left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._core.text import LONGEST_NAME, shorten
from ._colors import edge_styles, legend_entries, node_colors
from ._display import (
    FEATURE_COLOR,
    FONT,
    add_legend,
    size_in_points,
    spelled,
    text_color_on,
    text_width,
)
from ._layout import Layout, find_layers, layered_layout
from ._selection import name_of

# Fonts, letters of a name and heights of a line in fonts that are tried until all names
# fit. Letters below 6 points cannot be read.
LABELS = (
    (9.0, LONGEST_NAME, 1.65),
    (8.0, LONGEST_NAME, 1.65),
    (7.0, LONGEST_NAME, 1.5),
    (6.0, LONGEST_NAME, 1.3),
    (6.0, 14, 1.3),
    (6.0, 8, 1.3),
)
# Of a new picture: what fits on a page, and rows that fit on a screen.
WIDEST, HIGHEST, WIDEST_ROW = 1130.0, 1200.0, 800.0
# Padding of a box and smallest space between layers, in fonts.
PAD, SPACE = 0.15, 2.0


class Nodes(NamedTuple):
    """Nodes of a graph, in its order.

    kind: "latent", "feature" or "class"
    layer: of each node; time runs to the right, from features to features
    twin: number of the name; nodes with the same name have the same place
    form: "timed", "layered" for latents above features, or "free"
    """

    names: list
    kind: np.ndarray
    layer: np.ndarray
    twin: np.ndarray
    form: str

    @classmethod
    def of(cls, graph) -> Nodes:
        """Give each node a layer."""
        names = [name_of(graph, node) for node in graph]
        kinds = [kind for _, kind in graph.nodes(data="kind")]
        kinds = [kind if kind in ("latent", "class") else "feature" for kind in kinds]
        kind = np.array(kinds, dtype=str)
        slices = [when for _, when in graph.nodes(data="slice")]
        if not any(when is not None for when in slices):
            return cls(names, kind, *_layers(adjacency_of(graph), kind))
        number = {name: i for i, name in enumerate(dict.fromkeys(names))}
        twin = np.array([number[name] for name in names])
        layer = np.where(kind == "feature", 0, 1)
        layer = np.where(np.array(slices) == 1, 3 - layer, layer)
        return cls(names, kind, layer, twin, "timed")

    @property
    def has_mirror(self) -> bool:
        """Whether there are two slices."""
        return self.form == "timed" and bool((self.layer > 1).any())

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return int(self.layer.max(initial=0)) + 1


def adjacency_of(graph) -> np.ndarray:
    """Edges as a matrix (n_nodes, n_nodes)."""
    number = {node: i for i, node in enumerate(graph)}
    adjacency = np.zeros((len(graph), len(graph)), dtype=bool)
    for parent, child in graph.edges:
        adjacency[number[parent], number[child]] = True
    return adjacency


def _layers(adjacency, kind) -> tuple[np.ndarray, np.ndarray, str]:
    """Classes above latents above features, if that is all; or longest paths."""
    layer = (kind != "class").astype(int) + (kind == "feature")
    parent, child = np.nonzero(adjacency)
    form = "layered" if (layer[child] == layer[parent] + 1).all() else "free"
    layer = layer if form == "layered" else find_layers(adjacency)
    layer = np.unique(layer, return_inverse=True)[1].ravel()
    return layer, np.arange(len(layer)), form


class _Boxes(NamedTuple):
    """Labels of nodes, empty without one, and the sizes that they need.

    width: of boxes, or of dots without a label, (n_nodes,)
    line: height of a line in fonts
    """

    nodes: Nodes
    labels: list[str]
    width: np.ndarray
    font: float
    line: float
    is_upright: bool

    @classmethod
    def of(cls, graph, nodes, has_label, form, is_upright) -> _Boxes:
        """Write labels, and measure them; form is one of `LABELS`."""
        font, longest, line = form
        parts = zip(nodes.names, graph.nodes(data=True), has_label, strict=True)
        labels = [
            _label(name, data, longest) if has_label else ""
            for name, (_, data), has_label in parts
        ]
        width = np.array([text_width(label, font) for label in labels])
        width = np.where(has_label, width + 2 * PAD * font, 6.0)
        return cls(nodes, labels, width, font, line, is_upright)

    @property
    def height(self) -> np.ndarray:
        """Of boxes or dots, (n_nodes,)."""
        high = (1.2 + 2 * PAD) * self.font
        return np.where([bool(label) for label in self.labels], high, 6.0)

    def room(self) -> np.ndarray:
        """What each node needs within its layer."""
        if self.is_upright:
            is_dot = self.height < self.font
            return np.where(is_dot, 6.0, self.line * self.font)
        return self.width + 0.9 * self.font

    def across(self) -> float:
        """Size of the largest layer."""
        return float(np.bincount(self.nodes.layer, self.room()).max(initial=0.0))

    def thickness(self) -> np.ndarray:
        """Size along the layers of each layer."""
        sizes = self.width if self.is_upright else self.height
        layers = np.arange(self.nodes.n_layers)
        return np.array([sizes[self.nodes.layer == k].max(initial=0.0) for k in layers])

    def bows(self) -> float:
        """Space beside the last layer for edges within it."""
        is_single = self.nodes.form == "timed" and not self.nodes.has_mirror
        return 70.0 if is_single else 0.0

    def along(self, gap: float) -> float:
        """Size of all layers with gaps between them."""
        layers = self.thickness()
        return float(layers.sum() + gap * (len(layers) - 1)) + self.bows()

    def fit(self, width: float, height: float) -> bool:
        """Whether there is room for all labels."""
        across, along = (height, width) if self.is_upright else (width, height)
        return self.across() <= across and self.along(SPACE * self.font) <= along


def _label(name, data, longest: int) -> str:
    """Name of a node, and its prior or its number of classes."""
    label = shorten(name, longest) or "''"
    label = f"not {label}" if data.get("polarity") == -1 else label
    if data.get("prior") is not None:
        label += f"  {data['prior']:#.2g}"
    return f"{label}  {data['n_classes']}" if "n_classes" in data else label


def _fitting_boxes(graph, nodes: Nodes, limits, is_new: bool) -> _Boxes:
    """The largest labels that all fit; without one, names of crowded layers go."""
    has_label = np.ones(len(nodes.names), dtype=bool)
    for form in LABELS:
        for is_upright in (True,) if nodes.form == "timed" else (False, True):
            boxes = _Boxes.of(graph, nodes, has_label, form, is_upright)
            is_long = is_new and not is_upright and boxes.across() > WIDEST_ROW
            if not is_long and boxes.fit(*limits):
                return boxes
    crowd = np.bincount(nodes.layer)[nodes.layer] * boxes.line * boxes.font
    has_room = boxes.along(SPACE * boxes.font) <= limits[0]
    return _Boxes.of(graph, nodes, (crowd <= limits[1]) & has_room, form, True)


class _Plan(NamedTuple):
    """What to draw where.

    along, across: centres of the nodes, (n_nodes,)
    level: middle of each layer
    """

    size: tuple[float, float]
    boxes: _Boxes
    along: np.ndarray
    across: np.ndarray
    level: np.ndarray
    layout: Layout

    @classmethod
    def of(cls, graph, boxes: _Boxes, size, frame: _Frame) -> _Plan:
        """Place boxes in a picture of a size, or of the size that suits them."""
        layers = boxes.thickness()
        n_gaps = max(len(layers) - 1, 1)
        layout = _layout(graph, boxes)
        # Many edges between two layers need some distance to be told apart.
        gap = 0.3 * layout.span / n_gaps
        gap = float(np.clip(gap, 5.0 * boxes.font, 24.0 * boxes.font))
        if size is None:
            most = WIDEST if boxes.is_upright else HIGHEST
            free = (most - boxes.along(0.0)) / n_gaps
            gap = max(min(gap, free), SPACE * boxes.font)
            inner = boxes.along(gap), min(layout.span, WIDEST)
            width, height = inner if boxes.is_upright else inner[::-1]
            width, height = max(width, 320.0), max(height, 40.0)
            size = width, height + frame.above(width) + frame.below(width)
        above = frame.above(size[0])
        high = max(size[1] - above - frame.below(size[0]), 20.0)
        limits = (size[0], high) if boxes.is_upright else (high, size[0])
        # Layers of a small graph would be torn apart by all the room.
        gap = np.clip((limits[0] - boxes.along(0.0)) / n_gaps, 0.0, 2.0 * gap)
        start = max(limits[0] - boxes.along(gap), 0.0) / 2
        level = start + np.cumsum(layers + gap) - gap - layers / 2
        layout = layout.within(limits[1])
        if boxes.is_upright:
            layout = layout._replace(place=layout.place + above)
        else:
            level = level + above
        along = level[boxes.nodes.layer] + _shift(boxes, layers)
        across = layout.place[boxes.nodes.twin]
        return cls(size, boxes, along, across, level, layout)

    def points(self, along, across) -> np.ndarray:
        """Places as (x, y), from the upper left corner."""
        x, y = (along, across) if self.boxes.is_upright else (across, along)
        return np.column_stack([x, -np.asarray(y)])


def _layout(graph, boxes: _Boxes) -> Layout:
    """Places across the layers of all names."""
    nodes = boxes.nodes
    adjacency = adjacency_of(graph)
    layer = nodes.layer
    if nodes.form == "timed":
        # Both slices look the same: what measures what in either decides.
        parent, child = np.nonzero(adjacency)
        layer = np.where(nodes.kind == "feature", 1, 0)
        adjacency = np.zeros((nodes.twin.max() + 1,) * 2, dtype=bool)
        adjacency[nodes.twin[parent], nodes.twin[child]] = True
    first = np.unique(nodes.twin, return_index=True)[1]
    return layered_layout(adjacency, layer[first], boxes.room()[first])


def _shift(boxes: _Boxes, layers) -> np.ndarray:
    """Boxes of the outer columns move inwards, so that edges start in line."""
    nodes = boxes.nodes
    if not boxes.is_upright or nodes.n_layers == 1:
        return np.zeros(len(nodes.names))
    free = (layers[nodes.layer] - boxes.width) / 2
    is_last = nodes.layer == (3 if nodes.form == "timed" else nodes.n_layers - 1)
    return np.select([nodes.layer == 0, is_last], [free, -free], 0.0)


def draw_graph(graph, ax, note: str, legend: bool, color_by):
    """Draw a graph on axes or in a new figure: the axes, places of nodes, edges."""
    nodes = Nodes.of(graph)
    styles, entries = edge_styles(graph, nodes.form, color_by)
    entries = legend_entries(graph, nodes.form, entries) if legend else []
    frame = _Frame(_remarks(graph, nodes, note), entries, nodes.has_mirror)
    size = None if ax is None else size_in_points(ax)
    width, height = (WIDEST, np.inf) if size is None else size
    limits = width, min(height - frame.above(width) - frame.below(width), HIGHEST)
    boxes = _fitting_boxes(graph, nodes, limits, size is None)
    plan = _Plan.of(graph, boxes, size, frame)
    ax = _new_axes(*plan.size) if ax is None else ax
    ax.set_axis_off()
    ax.set_xlim(0.0, plan.size[0])
    ax.set_ylim(-plan.size[1], 0.0)
    lines = _draw_edges(ax, graph, plan, styles)
    _draw_nodes(ax, graph, plan)
    frame.draw(ax, plan)
    places = plan.points(plan.along, plan.across).tolist()
    return ax, dict(zip(graph, map(tuple, places), strict=True)), lines


def _remarks(graph, nodes: Nodes, note: str) -> str:
    """What stands above the picture."""
    remarks = [str(graph.graph.get("note", "")), note]
    if not len(graph):
        remarks.append("no nodes")
    elif nodes.form != "free" and "latent" not in nodes.kind:
        remarks.append("no latents")
    return "; ".join(filter(None, remarks))


def _new_axes(width: float, height: float):
    """Axes of this size in points, which nearly fill a new figure."""
    import matplotlib.pyplot as plt

    margin = 6.0
    wide, high = width + 2 * margin, height + 2 * margin
    figure = plt.figure(figsize=(wide / 72.0, high / 72.0))
    return figure.add_axes((margin / wide, margin / high, width / wide, height / high))


def _draw_edges(ax, graph, plan: _Plan, styles):
    """Edges as curves, weak ones first, and tips at the ends of directed ones."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    number = {node: i for i, node in enumerate(graph)}
    order = sorted(styles, key=lambda edge: styles[edge].strength)
    # A thousand edges at full width would cover the picture.
    crowd = float(np.clip(np.sqrt(60.0 / max(len(order), 1)), 0.2, 1.0))
    curves, colors = [], []
    for edge in order:
        style, ends = styles[edge], (number[edge[0]], number[edge[1]])
        curves.append(plan.points(*_curve(plan, *ends)))
        colors.append(to_rgba(style.color, style.opacity))
        if style.has_tip:
            _draw_tip(ax, plan, ends, curves[-1][-1], colors[-1], crowd * style.width)
    widths = [crowd * styles[edge].width for edge in order]
    lines = [styles[edge].line for edge in order]
    drawn = LineCollection(
        curves, colors=colors, linewidths=widths, linestyles=lines, zorder=1
    )
    return ax.add_collection(drawn, autolim=False)


def _curve(plan: _Plan, parent: int, child: int) -> tuple[np.ndarray, np.ndarray]:
    """Places along and across, from side to side at right angles to the layers."""
    ends, boxes = [parent, child], plan.boxes
    side = _sides(boxes.nodes, parent, child)
    sizes = boxes.width if boxes.is_upright else boxes.height
    along = plan.along[ends] + side * sizes[ends] / 2
    across = plan.across[ends]
    if side[0] == side[1]:
        return _bow(along, across, side[0], boxes.font)
    if boxes.nodes.form != "timed":
        way = plan.layout.ways[parent, child][1:-1]
        passed = boxes.nodes.layer[parent] + side[0] * (1 + np.arange(len(way)))
        along = np.concatenate([along[:1], plan.level[passed], along[1:]])
        across = np.concatenate([across[:1], plan.layout.place[way], across[1:]])
    t = np.linspace(0.0, 1.0, 17)
    ease = t * t * (3.0 - 2.0 * t)
    along = along[:-1, np.newaxis] + np.diff(along)[:, np.newaxis] * t
    across = across[:-1, np.newaxis] + np.diff(across)[:, np.newaxis] * ease
    return along.ravel(), across.ravel()


def _bow(along, across, side: int, font: float) -> tuple[np.ndarray, np.ndarray]:
    """A bent line within a layer; it leaves the middle of the boxes to other edges."""
    t = np.linspace(0.0, 1.0, 33)
    step = np.diff(across)[0]
    first, last = across + np.sign(step) * np.array([0.4, -0.4]) * font
    bulge = side * min(25.0 + 0.12 * abs(step), 60.0) * 4 * t * (1 - t)
    return along[0] + np.diff(along)[0] * t + bulge, first + (last - first) * t


def _sides(nodes: Nodes, parent: int, child: int) -> np.ndarray:
    """At which sides of its ends an edge is attached: 1 is on to the next layer."""
    step = int(np.sign(nodes.layer[child] - nodes.layer[parent]))
    if step:
        return np.array([step, -step])
    return np.full(2, -1 if nodes.has_mirror and nodes.layer[parent] > 1 else 1)


def _draw_tip(ax, plan: _Plan, ends, place, color, width: float) -> None:
    """A triangle that touches the end of an edge."""
    upright = plan.boxes.is_upright
    back = _sides(plan.boxes.nodes, *ends)[1]
    size = 3.5 + 2.0 * width
    x, y = place + plan.points([back * size / 2], [0.0])[0]
    marker = {(True, -1): ">", (True, 1): "<", (False, -1): "v"}[upright, int(back)]
    ax.scatter([x], [y], marker=marker, color=[color], s=size**2, lw=0, zorder=2)


def _draw_nodes(ax, graph, plan: _Plan) -> None:
    """Names in boxes, or dots; names that have no room are counted."""
    boxes, nodes, colors = plan.boxes, plan.boxes.nodes, node_colors(graph)
    places = plan.points(plan.along, plan.across)
    fills = [colors.get(name, "white") for name in nodes.names]
    hidden = np.array([not label for label in boxes.labels], dtype=bool)
    for i in np.flatnonzero(~hidden):
        is_feature = nodes.kind[i] == "feature"
        is_flipped = graph.nodes[list(graph)[i]].get("polarity") == -1
        box = {
            "boxstyle": f"round,pad={PAD}",
            "facecolor": fills[i],
            "edgecolor": "0.75" if is_feature and not is_flipped else "0.3",
            "linestyle": "--" if is_flipped else "-",
            "linewidth": 0.8 if is_feature else 0.0,
        }
        style = {"ha": "center", "va": "center", "fontsize": boxes.font, "zorder": 4}
        color = text_color_on(fills[i])
        ax.text(*places[i], spelled(boxes.labels[i]), color=color, bbox=box, **style)
    for layer in np.unique(nodes.layer[hidden]):
        chosen = hidden & (nodes.layer == layer)
        size = np.clip(0.7 * plan.size[1] / chosen.sum(), 1.0, 6.0)
        style = {"s": size**2, "c": [FEATURE_COLOR], "lw": 0, "zorder": 3}
        ax.scatter(*places[chosen].T, **style)
        kinds = set(nodes.kind[chosen])
        if nodes.form == "free":
            continue
        noun = f"{kinds.pop()}s" if len(kinds) == 1 else "nodes"
        box = {"boxstyle": "round,pad=0.2", "fc": "white", "ec": "none", "alpha": 0.9}
        style = {"ha": "center", "va": "center", "fontsize": FONT, "zorder": 5}
        middle = places[chosen].mean(axis=0)
        ax.text(*middle, f"{chosen.sum():,} {noun}", bbox=box, **style)


class _Frame(NamedTuple):
    """What surrounds a picture: a note and titles of slices above, a legend below."""

    note: str
    entries: list[tuple[Any, str]]
    has_titles: bool

    def lines(self, width: float) -> list[str]:
        """The note in lines of at most this width."""
        lines: list[str] = []
        for word in self.note.split():
            if lines and text_width(f"{lines[-1]} {word}", FONT) <= width:
                lines[-1] += f" {word}"
            else:
                lines.append(word)
        return lines

    def above(self, width: float) -> float:
        """Height of note and titles."""
        return 1.35 * FONT * len(self.lines(width)) + 18.0 * self.has_titles + 5.0

    def below(self, width: float) -> float:
        """Height of the legend."""
        n_rows = -(-len(self.entries) // self.n_columns(width))
        return 1.7 * FONT * n_rows + 10.0

    def n_columns(self, width: float) -> int:
        """How many entries fit beside each other."""
        return max(1, min(len(self.entries), int(width / (15.0 * FONT))))

    def draw(self, ax, plan: _Plan) -> None:
        """Write all of it."""
        width = plan.size[0]
        style = {"ha": "center", "va": "top", "color": "0.35"}
        if self.note:
            note = spelled("\n".join(self.lines(width)))
            ax.text(0.5 * width, 0.0, note, fontsize=FONT, **style)
        if self.has_titles:
            for layer, title in ((1, "time t"), (2, "time t + 1")):
                place = plan.level[layer], 20.0 - self.above(width)
                ax.text(*place, title, fontsize=10.0, **style)
        n_columns = self.n_columns(width)
        add_legend(ax, self.entries, loc="lower center", ncols=n_columns)
