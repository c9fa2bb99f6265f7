"""Models that can be compared, and what is known of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline

from .._core.validation import shown
from ..baselines import IndependentFeatures, LatentClasses

BASELINES: dict[str, type] = {
    "independence": IndependentFeatures,
    "mixture": LatentClasses,
}

# Densities of all columns.
DENSITIES = (
    BayesianGaussianMixture,
    FactorAnalysis,
    GaussianMixture,
    KernelDensity,
    PCA,
)


def read_models(models) -> dict[str, Any]:
    """Estimators by unique names."""
    if isinstance(models, str) or hasattr(models, "fit"):
        models = [models]
    if isinstance(models, Mapping):
        pairs = list(models.items())
    elif isinstance(models, Iterable):
        pairs = _with_names(list(models))
    else:
        raise TypeError(
            "models must be a dictionary of estimators by name, or a list of "
            f"estimators, got {shown(models)}."
        )
    if not pairs:
        raise ValueError("models must hold at least one model, got none.")
    slices = next((s for _, m in pairs if (s := _slices_of(m)) is not None), None)
    return {str(name): _estimator(name, model, slices) for name, model in pairs}


def _with_names(models: Sequence) -> list[tuple[str, Any]]:
    """Names of classes, numbered where several models have the same."""
    names = [m if isinstance(m, str) else type(m).__name__ for m in models]
    numbered = []
    for place, name in enumerate(names):
        if names.count(name) > 1:
            name = f"{name} {names[: place + 1].count(name)}"
        numbered.append((name, models[place]))
    return numbered


def _slices_of(model) -> int | None:
    """Number of slices of a row, if the model has time."""
    return None if isinstance(model, (str, type)) else getattr(model, "n_slices", None)


def _estimator(name, model, n_slices) -> Any:
    """The estimator itself, or the baseline that a string names."""
    if isinstance(model, str):
        if model not in BASELINES:
            raise ValueError(
                f"models must name baselines, one of {list(BASELINES)}, got "
                f"{shown(model)}."
            )
        baseline = BASELINES[model]()
        if n_slices is not None and "n_slices" in baseline.get_params():
            baseline.set_params(n_slices=n_slices)
        return baseline
    if isinstance(model, type) or not isinstance(model, BaseEstimator):
        raise TypeError(
            f"models must hold estimators or names of baselines, got {shown(model)} "
            f"for {name!r}."
        )
    if not hasattr(last_step(model), "score_samples"):
        raise TypeError(
            "models must have the method score_samples, which returns the "
            f"log-likelihood of each row, got {shown(model)} for {name!r}."
        )
    return model


def last_step(model) -> Any:
    """What a pipeline ends with."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def takes_weights(model) -> bool:
    """Whether `fit` has row weights."""
    return "sample_weight" in inspect.signature(model.fit).parameters


def n_parameters(model) -> float:
    """Number of free parameters, NaN if unknown."""
    model = last_step(model)
    if hasattr(model, "network_"):
        return float(model._n_parameters())
    if hasattr(model, "means_") and hasattr(model, "_n_parameters"):
        return float(model._n_parameters())
    if hasattr(model, "noise_variance_") and hasattr(model, "components_"):
        return _factor_parameters(model)
    return np.nan


def _factor_parameters(model) -> float:
    """Free parameters of factor analysis and probabilistic PCA, up to rotations."""
    k, p = model.components_.shape
    noise = np.size(model.noise_variance_)
    return float(p + p * k - k * (k - 1) // 2 + noise)


def n_latents(model) -> float:
    """Number of latents, factors or components, NaN if there are none."""
    model = last_step(model)
    for name in ("n_latents_", "n_components_", "n_components"):
        found = getattr(model, name, None)
        if found is not None and not isinstance(found, str):
            return float(found)
    return np.nan


def n_numeric(model) -> float:
    """Number of features with densities; the others have probabilities.

    NaN if it is not known.
    """
    model = last_step(model)
    network: Any = getattr(model, "network_", None)
    if hasattr(network, "failure"):
        return 0.0
    if hasattr(network, "emissions"):
        return float(sum(emission.is_numeric for emission in network.emissions))
    if hasattr(network, "noise_variance"):
        kinds = [margin.name for margin in network.margins or ()]
        # Some of their values have probabilities.
        return float(model.n_features_in_ - kinds.count("atoms"))
    if isinstance(model, DENSITIES):
        return float(model.n_features_in_)
    return np.nan
