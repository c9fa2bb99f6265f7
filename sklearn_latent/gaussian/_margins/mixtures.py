"""Densities of columns as mixtures of normal distributions, all columns at once.

Each column is reduced to at most `N_POINTS` weighted points, so that the time of EM
does not depend on the number of rows. Columns are standardised first: neither units nor
the order of rows nor how weights are split among equal values matters.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from scipy.special import ndtr, ndtri

from ..._core.climb import climb
from ..._core.criteria import bic_price
from .._statistics.statistics import LOG_2_PI
from .margins import Margin, MixtureMargin, NormalMargin

# Largest number of components, and fewest rows for each. With 8, and half of the
# points, networks of 50 bent columns had 2.3 wrong pairs at 5,000 rows instead of 0.3.
MOST_COMPONENTS = 16
ROWS_PER_COMPONENT = 10
# Number of components in a row that may fail to improve the criterion.
PATIENCE = 2
# Distance from a normal distribution (Anderson and Darling) below which no mixture is
# tried. The least of 307 columns that a mixture describes better had 0.8; three of four
# that are normal have less than this.
NEARLY_NORMAL = 0.6
# Points of a column.
N_POINTS = 256
# Smallest standard deviation of a component, as a share of the narrowest interval that
# holds the root of the number of different values. Repeated values count once, so that
# their density stays bounded; a tenth of this share gains on columns with atoms alone.
RESOLUTION_SHARE = 0.01
# The same as a share of the standard deviation of the column, for numerical reasons.
LEAST_DEVIATION = 1e-6
# Decimals of standardised values.
DIGITS = 12
# Maximum number of EM iterations and gain per row at which they end. Ten times as many
# to a tenth of the gain predicted no better.
MAX_ITER = 100
TOL = 1e-5
# Columns up to which several numbers of components are tried at once: of few columns
# most of the time goes into calls, of many into numbers.
FEW_COLUMNS = 16
# Log-density of a component that is not there.
NOTHING = -1e300


@dataclass(frozen=True)
class _Columns:
    """Columns in standard units, as weighted points.

    points, shares: (n_columns, n_points); shares sum to 1, surplus points have none
    floor: smallest standard deviation of a component, (n_columns,)
    weight: number of rows, or sum of their weights, (n_columns,)
    centre, scale: units, (n_columns,); a negative scale mirrors, 0 is a constant
    """

    points: np.ndarray
    shares: np.ndarray
    floor: np.ndarray
    weight: np.ndarray
    centre: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, X, sample_weight) -> _Columns:
        """Summaries of columns; NaN is missing."""
        columns = [_summary(column, sample_weight) for column in X.T]
        longest = max((len(points) for points, *_ in columns), default=0)
        points, shares = np.zeros((2, len(columns), longest))
        for row, (own, own_shares, *_) in enumerate(columns):
            points[row, : len(own)], shares[row, : len(own)] = own, own_shares
        rest = np.array([column[2:] for column in columns]).reshape(-1, 4)
        return cls(points, shares, *rest.T)

    def some(self, which) -> _Columns:
        """Some of the columns."""
        return _Columns(*(getattr(self, part.name)[which] for part in fields(self)))


def _summary(column, sample_weight):
    """Points, shares, floor, weight, centre and scale of a column."""
    seen = ~np.isnan(column)
    if not seen.any():
        return np.zeros(1), np.ones(1), 1.0, 0.0, 0.0, 0.0
    weights = None if sample_weight is None else sample_weight[seen]
    values, group = np.unique(column[seen], return_inverse=True)
    counts = np.bincount(group.ravel(), weights, minlength=len(values)).astype(float)
    weight = counts.sum()
    shares = counts / weight
    # Seen from one of the values, a column that is far from zero keeps its digits.
    origin = values[np.searchsorted(np.cumsum(shares), 0.5).clip(0, len(values) - 1)]
    values = values - origin
    mean = shares @ values
    scale = np.sqrt(shares @ (values - mean) ** 2)
    if not scale > 0.0:
        return np.zeros(1), np.ones(1), 1.0, weight, origin, 0.0
    # To so many digits values in other units are the same, also in mirrored ones.
    points = ((values - mean) / scale).round(DIGITS)
    if shares @ points**3 < 0.0:
        points, shares, scale = -points[::-1], shares[::-1], -scale
    points, shares = _merged(points, shares)
    window = max(2, int(np.ceil(np.sqrt(len(values)))))
    narrowest = (values[window - 1 :] - values[: len(values) - window + 1]).min()
    floor = max(RESOLUTION_SHARE * narrowest / abs(scale), LEAST_DEVIATION)
    return points, shares, floor, weight, origin + mean, scale


def _distances(columns: _Columns) -> np.ndarray:
    """Distance of each column from a normal distribution (Anderson and Darling)."""
    expected = ndtr(columns.points).clip(1e-12, 1.0 - 1e-12)
    found = np.cumsum(columns.shares, axis=1) - 0.5 * columns.shares
    squares = (found - expected) ** 2 / (expected * (1.0 - expected))
    return columns.weight * (columns.shares * squares).sum(axis=1)


def _merged(values, shares):
    """At most `N_POINTS` points: means of sorted values, of fewer ones in the tails."""
    if len(values) <= N_POINTS:
        return values, shares
    z = ndtri(np.cumsum(shares) - 0.5 * shares)
    place = np.searchsorted(np.linspace(z[0], z[-1], N_POINTS + 1)[1:-1], z)
    first = np.flatnonzero(np.diff(place, prepend=-1))
    merged = np.add.reduceat(shares, first)
    return np.add.reduceat(shares * values, first) / merged, merged


def fit_mixtures(X, sample_weight=None) -> list[Margin]:
    """Margins of columns: mixtures where they predict better than one normal density.

    A column is bent if some mixture has a better BIC than the normal density, and then
    has as many components as Akaike's criterion says: few enough not to bend columns by
    chance, enough to follow those that are bent.

    X (n_samples, n_features), NaN is missing; sample_weight (n_samples,).
    """
    columns = _Columns.of(np.asarray(X, dtype=float), sample_weight)
    margins: list[Margin] = [NormalMargin() for _ in columns.weight]
    for number, (weight, mean, deviation) in _best_mixtures(columns).items():
        # As if one more row came from the normal density of the column: no value has a
        # density far below that one.
        n_rows = columns.weight[number]
        weight = np.append(weight * n_rows, 1.0) / (n_rows + 1.0)
        mean, deviation = np.append(mean, 0.0), np.append(deviation, 1.0)
        centre, scale = columns.centre[number], columns.scale[number]
        margins[number] = MixtureMargin(
            weight / weight.sum(), centre + scale * mean, abs(scale) * deviation
        )
    return margins


def _best_mixtures(columns: _Columns) -> dict[int, tuple]:
    """Weights, means and deviations of the columns that are not normal."""
    usable = (columns.scale != 0.0) & (_distances(columns) >= NEARLY_NORMAL)
    # Whatever the first number of components gains, it is the best so far.
    failures = np.where(usable, -1, PATIENCE)
    most = np.minimum(columns.weight // ROWS_PER_COMPONENT, MOST_COMPONENTS)
    tried = np.ones(len(usable))
    best_bic, best_aic = np.zeros(len(usable)), np.full(len(usable), -np.inf)
    found: dict[int, tuple] = {}
    while True:
        # All numbers that will be tried whatever the others gain, or the next.
        more = np.minimum(PATIENCE - failures, most - tried).clip(0).astype(int)
        if np.count_nonzero(more) > FEW_COLUMNS:
            more = np.minimum(more, 1)
        numbers = np.repeat(np.arange(len(more)), more)
        if not len(numbers):
            return {number: found[number] for number in found if best_bic[number] > 0.0}
        step = np.arange(len(numbers)) - np.repeat(np.cumsum(more) - more, more)
        n_components = (tried[numbers] + step + 1).astype(int)
        tried += more
        objective, parameters = _fit(columns.some(numbers), n_components)
        gains = columns.weight[numbers] * (objective + 0.5 * (LOG_2_PI + 1.0))
        for place, number in enumerate(numbers.tolist()):
            extra = 3 * (n_components[place] - 1)
            bic = gains[place] - bic_price(columns.weight[number]) * extra
            best_bic[number] = max(best_bic[number], bic)
            failures[number] += 1
            if gains[place] - extra > best_aic[number]:
                best_aic[number], failures[number] = gains[place] - extra, 0
                own = slice(n_components[place])
                found[number] = tuple(part[place, own] for part in parameters)


def _fit(columns: _Columns, n_components):
    """Mean log-density of each column, and parameters (n_columns, most components).

    n_components: of each column; those beyond have no weight.
    """
    points, shares = columns.points, columns.shares
    powers = np.stack([np.ones_like(points), points, points**2], axis=1)
    weighted = (powers * shares[:, None]).transpose(0, 2, 1)
    floor, n_rows = columns.floor[:, None], columns.weight[:, None]
    surplus = np.arange(n_components.max()) >= n_components[:, None]
    constant = np.where(surplus, NOTHING, -0.5 * LOG_2_PI)

    def maximize(_, responsibilities):
        total, first, second = (responsibilities @ weighted).transpose(2, 0, 1)
        total = total + 1e-12
        mean = first / total
        # A few rows by themselves, such as an outlier, do not make a narrow component.
        least = np.maximum(floor, (n_rows * total) ** -2.0) ** 2
        variance = np.maximum(second / total - mean**2, least)
        return total / total.sum(axis=1, keepdims=True), mean, variance

    def expect(state):
        weight, mean, variance = state
        terms = np.empty((*mean.shape, 3))
        terms[:, :, 0] = np.log(weight) - 0.5 * (np.log(variance) + mean**2 / variance)
        terms[:, :, 0] += constant
        np.divide(mean, variance, out=terms[:, :, 1])
        np.divide(-0.5, variance, out=terms[:, :, 2])
        density = terms @ powers
        top = density.max(axis=1, keepdims=True)
        density -= top
        np.exp(density, out=density)
        total = density.sum(axis=1, keepdims=True)
        density /= total
        np.log(total, out=total)
        total += top
        return (shares * total[:, 0]).sum(axis=1), density

    start = maximize(None, _first_groups(shares, n_components))
    ascent = climb(expect, maximize, start, tol=TOL, max_iter=MAX_ITER, patient=False)
    weight, mean, variance = ascent.state
    return ascent.objective, (weight, mean, np.sqrt(variance))


def _first_groups(shares, n_components) -> np.ndarray:
    """Responsibilities to start from: groups of neighbours, fewer in the tails.

    shares (n_columns, n_points), n_components (n_columns,) -> (n_columns, most
    components, n_points).
    """
    number, n_components = np.arange(n_components.max()), n_components[:, None]
    edges = ndtr(4.0 * number[1:] / n_components - 2.0)
    edges[number[1:] >= n_components] = np.inf
    middle = np.cumsum(shares, axis=1) - 0.5 * shares
    group = (middle[:, None] > edges[:, :, None]).sum(axis=1)
    own = group[:, None] == number[:, None]
    others = np.where(number < n_components, 0.1 / n_components, 0.0)
    return 0.9 * own + others[:, :, None]
