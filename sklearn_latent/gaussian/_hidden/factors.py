"""Two-layer linear networks: independent hidden roots over observed leaves.

Such a network is a factor analysis whose loadings are zero where there is no edge. The
E-step needs the covariance of the features only, so its cost does not depend on the
number of rows.

References
----------
.. [1] Rubin, D. B., Thayer, D. T. (1982). EM algorithms for ML factor analysis.
   Psychometrika, 47.
.. [2] Liu, C., Rubin, D. B., Wu, Y. N. (1998). Parameter expansion to accelerate EM:
   the PX-EM algorithm. Biometrika, 85.
.. [3] Varadhan, R., Roland, C. (2008). Simple and globally convergent methods for
   accelerating the convergence of any EM algorithm. Scandinavian Journal of
   Statistics, 35.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._inference.inference import LOG_2_PI
from .._statistics.statistics import GaussianStatistics

__all__ = ["FactorData", "Factors", "fit_factors"]


@dataclass(frozen=True, eq=False)
class Factors:
    """Parameters of a two-layer network with standardised hidden variables.

    mask: edges, (n_latents, n_features)
    loadings: weights of the edges, zero elsewhere, (n_latents, n_features)
    mean, noise: means and noise variances of the features, (n_features,)
    log_likelihood: of the observed values
    """

    mask: np.ndarray
    loadings: np.ndarray
    mean: np.ndarray
    noise: np.ndarray
    log_likelihood: float = -np.inf

    @property
    def n_latents(self) -> int:
        """Number of hidden variables."""
        return len(self.mask)

    def network_parameters(self):
        """Weights, intercept and noise variance of all nodes, features first."""
        n_latents, n_features = self.mask.shape
        weights = np.zeros((n_features + n_latents,) * 2)
        weights[n_features:, :n_features] = self.loadings
        intercept = np.concatenate([self.mean, np.zeros(n_latents)])
        return weights, intercept, np.concatenate([self.noise, np.ones(n_latents)])

    def without(self, hidden) -> Factors:
        """The network without some hidden variables; their share becomes noise."""
        gone = np.zeros(self.n_latents, dtype=bool)
        gone[hidden] = True
        extra = (self.loadings[gone] ** 2).sum(axis=0)
        return replace(
            self,
            mask=self.mask[~gone],
            loadings=self.loadings[~gone],
            noise=self.noise + extra,
        )

    def with_mask(self, mask) -> Factors:
        """Other edges: new ones have weight zero, those that go become noise."""
        gone = self.mask & ~mask
        extra = np.where(gone, self.loadings**2, 0.0).sum(axis=0)
        loadings = np.where(mask, self.loadings, 0.0)
        return replace(self, mask=mask, loadings=loadings, noise=self.noise + extra)


@dataclass(frozen=True, eq=False)
class _Expectation:
    """What an E-step says; second moments are centred and divided by the weight."""

    cross: np.ndarray  # (n_latents, n_features)
    hidden: np.ndarray  # (n_latents, n_latents)
    log_likelihood: float


class FactorData:
    """What a two-layer network needs of the data.

    statistics: of the features; expected ones if values are missing
    floor: smallest noise variances; None is that of the statistics, (n_features,)
    """

    def __init__(self, statistics: GaussianStatistics, floor=None):
        self.weight = statistics.weight
        self.center = statistics.mean
        self.covariance = statistics.covariance
        self.variance = np.diagonal(self.covariance)
        self.floor = statistics.noise_floor if floor is None else floor

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.center)

    def start(self, mask, loadings=None) -> Factors:
        """Parameters to start from: given loadings, the rest of the variance noise."""
        if loadings is None:
            loadings = np.where(mask, 0.5 * np.sqrt(self.variance), 0.0)
        left = self.variance - (loadings**2).sum(axis=0)
        noise = np.maximum(np.maximum(left, 0.1 * self.variance), self.floor)
        return Factors(mask, loadings, self.center, noise)

    def expect(self, factors: Factors) -> _Expectation:
        """E-step of [1]_; the log-likelihood is of the parameters that came."""
        loadings, noise = factors.loadings, factors.noise
        scaled = loadings / noise
        inner = np.eye(len(loadings)) + scaled @ loadings.T
        posterior = np.linalg.inv(inner)
        gain = posterior @ scaled
        cross = gain @ self.covariance
        hidden = posterior + cross @ gain.T
        distance = (self.variance / noise).sum() - np.einsum("ij,ij->", scaled, cross)
        log_det = np.log(noise).sum() + np.linalg.slogdet(inner)[1]
        log_likelihood = (
            -0.5 * self.weight * (distance + log_det + len(noise) * LOG_2_PI)
        )
        return _Expectation(cross, hidden, float(log_likelihood))

    def maximise(self, mask, e: _Expectation) -> Factors:
        """M-step: one regression per feature, then hidden variables standardised.

        The moments of the hidden variables are free in the regression and divided out
        afterwards, which is parameter-expanded EM [2]_.
        """
        loadings = _masked_regressions(mask, e.hidden, e.cross)
        explained = np.einsum("hi,hi->i", loadings, 2 * e.cross - e.hidden @ loadings)
        noise = np.maximum(self.variance - explained, self.floor)
        loadings = loadings * np.sqrt(np.diagonal(e.hidden))[:, None]
        return Factors(mask, loadings, self.center, noise)


def _masked_regressions(mask, hidden, cross):
    """Regress every feature on its parents among the hidden variables."""
    if not len(mask):
        return np.zeros_like(cross)
    both = mask.T[:, :, None] & mask.T[:, None, :]
    normal = np.where(both, hidden, 0.0)
    diagonal = np.arange(len(mask))
    normal[:, diagonal, diagonal] += ~mask.T
    target = np.where(mask, cross, 0.0).T
    return np.linalg.solve(normal, target[:, :, None])[:, :, 0].T


def fit_factors(
    data: FactorData, start: Factors, *, max_iter=500, tol=1e-7, trace=None
) -> Factors:
    """Maximise the likelihood by EM with monotone extrapolation [3]_."""
    current = start
    expectation = data.expect(current)
    trace = [] if trace is None else trace
    trace.append(expectation.log_likelihood)
    n_steps = 1
    stretch = 4.0
    while n_steps < max_iter:
        before = expectation.log_likelihood
        first = data.maximise(start.mask, expectation)
        e_first = data.expect(first)
        second = data.maximise(start.mask, e_first)
        leap, stretch = _extrapolate(current, first, second, stretch, data.floor)
        e_leap = data.expect(leap)
        n_steps += 2
        # A leap that falls below plain EM is not taken, so the likelihood never falls.
        if not e_leap.log_likelihood >= e_first.log_likelihood:
            leap, e_leap = second, data.expect(second)
            n_steps += 1
            stretch = max(stretch / 4.0, 1.0)
        current, expectation = leap, e_leap
        trace.append(expectation.log_likelihood)
        if expectation.log_likelihood - before < tol * data.weight:
            break
    return replace(current, log_likelihood=expectation.log_likelihood)


def _extrapolate(start, first, second, longest, floor):
    """Squared extrapolation of two EM steps (scheme S3 of [3]_)."""
    scale = np.sqrt(start.noise)
    a = np.concatenate([(start.loadings / scale).ravel(), np.log(start.noise)])
    b = np.concatenate([(first.loadings / scale).ravel(), np.log(first.noise)])
    c = np.concatenate([(second.loadings / scale).ravel(), np.log(second.noise)])
    step, bend = b - a, (c - b) - (b - a)
    length = float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), 1e-300)
    if length >= longest:
        length, longest = longest, 4.0 * longest
    length = max(length, 1.0)
    far = a + 2.0 * length * step + length**2 * bend
    n = start.loadings.size
    loadings = far[:n].reshape(start.loadings.shape) * scale
    noise = np.maximum(np.exp(np.clip(far[n:], -700, 700)), floor)
    return Factors(start.mask, loadings, start.mean, noise), longest
