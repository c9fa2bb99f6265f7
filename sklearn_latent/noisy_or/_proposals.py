"""What would improve a network: other edges, latents it lacks, latents that are two.

All else fixed, the likelihood of a network with one failure changed follows from the
states that a beam holds: states with the latent on are multiplied by a ratio that
depends on one feature. Score tests would need the rows only once, but where leaks are
small they miss edges whose likelihood ratio is far beyond any doubt.

What a network with all its latents leaves of the features, given the states of the
latents, is independent noise. Features whose residuals go together share a parent that
the network does not have. If one latent stands for two, those of its children that
belong to the one go together in the rows that show it, and against those that belong to
the other; the residuals of all rows may be too small for a birth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._beam import Beam
from ._expected import Expected
from ._noisy_or_network import NoisyOrNetwork

# Failures that a new edge may start with.
STARTS = (0.2, 0.5, 0.8)

# Largest eigenvalue of the products of residuals, in standard deviations beyond its
# mean if residuals are independent, above which a latent may be two. Of the images, 23
# of 24 true latents had less than 1 and one 5.6; of networks with one latent in place
# of two, the largest had 42 to 313. What is split in vain is not kept.
LEAST_Z = 3.0


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


def residual_dependence(beam: Beam) -> np.ndarray:
    """z-scores of the correlations of residuals, (n_features, n_features)."""
    weights = beam.patterns.weights
    total = weights.sum()
    residuals = _residuals(beam)
    residuals -= weights @ residuals / total
    scale = np.sqrt(weights @ residuals**2 / total)
    # A feature that never varies has no residual.
    residuals /= np.where(scale > 1e-9, scale, np.inf)
    z = (residuals * weights[:, np.newaxis]).T @ residuals / np.sqrt(total)
    np.fill_diagonal(z, 0.0)
    return z


def _residuals(beam: Beam) -> np.ndarray:
    """Standardised residuals of all cells, averaged over the states of the row."""
    on, observed, *_ = beam.patterns
    residuals = np.empty(on.shape)
    bounds, step = np.append(beam.starts, len(beam.row)), 4096
    for first in range(0, beam.n_rows, step):
        last = min(first + step, beam.n_rows)
        part = slice(bounds[first], bounds[last])
        off = beam.off_probability(beam.states[part].astype(np.float64)).T
        odds = np.sqrt(off / (1.0 - off))
        values = np.where(on[beam.row[part]], odds, -1.0 / odds)
        values *= beam.share[part, np.newaxis]
        starts = bounds[first:last] - bounds[first]
        residuals[first:last] = np.add.reduceat(values, starts, axis=0)
    if observed is not None:
        residuals[~observed] = 0.0
    return residuals


def propose_children(z, most: int) -> np.ndarray:
    """Sets of features whose residuals go together, strongest first.

    z (n_features, n_features) -> children (n_sets, n_features).
    """
    z = np.array(z)
    least_founder, least_member = _chance(len(z))
    sets: list[np.ndarray] = []
    while len(sets) < most:
        founders = np.unravel_index(z.argmax(), z.shape)
        if z[founders] < least_founder:
            break
        children = _grow(z, founders, least_member)
        if children.sum() >= 3:
            sets.append(children)
        z[np.ix_(children, children)] = 0.0
    return np.array(sets, dtype=bool).reshape(len(sets), len(z))


def _chance(n_features) -> tuple[float, float]:
    """What the largest z of all pairs reaches by chance, and the largest mean of two.

    Residuals of rare events are not normal, so this is no error rate; what is proposed
    in vain is dropped again.
    """
    n_pairs = max(2.0, n_features * (n_features - 1) / 2.0)
    return np.sqrt(2.0 * np.log(n_pairs)), np.sqrt(np.log(n_features + 1.0))


def _grow(z, founders, least) -> np.ndarray:
    """Add features to a pair as long as they go together with its members."""
    children = np.zeros(len(z), dtype=bool)
    children[list(founders)] = True
    total = z[:, children].sum(axis=1)
    while not children.all():
        mean = np.where(children, -np.inf, total / children.sum())
        best = int(mean.argmax())
        if mean[best] < least:
            break
        children[best] = True
        total += z[:, best]
    return children


class Split(NamedTuple):
    """A latent, and those of its children that go together against the others."""

    latent: int
    side: np.ndarray


def propose_splits(beam: Beam) -> list[Split]:
    """Latents whose children fall into two groups in the rows that show them."""
    splits = []
    for latent, (n_rows, products) in enumerate(_products(beam)):
        children = beam.children[latent]
        # Half of them make a latent.
        if n_rows < 1.0 or len(children) < 6:
            continue
        # Not standardised row by row: that makes much of rows that are nearly certain.
        scale = np.sqrt(np.maximum(np.diag(products), 1e-9))
        values, vectors = np.linalg.eigh(products / scale / scale[:, np.newaxis])
        if _z(values[-1], n_rows, len(children)) > LEAST_Z:
            side = np.zeros(len(beam.log_leak_off), dtype=bool)
            side[children[vectors[:, -1] > 0.0]] = True
            splits.append(Split(latent, side))
    return splits


def _z(largest, n_rows, n_columns) -> float:
    """Largest eigenvalue of the correlations of independent columns, standardised.

    Johnstone (Annals of Statistics 2001) has its mean and deviation.
    """
    one, two = np.sqrt(n_rows), np.sqrt(n_columns)
    deviation = (one + two) * (1.0 / one + 1.0 / two) ** (1.0 / 3.0)
    return float((n_rows * largest - (one + two) ** 2) / deviation)


def _products(beam: Beam):
    """Rows that show each latent, and products of the residuals of its children."""
    mass = beam.patterns.weights[beam.row] * beam.share
    totals = mass @ beam.states
    products = [np.zeros((len(some), len(some))) for some in beam.children]
    for part in beam.chunks(len(beam.row)):
        states = beam.states[part]
        residuals = beam.off_probability(states)
        residuals += beam.is_on(beam.row[part])
        residuals -= 1.0
        if beam.patterns.observed is not None:
            residuals *= beam.patterns.observed[beam.row[part]].T
        residuals *= np.sqrt(mass[part])
        for latent, children in enumerate(beam.children):
            some = residuals[np.ix_(children, np.flatnonzero(states[:, latent]))]
            products[latent] += some @ some.T
    return zip(totals, products, strict=True)
