"""All rows, one bit per value, in blocks that may lie on other machines.

A structure search asks for counts that nobody can plan, so the rows must stay
somewhere. Blocks of packed rows count for themselves and counts add up, so that it does
not matter where the blocks are or how the rows were split: the sums are the same.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from joblib import Parallel, delayed

from .counts import CountedMoments, RowSource
from .moments import count_weighted, off_probability
from .packed import PackedRows
from .patterns import Patterns
from .statistics import Plan, Statistics

__all__ = [
    "BlockMoments",
    "Blocks",
    "LocalBlocks",
    "collapse",
    "most_rows",
    "open_blocks",
]

# Distinct rows that the search may hold as they are, 64 MB as bool, and limits.
KEPT_VALUES = 2**26
KEPT_ROWS = 2**16, 2**20

# Small blocks are joined up to this many rows.
BLOCK_ROWS = 2**17


def most_rows(n_features: int) -> int:
    """Distinct rows up to which a search sees all of them."""
    return int(np.clip(KEPT_VALUES // max(1, n_features), *KEPT_ROWS))


# What blocks do, as plain functions that travel to where the blocks are.


def count_off(block: PackedRows, sets) -> np.ndarray:
    """Weight of the rows in which all of each set are off."""
    return count_weighted(block.off, sets, block.weights)


def count_known(block: PackedRows, sets) -> np.ndarray:
    """Weight of the rows in which all of each set are known."""
    if block.known is None:
        return np.full(len(sets), block.total)
    return count_weighted(block.known, sets, block.weights)


def count_plan(block: PackedRows, plan: Plan) -> Statistics:
    """Statistics of the moment learner."""
    return Statistics.of(block, plan)


def collapse(block: PackedRows, most: int) -> PackedRows | None:
    """Distinct rows of a block; None if they are more than `most`."""
    patterns = block.patterns()
    return PackedRows.of_patterns(patterns) if len(patterns.weights) <= most else None


def merge_collapsed(blocks, most: int) -> PackedRows | None:
    """Distinct rows of several collapsed blocks; None if they are too many."""
    if any(block is None for block in blocks):
        return None
    patterns = Patterns.merge([block.unpack() for block in blocks])
    return PackedRows.of_patterns(patterns) if len(patterns.weights) <= most else None


def take(block: PackedRows, positions) -> PackedRows:
    """Rows at positions on the axis of summed weights, with the number of hits."""
    if block.weights is None:
        rows = np.minimum(positions.astype(np.int64), block.n_rows - 1)
    else:
        ends = np.cumsum(block.weights)
        rows = np.searchsorted(ends, positions, side="right")
        rows = np.minimum(rows, np.flatnonzero(block.weights)[-1])
    rows, hits = np.unique(rows, return_counts=True)
    chosen = block.unpack(rows)
    return PackedRows.of_patterns(chosen._replace(weights=hits.astype(float)))


class Blocks(Protocol):
    """Blocks of packed rows, wherever they are.

    n_features: number of features
    totals: number of rows of each block, or sum of their weights, (n_blocks,)
    has_missing: whether a value is missing somewhere
    """

    n_features: int
    totals: np.ndarray
    has_missing: bool

    def sum(self, function, *arguments):
        """Sum over blocks of ``function(block, *arguments)``."""
        ...

    def distinct(self, most: int) -> PackedRows | None:
        """Distinct rows of all blocks; None if they are more than `most`."""
        ...

    def take(self, positions) -> list[PackedRows]:
        """Rows of each block at the positions that are given for it; see `take`."""
        ...


class LocalBlocks:
    """Blocks in memory; see `Blocks`.

    parts: the blocks
    n_jobs: number of threads that count
    """

    def __init__(self, parts, n_jobs=None):
        self.parts = tuple(parts)
        self.n_jobs = n_jobs
        self.n_features = len(self.parts[0].off)
        self.totals = np.array([part.total for part in self.parts])
        self.has_missing = any(part.known is not None for part in self.parts)

    def append(self, parts) -> LocalBlocks:
        """All rows, then further ones."""
        joined = list(self.parts)
        for part in parts:
            joined.append(part)
            # As in a binary counter, a row is copied a few times only, however small
            # the batches are.
            while (
                len(joined) > 1
                and joined[-2].n_rows <= joined[-1].n_rows
                and joined[-2].n_rows + joined[-1].n_rows <= BLOCK_ROWS
            ):
                last = joined.pop()
                joined[-1] = joined[-1].join(last)
        return LocalBlocks(joined, self.n_jobs)

    def sum(self, function, *arguments):
        """Sum over blocks of ``function(block, *arguments)``."""
        results = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
            delayed(function)(part, *arguments) for part in self.parts
        )
        total = next(results)
        for result in results:
            total = total + result
        return total

    def distinct(self, most: int) -> PackedRows | None:
        """Distinct rows of all blocks; None if they are more than `most`."""
        known = collapse(self.parts[0], most)
        waiting: list[PackedRows] = []
        for part in self.parts[1:]:
            if known is None:
                return None
            waiting.append(part)
            # Merge as many at a time as the result may have.
            if sum(block.n_rows for block in waiting) >= known.n_rows:
                known = merge_collapsed([known, *waiting], most)
                waiting = []
        return merge_collapsed([known, *waiting], most) if waiting else known

    def take(self, positions) -> list[PackedRows]:
        """Rows of each block at the positions that are given for it; see `take`."""
        return [
            take(part, where)
            for part, where in zip(self.parts, positions, strict=True)
            if len(where)
        ]


class BlockMoments:
    """Moments that blocks count when asked; a `RowSource`.

    blocks: the rows
    """

    def __init__(self, blocks: Blocks):
        self.blocks = blocks
        self.n_features = blocks.n_features
        self.n_rows = float(blocks.totals.sum())

    def probability(self, sets) -> np.ndarray:
        """P(all off), from the rows that know the set; see `off_probability`."""
        sets = np.asarray(sets)
        if not len(sets):
            return np.zeros(0)
        return off_probability(self.blocks.sum(count_off, sets), self.known_rows(sets))

    def known_rows(self, sets) -> np.ndarray:
        """Weight of the rows that know all of each set."""
        if not self.blocks.has_missing or not len(sets):
            return np.full(len(sets), self.n_rows)
        return self.blocks.sum(count_known, np.asarray(sets))

    def statistics(self, plan: Plan) -> Statistics:
        """Statistics of the moment learner, of all rows."""
        return self.blocks.sum(count_plan, plan)


def open_blocks(blocks: Blocks, n_jobs=None) -> tuple[RowSource, Patterns]:
    """Moments of all rows, and the rows that likelihood is to see.

    These are all distinct rows, unless there are too many (see `most_rows`): then
    moments are counted where the blocks are, and a sample stands for the rows. It
    consists of one row out of each of many strata of equal size, and depends on the
    order of the rows but not on how they are split into blocks.
    """
    most = most_rows(blocks.n_features)
    table = blocks.distinct(most)
    if table is not None:
        patterns = table.unpack()
        return CountedMoments(patterns, n_jobs), patterns
    total = float(blocks.totals.sum())
    # The same rows for everybody: what is random in a search comes later.
    draws = np.random.RandomState(0).random_sample(most)
    positions = (np.arange(most) + draws) * (total / most)
    starts = np.concatenate([[0.0], np.cumsum(blocks.totals)])
    bounds = np.searchsorted(positions, starts)
    bounds[-1] = most
    taken = blocks.take(
        [
            positions[lo:hi] - start
            for lo, hi, start in zip(bounds[:-1], bounds[1:], starts[:-1], strict=True)
        ]
    )
    return BlockMoments(blocks), Patterns.merge([part.unpack() for part in taken])
