"""Moments of columns, and how far they are from those of normal columns."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr


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
    square = (np.clip(X, -limit, limit) ** 2).mean(axis=0)
    return np.sqrt(square / mean), (square - mean) / deviation * np.sqrt(len(X))


def _central(X, power):
    """Central moment of each column in units of its standard deviation, and n."""
    mean = X.mean(axis=0)
    spread = X.std(axis=0)
    spread = np.where(spread > 1e-12 * (1.0 + np.abs(mean)), spread, np.inf)
    return (((X - mean) / spread) ** power).mean(axis=0), max(len(X), 20), spread


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


def dependence(X, Y) -> np.ndarray:
    """Correlations of columns of two tables, 0 where one is constant.

    X (n_rows, p), Y (n_rows, q) -> correlations (p, q).
    """
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    spread = np.outer((X**2).mean(axis=0), (Y**2).mean(axis=0))
    zeros = np.zeros_like(spread)
    covariance = X.T @ Y / max(len(X), 1)
    r = np.divide(covariance, np.sqrt(spread), out=zeros, where=spread > 1e-24)
    return np.clip(r, -1.0, 1.0)


def dependence_of_sizes(r) -> np.ndarray:
    """Correlations of absolute values of normal columns with correlations r."""
    return (np.sqrt(1.0 - r**2) + r * np.arcsin(r) - 1.0) / (0.5 * np.pi - 1.0)
