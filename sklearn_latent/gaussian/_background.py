"""Rows that may be anywhere, so that a far one cannot outweigh all others."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._core.climb import climb
from .._core.persistence import Array, Persistent
from .._core.validation import check_numbers
from ._rows import Rows
from ._table_margins import Margins, bent_columns


class Background(Persistent):
    """A share of the rows that do not follow a network: each value is Cauchy.

    Parameters
    ----------
    share : float
        Share of these rows, between 0 and 1.
    center, scale : array-like of shape (n_features,)
        Median and half of the distance between the quartiles of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.gaussian._background import Background
    >>> background = Background(0.01, [0.0], [1.0])
    >>> background.log_densities(np.array([[0.0], [1e3]])).round(1).tolist()
    [[-1.1], [-15.0]]
    """

    _fields = {  # noqa: RUF012
        "share": Array(ndim=0),
        "center": Array(ndim=1),
        "scale": Array(ndim=1),
    }

    def __init__(self, share: ArrayLike, center: ArrayLike, scale: ArrayLike) -> None:
        self.share = float(check_numbers("share", share))
        self.center = np.array(check_numbers("center", center))
        self.scale = np.array(check_numbers("scale", scale))
        if not 0.0 < self.share < 1.0:
            raise ValueError(f"share must be between 0 and 1, got {self.share}.")
        if self.center.ndim != 1 or self.center.shape != self.scale.shape:
            raise ValueError(
                "center and scale must have one value per feature, got shapes "
                f"{self.center.shape} and {self.scale.shape}."
            )
        if not (self.scale > 0.0).all():
            raise ValueError(f"scale must be positive, got {self.scale.min()}.")
        self.center.flags.writeable = self.scale.flags.writeable = False

    @classmethod
    def of(cls, rows: Rows) -> Background:
        """The smallest share that rows support, around where they are."""
        units = [_center_and_scale(column, rows.counts) for column in rows.X.T]
        return cls(1.0 / (rows.weight + 1.0), *np.array(units).reshape(-1, 2).T)

    def fitted(self, own, far, rows: Rows) -> Background:
        """With the most probable share, as if one more row were anywhere.

        own, far: log-densities of the rows by a network, and by the background
        """

        def expect(share):
            logs = np.log1p(-share), np.log(share)
            both = np.logaddexp(logs[0] + own, logs[1] + far)
            return rows.sum(both) + sum(logs), rows.sum(np.exp(logs[1] + far - both))

        def maximize(_, n_far):
            return (n_far + 1.0) / (rows.weight + 2.0)

        found = climb(expect, maximize, self.share, tol=1e-9, max_iter=100)
        return Background(found.state, self.center, self.scale)

    def log_densities(self, X, margins: Margins = None) -> np.ndarray:
        """Log-density of each value; 0 where it is missing, (n_samples, n_features)."""
        logs = -np.log(np.pi * self.scale)
        logs = logs - 2.0 * np.log(np.hypot(1.0, (X - self.center) / self.scale))
        for j, margin in bent_columns(margins):
            at, log_share, log_rest = margin.atoms_of(X[:, j], self.share)
            logs[:, j] = np.where(at, log_share, logs[:, j] + log_rest)
        return np.where(np.isnan(X), 0.0, logs)

    def mixed(self, own, X, margins: Margins) -> np.ndarray:
        """Log-density of rows from that of a network."""
        far = self.log_densities(X, margins).sum(axis=1)
        return np.logaddexp(np.log1p(-self.share) + own, np.log(self.share) + far)

    def scatter(self, X, margins: Margins, rng) -> np.ndarray:
        """Drawn rows, of which a share is replaced."""
        far = np.flatnonzero(rng.uniform(size=len(X)) < self.share)
        drawn = rng.standard_cauchy((len(far), X.shape[1]))
        drawn = self.center + self.scale * drawn
        for j, margin in bent_columns(margins):
            # Atoms have their share here, too, but go with nothing.
            others = X[rng.permutation(len(X))[: len(far)], j]
            drawn[:, j] = np.where(margin.atoms_of(others)[0], others, drawn[:, j])
        X[far] = drawn
        return X


def _center_and_scale(column, weights) -> tuple[float, float]:
    """Median and half of the distance between quartiles, of a column with gaps."""
    seen = ~np.isnan(column)
    values, weights = column[seen], weights[seen]
    if not len(values):
        return 0.0, 1.0

    def quantiles(values):
        shares = [0.25, 0.5, 0.75]
        return np.quantile(values, shares, weights=weights, method="inverted_cdf")

    # From both ends: a column upside down is the same upside down.
    low, center, high = 0.5 * (quantiles(values) - quantiles(-values)[::-1])
    # Of a column of many equal values, the mean distance from them.
    away = float(np.average(np.abs(values - center), weights=weights))
    return center, 0.5 * (high - low) or away or abs(center) or 1.0
