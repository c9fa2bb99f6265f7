"""Means and covariances of rows, or their expectations: all a linear network needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LOG_2_PI = float(np.log(2.0 * np.pi))

# Standard deviations below this share of the mean are rounding errors of a constant: a
# few units in the last place.
ROUNDING = 1e-15
# Squares below this have lost their digits, or are zero.
TINY = 1e-250
# Smallest noise variance of a node, as a share of its variance. It keeps a duplicate
# of another column, or a sum of others, at a finite likelihood.
NOISE_SHARE = 1e-8
# Digits of the statistics that a search sees.
DIGITS = 10


@dataclass(frozen=True, eq=False)
class GaussianStatistics:
    """Sufficient statistics of a linear Gaussian network; instances add up.

    The scatter is centred, so that columns far from zero lose no digits.

    weight: number of rows, or sum of their weights
    scatter: weighted sum of the outer products of the centred rows, or its expectation:
        conditional covariances of missing values are part of it, (n_nodes, n_nodes)
    residue: digits of the mean that do not fit into `mean`, (n_nodes,). Columns that
        are far from zero need them where means of two parts are compared.
    """

    weight: float
    mean: np.ndarray
    scatter: np.ndarray
    residue: np.ndarray | float = 0.0

    @classmethod
    def of(cls, X, sample_weight=None) -> GaussianStatistics:
        """Statistics of complete rows."""
        X = np.asarray(X, dtype=np.float64)
        weight = float(len(X) if sample_weight is None else np.sum(sample_weight))
        # Seen from one of the rows a column that is far from zero keeps its digits, and
        # one that is constant is exactly so.
        centred = X - X[0]
        if sample_weight is None:
            # np.average divides by zero if there are no columns.
            step = centred.mean(axis=0)
        else:
            step = np.asarray(sample_weight, dtype=float) @ centred / weight
        centred -= step
        if sample_weight is not None:
            centred *= np.sqrt(np.asarray(sample_weight, dtype=float))[:, None]
        mean = X[0] + step
        return cls(weight, mean, centred.T @ centred, (X[0] - mean) + step)

    def __add__(self, other: GaussianStatistics) -> GaussianStatistics:
        if not isinstance(other, GaussianStatistics):
            return NotImplemented
        weight = self.weight + other.weight
        if weight == 0:
            return self
        step = (other.mean - self.mean) + (other.residue - self.residue)
        between = self.weight * other.weight / weight * np.outer(step, step)
        part = self.residue + step * (other.weight / weight)
        mean = self.mean + part
        residue = (self.mean - mean) + part
        scatter = self.scatter + other.scatter + between
        return GaussianStatistics(weight, mean, scatter, residue)

    def reordered(self, order) -> GaussianStatistics:
        """The same nodes in another order."""
        scatter = self.scatter[np.ix_(order, order)]
        return GaussianStatistics(self.weight, self.mean[order], scatter)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.mean)

    @property
    def covariance(self) -> np.ndarray:
        """Maximum-likelihood covariance, that is, divided by the number of rows."""
        return self.scatter / self.weight

    @property
    def variance(self) -> np.ndarray:
        """Diagonal of the covariance, with exact zeros for constant columns."""
        variance = np.diag(self.scatter) / self.weight
        constant = variance <= (ROUNDING * np.abs(self.mean)) ** 2 + TINY
        return np.where(constant, 0.0, variance)

    @property
    def noise_floor(self) -> np.ndarray:
        """Smallest noise variance that a node may have.

        A share of its variance; a constant column is taken to vary as much as it is
        large, or by 1 if it is zero.
        """
        square = self.mean**2
        size = np.where(square > TINY, square, 1.0)
        variance = self.variance
        return NOISE_SHARE * np.where(variance > 0.0, variance, size)

    @property
    def scale(self) -> np.ndarray:
        """Standard deviation of each node; a constant has the one of its floor."""
        return np.sqrt(self.noise_floor / NOISE_SHARE)

    @property
    def correlation(self) -> np.ndarray:
        """Correlations, 0 for constant columns."""
        scale = self.scale
        correlation = self.covariance / np.outer(scale, scale)
        constant = self.variance == 0.0
        correlation[constant] = correlation[:, constant] = 0.0
        return correlation


def standardise(
    statistics: GaussianStatistics,
) -> tuple[GaussianStatistics, np.ndarray]:
    """Statistics in standard units, and the units.

    Many moves of a search gain the same, and which one a computer takes for the best
    depends on the last digits of the sums. Correlations are rounded, so that rows in
    another order, in other blocks or in other units lead down the same path.
    """
    scale = statistics.scale
    weight = statistics.weight
    scatter = weight * statistics.correlation.round(DIGITS)
    return GaussianStatistics(weight, np.zeros(len(scale)), scatter), scale


def canonical_order(statistics: GaussianStatistics) -> np.ndarray:
    """Order of the nodes that depends on their correlations alone, whatever the signs.

    Nodes that are alike in the sums of powers of their correlations stay as they are.
    """
    squares = statistics.correlation**2
    keys = [(squares**power).sum(axis=0).round(DIGITS - 2) for power in (3, 2, 1)]
    return np.lexsort(keys)
