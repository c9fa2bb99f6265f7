"""Blocks of Dask arrays and data frames, on their own workers."""

from __future__ import annotations

import dask
import dask.array
import numpy as np
import pandas as pd

from ._blocks import Blocks
from ._validation import check_sample_weight, shown

# How many results are merged at a time; no worker holds more.
FAN_IN = 2


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
        return DaskBlocks(
            part for part, keep in zip(parts, present, strict=True) if keep
        )

    def gather(self, function, *shared, each=None) -> list:
        """Results of all blocks, in order."""
        return list(dask.compute(*self._results(function, shared, each)))

    def reduce(self, function, merge, *shared):
        """Results merged in pairs."""
        combine = dask.delayed(merge, pure=False)
        parts = self._results(function, shared) or [combine([])]
        while len(parts) > 1:
            parts = [
                combine(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)
            ]
        return parts[0].compute()


def read_collection(X, sample_weight, check, check_block) -> DaskBlocks:
    """Blocks of ``(rows, weights)`` of a collection; see `read_blocks`."""
    # A delayed value has every attribute, its type has not.
    is_frame = hasattr(type(X), "columns")
    if is_frame:
        blocks = list(X.to_delayed())
        example = pd.DataFrame(np.zeros((1, len(X.columns))), columns=X.columns)
    elif isinstance(X, dask.array.Array) and X.ndim == 2:
        if np.isnan(X.shape[1]):
            raise ValueError(
                "X must have a known number of columns, got a Dask array without. "
                "Call X.compute_chunk_sizes() first."
            )
        X = X.rechunk({1: -1})
        blocks = list(X.to_delayed().ravel())
        example = np.zeros((1, X.shape[1]))
    else:
        raise ValueError(
            "X must be a Dask array of two dimensions or a Dask data frame, got "
            f"{shown(X)}."
        )
    weights = _split_weights(X, sample_weight, len(blocks), is_frame)
    # One row is enough to check and keep the names and number of features.
    check(example)
    read = dask.delayed(_read_block, pure=False)
    pairs = zip(blocks, weights, strict=True)
    return DaskBlocks(read(block, own, check_block) for block, own in pairs)


def _read_block(block, weights, check_block):
    """Validated rows and weights, or None if no row has any weight."""
    if block.shape[0] == 0 or (weights is not None and not weights.any()):
        return None
    return check_block(block), weights


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
    weights = np.asarray(check_sample_weight(sample_weight, X.shape[0]))
    return np.split(weights, np.cumsum(X.chunks[0])[:-1])
