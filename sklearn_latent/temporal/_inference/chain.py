"""Hidden Markov chains on a joint state space, for many sequences at a time.

Forward filtering is scaled slice by slice; smoothing goes backward through ratios of
smoothed to predicted probabilities, which need no second pass over the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._tables import log_table
from .evidence import Evidence

# Elements of the largest temporary array; 16 MB stay near the cache.
CHUNK_ELEMENTS = 1 << 21

# Below this a scale factor has lost digits, and the slice is done in logarithms.
UNDERFLOW = 1e-200


@dataclass(frozen=True)
class ChainPosterior:
    """What the sequences say about the chain.

    log_likelihood: per sequence, (n,)
    states: P(state of a latent | sequence), per latent, (n, n_slices, cardinality)
    start: expected number of joint states in the first slice, weighted, (n_states,)
    pairs: expected number of transitions between joint states, weighted, (n_states,
        n_states)
    """

    log_likelihood: np.ndarray
    states: list
    start: np.ndarray
    pairs: np.ndarray


def smooth(start, transition, evidence: Evidence, weights=None) -> ChainPosterior:
    """Forward-backward algorithm over the joint states of several latents.

    start (n_states,), transition (n_states, n_states), weights (n, n_slices).
    """
    n, n_slices = evidence.index[0].shape
    cards = [likelihood.shape[1] for likelihood in evidence.likelihood]
    weights = np.ones((n, n_slices)) if weights is None else weights
    log_likelihood = np.empty(n)
    states = [np.empty((n, n_slices, card)) for card in cards]
    first = np.zeros(len(start))
    pairs, rare = np.zeros((2, len(start), len(start)))
    for rows in _chunks(n, n_slices * len(start)):
        filtered, predicted, log_likelihood[rows] = _filter(
            start, transition, evidence, rows
        )
        smoothed = filtered[-1]
        _marginalize(smoothed, cards, states, rows, n_slices - 1)
        for t in range(n_slices - 2, -1, -1):
            weight = weights[rows, t + 1]
            # Of states that came as a great surprise the ratio would overflow.
            expected = smoothed * UNDERFLOW <= predicted[t + 1]
            ratio = np.divide(
                smoothed,
                predicted[t + 1],
                out=np.zeros_like(smoothed),
                where=expected & (predicted[t + 1] > 0),
            )
            low = np.flatnonzero(~expected.all(axis=1))
            ratio[low] = 0.0
            later, smoothed = smoothed, filtered[t] * (ratio @ transition.T)
            for part in _chunks(len(low), len(start) ** 2):
                some = low[part]
                smoothed[some], both = _step_back(
                    filtered[t][some], transition, later[some]
                )
                rare += np.einsum("n,nij->ij", weight[some], both)
            _marginalize(smoothed, cards, states, rows, t)
            pairs += (filtered[t] * weight[:, None]).T @ ratio
        first += weights[rows, 0] @ smoothed
    return ChainPosterior(log_likelihood, states, first, pairs * transition + rare)


def _step_back(filtered, transition, smoothed):
    """States of a slice, and of it and the next, where that was hardly predicted.

    In logarithms, which do not underflow. A next state that nothing leads to, in a
    sequence that the model rules out, says nothing of this slice.
    """
    log_both = log_table(filtered)[:, :, None] + log_table(transition)
    peak = log_both.max(axis=1, keepdims=True, initial=-np.inf)
    possible = np.isfinite(peak)
    both = np.exp(np.where(possible, log_both - np.where(possible, peak, 0.0), -np.inf))
    both /= np.where(possible, both.sum(axis=1, keepdims=True), 1.0)
    both *= smoothed[:, None, :]
    lost = (smoothed * ~possible[:, 0]).sum(axis=1, keepdims=True)
    return both.sum(axis=2) + lost * filtered, both


def _marginalize(joint, cards, states, rows, t: int) -> None:
    """Write the states of each latent at slice `t`."""
    if len(cards) == 1:
        states[0][rows, t] = joint
        return
    before, after = 1, joint.shape[1]
    for card, state in zip(cards, states, strict=True):
        after //= card
        state[rows, t] = joint.reshape(-1, before, card, after).sum(axis=(1, 3))
        before *= card


def chain_log_likelihood(start, transition, evidence: Evidence) -> np.ndarray:
    """Log-likelihood of each sequence, by the forward pass alone."""
    n, n_slices = evidence.index[0].shape
    log_likelihood = np.empty(n)
    for rows in _chunks(n, n_slices * len(start)):
        log_likelihood[rows] = _filter(start, transition, evidence, rows)[2]
    return log_likelihood


def most_probable_path(start, transition, evidence: Evidence):
    """Viterbi algorithm: paths (n, n_slices) and their log-probabilities."""
    n, n_slices = evidence.index[0].shape
    n_states = len(start)
    log_start, log_transition = log_table(start), log_table(transition)
    path = np.empty((n, n_slices), dtype=np.intp)
    log_probability = np.empty(n)
    for rows in _chunks(n, n_states * n_states):
        best = log_start + evidence.log_at(rows, 0)
        sources = []
        for t in range(1, n_slices):
            through = best[:, :, None] + log_transition
            source = through.argmax(axis=1)
            sources.append(source)
            best = np.take_along_axis(through, source[:, None], axis=1)[:, 0]
            best = best + evidence.log_at(rows, t)
        state = best.argmax(axis=1)
        each = np.arange(len(best))
        log_probability[rows] = best[each, state] + evidence.total_scale(rows)
        path[rows, -1] = state
        for t in range(n_slices - 2, -1, -1):
            state = sources[t][each, state]
            path[rows, t] = state
    return path, log_probability


def _filter(start, transition, evidence: Evidence, rows):
    """Forward pass: filtered and predicted states by slice, and log-likelihoods."""
    n_rows = rows.stop - rows.start
    n_slices = evidence.index[0].shape[1]
    shape = (n_slices, n_rows, len(start))
    filtered, predicted = np.empty(shape), np.empty(shape)
    log_likelihood = evidence.total_scale(rows)
    for t in range(n_slices):
        if t == 0:
            predicted[0] = start
        else:
            np.matmul(filtered[t - 1], transition, out=predicted[t])
        joint = evidence.at(rows, t)
        joint *= predicted[t]
        total = joint.sum(axis=1)
        low = np.flatnonzero(total < UNDERFLOW)
        if len(low):
            log_joint = log_table(predicted[t][low]) + evidence.log_at(rows, t)[low]
            joint[low], log_total = _exponentials(log_joint)
            total[low] = 1.0
            log_likelihood[low] += log_total
        np.divide(joint, total[:, None], out=filtered[t])
        log_likelihood += np.log(total)
    return filtered, predicted, log_likelihood


def _exponentials(log_joint):
    """Normalised exponentials of each row, and the logarithm of what they sum to."""
    peak = log_joint.max(axis=1, keepdims=True)
    possible = np.isfinite(peak)
    # A sequence that the model rules out still gets states: all are equally wrong.
    joint = np.exp(np.where(possible, log_joint - np.where(possible, peak, 0.0), 0.0))
    total = joint.sum(axis=1, keepdims=True)
    log_total = np.where(possible, np.log(total) + np.where(possible, peak, 0), -np.inf)
    return joint / total, log_total[:, 0]


def _chunks(n: int, row_elements: int) -> list[slice]:
    """Slices of rows whose temporary arrays stay small."""
    size = max(1, CHUNK_ELEMENTS // max(1, row_elements))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]
