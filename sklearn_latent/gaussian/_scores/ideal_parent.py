r"""Ideal parents and how similar candidates are to them.

The ideal parent of a child is the profile (value in each row) of a further parent that
would make the child's values most probable, all parameters kept. A candidate is worth
fitting if it is similar to it. One formula serves all links and noise models: with the
inner product of Theorem 8.2,

.. math:: K(a, b) = \sum_m a_m b_m w_m, \quad
   w_m = -\frac{1}{q_m} \frac{\partial^2 q_m}{\partial g_m^2} (g'_m)^2,

the similarity is a function of the angle between profile and candidate. For the linear
link with additive noise all weights are the inverse of the noise variance.

Profiles have the rows on the last axis, any axes before; candidates have shape
(n_candidates, n_samples).

References
----------
Elidan, G., Nachman, I. and Friedman, N. (2007). "Ideal parent" structure learning for
continuous variable Bayesian networks. JMLR 8, 1799-1833.
"""

from __future__ import annotations

import numpy as np

from .._nonlinear.links import Link
from .._nonlinear.noise import Noise

__all__ = [
    "expected_gain_c1",
    "expected_gain_c2",
    "explained",
    "ideal_profile",
    "inner_product_weights",
    "replace_profile",
    "similarity_c1",
    "similarity_c2",
]


def ideal_profile(x, eta, theta, variance, link: Link, noise: Noise):
    """Profile of the ideal parent, Definitions 3.1 and 8.1.

    x (..., n_samples), eta (..., n_samples), theta (..., 3), variance (...) -> profile
    (..., n_samples).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.gaussian._scores.ideal_parent import ideal_profile
    >>> from sklearn_latent.gaussian._nonlinear.links import Linear
    >>> from sklearn_latent.gaussian._nonlinear.noise import Additive
    >>> x, eta = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0])
    >>> ideal_profile(x, eta, np.array([1.0, 1.0, 0.0]), 1.0, Linear(), Additive())
    array([0., 0., 1.])
    """
    wanted = noise.ideal_mean(x, np.asarray(variance)[..., None])
    return link.inverse(wanted, np.asarray(theta)[..., None, :]) - eta


def replace_profile(x, eta, leaving, theta, variance, link: Link, noise: Noise):
    """Profile of the ideal parent in place of a present one, Definition 4.1.

    leaving (..., n_samples) -> profile (..., n_samples).
    """
    return ideal_profile(x, eta - leaving, theta, variance, link, noise)


def inner_product_weights(
    profile, eta, theta, variance, link: Link, noise: Noise, sample_weight=None
):
    """Weights of the inner product K of Theorem 8.2.

    profile (..., n_samples), eta (..., n_samples), sample_weight (n_samples,) ->
    weights (..., n_samples).
    """
    total = eta + profile
    theta = np.asarray(theta)[..., None, :]
    mean = noise.clip(link.value(total, theta))
    weights = noise.ideal_curvature(mean, np.asarray(variance)[..., None])
    weights = weights * link.derivative(total, theta) ** 2
    return weights if sample_weight is None else weights * sample_weight


def explained(profile, candidates, weights):
    """K(y, z)^2 / K(z, z): what a candidate, at its best scale, explains of a profile.

    profile (..., n_samples), candidates (n_candidates, n_samples), weights (...,
    n_samples) -> explained (..., n_candidates).
    """
    inner = (profile * weights) @ candidates.T
    length = weights @ (candidates**2).T
    usable = length > np.finfo(float).tiny
    return inner**2 / np.where(usable, length, np.inf)


def similarity_c1(profile, candidates, weights):
    """Gain of a candidate with only its own scale fitted, Theorem 3.2.

    Returns similarity (..., n_candidates).
    """
    return 0.5 * explained(profile, candidates, weights)


def similarity_c2(profile, candidates, weights, total):
    """Gain of a candidate with its own scale and the variance fitted, Theorem 3.4.

    Returns similarity (..., n_candidates).
    """
    length = np.einsum("...n,...n->...", profile**2, weights)[..., None]
    usable = length > np.finfo(float).tiny
    share = explained(profile, candidates, weights) / np.where(usable, length, np.inf)
    # A candidate in the direction of the profile explains everything.
    return -0.5 * total * np.log1p(-np.minimum(share, 1.0 - 1e-15))


def expected_gain_c1(
    x,
    eta,
    profile,
    candidates,
    theta,
    variance,
    link,
    noise,
    *,
    now=None,
    sample_weight=None,
):
    """Approximate gain in log-likelihood with only the candidate's scale fitted.

    Equation (14), Theorem 7.1, and equation (19), Theorem 8.2, of which the former is
    the case of additive noise.

    now (..., n_samples), sample_weight (n_samples,) -> gain (..., n_candidates).
    """
    weights = inner_product_weights(
        profile, eta, theta, variance, link, noise, sample_weight
    )
    length = np.einsum("...n,...n->...", profile**2, weights)
    rows = 1.0 if sample_weight is None else sample_weight
    theta, spread = np.asarray(theta)[..., None, :], np.asarray(variance)[..., None]
    ideal, present = (
        (rows * noise.log_density(x, noise.clip(link.value(t, theta)), spread)).sum(-1)
        for t in (eta + profile, eta if now is None else now)
    )
    gain = similarity_c1(profile, candidates, weights)
    return gain + (ideal - present - 0.5 * length)[..., None]


def expected_gain_c2(
    x,
    eta,
    profile,
    candidates,
    theta,
    link,
    noise,
    *,
    total,
    now=None,
    sample_weight=None,
):
    """Approximate gain with the candidate's scale and the variance fitted, Theorem 7.1.

    For additive noise only: there is no such expression for others (Section 8.2).

    Returns gain (..., n_candidates).
    """
    one = np.ones(np.shape(profile)[:-1])
    weights = inner_product_weights(
        profile, eta, theta, one, link, noise, sample_weight
    )
    rows = 1.0 if sample_weight is None else sample_weight
    mean = link.value(eta if now is None else now, np.asarray(theta)[..., None, :])
    k1 = np.einsum("...n,...n->...", profile**2, weights)
    k2 = (rows * (x - mean) ** 2).sum(axis=-1)
    tiny = np.finfo(float).tiny
    correction = 0.5 * total * np.log(np.maximum(k1, tiny) / np.maximum(k2, tiny))
    return similarity_c2(profile, candidates, weights, total) - correction[..., None]
