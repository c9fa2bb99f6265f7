"""Covariance of moments, and of what is computed from them, by the delta method.

The covariance of the frequencies with which two sets S and T of features are off is
``(M[S u T] - M[S] M[T]) / n``, and a fitted network has all of these moments in closed
form, so that no further pass over the data is needed.
"""

from __future__ import annotations

import numpy as np

# Entries of rows handled at a time: their sets make matrices of some MB.
ENTRIES_AT_A_TIME = 1000


def influence_variance(influence, moments, network) -> np.ndarray:
    """Variance of parameters that depend on a few moments each.

    influence (n_parameters, n_sets) -> variance (n_parameters,).
    """
    variance = np.zeros(influence.shape[0])
    run = influence.indptr[1:] // ENTRIES_AT_A_TIME
    breaks = np.flatnonzero(np.diff(run)) + 1
    for rows_of_run in np.split(np.arange(len(run)), breaks):
        part = influence[rows_of_run]
        used = np.unique(part.indices)
        if len(used):
            rows = part[:, used].toarray()
            covariance = moment_covariance(used, moments, network)
            variance[rows_of_run] = np.einsum("ps,ps->p", rows @ covariance, rows)
    return variance


def moment_covariance(sets, moments, network) -> np.ndarray:
    """Covariance matrix of some moments.

    In logarithms, ``M[S u T] / (M[S] M[T])`` is a sum over the latents that have
    children in both sets, and over the features that are in both.

    sets (n,) -> covariance (n, n).
    """
    members = moments.sets[sets]
    features = np.unique(members[members >= 0])
    belongs = np.zeros((len(sets), len(features)))
    rows, places = np.nonzero(members >= 0)
    belongs[rows, np.searchsorted(features, members[rows, places])] = 1.0

    log_off = np.log1p(-network.leak[features])
    log_moment = belongs @ log_off
    log_lift = -(belongs * log_off) @ belongs.T
    for latent in np.flatnonzero(network.structure[:, features].any(axis=1)):
        child = network.failure[latent, features] < 1.0
        touched = np.flatnonzero(belongs[:, child].any(axis=1))
        inside = belongs[np.ix_(touched, np.flatnonzero(child))]
        log_failure = np.log(network.failure[latent, features[child]])
        alone = inside @ log_failure
        # Members of both sets fail only once.
        together = np.add.outer(alone, alone) - (inside * log_failure) @ inside.T
        prior = network.prior[latent]
        log_alone = np.log1p(prior * np.expm1(alone))
        log_moment[touched] += log_alone
        log_lift[np.ix_(touched, touched)] += (
            np.log1p(prior * np.expm1(together)) - log_alone - log_alone[:, None]
        )
    moment = np.exp(log_moment)
    # Rows that have both sets observed, at most; equal to n without missing values.
    n = np.maximum(moments.total[sets], 1.0)
    return np.outer(moment, moment) * np.expm1(log_lift) / np.maximum.outer(n, n)
