"""Rows as numbers that are standard normal if they follow the network."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from .._table_margins import bent_columns
from .completed_scores import draw_class

# Rows that are drawn from networks whose distribution has no formula, and their values.
DRAWN, MOST_DRAWN_VALUES = 20_000, 1 << 22
# Residuals of this size, in spreads of their column, are lost digits of products, and
# in values of their column, of sums: of exact copies they are 1e-16 of either.
ROUNDING, DIGITS = 1e-8, 1e-14


class Standard(NamedTuple):
    """Rows as numbers that are standard normal if they follow the network.

    scores: of each feature by itself, (n, n_features)
    levelled: the same; of columns whose margin was estimated, by their ranks alone, so
        that small errors of the tails of margins are not taken for those of the network
    residuals: of each feature given those before it, from levelled scores; 0 if they
        are nothing but rounding, (n, n_features)
    before: ``[i, j]``, whether feature i must say nothing about the residual of j
    centre, spread: mean and standard deviation of each feature, (n_features,)
    correlation: of the scores, (n_features, n_features)
    error: standard error of the correlations, on Fisher's scale and of one row
    bend: ``[i, j]``, by how much ranks add to the variance of the dependence of the
        residual of j on the square of i, (n_features, n_features)
    n_drawn: rows that these were estimated from; infinite if there are formulas
    """

    scores: np.ndarray
    levelled: np.ndarray
    residuals: np.ndarray
    before: np.ndarray
    centre: np.ndarray
    spread: np.ndarray
    correlation: np.ndarray
    error: np.ndarray | float
    bend: np.ndarray
    n_drawn: float


def standardise(network, Z) -> Standard:
    """Scores and residuals of complete rows `Z`, normal scores of the columns."""
    if network.is_jointly_gaussian:
        return _standardise_linear(network, Z)
    return _standardise_drawn(network, Z)


def _standardise_linear(network, Z) -> Standard:
    """By formulas: given the features before it, each feature is normal."""
    n = network.n_features
    mean, covariance = (np.asarray(part) for part in network.joint())
    mean, covariance = mean[:n], covariance[:n, :n]
    spread = np.sqrt(np.diagonal(covariance))
    order = network.topological_order
    order = order[order < n]
    place = np.argsort(order)
    before = place[:, None] < place
    correlation = covariance / np.outer(spread, spread)
    scores = (Z - mean) / spread
    levelled = scores.copy()
    bent = [j for j, _ in bent_columns(network.margins)]
    levelled[:, bent] = normal_ranks(scores[:, bent])
    residuals, scale = np.empty_like(scores), np.empty_like(spread)
    factor = _root(correlation[np.ix_(order, order)])
    residuals[:, order] = solve_triangular(factor, levelled[:, order].T, lower=True).T
    scale[order] = np.diagonal(factor)
    residuals = _beyond_rounding(residuals, scale * spread, Z)
    parts = np.zeros_like(correlation)
    parts[:, order] = solve_triangular(factor, np.eye(n)[order], lower=True).T
    bend = _bend_of_ranks(correlation, parts, bent)
    known = mean, spread, correlation, 1.0, bend, np.inf
    return Standard(scores, levelled, residuals, before, *known)


def _bend_of_ranks(correlation, parts, bent) -> np.ndarray:
    """Variance that ranks of some columns add to dependence on squares, times rows.

    Ranks differ from scores by a curve of the score, whose part in its square has a
    variance of 1/3n, as a third Hermite polynomial has. Residuals add up these curves
    as they do scores: `parts` (n_features, n_features), from columns to residuals.
    """
    bend = np.zeros_like(correlation)
    for j in range(len(bend)) if bent else ():
        own = [k for k in bent if abs(parts[k, j]) > 1e-9]
        curves = correlation[:, own] ** 2 * parts[own, j]
        both = correlation[np.ix_(own, own)] ** 3
        bend[:, j] = (curves @ both * curves).sum(axis=1) / 3.0
        if j in own:
            bend[:, j] -= 2.0 * correlation[:, j] ** 4
    return np.maximum(bend, 0.0)


def normal_ranks(columns) -> np.ndarray:
    """Normal scores of the ranks of columns, the same for equal values."""
    return ndtri(rankdata(columns, axis=0) / (len(columns) + 1.0))


def _beyond_rounding(residuals, scale, Z) -> np.ndarray:
    """Residuals; 0 in columns where they are rounding, which depends on the processor.

    scale: what a residual is to be multiplied with to be in the units of `Z`
    """
    size = np.abs(residuals * scale).max(axis=0, initial=0.0)
    least = ROUNDING * Z.std(axis=0) + DIGITS * np.abs(Z).max(axis=0, initial=0.0)
    return np.where(size > least, residuals, 0.0)


def _root(correlation) -> np.ndarray:
    """Cholesky factor, also where columns repeat each other to the last digit."""
    for ridge in (0.0, 1e-12, 1e-9, 1e-6):
        try:
            return np.linalg.cholesky(correlation + ridge * np.eye(len(correlation)))
        except np.linalg.LinAlgError:
            continue
    return np.eye(len(correlation))


def _standardise_drawn(network, Z) -> Standard:
    """By ranks among rows that are drawn from the network."""
    n = network.n_features
    size = int(np.clip(MOST_DRAWN_VALUES // max(n, 1), 1000, DRAWN))
    drawn = network._draw(size, np.random.RandomState(0))[:, :n]
    level = Z.copy()
    for j, _ in bent_columns(network.margins):
        level[:, j] = np.quantile(drawn[:, j], ndtr(normal_ranks(Z[:, j])))
    scores, levelled, own = (_rank_scores(drawn, rows) for rows in (Z, level, drawn))
    # A feature with latent parents has no residual; its score takes its place.
    clear = ~network.adjacency[n:, :n].any(axis=0)
    noise = [np.where(clear, _noise(network, rows), rows) for rows in (drawn, level)]
    residuals = _rank_scores(*noise)
    residuals[:, ~_beyond_rounding(noise[1], 1.0, Z).any(axis=0)] = 0.0
    place = np.argsort(network.topological_order)[:n]
    before = (place[:, None] < place) & clear
    correlation = np.clip(own.T @ own / size, -1.0, 1.0)
    return Standard(
        scores,
        levelled,
        residuals,
        before,
        drawn.mean(axis=0),
        np.maximum(drawn.std(axis=0), 1e-300),
        correlation,
        _correlation_error(own, correlation),
        np.zeros_like(correlation),
        size,
    )


def _noise(network, rows) -> np.ndarray:
    """Noise of the features; of classes, in one that is drawn for each row.

    Classes that are drawn given the row leave the noise that the network expects.
    """
    if not network.classes:
        return _noise_of(network, rows)
    label = draw_class(network, rows, np.random.RandomState(0))
    n = network.n_features
    noise = np.empty(rows.shape)
    for number, own in enumerate(network.classes):
        members = label == number
        size = np.sqrt(own.noise_variance[:n])
        noise[members] = _noise_of(own, rows[members]) / size
    return noise


def _noise_of(network, rows) -> np.ndarray:
    """Noise of the features, in its scale."""
    n = network.n_features
    mean = network.conditional_means(np.pad(rows, [(0, 0), (0, network.n_latents)]))
    mean = mean[:, :n]
    noise, root = network._noise, network._noise.root
    squares = root.squared_error(rows, mean)
    if root is not noise:
        has_parents = network.adjacency[:, :n].any(axis=0)
        mean = np.where(has_parents, noise.clip(mean), mean)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            squares = np.where(has_parents, noise.squared_error(rows, mean), squares)
    return np.sign(rows - mean) * np.sqrt(squares)


def _rank_scores(drawn, rows) -> np.ndarray:
    """Normal scores of the ranks of rows among drawn ones, column by column."""
    scores = np.empty(rows.shape)
    for j, column in enumerate(rows.T):
        ordered = np.sort(drawn[:, j])
        below = np.searchsorted(ordered, column, side="left")
        upto = np.searchsorted(ordered, column, side="right")
        scores[:, j] = ndtri((0.5 * (below + upto) + 0.5) / (len(ordered) + 1.0))
    return scores


def _correlation_error(scores, correlation) -> np.ndarray:
    """Standard error of the correlations of scores that are not jointly normal.

    By the delta method; 1 where they are jointly normal.
    """
    n = len(scores)
    squares = scores**2
    both = squares.T @ squares / n
    cubed = (squares * scores).T @ scores / n
    fourth = (squares**2).mean(axis=0)
    r = correlation
    variance = both - r * (cubed + cubed.T)
    variance += 0.25 * r**2 * (fourth[:, None] + fourth + 2.0 * both)
    return np.sqrt(np.maximum(variance, 1e-6)) / np.maximum(1.0 - r**2, 1e-6)
