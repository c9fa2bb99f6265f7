"""Mixtures of Bernoulli distributions: classes of rows whose features are independent.

A mixture is a network with one latent per class, which is on in its class and drives
all features. So it is a start from which latents that depend on each other are learned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._core.climb import climb
from .._network import NoisyOrNetwork
from .._probabilities import clip_probability
from .._smoothing import pseudo_rows
from .._statistics.patterns import Patterns

# Random starts of the mixture that is kept.
N_STARTS = 3

# EM steps, and gain per row that ends them.
STEPS, TOLERANCE = 60, 1e-4

# P(latent on) in its class, and in others. (On the digits 0.999 and 0.001 ended 0.02
# nats a row lower.)
OWN, OTHER = 0.95, 0.01

# The class with the lowest rate of a feature is the leak; its latent fails like this.
MOST_FAILURE = 0.999


class Mixture(NamedTuple):
    """Weights of the classes and rates of the features in each."""

    weight: np.ndarray
    rate: np.ndarray

    def log_joint(self, patterns: Patterns) -> np.ndarray:
        """Log P(row, class), (n_rows, n_classes)."""
        on = patterns.on.astype(np.float64)
        log_off = np.log1p(-self.rate)
        joint = on @ (np.log(self.rate) - log_off).T
        if patterns.observed is None:
            joint += log_off.sum(axis=1)
        else:
            joint += patterns.observed.astype(np.float64) @ log_off.T
        return joint + np.log(self.weight)

    def shares(self, patterns: Patterns) -> tuple[np.ndarray, np.ndarray]:
        """Log-likelihood of each row, and P(class | row), (n_rows, n_classes)."""
        shares = self.log_joint(patterns)
        peak = shares.max(axis=1)
        # In place, and without logaddexp, which takes four times as long.
        np.exp(np.subtract(shares, peak[:, np.newaxis], out=shares), out=shares)
        total = shares.sum(axis=1)
        shares /= total[:, np.newaxis]
        return peak + np.log(total), shares

    def log_likelihood(self, patterns: Patterns) -> np.ndarray:
        """Of each row."""
        return self.shares(patterns)[0]


def column_rates(patterns: Patterns) -> np.ndarray:
    """How often each feature is on, away from 0 and 1."""
    known = patterns.weights @ patterns.known
    return (patterns.weights @ patterns.on + 0.5) / (known + 1.0)


def fit_mixture(patterns: Patterns, n_classes: int, rng) -> Mixture:
    """EM from a random start."""
    on = patterns.on.astype(np.float64)
    mean = column_rates(patterns)

    def maximize(mixture, shares):
        mass = shares * patterns.weights[:, np.newaxis]
        weight = mass.sum(axis=0) + 1e-9
        seen = np.tile(weight[:, np.newaxis], len(mean))
        if patterns.observed is not None:
            seen = mass.T @ patterns.observed
        pseudo = pseudo_rows(mixture.rate, mean, seen)
        rate = (mass.T @ on + pseudo * mean) / (seen + pseudo)
        return Mixture(weight / weight.sum(), clip_probability(rate))

    def expect(mixture):
        value, shares = mixture.shares(patterns)
        return float(patterns.weights @ value), shares

    # Classes begin with rows of their own, as in a clustering.
    share = patterns.weights / patterns.weights.sum()
    seeds = rng.choice(len(share), size=n_classes, p=share)
    rate = 0.5 * on[seeds] + 0.5 * mean
    start = Mixture(np.full(n_classes, 1.0 / n_classes), clip_probability(rate))
    tol = TOLERANCE * patterns.weights.sum()
    return climb(expect, maximize, start, tol=tol, max_iter=STEPS, patient=False).state


def best_start(patterns: Patterns, n_classes: int, rng) -> Mixture:
    """The likeliest of some mixtures from random starts."""
    starts = [fit_mixture(patterns, n_classes, rng) for _ in range(N_STARTS)]
    values = [patterns.weights @ m.log_likelihood(patterns) for m in starts]
    return starts[int(np.argmax(values))]


def class_network(mixture: Mixture, own=OWN, other=OTHER) -> NoisyOrNetwork:
    """The network that a mixture is, with doubts that let EM improve it."""
    rate = mixture.rate
    leak = rate.min(axis=0)
    failure = np.minimum((1.0 - rate) / (1.0 - leak), MOST_FAILURE)
    n_classes = len(rate)
    prior = np.full((n_classes, n_classes), other)
    np.fill_diagonal(prior, own)
    network = NoisyOrNetwork._of(prior[0], failure, leak)
    return network._with(class_weight=mixture.weight, class_prior=prior)._clipped()
