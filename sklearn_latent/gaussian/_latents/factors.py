"""Two-layer linear networks: independent latent roots over observed leaves.

Such a network is a factor analysis whose loadings are zero where there is no edge. The
E-step needs the covariance of the features only, so its cost does not depend on the
number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._missing.linear_em import climb_by_leaps
from .._statistics.statistics import LOG_2_PI, GaussianStatistics


@dataclass(frozen=True, eq=False)
class Factors:
    """Parameters of a two-layer network with standardised latents.

    mask, loadings: edges and their weights, (n_latents, n_features)
    mean, noise: means and noise variances of the features, (n_features,)
    """

    mask: np.ndarray
    loadings: np.ndarray
    mean: np.ndarray
    noise: np.ndarray
    log_likelihood: float = -np.inf

    @property
    def n_latents(self) -> int:
        """Number of latents."""
        return len(self.mask)

    def without(self, latents) -> Factors:
        """The network without some latents; their share becomes noise."""
        gone = np.zeros(self.n_latents, dtype=bool)
        gone[latents] = True
        rest = self.with_mask(self.mask & ~gone[:, None])
        return replace(rest, mask=rest.mask[~gone], loadings=rest.loadings[~gone])

    def with_mask(self, mask) -> Factors:
        """Other edges: new ones have weight zero, those that go become noise."""
        gone = self.mask & ~mask
        extra = np.where(gone, self.loadings**2, 0.0).sum(axis=0)
        loadings = np.where(mask, self.loadings, 0.0)
        return replace(self, mask=mask, loadings=loadings, noise=self.noise + extra)


@dataclass(frozen=True, eq=False)
class _Expectation:
    """What an E-step says; second moments are centred and divided by the weight."""

    parameters: Factors
    cross: np.ndarray  # (n_latents, n_features)
    latent: np.ndarray  # (n_latents, n_latents)
    log_likelihood: float


class FactorData:
    """Statistics of the features, and their smallest noise variances."""

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

    def start(self, mask, loadings) -> Factors:
        """Parameters to start from: given loadings, the rest of the variance noise."""
        left = self.variance - (loadings**2).sum(axis=0)
        noise = np.maximum(np.maximum(left, 0.1 * self.variance), self.floor)
        return Factors(mask, loadings, self.center, noise)

    def expect(self, factors: Factors) -> _Expectation:
        """E-step (Rubin and Thayer, 1982), and the log-likelihood of the factors."""
        loadings, noise = factors.loadings, factors.noise
        scaled = loadings / noise
        inner = np.eye(len(loadings)) + scaled @ loadings.T
        posterior = np.linalg.inv(inner)
        gain = posterior @ scaled
        cross = gain @ self.covariance
        latent = posterior + cross @ gain.T
        distance = (self.variance / noise).sum() - np.einsum("ij,ij->", scaled, cross)
        log_det = np.log(noise).sum() + np.linalg.slogdet(inner)[1]
        log_likelihood = (
            -0.5 * self.weight * (distance + log_det + len(noise) * LOG_2_PI)
        )
        return _Expectation(factors, cross, latent, float(log_likelihood))

    def maximise(self, mask, e: _Expectation) -> Factors:
        """M-step: one regression per feature, then latents standardised.

        The moments of the latents are free in the regression and divided out
        afterwards, which is parameter-expanded EM (Liu, Rubin and Wu, 1998).
        """
        loadings = _masked_regressions(mask, e.latent, e.cross)
        explained = np.einsum("hi,hi->i", loadings, 2 * e.cross - e.latent @ loadings)
        noise = np.maximum(self.variance - explained, self.floor)
        loadings = loadings * np.sqrt(np.diagonal(e.latent))[:, None]
        return Factors(mask, loadings, self.center, noise)


def _masked_regressions(mask, latent, cross):
    """Regress every feature on its parents among the latents."""
    if not len(mask):
        return np.zeros_like(cross)
    both = mask.T[:, :, None] & mask.T[:, None, :]
    normal = np.where(both, latent, 0.0)
    diagonal = np.arange(len(mask))
    normal[:, diagonal, diagonal] += ~mask.T
    target = np.where(mask, cross, 0.0).T
    return np.linalg.solve(normal, target[:, :, None])[:, :, 0].T


def fit_factors(
    data: FactorData, start: Factors, *, max_iter=250, tol=1e-7, trace=None
) -> Factors:
    """Maximise the likelihood by EM that leaps."""
    ascent = climb_by_leaps(
        data.expect(start),
        data.expect,
        lambda fitted: data.maximise(start.mask, fitted),
        lambda fitted: _units(fitted.parameters, data.floor),
        tol=tol * data.weight,
        max_iter=max_iter,
    )
    if trace is not None:
        trace += ascent.objectives.tolist()
    fitted = ascent.state
    return replace(fitted.parameters, log_likelihood=fitted.log_likelihood)


def _units(start: Factors, floor):
    """Parameters as a vector without dimensions, and back."""
    scale = np.sqrt(start.noise)
    n = start.loadings.size

    def pack(factors):
        return np.concatenate(
            [(factors.loadings / scale).ravel(), np.log(factors.noise)]
        )

    def unpack(vector):
        loadings = vector[:n].reshape(start.loadings.shape) * scale
        noise = np.maximum(np.exp(np.clip(vector[n:], -700, 700)), floor)
        return Factors(start.mask, loadings, start.mean, noise)

    return pack, unpack
