"""Latents that a network lacks, from the dependence that it leaves.

What a network with all its latents leaves of the features, given the states of the
latents, is independent noise. Features whose residuals go together share a parent that
the network does not have.
"""

from __future__ import annotations

import numpy as np

from .._beam import Beam

# Rows at a time.
CHUNK_ROWS = 4096


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
    bounds = np.append(beam.starts, len(beam.row))
    for first in range(0, beam.n_rows, CHUNK_ROWS):
        last = min(first + CHUNK_ROWS, beam.n_rows)
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
