"""Hidden Markov chains on a joint state space, for many sequences at a time.

Forward filtering is scaled every few slices; smoothing goes backward through ratios of
smoothed to predicted probabilities, which need no second pass over the evidence, and
in which the scale cancels. Few long sequences are cut into blocks that run side by
side: what a block begins with is a guess at first, which it soon forgets, and then what
the block before ended with, until both agree. The rare sequences of which digits would
be lost are done once more in logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from .._tables import log_table
from .evidence import Evidence
from .steps import Chain
from .underflow import UNDERFLOW, careful_filter, careful_smooth

# Elements of the largest temporary array; several of half a megabyte stay in the cache.
CHUNK_ELEMENTS = 1 << 16

# Slices after which filtered states are scaled to sum to 1. (With every slice scaled,
# fits of single series of 2,000 slices took 1.2 to 1.4 times as long.)
SCALED = 8

# Slices of a block, and sequences times states up to which blocks take less time. (One
# series of 2,000 slices: a third of the time with 4 to 160 states. 20 of 200: a third
# with 4 states, as much with 16.)
BLOCK_SLICES = 45
BLOCK_CELLS = 250

# Relative difference of messages between blocks that agree, and how often blocks run
# until then. (In panels of random networks they agreed after two runs.)
AGREED = 1e-11
MAX_RUNS = 4


@dataclass(frozen=True)
class ChainPosterior:
    """What the sequences say about the chain.

    log_likelihood: per sequence, (n,)
    states: P(state of a latent | sequence), per latent, (n, n_slices, cardinality)
    start: expected number of joint states in the first slice, weighted, (n_states,)
    pairs: expected number of transitions from rows to joint states in each epoch,
        weighted, (n_epochs, n_rows, n_states)
    """

    log_likelihood: np.ndarray
    states: list
    start: np.ndarray
    pairs: np.ndarray


def smooth(chain: Chain, evidence: Evidence, weights) -> ChainPosterior:
    """Forward-backward algorithm over the joint states of several latents.

    weights (n, n_slices).
    """
    n, n_slices = evidence.index[0].shape
    cards = [likelihood.shape[1] for likelihood in evidence.likelihood]
    log_likelihood = np.empty(n)
    states = [np.empty((n, n_slices, card)) for card in cards]
    first = np.zeros(len(chain.start))
    matrices = np.array([steps.matrix for steps in chain.steps])
    pairs, rare = np.zeros((2, *matrices.shape))
    for rows in _chunks(n, n_slices * len(chain.start)):
        forward = _Forward(chain, evidence, rows)
        smoothed, ratio = forward.backward()
        weight = weights[rows].T
        # Slices first: a maximum over few states takes long. Not a number is lost, too.
        lost = forward.lost | ~(ratio.max(axis=0).max(axis=1) <= 1 / UNDERFLOW)
        low = np.flatnonzero(lost)
        # What was lost is not a number.
        ratio[:, low] = forward.filtered[:, low] = 0.0
        for part in _chunks(len(low), len(chain.start) ** 2):
            some, low_rows = low[part], rows.start + low[part]
            done = careful_smooth(chain, evidence, low_rows, weights)
            forward.log_likelihood[some], smoothed[:, some], both = done
            for e, steps in enumerate(chain.steps):
                rare[e] += steps.gathered(both[e].T).T
        log_likelihood[rows] = forward.log_likelihood
        ratio[1:] *= weight[1:, :, None]
        for e, steps in enumerate(chain.steps):
            inner = chain.inner(e)
            sources = steps.gathered(_flat(forward.filtered[:-1][inner]))
            pairs[e] += sources.T @ _flat(ratio[1:][inner])
        first += weight[0] @ smoothed[0]
        _marginalize(smoothed, cards, states, rows)
    return ChainPosterior(log_likelihood, states, first, pairs * matrices + rare)


def chain_log_likelihood(chain: Chain, evidence: Evidence) -> np.ndarray:
    """Log-likelihood of each sequence, by the forward pass alone; see `smooth`."""
    n, n_slices = evidence.index[0].shape
    log_likelihood = np.empty(n)
    for rows in _chunks(n, n_slices * len(chain.start)):
        forward = _Forward(chain, evidence, rows)
        log_likelihood[rows] = forward.log_likelihood
        if forward.lost.any():
            low = rows.start + np.flatnonzero(forward.lost)
            log_likelihood[low] = careful_filter(chain, evidence, low)[2]
    return log_likelihood


def most_probable_path(chain: Chain, evidence: Evidence):
    """Viterbi algorithm: paths (n, n_slices) and their log-probabilities."""
    n, n_slices = evidence.index[0].shape
    logs = [log_table(steps.whole) for steps in chain.steps]
    path = np.empty((n, n_slices), dtype=np.intp)
    log_probability = np.empty(n)
    for rows in _chunks(n, len(chain.start) ** 2):
        first = log_table(chain.start) + evidence.log_at(rows, 0)
        later = (
            (logs[chain.epoch[t]], evidence.log_at(rows, t)) for t in range(1, n_slices)
        )
        path[rows], best = best_path(first, later)
        log_probability[rows] = best + evidence.total_scale(rows)
    return path, log_probability


def best_path(best, later) -> tuple[np.ndarray, np.ndarray]:
    """Paths of the greatest sum of log potentials, (n, n_slices), and the sums.

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
    return np.stack(path[::-1], axis=1), best.max(axis=1)


class _Forward:
    """Filtered states of some sequences, by slice, and what follows them.

    lost: sequences of which digits were lost, and which need logarithms, (n,)
    filtered: up to a factor that they share with the ratios, (n_slices, n, n_states)
    """

    def __init__(self, chain: Chain, evidence: Evidence, rows: slice):
        self.chain = chain
        n_slices = evidence.index[0].shape[1]
        self.shape = n_slices, rows.stop - rows.start, len(chain.start)
        self.n_blocks = 1
        # Blocks side by side make the same steps.
        if len(chain.steps) == 1:
            self.n_blocks = _n_blocks(*self.shape[:2], len(chain.steps[0].matrix))
        likelihood = _joint_likelihood(evidence, rows)
        begin = np.broadcast_to(chain.start, self.shape[1:])
        with np.errstate(all="ignore"):
            found = self._by_blocks(begin, likelihood) if self.n_blocks > 1 else None
            if found is None:
                self.n_blocks = 1
                found = _filter(begin, chain, likelihood)
            self._filtered, self._predicted, totals = found
            totals = totals.reshape(-1, self.shape[1])
            # Not a number is no less than the smallest that is trusted, either.
            self.lost = ~(totals >= UNDERFLOW).all(axis=0)
            logs = np.log(totals).sum(axis=0)
        self.filtered = self._join(self._filtered)
        self.log_likelihood = logs + evidence.total_scale(rows)

    def _by_blocks(self, start, likelihood):
        """Filtered and predicted states of blocks, as in `_filter`, if they agree."""
        cut = self._cut(likelihood)

        def begins(found):
            """What each block begins with."""
            ends = found[0][-1, : -len(start)]
            return np.concatenate([start, self.chain.into(0).forward(ends)])

        guess = np.full(cut.shape[1:], 1.0 / cut.shape[2])
        guess[: len(start)] = start
        return _agreeing(lambda begin: _filter(begin, self.chain, cut), begins, guess)

    def backward(self) -> tuple[np.ndarray, np.ndarray]:
        """Smoothed states, and their ratio to those predicted."""
        n, found = self.shape[1], None
        nothing = np.full(self._filtered.shape[1:], 1.0 / self.shape[2])

        def follows(found):
            """Likelihood of what follows each block, given its last state."""
            ahead = self.chain.into(0).back(found[1][0, n:])
            return np.concatenate([_unit(ahead), nothing[:n]])

        with np.errstate(all="ignore"):
            if self.n_blocks > 1:
                both = self._filtered, self._predicted, self.chain
                found = _agreeing(
                    lambda after: _step_back(*both, after), follows, nothing
                )
            if found is None:
                predicted = self._join(self._predicted)
                both = self.filtered, predicted, self.chain
                return _step_back(*both, nothing[:n])
        return self._join(found[0]), self._join(found[1])

    def _cut(self, values) -> np.ndarray:
        """Blocks of slices side by side: (length, n_blocks * n, n_states)."""
        length = -(-len(values) // self.n_blocks)
        # Slices behind the end say nothing.
        cut = np.ones((self.n_blocks * length, *values.shape[1:]))
        cut[: len(values)] = values
        cut = cut.reshape(self.n_blocks, length, *values.shape[1:])
        return cut.swapaxes(0, 1).reshape(length, -1, values.shape[2])

    def _join(self, values) -> np.ndarray:
        """Undo `_cut`."""
        if self.n_blocks == 1:
            return values
        length, n_slices, n = len(values), *self.shape[:2]
        values = values.reshape(length, self.n_blocks, n, *values.shape[2:])
        values = values.swapaxes(0, 1)
        return values.reshape(length * self.n_blocks, *values.shape[2:])[:n_slices]


def _agreeing(run, messages, guess):
    """Result of the blocks, given the messages that they pass; None if unknown.

    ``run(guess)`` is the result given some messages, ``messages(result)`` are those
    that it makes.
    """
    for _ in range(MAX_RUNS):
        found = run(guess)
        last, guess = guess, messages(found)
        if (np.abs(guess - last) <= AGREED * guess).all():
            return found
    return None


def _n_blocks(n_slices: int, n: int, n_rows: int) -> int:
    """Number of blocks; 1 = no blocks."""
    if n * n_rows > BLOCK_CELLS:
        return 1
    return max(n_slices // BLOCK_SLICES, 1)


def _joint_likelihood(evidence: Evidence, rows: slice) -> np.ndarray:
    """Scaled likelihood of all joint states in all slices, (n_slices, n, n_states)."""
    n_slices = evidence.index[0].shape[1]
    cards = [likelihood.shape[1] for likelihood in evidence.likelihood]
    joint = np.ones((n_slices * (rows.stop - rows.start), prod(cards)))
    factor = np.empty_like(joint)
    # Products of whole rows are quicker than those of short axes.
    for likelihood, index, place in zip(
        evidence.likelihood, evidence.index, _places(cards), strict=True
    ):
        own = index[rows].T.ravel()
        if len(own) < 2 * len(likelihood):
            likelihood.take(own, 0).take(place, 1, factor, mode="clip")
        else:
            likelihood.take(place, 1).take(own, 0, factor, mode="clip")
        joint *= factor
    return joint.reshape(n_slices, -1, joint.shape[1])


def _places(cards) -> tuple[np.ndarray, ...]:
    """State of each latent in all joint states."""
    return np.unravel_index(np.arange(prod(cards)), cards)


def _filter(start, chain: Chain, likelihood):
    """Filtered and predicted states up to a factor, and what they were scaled by.

    Slices in between are as small as the next that is scaled, at the least, since no
    likelihood is above 1. The last slice is scaled.
    """
    filtered, predicted = np.empty((2, *likelihood.shape))
    totals = []
    predicted[0] = start
    last, state = len(likelihood) - 1, start
    for t, (joint, before, now) in enumerate(
        zip(likelihood, predicted, filtered, strict=True)
    ):
        if t:
            chain.into(t).forward(state, out=before)
        state = np.multiply(joint, before, out=now)
        if t % SCALED == SCALED - 1 or t == last:
            totals.append(state @ np.ones(state.shape[1]))
            state /= totals[-1][:, None]
    return filtered, predicted, np.array(totals)


def _step_back(filtered, predicted, chain: Chain, after):
    """Smoothed states, and their ratio to those predicted.

    after: likelihood of what follows given the last state
    """
    smoothed, ratio = np.empty((2, *filtered.shape))
    smoothed[-1] = _unit(filtered[-1] * after)
    # A state that is not predicted at all has no share afterwards either.
    predicted = np.maximum(predicted, 1e-300)
    for t in range(len(filtered) - 1, -1, -1):
        np.divide(smoothed[t], predicted[t], out=ratio[t])
        if t:
            chain.into(t).back(ratio[t], out=smoothed[t - 1])
            smoothed[t - 1] *= filtered[t - 1]
    return smoothed, ratio


def _unit(values) -> np.ndarray:
    """Rows that sum to 1."""
    return values / values.sum(axis=1, keepdims=True)


def _flat(values) -> np.ndarray:
    return values.reshape(-1, values.shape[-1])


def _marginalize(joint, cards, states, rows) -> None:
    """Write the states of each latent in all slices."""
    if len(cards) == 1:
        states[0][rows] = joint.swapaxes(0, 1)
        return
    # One product with indicators is faster than sums over short axes.
    indicators = np.concatenate(
        [np.eye(card)[own] for card, own in zip(cards, _places(cards), strict=True)],
        axis=1,
    )
    found = (_flat(joint) @ indicators).reshape(*joint.shape[:2], -1).swapaxes(0, 1)
    parts = np.split(found, np.cumsum(cards)[:-1], axis=2)
    for state, part in zip(states, parts, strict=True):
        state[rows] = part


def _chunks(n: int, row_elements: int) -> list[slice]:
    """Slices of rows whose temporary arrays stay small."""
    size = max(1, CHUNK_ELEMENTS // max(1, row_elements))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]
