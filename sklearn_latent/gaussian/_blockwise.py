"""Linear networks of complete rows that come in blocks: batches, or a Dask collection.

A linear network needs of its data no more than their mean and scatter, and these add
up. To choose a search by held-out rows takes them of two parts: of the rows to learn
from and of those held out. Which is which depends on the values of a row alone, so that
every block can tell by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._progress import Progress, with_callbacks
from .._transaction import all_or_nothing
from .._validation import check_flag, check_sample_weight
from ._missing.structural_em import LearnedNetwork
from ._network import GaussianNetwork
from ._options import SearchOptions
from ._parameters import check_parameters, is_linear, make_options
from ._scores.linear import fit_linear
from ._statistics.statistics import GaussianStatistics
from ._structure_search.search import (
    MAX_CHOICE,
    MIN_HELD_OUT,
    choose_among,
    hold_out,
    search_linear,
)

__all__ = ["BlockwiseFit", "SplitStatistics", "learn_statistics"]


@dataclass(frozen=True, eq=False)
class SplitStatistics:
    """Statistics of the rows to learn from and of those held out; instances add up.

    train, test: of the two parts
    """

    train: GaussianStatistics
    test: GaussianStatistics

    @classmethod
    def of(cls, X, sample_weight=None) -> SplitStatistics:
        """Statistics of complete rows; see `GaussianStatistics.of`."""
        held_out = hold_out(X)
        parts = []
        for rows in (~held_out, held_out):
            weights = None if sample_weight is None else sample_weight[rows]
            if rows.any() and (weights is None or weights.any()):
                parts.append(GaussianStatistics.of(X[rows], weights))
            else:
                n = X.shape[1]
                parts.append(GaussianStatistics(0.0, np.zeros(n), np.zeros((n, n))))
        return cls(parts[0], parts[1])

    def __add__(self, other: SplitStatistics) -> SplitStatistics:
        return SplitStatistics(self.train + other.train, self.test + other.test)

    @property
    def all(self) -> GaussianStatistics:
        """Statistics of all rows."""
        return self.train + self.test


def mean_log_likelihood(
    network: GaussianNetwork, statistics: GaussianStatistics
) -> float:
    """Mean log-likelihood per row of a linear network, from statistics alone."""
    apart = np.eye(network.n_nodes) - network.weights
    mean = statistics.mean @ apart - network.intercept
    variance = np.einsum("ij,ik,kj->j", apart, statistics.covariance, apart)
    noise = network.noise_variance
    terms = np.log(2.0 * np.pi * noise) + (variance + mean**2) / noise
    return float(-0.5 * terms.sum())


def learn_statistics(
    statistics: SplitStatistics, options: SearchOptions
) -> tuple[LearnedNetwork, SearchOptions]:
    """Learn a linear network; as `choose_search` and `learn_network` do from rows."""
    options = _choose_search(statistics, options)
    return _learn(statistics.all, options), options


def _learn(statistics: GaussianStatistics, options) -> LearnedNetwork:
    result, evaluator = search_linear(statistics, options)
    network = GaussianNetwork(
        result.adjacency, *fit_linear(statistics, result.adjacency)
    )
    return LearnedNetwork(
        network,
        result.score,
        result.history,
        evaluator.n_evaluated,
        evaluator.n_considered,
    )


def _choose_search(statistics: SplitStatistics, options) -> SearchOptions:
    """What `choose_search` does, from statistics."""
    if options.search != "auto":
        penalty = 1.0 if options.penalty == "auto" else options.penalty
        return replace(options, penalty=penalty)
    n_features = statistics.train.n_nodes
    n_rows = min(statistics.train.weight, statistics.test.weight)
    if not 3 <= n_features <= MAX_CHOICE or n_rows < MIN_HELD_OUT:
        penalty = "ebic" if options.penalty == "auto" else options.penalty
        return replace(options, search="order", penalty=penalty)

    def score(candidate):
        network = _learn(statistics.train, candidate).network
        return mean_log_likelihood(network, statistics.test)

    return choose_among(options, score)


def _adds_up(estimator) -> bool:
    """Whether sums over rows are all that the estimator needs of the data."""
    if not is_linear(estimator) or estimator.max_latents != 0:
        raise AttributeError(
            "partial_fit needs link='linear', noise='additive' and max_latents=0, "
            f"got link={estimator.link!r}, noise={estimator.noise!r}, "
            f"max_latents={estimator.max_latents!r}."
        )
    return True


class BlockwiseFit:
    """Mixin of `IdealParentGaussianBN`: batches, and Dask collections."""

    # What the estimator has.
    link: Any
    noise: Any
    max_latents: int
    warm_start: bool
    _check_X: Callable
    _input_names: Callable
    _store: Callable
    _statistics: SplitStatistics | None

    @available_if(_adds_up)
    @with_callbacks
    def partial_fit(self, X, y=None, *, sample_weight=None, update=True):
        """Take further rows into account; the same as one `fit` on all together.

        Only for linear links, additive noise, no hidden variables and complete rows,
        of which means and covariances are kept, and no row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data without missing values; also a Dask array or data frame.

        y : Ignored
            Present for API consistency.

        sample_weight : array-like of shape (n_samples,) or None, default=None
            Row weights; a weight of 2 is a row twice.

        update : bool, default=True
            Whether to learn the network now. Pass False for all but the last of many
            batches to save time.

        Returns
        -------
        self : IdealParentGaussianBN
            The estimator, fitted to all rows so far if `update`.
        """
        check_flag("update", update)
        with Progress(self, X=X) as progress, all_or_nothing(self):
            before = self.__dict__.get("_statistics")
            if before is None and hasattr(self, "network_"):
                raise ValueError(
                    "partial_fit must not follow a fit of rows with missing values, "
                    "which do not add up; use a new or cloned estimator."
                )
            statistics = self._read_blocks(X, sample_weight, reset=before is None)
            if before is not None:
                statistics = before + statistics
            if update:
                self._fit_statistics(statistics, progress)
            self._statistics = statistics
        return self

    def _fit_collection(self, X, sample_weight):
        """Fit to a Dask collection."""
        with Progress(self, X=X) as progress, all_or_nothing(self):
            statistics = self._read_blocks(X, sample_weight, reset=True)
            self._fit_statistics(statistics, progress)
            self._statistics = statistics
        return self

    def _statistics_of(self, X, weights) -> SplitStatistics | None:
        """What `partial_fit` goes on from after a fit to rows in memory."""
        adds_up = is_linear(self) and self.max_latents == 0
        complete = adds_up and not np.isnan(X).any()
        return SplitStatistics.of(X, weights) if complete else None

    def _read_blocks(self, X, sample_weight, *, reset) -> SplitStatistics:
        """Validate rows, or Dask blocks of rows, and sum up."""
        check_parameters(self)
        if not is_linear(self) or self.max_latents > 0:
            raise ValueError(
                "link must be 'linear', noise 'additive' and max_latents 0 for batches "
                f"and Dask collections, got link={self.link!r}, noise={self.noise!r}, "
                f"max_latents={self.max_latents!r}."
            )
        if hasattr(X, "__dask_graph__"):
            return _read_collection(self, X, sample_weight, reset=reset)
        X = self._check_X(X, reset=reset)
        return _count_rows(X, check_sample_weight(sample_weight, len(X)))

    def _fit_statistics(self, statistics: SplitStatistics, progress):
        """From statistics to fitted attributes."""
        before = getattr(self, "network_", None) if self.warm_start else None
        options = make_options(self, self._input_names(), before, progress)
        learned, options = learn_statistics(statistics, options)
        found = learned.network
        network = GaussianNetwork(
            found.adjacency,
            found.weights,
            found.intercept,
            found.noise_variance,
            node_names=self._input_names(),
        )
        everything = statistics.all
        cost = 0.5 * np.log(max(everything.weight, 1.0)) * network.n_parameters
        log_likelihood = everything.weight * mean_log_likelihood(network, everything)
        self.bic_ = log_likelihood - cost
        self.score_ = float(learned.score)
        self.search_ = options.search
        self.penalty_ = options.penalty
        self.history_ = learned.history
        self.n_iter_ = max(len(learned.history), 1)
        self.n_evaluated_ = learned.n_evaluated
        self.n_considered_ = learned.n_considered
        self._store(network)
        progress(f"{network!r}, BIC {self.bic_:.8g}")


def _count_rows(X, weights) -> SplitStatistics:
    """Statistics of validated rows, which must be complete."""
    if np.isnan(X).any():
        raise ValueError(
            "X must have no missing values for batches and Dask collections, got NaN; "
            "fit rows in memory instead."
        )
    if weights is not None:
        # Rows without weight are rows that are not there.
        X, weights = X[weights > 0], weights[weights > 0]
    return SplitStatistics.of(X, weights)


def _read_collection(estimator, X, sample_weight, *, reset) -> SplitStatistics:
    """Sum up the blocks of a Dask collection on its workers; nothing is gathered."""
    import dask

    from .._dask import add_present, split_collection, tree_sum

    blocks, weights, example = split_collection(X, sample_weight)
    estimator._check_X(example, reset=reset)
    count = dask.delayed(_count_block, pure=False)
    parts = [
        count(block, weight) for block, weight in zip(blocks, weights, strict=True)
    ]
    statistics = tree_sum(parts, add_present).compute()
    if statistics is None:
        raise ValueError("X must have at least one row of positive weight, got none.")
    return statistics


def _count_block(block, weights):
    """Statistics of one block, or None if it has no rows."""
    from ._estimator import IdealParentGaussianBN

    if block.shape[0] == 0 or (weights is not None and not weights.any()):
        return None
    X = IdealParentGaussianBN()._check_X(np.asarray(block), reset=True)
    return _count_rows(X, weights)
