"""Rotations of factor loadings towards few edges."""

from __future__ import annotations

import numpy as np

# Angles of the coarse grid over a quarter turn; finer grids follow around the best.
N_ANGLES = 48


def varimax(loadings, *, max_iter=200, tol=1e-8) -> np.ndarray:
    """Rotate loadings so that each feature has few large ones (Kaiser, 1958)."""
    start = loadings.T
    rotation = np.eye(start.shape[1])
    before = -np.inf
    for _ in range(max_iter):
        rotated = start @ rotation
        target = rotated**3 - rotated * (rotated**2).mean(axis=0)
        left, values, right = np.linalg.svd(start.T @ target)
        rotation = left @ right
        if values.sum() <= before * (1.0 + tol):
            break
        before = values.sum()
    return (start @ rotation).T


def promax(loadings, *, power=4) -> tuple[np.ndarray, np.ndarray]:
    """Let factors be correlated, so that fewer loadings are large.

    Hendrickson and White (1964). Returns loadings of standardised factors and the
    correlation of these.
    """
    rotated = varimax(loadings).T
    target = rotated * np.abs(rotated) ** (power - 1)
    turn = np.linalg.lstsq(rotated, target, rcond=None)[0]
    inverse = np.linalg.inv(turn.T @ turn)
    size = np.sqrt(np.diagonal(inverse))
    return (rotated @ (turn * size)).T, inverse / np.outer(size, size)


def fewest_edges(loadings, weight, price, *, max_sweeps=30) -> np.ndarray:
    """Rotate loadings so that as many as possible can be dropped at little loss.

    A loading costs what its removal would take from the log-likelihood, but no more
    than the price of an edge: a component loss (Jennrich, 2006) that measures what the
    search is after. It is flat for large loadings, so planes are rotated one after the
    other by trying all angles.
    """
    # Edges without a price are all worth having; any rotation will do.
    price = max(price, 1e-6)
    scaled = loadings * np.sqrt(weight / price)
    size = len(scaled)
    for _ in range(max_sweeps):
        before = np.minimum(scaled**2, 1.0).sum()
        for a in range(size):
            for b in range(a + 1, size):
                _rotate_plane(scaled, a, b)
        if before - np.minimum(scaled**2, 1.0).sum() < 1e-3:
            break
    return scaled / np.sqrt(weight / price)


def _rotate_plane(scaled, a, b):
    """Rotate two rows of the loadings, in place, by the best of all angles."""
    x, y = scaled[a], scaled[b]
    best, width = 0.0, np.pi / 2
    current = np.minimum(x**2, 1.0).sum() + np.minimum(y**2, 1.0).sum()
    for n_angles in (N_ANGLES, 8, 8):
        angles = best + width * (np.arange(n_angles) / n_angles - 0.5)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        costs = np.minimum((cos * x + sin * y) ** 2, 1.0)
        costs += np.minimum((cos * y - sin * x) ** 2, 1.0)
        total = costs.sum(axis=1)
        place = int(total.argmin())
        best, width = float(angles[place]), 2.0 * width / n_angles
    if total[place] < current - 1e-9:
        cos1, sin1 = np.cos(best), np.sin(best)
        scaled[a], scaled[b] = cos1 * x + sin1 * y, cos1 * y - sin1 * x
