"""Hidden Markov chains of joint states, for many sequences at a time.

Forward filtering is scaled every few slices; smoothing goes backward through ratios of
smoothed to predicted probabilities, which need no second pass over the evidence, and
in which the scale cancels. Few long sequences take products of steps instead, which
halve their length again and again. What loses digits is done once more in logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from .tree import NEVER, UNDERFLOW, careful_log

# Slices after which filtered states are scaled to sum to 1. (With every slice scaled,
# fits of single series of 2,000 slices took 1.2 to 1.4 times as long.)
SCALED = 8

# Steps from which on products of two of them save time, and states times sequences up
# to which they do. (One series of 2,000 slices: .05 s instead of .16 with 4 states, as
# much with 16, and longer with 32.)
LONG = 32
FEW = 16

# Share of a product below which digits may have been lost.
LOST = 1e-100


class Steps:
    """A transition matrix without the rows that are equal to others.

    Latents that nothing follows in the next slice have states of the same row, often
    many: the chain of 5 latents of which 2 have followers has 12 rows for 480 states.

    matrix: P(state | row), (n_rows, n_states)
    rows: row of each state, (n_states,)
    """

    def __init__(self, matrix, rows):
        self.matrix, self.rows = matrix, rows
        self._indicators = None
        if len(matrix) < matrix.shape[1]:
            self._indicators = np.eye(len(matrix))[rows]

    def gathered(self, states) -> np.ndarray:
        """Probabilities of the rows, from those of states."""
        return states if self._indicators is None else states @ self._indicators

    def forward(self, states, out=None) -> np.ndarray:
        """Probabilities of the next states."""
        return np.dot(self.gathered(states), self.matrix, out=out)

    def back(self, values, out=None) -> np.ndarray:
        """What is expected of values of the next states, given each state."""
        if self._indicators is None:
            return np.dot(values, self.matrix.T, out=out)
        return np.dot(values, self.matrix.T).take(self.rows, 1, out, mode="clip")

    @property
    def whole(self) -> np.ndarray:
        """The matrix with all rows."""
        return self.matrix[self.rows]


@dataclass(frozen=True)
class Chain:
    """The joint states of some latents: how they start, and the steps between slices.

    start: P(state in the first slice), (n_states,)
    steps: those of each epoch; with one epoch all slices have the same
    epoch: number of the epoch of each slice, increasing
    """

    start: np.ndarray
    steps: list[Steps]
    epoch: list[int]

    def into(self, t: int) -> Steps:
        """Steps from the slice before into a slice."""
        return self.steps[self.epoch[t]]

    def inner(self, e: int) -> slice:
        """Slices of an epoch less the first of all, counted from that one on."""
        first = self.epoch.index(e)
        return slice(max(first, 1) - 1, first + self.epoch.count(e) - 1)

    def pairs(self, filtered, ratio, weights) -> np.ndarray:
        """Weighted transitions of each epoch, (n_epochs, n_rows, n_states)."""
        ratio = ratio[1:] * weights[1:, :, None]
        found = []
        for e, steps in enumerate(self.steps):
            inner = self.inner(e)
            sources = steps.gathered(_flat(filtered[:-1][inner]))
            found.append(sources.T @ _flat(ratio[inner]) * steps.matrix)
        return np.array(found)


class Forward:
    """Filtered states of some sequences, by slice, and what follows them.

    likelihood (n_slices, n, n_states), at most 1.

    log_likelihood: (n,); lost: sequences of which digits were lost, (n,)
    filtered: up to a factor that they share with the ratios, (n_slices, n, n_states)
    """

    def __init__(self, chain: Chain, likelihood):
        self.chain, self.likelihood = chain, likelihood
        n_slices, n, n_states = likelihood.shape
        self.potentials = None
        if n_slices > LONG and n * n_states <= FEW and len(chain.steps) == 1:
            steps = chain.steps[0].whole * likelihood[1:, :, None]
            self.potentials = steps
        with np.errstate(all="ignore"):
            totals = self._run()
            # Not a number is no less than the smallest that is trusted, either.
            self.lost = ~(totals >= UNDERFLOW).all(axis=0)
            self.log_likelihood = np.log(totals).sum(axis=0)

    def _run(self) -> np.ndarray:
        """Filter; what was scaled off, (n_totals, n)."""
        chain, likelihood = self.chain, self.likelihood
        self.filtered, self.predicted = np.empty((2, *likelihood.shape))
        self.predicted[0] = chain.start
        if self.potentials is None:
            return self._step_by_step()
        begin = chain.start * likelihood[0]
        first = begin.sum(axis=1)
        self.filtered = messages(begin / first[:, None], self.potentials)
        self.predicted[1:] = chain.steps[0].forward(self.filtered[:-1])
        totals = (self.predicted[1:] * likelihood[1:]).sum(axis=2)
        return np.concatenate([first[None], totals])

    def _step_by_step(self) -> np.ndarray:
        """Filter slice by slice.

        Slices in between are as small as the next that is scaled, at the least, since
        no likelihood is above 1. The last slice is scaled.
        """
        totals, last = [], len(self.likelihood) - 1
        state = self.predicted[0]
        parts = zip(self.likelihood, self.predicted, self.filtered, strict=True)
        for t, (joint, before, now) in enumerate(parts):
            if t:
                self.chain.into(t).forward(state, out=before)
            state = np.multiply(joint, before, out=now)
            if t % SCALED == SCALED - 1 or t == last:
                totals.append(state @ np.ones(state.shape[1]))
                state /= totals[-1][:, None]
        return np.array(totals)

    def backward(self) -> tuple[np.ndarray, np.ndarray]:
        """Smoothed states, and their ratio to those predicted.

        Sequences of which digits are lost here as well are added to `lost`.
        """
        with np.errstate(all="ignore"):
            # A state that is not predicted at all has no share afterwards either.
            predicted = np.maximum(self.predicted, 1e-300)
            if self.potentials is None:
                smoothed, ratio = self._back(predicted)
            else:
                ahead = self.potentials[::-1].swapaxes(2, 3)
                nothing = np.ones(self.likelihood.shape[1:])
                smoothed = self.filtered * messages(nothing, ahead)[::-1]
                smoothed /= smoothed.sum(axis=2, keepdims=True)
                ratio = smoothed / predicted
            # Slices first: a maximum over few states takes long. Not a number is lost.
            self.lost = self.lost | ~(ratio.max(axis=0).max(axis=1) <= 1 / UNDERFLOW)
        return smoothed, ratio

    def _back(self, predicted):
        """Smooth slice by slice."""
        smoothed, ratio = np.empty((2, *predicted.shape))
        smoothed[-1] = self.filtered[-1]
        for t in range(len(predicted) - 1, -1, -1):
            np.divide(smoothed[t], predicted[t], out=ratio[t])
            if t:
                self.chain.into(t).back(ratio[t], out=smoothed[t - 1])
                smoothed[t - 1] *= self.filtered[t - 1]
        return smoothed, ratio


def smooth_logs(chain: Chain, logs, weights):
    """Log-likelihoods, smoothed states, and weighted transitions, in logarithms.

    logs (n_slices, n, n_states), all of them numbers. A sequence that the model rules
    out has the states that contradict it the least.
    """
    start = careful_log(chain.start)
    matrices = [careful_log(steps.whole) for steps in chain.steps]
    before, after = [start + logs[0]], [np.zeros_like(logs[0])]
    for t in range(1, len(logs)):
        through = before[-1][:, :, None] + matrices[chain.epoch[t]]
        before.append(logsumexp(through, axis=1) + logs[t])
    for t in range(len(logs) - 1, 0, -1):
        ahead = (after[-1] + logs[t])[:, None]
        after.append(logsumexp(matrices[chain.epoch[t]] + ahead, axis=2))
    after.reverse()
    total = logsumexp(before[-1], axis=1)
    smoothed = softmax(np.array(before) + np.array(after), axis=2)
    pairs = np.zeros((len(matrices), *matrices[0].shape))
    for t in range(1, len(logs)):
        both = before[t - 1][:, :, None] + matrices[chain.epoch[t]]
        both = both + (logs[t] + after[t] - total[:, None])[:, None]
        pairs[chain.epoch[t]] += np.einsum("n,nij->ij", weights[t], np.exp(both))
    each = zip(chain.steps, pairs, strict=True)
    rows = [steps.gathered(both.T).T for steps, both in each]
    return possible(total), smoothed, np.array(rows)


def possible(log_likelihood) -> np.ndarray:
    """Log-likelihoods, of which those that hold the logarithm of 0 are infinite."""
    return np.where(log_likelihood < NEVER / 2, -np.inf, log_likelihood)


def filter_logs(chain: Chain, logs) -> tuple[np.ndarray, np.ndarray]:
    """Filtered and predicted states by slice; `logs` as in `smooth_logs`."""
    filtered, predicted = np.empty((2, *logs.shape))
    for t, log in enumerate(logs):
        predicted[t] = chain.into(t).forward(filtered[t - 1]) if t else chain.start
        filtered[t] = softmax(careful_log(predicted[t]) + log, axis=1)
    return filtered, predicted


def best_path(best, later) -> tuple[np.ndarray, np.ndarray]:
    """Paths of the greatest sum of log potentials, (n_slices, n), and the sums.

    best: of the states of the first slice, (n, n_states)
    later: of the steps into each later slice and of its states
    """
    sources = []
    for step, states in later:
        through = best[:, :, None] + step
        sources.append(through.argmax(axis=1))
        best = through.max(axis=1) + states
    path = [best.argmax(axis=1)]
    each = np.arange(len(best))
    for source in reversed(sources):
        path.append(source[each, path[-1]])
    return np.stack(path[::-1]), best.max(axis=1)


def draw_path(chain: Chain, filtered, draw) -> np.ndarray:
    """Draw paths backward, given filtered states; (n_slices, n)."""
    path = [draw(filtered[-1])]
    for t in range(len(filtered) - 1, 0, -1):
        both = filtered[t - 1] * chain.into(t).whole[:, path[-1]].T
        total = both.sum(axis=1, keepdims=True)
        # The network may rule a sequence out.
        path.append(draw(np.where(total > 0, both, filtered[t - 1])))
    return np.stack(path[::-1])


def messages(begin, steps) -> np.ndarray:
    """Rows that sum to 1, multiplied by one step after the other.

    begin (n, card), steps (n_steps, n, card, card) -> (n_steps + 1, n, card).
    """
    if len(steps) >= LONG and begin.size <= FEW:
        found = _halved_messages(begin, steps)
        if found is not None:
            return found
    found = np.empty((len(steps) + 1, *begin.shape))
    found[0] = begin
    for t, step in enumerate(steps):
        found[t + 1] = unit(np.matmul(found[t][:, None], step)[:, 0])
    return found


def _halved_messages(begin, steps) -> np.ndarray | None:
    """Messages of every second slice by products of steps, then those between.

    None if digits were lost: a product may know nothing of a state that matters.
    """
    n_twos = len(steps) // 2
    first, second = steps[: 2 * n_twos : 2], steps[1::2]
    products = np.matmul(first, second)
    products /= np.maximum(products.max(axis=(2, 3), keepdims=True), 1e-300)
    found = np.empty((len(steps) + 1, *begin.shape))
    found[: 2 * n_twos + 1 : 2] = messages(begin, products)
    sources = found[: len(steps) : 2, :, None]
    between = np.matmul(sources, steps[::2])[:, :, 0]
    reached = np.matmul(sources[:n_twos], products)
    if not min(between.sum(axis=2).min(), reached.sum(axis=3).min()) > LOST:
        return None
    found[1::2] = unit(between)
    return found


def unit(values) -> np.ndarray:
    """Rows that sum to 1; those of zeros stay."""
    return values / np.maximum(values.sum(axis=-1, keepdims=True), 5e-324)


def _flat(values) -> np.ndarray:
    return values.reshape(-1, values.shape[-1])
