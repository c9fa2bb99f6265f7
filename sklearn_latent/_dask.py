"""What the families share to read Dask collections, block by block on their workers."""

from __future__ import annotations

import dask
import numpy as np
import pandas as pd

from ._base import check_sample_weight

__all__ = ["add_present", "split_collection", "tree_sum"]


def tree_sum(parts, add):
    """Combine delayed results in pairs; no worker holds more than a few at a time."""
    combine = dask.delayed(add, pure=False)
    while len(parts) > 1:
        parts = [combine(parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def add_present(parts):
    """Sum of the parts that are not None, or None."""
    present = [part for part in parts if part is not None]
    return sum(present[1:], present[0]) if present else None


def split_collection(X, sample_weight):
    """Delayed blocks of whole rows, their weights, and a row to check names by.

    sample_weight (n_samples,).
    """
    is_frame = hasattr(X, "columns")
    if is_frame:
        blocks = list(X.to_delayed())
        example = pd.DataFrame(np.zeros((1, len(X.columns))), columns=X.columns)
    elif getattr(X, "ndim", None) == 2:
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
            f"{type(X).__name__} with {getattr(X, 'ndim', 'no')} dimension(s)."
        )
    return blocks, _split_weights(X, sample_weight, len(blocks), is_frame), example


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
