"""Small numerical tools that the noisy-or modules share."""

from __future__ import annotations

import numpy as np

# Learned probabilities stay this far from 0 and 1, so that no row becomes impossible.
EPSILON = 1e-6

# Stands for log(0) in matrix products, where 0 * -inf would give NaN. Sums of it stay
# finite, and no log-probability of a possible row comes near it.
LOG_ZERO = -1e30


def clip_probability(values):
    """Keep learned probabilities within [EPSILON, 1 - EPSILON]."""
    # Much faster than np.clip on the small arrays that EM handles.
    return np.minimum(np.maximum(values, EPSILON), 1.0 - EPSILON)


def safe_log(values) -> np.ndarray:
    """Logarithm with log(0) = -inf and no warning."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def log_not(log_probability) -> np.ndarray:
    """Logarithm of one minus a probability, finite so that it can be subtracted."""
    return np.maximum(safe_log(-np.expm1(log_probability)), -1e5)
