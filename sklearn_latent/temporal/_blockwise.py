"""EM over blocks of sequences, wherever they are: expected counts add up.

Each step sends the network to the blocks, which send back expected counts; no sequence
moves. What to fit, that is latents, edges and categories, is learned from a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from ._em.em import _log_prior, _maximize
from ._inference.inference import ChainCounts, ChainData, expectation
from ._model import LatentDBN

__all__ = ["ExpectedCounts", "LocalPanels", "climb_blocks", "fit_collection"]

# Sequences of a Dask collection from which the structure is learned.
MAX_SAMPLE = 20_000
# Fitted attributes that it takes to encode sequences.
READING = (
    "n_features_in_",
    "feature_names_in_",
    "structure_",
    "network_",
    "_encoder",
)
# Pseudo-count of each row of a table, as in `fit_chain`.
SMOOTHING = 0.1


@dataclass(frozen=True)
class ExpectedCounts:
    """Result of the E-step over some sequences; instances add up.

    weight: number of sequences, or sum of their weights
    log_likelihood: of all of them together
    start, transition, emission: expected counts in the shape of the tables
    """

    weight: float
    log_likelihood: float
    start: list
    transition: list
    emission: list

    @classmethod
    def of(cls, network: LatentDBN, codes, weights=None) -> ExpectedCounts:
        """E-step of some sequences.

        codes (n, n_slices, n_observed), weights (n,).
        """
        data = ChainData.of(codes, network.graph.structure, weights)
        result = expectation(network, data)
        # A sequence without any value has no weight.
        present = data.weights.max(axis=1, initial=0.0)
        counts = result.counts
        return cls(
            float(present.sum()),
            float(present @ result.log_likelihood),
            counts.start,
            counts.transition,
            counts.emission,
        )

    def as_counts(self) -> ChainCounts:
        """The same for the M-step, which needs no joint counts."""
        return ChainCounts(self.start, self.transition, self.emission, [], [], [])

    def __add__(self, other: ExpectedCounts) -> ExpectedCounts:
        return ExpectedCounts(
            self.weight + other.weight,
            self.log_likelihood + other.log_likelihood,
            *(
                [one + two for one, two in zip(mine, yours, strict=True)]
                for mine, yours in (
                    (self.start, other.start),
                    (self.transition, other.transition),
                    (self.emission, other.emission),
                )
            ),
        )


class Panels(Protocol):
    """Blocks of encoded sequences, wherever they are."""

    def sum(self, network: LatentDBN) -> ExpectedCounts:
        """Expected counts of all blocks."""
        ...


class LocalPanels:
    """Blocks in memory; see `Panels`.

    parts: sequences and their weights, or None
    """

    def __init__(self, parts):
        self.parts = list(parts)

    def sum(self, network: LatentDBN) -> ExpectedCounts:
        """Expected counts of all blocks."""
        counts = [ExpectedCounts.of(network, *part) for part in self.parts]
        return sum(counts[1:], counts[0])


def climb_blocks(
    network: LatentDBN,
    panels: Panels,
    *,
    max_iter: int = 200,
    tol: float = 1e-4,
    smoothing: float = SMOOTHING,
    progress=None,
) -> tuple[LatentDBN, dict[str, Any]]:
    """EM from a given network, one round of messages per step."""
    before, converged, stopped, n_iter = -np.inf, False, False, 0
    while True:
        counts = panels.sum(network)
        after = counts.log_likelihood + _log_prior(network, smoothing)
        converged = after - before <= tol * counts.weight
        if converged or stopped or n_iter >= max_iter:
            break
        network, before = _maximize(network, counts.as_counts(), smoothing), after
        n_iter += 1
        if progress is not None:
            stopped = bool(progress(f"log-likelihood {counts.log_likelihood:.6g}"))
    return network, {
        "log_likelihood_": counts.log_likelihood,
        "n_iter_": n_iter,
        "converged_": bool(converged),
    }


def fit_collection(estimator, X, sample_weight, progress) -> None:
    """Fit an estimator of panels to a Dask array or data frame of sequences.

    Latents, edges, categories and first tables are learned from a sample of at most
    20,000 sequences, which is gathered; then EM runs over all blocks on their workers.

    X (n_sequences, n_slices * n_observed), sample_weight (n_sequences,).
    """
    import dask

    from .._dask import split_collection

    blocks, weights, _ = split_collection(X, sample_weight)
    shapes = dask.compute(*(dask.delayed(_describe)(block) for block in blocks))
    _check_blocks(X, shapes)
    ends = np.cumsum([n_rows for n_rows, _ in shapes])
    if not ends[-1]:
        raise ValueError("X must have at least one sequence, got none.")
    rows = None if sample_weight is None else np.flatnonzero(np.concatenate(weights))
    n_rows = int(ends[-1]) if rows is None else len(rows)
    chosen = _choose(n_rows, estimator.random_state)
    chosen = chosen if rows is None else rows[chosen]
    parts = [
        (block, weight, mine - end + n)
        for block, weight, end, (n, _), mine in zip(
            blocks,
            weights,
            ends,
            shapes,
            np.split(chosen, np.searchsorted(chosen, ends[:-1])),
            strict=True,
        )
        if n
    ]
    take = dask.delayed(_take, pure=False)
    sample = _stack(dask.compute(*(take(block, mine) for block, _, mine in parts)))
    sample_weights = None
    if sample_weight is not None:
        sample_weights = np.concatenate([weight[mine] for _, weight, mine in parts])
    estimator._learn(sample, sample_weights, progress)
    if n_rows == len(chosen):
        return
    panels = _DaskPanels(estimator, [(block, weight) for block, weight, _ in parts])
    network, fitted = climb_blocks(
        estimator.network_,
        panels,
        max_iter=estimator.max_iter,
        tol=estimator.tol,
        progress=progress,
    )
    estimator._store(network, estimator._encoder, estimator._imputer, **fitted)


def _check_blocks(X, shapes):
    """Refuse blocks that are not what the collection says they are."""
    for place, (n_rows, columns) in enumerate(shapes):
        if hasattr(X, "columns"):
            if columns != list(X.columns):
                raise ValueError(
                    f"X must have the same columns in all partitions, {list(X.columns)}"
                    f", got {columns} in partition {place}."
                )
            continue
        said = X.chunks[0][place], X.shape[1]
        if said[1] != columns or (said[0] != n_rows and not np.isnan(said[0])):
            raise ValueError(
                f"X must have blocks of the shapes that its chunks say, {said} for "
                f"block {place}, got {n_rows, columns}."
            )


def _choose(n_rows: int, random_state) -> np.ndarray:
    """Draw one row from each of many ranges of about equal size; all rows if few.

    It does not matter how the rows are split into blocks, and rows that take turns in
    some way are chosen alike, as those at regular distances would not be.
    """
    if n_rows <= MAX_SAMPLE:
        return np.arange(n_rows)
    edges = np.arange(MAX_SAMPLE + 1) * n_rows // MAX_SAMPLE
    return check_random_state(random_state).randint(edges[:-1], edges[1:])


class _DaskPanels:
    """Encoded blocks in the memory of Dask workers; see `Panels`."""

    def __init__(self, estimator, parts):
        import dask

        encode = dask.delayed(_encode, pure=False)
        shared = dask.delayed(_reader(estimator))
        self.parts = dask.persist(*(encode(shared, *part) for part in parts))

    def sum(self, network: LatentDBN) -> ExpectedCounts:
        """Expected counts of all blocks."""
        import dask

        from .._dask import add_present, tree_sum

        shared = dask.delayed(network)
        count = dask.delayed(_count, pure=False)
        parts = [count(shared, part) for part in self.parts]
        return tree_sum(parts, add_present).compute()


def _reader(estimator):
    """Copy what encodes sequences: neither those of the sample nor callbacks."""
    reader = type(estimator)(**estimator.get_params(deep=False))
    for name in READING:
        if name in vars(estimator):
            setattr(reader, name, vars(estimator)[name])
    return reader


def _describe(block):
    """Number of rows, and the columns or their number."""
    columns = getattr(block, "columns", None)
    return block.shape[0], block.shape[1] if columns is None else list(columns)


def _take(block, rows):
    return block.iloc[rows] if hasattr(block, "iloc") else np.asarray(block)[rows]


def _stack(parts):
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts)
    return np.concatenate(parts)


def _encode(estimator, block, weights):
    """Codes of the sequences of a block, and their weights."""
    codes = estimator._encode(block)
    if weights is not None:
        codes, weights = codes[weights > 0], weights[weights > 0]
    return codes, weights


def _count(network, part):
    codes, weights = part
    return ExpectedCounts.of(network, codes, weights) if len(codes) else None
