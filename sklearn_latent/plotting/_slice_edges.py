"""Edges of the picture of two slices."""

from __future__ import annotations

import numpy as np

from ._style import ease, edge_opacity, edge_width, size_in_points, text_width

COLORS = {"inter": "#B2182B", "intra": "#303030", "measurement": "#8C8C8C"}
DASHED = (0, (4, 3))
SUPPORT_FONT = 7.0
# Where along an edge its support may stand, the best place first.
PLACES = (0.5, 0.34, 0.66, 0.42, 0.58, 0.27, 0.73, 0.2, 0.8)


def draw_edges(ax, graph, positions, diameter: float, edge_colors, taken=()):
    """All edges as curves; arrows at the ends of directed ones between latents.

    taken: centres of places without labels, (x, y) in the data, and sizes in points
    """
    from matplotlib.collections import LineCollection

    curves, widths, colors, styles = [], [], [], []
    labels = _Supports(ax, taken)
    # Mutual information is small even of strong edges, so the strongest sets the scale.
    strongest = max(
        (
            abs(data.get("strength", 1.0))
            for *_, data in graph.edges(data=True)
            if data.get("kind", "measurement") != "measurement"
        ),
        default=1.0,
    )
    for parent, child, data in graph.edges(data=True):
        strength = float(np.clip(abs(data.get("strength", 1.0)), 0.0, 1.0))
        directed = data.get("directed", True)
        kind = data.get("kind", "measurement")
        curve = _curve(positions[parent], positions[child], kind)
        between = kind != "measurement"
        share = min(strength / strongest, 1.0) if strongest > 0 else 1.0
        curves.append(curve)
        widths.append(edge_width(share) if between else 1.1)
        shade = COLORS.get(kind, COLORS["measurement"])
        if between and edge_colors:
            shade = edge_colors(parent, child)
        colors.append((shade, float(edge_opacity(share)) if between else 0.7))
        styles.append(DASHED if kind == "intra" and not directed else "solid")
        if between:
            if directed:
                _arrow(ax, curve, colors[-1], widths[-1], diameter)
            labels.write(curve, data.get("support"), shade)
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


class _Supports:
    """Shares of local graphs behind edges, where they hide nothing else."""

    def __init__(self, ax, taken):
        self.ax = ax
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        self._scale = np.array(size_in_points(ax)) / (right - left, high - low)
        self._taken = [(place * self._scale, np.array(size)) for place, size in taken]

    def write(self, curve, support, color) -> None:
        """Write the support on its edge, or nowhere if there is no place."""
        if support is None or not np.isfinite(support):
            return
        label = f"{support:.0%}"
        # Edges that cross meet in the middle, so sloping ones are labelled earlier.
        level = np.isclose(*curve[[0, -1], 1]) or np.isclose(*curve[[0, -1], 0])
        size = np.array([text_width([label], SUPPORT_FONT) + 3.0, SUPPORT_FONT + 3.0])
        for share in PLACES if level else PLACES[1:]:
            place = curve[round(share * (len(curve) - 1))]
            if self._is_free(place * self._scale, size):
                break
        else:
            return
        self.ax.text(
            *place,
            label,
            ha="center",
            va="center",
            fontsize=SUPPORT_FONT,
            color=color,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            zorder=4,
        )

    def _is_free(self, centre, size) -> bool:
        """Take the place if no label is there."""
        if any(
            np.all(np.abs(centre - other) < (size + other_size) / 2)
            for other, other_size in self._taken
        ):
            return False
        self._taken.append((centre, size))
        return True
