"""Blocks of rows in memory or elsewhere: apply a function to each, then add up.

Statistics add up over blocks, so an algorithm that only needs sums does not depend on
where the rows are. Another engine is a subclass of `Blocks` in its own file, as in
`dask_blocks`, and a line in `read_blocks`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import chain, islice
from operator import add
from typing import Any

from joblib import Parallel, delayed

from .._core.validation import check_training_weight
from .suspects import warn_of_suspects


def add_present(parts):
    """Sum of the parts that are not None, or None."""
    present = [part for part in parts if part is not None]
    return reduce(add, present) if present else None


class Blocks(ABC):
    """Blocks of rows, or of results. Functions are sent to the blocks.

    They are called as ``function(block, *shared)`` and must be importable from a
    module, because an engine may send them to other machines.
    """

    @abstractmethod
    def map(self, function: Callable, *shared) -> Blocks:
        """Blocks that hold the results, where they are; None drops a block."""

    @abstractmethod
    def gather(self, function: Callable, *shared, each: Iterable | None = None) -> list:
        """Results of all blocks, in order; `each`: one more argument per block."""

    @abstractmethod
    def sum(self, function: Callable, *shared) -> Any:
        """Sum of the results that are not None, in order and in pairs, or None."""


class LocalBlocks(Blocks):
    """Blocks in memory; an iterator of blocks is read once, one block at a time.

    parts: the blocks
    n_jobs: number of threads, through joblib
    """

    def __init__(self, parts: Iterable, n_jobs=None):
        self.parts = parts
        self.n_jobs = n_jobs

    def _results(self, function, shared, each=None) -> Iterable:
        if each is None and isinstance(self.parts, list) and len(self.parts) == 1:
            # joblib takes as long as a short step of EM.
            return [function(self.parts[0], *shared)]
        if each is None:
            calls = (delayed(function)(part, *shared) for part in self.parts)
        else:
            pairs = zip(self.parts, each, strict=True)
            calls = (delayed(function)(part, *shared, own) for part, own in pairs)
        run = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        return run(calls)

    def map(self, function, *shared) -> LocalBlocks:
        """Blocks that hold the results; None drops a block."""
        results = self._results(function, shared)
        return LocalBlocks([r for r in results if r is not None], self.n_jobs)

    def gather(self, function, *shared, each=None) -> list:
        """Results of all blocks, in order."""
        return list(self._results(function, shared, each))

    def sum(self, function, *shared) -> Any:
        """Sum of the results, as they come."""
        # As in a binary counter: a few results wait, each the sum of twice as many.
        waiting: list[tuple[int, Any]] = []
        for result in self._results(function, shared):
            size = 1
            while waiting and waiting[-1][0] == size:
                result = add_present([waiting.pop()[1], result])
                size *= 2
            waiting.append((size, result))
        while len(waiting) > 1:
            _, last = waiting.pop()
            waiting[-1] = (0, add_present([waiting[-1][1], last]))
        return waiting[0][1] if waiting else None


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


def _cut(X, weights, cut):
    """Blocks of a table in memory."""
    if cut is None:
        yield X, weights
        return
    for rows in cut(X):
        yield X[rows], None if weights is None else weights[rows]
