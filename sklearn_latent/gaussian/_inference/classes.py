"""Rows of hidden classes: what each class expects, weighted by its probability."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, softmax

from .._statistics import LOG_2_PI


def class_log_densities(network, Z, cells=()) -> np.ndarray:
    """Log of P(class) and density of each row in it, (n_samples, n_classes)."""
    log_densities = [own._density(Z, cells) for own in network.classes]
    return np.column_stack(log_densities) + np.log(network.class_weight)


def total(log_densities) -> np.ndarray:
    """Log-density of each row over all classes."""
    return logsumexp(log_densities, axis=1)


def shares(log_densities) -> np.ndarray:
    """P(class) of each row, (n_samples, n_classes)."""
    return softmax(log_densities, axis=1)


def shares_without(log_densities, Z, moments) -> np.ndarray:
    """P(class) given all values of a row but one, for each of them.

    moments: means and variances of each value given the others, one pair per class.
    Z (n_samples, n_features) -> (n_classes, n_samples, n_features).
    """
    parts = []
    for log_density, (mean, variance) in zip(log_densities.T, moments, strict=True):
        own = -0.5 * (LOG_2_PI + np.log(variance) + (Z - mean) ** 2 / variance)
        parts.append(log_density[:, None] - np.where(np.isnan(Z), 0.0, own))
    return softmax(np.stack(parts), axis=0)


def log_interval(score, low, high, mean, variance) -> np.ndarray:
    """What the probability of an interval adds to the log-likelihood of its score.

    That is, to the density times the width that the interval has to begin with.
    """
    deviation = np.sqrt(variance)
    even = np.log(ndtr(high) - ndtr(low)) + 0.5 * (score**2 + LOG_2_PI)
    density = -0.5 * (LOG_2_PI + np.log(variance) + (score - mean) ** 2 / variance)
    low, high = (low - mean) / deviation, (high - mean) / deviation
    # From the end where probabilities keep their digits.
    low, high = np.where(low > 0.0, [-high, -low], [low, high])
    with np.errstate(divide="ignore"):
        less = np.exp(np.minimum(log_ndtr(low) - log_ndtr(high), 0.0))
        return log_ndtr(high) + np.log1p(-less) - density - even
