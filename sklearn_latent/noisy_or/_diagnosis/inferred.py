"""Checks that need posteriors or likelihoods of rows.

Posteriors of rows that follow the network are no longer independent where latents share
features, and approximate ones may be off. So the rows are compared with rows drawn from
the network, and the same inference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from ..._core.checks import Check, Comparison, compare_likelihoods, critical_z
from .._posterior import infer_network
from .._statistics.patterns import Patterns
from .counts import N_KINDS

# Rows to infer at most, and rows to draw at least.
MOST_ROWS, LEAST_DRAWN = 2000, 1000


class Posteriors(NamedTuple):
    """Inferred rows, as many as their weights say.

    latents: P(latent on | row), (n_rows, n_latents)
    log_likelihood, weights: (n_rows,)
    """

    latents: np.ndarray
    log_likelihood: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, network, patterns: Patterns) -> Posteriors:
        """Infer rows in the coding of the user."""
        found = infer_network(network, patterns.on, patterns.observed)
        return cls(found.posterior, found.log_likelihood, patterns.weights)

    def moments(self):
        """Covariances, and variances of the products behind them."""
        share = self.weights / self.weights.sum()
        mean = share @ self.latents
        centred = self.latents - mean
        covariance = (centred * share[:, np.newaxis]).T @ centred
        squared = centred**2
        fourth = (squared * share[:, np.newaxis]).T @ squared
        return covariance, np.maximum(fourth - covariance**2, 0.0)

    @property
    def told(self) -> np.ndarray:
        """Share of the variance of each latent that the rows tell."""
        share = self.weights / self.weights.sum()
        mean = share @ self.latents
        left, whole = share @ (self.latents * (1.0 - self.latents)), mean * (1.0 - mean)
        ones = np.ones_like(left)
        return 1.0 - np.divide(left, whole, out=ones, where=whole > 1e-12)


def draw_rows(network, n_rows, rng) -> Patterns:
    """About so many rows of the network."""
    n_rows = int(np.clip(n_rows, LEAST_DRAWN, MOST_ROWS))
    on = network.sample(n_rows, random_state=rng)[0] == 1
    return Patterns(on, None, np.ones(n_rows))


def check_latents(
    rows: Posteriors, drawn: Posteriors, names, n_learned=np.inf
) -> list[Check]:
    """Pairs of latents whose posteriors go together more, or less, than drawn ones.

    n_learned: rows from which it was learned how latents depend on each other
    """
    i, j = np.triu_indices(rows.latents.shape[1], 1)
    seen, spread = (moments[i, j] for moments in rows.moments())
    expected, null = (moments[i, j] for moments in drawn.moments())
    # The larger variance: a latent that is on in no row does not vary at all.
    variance = np.maximum(spread, null) / rows.weights.sum()
    variance += null * (1.0 / drawn.weights.sum() + 1.0 / n_learned)
    z = (seen - expected) / np.sqrt(np.maximum(variance, 1e-300))
    z[variance <= 1e-30] = 0.0
    limit = critical_z(len(z), N_KINDS)
    return Comparison(
        "dependent latents",
        lambda p: f"{names[i[p]]}, {names[j[p]]}",
        _correlations(rows)[i, j],
        _correlations(drawn)[i, j],
        z,
        limit,
    ).lines()


def _correlations(rows: Posteriors):
    """Correlations of posteriors; 0 where one does not vary."""
    covariance = rows.moments()[0]
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.multiply.outer(spread, spread)
    zeros = np.zeros_like(covariance)
    return np.divide(covariance, scale, out=zeros, where=scale > 1e-30)


def check_likelihood(log_likelihood, patterns: Patterns) -> Check:
    """Likelihood of rows against that of independent columns, fitted to them.

    Constant columns count as fitted, too, because a learned probability is never 0.
    """
    weights, known = patterns.weights, patterns.known
    count = weights @ known
    rate = (weights @ patterns.on) / np.maximum(count, 1e-300)
    alone = special.xlogy(patterns.on, rate) + special.xlog1py(
        known & ~patterns.on, -rate
    )
    what = "against independent columns"
    return compare_likelihoods(
        log_likelihood, alone.sum(axis=1), (count > 0).sum(), N_KINDS, what, weights
    )
