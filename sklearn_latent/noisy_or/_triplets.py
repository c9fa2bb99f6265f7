"""Parameters of a known structure in closed form: the published estimator.

A latent that alone couples three features is determined by their joint distribution; a
schedule says of which triplets that is true, once known latents are divided out.
Everything is batched: one call solves all triplets, or all pairs, of a round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ._probabilities import clip_probability
from ._schedule import Schedule
from ._statistics.moments import NegativeMoments
from ._statistics.subsets import all_subsets, subset_products

# Subsets of a pair a, b among those of a triplet.
PAIR_COLUMNS = [0, 1, 3]


def solve_triplets(M) -> tuple[np.ndarray, np.ndarray]:
    """Decompose the joint distribution of singly coupled triplets.

    M (n, 7), moments a, b, c, ab, ac, bc, abc -> prior and failures of a, b, c, not
    clipped (n, 4), and whether there is a real solution (n,).

    A triplet that one latent couples is a mixture of two product distributions, which
    its third-order moments determine (Halpern and Sontag, 2013, Algorithm 2 and
    equation 4). For binary variables the decomposition has a closed form in the
    cumulants of the off indicators (Pearl and Tarsi, 1986). With ``d`` the differences
    that the latent makes to P(off),

    ``cov(a, b) = p (1 - p) d_a d_b`` and
    ``k(a, b, c) = p (1 - p) (2 p - 1) d_a d_b d_c``,

    so that ``D = k^2 + 4 cov(a, b) cov(a, c) cov(b, c)`` is a square,
    ``d_a = sqrt(D) / cov(b, c)`` and ``2 p - 1 = k / sqrt(D)``. Of the two labellings
    of the latent's states, the one in which it switches the features on is noisy-or's.
    """
    a, b, c, ab, ac, bc, abc = M.T
    # Of each pair, and in reverse order of the feature that it lacks.
    covariance = np.stack([ab - a * b, ac - a * c, bc - b * c], axis=1)
    third = abc - a * bc - b * ac - c * ab + 2.0 * a * b * c
    discriminant = third**2 + 4.0 * covariance.prod(axis=1)
    # A covariance at the level of rounding is none: constant or independent features.
    scale = M[:, [0, 0, 1]] * M[:, [1, 2, 2]]
    valid = (discriminant > 0) & (np.abs(covariance) > 1e-13 * scale).all(axis=1)
    covariance = np.where(valid[:, None], covariance, 1.0)
    # The sign of the root under which most differences are positive.
    sign = np.sign(np.sign(covariance).sum(axis=1))
    root = sign * np.sqrt(np.where(valid, discriminant, 1.0))
    prior = 0.5 * (1.0 + third / root)
    difference = root[:, None] / covariance[:, ::-1]
    if_off = M[:, :3] + prior[:, None] * difference
    # A probability of being off that is not positive has no ratio.
    failure = (if_off - difference) / np.where(if_off > 0, if_off, 1.0)
    parameters = np.column_stack([prior, failure])
    parameters[~valid] = [0.5, 1.0, 1.0, 1.0]
    return parameters, valid


def triplet_gradient(M, step=1e-5) -> np.ndarray:
    """Derivative of the parameters by the logarithms of the moments, (n, 4, 7)."""
    factors = np.exp(step * np.eye(7))
    changes = [solve_triplets(M * f)[0] - solve_triplets(M / f)[0] for f in factors]
    return np.stack(changes, axis=2) / (2.0 * step)


def solve_pairs(log_lift, prior, known_failure) -> tuple[np.ndarray, np.ndarray]:
    """Learn one failure of a singly coupled pair from the other; and whether it exists.

    Equation 6 of Halpern and Sontag (2013).
    """
    product = np.exp(log_lift) * (1.0 - prior + prior * known_failure)
    denominator = prior * (product - known_failure)
    valid = denominator > 1e-12
    failure = (1.0 - prior) * (1.0 - product) / np.where(valid, denominator, 1.0)
    return np.where(valid, failure, 1.0), valid


class Estimates(NamedTuple):
    """Parameters learned so far.

    prior: NaN where unknown, (n_latents,)
    failure: 1 where there is no edge, NaN where unknown, (n_latents, n_features)
    supported: whether the moments determined priors, then failures of edges in
        row-major order; if not they have neutral values, (n_latents + n_edges,)
    """

    prior: np.ndarray
    failure: np.ndarray
    supported: np.ndarray

    @classmethod
    def unknown(cls, structure) -> Estimates:
        """Know nothing but the structure."""
        return cls(
            np.full(len(structure), np.nan),
            np.where(structure, np.nan, 1.0),
            np.zeros(len(structure) + int(structure.sum()), dtype=bool),
        )


def solve_schedule(moments: NegativeMoments, schedule: Schedule) -> Estimates:
    """Learn parameters by following a schedule.

    The second pass of Algorithm 1 of Halpern and Sontag (2013).
    """
    structure = schedule.structure
    estimates = Estimates.unknown(structure)
    prior, failure, supported = estimates
    n_latents = len(structure)
    # Parameters are numbered: priors, then edges.
    number = np.full(structure.shape, -1)
    number[structure] = np.arange(n_latents, len(supported))
    is_pair = schedule.step_features[:, 2] < 0
    for level in range(schedule.n_rounds):
        in_round = schedule.step_depth == level
        kinds = (~is_pair, _solve_triplet_steps), (is_pair, _solve_pair_steps)
        found = [
            solve(moments, schedule, np.flatnonzero(in_round & kind), estimates, number)
            for kind, solve in kinds
            if (in_round & kind).any()
        ]
        parameter, value, valid = (
            np.concatenate([part[place].ravel() for part in found])
            for place in range(3)
        )
        targets = schedule.depth == level
        new_prior = np.zeros(n_latents, dtype=bool)
        new_prior[schedule.step_latent[in_round & ~is_pair]] = True
        new_prior &= np.isnan(prior)
        wanted = np.append(new_prior, targets[structure])
        usable = np.flatnonzero(valid & (parameter >= 0) & wanted[parameter])
        # As published, the first valid estimate counts.
        chosen, first = np.unique(parameter[usable], return_index=True)
        # Without support: a latent that is on half of the time, edges without effect.
        learned = np.where(np.arange(len(wanted)) < n_latents, 0.5, 1.0)
        learned[chosen] = value[usable[first]]
        learned = clip_probability(learned)
        supported[chosen] = True
        prior[new_prior] = learned[:n_latents][new_prior]
        failure[targets] = learned[number[targets]]
    return estimates


def _solve_triplet_steps(moments, schedule, steps, estimates, number):
    """Numbers, values and validity of (prior, a, b, c) per triplet."""
    log_M, known = _adjusted_moments(moments, schedule, steps, estimates, range(7))
    latent, features = schedule.step_latent[steps], schedule.step_features[steps]
    parameters, valid = solve_triplets(np.exp(log_M))
    which = np.column_stack([latent, number[latent[:, None], features]])
    return which, parameters, np.repeat(valid & known, 4)


def _solve_pair_steps(moments, schedule, steps, estimates, number):
    """The same for pairs, which give the target's failure alone."""
    log_M, known = _adjusted_moments(moments, schedule, steps, estimates, PAIR_COLUMNS)
    latent, features = schedule.step_latent[steps], schedule.step_features[steps]
    lift = log_M[:, 2] - log_M[:, 0] - log_M[:, 1]
    of_latent = estimates.prior[latent], estimates.failure[latent, features[:, 1]]
    failure, valid = solve_pairs(lift, *of_latent)
    return number[latent, features[:, 0]], failure, valid & known


def _adjusted_moments(moments, schedule, steps, estimates, columns):
    """Logarithms of moments of steps, without known parents; whether they are known.

    Section 3.2 of Halpern and Sontag (2013).
    """
    features = schedule.step_features[steps]
    sets = moments.index(all_subsets(features)[:, list(columns)])
    log_M = np.log(moments.probability[sets])
    # Features that were never observed together tell nothing.
    known = moments.total[sets].min(axis=1) > 0
    owner, parent = schedule.removals
    place = np.full(len(schedule.step_latent), -1)
    place[steps] = np.arange(len(steps))
    mine = place[owner] >= 0
    owner, parent = place[owner[mine]], parent[mine]
    if len(owner):
        failure = estimates.failure[parent[:, None], features[owner]]
        failure[features[owner] < 0] = 1.0
        product = subset_products(failure.T)[list(columns)].T
        # Their influence on each subset (equation 3).
        influence = 1.0 - estimates.prior[parent][:, None] * (1.0 - product)
        at = owner, np.arange(len(owner))
        gather = sparse.csr_array((np.ones(len(owner)), at), (len(steps), len(owner)))
        log_M -= gather @ np.log(influence)
    return log_M, known


def solve_leak(moments: NegativeMoments, prior, failure) -> np.ndarray:
    """Give what is not accounted for to the leaks.

    Equation 5 of Halpern and Sontag (2013).
    """
    n_features = failure.shape[1]
    single = np.full((n_features, moments.sets.shape[1]), -1)
    single[:, -1] = np.arange(n_features)
    off = moments.probability[moments.index(single)]
    explained = np.prod(1.0 - prior[:, None] + prior[:, None] * failure, axis=0)
    return clip_probability(1.0 - off / explained)
