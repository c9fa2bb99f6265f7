"""From a singly coupled quartet to a latent with all its children.

Figures and equations are those of Jernite et al. (2013).
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from .._probabilities import clip_probability
from .._statistics.moments import MomentSource, Residual
from .coupling import (
    discovery_level,
    discovery_threshold,
    interaction,
    interaction_error,
    pair_moments,
    subset_moments,
)
from .quartets import Thresholds, find_quartets, quartet_parameters


class Discovery(NamedTuple):
    """Latents that were found.

    failure: 1.0 where there is no edge, (n_latents, n_features)
    depth: round in which a quartet revealed the latent; inf: none did, (n_latents,)
    quartets: that quartet; -1: none, (n_latents, 4)
    """

    prior: np.ndarray
    failure: np.ndarray
    depth: np.ndarray
    quartets: np.ndarray

    @classmethod
    def nothing(cls, n_features) -> Discovery:
        """No latent."""
        quartets = np.zeros((0, 4), dtype=np.int64)
        return cls(np.zeros(0), np.ones((0, n_features)), np.zeros(0), quartets)

    def select(self, latents) -> Discovery:
        """Keep some of the latents."""
        return Discovery(*(values[latents] for values in self))

    def leaks(self, source: MomentSource) -> np.ndarray:
        """Leaks that explain what the latents leave of P(off)."""
        residual = Residual(source, self.prior, self.failure)
        singles = np.arange(source.n_features)[:, None]
        return clip_probability(1.0 - residual.probability(singles))

    def __add__(self, other) -> Discovery:
        return Discovery(
            *(np.concatenate(values) for values in zip(self, other, strict=True))
        )


def mixture(moments):
    """Parameters of the latent behind a quartet: medians over its triplets.

    MIXTURE of Figure 2.
    """
    prior, failure, _, valid = quartet_parameters(moments[None])
    valid = valid[0]
    if not valid.any():
        return 0.5, np.ones(4), False
    prior = float(np.median(prior[0, valid]))
    # Each feature is in three triplets, so that it has a value if two are valid.
    known = failure[0, valid]
    if np.isnan(known).all(axis=0).any():
        return prior, np.ones(4), False
    values = np.nanmedian(known, axis=0)
    plausible = 0.0 < prior < 1.0 and bool((values < 1.0).all())
    return prior, clip_probability(values), plausible


def conditional_prior(ratio, failure_a, failure_b, prior):
    """P(latent on | x off) from the conditional mutual information of a and b.

    The root of equation 5. The smaller one is right as long as it is at most
    ``1 / (1 + sqrt(f_a f_b))``, where the two meet; since x off can only lower the
    probability of the latent, a larger root above the prior is never right.
    """
    square = ratio * (1.0 - failure_a) * (1.0 - failure_b)
    linear = ratio * (failure_a + failure_b - 2.0) - (failure_a * failure_b - 1.0)
    root = np.sqrt(np.maximum(linear**2 - 4.0 * square * (ratio - 1.0), 0.0))
    # linear is negative wherever a root lies in [0, 1]; this form does not cancel.
    smaller = 2.0 * (ratio - 1.0) / (-linear + root)
    larger = (-linear + root) / (2.0 * square)
    return np.clip(smaller, 0.0, prior), np.where(larger <= prior, larger, np.nan)


def extend(residual: Residual, pairs, quartet, prior, failure, threshold) -> np.ndarray:
    """Find all children of a latent: EXTEND, equations 4 to 6.

    The paper takes two members of the quartet, this takes the median over all six
    pairs.
    """
    others = np.setdiff1d(np.arange(residual.n_features), quartet)
    result = np.ones(residual.n_features)
    result[quartet] = failure
    if not len(others):
        return result
    a, b = np.array(list(combinations(range(4), 2))).T
    shape = (len(a), len(others))
    sets = np.empty((*shape, 3), dtype=np.int64)
    sets[:, :, 0], sets[:, :, 1] = quartet[a][:, None], quartet[b][:, None]
    sets[:, :, 2] = others
    raw, M = subset_moments(residual, sets.reshape(-1, 3), pairs)
    n_rows = residual.source.known_rows(sets.reshape(-1, 3))
    pmi = M[:, 3] / (M[:, 0] * M[:, 1])
    cpmi = M[:, 6] * M[:, 2] / (M[:, 4] * M[:, 5])
    if threshold == "auto":
        error = interaction_error(raw, n_rows)
        strength = np.abs(np.median(interaction(M).reshape(shape), axis=0))
        strength /= np.median(error.reshape(shape), axis=0)
        level = discovery_level(residual.n_rows)
        child = strength >= discovery_threshold(strength, level)
    else:
        child = np.median((pmi - cpmi).reshape(shape), axis=0) > threshold
    smaller, larger = conditional_prior(
        cpmi.reshape(shape), failure[a][:, None], failure[b][:, None], prior
    )
    crossing = 1.0 / (1.0 + np.sqrt(failure[a] * failure[b]))
    given_off = _consistent_root(smaller, larger, crossing)
    odds = given_off * (1.0 - prior) / (prior * (1.0 - given_off))
    child &= odds < 1.0
    result[others[child]] = clip_probability(odds[child])
    return result


def _consistent_root(smaller, larger, crossing):
    """Median over pairs (axis 0) of the roots on which they agree best.

    The larger root is right for the pairs whose roots meet below the true value, so
    there is one choice for each number of such pairs.
    """
    order = np.argsort(crossing, kind="stable")
    smaller, larger = smaller[order], larger[order]
    value, least = np.median(smaller, axis=0), np.ptp(smaller, axis=0)
    for n_larger in range(1, len(order) + 1):
        chosen = np.concatenate([larger[:n_larger], smaller[n_larger:]])
        spread = np.ptp(chosen, axis=0)
        # NaN, for a root above the prior, is never better.
        better = spread < least
        value = np.where(better, np.median(chosen, axis=0), value)
        least = np.where(better, spread, least)
    return value


def discover(
    source: MomentSource, thresholds: Thresholds, max_depth=None, report=None
) -> Discovery:
    """STRUCTURE-LEARN of Figure 2: rounds of quartet tests and subtraction."""
    found = Discovery.nothing(source.n_features)
    if source.n_features < 4:
        return found
    pairs = pair_moments(source)
    depth = 0
    while max_depth is None or depth <= max_depth:
        residual = Residual(source, found.prior, found.failure)
        new = _round(residual, pairs, thresholds, depth)
        found = found + new
        if not len(new.prior) or (report is not None and report(found)):
            break
        depth += 1
    return found


def _round(residual, pairs, thresholds, depth) -> Discovery:
    """Accept quartets in order, unless a latent of this round couples two of them."""
    quartets = find_quartets(residual, pairs, thresholds)
    found = Discovery.nothing(residual.n_features)
    free = np.ones(len(quartets.sets), dtype=bool)
    while free.any():
        best = int(np.argmax(free))
        free[best] = False
        prior, failure, valid = mixture(quartets.moments[best])
        if not valid:
            continue
        quartet = quartets.sets[best]
        row = extend(residual, pairs, quartet, prior, failure, thresholds.extend)
        # A quartet that one latent couples shares at most one child with another.
        free &= (row < 1.0)[quartets.sets].sum(axis=1) < 2
        prior, when = np.array([clip_probability(prior)]), np.array([float(depth)])
        found = found + Discovery(prior, row[None], when, quartet[None])
    return found
