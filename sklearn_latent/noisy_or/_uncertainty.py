"""Covariance of moments, and of what is computed from them, by the delta method.

The covariance of the frequencies with which two sets S and T of features are off is
``(M[S u T] - M[S] M[T]) / n``, and a fitted network has all of these moments in closed
form (equation 3 of [1]_), so that no further pass over the data is needed.

References
----------
.. [1] Halpern, Y. and Sontag, D. (2013). Unsupervised learning of noisy-or Bayesian
   networks. UAI.
"""

from __future__ import annotations

import numpy as np

__all__ = ["influence_variance", "moment_covariance"]

# Pairs of moments handled at a time; bounds memory to some 100 MB.
PAIRS_AT_A_TIME = 2**17


def influence_variance(influence, moments, network) -> np.ndarray:
    """Variance of parameters that depend on a few moments each.

    Parameters
    ----------
    influence : csr_array of shape (n_parameters, n_sets)
        Derivative of each parameter with respect to each moment.

    moments : NegativeMoments
        The sets, and from how many rows each was counted.

    network : NoisyOrNetwork
        The fitted model.

    Returns
    -------
    variance : ndarray of shape (n_parameters,)
    """
    n_terms = np.diff(influence.indptr)
    variance = np.zeros(len(n_terms))
    # Rows are cut into runs of about equal work.
    run = np.cumsum(n_terms.astype(np.int64) ** 2) // PAIRS_AT_A_TIME
    _, first = np.unique(run, return_index=True)
    for start, stop in zip(first, [*first[1:], len(run)], strict=True):
        rows = slice(start, stop)
        left, right, row = _pairs_within_rows(influence[rows])
        data, sets = influence[rows].data, influence[rows].indices
        covariance = _covariance(sets[left], sets[right], moments, network)
        twice = np.where(left == right, 1.0, 2.0)
        variance[rows] = np.bincount(
            row[left],
            weights=twice * data[left] * data[right] * covariance,
            minlength=stop - start,
        )
    return variance


def moment_covariance(sets, moments, network) -> np.ndarray:
    """Covariance matrix of some moments.

    Parameters
    ----------
    sets : ndarray of int of shape (n,)
        Positions in ``moments.sets``.

    moments : NegativeMoments

    network : NoisyOrNetwork

    Returns
    -------
    covariance : ndarray of shape (n, n)
    """
    matrix = np.empty((len(sets), len(sets)))
    left, right = np.triu_indices(len(sets))
    for start in range(0, len(left), PAIRS_AT_A_TIME):
        i = left[start : start + PAIRS_AT_A_TIME]
        j = right[start : start + PAIRS_AT_A_TIME]
        matrix[i, j] = matrix[j, i] = _covariance(sets[i], sets[j], moments, network)
    return matrix


def _pairs_within_rows(influence):
    """Positions of all pairs of entries of one row, each once, and rows of entries."""
    n_terms = np.diff(influence.indptr)
    row = np.repeat(np.arange(len(n_terms)), n_terms)
    partners = n_terms[row]
    left = np.repeat(np.arange(len(row)), partners)
    offset = np.arange(len(left)) - np.repeat(np.cumsum(partners) - partners, partners)
    right = influence.indptr[row[left]] + offset
    half = left <= right
    return left[half], right[half], row


def _covariance(S, T, moments, network):
    """Covariance of the moments at positions S and T."""
    off_S, off_T, joint = np.split(
        _off_probability(
            network,
            np.vstack(
                [
                    np.hstack([moments.sets[S], np.full_like(moments.sets[S], -1)]),
                    np.hstack([moments.sets[T], np.full_like(moments.sets[T], -1)]),
                    np.hstack([moments.sets[S], moments.sets[T]]),
                ]
            ),
        ),
        3,
    )
    # Rows that have both sets observed, at most; equal to n without missing values.
    n = np.maximum(moments.total[S], moments.total[T])
    return (joint - off_S * off_T) / n


def _off_probability(network, sets):
    """P(all off) of sets that may repeat members or hold -1; each distinct set once."""
    features, position = np.unique(sets, return_inverse=True)
    position = np.sort(position.reshape(sets.shape), axis=1)
    # A feature that is there twice counts once; the place of -1, always first after
    # sorting, takes up the repetition.
    none = np.searchsorted(features, -1) if features[0] < 0 else len(features)
    position[:, 1:][position[:, 1:] == position[:, :-1]] = none
    position.sort(axis=1)
    key = position[:, 0].copy()
    for column in position.T[1:]:
        key = key * (len(features) + 1) + column
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)

    failure = np.ones((network.n_latents, len(features) + 1))
    stays_off = np.ones(len(features) + 1)
    real = np.flatnonzero(features >= 0)
    failure[:, real] = network.failure[:, features[real]]
    stays_off[real] = 1.0 - network.leak[features[real]]
    touched = (failure < 1.0).any(axis=1)
    failure, prior = failure[touched], network.prior[touched, None]
    product = np.ones((len(failure), len(first)))
    off = np.ones(len(first))
    for column in position[first].T:
        product *= failure[:, column]
        off *= stays_off[column]
    return (off * np.prod(1.0 - prior + prior * product, axis=0))[inverse]
