"""Algebra of the seven non-empty subsets a, b, c, ab, ac, bc, abc of three features."""

from __future__ import annotations

import numpy as np

# Which of a, b, c belong to each subset.
MEMBERS = (np.array([1, 2, 4, 3, 5, 6, 7])[:, None] >> np.arange(3) & 1).astype(bool)
# Cells of the joint distribution by which features are off: none, then the subsets.
_CELLS = np.vstack([np.zeros((1, 3), dtype=bool), MEMBERS])
# _INSIDE[S, cell]: all of S is off in the cell, so that M = _INSIDE @ P(cell).
_INSIDE = (_CELLS[:, None, :] <= _CELLS[None, :, :]).all(axis=2).astype(float)
_CELLS_FROM_MOMENTS = np.linalg.inv(_INSIDE)


def all_subsets(sets) -> np.ndarray:
    """Non-empty subsets of sets of two or three features, -1 where one is missing.

    sets (n_sets, 3) -> subsets (n_sets, 7, 3).
    """
    return np.where(MEMBERS, np.asarray(sets)[:, None, :], -1)


def subset_products(values) -> np.ndarray:
    """Products over the members of each subset.

    values (3, n) -> products (7, n).
    """
    a, b, c = values
    ab = a * b
    return np.stack([a, b, c, ab, a * c, b * c, ab * c])


def subset_variance(M, gradient) -> np.ndarray:
    """Variance, for one row of data, of smooth functions of the seven moments.

    A function with gradient ``g`` has the influence ``h(x) = sum of g_S over the
    subsets S that are off in x``; its variance is a sum over the eight cells of the
    joint distribution, which follow from the moments.

    M (n, 7), gradient (n, 7) or (n, e, 7) -> variance (n,) or (n, e).
    """
    moments = np.hstack([np.ones((len(M), 1)), M])
    cells = moments @ _CELLS_FROM_MOMENTS.T
    influence = gradient @ _INSIDE[1:]
    if gradient.ndim == 3:
        cells = cells[:, None, :]
    mean = (cells * influence).sum(axis=-1)
    return np.maximum((cells * influence**2).sum(axis=-1) - mean**2, 0.0)
