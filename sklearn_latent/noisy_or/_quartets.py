"""Latents by the quartets of features that they alone couple, and all their children.

The algorithm of Jernite et al. (2013), whose sections, figures and equations are cited.
"""

from __future__ import annotations

from itertools import combinations
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from .._core.validation import check_choice
from ._coupled_sets import (
    coupled_triplets,
    discovery_level,
    discovery_threshold,
    interaction,
    interaction_error,
    join_sets,
    pair_moments,
    subset_moments,
)
from ._noisy_or_network import NoisyOrNetwork
from ._probabilities import clip_probability
from ._statistics.moments import MomentSource, Residual
from ._statistics.subsets import all_subsets, subset_variance
from ._triplets import solve_triplets, triplet_gradient

# Share of singly coupled quartets that "auto" gives away.
FALSE_REJECTION = 0.01

# Largest number of quartets that are looked at; beyond it those of the most strongly
# coupled triplets. It bounds memory to 0.5 GB, whatever the data.
MAX_QUARTETS = 1_000_000

# Variance of a parameter over the triplets of a quartet, times the rows: a joint
# probability has a standard error of at most 0.5 / sqrt(rows), and the parameters one
# of a few times that.
COHERENCE_VARIANCE = 25.0

# Quartets at a time, whose matrices take 50 MB.
CHUNK = 1 << 15

# Row s, column i: feature i belongs to subset number s of a quartet.
SUBSETS = (np.arange(16)[:, None] >> np.arange(4) & 1).astype(bool)
# Cell c of the joint distribution has the features of subset c off. All of S is off in
# the cells that contain S.
INSIDE = (SUBSETS[:, None, :] <= SUBSETS[None, :, :]).all(axis=2).astype(float)
CELLS = np.linalg.inv(INSIDE)
# The three ways to write the cells as a matrix of one pair against the other.
UNFOLDINGS = np.array(
    [
        np.arange(16).reshape(2, 2, 2, 2).T.transpose(order).reshape(4, 4)
        for order in ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))
    ]
)
TRIPLES = list(combinations(range(4), 3))


class Thresholds(NamedTuple):
    """Test and thresholds; numbers are the paper's, "auto" is calibrated."""

    test: str = "rank"
    quartet: float | str = "auto"
    coherence: float | str = "auto"
    extend: float | str = "auto"

    @classmethod
    def of(cls, estimator) -> Thresholds:
        """Validate the parameters of an estimator."""
        check_choice("test", estimator.test, ("rank", "coherence"))
        values = {}
        for name in cls._fields[1:]:
            value = getattr(estimator, f"{name}_threshold")
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not (
                (isinstance(value, str) and value == "auto")
                or (is_number and 0 < float(value) < np.inf)
            ):
                raise ValueError(
                    f"{name}_threshold must be 'auto' or a positive number, "
                    f"got {value!r}."
                )
            values[name] = value
        return cls(estimator.test, **values)


class Quartets(NamedTuple):
    """Quartets that passed a quartet test, most credible first.

    ``sets (n, 4)``; ``statistic (n,)``: third singular value or reconstruction error
    for thresholds that are numbers, chi-squared divided by its critical value for
    "auto"; ``moments (n, 16)``: P(all off) of the subsets after subtraction.
    """

    sets: np.ndarray
    statistic: np.ndarray
    moments: np.ndarray


def third_singular_value(moments) -> np.ndarray:
    """Rank test of Section 2.1: largest over the three unfoldings."""
    matrices = (moments @ CELLS.T)[:, UNFOLDINGS]
    return np.linalg.svd(matrices, compute_uv=False)[:, :, 2].max(axis=1)


def rank_test(raw, moments, n_rows) -> np.ndarray:
    """Is the third singular value more than sampling noise?

    To first order, the two smallest singular values are those of the noise, projected
    on the null spaces of the unfolding: four numbers with a covariance that the delta
    method gives, so that their squared length in that metric is chi-squared with four
    degrees of freedom if one latent couples the quartet (Robin and Smith, 2000).
    """
    scale = moments / raw
    raw_cells = raw @ CELLS.T
    matrices = (moments @ CELLS.T)[:, UNFOLDINGS]
    U, S, Vt = np.linalg.svd(matrices)
    statistic = np.zeros(len(raw))
    for unfolding, index in enumerate(UNFOLDINGS):
        u, v = U[:, unfolding, :, 2:], Vt[:, unfolding, 2:, :]
        weights = np.zeros((len(raw), 4, 16))
        # Coefficient of each cell in u_i' M v_j.
        products = np.einsum("nri,njc->nijrc", u, v).reshape(len(raw), 4, 16)
        weights[:, :, index.ravel()] = products
        # How one row that falls into a cell moves them, through moments and scales.
        pull = (weights @ CELLS) * scale[:, None, :] @ INSIDE
        mean = np.einsum("nkc,nc->nk", pull, raw_cells)
        covariance = np.einsum("nkc,nlc,nc->nkl", pull, pull, raw_cells)
        covariance -= mean[:, :, None] * mean[:, None, :]
        size = np.trace(covariance, axis1=1, axis2=2)[:, None, None]
        # Without the ridge, cells that are empty would make it singular.
        covariance += (1e-6 * size + 1e-300) * np.eye(4)
        values = np.zeros((len(raw), 4, 1))
        values[:, 0, 0], values[:, 3, 0] = S[:, unfolding, 2], S[:, unfolding, 3]
        distance = np.linalg.solve(covariance, values)[:, :, 0]
        statistic = np.maximum(
            statistic, n_rows * (distance * values[:, :, 0]).sum(axis=1)
        )
    return statistic / chi2.isf(FALSE_REJECTION / len(UNFOLDINGS), 4)


def quartet_parameters(moments):
    """Parameters of each quartet's latent from each of its triplets (equation 2).

    moments (n, 16) -> prior (n, 4), failure (n, 4, 4), off (n, 4, 4), valid (n, 4).
    """
    n = len(moments)
    prior, valid = np.empty((n, 4)), np.empty((n, 4), dtype=bool)
    failure, off = np.full((n, 4, 4), np.nan), np.full((n, 4, 4), np.nan)
    for number, triple in enumerate(TRIPLES):
        members = np.array(triple)
        subsets = all_subsets(members[None])[0]
        columns = [int((1 << s[s >= 0]).sum()) for s in subsets]
        M = moments[:, columns]
        parameters, valid[:, number] = solve_triplets(M)
        prior[:, number], failures = parameters[:, 0], parameters[:, 1:]
        failure[:, number, members] = failures
        share = 1.0 - prior[:, [number]] * (1.0 - failures)
        off[:, number, members] = M[:, :3] / np.where(share > 0, share, 1.0)
    return prior, failure, off, valid


def coherence_test(moments):
    """Coherence test of Section 2.1."""
    prior, failure, off, valid = quartet_parameters(moments)
    spread = np.maximum(prior.var(axis=1), np.nanvar(failure, axis=1).max(axis=1))
    variance = np.where(valid.all(axis=1), spread, np.inf)
    p, f, rest = (
        prior.mean(axis=1),
        np.nanmean(failure, axis=1),
        np.nanmean(off, axis=1),
    )
    rebuilt = np.empty_like(moments)
    for subset, members in enumerate(SUBSETS):
        share = 1.0 - p + p * f[:, members].prod(axis=1)
        rebuilt[:, subset] = share * rest[:, members].prod(axis=1)
    error = np.abs((rebuilt - moments) @ CELLS.T).max(axis=1)
    return variance, error


def find_quartets(residual: Residual, pairs, thresholds: Thresholds) -> Quartets:
    """All quartets that pass pre-test and quartet test, most credible first."""
    triplets = coupled_triplets(residual, pairs, thresholds.extend)
    sets = join_sets(triplets, residual.n_features, MAX_QUARTETS)
    passed = [np.zeros(0, dtype=np.int64)]
    statistics, moments = [np.zeros(0)], [np.zeros((0, 16))]
    for start in range(0, len(sets), CHUNK):
        raw, M = subset_moments(residual, sets[start : start + CHUNK], pairs, SUBSETS)
        n_rows = residual.source.known_rows(sets[start : start + CHUNK])
        statistic, accepted = _judge(raw, M, n_rows, thresholds)
        chosen = np.flatnonzero(accepted)
        passed.append(start + chosen)
        statistics.append(statistic[chosen])
        moments.append(M[chosen])
    statistic = np.concatenate(statistics)
    order = np.argsort(statistic, kind="stable")
    return Quartets(
        sets[np.concatenate(passed)[order]],
        statistic[order],
        np.concatenate(moments)[order],
    )


def _judge(raw, moments, n_rows, thresholds):
    """Statistic by which quartets are ranked, and whether each passes."""
    test, quartet, coherence, _ = thresholds
    if test == "rank":
        if quartet == "auto":
            statistic = rank_test(raw, moments, n_rows)
            return statistic, statistic <= 1.0
        statistic = third_singular_value(moments)
        return statistic, statistic <= quartet
    variance, error = coherence_test(moments)
    if quartet == "auto":
        quartet = 1.0 / np.sqrt(np.maximum(n_rows, 1.0))
    if coherence == "auto":
        coherence = COHERENCE_VARIANCE / np.maximum(n_rows, 1.0)
    return error, (variance <= coherence) & (error <= quartet)


def latent_of_quartet(moments):
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


class Causes(NamedTuple):
    """Latents, and how each was found.

    network: with all latents
    depth: round in which a quartet revealed the latent; inf: none did, (n_latents,)
    quartets: that quartet; -1: none, (n_latents, 4)
    prior_errors, failure_errors: standard errors, NaN where unknown, as the parameters
    """

    network: NoisyOrNetwork
    depth: np.ndarray
    quartets: np.ndarray
    prior_errors: np.ndarray
    failure_errors: np.ndarray

    @classmethod
    def none(cls, leak) -> Causes:
        """No latent."""
        quartets, errors = np.zeros((0, 4), dtype=np.int64), np.zeros((0, len(leak)))
        network = NoisyOrNetwork._independent(leak)
        return cls(network, np.zeros(0), quartets, np.zeros(0), errors)

    def keep(self, latents) -> Causes:
        """Some of the latents, in some order."""
        found = (values[latents] for values in self[1:])
        return Causes(self.network._keep(latents), *found)

    def add(self, prior, failure, *found) -> Causes:
        """Further latents; the leaks stay."""
        pairs = zip(self[1:], found, strict=True)
        network = self.network._with_latents(prior, failure)
        return Causes(network, *(np.concatenate(pair) for pair in pairs))


def discover(
    source: MomentSource, thresholds: Thresholds, max_depth=None, report=None
) -> Causes:
    """STRUCTURE-LEARN of Figure 2: rounds of quartet tests and subtraction."""
    n_features = source.n_features
    found, depth = Causes.none(np.zeros(n_features)), 0
    residual = Residual(source, [], np.ones((0, n_features)))
    while n_features >= 4 and (max_depth is None or depth <= max_depth):
        n_latents = len(found.depth)
        found = _round(found, residual, thresholds, depth)
        network = found.network
        residual = Residual(source, network.prior, network.failure)
        if len(found.depth) == n_latents or (report and report(network)):
            break
        depth += 1
    # Leaks explain what the latents leave of P(off).
    off = residual.probability(np.arange(n_features)[:, None])
    return found._replace(network=found.network._with(leak=clip_probability(1.0 - off)))


def _round(found: Causes, residual: Residual, thresholds, depth) -> Causes:
    """Accept quartets in order, unless a latent of this round couples two of them."""
    pairs = pair_moments(residual.source)
    quartets = find_quartets(residual, pairs, thresholds)
    free = np.ones(len(quartets.sets), dtype=bool)
    while free.any():
        best = int(np.argmax(free))
        free[best] = False
        prior, failure, valid = latent_of_quartet(quartets.moments[best])
        if not valid:
            continue
        quartet = quartets.sets[best]
        row = extend(residual, pairs, quartet, prior, failure, thresholds.extend)
        # A quartet that one latent couples shares at most one child with another.
        free &= (row < 1.0)[quartets.sets].sum(axis=1) < 2
        prior_error, errors = _quartet_errors(residual, pairs, quartet)
        when = np.array([float(depth)])
        new = when, quartet[None], prior_error, errors
        found = found.add(clip_probability(prior), row[None], *new)
    return found


def _quartet_errors(residual: Residual, pairs, quartet):
    """Standard errors of a prior and of the failures of a quartet, by the delta method.

    Medians over its triplets, as for the parameters. What was subtracted counts as
    known.
    """
    sets = quartet[np.array(TRIPLES)]
    raw, M = subset_moments(residual, sets, pairs)
    gradient = triplet_gradient(M) / raw[:, None, :]
    errors = np.sqrt(subset_variance(raw, gradient) / residual.n_rows)
    of_failures = np.full((1, residual.n_features), np.nan)
    for feature in quartet:
        of_failures[0, feature] = np.median(errors[:, 1:][sets == feature])
    return np.median(errors[:, :1], axis=0), of_failures
