"""EM over blocks of sequences, wherever they are: expected counts add up.

Each step sends the network to the blocks, which send back expected counts; no sequence
moves. What to fit, that is latents, edges and categories, is learned from a sample.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._transaction import all_or_nothing
from ._em import _log_prior, _maximize
from ._inference import ChainCounts, ChainData, expectation
from ._model import LatentDBN

__all__ = ["ExpectedCounts", "LocalPanels", "climb_blocks", "fit_collection"]

# Sequences of a Dask collection from which the structure is learned.
MAX_SAMPLE = 20_000
# Pseudo-count of each row of a table, as in `fit_chain`.
SMOOTHING = 0.1


@dataclass(frozen=True)
class ExpectedCounts:
    """Result of the E-step over some sequences; instances add up.

    Attributes
    ----------
    weight : float
        Number of sequences, or sum of their weights.

    log_likelihood : float
        Of all of them together.

    start, transition, emission : list of ndarray
        Expected counts in the shape of the tables.
    """

    weight: float
    log_likelihood: float
    start: list
    transition: list
    emission: list

    @classmethod
    def of(cls, network: LatentDBN, codes, weights=None) -> ExpectedCounts:
        """E-step of some sequences.

        Parameters
        ----------
        network : LatentDBN
            The model.

        codes : ndarray of int of shape (n, n_slices, n_observed)
            Sequences; -1 is missing.

        weights : ndarray of shape (n,) or None, default=None
            Their weights.

        Returns
        -------
        counts : ExpectedCounts
        """
        data = ChainData.of(codes, network.graph.measurement, weights)
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

    Parameters
    ----------
    parts : list of (codes, weights)
        Sequences and their weights, or None.
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
    """EM from a given network, one round of messages per step.

    Parameters
    ----------
    network : LatentDBN
        Where to start.

    panels : Panels
        The sequences.

    max_iter, tol, smoothing, progress
        As in `fit_chain`.

    Returns
    -------
    network : LatentDBN
        The fitted network.

    fitted : dict
        ``log_likelihood_``, ``n_iter_`` and ``converged_``.
    """
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


def fit_collection(estimator, X, sample_weight):
    """Fit an estimator of panels to a Dask array or data frame of sequences.

    Latents, edges, categories and first tables are learned from a sample of at most
    20,000 sequences, which is gathered; then EM runs over all blocks on their workers.

    Parameters
    ----------
    estimator : PanelModel
        With ``fit`` for sequences in memory. All its fitted attributes are set.

    X : dask array of shape (n_sequences, n_slices * n_observed), or dask data frame
        Sequences; NaN is missing.

    sample_weight : array-like of shape (n_sequences,) or None
        Weights of the sequences; only with a Dask array of known size.

    Returns
    -------
    estimator : PanelModel
        The same.
    """
    with all_or_nothing(estimator):
        _fit_collection(estimator, X, sample_weight)
    return estimator


def _fit_collection(estimator, X, sample_weight):
    import dask

    from .._dask import split_collection

    blocks, weights, _ = split_collection(X, sample_weight)
    sizes = np.array(dask.compute(*(dask.delayed(_n_rows)(b) for b in blocks)))
    n_rows = int(sizes.sum())
    if not n_rows:
        raise ValueError("X must have at least one sequence, got none.")
    # One sequence of each of many strata of equal size: it does not matter how the
    # sequences are split into blocks.
    n_sample = min(MAX_SAMPLE, n_rows)
    chosen = (np.arange(n_sample) * n_rows) // n_sample
    starts = np.concatenate([[0], np.cumsum(sizes)])
    take = dask.delayed(_take, pure=False)
    parts = [
        (block, weight, chosen[(chosen >= start) & (chosen < stop)] - start)
        for block, weight, start, stop in zip(
            blocks, weights, starts[:-1], starts[1:], strict=True
        )
        if stop > start
    ]
    sample = _stack(dask.compute(*(take(block, rows) for block, _, rows in parts)))
    sample_weights = None
    if sample_weight is not None:
        sample_weights = np.concatenate([weight[rows] for _, weight, rows in parts])
    estimator.fit(sample, sample_weight=sample_weights)
    if n_rows <= n_sample:
        return
    panels = _DaskPanels(estimator, [(block, weight) for block, weight, _ in parts])
    network, fitted = climb_blocks(
        estimator.network_,
        panels,
        max_iter=estimator.max_iter,
        tol=estimator.tol,
    )
    if not fitted["converged_"]:
        warnings.warn(
            f"EM did not converge in max_iter={estimator.max_iter} steps.",
            ConvergenceWarning,
            stacklevel=4,
        )
    estimator._store(network, estimator._encoder, estimator._imputer, **fitted)


class _DaskPanels:
    """Encoded blocks in the memory of Dask workers; see `Panels`."""

    def __init__(self, estimator, parts):
        import dask

        encode = dask.delayed(_encode, pure=False)
        shared = dask.delayed(estimator)
        self.parts = dask.persist(*(encode(shared, *part) for part in parts))

    def sum(self, network: LatentDBN) -> ExpectedCounts:
        """Expected counts of all blocks."""
        import dask

        from .._dask import add_present, tree_sum

        shared = dask.delayed(network)
        count = dask.delayed(_count, pure=False)
        parts = [count(shared, part) for part in self.parts]
        return tree_sum(parts, add_present).compute()


def _n_rows(block):
    return block.shape[0]


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
