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

from ..._core.checks import (
    Check,
    Comparison,
    compare_likelihoods,
    critical_z,
    note_certainty,
    note_duplicates,
)
from .._groups import compare_groups
from .._table_margins import (
    atom_columns,
    bent_columns,
    estimated,
    to_scores,
    to_values,
)
from .completed_scores import complete
from .moments import (
    clipped_spread,
    dependence,
    dependence_of_sizes,
    kurtosis_z,
    skewness_z,
    variance_z,
)
from .standard import Standard, normal_ranks, standardise

# Kinds of checks that share the level: likelihood, means, spreads, pairs, skewness,
# tails, curvature, changing spread.
N_KINDS = 8
# Rows to look at, fewer if pairs of many features, or patterns of gaps, are costly.
MOST_ROWS, LEAST_ROWS, MOST_PAIRS, MOST_GAPS = 5000, 200, 2e9, 2e10
# Rows whose latents are inferred where that has no formula.
MOST_INFERRED = 500
# Features that correlate more than this say the same, if there are enough rows.
DUPLICATE, ENOUGH_ROWS = 0.99, 50
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
    network = subject.network
    few = subject.X if network.is_jointly_gaussian else subject.X[:MOST_INFERRED]
    scores = to_scores(network.margins, few)[0]
    rows = _Rows(subject)
    kinds = [
        *rows.singles(),
        rows.pairs(),
        *rows.shapes(),
        rows.curvature(),
        rows.changing_spread(),
    ]
    checks = [_check_likelihood(network, few)]
    checks += [line for kind in kinds for line in kind.lines()]
    checks += rows.groups()
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
    """Rows, completed, in comparison with the network."""

    def __init__(self, subject: Subject):
        self.subject, self.names = subject, subject.names
        network = subject.network
        self.bent = [j for j, _ in bent_columns(network.margins)]
        scores = to_scores(network.margins, subject.X)[0]
        # Tails of estimated margins are guesses, which gaps must not be drawn from.
        most = norm.isf(0.5 / max(len(scores), 1))
        scores[:, self.bent] = scores[:, self.bent].clip(-most, most)
        self.Z = complete(network, scores)
        standard = standardise(network, self.Z)
        # A column that does not vary, where it is expected, tells nothing.
        self.tells = ~np.array([_is_still(c) for c in standard.scores.T], bool)
        for part in (standard.levelled, standard.residuals):
            part[:, ~self.tells] = 0.0
        self.standard: Standard = standard

    def _doubt(self, *, learned: bool = True):
        """Standard error of a difference, in those of the rows alone."""
        n = len(self.Z)
        own = n / self.subject.n_learned if learned else 0.0
        return np.sqrt(1.0 + own + n / self.standard.n_drawn)

    def _name(self, j: int) -> str:
        return str(self.names[j])

    def singles(self) -> list[Comparison]:
        """Means and standard deviations, around the means of the model."""
        standard, n = self.standard, len(self.Z)
        mean, square = (standard.scores**power for power in (1, 2))
        mean, square = (part.sum(axis=0) / max(n, 1) for part in (mean, square))
        limit = critical_z(len(mean), N_KINDS)
        centre, spread = standard.centre, standard.spread
        z = np.where(self.tells, mean * np.sqrt(n), 0.0) / self._doubt()
        means = Comparison("mean", self._name, centre + mean * spread, centre, z, limit)
        size, z = np.sqrt(square), variance_z(square, n)
        bent = self.bent
        size[bent], z[bent] = clipped_spread(standard.scores[:, bent])
        z = np.where(self.tells & (n > 1), z, 0.0) / self._doubt()
        spreads = Comparison("spread", self._name, spread * size, spread, z, limit)
        return [means, spreads]

    def pairs(self) -> Comparison:
        """Correlations."""
        standard = self.standard
        i, j = np.triu_indices(len(standard.centre), 1)
        r = dependence(standard.levelled, standard.levelled)[i, j]
        rho = standard.correlation[i, j]
        error = np.broadcast_to(standard.error, standard.correlation.shape)[i, j]
        gap = np.arctanh(np.clip(r, -CLIP, CLIP)) - np.arctanh(
            np.clip(rho, -CLIP, CLIP)
        )
        z = gap * np.sqrt(max(len(self.Z) - 3.0, 0.0)) / error / self._doubt()
        z[~(self.tells[i] & self.tells[j])] = 0.0
        limit = critical_z(len(z), N_KINDS)
        return Comparison("pair", self._pair_name(i, j, ", "), r, rho, z, limit)

    def _pair_name(self, i, j, between: str):
        return lambda p: f"{self.names[i[p]]}{between}{self.names[j[p]]}"

    def shapes(self) -> list[Comparison]:
        """Skewness and tails of the residuals."""
        found, ranks = [], self.standard.bend.max(axis=0, initial=0.0)
        for kind, test in (("skewed noise", skewness_z), ("tails", kurtosis_z)):
            seen, z = test(self.standard.residuals)
            z *= len(self.Z) >= FEWEST
            # Residuals that add up ranks by large weights have tails of ranks.
            z /= self._doubt(learned=bool(self.bent)) * np.sqrt(1.0 + ranks)
            limit = critical_z(len(z), N_KINDS)
            found.append(Comparison(kind, self._name, seen, 0.0 * seen, z, limit))
        return found

    def curvature(self) -> Comparison:
        """Residuals and squares of features before them."""
        S, R = self.standard.levelled, self.standard.residuals
        found = self._dependence("curvature", [("{}", dependence(_bends(S), R), None)])
        ranks = self.standard.bend[np.nonzero(self.standard.before)]
        return found._replace(z=found.z / np.sqrt(1.0 + ranks))

    def changing_spread(self) -> Comparison:
        """Sizes of residuals and features before them (Glejser, 1969), or their sizes.

        Ranks of sizes, whose products have no long tails.
        """
        S, R = self.standard.levelled, self.standard.residuals
        sizes, causes = normal_ranks(np.abs(R)), normal_ranks(np.abs(S))
        # What goes together, as for want of an edge, has sizes that do.
        expected = dependence_of_sizes(dependence(S, R))
        by_size = "size of {}", dependence(causes, sizes), expected
        found = [("{}", dependence(S, sizes), None), by_size]
        return self._dependence("changing spread", found)

    def _dependence(self, kind, parts) -> Comparison:
        """Correlations of features with residuals of others.

        parts: how causes are named, correlations, and what they should be if not 0
        """
        i, j = np.nonzero(self.standard.before)
        n, m = len(self.Z), len(i)
        r = np.concatenate([found[i, j] for _, found, _ in parts])
        rho = np.concatenate(
            [np.zeros(m) if part is None else part[i, j] for *_, part in parts]
        )
        z = (r - rho) * np.sqrt(n) * (n >= FEWEST)
        z /= self._doubt(learned=bool(self.bent))
        limit = critical_z(len(z), N_KINDS)

        def name(p):
            cause = parts[p // m][0].format(self.names[i[p % m]])
            return f"{self.names[j[p % m]]} given {cause}"

        return Comparison(kind, name, r, rho, z, limit)

    def groups(self) -> list[Check]:
        """Whether rows form groups, which a single network does not describe."""
        network, X = self.subject.network, self.subject.X
        X = np.where(np.isnan(X), to_values(network.margins, self.Z), X)
        found = compare_groups(network, X)
        if found is None:
            return []
        what = f"{found.n_groups} groups" if found.n_groups > 1 else "a single group"
        ok = found.n_groups < 2 or found.own >= found.mixture
        return [Check("groups", what, found.own, found.mixture, np.nan, ok)]

    def duplicates(self) -> list[Check]:
        """Pairs of features that are almost the same, or almost the opposite."""
        enough = len(self.Z) >= ENOUGH_ROWS
        return note_duplicates(self.pairs(), DUPLICATE) if enough else []


# Larger correlations are not told apart.
CLIP = 1.0 - 1e-9


def _is_still(scores) -> bool:
    """Whether a column does not vary, and is where the model expects it."""
    if not len(scores):
        return True
    alike = scores.min() == scores.max() and len(scores) > 1
    return bool(alike and abs(scores[0]) < 3.0)


def _bends(scores) -> np.ndarray:
    """Squares of the columns, less what is linear in them."""
    centred = scores - scores.mean(axis=0)
    squares = centred**2
    variance, third = (p.sum(axis=0) for p in (squares, squares * centred))
    slope = np.divide(third, variance, out=np.zeros_like(third), where=variance > 0)
    return squares - variance / max(len(scores), 1) - slope * centred


def _check_likelihood(network, X) -> Check:
    """Log-densities of rows against those of columns with independent normal scores."""
    Z, log_slope = to_scores(estimated(network.margins), X)
    known = ~np.isnan(Z)
    some = np.maximum(known.sum(axis=0), 1)
    mean, square = (np.nansum(Z**power, axis=0) / some for power in (1, 2))
    spread = np.sqrt(np.maximum(np.nansum((Z - mean) ** 2, axis=0) / some, 1e-300))
    varies = spread > 1e-9 * np.sqrt(square)
    for column in atom_columns(network.margins):
        mean[column], spread[column] = 0.0, 1.0
    own = norm.logpdf(np.where(known, Z, mean), mean, spread)
    own = np.where(known & varies, own, 0.0).sum(axis=1)
    whole = network.log_likelihood(X)
    if not varies.all():
        # A constant column has no density; what the model says of it does not count.
        whole = whole - network.log_likelihood(np.where(varies, np.nan, X))
    what = "against independent columns"
    return compare_likelihoods(
        whole, own + log_slope, 2.0 * varies.sum(), N_KINDS, what
    )


def _check_certainty(network, Z, names) -> list[Check]:
    """Share of the variance of each latent that the rows tell."""
    mean, _, variance = network._infer(Z)
    hidden = slice(network.n_features, None)
    left = variance[:, hidden].mean(axis=0)
    seen = mean[:, hidden].var(axis=0)
    told = np.divide(seen, seen + left, out=np.zeros_like(seen), where=seen + left > 0)
    return note_certainty(names, told, np.ones_like(told))
