"""Which edges the rows support: likelihood ratios of single edges.

All else fixed, the likelihood of a network with one failure changed follows from the
states that a beam holds: states with the latent on are multiplied by a ratio that
depends on one feature. Score tests would need the rows only once, but where leaks are
small they miss edges whose likelihood ratio is far beyond any doubt.
"""

from __future__ import annotations

import numpy as np

from .._likelihood.beam import Beam
from .._likelihood.layered import Layered
from .._likelihood.truncated import Expected

# Failures that a new edge may start with.
STARTS = (0.2, 0.5, 0.8)

# Slope of the log-likelihood at a failure of 1 below which an edge gains nothing: what
# can be gained is at most the slope times the change of the failure.
LEAST_SLOPE = 2.0


def failure_gains(beam: Beam, latents, features, failures) -> np.ndarray:
    """Log-likelihood gained by other failures of pairs of a latent and a feature.

    latents, features (n_pairs,), failures (n_values,) -> gains (n_values, n_pairs).
    """
    gains = np.zeros((len(failures), len(latents)))
    for latent in np.unique(latents):
        pairs = np.flatnonzero(latents == latent)
        states = np.flatnonzero(beam.states[:, latent])
        for part in beam.chunks(len(states), len(pairs)):
            # A row may lie in two chunks: the second would count it twice.
            chosen = _whole_rows(beam.row, states, part)
            if len(chosen):
                gains[:, pairs] += _gains_of_latent(
                    beam, latent, features[pairs], failures, chosen
                )
    return gains


def _whole_rows(row, states, part):
    """States of a slice, shifted so that rows are not cut."""
    start, stop = part.start, part.stop
    rows = row[states]
    while 0 < start < len(states) and rows[start] == rows[start - 1]:
        start += 1
    while stop < len(states) and rows[stop] == rows[stop - 1]:
        stop += 1
    return states[start:stop]


def _gains_of_latent(beam, latent, features, failures, states):
    """Gains of edges of one latent, over states that have it on."""
    rows = beam.row[states]
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    weights = beam.patterns.weights[rows[starts]]
    share = beam.share[states][:, np.newaxis]
    numbers = beam.states[states].astype(np.float64)
    off = np.exp(numbers @ beam.log_failure[:, features] + beam.log_leak_off[features])
    on = beam.patterns.on[np.ix_(rows, features)]
    known = None
    if beam.patterns.observed is not None:
        known = beam.patterns.observed[np.ix_(rows, features)]
    before = beam.parameters.failure[latent, features]
    gains = np.empty((len(failures), len(features)))
    for number, failure in enumerate(failures):
        ratio = failure / before
        # The chance of what is on changes from 1 - off to 1 - off * ratio.
        change = np.where(on, off * (1.0 - ratio) / (1.0 - off), ratio - 1.0)
        if known is not None:
            change *= known
        change = np.add.reduceat(share * change, starts, axis=0)
        gains[number] = weights @ np.log1p(np.maximum(change, -1.0 + 1e-12))
    return gains


def new_edges(beam: Beam, parameters: Layered, expected: Expected, price):
    """Failures of the edges that would gain more than their price; else 1."""
    slope = expected.causes - expected.trials
    latents, features = np.nonzero(~parameters.structure & (slope > LEAST_SLOPE))
    gains = failure_gains(beam, latents, features, STARTS)
    chosen = gains.max(axis=0, initial=0.0) > price
    failure = np.ones_like(parameters.failure)
    best = np.array(STARTS)[gains[:, chosen].argmax(axis=0)]
    # Half of the way: other new edges may explain part of the gain.
    failure[latents[chosen], features[chosen]] = np.sqrt(best)
    return failure


def weak_edges(beam: Beam, parameters: Layered, price) -> np.ndarray:
    """Edges whose loss would cost less than their price."""
    latents, features = np.nonzero(parameters.structure)
    loss = -failure_gains(beam, latents, features, (1.0,))[0]
    weak = np.zeros_like(parameters.structure)
    weak[latents, features] = loss < price
    return weak
