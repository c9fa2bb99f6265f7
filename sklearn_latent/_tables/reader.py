"""Reader of rows: a table, an iterator of batches, or a distributed collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice

from .._core.validation import check_training_weight
from .blocks import Blocks, LocalBlocks
from .suspects import warn_of_suspects


def is_blockwise(X) -> bool:
    """Whether `X` is a collection or an iterator of batches, not a table in memory."""
    return hasattr(X, "__dask_graph__") or isinstance(X, Iterator)


def read_blocks(
    X,
    sample_weight,
    check: Callable,
    check_block: Callable,
    *,
    cut: Callable | None = None,
    n_jobs=None,
) -> Blocks:
    """Blocks of ``(rows, weights)`` of a table, an iterator or a collection.

    ``check(table)`` validates in this process, with the estimator at hand;
    ``check_block(rows)`` validates on a worker and is a plain function.
    ``cut(table)`` gives slices of a table in memory, each a block of its own; blocks
    can then be read once only.
    """
    if hasattr(X, "__dask_graph__"):
        # Dask is optional.
        from .dask_blocks import read_collection

        return read_collection(X, sample_weight, check, check_block)
    if isinstance(X, Iterator):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight must be None when X is an iterator of batches, got an "
                "array. Pass weights to partial_fit, batch by batch."
            )
        # The first batch tells names and number of features, before any work.
        first = [check(batch) for batch in islice(X, 1)]
        if not first:
            raise ValueError("X must hold at least one batch of rows, got none.")
        tables = chain(first, map(check, X))
        return LocalBlocks(
            (block for table in tables for block in _cut(table, None, cut)), n_jobs
        )
    given, X = X, check(X)
    weights = check_training_weight(sample_weight, X.shape[0])
    counted = X if weights is None or weights.all() else X[weights > 0]
    warn_of_suspects(given, counted)
    blocks = _cut(X, weights, cut)
    return LocalBlocks(blocks if cut else list(blocks), n_jobs)


def look_at_rows(X, look: Callable, merge: Callable):
    """What a function says of the blocks of a collection, merged, before any checks."""
    # Dask is optional.
    from .dask_blocks import look_at_collection

    return look_at_collection(X, look, merge)


def _cut(X, weights, cut):
    """Blocks of a table in memory."""
    if cut is None:
        yield X, weights
        return
    for rows in cut(X):
        yield X[rows], None if weights is None else weights[rows]
