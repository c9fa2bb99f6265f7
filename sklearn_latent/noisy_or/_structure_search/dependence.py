"""Latents that depend on each other: hidden classes above them."""

from __future__ import annotations

import numpy as np

from ..._core.choose import grow
from ..._core.criteria import bic
from .._beam import Beam
from .._maximum_likelihood import climb_beams
from .._network import NoisyOrNetwork
from .._probabilities import clip_probability
from .._statistics.patterns import Patterns
from .sampling import affordable_steps

# Rows that each parameter of a network with classes needs, at least.
ROWS_PER_PARAMETER = 5.0

# Least and largest number of EM steps of a network that is compared, and gain per row
# that ends them.
STEPS, TOLERANCE = (15, 100), 1e-5


def classes_above(independent: NoisyOrNetwork, patterns: Patterns) -> NoisyOrNetwork:
    """The same latents, under as many classes as the BIC of the whole supports."""
    n_rows, n_features = float(patterns.weights.sum()), patterns.on.shape[1]
    most = min(n_rows / ROWS_PER_PARAMETER, 2.0**n_features - 1.0)
    steps = affordable_steps(patterns, *STEPS)
    first = Beam(patterns, independent.n_latents)
    first.search(independent._clipped())

    def fit(n_classes):
        start = _with_classes(independent, first, n_classes)
        beam = Beam(patterns, independent.n_latents)
        ascent = climb_beams(start, [beam], tol=TOLERANCE, max_iter=steps)
        return ascent.state, ascent.objective

    def cost(fitted) -> float:
        network, log_likelihood = fitted
        if network.n_classes > 1 and network.n_parameters > most:
            return np.inf
        return bic(log_likelihood, network.n_parameters, n_rows)

    # A class for each latent could be a mixture in the dress of latents.
    sizes = range(1, max(2, independent.n_latents))
    return grow(fit, sizes, cost).best[0]


def _with_classes(
    parameters: NoisyOrNetwork, beam: Beam, n_classes: int
) -> NoisyOrNetwork:
    """Classes that begin with rows of their own, as in a clustering of the latents."""
    if n_classes == 1:
        return parameters
    rng, posterior = np.random.RandomState(0), beam.posterior
    chance, seeds = beam.patterns.weights, []
    for _ in range(n_classes):
        seeds.append(int(rng.choice(len(chance), p=chance / chance.sum())))
        apart = ((posterior[:, None] - posterior[seeds]) ** 2).sum(axis=2).min(axis=1)
        chance = beam.patterns.weights * apart + 1e-12
    prior = 0.5 * posterior[seeds] + 0.5 * parameters.prior
    weight = np.full(len(seeds), 1.0 / len(seeds))
    return parameters._with(class_weight=weight, class_prior=clip_probability(prior))
