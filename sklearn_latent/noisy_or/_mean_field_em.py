"""Mean-field lower bound of the likelihood of noisy-or networks.

With theta = -log(failure) and theta0 = -log(1 - leak), a positive finding has
log-probability g(theta0 + sum_i theta_i z_i), where g(x) = log(1 - exp(-x)) is concave.
Jensen's inequality with shares q_i that sum to 1 bounds it from below by a function
that is linear in the latents (Jaakkola and Jordan, JAIR 1999; Singliar and Hauskrecht,
JMLR 2006)::

    sum_i q_i [z_i g(theta0 + theta_i / q_i) + (1 - z_i) g(theta0)]

so that latents become independent. Everything is stored as lists of findings, latents
and edges, of all rows at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from .._core.climb import Ascent, climb
from ._probabilities import clip_probability
from ._statistics.patterns import Patterns

# g is 0 to the last digit beyond this, and its derivative still has no overflow.
FAR = 600.0


def log_fired(x) -> np.ndarray:
    """Evaluate g(x) = log(1 - exp(-x))."""
    return np.log(-np.expm1(-x))


def log_fired_slope(x) -> np.ndarray:
    """Evaluate the derivative of g, 1 / (exp(x) - 1)."""
    return 1.0 / np.expm1(x)


class Couplings(NamedTuple):
    """Latents and positive findings of all rows.

    log_on, log_off: Log-weights of the states of each latent of each row, negative
        findings included, (n_latents,)
    theta0: -log(1 - leak) of each finding, (n_findings,)
    finding, latent: ends of each edge, (n_edges,)
    theta: -log(failure) of each edge, (n_edges,)
    """

    log_on: np.ndarray
    log_off: np.ndarray
    theta0: np.ndarray
    finding: np.ndarray
    latent: np.ndarray
    theta: np.ndarray

    def per_finding(self, values) -> np.ndarray:
        """Sum over the edges of each finding."""
        return np.bincount(self.finding, values, minlength=len(self.theta0))

    def reach(self, shares) -> np.ndarray:
        """Scale the strengths to theta / q, capped where g no longer changes."""
        return np.minimum(self.theta / np.maximum(shares, 1e-300), FAR)

    def lift(self, shares) -> np.ndarray:
        """Gain of a latent's log-odds per share: g(theta0 + theta / q) - g(theta0)."""
        fired = log_fired(self.theta0[self.finding] + self.reach(shares))
        return fired - log_fired(self.theta0)[self.finding]


class MeanField(NamedTuple):
    """A point of the bound: the shares of the edges, and the best factors for them.

    posterior: probability of each latent under the factored distribution, (n_latents,)
    log_normalizer: what each latent adds to the bound, beside g(theta0) of each
        finding, (n_latents,)
    """

    shares: np.ndarray
    posterior: np.ndarray
    log_normalizer: np.ndarray

    @classmethod
    def of(cls, couplings: Couplings, shares, lift) -> MeanField:
        """Optimal factored distribution for given shares, in closed form."""
        n_latents = len(couplings.log_on)
        gain = np.bincount(couplings.latent, shares * lift, minlength=n_latents)
        log_on, log_off = couplings.log_on + gain, couplings.log_off
        return cls(shares, expit(log_on - log_off), np.logaddexp(log_on, log_off))


def better_shares(couplings: Couplings, shares, lift, posterior):
    """Improve the shares for a given factored distribution.

    The fixed-point update of Jaakkola and Jordan, q_i proportional to q_i times the
    derivative of the bound. Findings for which it goes too far stay as they are.
    """
    on = posterior[couplings.latent]
    reach = couplings.reach(shares)
    slope = log_fired_slope(couplings.theta0[couplings.finding] + reach)
    uphill = shares * on * np.maximum(lift - reach * slope, 0.0)
    total = couplings.per_finding(uphill)[couplings.finding]
    moved = np.where(total > 0, uphill / np.where(total > 0, total, 1.0), shares)
    new_lift = couplings.lift(moved)
    before = couplings.per_finding(shares * on * lift)
    # Rounding aside: near the optimum it would call half of the steps worse.
    worse = couplings.per_finding(moved * on * new_lift) < before * (1 - 1e-13)
    stays = worse[couplings.finding]
    return np.where(stays, shares, moved), np.where(stays, lift, new_lift)


class VariationalEM:
    """Variational EM on weighted distinct rows; every step raises the bound.

    structure: edges, (n_latents, n_features)
    patterns: the data
    """

    def __init__(self, structure, patterns: Patterns):
        n_latents, n_features = structure.shape
        self.weights = patterns.weights
        self.off = (patterns.known & ~patterns.on).astype(np.float64)
        self.row, self.feature = np.nonzero(patterns.on)
        self.finding, edge_latent = np.nonzero(structure.T[self.feature])
        self.latent = self.row[self.finding] * n_latents + edge_latent
        self.edge = edge_latent * n_features + self.feature[self.finding]

    def start(self) -> np.ndarray:
        """Shares to start from."""
        siblings = np.bincount(self.finding, minlength=len(self.feature))
        return 1.0 / siblings[self.finding]

    def couplings(self, network) -> Couplings:
        """State the problem of the E-step at some parameters."""
        log_failure = np.log(network.failure)
        log_on = (np.log(network.prior) + self.off @ log_failure.T).ravel()
        log_off = np.tile(np.log1p(-network.prior), len(self.weights))
        theta0 = -np.log1p(-network.leak)[self.feature]
        theta = -log_failure.ravel()[self.edge]
        return Couplings(log_on, log_off, theta0, self.finding, self.latent, theta)

    def climb(self, start, shares, *, tol, max_iter) -> Ascent:
        """Variational EM; the states are networks and shares, `tol` is per row."""
        return climb(
            lambda state: self.step(*state),
            lambda state, better: better,
            (start._clipped(), shares),
            tol=tol * self.weights.sum(),
            max_iter=max_iter,
        )

    def step(self, network, shares):
        """Bound after a better E-step, and the network and shares that follow."""
        couplings = self.couplings(network)
        lift = couplings.lift(shares)
        point = MeanField.of(couplings, shares, lift)
        shares, lift = better_shares(couplings, shares, lift, point.posterior)
        point = MeanField.of(couplings, shares, lift)
        bound = self._bound(couplings, network.leak, point)
        failure = self._best_failure(network.failure, couplings, point)
        failed = -np.log(failure).ravel()[self.edge]
        leak = self._best_leak(network.leak, couplings._replace(theta=failed), point)
        posterior = point.posterior.reshape(len(self.weights), -1)
        prior = self.weights @ posterior / self.weights.sum()
        better = network._with(
            class_prior=prior[np.newaxis], failure=failure, leak=leak
        )
        return bound, (better._clipped(), shares)

    def _bound(self, couplings, leak, point):
        weights = np.repeat(self.weights, len(point.posterior) // len(self.weights))
        leaks = self.weights[self.row] @ log_fired(couplings.theta0)
        off = self.weights @ self.off @ np.log1p(-leak)
        return float(weights @ point.log_normalizer + leaks + off)

    def _best_failure(self, failure, couplings, point):
        """M-step for the failures.

        g(theta0 + theta / q) - g(theta) is convex in theta for q <= 1, hence above its
        tangent; what remains has the shape C g(theta) - D theta, with its maximum at
        failure = D / (C + D).
        """
        posterior = point.posterior.reshape(len(self.weights), -1)
        weight = self.weights[self.row[self.finding]] * point.posterior[self.latent]
        slope = log_fired_slope(
            couplings.theta0[self.finding] + couplings.reach(point.shares)
        )
        fired, pulled = (
            np.bincount(self.edge, values, minlength=failure.size).reshape(
                failure.shape
            )
            for values in (weight * point.shares, weight * slope)
        )
        tried = (posterior * self.weights[:, np.newaxis]).T @ self.off
        odds = failure / np.where(failure < 1.0, 1.0 - failure, 1.0)
        stay = np.maximum(tried + fired * odds - pulled, 0.0)
        total = fired + stay
        informed = (failure < 1.0) & (total > 0)
        shares = stay / np.where(total > 0, total, 1.0)
        return np.where(informed, clip_probability(shares), failure)

    def _best_leak(self, leak, couplings, point):
        """M-step for the leaks, by the same argument as for the failures."""
        reach = couplings.theta0[self.finding] + couplings.reach(point.shares)
        slope = log_fired_slope(couplings.theta0)[self.finding] - log_fired_slope(reach)
        weight = self.weights[self.row[self.finding]] * point.posterior[self.latent]
        pulled = weight * point.shares * slope
        fired = np.bincount(self.feature, self.weights[self.row], minlength=len(leak))
        stay = self.weights @ self.off + np.bincount(
            self.feature[self.finding], pulled, minlength=len(leak)
        )
        total = fired + stay
        return np.where(total > 0, fired / np.where(total > 0, total, 1.0), leak)
