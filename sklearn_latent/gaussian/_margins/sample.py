"""Rows that were read: their sums, and a sample of them to estimate margins from.

Margins come before sums of scores, so rows are needed twice. Arrays and Dask
collections are read again; of batches, which are seen once, a sample is kept. Up to
its limit the sample is all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..._tables.blocks import Blocks
from .._statistics.incomplete import distinct_rows
from .._statistics.rows import Rows, RowStatistics, row_keys
from .atoms import AtomMargin
from .columns import Margins, to_scores
from .margins import MixtureMargin, NormalMargin

# Values of the rows that are kept: 32 megabytes. A thousandth of them would still tell
# a margin to about a percent.
MOST_VALUES = 1 << 22


@dataclass(frozen=True, eq=False)
class RowSample:
    """Different rows and how often they came, as many as fit; instances add up.

    Which rows are kept depends on their values alone, so that neither their order nor
    how they are split matters.

    X: rows, NaN is missing, (n_rows, n_features)
    weights: their weights, (n_rows,)
    total: sum of the weights of all rows, kept or not
    """

    X: np.ndarray
    weights: np.ndarray
    total: float

    @classmethod
    def of(cls, X, weights=None) -> RowSample:
        """Sample of rows of positive weight."""
        total = float(len(X) if weights is None else weights.sum())
        return cls(*distinct_rows(*_smallest(X, weights)), total)

    def __add__(self, other: RowSample) -> RowSample:
        X = np.vstack([self.X, other.X])
        weights = np.concatenate([self.weights, other.weights])
        kept = distinct_rows(*_smallest(X, weights))
        return RowSample(*kept, self.total + other.total)

    @property
    def is_all(self) -> bool:
        """Whether no row was left out."""
        return bool(self.weights.sum() > (1.0 - 1e-9) * self.total)

    @property
    def rows(self) -> Rows:
        """The sample as rows that weigh as much as all."""
        factor = 1.0 if self.is_all else self.total / self.weights.sum()
        return Rows(self.X, self.weights * factor)


def _smallest(X, weights):
    """Rows of the smallest keys, as many different ones as fit."""
    most = max(MOST_VALUES // max(X.shape[1], 1), 1)
    if len(X) <= most:
        return X, weights
    keys = row_keys(X)
    different = np.unique(keys)
    keep = keys <= different[min(most, len(different)) - 1]
    return X[keep], None if weights is None else weights[keep]


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Complete rows: their sums, and a sample if margins need one; instances add up."""

    statistics: RowStatistics
    sample: RowSample | None

    @classmethod
    def of(cls, rows: Rows, sampled: bool) -> SeenRows:
        """Rows in memory."""
        sample = RowSample.of(rows.X, rows.weights) if sampled else None
        return cls(RowStatistics.of(rows.X, rows.weights), sample)

    def __add__(self, other: SeenRows) -> SeenRows:
        if self.sample is None or other.sample is None:
            return SeenRows(self.statistics + other.statistics, None)
        return SeenRows(self.statistics + other.statistics, self.sample + other.sample)


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Sums of scores of complete rows, and of their log-slopes; instances add up."""

    statistics: RowStatistics
    log_slope: float

    @classmethod
    def of(cls, rows: Rows, margins) -> ScoredRows:
        """Rows in memory."""
        scores, log_slope = _score_rows(rows, margins)
        return cls(RowStatistics.of(scores.X, scores.weights), log_slope)

    @classmethod
    def of_seen(cls, seen: SeenRows, margins: Margins, again) -> ScoredRows:
        """Further rows, with margins that are known already."""
        if margins is not None and seen.sample is None:
            raise ValueError(
                "margins must not become 'normal' after a fit with others; use a new "
                "or cloned estimator."
            )
        statistics, log_slope = score(seen, margins, again)
        assert isinstance(statistics, RowStatistics)
        return cls(statistics, log_slope)

    def __add__(self, other: ScoredRows) -> ScoredRows:
        return ScoredRows(
            self.statistics + other.statistics, self.log_slope + other.log_slope
        )


def score(
    seen: Rows | SeenRows, margins: Margins, again: Blocks | None = None
) -> tuple[Rows | RowStatistics, float]:
    """Scores of rows, or sums of them, and the sum of their log-slopes.

    again: blocks that can be read again; else sums are those of the sample.
    """
    if isinstance(seen, Rows):
        return _score_rows(seen, margins)
    if margins is None or seen.sample is None:
        return seen.statistics, 0.0
    if again is None or seen.sample.is_all:
        scored = ScoredRows.of(seen.sample.rows, margins)
    else:
        scored = again.sum(_score_block, margins)
    return scored.statistics, scored.log_slope


def rank_statistics(seen: SeenRows, margins: Margins) -> RowStatistics | None:
    """Sums of normal scores by rank of all rows; None if margins give the scores.

    To find a graph, ranks need no margins, whose misfit would show as edges. Once a
    column is bent, those that are not have ranks too: ranks of columns that go together
    err together, and a bend that was missed does not matter. In 200 rows of 50 columns
    ranks of all lead to 3.6 wrong pairs, of those that are bent to 6.0.
    """
    sample = seen.sample
    bent = MixtureMargin, AtomMargin
    smooth = any(isinstance(margin, bent) for margin in margins or ())
    if sample is None or not sample.is_all or margins is None or not smooth:
        return None
    rows = sample.rows
    scores = to_scores(margins, rows.X)[0]
    for column, margin in enumerate(margins):
        if isinstance(margin, (*bent, NormalMargin)):
            scores[:, column] = _rank_scores(rows.X[:, column], rows.weights)
    return RowStatistics.of(scores, rows.weights)


def _rank_scores(column, weights) -> np.ndarray:
    """Normal quantiles of the middle ranks of values, as Blom (1958) places them."""
    values, place = np.unique(column, return_inverse=True)
    counts = np.bincount(place, weights, minlength=len(values))
    below = np.cumsum(counts) - 0.5 * counts
    return ndtri((below + 0.125) / (counts.sum() + 0.25))[place]


def _score_rows(rows: Rows, margins: Margins) -> tuple[Rows, float]:
    """Scores of rows, and the weighted sum of their log-slopes."""
    if margins is None:
        return rows, 0.0
    Z, log_slope = to_scores(margins, rows.X)
    return Rows(Z, rows.weights), rows.sum(log_slope)


def _score_block(block, margins) -> ScoredRows:
    """Sums of the scores of a block that was read before."""
    return ScoredRows.of(Rows.of(*block), margins)
