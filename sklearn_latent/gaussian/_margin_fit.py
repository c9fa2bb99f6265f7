"""Margins of the columns of a table: which have atoms, which are bent, and how.

A column is reduced to at most `N_POINTS` weighted points, so that the time of EM does
not depend on the number of rows. Columns are standardised first: neither units nor the
order of rows nor how weights are split among equal values matters.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from .._core.choose import grow
from .._core.climb import climb
from .._core.criteria import aic, bic, bic_price
from .._core.warn import warn
from .._tables.blocks import Blocks
from .._tables.thin import evenly_spaced
from ..exceptions import PoorDataWarning
from ._atom_margins import AtomMargin
from ._margin_kinds import Margin, MixtureMargin, NormalMargin
from ._rows import Rows, RowSums, row_keys
from ._statistics import LOG_2_PI
from ._table_margins import Margins, bent_columns, check_margins, to_scores

# Largest number of components. With 8, and half of the points, networks of 50 bent
# columns had 2.3 wrong pairs at 5,000 rows instead of 0.3.
MOST_COMPONENTS = 16
# Points of a column.
N_POINTS = 256
# Distance from a normal distribution (Anderson and Darling) below which no mixture is
# tried. The least of 307 columns that a mixture describes better had 0.8; three of four
# that are normal have less than this.
NEARLY_NORMAL = 0.6
# Smallest standard deviation of a component, as a share of the narrowest interval that
# holds the root of the number of different values. Repeated values count once, so that
# their density stays bounded; a tenth of this share gains on columns with atoms alone.
RESOLUTION_SHARE = 0.01
# Share of rows from which a value is an atom, if it is so many times as frequent as
# the next value that is none, and as each of those nearest to it, of which there are so
# many on either side. Rounded columns repeat values, too: without the first rule some
# 20 of 1,201 real columns had atoms at round numbers or prices; without the second, and
# with a few more columns, counts that fall off fast would have.
LEAST_SHARE = 0.05
TIMES_NEXT, TIMES_NEAREST = 2.5, 5.0
N_NEIGHBOURS = 3
# Values beside atoms below which a column has no density to speak of.
FEWEST_VALUES = 8
# Rows that are drawn if there are more.
MOST_ROWS = 4000
# Gain in nats per row that makes a column worth a change: without, held-out rows of 20
# tables are .005 nats per value less likely.
LEAST_GAIN = 0.05


def estimate_margins(setting, seen: Rows | RowSums, names, *, atoms: bool) -> Margins:
    """Margins of all features; None if these are their own scores.

    atoms: whether frequent values may have a probability
    """
    if isinstance(setting, str) and setting == "normal":
        return None
    sample = seen.sample() if isinstance(seen, Rows) else seen.kept
    if sample is None:
        raise ValueError(
            "margins must stay 'normal' once partial_fit or fit had them so, because "
            f"no rows were kept, got {setting!r}."
        )
    few = np.flatnonzero(few_values(ordered_sample(sample.X, sample.counts)[0]))
    if len(few):
        shown = ", ".join(names[i] for i in few[:10])
        warn(
            f"{len(few)} of {len(names)} features have few different values, as counts "
            f"and grades have, and are treated as continuous ones: {shown}"
            f"{', ...' if len(few) > 10 else ''}.",
            PoorDataWarning,
        )
    return check_margins(_resolved(setting, sample, atoms=atoms), len(names))


def _resolved(setting, sample: Rows, *, atoms: bool) -> list[Margin]:
    """Margins that a setting stands for, given rows to estimate them from."""
    n_features, weights = sample.n_features, sample.counts
    if isinstance(setting, Margin):
        return [setting] * n_features
    X, found = _without_atoms(sample.X, weights) if atoms else (sample.X, {})
    margins = fit_mixtures(X, weights)
    wanted: list = [setting] * n_features if isinstance(setting, str) else list(setting)
    if len(wanted) != n_features:
        raise ValueError(
            f"margins must have one entry per feature, {n_features}, got {len(wanted)}."
        )
    if setting == "auto":
        bent = choose_bent(X, weights, margins)
        wanted = ["smooth" if smooth else "normal" for smooth in bent]
    chosen = [
        own
        if isinstance(own, Margin)
        else margin
        if own == "smooth"
        else NormalMargin()
        for own, margin in zip(wanted, margins, strict=True)
    ]
    for column, (places, share) in found.items():
        if isinstance(setting, str) or setting[column] == "smooth":
            rest = chosen[column]
            if not isinstance(rest, MixtureMargin):
                rest = _normal_mixture(X[:, column], weights)
            chosen[column] = AtomMargin(places, share, rest)
    return chosen


def _normal_mixture(column, weights) -> MixtureMargin:
    """One component; NaN is missing."""
    seen = ~np.isnan(column)
    mean = np.average(column[seen], weights=weights[seen])
    variance = np.average((column[seen] - mean) ** 2, weights=weights[seen])
    return MixtureMargin([1.0], [mean], [np.sqrt(variance)])


def few_values(X) -> np.ndarray:
    """Columns whose values are so few that they look like counts or grades."""
    few = np.zeros(X.shape[1], dtype=bool)
    for number, column in enumerate(X.T):
        column = column[~np.isnan(column)]
        n_different = len(np.unique(column))
        few[number] = 1 < n_different <= np.sqrt(len(column)) - 3.0
    return few


def ordered_sample(X, weights) -> tuple[np.ndarray, np.ndarray]:
    """At most `MOST_ROWS` rows and weights, drawn by their ranks, whatever their order.

    Ranks, counted from the middle, have no units and no sign.
    """
    keys = row_keys(np.array([_middle_ranks(column) for column in X.T]).T)
    order = np.argsort(keys, kind="stable")[evenly_spaced(len(X), MOST_ROWS)]
    return X[order], weights[order]


def _middle_ranks(column) -> np.ndarray:
    """Distance of the rank of each value from the middle; -1 where it is missing."""
    values, ranks = np.unique(column, return_inverse=True)
    missing = np.isnan(column)
    n_values = len(values) - int(missing.any())
    return np.where(missing, -1.0, np.abs(2.0 * ranks.ravel() - (n_values - 1)))


# Atoms


def _without_atoms(X, weights) -> tuple[np.ndarray, dict]:
    """Rows without the values that have a probability, and these, by column.

    Counts and grades have no density beside them.
    """
    rest, found = X.copy(), {}
    for column in np.flatnonzero(~few_values(X)):
        values, share = find_atoms(X[:, column], weights)
        if not len(values):
            continue
        left = np.where(np.isin(X[:, column], values), np.nan, X[:, column])
        if len(np.unique(left[~np.isnan(left)])) >= FEWEST_VALUES:
            rest[:, column], found[column] = left, (values, share)
    return rest, found


def find_atoms(column, weights) -> tuple[np.ndarray, np.ndarray]:
    """Values that a density cannot explain, and their shares; NaN is missing."""
    seen = ~np.isnan(column)
    values, place = np.unique(column[seen], return_inverse=True)
    counts = np.bincount(place.ravel(), weights[seen], minlength=len(values))
    share = counts / max(counts.sum(), 1e-300)
    order = np.argsort(-counts, kind="stable")
    frequent = np.append(counts[order], 0.0)
    stands_out = share[order] >= LEAST_SHARE
    stands_out &= frequent[:-1] >= TIMES_NEXT * frequent[1:]
    atoms = np.sort(order[: stands_out.nonzero()[0].max(initial=-1) + 1])
    others = np.setdiff1d(np.arange(len(values)), atoms)
    for number, place in zip(atoms, np.searchsorted(others, atoms), strict=True):
        near = others[max(place - N_NEIGHBOURS, 0) : place + N_NEIGHBOURS]
        if counts[number] < TIMES_NEAREST * counts[near].max(initial=0.0):
            return values[:0], share[:0]
    return values[atoms], share[atoms]


# Mixtures


def fit_mixtures(X, sample_weight=None) -> list[Margin]:
    """Margins of columns: mixtures where they predict better than one normal density.

    A column is bent if some mixture has a better BIC than the normal density, and then
    has as many components as Akaike's criterion says: few enough not to bend columns by
    chance, enough to follow those that are bent.

    X (n_samples, n_features), NaN is missing; sample_weight (n_samples,).
    """
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    return [_fit_column(column, weights) for column in np.asarray(X, dtype=float).T]


def _fit_column(column, sample_weight) -> Margin:
    """Margin of a column."""
    seen = ~np.isnan(column) & (sample_weight > 0)
    values, group = np.unique(column[seen], return_inverse=True)
    if len(values) < 2:
        return NormalMargin()
    counts = np.bincount(group.ravel(), sample_weight[seen], minlength=len(values))
    n_rows, shares = counts.sum(), counts / counts.sum()
    # Seen from one of the values, a column that is far from zero keeps its digits.
    origin = values[np.searchsorted(np.cumsum(shares), 0.5).clip(0, len(values) - 1)]
    values = values - origin
    centre = shares @ values
    scale = np.sqrt(shares @ (values - centre) ** 2)
    if not scale > 0.0:
        return NormalMargin()
    window = max(2, int(np.ceil(np.sqrt(len(values)))))
    narrowest = (values[window - 1 :] - values[: len(values) - window + 1]).min()
    # The last for numerical reasons.
    floor = max(RESOLUTION_SHARE * narrowest / scale, 1e-6)
    # To so many digits values in other units are the same, also in mirrored ones.
    points = ((values - centre) / scale).round(12)
    if shares @ points**3 < 0.0:
        points, shares, scale = -points[::-1], shares[::-1], -scale
    points, shares = _merged(points, shares)
    if n_rows * _distance(points, shares) < NEARLY_NORMAL:
        return NormalMargin()
    found = _best_mixture(points, shares, n_rows, floor)
    if found is None:
        return NormalMargin()
    weight, mean, deviation = found
    return _with_one_row(weight * n_rows, mean, deviation, origin + centre, scale)


def _with_one_row(counts, mean, deviation, centre, scale) -> MixtureMargin:
    """A mixture as if one more row came from the normal density of the column.

    No value has a density far below that one.
    """
    counts = np.append(counts, 1.0)
    mean, deviation = np.append(mean, 0.0), np.append(deviation, 1.0)
    mean = centre + scale * mean
    return MixtureMargin(counts / counts.sum(), mean, abs(scale) * deviation)


def _merged(values, shares) -> tuple[np.ndarray, np.ndarray]:
    """At most `N_POINTS` points: means of sorted values, of fewer ones in the tails."""
    if len(values) <= N_POINTS:
        return values, shares
    z = ndtri(np.cumsum(shares) - 0.5 * shares)
    place = np.searchsorted(np.linspace(z[0], z[-1], N_POINTS + 1)[1:-1], z)
    first = np.flatnonzero(np.diff(place, prepend=-1))
    merged = np.add.reduceat(shares, first)
    return np.add.reduceat(shares * values, first) / merged, merged


def _distance(points, shares) -> float:
    """Squared distance from a normal distribution, per row (Anderson and Darling)."""
    expected = ndtr(points).clip(1e-12, 1.0 - 1e-12)
    found = np.cumsum(shares) - 0.5 * shares
    return float(shares @ ((found - expected) ** 2 / (expected * (1.0 - expected))))


def _best_mixture(points, shares, n_rows: float, floor: float):
    """Weights, means and deviations; None if the normal density has the best BIC."""

    def fit(size):
        log_density, parameters = _fit_mixture(points, shares, n_rows, floor, size)
        return n_rows * log_density, parameters, 3 * (size - 1)

    def cost(found):
        return aic(found[0], found[2])

    growth = grow(fit, range(2, MOST_COMPONENTS + 1), cost)
    normal = bic(-0.5 * n_rows * (LOG_2_PI + 1.0), 0, n_rows)
    if min(bic(fitted, extra, n_rows) for fitted, _, extra in growth.fits) >= normal:
        return None
    return growth.best[1]


def _fit_mixture(points, shares, n_rows, floor, size):
    """Mean log-density of a mixture, and its weights, means and deviations, by EM."""
    powers = np.stack([np.ones_like(points), points, points**2])
    weighted = (powers * shares).T

    def maximize(_, responsibilities):
        total, first, second = (responsibilities @ weighted).T
        total = total + 1e-12
        mean = first / total
        # A few rows by themselves, such as an outlier, do not make a narrow component.
        least = np.maximum(floor, (n_rows * total) ** -2.0) ** 2
        variance = np.maximum(second / total - mean**2, least)
        return total / total.sum(), mean, variance

    def expect(state):
        weight, mean, variance = state
        constant = np.log(weight) - 0.5 * (np.log(variance) + mean**2 / variance)
        terms = np.stack([constant - 0.5 * LOG_2_PI, mean / variance, -0.5 / variance])
        density = terms.T @ powers
        top = density.max(axis=0)
        np.exp(density - top, out=density)
        total = density.sum(axis=0)
        density /= total
        return float(shares @ (np.log(total) + top)), density

    # Groups of neighbours to start from, of fewer ones in the tails.
    edges = ndtr(4.0 * np.arange(1, size) / size - 2.0)
    middle = np.cumsum(shares) - 0.5 * shares
    own = np.searchsorted(edges, middle) == np.arange(size)[:, None]
    start = maximize(None, 0.9 * own + 0.1 / size)
    # Ten times as many steps to a tenth of the gain predicted no better.
    ascent = climb(expect, maximize, start, tol=1e-5, max_iter=100, patient=False)
    weight, mean, variance = ascent.state
    return ascent.objective, (weight, mean, np.sqrt(variance))


# Which columns are bent


def choose_bent(X, weights, margins: list[Margin]) -> np.ndarray:
    """Which columns are better bent; X (n_samples, n_features) -> (n_features,).

    The network is not known yet, so rows are described by a normal distribution with a
    full covariance matrix. All are bent or none, whatever has the better BIC, and then
    those that improve it much are changed one by one: bends may break what is linear.
    """
    n = X.shape[1]
    bent = np.zeros(n, dtype=bool)
    bent[[column for column, _ in bent_columns(margins)]] = True
    if not bent.any():
        return bent
    correlation, gain = _both_forms(X, weights, margins)
    weight, least = weights.sum() + n, LEAST_GAIN * weights.sum()

    def log_det(own):
        return np.linalg.slogdet(correlation[np.ix_(own, own)])[1]

    columns = np.arange(n)
    loss = 0.5 * weight * (log_det(columns + n * bent) - log_det(columns))
    chosen = bent & bool(gain.sum() - loss > least)
    while True:
        own, other = columns + n * chosen, columns + n * ~chosen
        inverse = np.linalg.inv(correlation[np.ix_(own, own)])
        cross = correlation[np.ix_(own, other)]
        slopes = inverse @ cross
        # What the other form of a column leaves, given all other columns.
        explained = np.einsum("ij,ij->j", cross, slopes)
        explained -= slopes.diagonal() ** 2 / inverse.diagonal()
        left = np.maximum(correlation.diagonal()[other] - explained, 1e-300)
        change = -0.5 * weight * np.log(left * inverse.diagonal())
        change += np.where(chosen, -gain, gain)
        column = int(np.argmax(np.where(bent, change, -np.inf)))
        if change[column] <= least:
            return chosen
        chosen[column] = not chosen[column]


def _both_forms(X, weights, margins) -> tuple[np.ndarray, np.ndarray]:
    """Correlations of columns as they are, then of their scores; what slopes gain.

    Correlations are pulled towards independence by as many rows as there are columns.
    """
    n, n_rows = X.shape[1], weights.sum()
    # Seen from their minima, columns that are far from zero keep their digits.
    near = X - np.nan_to_num(np.fmin.reduce(X))
    Z, gain = near.copy(), np.zeros(n)
    for column, margin in bent_columns(margins):
        seen = ~np.isnan(X[:, column])
        Z[seen, column], slopes = margin.scored(X[seen, column])
        gain[column] = weights[seen] @ slopes - bic_price(n_rows) * margin.n_parameters
    values = np.hstack([near, Z])
    seen = ~np.isnan(values)
    count = np.maximum(weights @ seen, 1e-300)
    values = np.where(seen, values - weights @ np.nan_to_num(values) / count, 0.0)
    scale = np.sqrt(weights @ values**2 / count)
    scale[~(scale > 0.0)] = 1.0
    values /= scale
    gain -= count[:n] * np.log(scale[n:] / scale[:n])
    return ((values.T * weights) @ values + n * np.eye(2 * n)) / (n_rows + n), gain


# Scores


def score(
    seen: Rows | RowSums, margins: Margins, again: Blocks | None = None
) -> tuple[Rows | RowSums, float]:
    """Scores of rows, or sums of them, and the sum of their log-slopes.

    again: blocks that can be read again; else sums are those of the sample.
    """
    if isinstance(seen, Rows):
        return _score_rows(seen, margins)
    if margins is None or seen.kept is None:
        return seen, 0.0
    if again is None or seen.keeps_all:
        scored = _score_block((seen.rows.X, seen.rows.weights), margins)
    else:
        scored = again.sum(_score_block, margins)
    return scored, scored.log_slope or 0.0


def _score_rows(rows: Rows, margins: Margins) -> tuple[Rows, float]:
    """Scores of rows, and the weighted sum of their log-slopes."""
    if margins is None:
        return rows, 0.0
    Z, log_slope = to_scores(margins, rows.X)
    return Rows(Z, rows.weights), rows.sum(log_slope)


def _score_block(block, margins) -> RowSums:
    """Sums of the scores of a block of rows."""
    rows, log_slope = _score_rows(Rows.of(*block), margins)
    return RowSums.of(rows, log_slope=log_slope)


def rank_statistics(seen: RowSums, margins: Margins) -> RowSums | None:
    """Sums of normal scores by rank of all rows; None if margins give the scores.

    To find a graph, ranks need no margins, whose misfit would show as edges. Once a
    column is bent, those that are not have ranks too: ranks of columns that go together
    err together, and a bend that was missed does not matter. In 200 rows of 50 columns
    ranks of all lead to 3.6 wrong pairs, of those that are bent to 6.0.
    """
    bent = MixtureMargin, AtomMargin
    smooth = any(isinstance(margin, bent) for margin in margins or ())
    if not seen.keeps_all or margins is None or not smooth:
        return None
    rows = seen.rows
    scores = to_scores(margins, rows.X)[0]
    for column, margin in enumerate(margins):
        if isinstance(margin, (*bent, NormalMargin)):
            scores[:, column] = _rank_scores(rows.X[:, column], rows.weights)
    return RowSums.of(Rows(scores, rows.weights))


def _rank_scores(column, weights) -> np.ndarray:
    """Normal quantiles of the middle ranks of values, as Blom (1958) places them."""
    values, place = np.unique(column, return_inverse=True)
    counts = np.bincount(place, weights, minlength=len(values))
    below = np.cumsum(counts) - 0.5 * counts
    return ndtri((below + 0.125) / (counts.sum() + 0.25))[place]
