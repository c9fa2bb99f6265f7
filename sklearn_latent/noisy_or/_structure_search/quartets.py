"""Which quartets of features are singly coupled.

The quartet tests of Jernite et al. (2013), whose sections and equations are cited.
"""

from __future__ import annotations

from itertools import combinations
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from ..._core.validation import check_choice
from .._parameters.mixture import solve_triplets
from .._statistics.moments import Residual
from .._statistics.subsets import all_subsets
from .coupling import coupled_triplets, join_sets, subset_moments

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
        solution = solve_triplets(M)
        prior[:, number] = solution.parameters[:, 0]
        failure[:, number, members] = solution.parameters[:, 1:]
        share = 1.0 - prior[:, [number]] * (1.0 - solution.parameters[:, 1:])
        off[:, number, members] = M[:, :3] / np.where(share > 0, share, 1.0)
        valid[:, number] = solution.valid
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
