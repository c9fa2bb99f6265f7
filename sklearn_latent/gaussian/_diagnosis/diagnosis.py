"""All checks of a Gaussian network on rows.

Rows become numbers that are standard normal under the network: scores of features by
themselves, and residuals of features given those before them. So the same code checks
all links, kinds of noise and margins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from ..._diagnosis import (
    Check,
    Comparison,
    compare_likelihoods,
    critical_z,
    shown_lines,
)
from .._groups import compare_groups
from .._margins.columns import bent_columns, to_scores
from .moments import (
    clipped_spread,
    dependence,
    kurtosis_z,
    moments,
    skewness_z,
    variance_z,
)
from .standard import Standard, standardise

# Kinds of checks that share the level: likelihood, means, spreads, pairs, skewness,
# tails, curvature, changing spread.
N_KINDS = 8
# Rows to look at, fewer if pairs of many features, or patterns of gaps, are costly.
MOST_ROWS, LEAST_ROWS, MOST_PAIRS, MOST_GAPS = 5000, 200, 2e9, 2e10
# Rows whose latents are inferred where that has no formula.
MOST_INFERRED = 500
# Features that correlate more than this say the same, if enough rows have both.
DUPLICATE, ENOUGH_ROWS = 0.99, 50
# A latent of which the rows tell less than this share is hardly ever certain.
CERTAIN = 0.1
# Smaller samples have no kurtosis to speak of.
FEWEST = 20


class Subject(NamedTuple):
    """A network and rows, and what its parts are called.

    X: values in the units of the user, NaN where missing
    names, latents: of features and latents
    n_learned: rows that the network was learned from, so that others may differ by what
        those leave open
    """

    network: Any
    X: np.ndarray
    names: Sequence
    latents: Sequence
    n_learned: float = np.inf


def thin_out(X, *, costly: bool) -> np.ndarray:
    """Some of many rows, chosen at random but always the same.

    costly: whether each pattern of gaps takes a matrix of its own
    """
    width = max(X.shape[1], 1)
    most = min(MOST_ROWS, MOST_PAIRS / width**2)
    if costly:
        most = min(most, MOST_GAPS / width**3)
    most = int(max(most, LEAST_ROWS))
    if len(X) <= most:
        return X
    chosen = np.random.RandomState(0).choice(len(X), most, replace=False)
    return X[np.sort(chosen)]


def diagnose_network(subject: Subject) -> list[Check]:
    """All checks of a network."""
    network, X = subject.network, subject.X
    rows = _Rows(subject)
    kinds = [
        *rows.singles(),
        rows.pairs(),
        *rows.shapes(),
        rows.curvature(),
        rows.changing_spread(),
    ]
    few = X if network.is_jointly_gaussian else X[:MOST_INFERRED]
    scores, log_slope = to_scores(network.margins, few)
    checks = [_check_likelihood(network, scores, log_slope)]
    checks += [line for kind in kinds for line in kind.lines()]
    checks += _check_groups(network, X)
    if network.n_latents:
        checks += _check_certainty(network, scores, subject.latents)
    return checks + rows.duplicates()


def compare_moments(subject: Subject) -> list[Comparison]:
    """Means, spreads and correlations of all features, in units of the model."""
    rows = _Rows(subject)
    means, spreads = rows.singles()
    centre, scale = rows.standard.centre, rows.standard.spread
    means = means._replace(
        observed=(means.observed - centre) / scale, expected=np.zeros(len(centre))
    )
    spreads = spreads._replace(
        observed=spreads.observed / scale, expected=np.ones(len(scale))
    )
    return [means, spreads, rows.pairs()]


class _Rows:
    """Rows in comparison with the network."""

    def __init__(self, subject: Subject):
        self.names = subject.names
        Z = to_scores(subject.network.margins, subject.X)[0]
        standard = standardise(subject.network, Z)
        # A column that does not vary, where it is expected, tells nothing.
        still = np.array([_is_still(column) for column in standard.scores.T], bool)
        for part in (standard.scores, standard.levelled, standard.residuals):
            part[:, still] = np.nan
        self.standard: Standard = standard
        self.n_learned = subject.n_learned
        self.bent = [j for j, _ in bent_columns(subject.network.margins)]

    def _doubt(self, n, *, learned: bool = True):
        """Standard error of a difference, in those of the rows alone."""
        own = n / self.n_learned if learned else 0.0
        return np.sqrt(1.0 + own + n / self.standard.n_drawn)

    def _name(self, j: int) -> str:
        return str(self.names[j])

    def singles(self) -> list[Comparison]:
        """Means and standard deviations, around the means of the model."""
        standard = self.standard
        n, mean, square = moments(standard.scores)
        doubt = self._doubt(n)
        limit = critical_z(len(n), N_KINDS)
        centre, spread = standard.centre, standard.spread
        z = np.where(n > 0, mean * np.sqrt(n), 0.0) / doubt
        means = Comparison("mean", self._name, centre + mean * spread, centre, z, limit)
        size, z = np.sqrt(square), variance_z(square, n)
        # Tails of estimated margins are guesses.
        bent = self.bent
        size[bent], z[bent] = clipped_spread(standard.scores[:, bent])
        z = np.where(n > 1, z, 0.0) / doubt
        spreads = Comparison("spread", self._name, spread * size, spread, z, limit)
        return [means, spreads]

    def pairs(self) -> Comparison:
        """Correlations."""
        standard = self.standard
        i, j = np.triu_indices(len(standard.centre), 1)
        r, n = (part[i, j] for part in dependence(standard.levelled, standard.levelled))
        rho = standard.correlation[i, j]
        error = np.broadcast_to(standard.error, standard.correlation.shape)[i, j]
        gap = np.arctanh(np.clip(r, -CLIP, CLIP)) - np.arctanh(
            np.clip(rho, -CLIP, CLIP)
        )
        z = gap * np.sqrt(np.maximum(n - 3.0, 0.0)) / error / self._doubt(n)
        limit = critical_z(len(z), N_KINDS)
        return Comparison("pair", self._pair_name(i, j, ", "), r, rho, z, limit)

    def _pair_name(self, i, j, between: str):
        return lambda p: f"{self.names[i[p]]}{between}{self.names[j[p]]}"

    def shapes(self) -> list[Comparison]:
        """Skewness and tails of the residuals."""
        residuals = self.standard.residuals
        n = (~np.isnan(residuals)).sum(axis=0)
        found = []
        for kind, test in (("skewed noise", skewness_z), ("tails", kurtosis_z)):
            seen, z = test(residuals)
            z = np.where(n >= FEWEST, z, 0.0) / self._doubt(n, learned=bool(self.bent))
            limit = critical_z(len(z), N_KINDS)
            found.append(Comparison(kind, self._name, seen, 0.0 * seen, z, limit))
        return found

    def curvature(self) -> Comparison:
        """Residuals and squares of features before them."""
        S, R = self.standard.levelled, self.standard.residuals
        return self._dependence("curvature", _bends(S), R)

    def changing_spread(self) -> Comparison:
        """Sizes of residuals and features before them (Glejser, 1969)."""
        S, R = self.standard.levelled, np.abs(self.standard.residuals)
        return self._dependence("changing spread", S, R)

    def _dependence(self, kind, causes, effects) -> Comparison:
        i, j = np.nonzero(self.standard.before)
        r, n = (part[i, j] for part in dependence(causes, effects))
        z = np.where(n >= FEWEST, r * np.sqrt(n), 0.0)
        z /= self._doubt(n, learned=bool(self.bent))
        limit = critical_z(len(z), N_KINDS)
        name = self._pair_name(j, i, " given ")
        return Comparison(kind, name, r, np.zeros(len(r)), z, limit)

    def duplicates(self) -> list[Check]:
        """Pairs of features that are almost the same, or almost the opposite."""
        pairs = self.pairs()
        if len(self.standard.scores) < ENOUGH_ROWS:
            return []
        return [
            Check(
                "near-duplicates",
                pairs.name(p),
                pairs.observed[p],
                pairs.expected[p],
                np.nan,
                bool(abs(pairs.observed[p]) <= DUPLICATE),
            )
            for p in shown_lines(pairs.observed, DUPLICATE)
        ]


# Larger correlations are not told apart.
CLIP = 1.0 - 1e-9


def _is_still(scores) -> bool:
    """Whether a column does not vary, and is where the model expects it."""
    known = scores[~np.isnan(scores)]
    if not len(known):
        return True
    return bool(known.min() == known.max() and abs(known[0]) < 3.0 and len(known) > 1)


def _bends(scores) -> np.ndarray:
    """Squares of the columns, less what is linear in them."""
    n, mean, _ = moments(scores)
    centred = scores - mean
    squares = centred**2
    variance, third = (
        np.nan_to_num(p).sum(axis=0) for p in (squares, squares * centred)
    )
    slope = np.divide(third, variance, out=np.zeros_like(third), where=variance > 0)
    return squares - variance / np.maximum(n, 1) - slope * centred


def _check_likelihood(network, Z, log_slope) -> Check:
    """Log-densities of rows against those of columns with independent normal scores."""
    plain = network.with_margins(None) if network.margins is not None else network
    known = ~np.isnan(Z)
    _, mean, square = moments(Z)
    spread = np.sqrt(np.maximum(moments(Z - mean)[2], 1e-300))
    varies = spread > 1e-9 * np.sqrt(square)
    own = norm.logpdf(np.where(known, Z, mean), mean, spread)
    own = np.where(known & varies, own, 0.0).sum(axis=1)
    whole = plain.log_likelihood(Z)
    if not varies.all():
        # A constant column has no density; what the model says of it does not count.
        alone = np.where(varies, np.nan, Z)
        whole = whole - plain.log_likelihood(alone)
    what = "against independent columns"
    return compare_likelihoods(
        whole + log_slope, own + log_slope, 2.0 * varies.sum(), N_KINDS, what
    )


def _check_groups(network, X) -> list[Check]:
    """Whether rows form groups, which a single network does not describe."""
    complete = X[~np.isnan(X).any(axis=1)]
    found = compare_groups(network, complete)
    if found is None:
        return []
    what = f"{found.n_groups} groups" if found.n_groups > 1 else "a single group"
    ok = found.n_groups < 2 or found.own >= found.mixture
    return [Check("groups", what, found.own, found.mixture, np.nan, ok)]


def _check_certainty(network, Z, names) -> list[Check]:
    """Share of the variance of each latent that the rows tell."""
    mean, _, variance = network._infer(Z)
    hidden = slice(network.n_features, None)
    left = variance[:, hidden].mean(axis=0)
    seen = mean[:, hidden].var(axis=0)
    told = np.divide(seen, seen + left, out=np.zeros_like(seen), where=seen + left > 0)
    return [
        Check(
            "certainty", str(names[k]), told[k], 1.0, np.nan, bool(told[k] >= CERTAIN)
        )
        for k in shown_lines(1.0 - told, 1.0 - CERTAIN)
    ]
