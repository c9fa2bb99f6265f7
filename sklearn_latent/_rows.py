"""The one reader of rows: a table, a stream of tables, or a collection elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ._blocks import Blocks, LocalBlocks
from ._validation import check_sample_weight

__all__ = ["is_blockwise", "read_blocks"]


def is_blockwise(X) -> bool:
    """Whether `X` is not one table in memory, but a collection or a stream of them."""
    return hasattr(X, "__dask_graph__") or isinstance(X, Iterator)


def read_blocks(
    X, sample_weight, check: Callable, check_block: Callable, *, n_jobs=None
) -> Blocks:
    """Blocks of ``(rows, weights)`` of one table, a stream of tables or a collection.

    ``check(table)`` validates in this process and knows the estimator;
    ``check_block(rows)`` validates rows that are elsewhere, by a plain function.
    """
    if hasattr(X, "__dask_graph__"):
        # Dask is optional.
        from ._dask import read_collection

        return read_collection(X, sample_weight, check, check_block)
    if isinstance(X, Iterator):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight must be None when X is an iterator of batches, got an "
                "array. Pass weights to partial_fit, batch by batch."
            )
        return LocalBlocks(((check(batch), None) for batch in X), n_jobs)
    X = check(X)
    return LocalBlocks([(X, check_sample_weight(sample_weight, X.shape[0]))], n_jobs)
