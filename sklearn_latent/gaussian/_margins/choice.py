"""Which columns are bent: what predicts held-out rows best.

The network is not known yet, so rows are predicted by a normal distribution with a full
covariance matrix, shrunk as far as it helps. It decides as networks do, in a fraction
of their time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._statistics.rows import row_keys
from .._statistics.statistics import LOG_2_PI
from .columns import bent_columns
from .margins import Margin
from .mixtures import fit_mixtures

# Number of parts of the rows, and how many of them are predicted by the others.
N_FOLDS = 4
N_TRIALS = 2
# Rows are drawn if there are more, and nothing is bent if there are fewer.
MOST_ROWS = 4000
FEWEST_ROWS = 40
# Columns that are decided one by one; of more, all are bent or none. One by one they
# predict a table of schools, some of whose columns are sums of others, .17 nats per
# value better, and most tables as well as all together.
MOST_COLUMNS = 50
# Gain of held-out rows, in nats per row, that makes a column worth a decision.
LEAST_GAIN = 0.1
# Difference between predictions, in nats per row, that means nothing.
TIE = 1e-6
# Shares of the identity in the correlation matrix.
SHRINKAGE = np.array([1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7])


def ordered_sample(X, weights) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, weights and folds of at most `MOST_ROWS` rows, drawn by their ranks.

    Ranks, counted from the middle, have no units and no sign; equal rows stay together.
    Rows come in the order of their keys, whatever it was before.
    """
    keys = row_keys(np.array([_middle_ranks(column) for column in X.T]).T)
    if len(X) > MOST_ROWS:
        keep = keys <= np.partition(keys, MOST_ROWS - 1)[MOST_ROWS - 1]
        X, weights, keys = X[keep], weights[keep], keys[keep]
    order = np.argsort(keys, kind="stable")
    X, weights, keys = X[order], weights[order], keys[order]
    return X, weights, (keys >> np.uint64(32)) % np.uint64(N_FOLDS)


def _middle_ranks(column) -> np.ndarray:
    """Distance of the rank of each value from the middle; -1 where it is missing."""
    values, ranks = np.unique(column, return_inverse=True)
    missing = np.isnan(column)
    n_values = len(values) - int(missing.any())
    return np.where(missing, -1.0, np.abs(2.0 * ranks.ravel() - (n_values - 1)))


def choose_bent(X, weights, margins: list[Margin]) -> np.ndarray:
    """Which columns are better bent; X (n_samples, n_features) -> (n_features,)."""
    bent = np.zeros(X.shape[1], dtype=bool)
    bent[[column for column, _ in bent_columns(margins)]] = True
    if not bent.any() or len(X) < FEWEST_ROWS:
        return np.zeros_like(bent)
    X, weights, folds = ordered_sample(X, weights)
    trials = [
        _Trial.of(X, weights, folds == fold)
        for fold in range(N_TRIALS)
        if 0 < (folds == fold).sum() < len(X)
    ]

    def score(chosen):
        parts = [trial.log_likelihoods(chosen) for trial in trials]
        return float(np.sum(parts, axis=0).max())

    chosen = np.zeros_like(bent)
    best, all_bent = score(chosen), score(bent)
    # In parts of the rows no column may be bent, and then rounding must not decide.
    if all_bent > best + TIE * weights.sum():
        chosen, best = bent, all_bent
    if len(bent) <= MOST_COLUMNS:
        chosen = _one_by_one(score, chosen, best, bent, LEAST_GAIN * weights.sum())
    return chosen


def _one_by_one(score, chosen, best, bent, least) -> np.ndarray:
    """Change the column that gains most, as long as one gains enough."""
    while True:
        changes = []
        for column in np.flatnonzero(bent):
            changed = chosen.copy()
            changed[column] = not changed[column]
            changes.append((score(changed), column))
        top, column = max(changes)
        if top <= best + least:
            return chosen
        best = top
        chosen = chosen.copy()
        chosen[column] = not chosen[column]


@dataclass(frozen=True)
class _Trial:
    """Training and held-out moments of columns as they are, then of their scores.

    correlation, products: of training and of held-out rows, (2 * n_features, same)
    weight: of the held-out rows
    log_slope: sums over the held-out rows, (2 * n_features,)
    """

    correlation: np.ndarray
    products: np.ndarray
    weight: float
    log_slope: np.ndarray

    @classmethod
    def of(cls, X, weights, held_out) -> _Trial:
        """Learn from some rows, predict others."""
        train = ~held_out
        margins = fit_mixtures(X[train], weights[train])
        # Seen from their minima, columns that are far from zero keep their digits.
        near = X - np.nan_to_num(np.fmin.reduce(X))
        values, slopes = np.hstack([near, near]), np.zeros((len(X), 2 * X.shape[1]))
        for column, margin in bent_columns(margins):
            seen = ~np.isnan(X[:, column])
            place = X.shape[1] + column
            values[seen, place], slopes[seen, place] = margin.scored(X[seen, column])
        seen = ~np.isnan(values)
        count = np.maximum(weights[train] @ seen[train], 1e-300)
        mean = weights[train] @ np.nan_to_num(values[train]) / count
        values = np.where(seen, values - mean, 0.0)
        scale = np.sqrt(weights[train] @ values[train] ** 2 / count)
        scale[~(scale > 0.0)] = 1.0
        slopes = np.where(seen, slopes - np.log(scale), 0.0)
        products = [
            ((values[part] / scale).T * weights[part]) @ (values[part] / scale)
            for part in (train, held_out)
        ]
        return cls(
            products[0] / weights[train].sum(),
            products[1],
            weights[held_out].sum(),
            weights[held_out] @ slopes[held_out],
        )

    def log_likelihoods(self, bent) -> np.ndarray:
        """Log-likelihood of the held-out rows for each shrinkage."""
        n = len(bent)
        chosen = np.arange(n) + n * bent
        both = np.ix_(chosen, chosen)
        values, vectors = np.linalg.eigh(self.correlation[both])
        squares = np.einsum("ij,ij->j", vectors, self.products[both] @ vectors)
        share = SHRINKAGE[:, None]
        values = (1.0 - share) * np.maximum(values, 0.0) + share
        density = self.weight * (np.log(values) + LOG_2_PI) + squares / values
        return self.log_slope[chosen].sum() - 0.5 * density.sum(axis=1)


def few_values(X) -> np.ndarray:
    """Columns whose values are so few that they look like counts or grades."""
    few = np.zeros(X.shape[1], dtype=bool)
    for number, column in enumerate(X.T):
        column = column[~np.isnan(column)]
        n_different = len(np.unique(column))
        few[number] = 1 < n_different <= np.sqrt(len(column)) - 3.0
    return few
