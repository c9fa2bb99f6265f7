"""Probabilities in logarithms, away from 0 and 1, and checked if users give them."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._core.validation import check_numbers, check_probabilities, shown

# Learned probabilities stay this far from 0 and 1, so that no row becomes impossible.
EPSILON = 1e-6

# Stands for log(0) in matrix products, where 0 * -inf would give NaN. Sums of it stay
# finite, and no log-probability of a possible row comes near it.
LOG_ZERO = -1e30


def clip_probability(values, least=EPSILON):
    """Keep probabilities away from 0 and 1."""
    # Much faster than np.clip on the small arrays that EM handles.
    return np.minimum(np.maximum(values, least), 1.0 - least)


def safe_log(values) -> np.ndarray:
    """Logarithm with log(0) = -inf and no warning."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def finite_log(values) -> np.ndarray:
    """Logarithm with log(0) = LOG_ZERO."""
    return np.maximum(safe_log(values), LOG_ZERO)


def log_not(log_probability) -> np.ndarray:
    """Logarithm of one minus a probability, finite so that it can be subtracted."""
    return np.maximum(safe_log(-np.expm1(log_probability)), -1e5)


def check_weights(class_weight):
    """Validate P(class); None is a single class."""
    if class_weight is None:
        return frozen(np.ones(1))
    weights = probabilities("class_weight", class_weight, 1)
    if not len(weights) or not (weights > 0).all() or abs(weights.sum() - 1.0) > 1e-8:
        raise ValueError(
            "class_weight must hold positive numbers that sum to 1, got "
            f"{shown(class_weight)}."
        )
    return weights


def check_priors(prior, n_classes):
    """Validate P(latent on | class), with an axis for the classes in any case."""
    if n_classes is None:
        return probabilities("prior", prior, 1, "; 2 take class_weight")[np.newaxis]
    priors = probabilities("prior", prior, 2, " with class_weight")
    if len(priors) != n_classes:
        raise ValueError(
            "prior must have one row per class_weight, expected "
            f"{n_classes}, got shape {priors.shape}."
        )
    return priors


def check_polarity(polarity, n_features):
    """Validate which features are read as their opposite."""
    if polarity is None:
        return frozen(np.ones(n_features, dtype=np.int8))
    signs = check_numbers("polarity", polarity)
    if signs.shape != (n_features,) or not (np.abs(signs) == 1).all():
        raise ValueError(
            f"polarity must hold 1 or -1 for each of {n_features} features, got "
            f"{shown(polarity)}."
        )
    return frozen(signs.astype(np.int8))


def probabilities(name, values, ndim, note=""):
    """Validate an array of probabilities and freeze a copy of it."""
    array = np.array(check_numbers(name, values))
    if array.ndim != ndim:
        raise ValueError(
            f"{name} must have {ndim} dimension(s){note}, got shape {array.shape}."
        )
    check_probabilities(name, array)
    return frozen(array)


def frozen(array):
    """The array, which cannot be written to any more."""
    array.setflags(write=False)
    return array


def check_sets(features, n_features):
    """Validate sets of features."""
    try:
        sets = np.asarray(features)
    except ValueError:  # sets of different sizes
        sets = np.empty(1, dtype=object)
    if sets.size == 0:
        sets = sets.astype(np.intp)
    if sets.ndim not in (1, 2) or sets.dtype.kind not in "iu":
        raise ValueError(
            "features must be a list of feature indices or a 2-d array with one "
            f"set per row, got {shown(features)}."
        )
    if sets.size and not 0 <= sets.min() <= sets.max() < n_features:
        raise ValueError(
            f"features must hold indices from 0 to {n_features - 1}, got "
            f"values from {sets.min()} to {sets.max()}."
        )
    return sets


def split_rows(X, n_features):
    """Split rows into the features that are on and those that are known."""
    X = X.toarray() if sparse.issparse(X) else X
    X = check_numbers("X", X, dtype=None)
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(f"X must have shape (n_samples, {n_features}), got {X.shape}.")
    if X.dtype == bool:
        return X, None
    missing = np.isnan(X)
    on = X == 1
    valid = on | (X == 0) | missing
    if not valid.all():
        raise ValueError(
            "X must hold only 0 and 1 (and NaN for missing), got the value "
            f"{float(X[~valid][0])}."
        )
    return on, ~missing if missing.any() else None
