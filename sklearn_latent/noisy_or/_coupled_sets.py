"""Which pairs and triplets of features share a parent: the pre-test of quartets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from ._statistics.moments import MomentSource, Residual, set_keys
from ._statistics.subsets import MEMBERS, subset_variance

# Expected share of wrong ones among the triplets that "auto" calls coupled
# (Benjamini and Hochberg); if all features are independent, the probability that any
# triplet is called coupled at all. It falls with the rows, as errors of both kinds
# should: 0.05 up to 100 rows, 0.0005 at 10,000. At 100 rows of the images a level of
# 0.001 would miss 35% of the coupled triplets instead of 15%.
FALSE_DISCOVERY = 0.05
FALSE_DISCOVERIES_TIMES_ROWS = 5.0

# Rows that must show a set all off: normal approximations of smaller counts fail. (Of
# 50 rows of independent features, mostly on, 11% had a latent without this.)
LEAST_COUNT = 5.0

# Largest number of triplets that are looked at; beyond it those of the most strongly
# coupled pairs. It bounds memory to 0.5 GB, whatever the data.
MAX_TRIPLETS = 2_000_000

# Triplets at a time, whose moments take 30 MB.
CHUNK = 1 << 18


class Triplets(NamedTuple):
    """Triplets of features that share a parent.

    ``sets (n, 3)`` in lexicographic order and ``strength (n,)``, the statistic by which
    the pre-test judged them.
    """

    sets: np.ndarray
    strength: np.ndarray


def discovery_level(n_rows: float) -> float:
    """False-discovery rate that "auto" allows."""
    return min(FALSE_DISCOVERY, FALSE_DISCOVERIES_TIMES_ROWS / n_rows)


def discovery_threshold(z, level, n_tests=None) -> float:
    """Smallest two-sided z-score that keeps the false-discovery rate.

    The procedure of Benjamini and Hochberg (1995). n_tests: number of all scores, if
    only the largest are given.
    """
    n_tests = len(z) if n_tests is None else n_tests
    ordered = np.sort(z)[::-1]
    passed = 2.0 * norm.sf(ordered) * n_tests <= level * np.arange(1, len(z) + 1)
    return float(ordered[np.flatnonzero(passed)[-1]]) if passed.any() else np.inf


def interaction(M) -> np.ndarray:
    """Logarithm of PMI(a, b) / CPMI(a, b | x), the same for every order of a, b, x.

    For priors up to one half it is positive if and only if the triplet shares a parent
    (Lemma 2 of Jernite et al. (2013)). As the prior grows beyond
    ``1 / (1 + sqrt(f_a f_b))``, where the mutual information is largest, it changes
    sign.
    """
    log = np.log(M)
    return log[:, 3:6].sum(axis=1) - log[:, :3].sum(axis=1) - log[:, 6]


def interaction_error(M, n_rows) -> np.ndarray:
    """Standard error of `interaction` by the delta method, from moments of the data."""
    signs = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, -1.0])
    return np.sqrt(subset_variance(M, signs / M) / np.maximum(n_rows, 1.0) + 1e-300)


def subset_moments(residual: Residual, sets, pairs, subsets=MEMBERS):
    """Moments of subsets of sets, in the data and without the known latents.

    subsets (n_subsets, size): which members -> raw, adjusted (n_sets, n_subsets).
    """
    raw = np.ones((len(sets), len(subsets)))
    influence = np.ones_like(raw)
    for column, members in enumerate(subsets):
        chosen = sets[:, members]
        if chosen.shape[1] > 2:
            raw[:, column] = residual.source.probability(chosen)
        elif chosen.shape[1]:
            raw[:, column] = pairs[chosen[:, 0], chosen[:, -1]]
        influence[:, column] = residual.influence(chosen)
    return raw, raw / influence


def pair_moments(source: MomentSource) -> np.ndarray:
    """P(both off) of all pairs in the data, with P(off) on the diagonal.

    They are counted once per source: on many rows this takes longer than anything else.
    """
    known = source.__dict__.get("_pair_moments")
    if known is not None:
        return known
    n_features = source.n_features
    one, two = np.triu_indices(n_features)
    pairs = np.empty((n_features, n_features))
    pairs[one, two] = source.probability(np.column_stack([one, two]))
    pairs[two, one] = pairs[one, two]
    pairs.setflags(write=False)
    source.__dict__["_pair_moments"] = pairs
    return pairs


def pair_strength(residual: Residual, pairs):
    """How much two features go together, in units of its standard error."""
    one, two = np.triu_indices(len(pairs), 1)
    sets = np.column_stack([one, two])
    if not len(sets):
        return sets, np.zeros(0), np.zeros(0)
    both, a, b = pairs[one, two], pairs[one, one], pairs[two, two]
    log_lift = np.log(both) - np.log(a) - np.log(b) - np.log(residual.influence(sets))
    for side in (one, two):
        log_lift += np.log(residual.influence(side[:, None]))
    n_rows = residual.source.known_rows(sets)
    log_lift[both * n_rows < 1.0] = 0.0
    variance = 1 / both - 1 / a - 1 / b + 2 * both / (a * b) - 1
    z = log_lift * np.sqrt(n_rows / np.maximum(variance, 1e-12))
    # A pair of constant features has neither variance nor dependence.
    z[(variance <= 1e-12) | (both * n_rows < LEAST_COUNT)] = 0.0
    return sets, log_lift, z


def _siblings(residual, pairs, threshold):
    """Pairs whose pointwise mutual information shows a shared parent."""
    sets, log_lift, z = pair_strength(residual, pairs)
    if threshold == "auto":
        strength = z
        least = discovery_threshold(z, discovery_level(residual.n_rows))
    else:
        strength, least = np.expm1(log_lift), threshold
    chosen = strength >= least
    return Triplets(sets[chosen], strength[chosen])


def join_sets(family: Triplets, n_features, limit):
    """Sets all of whose subsets with one feature less are in a family.

    If there would be too many, only the strongest members of the family take part.
    """
    sets, strength = family
    order = np.argsort(-strength, kind="stable")
    kept = len(order)
    while kept and _n_joined(np.sort(order[:kept]), sets) > limit:
        kept = int(0.8 * kept)
    sets = sets[np.sort(order[:kept])]
    size = sets.shape[1]
    first = _run_starts(sets[:, :-1])
    # Each set joins with those after it in its run, which differ in the last feature.
    run = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(sets))))
    stop = np.append(first[1:], len(sets))[run]
    n_partners = stop - np.arange(len(sets)) - 1
    left = np.repeat(np.arange(len(sets)), n_partners)
    offset = np.arange(len(left)) - np.repeat(
        np.cumsum(n_partners) - n_partners, n_partners
    )
    joined = np.column_stack([sets[left], sets[left + 1 + offset, -1]])
    keys = set_keys(sets, n_features)
    for missing in range(size - 1):
        subset = set_keys(np.delete(joined, missing, axis=1), n_features)
        place = np.minimum(np.searchsorted(keys, subset), len(keys) - 1)
        joined = joined[keys[place] == subset] if len(keys) else joined
    return joined


def _n_joined(chosen, sets):
    """Number of candidates that a join would look at."""
    first = _run_starts(sets[chosen][:, :-1])
    lengths = np.diff(np.append(first, len(chosen))).astype(np.int64)
    return int((lengths * (lengths - 1) // 2).sum())


def _run_starts(heads):
    """Where runs of equal rows start."""
    if not len(heads):
        return np.zeros(0, dtype=np.int64)
    change = (heads[1:] != heads[:-1]).any(axis=1)
    return np.concatenate([[0], np.flatnonzero(change) + 1])


def coupled_triplets(residual: Residual, pairs, threshold) -> Triplets:
    """Triplets of features that share a parent: the pre-test of Figure 2."""
    family = _siblings(residual, pairs, threshold)
    sets = join_sets(family, residual.n_features, MAX_TRIPLETS)
    strength = np.empty(len(sets))
    for start in range(0, len(sets), CHUNK):
        part = slice(start, start + CHUNK)
        raw, M = subset_moments(residual, sets[part], pairs)
        n_rows = residual.source.known_rows(sets[part])
        if threshold == "auto":
            # Negative if the prior is far above one half, see `interaction`.
            strength[part] = np.abs(interaction(M)) / interaction_error(raw, n_rows)
            strength[part][raw[:, 6] * n_rows < LEAST_COUNT] = 0.0
        else:
            strength[part] = _least_excess(M)
            strength[part][raw[:, 6] * n_rows < 1.0] = 0.0
    least = threshold
    if threshold == "auto":
        least = discovery_threshold(strength, discovery_level(residual.n_rows))
    chosen = strength >= least
    return Triplets(sets[chosen], strength[chosen])


def _least_excess(M):
    """PMI(a, b) - CPMI(a, b | x), the smallest of the three choices of x."""
    pmi = M[:, 3:6] / (M[:, [0, 0, 1]] * M[:, [1, 2, 2]])
    lift = np.exp(-interaction(M))
    return (pmi * (1.0 - lift)[:, None]).min(axis=1)
