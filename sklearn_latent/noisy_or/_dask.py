"""Statistics of Dask collections, block by block on their own workers."""

from __future__ import annotations

import dask
import numpy as np
from scipy import sparse

from .._dask import add_present, split_collection, tree_sum
from ._statistics.packed import PackedRows
from ._statistics.rows import collapse, merge_collapsed, take

__all__ = ["DaskBlocks", "pack_collection", "read_blocks"]


def read_blocks(learner, X, sample_weight, *, reset):
    """Plan, and count the blocks of a Dask array or data frame; nothing is gathered.

    sample_weight (n_samples,).
    """
    blocks, weights = _split(learner, X, sample_weight, reset=reset)
    plan = learner._make_plan() if reset else learner._plan
    count = dask.delayed(_count_block, pure=False)
    shared = dask.delayed(plan)
    parts = [
        count(learner.binarize, block, shared, weight)
        for block, weight in zip(blocks, weights, strict=True)
    ]
    statistics = tree_sum(parts, add_present).compute()
    if statistics is None:
        raise ValueError("X must have at least one row of positive weight, got none.")
    return statistics, plan


def pack_collection(learner, X, sample_weight) -> DaskBlocks:
    """Pack the blocks of a Dask array or data frame, where they are.

    sample_weight (n_samples,).
    """
    pieces, weights = _split(learner, X, sample_weight, reset=True)
    pack = dask.delayed(_pack_block, pure=False)
    parts = [
        pack(learner.binarize, piece, weight)
        for piece, weight in zip(pieces, weights, strict=True)
    ]
    return DaskBlocks.of(parts, learner.n_features_in_)


class DaskBlocks:
    """Packed rows in the memory of Dask workers; see `Blocks`.

    One bit per value stays with the workers while the learner asks; counts come back,
    and a sample of the rows. Dask packs the blocks of a worker that is lost again.

    parts: the blocks
    n_features: number of features
    totals: number of rows of each block, or sum of their weights, (n_blocks,)
    has_missing: whether a value is missing somewhere
    """

    def __init__(self, parts, n_features, totals, has_missing):
        self.parts = parts
        self.n_features = n_features
        self.totals = totals
        self.has_missing = has_missing

    @classmethod
    def of(cls, parts, n_features) -> DaskBlocks:
        """Compute the blocks, and leave them where they are."""
        parts = dask.persist(*parts)
        describe = dask.delayed(_describe, pure=False)
        described = dask.compute(*(describe(part) for part in parts))
        present = [part for part, (n, _, _) in zip(parts, described, strict=True) if n]
        if not present:
            raise ValueError(
                "X must have at least one row of positive weight, got none."
            )
        totals = np.array([total for n, total, _ in described if n])
        return cls(present, n_features, totals, any(known for _, _, known in described))

    def sum(self, function, *arguments):
        """Sum over blocks of ``function(block, *arguments)``."""
        shared = [dask.delayed(argument) for argument in arguments]
        call = dask.delayed(function, pure=False)
        return tree_sum(
            [call(part, *shared) for part in self.parts], add_present
        ).compute()

    def distinct(self, most: int) -> PackedRows | None:
        """Distinct rows of all blocks; None if they are more than `most`."""
        call = dask.delayed(collapse, pure=False)
        merge = dask.delayed(merge_collapsed, pure=False)
        tables = [call(part, most) for part in self.parts]
        while len(tables) > 1:
            tables = [merge(tables[i : i + 2], most) for i in range(0, len(tables), 2)]
        return tables[0].compute()

    def take(self, positions) -> list[PackedRows]:
        """Rows of each block at the positions that are given for it; see `take`."""
        call = dask.delayed(take, pure=False)
        chosen = [
            call(part, where)
            for part, where in zip(self.parts, positions, strict=True)
            if len(where)
        ]
        return list(dask.compute(*chosen))


def _split(learner, X, sample_weight, *, reset):
    """Delayed blocks of rows and their weights; names and widths are checked."""
    blocks, weights, example = split_collection(X, sample_weight)
    # One row is enough to check and keep the names and number of features.
    learner._check_X(example, reset=reset)
    return blocks, weights


def _read_block(binarize, block, weights):
    """Validated block, or None if no row of it has any weight."""
    from ._mom import NoisyOrMoMLearner

    if block.shape[0] == 0 or (weights is not None and not weights.any()):
        return None
    rows = block if sparse.issparse(block) else np.asarray(block)
    return NoisyOrMoMLearner(binarize=binarize)._check_X(rows, reset=True)


def _count_block(binarize, block, plan, weights):
    """Statistics of one block, or None if it has no rows."""
    from ._mom import NoisyOrMoMLearner

    X = _read_block(binarize, block, weights)
    if X is None:
        return None
    return NoisyOrMoMLearner(binarize=binarize)._count_rows(X, plan, weights)


def _pack_block(binarize, block, weights):
    """Packed rows of one block, or None if it has no rows."""
    X = _read_block(binarize, block, weights)
    return None if X is None else PackedRows.of(X, binarize, weights)


def _describe(block):
    """Rows of a block, their weight, and whether values are missing."""
    if block is None:
        return 0, 0.0, False
    return block.n_rows, block.total, block.known is not None
