"""Which edges the rows support: likelihood ratios of single edges.

All else fixed, the likelihood of a network with one failure changed follows from the
states that a beam holds: states with the latent on are multiplied by a ratio that
depends on one feature. Score tests would need the rows only once, but where leaks are
small they miss edges whose likelihood ratio is far beyond any doubt.
"""

from __future__ import annotations

import numpy as np

from .._beam import Beam
from .._expected import Expected
from .._network import NoisyOrNetwork

# Failures that a new edge may start with.
STARTS = (0.2, 0.5, 0.8)


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
    off = beam.off_probability(beam.states[states], features)
    # The chance of what is on changes from 1 - off to 1 - off * ratio, that of what is
    # off is multiplied by the ratio.
    on = beam.patterns.on.T[np.ix_(features, rows)]
    slope = np.where(on, off / (1.0 - off), -1.0)
    if beam.patterns.observed is not None:
        slope *= beam.patterns.observed.T[np.ix_(features, rows)]
    slope = np.add.reduceat(beam.share[states] * slope, starts, axis=1)
    before = beam.network.failure[latent, features]
    gains = np.empty((len(failures), len(features)))
    for number, failure in enumerate(failures):
        change = (1.0 - failure / before)[:, np.newaxis] * slope
        np.maximum(change, -1.0 + 1e-12, out=change)
        gains[number] = np.log1p(change, out=change) @ weights
    return gains


def least_gains(beam: Beam, expected: Expected, failure) -> np.ndarray:
    """Lower bounds of the gains of new edges, (n_latents, n_features).

    By Jensen's inequality: means over states of the logarithms of what they change by,
    so that one product of matrices has all pairs of a latent and a feature.
    """
    mass = beam.patterns.weights[beam.row] * beam.share
    gains = np.zeros(beam.network.failure.shape)
    for part in beam.chunks(len(beam.row)):
        change = beam.fired(part)
        change *= 1.0 - failure
        change += failure
        np.log(change, out=change)
        gains += (beam.states[part] * mass[part, np.newaxis]).T @ change.T
    # A feature that is not known changes nothing.
    unknown = expected.latent_on.sum(axis=0)[:, np.newaxis] - expected.trials
    return gains - np.log(failure) * unknown


def new_edges(beam: Beam, parameters: NoisyOrNetwork, expected: Expected, price):
    """Failures of the edges that would gain more than their price; else 1."""
    # Bounds are close where rows show their latents. The log-likelihood is concave in a
    # failure, so what gains somewhere gains near 1.
    hopeful = least_gains(beam, expected, max(STARTS)) > -price
    latents, features = np.nonzero(~parameters.structure & hopeful)
    gains = failure_gains(beam, latents, features, STARTS)
    chosen = gains.max(axis=0, initial=0.0) > price
    failure = np.ones_like(parameters.failure)
    best = np.array(STARTS)[gains[:, chosen].argmax(axis=0)]
    # Half of the way: other new edges may explain part of the gain.
    failure[latents[chosen], features[chosen]] = np.sqrt(best)
    return failure


def weak_edges(beam: Beam, parameters: NoisyOrNetwork, price) -> np.ndarray:
    """Edges whose loss would cost less than their price."""
    latents, features = np.nonzero(parameters.structure)
    loss = -failure_gains(beam, latents, features, (1.0,))[0]
    weak = np.zeros_like(parameters.structure)
    weak[latents, features] = loss < price
    return weak
