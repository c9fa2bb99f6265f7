"""Counts of features that are off together: all that moment learning needs of the data.

The off indicator of each feature is packed into 64-bit words, so that a moment is a
population count of an AND. Statistics of two batches of rows add up with ``+``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from .packed import PackedRows, count_together

# Words at a time, so that they stay in the second-level cache.
WORDS_AT_A_TIME = 128

# Elements of the largest temporary array: 2 MB.
CHUNK_ELEMENTS = 1 << 18


def canonical_sets(sets, n_features: int) -> np.ndarray:
    """Sort sets of features, within and among themselves, and drop repetitions."""
    sets = np.sort(np.asarray(sets, dtype=np.int64), axis=1)
    _, first = np.unique(set_keys(sets, n_features), return_index=True)
    return sets[first]


def set_keys(sets, n_features) -> np.ndarray:
    """One integer per sorted set, in lexicographic order."""
    base, order = n_features + 1, sets.shape[1]
    if base**order >= 2**63:
        raise ValueError(
            f"X must have fewer columns for moments of order {order}: their index "
            f"does not fit 64 bits with {n_features} features."
        )
    keys = np.zeros(len(sets), dtype=np.int64)
    for column in sets.T:
        keys = keys * base + (column + 1)
    return keys


def off_probability(off, total) -> np.ndarray:
    """P(all of a set off) from counts, kept off zero so that ratios stay finite.

    A set that was never seen all off counts as half a row; one that was never observed
    has P = 1/2.
    """
    off = np.where(off > 0, off, 0.5 * np.minimum(total, 1.0))
    return np.divide(off, total, out=np.full(len(off), 0.5), where=total > 0)


def negative_moments(prior, failure, leak, sets) -> np.ndarray:
    """P(all of a set off) of a network, for sets whose members are sorted."""
    moments = np.empty(len(sets))
    step = max(1, CHUNK_ELEMENTS // max(1, len(prior)))
    for start in range(0, len(sets), step):
        chunk = sets[start : start + step]
        fail = np.ones((len(prior), len(chunk)))
        off = np.ones(len(chunk))
        for k in range(chunk.shape[1]):
            # A feature that is named twice counts once.
            new = chunk[:, k] != (chunk[:, k - 1] if k else -1)
            fail *= np.where(new, failure[:, chunk[:, k]], 1.0)
            off *= np.where(new, 1.0 - leak[chunk[:, k]], 1.0)
        influence = 1.0 - prior[:, np.newaxis] * (1.0 - fail)
        moments[start : start + step] = off * influence.prod(axis=0)
    return moments


def weight_bits(weights):
    """Write weights as a sum of scaled bits, so that they too can be counted.

    Weights that are multiples of the smallest one (rows repeated) are exact; others
    are exact to 53 bits of the largest.
    """
    unit = weights[weights > 0].min()
    multiples = weights / unit
    if not (multiples == np.rint(multiples)).all() or multiples.max() >= 2**32:
        unit = 2.0 ** (np.floor(np.log2(weights.max())) - 52)
        multiples = np.rint(weights / unit)
    multiples = multiples.astype(np.int64)
    for bit in range(int(multiples.max()).bit_length()):
        rows = (multiples >> bit) & 1 == 1
        if rows.any():
            yield unit * 2.0**bit, rows


class Words(NamedTuple):
    """Packed rows in an order in which all rows of a word have one weight.

    off: which features are off, (n_features, n_words); known: None if all are
    scales: weight of the rows of each word, (n_words,); total: of all rows
    """

    off: np.ndarray
    known: np.ndarray | None
    scales: np.ndarray
    total: float

    @classmethod
    def of(cls, rows: PackedRows) -> Words:
        """Sort rows by weight."""
        if rows.weights is None:
            return cls(rows.off, rows.known, np.ones(rows.off.shape[1]), rows.total)
        # A weight is a sum of powers of two, and a row takes part once for each: never
        # more rows than the table had if they are distinct rows.
        table = rows.unpack()
        bits = list(weight_bits(rows.weights))
        parts = [PackedRows.of_patterns(table.take(chosen)) for _, chosen in bits]
        off, known = np.hstack([part.off for part in parts]), None
        if rows.known is not None:
            known = np.hstack([part.known_words() for part in parts])
        widths = [part.off.shape[1] for part in parts]
        scales = np.repeat([scale for scale, _ in bits], widths)
        return cls(off, known, scales, rows.total)

    def count_off(self, sets) -> np.ndarray:
        """Weight of the rows in which all of each set are off."""
        return self._count(self.off, sets)

    def count_known(self, sets) -> np.ndarray:
        """Weight of the rows in which all of each set are known."""
        if self.known is None:
            return np.full(len(sets), self.total)
        return self._count(self.known, sets)

    def _count(self, words, sets):
        """Count sets of which the smaller ones come first, with -1 before members."""
        counts = np.zeros(len(sets))
        sizes = (sets >= 0).sum(axis=1)
        for start in range(0, words.shape[1], WORDS_AT_A_TIME):
            block = slice(start, start + WORDS_AT_A_TIME)
            part, scales = np.ascontiguousarray(words[:, block]), self.scales[block]
            for size in range(1, sets.shape[1] + 1):
                lo, hi = np.searchsorted(sizes, [size, size + 1])
                members = sets[lo:hi, sets.shape[1] - size :]
                counts[lo:hi] += count_together(part, members, scales)
        return counts


@dataclass(frozen=True)
class NegativeMoments:
    """Weighted counts of rows in which all features of a set are off.

    sets: canonical sets of features, see `canonical_sets`, (n_sets, order)
    off: weight of the rows in which the whole set is off, (n_sets,)
    total: weight of the rows in which the whole set is observed, (n_sets,)
    n_features: number of features
    """

    sets: np.ndarray
    off: np.ndarray
    total: np.ndarray
    n_features: int

    @classmethod
    def of(cls, rows: PackedRows, sets) -> NegativeMoments:
        """Count in binary rows."""
        words = Words.of(rows)
        off, total = words.count_off(sets), words.count_known(sets)
        return cls(sets, off, total, len(rows.off))

    def restrict(self, features) -> NegativeMoments:
        """Moments of sets within some features, which are renumbered in order."""
        position = np.full(self.n_features + 1, -2)
        position[features] = np.arange(len(features))
        position[-1] = -1
        sets = position[self.sets]
        inside = (sets > -2).all(axis=1)
        return NegativeMoments(
            sets[inside], self.off[inside], self.total[inside], len(features)
        )

    def __add__(self, other: NegativeMoments) -> NegativeMoments:
        if not np.array_equal(self.sets, other.sets):
            raise ValueError("Only moments of the same sets of features can be added.")
        return NegativeMoments(
            self.sets, self.off + other.off, self.total + other.total, self.n_features
        )

    @cached_property
    def _sorted_keys(self):
        return set_keys(self.sets, self.n_features)

    def index(self, sets) -> np.ndarray:
        """Positions of sets, in any order of their members, with -1 for no member."""
        sets = np.sort(np.asarray(sets), axis=-1)
        keys = set_keys(sets.reshape(-1, sets.shape[-1]), self.n_features)
        found = np.searchsorted(self._sorted_keys, keys)
        found = np.minimum(found, len(self._sorted_keys) - 1)
        if not np.array_equal(self._sorted_keys[found], keys):
            raise ValueError("Some of these sets of features were not counted.")
        return found.reshape(sets.shape[:-1])

    @cached_property
    def probability(self) -> np.ndarray:
        """P(all of the set off), see `off_probability`."""
        return off_probability(self.off, self.total)

    @property
    def varies(self) -> np.ndarray:
        """Whether each feature is on in some rows and off in others, (n_features,)."""
        single = np.full((self.n_features, self.sets.shape[1]), -1)
        single[:, -1] = np.arange(self.n_features)
        place = self.index(single)
        return (self.off[place] > 0) & (self.off[place] < self.total[place])


class MomentSource(Protocol):
    """What a structure search needs of the data, or of a known network.

    It asks for sets that nobody can plan; `n_rows` may be a sum of weights.
    """

    n_features: int
    n_rows: float

    def probability(self, sets) -> np.ndarray:
        """P(all off) of sets of equal size, shape (n_sets, size)."""
        ...

    def known_rows(self, sets) -> np.ndarray:
        """Weight of the rows that know all of each set."""
        ...


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
        # Without leaks, the moments of the known latents are just their influence.
        none = np.zeros(self.n_features)
        return negative_moments(self._prior, self._failure, none, np.sort(sets, axis=1))

    def probability(self, sets) -> np.ndarray:
        """P(all off) without the known latents: equation 3 of Jernite et al. (2013)."""
        return self.source.probability(sets) / self.influence(sets)
