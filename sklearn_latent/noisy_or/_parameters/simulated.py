"""Standard errors of least-squares fits with more moments than a matrix can hold.

The delta method needs the covariance of all moments. Where that matrix is too large,
rows drawn from the fitted network have moments whose deviations have this covariance,
and each draw costs one linear system.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._statistics.moments import NegativeMoments
from .._statistics.packed import PackedRows
from .guess import GUESS_INFORMATION, Guess, Rates
from .interactions import TINY, FreeParameters, damped_step

# The standard error of a standard error is one part in the root of twice as many.
DRAWS = 40
# Rows of a draw: together enough to see latents that are on in one row of a thousand.
ROWS_PER_DRAW = 4096


def simulated_errors(interactions, moments, network, learned, *, n_draws=DRAWS):
    """Standard errors of the priors and failures of learned edges; NaN elsewhere.

    interactions: to which the parameters were fitted
    learned: edges that were fitted, (n_latents, n_features)
    """
    interactions.reweigh(network.prior, network.failure)
    free = FreeParameters(network.prior, network.failure, learned.any(axis=1), learned)
    x = free.pack(network.prior, network.failure)
    values = free.unpack(x)
    _, of_moments = free.linearize(interactions, x)
    of_guess = Guess(Rates(moments), network.structure).jacobian(free, *values)
    J = sparse.vstack([of_moments, of_guess], format="csr")
    diagonal = np.maximum(J.multiply(J).sum(axis=0), TINY)
    everywhere = np.ones(free.n_columns, dtype=bool)
    # From deviations of the moments to those of the normal equations.
    pull = of_moments.T @ (
        interactions.by_moments(len(moments.sets)) * interactions.weight[:, None]
    )
    rng = np.random.RandomState(0)
    solutions = np.empty((n_draws, free.n_columns))
    for draw in range(n_draws):
        # What was guessed is as uncertain as the guess.
        gradient = pull @ _deviation(moments, network, rng)
        gradient += np.sqrt(GUESS_INFORMATION) * rng.standard_normal(free.n_columns)
        solutions[draw] = damped_step(J, gradient, diagonal, 0.0, everywhere)
    errors = solutions.std(axis=0, ddof=1)
    prior, failure = np.full(len(learned), np.nan), np.full(learned.shape, np.nan)
    prior[free.free_prior], failure[learned] = np.split(errors, [free.n_prior])
    return prior, failure


def _deviation(moments, network, rng):
    """Moments of random rows, around their own mean, as far off as in the data."""
    X, _ = network.sample(ROWS_PER_DRAW, random_state=rng)
    drawn = NegativeMoments.of(PackedRows.of(X, None), moments.sets)
    deviation = drawn.probability - moments.probability
    return deviation * np.sqrt(ROWS_PER_DRAW / np.maximum(moments.total, 1.0))
