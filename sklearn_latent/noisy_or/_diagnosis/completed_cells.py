"""Missing values drawn from the network, given what their rows show.

If the network is right and values are missing at random, completed rows follow it. So
checks need not know which values were missing, nor what that depends on.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from .._posterior import infer_network
from .._probabilities import log_not, safe_log
from .._statistics.patterns import Patterns, turn

# Rounds of Gibbs sampling, from latents that are drawn one by one. What these lack is
# how latents explain each other away, of which a round makes up for most.
ROUNDS = 10
# Stands for log(0) in sums of which parts are taken away again.
LOG_NEVER = -700.0


def complete(network, patterns: Patterns) -> Patterns:
    """Rows in the coding of the user with a draw for each missing value."""
    if patterns.observed is None:
        return patterns
    full = patterns.observed.all(axis=1)
    gaps = patterns.take(~full)
    # Rows that show the same need not miss the same.
    copies = np.ceil(gaps.weights).astype(np.intp)
    rows = np.repeat(np.arange(len(copies)), copies)
    on = _draw(network, gaps.take(rows), np.random.RandomState(0))
    drawn = Patterns(on, None, (gaps.weights / copies)[rows])
    return Patterns.merge([patterns.take(full)._replace(observed=None), drawn])


def _draw(network, gaps: Patterns, rng) -> np.ndarray:
    """Values of all features given some."""
    found = infer_network(network, gaps.on, gaps.observed)
    gaps = gaps.turn(network.polarity)
    on, observed = gaps.on, gaps.known
    label, posterior = np.zeros(len(on), dtype=np.intp), found.posterior
    if network.n_classes > 1:
        ends = found.class_posterior.cumsum(axis=1)[:, :-1]
        label = (rng.random_sample((len(on), 1)) > ends).sum(axis=1)
        posterior = np.empty_like(posterior)
        plain = network._with(polarity=np.ones_like(network.polarity))
        for c in range(network.n_classes):
            rows = np.flatnonzero(label == c)
            given = plain._given_class(c)
            posterior[rows] = infer_network(given, on[rows], observed[rows]).posterior
    latents = (rng.random_sample(posterior.shape) < posterior).astype(np.float64)
    log_odds = special.logit(network.class_prior)[label]
    log_failure = np.maximum(safe_log(network.failure), LOG_NEVER)
    log_off = np.maximum(safe_log(1.0 - network.leak), LOG_NEVER)
    log_off = log_off + latents @ log_failure
    for _ in range(ROUNDS):
        for k in range(network.n_latents):
            own = np.flatnonzero(network.structure[k])
            effect = log_failure[k, own]
            others = log_off[:, own] - np.multiply.outer(latents[:, k], effect)
            others = np.minimum(others, 0.0)
            # A feature that is on, and that nothing else explains, leaves no doubt.
            ratio = log_not(others + effect) - log_not(others)
            evidence = np.where(on[:, own], ratio, effect) * observed[:, own]
            odds = log_odds[:, k] + evidence.sum(axis=1)
            latents[:, k] = rng.random_sample(len(on)) < special.expit(odds)
            log_off[:, own] = others + np.multiply.outer(latents[:, k], effect)
    drawn = np.where(observed, on, rng.random_sample(on.shape) >= np.exp(log_off))
    return turn(drawn, None, network.polarity)
