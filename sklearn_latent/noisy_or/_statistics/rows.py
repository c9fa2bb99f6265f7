"""All rows, one bit per value, in blocks that may lie on other machines.

A structure search asks for counts that nobody can plan, so the rows must stay
somewhere. Blocks of packed rows count for themselves and counts add up, so that it does
not matter where the blocks are or how the rows were split: the sums are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..._tables.blocks import Blocks, LocalBlocks
from .moments import Words, off_probability
from .packed import PackedRows
from .patterns import Patterns

# Distinct rows that the search may hold as they are, 64 MB as bool, and limits.
KEPT_VALUES = 2**26
KEPT_ROWS = 2**16, 2**20

# Small blocks are joined up to this many rows.
BLOCK_ROWS = 2**17

# Distinct rows that are counted at a time.
TABLE_ROWS = 2**14


def append_blocks(
    blocks: Iterable[PackedRows], more: Iterable[PackedRows]
) -> list[PackedRows]:
    """All blocks, the small ones joined."""
    joined = list(blocks)
    for block in more:
        joined.append(block)
        # As in a binary counter, a row is copied a few times only, however small the
        # batches are.
        while (
            len(joined) > 1
            and joined[-2].n_rows <= joined[-1].n_rows
            and joined[-2].n_rows + joined[-1].n_rows <= BLOCK_ROWS
        ):
            last = joined.pop()
            joined[-1] = joined[-1].join(last)
    return joined


def _describe(block: PackedRows) -> tuple[int, float, bool]:
    """Number of features, weight of the rows, and whether values are missing."""
    return len(block.off), block.total, block.known is not None


def _take(block: PackedRows, positions) -> PackedRows | None:
    """Rows at positions on the axis of summed weights, with the number of hits."""
    if not len(positions):
        return None
    if block.weights is None:
        rows = np.minimum(positions.astype(np.int64), block.n_rows - 1)
    else:
        ends = np.cumsum(block.weights)
        rows = np.searchsorted(ends, positions, side="right")
        rows = np.minimum(rows, np.flatnonzero(block.weights)[-1])
    rows, hits = np.unique(rows, return_counts=True)
    chosen = block.unpack(rows)
    hits = hits.astype(float)
    squares = None if chosen.squares is None else hits**2
    return PackedRows.of_patterns(chosen._replace(weights=hits, squares=squares))


def _turn(block: PackedRows, polarity) -> PackedRows:
    """A block whose columns of polarity -1 are read as their opposite."""
    return PackedRows.of_patterns(block.unpack().turn(polarity))


class DistinctRows(NamedTuple):
    """Distinct rows of blocks, as bits; None once they are too many.

    most: largest number
    """

    rows: PackedRows | None
    most: int

    @classmethod
    def of(cls, block: PackedRows, most: int) -> DistinctRows:
        """Distinct rows of a block."""
        return cls(None, most)._keep(block.patterns())

    def __add__(self, other) -> DistinctRows:
        if self.rows is None or other.rows is None:
            return DistinctRows(None, self.most)
        return self._keep(self.rows.unpack() + other.rows.unpack())

    def _keep(self, patterns) -> DistinctRows:
        few = len(patterns.weights) <= self.most
        return self._replace(rows=PackedRows.of_patterns(patterns) if few else None)


class BlockMoments:
    """Moments that blocks of packed rows count when asked; a `MomentSource`.

    totals: number of rows of each block, or sum of their weights, (n_blocks,)
    """

    def __init__(self, blocks: Blocks):
        self.blocks = blocks
        described = blocks.gather(_describe)
        if not described:
            raise ValueError(
                "X must have at least one row of positive weight, got none."
            )
        widths, totals, missing = zip(*described, strict=True)
        self.n_features = widths[0]
        self.totals = np.array(totals)
        self.n_rows = float(self.totals.sum())
        self._has_missing = any(missing)

    @classmethod
    def of_patterns(cls, patterns: Patterns, n_jobs=None) -> BlockMoments:
        """Moments of distinct weighted rows, counted by some threads."""
        n_blocks = -(-len(patterns.weights) // TABLE_ROWS)
        parts = np.array_split(np.arange(len(patterns.weights)), n_blocks)
        blocks = [PackedRows.of_patterns(patterns.take(part)) for part in parts]
        # Threads cost more than they save on little work: 20 ms a call.
        return cls(LocalBlocks(blocks, n_jobs if n_blocks > 1 else 1))

    @cached_property
    def _words(self):
        return self.blocks.map(Words.of)

    def probability(self, sets) -> np.ndarray:
        """P(all off), from the rows that know the set; see `off_probability`."""
        sets = np.asarray(sets)
        if not len(sets):
            return np.zeros(0)
        off = self._words.sum(Words.count_off, sets)
        return off_probability(off, self.known_rows(sets))

    def known_rows(self, sets) -> np.ndarray:
        """Weight of the rows that know all of each set."""
        if not self._has_missing or not len(sets):
            return np.full(len(sets), self.n_rows)
        return self._words.sum(Words.count_known, np.asarray(sets))

    def turn(self, polarity) -> BlockMoments:
        """Moments if columns of polarity -1 are read as their opposite."""
        return BlockMoments(self.blocks.map(_turn, polarity))

    def sum(self, function, *arguments):
        """Sum over blocks of ``function(block, *arguments)``."""
        return self.blocks.sum(function, *arguments)


def open_blocks(blocks: Blocks, n_jobs=None) -> tuple[BlockMoments, Patterns]:
    """Moments of all rows, and the rows that likelihood is to see.

    These are all distinct rows, unless there are more than KEPT_VALUES: then
    moments are counted where the blocks are, and a sample stands for the rows. It
    consists of one row out of each of many strata of equal size, and depends on the
    order of the rows but not on how they are split into blocks.
    """
    source = BlockMoments(blocks)
    most = int(np.clip(KEPT_VALUES // max(1, source.n_features), *KEPT_ROWS))
    table = blocks.sum(DistinctRows.of, most).rows
    if table is not None:
        patterns = table.unpack()
        return BlockMoments.of_patterns(patterns, n_jobs), patterns
    return source, sample_rows(source, most)


def sample_rows(source: BlockMoments, most: int) -> Patterns:
    """One row out of each of so many strata of equal size."""
    # The same rows for everybody: what is random in a search comes later.
    draws = np.random.RandomState(0).random_sample(most)
    positions = (np.arange(most) + draws) * (source.n_rows / most)
    starts = np.concatenate([[0.0], np.cumsum(source.totals)])
    bounds = np.searchsorted(positions, starts)
    bounds[-1] = most
    wanted = [
        positions[lo:hi] - start
        for lo, hi, start in zip(bounds[:-1], bounds[1:], starts[:-1], strict=True)
    ]
    taken = source.blocks.gather(_take, each=wanted)
    return Patterns.merge([part.unpack() for part in taken if part is not None])
