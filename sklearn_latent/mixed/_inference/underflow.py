"""The forward-backward algorithm where probabilities leave the range of numbers."""

from __future__ import annotations

import numpy as np

from .._tables import log_table
from .evidence import Evidence
from .steps import Chain

# Below this a scale factor has lost digits, and the slice is done in logarithms.
UNDERFLOW = 1e-200


def careful_filter(chain: Chain, evidence: Evidence, rows):
    """Forward pass: filtered and predicted states by slice, and log-likelihoods.

    rows: numbers of the sequences, (n,)
    """
    n_slices = evidence.index[0].shape[1]
    filtered, predicted = np.empty((2, n_slices, len(rows), len(chain.start)))
    log_likelihood = evidence.total_scale(rows)
    for t in range(n_slices):
        predicted[t] = chain.into(t).forward(filtered[t - 1]) if t else chain.start
        log_joint = log_table(predicted[t]) + evidence.log_at(rows, t)
        peak = log_joint.max(axis=1, keepdims=True)
        possible = np.isfinite(peak)
        # A sequence that the model rules out still gets states: all are equally wrong.
        joint = np.exp(
            np.where(possible, log_joint - np.where(possible, peak, 0.0), 0.0)
        )
        total = joint.sum(axis=1, keepdims=True)
        filtered[t] = joint / total
        log_likelihood += np.where(possible, np.log(total) + peak, -np.inf)[:, 0]
    return filtered, predicted, log_likelihood


def careful_smooth(chain: Chain, evidence: Evidence, rows, weights):
    """Log-likelihoods, smoothed states by slice, and weighted pairs of joint states.

    Pairs are those of each epoch, (n_epochs, n_states, n_states).
    """
    filtered, _, log_likelihood = careful_filter(chain, evidence, rows)
    pairs = np.zeros((len(chain.steps), *2 * (len(chain.start),)))
    smoothed = filtered.copy()
    for t in range(len(filtered) - 1, 0, -1):
        transition = chain.into(t).whole
        smoothed[t - 1], both = _step_back(filtered[t - 1], transition, smoothed[t])
        pairs[chain.epoch[t]] += np.einsum("n,nij->ij", weights[rows, t], both)
    return log_likelihood, smoothed, pairs


def _step_back(filtered, transition, smoothed):
    """States of a slice, and of it and the next, given those of the next.

    A next state that nothing leads to, in a sequence that the model rules out, says
    nothing of this slice.
    """
    log_both = log_table(filtered)[:, :, None] + log_table(transition)
    peak = log_both.max(axis=1, keepdims=True)
    possible = np.isfinite(peak)
    both = np.exp(np.where(possible, log_both - np.where(possible, peak, 0.0), -np.inf))
    both /= np.where(possible, both.sum(axis=1, keepdims=True), 1.0)
    both *= smoothed[:, None, :]
    lost = (smoothed * ~possible[:, 0]).sum(axis=1, keepdims=True)
    return both.sum(axis=2) + lost * filtered, both
