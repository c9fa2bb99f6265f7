"""Which pairs of features occur together more often than by chance, of any number.

A table of 20,000 columns has 200 million pairs, most of which never occur in a row.
Sparse products count those that do, and columns are taken a strip at a time, so that
memory does not grow with the square of the columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse, special

from ..._tables.blocks import Blocks
from .moments import Words, off_probability
from .packed import PackedRows

# Columns whose pairs with all others are counted at a time. A strip of 20,000 columns
# takes 80 MB if all its pairs occur.
STRIP = 512

# Share of ones up to which rows are kept as the places of ones. At this share they take
# twice the memory of bits and a third of the time.
SPARSE = 1 / 32

# Pairs that are kept, the most dependent ones: 200 MB.
MOST_PAIRS = 5_000_000

# Rows that must show a pair, and the least z-score of pairs that are kept at all.
LEAST_COUNT, LEAST_Z = 5.0, 4.0

# Rows that are unpacked at a time, in units of 64.
WORDS_AT_A_TIME = 128


class Singles(NamedTuple):
    """Weight of the rows in which each feature is on, and is known; of all rows."""

    on: np.ndarray
    known: np.ndarray
    total: float

    @classmethod
    def of(cls, rows: PackedRows) -> Singles:
        """Count in a block."""
        words = Words.of(rows)
        features = np.arange(len(rows.off))[:, np.newaxis]
        known = words.count_known(features)
        return cls(known - words.count_off(features), known, rows.total)

    def __add__(self, other) -> Singles:
        return Singles(*(one + two for one, two in zip(self, other, strict=True)))

    @property
    def rate(self) -> np.ndarray:
        """P(on) of each feature."""
        return 1.0 - off_probability(self.known - self.on, self.known)


class Truths(NamedTuple):
    """Truth values of features in rows: the places of the true ones, or bits.

    places: (n_features, n_rows), or None
    words: (n_features, n_words), or None
    weights: of rows or, if there are words, of the rows of each; None is 1 each
    """

    places: sparse.csr_array | None
    words: np.ndarray | None
    weights: np.ndarray | None

    def count_both(self, start: int) -> np.ndarray | sparse.csr_array:
        """Weight of the rows in which both are true, of a strip and what follows it.

        (strip, n_features - start).
        """
        stop = start + STRIP
        if self.places is not None:
            strip = self.places[start:stop].astype(np.float64)
            if self.weights is not None:
                strip.data *= self.weights[strip.indices]
            return strip @ self.places[start:].T
        assert self.words is not None and self.weights is not None
        rest, scales = self.words[start:], self.weights
        if (scales == scales[0]).all():
            # Integers add up faster.
            counts = [_count_bits(word & rest) for word in self.words[start:stop]]
            return scales[0] * np.stack(counts)
        strip = self.words[start:stop]
        return np.stack([np.bitwise_count(word & rest) @ scales for word in strip])


def _count_bits(words) -> np.ndarray:
    return np.bitwise_count(words).sum(axis=1, dtype=np.uint32)


class Together(NamedTuple):
    """Truth values of a block: which features are on, and which are missing, if any."""

    on: Truths
    missing: Truths | None

    @classmethod
    def of(cls, rows: PackedRows) -> Together:
        """Prepare a block."""
        exists = rows._replace(known=None).known_words()
        known = exists if rows.known is None else rows.known
        on = _truths(rows, known & ~rows.off)
        if rows.known is None:
            return cls(on, None)
        return cls(on, _truths(rows, exists & ~known))

    def count_on(self, start) -> np.ndarray | sparse.csr_array:
        """Weight of the rows in which two are on; see `Truths.count_both`."""
        return self.on.count_both(start)

    def count_missing(self, start) -> np.ndarray | sparse.csr_array | None:
        """Weight of the rows in which two are missing, if any value is."""
        return None if self.missing is None else self.missing.count_both(start)


def _truths(rows: PackedRows, words) -> Truths:
    """Truth values in the form that is smaller and faster."""
    n_true = int(np.bitwise_count(words).sum(dtype=np.int64))
    if n_true > SPARSE * len(words) * rows.n_rows:
        # As if true were off: rows of one weight share words.
        sorted_rows = Words.of(PackedRows(rows.n_rows, words, None, rows.weights))
        return Truths(None, sorted_rows.off, sorted_rows.scales)
    feature, row = [], []
    for start in range(0, words.shape[1], WORDS_AT_A_TIME):
        part = np.ascontiguousarray(words[:, start : start + WORDS_AT_A_TIME])
        bits = np.unpackbits(part.view(np.uint8), axis=1, bitorder="little")
        place = np.nonzero(bits)
        feature.append(place[0].astype(np.int32))
        row.append((place[1] + 64 * start).astype(np.int32))
    at = np.concatenate(feature), np.concatenate(row)
    shape = len(words), rows.n_rows
    places = sparse.coo_array((np.ones(n_true, np.float32), at), shape).tocsr()
    return Truths(places, None, rows.weights)


class Links(NamedTuple):
    """Pairs of features that go together, and how surely.

    one, two: features, the smaller first; z: signed root of the deviance
    """

    one: np.ndarray
    two: np.ndarray
    z: np.ndarray

    @classmethod
    def merge(cls, parts) -> Links:
        """Those of several strips, or the strongest of them if they are too many."""
        one, two, z = (np.concatenate(values) for values in zip(*parts, strict=True))
        if len(z) > MOST_PAIRS:
            kept = np.sort(np.argpartition(-z, MOST_PAIRS)[:MOST_PAIRS])
            one, two, z = one[kept], two[kept], z[kept]
        return cls(one, two, z)


def dependence_z(both, one, two, total) -> np.ndarray:
    """z-scores of pairs that are on in `both` rows, given the rows of each.

    The root of the deviance from independence. Unlike the difference in standard
    errors, it tells what chance does where two or three rows are expected, or a
    hundredth of a row.
    """
    both = np.minimum(both, np.minimum(one, two))
    seen = np.stack([both, one - both, two - both, total - one - two + both])
    seen = np.maximum(seen, 0.0)
    rest = total - one, total - two
    chance = np.stack([one * two, one * rest[1], rest[0] * two, rest[0] * rest[1]])
    deviance = 2.0 * special.xlogy(seen, seen * total / np.maximum(chance, 1e-300))
    z = np.sqrt(np.maximum(deviance.sum(axis=0), 0.0))
    return np.where(both * total > one * two, z, 0.0)


def find_links(blocks: Blocks, singles: Singles) -> Links:
    """Pairs that occur together more often than by chance, all strips together."""
    tables = blocks.map(Together.of)
    found = Links(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    for start in range(0, len(singles.on), STRIP):
        both = sparse.coo_array(tables.sum(Together.count_on, start))
        missing = tables.sum(Together.count_missing, start)
        often = both.data >= LEAST_COUNT
        i, j = (place[often].astype(np.int64) for place in both.coords)
        above = i < j
        i, j, count = i[above], j[above], both.data[often][above]
        one, two = i + start, j + start
        total = singles.known[one] + singles.known[two] - singles.total
        if missing is not None:
            total = total + np.asarray(sparse.csr_array(missing)[i, j]).ravel()
        # Values are missing at random, so that rates are the same in these rows.
        rates = singles.rate[one] * total, singles.rate[two] * total
        z = dependence_z(count, *rates, total)
        strong = z >= LEAST_Z
        found = Links.merge([found, Links(one[strong], two[strong], z[strong])])
    return found
