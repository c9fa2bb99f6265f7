"""Parameters of one latent from the moments of two or three features it alone couples.

Everything is batched: one call solves all triplets, or all pairs, of a round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class TripletSolution(NamedTuple):
    """Solution of `solve_triplets`.

    ``parameters (n, 4)``: prior and failures of a, b, c, not clipped;
    ``gradient (n, 4, 7)`` with respect to the moments a, b, c, ab, ac, bc, abc;
    ``valid (n,)``: whether the triplet has a real solution.
    """

    parameters: np.ndarray
    gradient: np.ndarray
    valid: np.ndarray


class PairSolution(NamedTuple):
    """Solution of `solve_pairs`.

    ``failure (n,)``, not clipped; ``gradient (n, 3)`` with respect to the logarithm of
    the lift, the prior and the known failure; ``valid (n,)``.
    """

    failure: np.ndarray
    gradient: np.ndarray
    valid: np.ndarray


def _cumulants(M):
    """Covariances ab, ac, bc and third cumulant of the off indicators, with gradients.

    Returns values (n, 4) and gradients (n, 4, 7).
    """
    a, b, c, ab, ac, bc, abc = M.T
    one, zero = np.ones_like(a), np.zeros_like(a)
    values = np.stack(
        [
            ab - a * b,
            ac - a * c,
            bc - b * c,
            abc - a * bc - b * ac - c * ab + 2 * a * b * c,
        ],
        axis=1,
    )
    gradients = np.stack(
        [
            np.stack([-b, -a, zero, one, zero, zero, zero], axis=1),
            np.stack([-c, zero, -a, zero, one, zero, zero], axis=1),
            np.stack([zero, -c, -b, zero, zero, one, zero], axis=1),
            np.stack(
                [2 * b * c - bc, 2 * a * c - ac, 2 * a * b - ab, -c, -b, -a, one],
                axis=1,
            ),
        ],
        axis=1,
    )
    return values, gradients


def solve_triplets(M) -> TripletSolution:
    """Decompose the joint distribution of singly coupled triplets.

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
    cumulants, d_cumulants = _cumulants(M)
    third, d_third = cumulants[:, 3], d_cumulants[:, 3]
    covariance, d_covariance = cumulants[:, :3], d_cumulants[:, :3]
    discriminant = third**2 + 4.0 * covariance.prod(axis=1)
    # A covariance at the level of rounding is none: constant or independent features.
    scale = M[:, [0, 0, 1]] * M[:, [1, 2, 2]]
    valid = (discriminant > 0) & (np.abs(covariance) > 1e-13 * scale).all(axis=1)
    covariance = np.where(valid[:, None], covariance, 1.0)
    # The sign of the root under which most differences are positive.
    sign = np.sign(np.sign(covariance).sum(axis=1))
    root = sign * np.sqrt(np.where(valid, discriminant, 1.0))
    others = covariance[:, [1, 0, 0]] * covariance[:, [2, 2, 1]]
    d_root = (
        third[:, None] * d_third + 2.0 * np.einsum("nc,ncs->ns", others, d_covariance)
    ) / root[:, None]

    parameters = np.empty((len(M), 4))
    gradient = np.empty((len(M), 4, 7))
    prior = 0.5 * (1.0 + third / root)
    d_prior = 0.5 * (d_third - (third / root)[:, None] * d_root) / root[:, None]
    parameters[:, 0], gradient[:, 0] = prior, d_prior
    # Each feature's difference comes from the covariance of the two others.
    for feature, rest in enumerate([2, 1, 0]):
        difference = root / covariance[:, rest]
        d_difference = (
            d_root - difference[:, None] * d_covariance[:, rest]
        ) / covariance[:, rest, None]
        if_off = M[:, feature] + prior * difference
        d_if_off = prior[:, None] * d_difference + difference[:, None] * d_prior
        d_if_off[:, feature] += 1.0
        # A probability of being off that is not positive has no ratio.
        denominator = np.where(if_off > 0, if_off, 1.0)
        failure = (if_off - difference) / denominator
        parameters[:, feature + 1] = failure
        gradient[:, feature + 1] = (
            (1.0 - failure)[:, None] * d_if_off - d_difference
        ) / denominator[:, None]
    parameters[~valid] = [0.5, 1.0, 1.0, 1.0]
    gradient[~valid] = 0.0
    return TripletSolution(parameters, gradient, valid)


def solve_pairs(log_lift, prior, known_failure) -> PairSolution:
    """Learn one failure of a singly coupled pair from the other.

    Equation 6 of Halpern and Sontag (2013).
    """
    lift = np.exp(log_lift)
    influence = 1.0 - prior + prior * known_failure
    product = lift * influence
    numerator = (1.0 - prior) * (1.0 - product)
    denominator = prior * (product - known_failure)
    valid = denominator > 1e-12
    denominator = np.where(valid, denominator, 1.0)
    failure = np.where(valid, numerator / denominator, 1.0)

    # Columns: logarithm of the lift, prior, known failure.
    d_product = np.stack([product, lift * (known_failure - 1.0), lift * prior], axis=1)
    d_numerator = -(1.0 - prior)[:, None] * d_product
    d_numerator[:, 1] -= 1.0 - product
    d_denominator = prior[:, None] * d_product
    d_denominator[:, 1] += product - known_failure
    d_denominator[:, 2] -= prior
    gradient = (d_numerator - failure[:, None] * d_denominator) / denominator[:, None]
    gradient[~valid] = 0.0
    return PairSolution(failure, gradient, valid)
