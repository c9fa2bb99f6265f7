"""Rows of hidden classes: what each class expects, weighted by its probability."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

from .._statistics.statistics import LOG_2_PI


def class_log_densities(network, Z) -> np.ndarray:
    """Log of P(class) and density of each row in it, (n_samples, n_classes)."""
    log_densities = [own.log_likelihood(Z) for own in network.classes]
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
