"""Two-by-two tables of pairs of features, of rows and of networks.

Features are as the network reads them: those of polarity -1 as their opposite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from ..._core.checks import count_z
from .._statistics.patterns import Patterns

# Pairs are compared among at most this many features, those that vary most.
MOST_FEATURES = 256
# Smallest probability of a cell of a model's table; a certain cell has no odds.
FLOOR = 1e-12
# Differences of this many standard errors are computed exactly: smaller ones fail no
# check, and chance explains no larger ones.
EXACT = 2.5, 12.0


class Pairs(NamedTuple):
    """Pairs of features, one entry each.

    first, second: indices of the features
    total: weight of the rows that have both
    both: weight of the rows in which both are on
    one, two: weight of the rows in which the first, the second is on
    odds: odds ratio that the model implies
    """

    first: np.ndarray
    second: np.ndarray
    total: np.ndarray
    both: np.ndarray
    one: np.ndarray
    two: np.ndarray
    odds: np.ndarray

    @classmethod
    def of(cls, network, patterns: Patterns) -> Pairs:
        """Count pairs of complete rows as the network reads them."""
        features = _most_varied(rates(patterns)[0])
        on = patterns.on[:, features].astype(np.float64)
        both = (on * patterns.weights[:, np.newaxis]).T @ on
        single = np.diagonal(both)
        i, j = np.triu_indices(len(features), 1)
        total = np.full(len(i), patterns.weights.sum())
        counts = total, both[i, j], single[i], single[j]
        odds = odds_ratios(network, features)[i, j]
        return cls(features[i], features[j], *counts, odds)

    @classmethod
    def of_off(cls, network, off, features, both_off, total) -> Pairs:
        """The same from P(off), and counts of rows in which some pairs are off.

        off: of each feature, as the network reads them
        features: (n_pairs, 2)
        both_off, total: weight of the rows, (n_pairs,)
        """
        varied = _most_varied(off)
        inside = np.isin(features, varied).all(axis=1) & (total > 0)
        features, both_off, total = features[inside], both_off[inside], total[inside]
        first, second = features.T
        one, two = total * (1.0 - off[first]), total * (1.0 - off[second])
        # A pair may be known in other rows than each of its features.
        most = np.minimum(one, two)
        both = np.clip(one + two - total + both_off, 0.0, most)
        places = np.searchsorted(varied, features)
        odds = odds_ratios(network, varied)[places[:, 0], places[:, 1]]
        return cls(first, second, total, both, one, two, odds)

    def take(self, chosen) -> Pairs:
        """Some of the pairs."""
        return Pairs(*(values[chosen] for values in self))

    @property
    def correlation(self) -> np.ndarray:
        """Correlation of both features; 0 if one is constant."""
        return _correlation(
            self.both / self.total, self.one / self.total, self.two / self.total
        )

    def expected_correlation(self, odds) -> np.ndarray:
        """Correlation at some odds ratio, given the rates of both features."""
        one, two = self.one / self.total, self.two / self.total
        return _correlation(both_on(one, two, odds), one, two)

    def expected(self, odds) -> np.ndarray:
        """P(both on) at some odds ratio, given the rates of both features."""
        return both_on(self.one / self.total, self.two / self.total, odds)

    @property
    def gain(self) -> float:
        """Log-likelihood of all pairs, less that of independent features.

        Given the rates of both.
        """
        one, two = self.one / self.total, self.two / self.total
        seen = _cells(self.both / self.total, one, two, 1.0)
        model = _cells(self.expected(self.odds), one, two, 1.0)
        alone = _cells(one * two, one, two, 1.0)
        gains = [
            log_loss(p, q) - log_loss(p, m)
            for p, m, q in zip(seen, model, alone, strict=True)
        ]
        return float(self.total @ sum(gains))

    def z(self, odds) -> np.ndarray:
        """How much more often both are on than at some odds ratio, given the rates."""
        z = self._rough_z(odds)
        doubtful = np.flatnonzero((np.abs(z) > EXACT[0]) & (np.abs(z) < EXACT[1]))
        part = self.take(doubtful)
        z[doubtful] = [
            hypergeometric_z(*table)
            for table in zip(
                part.both, part.one, part.two, part.total, odds[doubtful], strict=True
            )
        ]
        return z

    def _rough_z(self, odds) -> np.ndarray:
        """The same for large counts.

        The rarest of the four cells is the count that is tested: it is the most
        skewed, and given the rates it determines the others.
        """
        both = self.expected(odds) * self.total
        mean = np.stack(_cells(both, self.one, self.two, self.total))
        seen = np.stack(_cells(self.both, self.one, self.two, self.total))
        mean = np.maximum(mean, FLOOR)
        variance = 1.0 / (1.0 / mean).sum(axis=0)
        rarest = np.argmin(mean, axis=0)
        place = rarest, np.arange(len(rarest))
        z = count_z(seen[place], mean[place], variance)
        # One is on and the other off in the two cells in the middle.
        return np.where((rarest == 1) | (rarest == 2), -z, z)


def _cells(both, one, two, total):
    """All four cells of a table: 11, 10, 01 and 00."""
    return both, one - both, two - both, np.maximum(total - one - two + both, 0.0)


def _correlation(both, one, two):
    spread = np.sqrt(one * (1.0 - one) * two * (1.0 - two))
    covariance = both - one * two
    return np.divide(covariance, spread, out=np.zeros_like(both), where=spread > 0)


def _most_varied(rate):
    """Features of the largest variance, in their order."""
    order = np.argsort(-rate * (1.0 - rate), kind="stable")
    return np.sort(order[:MOST_FEATURES])


def rates(patterns: Patterns):
    """Share of complete rows in which each feature is on, and weight of the rows."""
    total = patterns.weights.sum()
    return (patterns.weights @ patterns.on) / total, np.full(
        patterns.on.shape[1], total
    )


def log_loss(observed, expected):
    """Mean of -log of what was expected, where something was observed."""
    return -special.xlogy(observed, np.maximum(expected, FLOOR))


def both_on(one, two, odds):
    """P(both on) of a table with these rates and this odds ratio (Plackett, 1965)."""
    # Odds below 1 are those of the opposite of the second feature, inverted.
    lower = odds < 1.0
    turned = np.where(lower, 1.0 - two, two)
    ratio = np.where(lower, 1.0 / np.maximum(odds, FLOOR), odds)
    s = 1.0 + (one + turned) * (ratio - 1.0)
    root = np.sqrt(np.maximum(s * s - 4.0 * ratio * (ratio - 1.0) * one * turned, 0.0))
    both = 2.0 * ratio * one * turned / (s + root)
    both = np.minimum(both, np.minimum(one, turned))
    return np.where(lower, one - both, both)


def hypergeometric_z(both, one, two, total, odds) -> float:
    """Standard errors by the tails of Fisher's noncentral hypergeometric distribution.

    Given its margins and odds ratio, it is the distribution of a table of two features.
    """
    both, one, two, total = np.rint([both, one, two, total])
    x = np.arange(max(0.0, one + two - total), min(one, two) + 1.0)
    log_chance = x * np.log(odds)
    for part in (x, one - x, two - x, total - one - two + x):
        log_chance -= special.gammaln(part + 1.0)
    chance = np.exp(log_chance - log_chance.max())
    chance /= chance.sum()
    above, below = chance[x >= both].sum(), chance[x <= both].sum()
    if above < below:
        return float(-special.ndtri(np.clip(above, 1e-300, 0.5)))
    return float(special.ndtri(np.clip(below, 1e-300, 0.5)))


def modelled_off(network, features=None):
    """P(feature off) as the network reads it."""
    failure, leak = network.failure, network.leak
    if features is not None:
        failure, leak = failure[:, features], leak[features]
    return sum(
        weight * (1.0 - leak) * (1.0 - prior[:, np.newaxis] * (1.0 - failure)).prod(0)
        for weight, prior in zip(network.class_weight, network.class_prior, strict=True)
    )


def odds_ratios(network, features) -> np.ndarray:
    """Odds ratios of all pairs of some features, (n_features, n_features)."""
    failure, leak = network.failure[:, features], network.leak[features]
    children = [np.flatnonzero(row < 1.0) for row in failure]
    off = np.zeros((len(features), len(features)))
    for weight, prior in zip(network.class_weight, network.class_prior, strict=True):
        passed = 1.0 - prior[:, np.newaxis] * (1.0 - failure)
        single = (1.0 - leak) * passed.prod(axis=0)
        ratio = np.ones_like(off)
        for k, places in enumerate(children):
            fails = failure[k, places]
            alone = np.multiply.outer(passed[k, places], passed[k, places])
            both = 1.0 - prior[k] * (1.0 - np.multiply.outer(fails, fails))
            # A feature that is always on needs no ratio.
            gain = np.divide(both, alone, out=np.ones_like(both), where=alone > 0)
            ratio[np.ix_(places, places)] *= gain
        off += weight * np.multiply.outer(single, single) * ratio
    alone = modelled_off(network, features)
    cells = _cells(off, alone[:, np.newaxis], alone, 1.0)
    neither, first, second, both = (np.maximum(cell, FLOOR) for cell in cells)
    # What never changes depends on nothing.
    varies = np.minimum(alone, 1.0 - alone) > 1e-9
    return np.where(
        np.logical_and.outer(varies, varies), neither * both / (first * second), 1.0
    )
