"""How often sets of features are off together, counted when asked.

A structure search does not know beforehand which sets it will need, so the rows stay in
memory, one bit per value, and are counted on demand. The search itself sees only an
object with ``probability`` and ``n_rows``, so that it runs as well on the exact moments
of a known network.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from joblib import Parallel, delayed

from .moments import negative_moments, off_probability, weight_bits
from .packed import PackedRows, count_together, pack_columns
from .patterns import Patterns

# Words of 64 rows that are handled at a time, so that they stay in the cache.
WORDS_AT_A_TIME = 160

# Sets times words that one thread counts in less time than a second one takes to start.
LITTLE_WORK = 1 << 24


class MomentSource(Protocol):
    """What the search needs to know of the data.

    n_features: number of features
    n_rows: number of rows, or sum of their weights
    """

    n_features: int
    n_rows: float

    def probability(self, sets) -> np.ndarray:
        """P(all off) of sets of equal size, shape (n_sets, size)."""
        ...

    def known_rows(self, sets) -> np.ndarray:
        """Weight of the rows that know all of each set."""
        ...


class RowSource(MomentSource, Protocol):
    """Moments of rows, which can be counted in other ways too."""

    def sum(self, function, *arguments):
        """Sum over blocks of rows of ``function(block, *arguments)``."""
        ...


class CountedMoments:
    """Moments of distinct weighted rows.

    patterns: the rows
    n_jobs: number of threads that count
    """

    def __init__(self, patterns: Patterns, n_jobs=None):
        self.n_features = patterns.on.shape[1]
        self.n_rows = float(patterns.weights.sum())
        self._n_jobs = n_jobs
        self._patterns = patterns
        # A weight is a sum of powers of two, and a row takes part once for each: never
        # more rows than the table had, and each word has one weight.
        off, known, scales = [], [], []
        for scale, chosen in weight_bits(patterns.weights):
            rows = ~patterns.on[chosen]
            if patterns.observed is not None:
                rows &= patterns.observed[chosen]
                known.append(pack_columns(patterns.observed[chosen]))
            off.append(pack_columns(rows))
            scales.append(np.full(off[-1].shape[1], scale))
        self._scales = np.concatenate(scales)
        self._off = np.concatenate(off, axis=1)
        self._known = np.concatenate(known, axis=1) if known else None

    def probability(self, sets) -> np.ndarray:
        """P(all off), from the rows that know the set; see `off_probability`."""
        sets = np.asarray(sets)
        return off_probability(self._count(self._off, sets), self.known_rows(sets))

    def known_rows(self, sets) -> np.ndarray:
        """Weight of the rows that know all of each set."""
        if self._known is None:
            return np.full(len(sets), self.n_rows)
        return self._count(self._known, np.asarray(sets))

    def sum(self, function, *arguments):
        """Apply a function to all rows as one block."""
        return function(PackedRows.of_patterns(self._patterns), *arguments)

    def _count(self, words, sets):
        return count_sets(words, self._scales, sets, self._n_jobs)


def count_sets(words, scales, sets, n_jobs=None) -> np.ndarray:
    """Weight of the rows in which all of a set hold.

    words (n_features, n_words), scales (n_words,), sets (n_sets, size) -> counts
    (n_sets,).
    """
    if not len(sets):
        return np.zeros(0)
    blocks = [
        slice(start, start + WORDS_AT_A_TIME)
        for start in range(0, words.shape[1], WORDS_AT_A_TIME)
    ]
    # Threads cost more than they save on little work: 20 ms a call.
    jobs = n_jobs if len(sets) * words.shape[1] > LITTLE_WORK else 1
    parts = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(
        delayed(_count_block)(words[:, block], scales[block], sets) for block in blocks
    )
    return sum(parts)


def _count_block(words, scales, sets):
    """Count in a block of words."""
    words = np.ascontiguousarray(words)
    if (scales == scales[0]).all():
        return scales[0] * count_together(words, sets)
    return count_together(words, sets, scales)


class Residual:
    """Moments of what is left of a network once some latents are subtracted.

    source: moments of the whole network
    prior: priors of the latents to subtract, (n_latents,)
    failure: their failures, 1.0 where there is no edge, (n_latents, n_features)
    """

    def __init__(self, source: MomentSource, prior, failure):
        self.source = source
        self.n_features = source.n_features
        self.n_rows = source.n_rows
        self._prior, self._failure = np.asarray(prior), np.asarray(failure)

    def influence(self, sets) -> np.ndarray:
        """Factor by which the known latents lower P(all off)."""
        if not len(self._prior):
            return np.ones(len(sets))
        # Without leaks, the moments of the known latents are just their influence.
        none = np.zeros(self.n_features)
        return negative_moments(self._prior, self._failure, none, np.sort(sets, axis=1))

    def probability(self, sets) -> np.ndarray:
        """P(all off) without the known latents: equation 3 of Jernite et al. (2013)."""
        return self.source.probability(sets) / self.influence(sets)
