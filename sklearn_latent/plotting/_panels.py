"""Several panels in the place of one pair of axes."""

from __future__ import annotations

import numpy as np

__all__ = ["new_axes", "split_axes"]


def new_axes(width: float, height: float):
    """Axes of a new figure whose labels stay inside."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def split_axes(ax, n_rows: int, n_columns: int = 1, *, gap=(0.06, 0.03)) -> np.ndarray:
    """Divide axes into a grid of panels.

    Returns panels (n_rows, n_columns).
    """
    ax.set_axis_off()
    high = (1.0 - gap[0] * (n_rows - 1)) / n_rows
    wide = (1.0 - gap[1] * (n_columns - 1)) / n_columns
    panels = np.empty((n_rows, n_columns), dtype=object)
    for i in range(n_rows):
        for j in range(n_columns):
            corner = (j * (wide + gap[1]), 1.0 - high - i * (high + gap[0]))
            panels[i, j] = ax.inset_axes([*corner, wide, high])
    return panels
