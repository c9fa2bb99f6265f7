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

`IdealScan` and `TangentScan` look at all candidates of a family together, at the cost
of a few matrix products, and fit none of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._linear_scores import COLLINEAR
from ._links import Link
from ._noise import Additive, Noise


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


class IdealScan:
    """Gains that C1 or C2 expect, linearised at the ideal parent.

    All parameters of the family are frozen but the scale of the candidate and, in C2,
    the variance. C2 is for additive noise; else C1 is taken.
    """

    def __init__(self, fitter, similarity):
        self.fitter = fitter
        self.use_c2 = similarity == "C2" and isinstance(fitter.noise, Additive)

    def scan(self, child, order, weights, theta, variance):
        """As in `TangentScan`."""
        fitter = self.fitter
        link, noise = fitter.link, fitter.noise
        x = fitter.targets[child]
        parts = np.reshape(weights, (-1, 1)) * fitter.columns[list(order)]
        now = parts.sum(axis=0)
        eta = np.vstack([now, now - parts])
        if not order:
            variance = fitter.root_variance[child]
            mean = fitter.root_mean[child]
            theta = link.spanning(mean, np.abs(x - mean).max())
            now = link.inverse(np.full(len(x), mean), theta)
            if noise.positive:
                variance = variance * (fitter.scale / fitter.child_scale)[child] ** 2
        theta = np.broadcast_to(theta, (len(eta), len(theta)))
        response = Response(link, noise, theta, np.full(len(eta), variance))
        gain = expected_gain_c2 if self.use_c2 else expected_gain_c1
        return gain(
            x,
            eta,
            ideal_profile(x, eta, response),
            fitter.columns[:-1],
            response,
            now=now,
            sample_weight=fitter.weight,
        )


class TangentScan:
    """Gains with all parameters free, to first order around the present fit ("C3").

    C1 and C2 linearise the link where the ideal parent would put it, which may be far
    away. Here it is linearised at the present fit, and all parameters move: a linear
    regression on the tangent space of the family. For a linear link with additive noise
    this is the gain itself.
    """

    def __init__(self, fitter):
        self.fitter = fitter
        self._candidates = np.ascontiguousarray(fitter.columns[:-1].T)
        self._squares = self._candidates**2
        weight = fitter.weight
        self._weight = np.ones(len(self._candidates)) if weight is None else weight
        self._sums = self._weight @ self._candidates
        self._lengths = self._weight @ self._squares

    def _root(self, child):
        """Gains of additions to a family without parents, (1, n_nodes)."""
        fitter = self.fitter
        mean, variance = fitter.root_mean[child], fitter.root_variance[child]
        root = fitter.noise.root
        metric = root.information(mean, variance)
        residual = root.score(fitter.targets[child], mean, variance) / metric
        target = residual * self._weight
        cross = target @ self._candidates - target.sum() * self._sums / fitter.total
        spread = self._lengths - self._sums**2 / fitter.total
        gains = metric * _explained(cross, spread, self._lengths)
        return self._gain(gains, metric * (target @ residual), root)[None]

    def scan(self, child, order, weights, theta, variance):
        """Gains of additions to a family and of replacements in it.

        theta (3,) -> gains (n_parents + 1, n_nodes), those of additions first.
        """
        fitter = self.fitter
        if not order:
            return self._root(child)
        parents = fitter.columns[list(order)]
        weights = np.asarray(weights)
        eta = weights @ parents + theta[2]
        shape, slope = fitter.link.shape(eta), fitter.link.shape_derivative(eta)
        mean = fitter.noise.clip(theta[0] + theta[1] * shape)
        slope = theta[1] * slope
        x = fitter.targets[child]
        metric = fitter.noise.information(mean, variance)
        residual = fitter.noise.score(x, mean, variance) / metric
        metric = metric * self._weight
        # Directions in which the family can move: parents, offset, scale.
        rows = [slope * parents, np.ones((1, len(x)))]
        if fitter.link.scaled:
            rows.append(shape[None])
        tangent = np.vstack(rows)
        gram = (tangent * metric) @ tangent.T
        effects = np.vstack([tangent, residual]) * (metric * slope)
        effects = effects @ self._candidates
        along = tangent @ (metric * residual)
        length = (metric * slope**2) @ self._squares
        squares = float(metric @ residual**2)
        _, coefficients, left = _regress(gram, effects[:-1], along)
        cross = effects[-1] - left @ effects[:-1]
        spread = length - np.einsum("ij,ij->j", effects[:-1], coefficients)
        add = self._gain(_explained(cross, spread, length), squares)
        # The direction of the scale is a function of the parent that goes, so that it
        # would stand in for it.
        n = len(tangent) - fitter.link.scaled
        precision, coefficients, left = _regress(gram[:n, :n], effects[:n], along[:n])
        cross = effects[-1] - left @ effects[:n]
        spread = length - np.einsum("ij,ij->j", effects[:n], coefficients)
        coefficients = coefficients[: len(order)]
        precision = precision[: len(order), None]
        own = (weights + left[: len(order)])[:, None]
        shared = coefficients / precision
        explained = _explained(
            cross + shared * own, spread + shared * coefficients, length
        )
        loss = own**2 / precision
        return np.vstack([add, self._gain(explained - loss, squares)])

    def _gain(self, explained, squares, noise=None):
        """Gain in log-likelihood when so much less is left to the noise."""
        if not isinstance(noise or self.fitter.noise, Additive):
            return 0.5 * explained
        share = np.minimum(explained / np.maximum(squares, 1e-300), 1.0 - 1e-12)
        return -0.5 * self.fitter.total * np.log1p(-share)


def _explained(cross, spread, length):
    """Squared length of the projection on a candidate; 0 if there is nothing new."""
    usable = spread > COLLINEAR * length
    return np.where(usable, cross**2 / np.where(usable, spread, 1.0), 0.0)


def _regress(gram, effects, along):
    """Regressions of candidates, and of the residual, on the tangent space.

    The residual is orthogonal to it only where the fit is exact.
    """
    size = np.sqrt(gram.diagonal())
    # A direction without length, as of a constant parent, takes no part.
    size[size <= 1e-9 * size.max()] = np.inf
    unit = 1.0 / np.outer(size, size)
    inner = gram * unit
    inner.flat[:: len(inner) + 1] += 1e-9
    inverse = np.linalg.inv(inner) * unit
    precision = inverse.diagonal()
    precision = np.where(precision > 0, precision, np.inf)
    return precision, inverse @ effects, inverse @ along
