"""A sample of rows that represents them all: the one way of thinning."""

from __future__ import annotations

import numpy as np


def evenly_spaced(n_rows: int, most: int) -> np.ndarray:
    """Numbers of at most `most` rows, evenly spaced, first and last included."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, most).astype(np.intp)


def some_rows(n_rows: int, most: int) -> np.ndarray:
    """Numbers of at most `most` rows, at random but always the same, in order."""
    if n_rows <= most:
        return np.arange(n_rows)
    chosen = np.random.RandomState(0).choice(n_rows, most, replace=False)
    return np.sort(chosen)


def thinned_weights(weights, most: int, phase: float = 0.5) -> np.ndarray:
    """Weights of a sample of about `most` rows, drawn evenly along the total weight.

    Neighbours are often alike, so that even steps make a representative sample. Rows
    that are not drawn have the weight 0.

    phase: where the first step ends, as a share of a step
    """
    weights = np.asarray(weights, dtype=float)
    ends = np.cumsum(weights)
    if not len(ends) or ends[-1] <= most:
        return weights
    places = (np.arange(most) + phase) / most * ends[-1]
    drawn = np.searchsorted(ends, places)
    return np.bincount(drawn, minlength=len(ends)).astype(float)
