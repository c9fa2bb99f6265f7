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
Theorems and equations are those of Elidan et al. (2007).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._links import Link
from .._noise import Noise


class Response(NamedTuple):
    """How children respond to the weighted sum of their parents.

    theta: parameters of the link, (..., 3)
    variance: of the noise, (...)
    """

    link: Link
    noise: Noise
    theta: np.ndarray
    variance: np.ndarray

    def mean(self, eta):
        """Means of the children, where the noise allows for them."""
        return self.noise.clip(self.link.value(eta, self._theta))

    def log_density(self, x, eta):
        """Log-density of the children."""
        return self.noise.log_density(x, self.mean(eta), self._variance)

    def ideal_sum(self, x):
        """Weighted sums that would make the children most probable."""
        return self.link.inverse(self.noise.ideal_mean(x, self._variance), self._theta)

    def sensitivity(self, eta):
        """Curvature of the density by the weighted sum, at an ideal one."""
        curvature = self.noise.ideal_curvature(self.mean(eta), self._variance)
        return curvature * self.link.derivative(eta, self._theta) ** 2

    @property
    def _theta(self):
        return np.asarray(self.theta)[..., None, :]

    @property
    def _variance(self):
        return np.asarray(self.variance)[..., None]


def ideal_profile(x, eta, response: Response):
    """Profile of the ideal parent, Definitions 3.1 and 8.1.

    With what a present parent contributes taken off `eta` it is the profile of the
    ideal parent in its place, Definition 4.1.
    """
    return response.ideal_sum(x) - eta


def inner_product_weights(profile, eta, response: Response, sample_weight=None):
    """Weights of the inner product K of Theorem 8.2."""
    weights = response.sensitivity(eta + profile)
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
    """Gain of a candidate with only its own scale fitted, Theorem 3.2."""
    return 0.5 * explained(profile, candidates, weights)


def similarity_c2(profile, candidates, weights, total):
    """Gain of a candidate with its own scale and the variance fitted, Theorem 3.4."""
    length = np.einsum("...n,...n->...", profile**2, weights)[..., None]
    usable = length > np.finfo(float).tiny
    share = explained(profile, candidates, weights) / np.where(usable, length, np.inf)
    # A candidate in the direction of the profile explains everything.
    return -0.5 * total * np.log1p(-np.minimum(share, 1.0 - 1e-15))


def expected_gain_c1(
    x, eta, profile, candidates, response: Response, *, now=None, sample_weight=None
):
    """Approximate gain in log-likelihood with only the candidate's scale fitted.

    Equation (14), Theorem 7.1, and equation (19), Theorem 8.2, of which the former is
    the case of additive noise.
    """
    weights = inner_product_weights(profile, eta, response, sample_weight)
    length = np.einsum("...n,...n->...", profile**2, weights)
    rows = 1.0 if sample_weight is None else sample_weight
    ideal, present = (
        (rows * response.log_density(x, total)).sum(-1)
        for total in (eta + profile, eta if now is None else now)
    )
    gain = similarity_c1(profile, candidates, weights)
    return gain + (ideal - present - 0.5 * length)[..., None]


def expected_gain_c2(
    x, eta, profile, candidates, response: Response, *, now=None, sample_weight=None
):
    """Approximate gain with the candidate's scale and the variance fitted, Theorem 7.1.

    For additive noise only: there is no such expression for others (Section 8.2).
    """
    response = response._replace(variance=np.ones(np.shape(profile)[:-1]))
    weights = inner_product_weights(profile, eta, response, sample_weight)
    rows = np.ones(np.shape(x)[-1]) if sample_weight is None else sample_weight
    mean = response.mean(eta if now is None else now)
    k1 = np.einsum("...n,...n->...", profile**2, weights)
    k2 = (rows * (x - mean) ** 2).sum(axis=-1)
    tiny = np.finfo(float).tiny
    total = float(rows.sum())
    correction = 0.5 * total * np.log(np.maximum(k1, tiny) / np.maximum(k2, tiny))
    return similarity_c2(profile, candidates, weights, total) - correction[..., None]
