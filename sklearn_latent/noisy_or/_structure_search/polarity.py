"""Columns that point the other way: which to read as their opposite.

Causes that switch features on make them depend on each other positively. Votes,
reverse-scored items and wrong answers among right ones depend negatively on the rest.
"""

from __future__ import annotations

import numpy as np

from .._network import NoisyOrNetwork
from .._statistics.patterns import Patterns
from .._statistics.rows import BlockMoments
from .extend import discover
from .sampling import thin
from .search import search_independent

# Rows that choose between the table as it is, another way to read it, and the opposite
# of that; and rounds.
JUDGING_ROWS, JUDGING_ROUNDS = 1000, 1

# Gain in BIC that turned columns must bring, in nats.
LEAST_GAIN = 10.0

# Correlations in standard errors that are not due to chance.
LEAST_Z = 4.0

# Columns are turned if at least this share of the squared correlations is negative,
# and turning makes it this many times smaller.
LEAST_SHARE, LEAST_FACTOR = 0.02, 3.0

# Rounds of signs that follow the sum of their correlations; they settle in a few.
MAX_ROUNDS = 100


def correlations(patterns: Patterns) -> np.ndarray:
    """z-scores of the correlations of columns; missing values count as the mean."""
    weights, known = patterns.weights, patterns.known
    seen = np.maximum(weights @ known, 1e-300)
    centred = np.where(known, patterns.on - weights @ patterns.on / seen, 0.0)
    scale = np.sqrt(weights @ centred**2)
    centred /= np.where(scale > 1e-9, scale, np.inf)
    z = (centred * weights[:, np.newaxis]).T @ centred * np.sqrt(weights.sum())
    np.fill_diagonal(z, 0.0)
    return z


def choose_polarity(patterns: Patterns, thresholds, rng) -> np.ndarray:
    """Which columns to read as their opposite: -1, or 1 as they are."""
    as_it_is = np.ones(patterns.on.shape[1], dtype=np.int8)
    polarity = propose_polarity(patterns)
    if polarity is None:
        return as_it_is
    sample = thin(patterns, JUDGING_ROWS, rng)
    ways = (as_it_is, polarity, -polarity)
    scores = [_score(sample.turn(way), thresholds) for way in ways]
    # Columns that are read as their opposite are harder to read.
    scores[0] += LEAST_GAIN
    return ways[int(np.argmax(scores))]


def _score(patterns: Patterns, thresholds) -> float:
    """How well independent latents explain the rows, by quartets and a short search."""
    source = BlockMoments.of_patterns(patterns)
    found = discover(source, thresholds)
    start = NoisyOrNetwork._of(found.prior, found.failure, found.leaks(source))
    return search_independent(patterns, start, JUDGING_ROUNDS).score


def propose_polarity(patterns: Patterns) -> np.ndarray | None:
    """Signs that make columns depend on each other positively; None: all are +1.

    The smaller group is -1. Its opposite, the larger group turned, is the other way to
    read the table.
    """
    z = correlations(patterns)
    z = np.where(np.abs(z) > LEAST_Z, z, 0.0)
    before = _negative_share(z, np.ones(len(z)))
    if before < LEAST_SHARE:
        return None
    signs = np.where(np.linalg.eigh(z)[1][:, -1] < 0, -1.0, 1.0)
    for _ in range(MAX_ROUNDS):
        # One column at a time, so that every change lowers the negative part.
        pull = signs * (z @ signs)
        worst = int(pull.argmin())
        if pull[worst] >= 0:
            break
        signs[worst] *= -1.0
    if _negative_share(z, signs) * LEAST_FACTOR > before:
        return None
    involved = np.any(z != 0.0, axis=1)
    if signs[involved].sum() < 0:
        signs = -signs
    signs[~involved] = 1.0
    return signs.astype(np.int8)


def _negative_share(z, signs) -> float:
    """Share of the squared correlations that is negative."""
    turned = z * np.outer(signs, signs)
    total = (z**2).sum()
    return float((turned[turned < 0] ** 2).sum() / total) if total else 0.0
