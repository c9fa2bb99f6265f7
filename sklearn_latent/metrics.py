"""How close a learned model is to the true one, whatever the order of its latents."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.utils import check_array

__all__ = ["edge_f1", "match_latents"]

# A latent is recovered if every failure is right up to the factor e, and if its prior
# is large enough for it to be a cause and not an artefact.
LOG_FAILURE_TOLERANCE = 1.0
MIN_PRIOR = 0.02

# log(0) would make every distance infinite.
SMALLEST_FAILURE = 1e-6


def match_latents(true_failure, failure, prior=None):
    """Match learned latents with true ones, one to one.

    The distance of two latents is the largest difference of their log failures over
    all features. The matching pairs as many latents as possible within the distance
    that counts as recovered, and among such matchings has the smallest sum of
    distances (Hungarian method).

    Parameters
    ----------
    true_failure : array-like of shape (n_true, n_features)
        Failure probabilities of the true network; 1 = no edge.

    failure : array-like of shape (n_learned, n_features)
        Failure probabilities of the learned network.

    prior : array-like of shape (n_learned,) or None, default=None
        Priors of the learned latents. None leaves priors out of the judgement.

    Returns
    -------
    pairs : ndarray of int of shape (min(n_true, n_learned), 2)
        Index of a true latent and of its learned partner, sorted by the true one.

    recovered : ndarray of bool of shape (n_true,)
        Whether each true latent has a partner at a distance of at most 1 whose prior
        is at least 0.02. ``recovered.sum()`` is the number of latents recovered.

    Examples
    --------
    >>> from sklearn_latent.metrics import match_latents
    >>> true_failure = [[0.1, 0.2, 1.0], [1.0, 0.3, 0.1]]
    >>> pairs, recovered = match_latents(true_failure, [[1.0, 0.1, 0.2]])
    >>> pairs.tolist(), recovered.tolist()
    ([[1, 0]], [False, False])
    >>> pairs, recovered = match_latents(true_failure, [[1.0, 0.25, 0.2]])
    >>> pairs.tolist(), recovered.tolist()
    ([[1, 0]], [False, True])
    """
    log_true = _log_failure(true_failure, "true_failure")
    log_learned = _log_failure(failure, "failure")
    _check_same_width(log_true, log_learned, "true_failure", "failure")
    distance = _chebyshev(log_true, log_learned)
    close = distance <= LOG_FAILURE_TOLERANCE
    if prior is not None:
        close &= _check_prior(prior, len(log_learned)) >= MIN_PRIOR
    # A miss costs more than all distances together, so that a matching never gives
    # up a recovered latent to shorten a hopeless distance elsewhere.
    miss = distance.max(initial=0.0) * min(distance.shape) + 1.0
    true, learned = linear_sum_assignment(distance + miss * ~close)
    recovered = np.zeros(len(log_true), dtype=bool)
    recovered[true] = close[true, learned]
    return np.column_stack([true, learned]), recovered


def edge_f1(true_structure, structure):
    """F1 score of the edges of a bipartite structure.

    Latents have no names, so the learned rows are first matched with the true ones
    such that the number of common edges is largest; the numbers of rows may differ.
    Edges of latents without a partner count as false or as missed edges.

    Parameters
    ----------
    true_structure : {array-like, sparse matrix} of shape (n_true, n_features)
        Nonzero where the true network has an edge.

    structure : {array-like, sparse matrix} of shape (n_learned, n_features)
        Nonzero where the learned network has an edge.

    Returns
    -------
    f1 : float
        Harmonic mean of precision and recall; 1 if neither structure has an edge.

    Examples
    --------
    >>> from sklearn_latent.metrics import edge_f1
    >>> edge_f1([[1, 1, 0], [0, 1, 1]], [[0, 1, 1], [1, 1, 0]])
    1.0
    >>> round(edge_f1([[1, 1, 0], [0, 1, 1]], [[1, 1, 0]]), 3)
    0.667
    """
    true = _check_structure(true_structure, "true_structure")
    learned = _check_structure(structure, "structure")
    _check_same_width(true, learned, "true_structure", "structure")
    n_edges = true.sum() + learned.sum()
    if n_edges == 0:
        return 1.0
    common = true @ learned.T
    return float(2 * common[linear_sum_assignment(-common)].sum() / n_edges)


def _log_failure(failure, name: str) -> np.ndarray:
    """Validate failures and take their logarithm."""
    failure = check_array(
        failure, dtype=np.float64, ensure_min_samples=0, input_name=name
    )
    if failure.size and (failure.min() < 0 or failure.max() > 1):
        raise ValueError(
            f"{name} must hold probabilities in [0, 1], got values from "
            f"{failure.min():g} to {failure.max():g}."
        )
    return np.log(np.maximum(failure, SMALLEST_FAILURE))


def _chebyshev(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Largest absolute difference of each row of `a` and each row of `b`."""
    distance = np.zeros((len(a), len(b)))
    # Row by row: all differences at once would be n_true x n_learned x n_features.
    for i, row in enumerate(a):
        distance[i] = np.abs(b - row).max(axis=1, initial=0.0)
    return distance


def _check_structure(structure, name: str) -> np.ndarray:
    """Validate a structure; float, for the products that count common edges."""
    if sparse.issparse(structure):
        structure = structure.toarray()
    structure = check_array(structure, ensure_min_samples=0, input_name=name)
    return (structure != 0).astype(np.float64)


def _check_prior(prior, n_latents: int) -> np.ndarray:
    """Validate the priors of the learned latents."""
    prior = np.asarray(prior, dtype=np.float64)
    if prior.shape != (n_latents,):
        raise ValueError(
            "prior must have one value per row of failure, shape "
            f"({n_latents},), got shape {prior.shape}."
        )
    return prior


def _check_same_width(a, b, name_a: str, name_b: str) -> None:
    """Both must be over the same features."""
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"{name_a} and {name_b} must have the same number of columns (features), "
            f"got {a.shape[1]} and {b.shape[1]}."
        )
