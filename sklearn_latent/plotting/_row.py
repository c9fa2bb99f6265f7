"""Rows of nodes of bipartite graphs."""

from __future__ import annotations

import numpy as np

from .._core.text import shorten
from ._style import (
    SMALLEST_FONT,
    fit_width,
    spelled,
    text_color_on,
    text_width,
)


class Row:
    """Nodes on one line, small enough to stay apart, with readable labels.

    All sizes are in points.

    x: places of the nodes, as shares of the width, (n_nodes,)
    spacing: smallest distance of two neighbours
    names: names of the nodes, or an empty list
    numbers: to be written into nodes, or behind their names if nodes are small
    room: height that rotated labels may take
    node, font: largest diameter of a node and largest size of its label
    hollow: which nodes are drawn as rings
    is_boxed: whether labels hide what is behind them
    """

    may_thin = True
    is_boxed = False
    hollow: list[bool] | None = None

    def __init__(
        self, x, spacing, names, numbers=(), *, room=np.inf, node=32.0, font=10.0
    ):
        self.x = x
        self.spacing = spacing
        self.diameter = float(np.clip(0.7 * spacing, 1.0, node))
        self.numbers = list(numbers)
        self.number_font = 0.25 * self.diameter
        ends = [""] * len(names)
        if self.numbers and not self._numbers_fit():
            ends = [f"  {number}".rstrip() for number in self.numbers]
            self.numbers = []
        self._write_labels(names, ends, room, font)

    def _numbers_fit(self) -> bool:
        """Whether numbers stay within their nodes, corners included."""
        width = text_width(self.numbers, self.number_font)
        corner = np.hypot(width, self.number_font)
        return self.number_font >= SMALLEST_FONT and corner <= 0.95 * self.diameter

    def _write_labels(self, names, ends, room, font) -> None:
        """Set the labels, their font and whether they are rotated."""
        pairs = list(zip(names, ends, strict=True))
        self.labels = [shorten(name) + end for name, end in pairs]
        self.font = font
        level = font * self.spacing / (text_width(self.labels, font) + 0.4 * font)
        # A somewhat smaller font reads better than rotated text.
        self.is_turned = level < 0.8 * font
        if not self.is_turned:
            self.font = min(font, level)
            return
        self.font = float(np.clip(0.8 * self.spacing, SMALLEST_FONT, font))
        room -= text_width(ends, self.font)
        self.labels = [fit_width(name, room, self.font) + end for name, end in pairs]

    @property
    def step(self) -> int:
        """Label every how many-th node; 0 for none."""
        if not self.may_thin or not self.is_turned:
            return 1
        # A rotated label needs the height of a line. If more than every other name
        # is missing, the remaining ones do not help.
        step = int(np.ceil(1.15 * self.font / self.spacing))
        return step if step <= 2 else 0

    @property
    def extent(self) -> float:
        """How far nodes and labels reach from the line of the row."""
        room = self.diameter / 2 + 8.0
        if self.labels and self.step and self.is_turned:
            return room + text_width(self.labels, self.font)
        return room + 1.3 * max(self.font, 9.0)

    def draw(self, ax, y, colors) -> None:
        """Draw nodes, numbers and labels at the height `y`, 0 for the lowest row."""
        rings = self.hollow or [False] * len(colors)
        pairs = list(zip(colors, rings, strict=True))
        ax.scatter(
            self.x,
            np.full(len(self.x), y),
            s=self.diameter**2,
            facecolors=["white" if ring else color for color, ring in pairs],
            edgecolors=[color if ring else "white" for color, ring in pairs],
            linewidths=min(1.0, self.diameter / 12),
            clip_on=False,
            zorder=3,
        )
        for x, number, color in zip(self.x, self.numbers, colors, strict=False):
            style = {"ha": "center", "va": "center", "color": text_color_on(color)}
            ax.text(x, y, number, fontsize=self.number_font, zorder=4, **style)
        if self.labels and self.step:
            for i in range(0, len(self.labels), self.step):
                self._write(ax, self.x[i], y, self.labels[i], self.font)
        elif self.labels:
            noun = "latents" if y else "features"
            self.is_turned = False
            self._write(ax, 0.5, y, f"{len(self.labels):,} {noun}", 9.0)

    def _write(self, ax, x, y, text, font) -> None:
        """Write above the upper rows and below the lowest one."""
        box = {"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.85}
        ax.annotate(
            spelled(text),
            (x, y),
            xytext=(0, (1 if y else -1) * (self.diameter / 2 + 4.0)),
            textcoords="offset points",
            ha="center",
            va="bottom" if y else "top",
            rotation=90 if self.is_turned else 0,
            fontsize=font,
            bbox=box if self.is_boxed else None,
            annotation_clip=False,
        )
