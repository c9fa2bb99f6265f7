"""Moments of columns with gaps, and how far they are from those of normal columns."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr


def moments(X) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of known values, mean and mean square of each column; 0 if none."""
    known = ~np.isnan(X)
    n = known.sum(axis=0).astype(np.float64)
    filled = np.where(known, X, 0.0)
    some = np.maximum(n, 1.0)
    return n, filled.sum(axis=0) / some, (filled**2).sum(axis=0) / some


def variance_z(ratio, n) -> np.ndarray:
    """Standard errors of variances, as ratios to the expected (Wilson and Hilferty)."""
    part = 2.0 / (9.0 * np.maximum(n, 1.0))
    return (np.cbrt(ratio) - (1.0 - part)) / np.sqrt(part)


def clipped_spread(X, limit: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Spread of standard normal columns without their tails, and its standard errors.

    Scores beyond the limit count as the limit. The spread is 1 if columns are normal.
    """
    tail, density = 2.0 * ndtr(-limit), np.exp(-0.5 * limit**2) / np.sqrt(2.0 * np.pi)
    mean = 1.0 - tail - 2.0 * limit * density + limit**2 * tail
    fourth = 3.0 * (1.0 - tail) - 2.0 * density * (limit**3 + 3.0 * limit)
    deviation = np.sqrt(fourth + limit**4 * tail - mean**2)
    n, _, square = moments(np.clip(X, -limit, limit))
    return np.sqrt(square / mean), (square - mean) / deviation * np.sqrt(n)


def _central(X, power):
    """Central moment of each column in units of its standard deviation, and n."""
    n, mean, _ = moments(X)
    centred = np.where(np.isnan(X), 0.0, X - mean)
    some = np.maximum(n, 1.0)
    spread = np.sqrt((centred**2).sum(axis=0) / some)
    spread = np.where(spread > 1e-12 * (1.0 + np.abs(mean)), spread, np.inf)
    return ((centred / spread) ** power).sum(axis=0) / some, np.maximum(n, 20.0), spread


def skewness_z(X) -> tuple[np.ndarray, np.ndarray]:
    """Skewness of columns, and its standard errors (D'Agostino, 1970)."""
    skewness, n, spread = _central(X, 3)
    y = skewness * np.sqrt((n + 1) * (n + 3) / (6.0 * (n - 2)))
    beta = 3.0 * (n**2 + 27 * n - 70) * (n + 1) * (n + 3)
    beta /= (n - 2) * (n + 5) * (n + 7) * (n + 9)
    w = np.sqrt(2.0 * (beta - 1.0)) - 1.0
    z = np.arcsinh(y / np.sqrt(2.0 / (w - 1.0))) / np.sqrt(0.5 * np.log(w))
    return skewness, np.where(np.isfinite(spread), z, 0.0)


def kurtosis_z(X) -> tuple[np.ndarray, np.ndarray]:
    """Excess kurtosis of columns, and its standard errors (Anscombe, Glynn, 1983)."""
    kurtosis, n, spread = _central(X, 4)
    mean = 3.0 * (n - 1) / (n + 1)
    variance = 24.0 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    x = (kurtosis - mean) / np.sqrt(variance)
    beta = 6.0 * (n**2 - 5 * n + 2) / ((n + 7) * (n + 9))
    beta *= np.sqrt(6.0 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    a = 6.0 + 8.0 / beta * (2.0 / beta + np.sqrt(1.0 + 4.0 / beta**2))
    part = 2.0 / (9.0 * a)
    ratio = (1.0 - 2.0 / a) / (1.0 + x * np.sqrt(2.0 / (a - 4.0)))
    # Far below what is possible for a normal sample, the root has no meaning.
    z = (1.0 - part - np.sign(ratio) * np.cbrt(np.abs(ratio))) / np.sqrt(part)
    return kurtosis - 3.0, np.where(np.isfinite(spread), z, 0.0)


def dependence(X, Y) -> tuple[np.ndarray, np.ndarray]:
    """Correlations of columns of two tables, 0 where one is constant, and n.

    Over the rows that have both columns, whose number is n.

    X (n_rows, p), Y (n_rows, q) -> correlations (p, q), n (p, q).
    """
    here, there = ((~np.isnan(part)).astype(np.float64) for part in (X, Y))
    # Centred once, so that sums of squares lose no digits.
    X, Y = (np.nan_to_num(part - moments(part)[1]) for part in (X, Y))
    n = here.T @ there
    some = np.maximum(n, 1.0)
    first, second = X.T @ there / some, here.T @ Y / some
    covariance = X.T @ Y / some - first * second
    spread = (X**2).T @ there / some - first**2
    spread = np.maximum(spread, 0.0) * np.maximum(here.T @ Y**2 / some - second**2, 0.0)
    r = np.divide(
        covariance, np.sqrt(spread), out=np.zeros_like(n), where=spread > 1e-24
    )
    return np.clip(r, -1.0, 1.0), n
