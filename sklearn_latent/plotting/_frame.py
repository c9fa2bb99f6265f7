"""What surrounds the picture of a graph: a note above it, a legend below."""

from __future__ import annotations

from typing import Any

from ._style import (
    LEGEND_FONT,
    add_legend,
    edge_opacity,
    edge_width,
    size_in_points,
    spelled,
    text_width,
    wrap,
)

NOTE_FONT = 8.0
LINE = 1.35  # height of a line of text, as a multiple of its font
PAD = 5.0  # points between the picture and what surrounds it


class Frame:
    """Note and legend of a picture, and the room that they need in points.

    note: text that says what is not shown
    entries: (handle, label) pairs of the legend
    """

    def __init__(self, note: str, entries: list[tuple[Any, str]]):
        self.note = note
        self.entries = entries

    def above(self, width: float) -> float:
        """Height of the note."""
        lines = wrap(self.note, width, NOTE_FONT)
        return len(lines) * LINE * NOTE_FONT + PAD if lines else PAD

    def below(self, width: float) -> float:
        """Height of the legend."""
        if not self.entries:
            return PAD
        n_rows = -(-len(self.entries) // self._n_columns(width))
        return n_rows * 1.7 * LEGEND_FONT + 2 * PAD

    def _n_columns(self, width: float) -> int:
        """How many entries fit beside each other."""
        # Besides its label, an entry has a handle and spaces of 4.8 fonts in all.
        widths = [
            text_width([label], LEGEND_FONT) + 4.9 * LEGEND_FONT
            for _, label in self.entries
        ]
        if sum(widths) <= width:
            return len(widths)
        return max(1, min(len(widths) - 1, int(width / max(widths))))

    def draw(self, ax) -> None:
        """Write the note at the top of the axes and the legend at the bottom."""
        width = size_in_points(ax)[0]
        if self.note:
            ax.text(
                0.5,
                1.0,
                spelled("\n".join(wrap(self.note, width, NOTE_FONT))),
                transform=ax.transAxes,
                ha="center",
                va="top",
                fontsize=NOTE_FONT,
                color="0.35",
            )
        add_legend(
            ax, self.entries, ncols=self._n_columns(width) if self.entries else 1
        )


def strength_entries() -> list[tuple[Any, str]]:
    """Entries of a legend: what weak and strong edges look like."""
    from matplotlib.lines import Line2D

    return [
        (
            Line2D([], [], color="0.25", lw=edge_width(s), alpha=edge_opacity(s)),
            f"strength {s}",
        )
        for s in (0.1, 0.5, 0.9)
    ]
