"""Statistics of Dask collections, block by block on their own workers."""

from __future__ import annotations

import dask
import numpy as np

from .._base import check_sample_weight

__all__ = ["read_blocks"]


def read_blocks(learner, X, sample_weight, *, reset):
    """Plan, and count the blocks of a Dask array or data frame; nothing is gathered.

    Parameters
    ----------
    learner : NoisyOrMoMLearner

    X : dask array or dask data frame

    sample_weight : None or array-like of shape (n_samples,)
        Only with a Dask array whose numbers of rows are known.

    reset : bool
        Whether this is the first data that the learner sees.

    Returns
    -------
    statistics : Statistics

    plan : Plan
    """
    is_frame = hasattr(X, "columns")
    if is_frame:
        blocks = X.to_delayed()
        example = X.partitions[0].head(1, npartitions=1)
    else:
        X = X.rechunk({1: -1})
        blocks = X.to_delayed().ravel()
        example = np.zeros((1, X.shape[1]))
    # One row is enough to check and keep the names and number of features.
    learner._check_X(example, reset=reset)
    plan = learner._make_plan() if reset else learner._plan
    weights = _split_weights(X, sample_weight, len(blocks), is_frame)
    count = dask.delayed(_count_block, pure=False)
    shared_plan = dask.delayed(plan)
    parts = [
        count(learner.binarize, block, shared_plan, weight)
        for block, weight in zip(blocks, weights, strict=True)
    ]
    add = dask.delayed(_add, pure=False)
    # Add in pairs, so that no worker holds more than a few statistics at a time.
    while len(parts) > 1:
        parts = [add(parts[i : i + 2]) for i in range(0, len(parts), 2)]
    statistics = parts[0].compute()
    if statistics is None:
        raise ValueError("X must have at least one row of positive weight, got none.")
    return statistics, plan


def _split_weights(X, sample_weight, n_blocks, is_frame):
    if sample_weight is None:
        return [None] * n_blocks
    if is_frame:
        raise ValueError(
            "sample_weight must be None when X is a Dask data frame, because the "
            "sizes of its partitions are not known; got an array. Use a Dask array."
        )
    if hasattr(sample_weight, "compute"):
        sample_weight = sample_weight.compute()
    weights = np.asarray(check_sample_weight(sample_weight, X.shape[0]))
    return np.split(weights, np.cumsum(X.chunks[0])[:-1])


def _count_block(binarize, block, plan, weights):
    """Statistics of one block, or None if it has no rows."""
    from ._mom import NoisyOrMoMLearner

    if len(block) == 0 or (weights is not None and not weights.any()):
        return None
    learner = NoisyOrMoMLearner(binarize=binarize)
    X = learner._check_X(np.asarray(block), reset=True)
    return learner._count_rows(X, plan, weights)


def _add(parts):
    present = [part for part in parts if part is not None]
    return sum(present[1:], present[0]) if present else None
