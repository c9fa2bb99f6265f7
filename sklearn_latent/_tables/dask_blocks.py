"""Blocks of Dask arrays and data frames, on their own workers."""

from __future__ import annotations

import dask
import dask.array
import numpy as np
import pandas as pd

from .._core.validation import check_training_weight, shown
from .blocks import Blocks, add_present


class DaskBlocks(Blocks):
    """Blocks as delayed values. Dask makes the blocks of a lost worker again.

    parts: the blocks; one that turns out to be None has no rows
    """

    def __init__(self, parts):
        self.parts = list(parts)

    def _results(self, function, shared, each=None) -> list:
        call = dask.delayed(_call, pure=False)
        shared = [dask.delayed(argument) for argument in shared]
        if each is None:
            return [call(function, part, *shared) for part in self.parts]
        pairs = zip(self.parts, each, strict=True)
        return [call(function, part, *shared, own) for part, own in pairs]

    def map(self, function, *shared) -> DaskBlocks:
        """Blocks that hold the results, in the memory of the workers."""
        parts = dask.persist(*self._results(function, shared))
        present = dask.compute(*(dask.delayed(_is_present)(part) for part in parts))
        pairs = zip(parts, present, strict=True)
        return DaskBlocks(part for part, kept in pairs if kept)

    def gather(self, function, *shared, each=None) -> list:
        """Results of all blocks, in order."""
        return list(dask.compute(*self._results(function, shared, each)))

    def sum(self, function, *shared):
        """Sum of the results, added where they are: no worker holds more than two."""
        combine = dask.delayed(add_present, pure=False)
        parts = self._results(function, shared)
        while len(parts) > 1:
            parts = [combine(parts[i : i + 2]) for i in range(0, len(parts), 2)]
        return parts[0].compute() if parts else None


def read_collection(X, sample_weight, check, check_block) -> DaskBlocks:
    """Blocks of ``(rows, weights)`` of a collection; see `read_blocks`."""
    blocks, columns = _open(X)
    is_frame = isinstance(columns, pd.Index)
    weights = _split_weights(X, sample_weight, len(blocks), is_frame)
    # One row is enough to check and keep the names and number of features.
    example = np.zeros((1, X.shape[1]))
    check(pd.DataFrame(example, columns=columns) if is_frame else example)
    read = dask.delayed(_read_block, pure=False)
    pairs = zip(blocks, weights, strict=True)
    return DaskBlocks(read(block, own, columns, check_block) for block, own in pairs)


def look_at_collection(X, look) -> list:
    """Results of a function of the rows of each block, before any checks."""
    blocks, columns = _open(X)
    read = dask.delayed(_read_block, pure=False)
    looked = dask.compute(*(read(block, None, columns, look) for block in blocks))
    return [result[0] for result in looked if result is not None]


def _open(X) -> tuple[list, pd.Index | int]:
    """Blocks of a collection as delayed values; names of its columns, or how many."""
    # A delayed value has every attribute, its type has not.
    if hasattr(type(X), "columns"):
        return list(X.to_delayed()), pd.Index(X.columns)
    if isinstance(X, dask.array.Array) and X.ndim == 2:
        if np.isnan(X.shape[1]):
            raise ValueError(
                "X must have a known number of columns, got a Dask array without. "
                "Call X.compute_chunk_sizes() first."
            )
        return list(X.rechunk({1: -1}).to_delayed().ravel()), X.shape[1]
    raise ValueError(
        "X must be a Dask array of two dimensions or a Dask data frame, got "
        f"{shown(X)}."
    )


def _read_block(block, weights, columns, check_block):
    """Validated rows and weights, or None if no row has any weight."""
    if block.shape[0] == 0 or (weights is not None and not weights.any()):
        return None
    if weights is not None and len(weights) != block.shape[0]:
        raise ValueError(
            "X must have blocks of the sizes that its chunks say, "
            f"{len(weights)} rows, got {block.shape[0]}."
        )
    return check_block(_align(block, columns)), weights


def _align(block, columns):
    """The block with its columns in the order of the collection."""
    if not isinstance(columns, pd.Index):
        if len(block.shape) != 2 or block.shape[1] != columns:
            raise ValueError(
                f"X must have {columns} columns in all blocks, got a block of shape "
                f"{block.shape}."
            )
        return block
    found = pd.Index(block.columns)
    if not found.is_unique or set(found) != set(columns):
        raise ValueError(
            "X must have the same columns in all blocks, in any order, "
            f"{shown(columns.tolist())}, got {shown(found.tolist())} in one of them."
        )
    return block if found.equals(columns) else block[columns.tolist()]


def _call(function, part, *shared):
    return None if part is None else function(part, *shared)


def _is_present(part) -> bool:
    return part is not None


def _split_weights(X, sample_weight, n_blocks, is_frame):
    if sample_weight is None:
        return [None] * n_blocks
    if is_frame:
        raise ValueError(
            "sample_weight must be None when X is a Dask data frame, because the "
            "sizes of its partitions are not known; got an array. Use a Dask array."
        )
    if np.isnan(X.shape[0]):
        raise ValueError(
            "sample_weight must be None when the numbers of rows of the blocks of X "
            "are not known; got an array. Call X.compute_chunk_sizes() first."
        )
    if hasattr(sample_weight, "compute"):
        sample_weight = sample_weight.compute()
    weights = np.asarray(check_training_weight(sample_weight, X.shape[0]))
    return np.split(weights, np.cumsum(X.chunks[0])[:-1])
