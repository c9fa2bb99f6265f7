"""Data from a known network, and whether a fit recovered its latents."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from .._core.validation import check_count, shown
from ..exceptions import LatentWarning
from ..gaussian import GaussianNetwork, IdealParentGaussianBN
from ..metrics import match_latents, structural_hamming_distance
from ..mixed import LPCC, LatentDBN, LGLPCCTemporal
from ..noisy_or import NoisyOrNetwork, QuartetStructureLearner

# Correlation from which two latents are the same.
SAME = 0.9

# Latents that a fit may find beyond those that there are.
SPARE_LATENTS = 2


@dataclass(frozen=True)
class Study:
    """What is simulated: data of a network, and a fit to them.

    network: the true model
    estimator: what is fitted, a clone each time
    draw: rows by their number and a seed
    is_recovered: of network, fitted estimator and rows
    """

    network: Any
    estimator: Any
    draw: Callable
    is_recovered: Callable

    def trial(self, n_rows: int, seed: int) -> bool:
        """Whether the latents are recovered from new rows."""
        X = self.draw(n_rows, seed)
        with warnings.catch_warnings():
            # Small samples are poor data: this is what the study is about.
            warnings.simplefilter("ignore", LatentWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = clone(self.estimator).fit(X)
            return bool(self.is_recovered(self.network, model, X))


def plan_study(network, estimator, n_slices, criterion) -> Study:
    """A study of a network, or of what an estimator was fitted to."""
    fitted = network if hasattr(network, "network_") else None
    network = getattr(network, "network_", network)
    family = next((f for f in FAMILIES if isinstance(network, f.network)), None)
    if family is None:
        raise TypeError(
            "network must be a NoisyOrNetwork, GaussianNetwork or LatentDBN, or an "
            f"estimator that was fitted to one, got {shown(network)}."
        )
    if estimator is not None and not isinstance(estimator, BaseEstimator):
        raise TypeError(f"estimator must be an estimator, got {shown(estimator)}.")
    if not network.n_latents:
        raise ValueError("network must have at least one latent, got none.")
    if fitted is not None:
        draw: Callable = _Redraw(fitted)
        default = clone(fitted)
    else:
        n_slices = _check_slices(network, estimator, n_slices)
        draw = _Draw(network, n_slices)
        default = None if estimator is not None else family.default(network, n_slices)
    estimator = default if estimator is None else estimator
    return Study(network, estimator, draw, criterion or family.is_recovered)


def _check_slices(network, estimator, n_slices) -> int:
    """Number of slices of the sequences of a network."""
    check_count("n_slices", n_slices, 1, optional=True)
    if not isinstance(network, LatentDBN):
        if n_slices not in (None, 1):
            raise ValueError(
                f"n_slices must be None for a network without time, got {n_slices}."
            )
        return 1
    found = n_slices or getattr(estimator, "n_slices", None)
    if found is None and network.has_time:
        raise ValueError(
            "n_slices must be the number of slices of a sequence for a network that "
            "has time, got None."
        )
    return found or 1


@dataclass(frozen=True)
class _Draw:
    """Rows of a network."""

    network: Any
    n_slices: int

    def __call__(self, n_rows: int, seed: int):
        if not isinstance(self.network, LatentDBN):
            return self.network.sample(n_rows, random_state=seed)[0]
        values = self.network.sample(n_rows, self.n_slices, random_state=seed)[0]
        return values.reshape(n_rows, -1)


@dataclass(frozen=True)
class _Redraw:
    """Rows of a fitted estimator, like those that it was fitted to."""

    estimator: Any

    def __call__(self, n_rows: int, seed: int):
        X = self.estimator.sample(n_rows, random_state=seed)[0]
        names = getattr(self.estimator, "feature_names_in_", None)
        if names is not None:
            import pandas as pd

            return pd.DataFrame(X, columns=names).infer_objects()
        n_slices = getattr(self.estimator, "n_slices_", 1)
        return X if n_slices == 1 else X.reshape(n_rows, n_slices, -1)


# Criteria


def has_same_causes(network, model, X) -> bool:
    """As many latents, each with about the same failures (see `match_latents`)."""
    learned = model.network_
    if not _as_many(network, model) or not _same_reading(network, learned):
        return False
    found = match_latents(network.failure, learned.failure, learned.prior)[1]
    return bool(found.all())


def has_same_values(network, model, X) -> bool:
    """As many latents, each correlated with what the true network infers."""
    if not _as_many(network, model):
        return False
    true, learned = network.posterior(X), model.network_.posterior(X)
    n = network.n_latents
    if (np.std(true, axis=0) == 0).any() or (np.std(learned, axis=0) == 0).any():
        return False
    close = np.abs(np.corrcoef(true.T, learned.T)[:n, n:])
    return bool((close[linear_sum_assignment(-close)] >= SAME).all())


def has_same_measurements(network, model, X) -> bool:
    """As many latents, each measured by the same features."""
    if not _as_many(network, model):
        return False
    structures = (network.graph.structure,), (model.structure_,)
    return structural_hamming_distance(*structures)[1] == 0


def _as_many(network, model) -> bool:
    return model.n_latents_ == network.n_latents


def _same_reading(network, learned) -> bool:
    """Whether the same columns are read as their opposite."""
    return np.array_equal(network.polarity, learned.polarity)


# What is fitted, and when latents are recovered, by family


def _default_noisy_or(network, n_slices):
    return QuartetStructureLearner(random_state=0)


def _default_gaussian(network, n_slices):
    n = network.n_features
    bipartite = not (network.adjacency[:, n:].any() or network.adjacency[:n].any())
    return IdealParentGaussianBN(
        link=network.link,
        noise=network.noise,
        max_latents=network.n_latents + SPARE_LATENTS,
        bipartite=bipartite,
    )


def _default_temporal(network, n_slices):
    # Codes are categories, however many there are.
    options = {"max_categories": max(10, *network.n_categories), "random_state": 0}
    return LPCC(**options) if n_slices == 1 else LGLPCCTemporal(n_slices, **options)


@dataclass(frozen=True)
class _Family:
    network: type
    default: Callable
    is_recovered: Callable


FAMILIES = (
    _Family(NoisyOrNetwork, _default_noisy_or, has_same_causes),
    _Family(GaussianNetwork, _default_gaussian, has_same_values),
    _Family(LatentDBN, _default_temporal, has_same_measurements),
)
