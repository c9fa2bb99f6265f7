"""Comparison of models by the likelihood of rows that they have not seen."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Mapping, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.model_selection import KFold, check_cv
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._core.validation import (
    check_jobs,
    check_numbers,
    check_sample_weight,
    effective_weights,
    shown,
)
from .._core.warn import warn
from ..baselines import IndependentFeatures, LatentClasses
from ..exceptions import ModelMisfitWarning, PoorDataWarning

if TYPE_CHECKING:
    import pandas as pd

# Letters of an error that are shown.
LONGEST_REASON = 200

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

# Columns of the result.
COLUMNS = (
    "log_likelihood",
    "stderr",
    "difference",
    "difference_stderr",
    "parameters",
    "latents",
    "fit_time",
)


def compare(
    models: Any,
    X: Any,
    cv: Any = 5,
    *,
    reference: str | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> pd.DataFrame:
    """Compare models by the log-likelihood of held-out rows.

    All models see the same folds, so that their log-likelihoods can be compared row by
    row: differences of models have a much smaller standard error than the models
    themselves.

    Parameters
    ----------
    models : dict, list or estimator
        Estimators by name, or a list of them: estimators of this library, density
        models of scikit-learn with ``score_samples`` (`GaussianMixture`,
        `FactorAnalysis`, `PCA`, `KernelDensity`), and names of baselines, which stand
        for themselves: "independence" (:class:`~baselines.IndependentFeatures`) and
        "mixture" (:class:`~baselines.LatentClasses`). Baselines take the number of
        slices from the first other model that has one. A pipeline counts with the
        density of its last step, of the *transformed* columns; that compares with other
        models only if the steps before change no units.
    X : array-like or data frame of shape (n_samples, n_features)
        Data. A row is a sequence if models have slices.
    cv : int, splitter or iterable of (train, test), default=5
        Folds; an integer is a number of folds of shuffled rows, always the same. Rows
        in several test sets count with the mean of their log-likelihoods, rows in none
        do not count.
    reference : str or None, default=None
        Name of the model that others are compared with. If None, the best.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Row weights, for fits and means. Models whose ``fit`` takes none are fitted
        without, with a warning.
    n_jobs : int or None, default=None
        Number of fits at the same time, through joblib.
    verbose : int, default=0
        Whether to report progress.

    Returns
    -------
    table : pandas.DataFrame
        One row per model, the best first:

        - ``log_likelihood``: mean held-out log-likelihood per row, in nats, and its
          standard error over rows, ``stderr``;
        - ``difference``: the same minus that of `reference`, and its standard error,
          ``difference_stderr``. Folds share training rows, so that standard errors are
          somewhat too small;
        - ``parameters``: mean number of free parameters, where known;
        - ``latents``: mean number of latents (or components), where there are any;
        - ``fit_time``: mean time of a fit, in seconds.

        A model that fails in any fold gets a row of NaN, and a warning with its reason.
        A log-likelihood of -inf means that a held-out row is impossible under a model.

    Warns
    -----
    ModelMisfitWarning
        If some models score probabilities of categories and others densities: these do
        not compare.

    See Also
    --------
    rows_needed : How many rows recover the latents of a network.

    Examples
    --------
    >>> from sklearn_latent import QuartetStructureLearner, compare
    >>> from sklearn_latent.datasets import make_noisy_or
    >>> structure = [[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]]
    >>> X = make_noisy_or(structure, 500, failure=0.2, random_state=0).X
    >>> table = compare([QuartetStructureLearner(), "independence", "mixture"], X)
    >>> table.index[0]
    'QuartetStructureLearner'
    >>> bool(table.loc["independence", "difference"] < 0)
    True
    """
    check_jobs(n_jobs)
    named = read_models(models)
    if reference is not None and not (
        isinstance(reference, str) and reference in named
    ):
        raise ValueError(
            f"reference must be the name of a model, one of {list(named)}, got "
            f"{shown(reference)}."
        )
    weights = effective_weights(check_sample_weight(sample_weight, _num_samples(X)))
    folds = _read_folds(cv, X)
    if weights is not None:
        _warn_of_unweighted(named)
    jobs = [(name, fold) for name in named for fold in folds]
    trial = delayed(_fit_and_score)
    outcomes = Parallel(n_jobs)(
        trial(name, named[name], X, weights, fold, verbose) for name, fold in jobs
    )
    results = {
        name: _collect(
            [o for (own, _), o in zip(jobs, outcomes, strict=True) if own == name],
            folds,
            _num_samples(X),
        )
        for name in named
    }
    _warn_of_failures(results)
    _warn_of_units(named, results)
    return _table(results, weights, reference)


def _read_folds(cv, X) -> list[tuple]:
    """Indices of training and test rows."""
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        cv = KFold(int(cv), shuffle=True, random_state=0)
    if isinstance(cv, str | bytes):
        raise ValueError(f"cv must be a number of folds or a splitter, got {cv!r}.")
    given = isinstance(cv, Iterable) and not hasattr(cv, "split")
    folds = []
    for fold in cv if given else check_cv(cv).split(X):
        if not isinstance(fold, tuple | list) or len(fold) != 2:
            raise ValueError(
                "cv must hold pairs of indices, of training and of test rows, got "
                f"{shown(fold)}."
            )
        folds.append(tuple(_read_indices(part, _num_samples(X)) for part in fold))
    if not folds:
        raise ValueError("cv must give at least one split, got none.")
    return folds


def _read_indices(part, n_rows: int) -> np.ndarray:
    """Indices of rows, or truth values for all of them."""
    rows = check_numbers("cv", part, None)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if (
        rows.ndim != 1
        or not len(rows)
        or rows.dtype.kind not in "iu"
        or not (-n_rows <= rows.min() and rows.max() < n_rows)
    ):
        raise ValueError(
            f"cv must hold indices of the {n_rows} rows of X, got {shown(part)}."
        )
    return rows


# Fits


class _Result(NamedTuple):
    """A fit, or all folds of a model; log-likelihoods of rows, NaN if never held out.

    sizes: numbers of parameters and of latents, and seconds
    """

    rows: np.ndarray
    sizes: tuple[float, ...] = (np.nan,) * 3
    n_numeric: float = np.nan
    error: str | None = None


def _fit_and_score(name, model, X, weights, fold, verbose) -> _Result:
    """Fit a clone to the training rows and score the test rows."""
    train, test = fold
    start = time.perf_counter()
    try:
        model = clone(model)
        options = {}
        if weights is not None and takes_weights(model):
            options["sample_weight"] = weights[train]
        model.fit(_safe_indexing(X, train), **options)
        seconds = time.perf_counter() - start
        rows = np.asarray(model.score_samples(_safe_indexing(X, test)), dtype=float)
        if np.isnan(rows).any():
            raise ValueError("score_samples returned NaN.")
    except Exception as error:  # a model that fails must not end the others
        text = shorten(f"{type(error).__name__}: {error}", LONGEST_REASON)
        return _Result(np.full(len(test), np.nan), error=text)
    if verbose:
        print(f"[compare] {name}: {rows.mean():.4g} nats per row ({seconds:.1f} s)")
    sizes = n_parameters(model), n_latents(model), seconds
    return _Result(rows, sizes, n_numeric(model))


def _collect(parts: list[_Result], folds, n_rows: int) -> _Result:
    """Put the folds of a model together."""
    for part in parts:
        if part.error is not None:
            return _Result(np.full(n_rows, np.nan), error=part.error)
    total, count = np.zeros(n_rows), np.zeros(n_rows)
    for part, (_, test) in zip(parts, folds, strict=True):
        np.add.at(total, test, part.rows)
        np.add.at(count, test, 1.0)
    rows = np.divide(total, count, out=np.full(n_rows, np.nan), where=count > 0)
    sizes = tuple(np.mean([part.sizes for part in parts], axis=0).tolist())
    return _Result(rows, sizes, parts[0].n_numeric)


def _table(results: dict[str, _Result], weights, reference):
    """The table that users see, the best model first."""
    import pandas as pd

    means = {name: _mean(result.rows, weights) for name, result in results.items()}
    worked = [name for name, result in results.items() if result.error is None]
    if reference is None and worked:
        reference = max(worked, key=lambda name: means[name][0])
    lines = []
    for name, result in results.items():
        gap = (np.nan, np.nan)
        if result.error is None and reference in worked:
            gap = _difference(result.rows, results[reference].rows, weights)
        lines.append((*means[name], *gap, *result.sizes))
    table = pd.DataFrame(lines, index=list(results), columns=list(COLUMNS))
    table.index.name = "model"
    order = table["log_likelihood"].sort_values(ascending=False, kind="stable").index
    return table.loc[order]


def _difference(rows, others, weights) -> tuple[float, float]:
    """Mean difference of two models by row, and its standard error."""
    if rows is others:
        return 0.0, 0.0
    with np.errstate(invalid="ignore"):
        gap = rows - others
    # Both say that the row is impossible: there they do not differ.
    gap[np.isneginf(rows) & np.isneginf(others)] = 0.0
    return _mean(gap, weights)


def _mean(rows, weights) -> tuple[float, float]:
    """Weighted mean over the rows that were held out, and its standard error."""
    kept = ~np.isnan(rows)
    if weights is not None:
        kept &= weights > 0  # a row that does not count may be impossible
    rows = rows[kept]
    if not len(rows):
        return np.nan, np.nan
    if np.isinf(rows).any():
        ends = np.unique(rows[np.isinf(rows)])
        return float(ends[0]) if len(ends) == 1 else np.nan, np.nan
    shares = np.ones(len(rows)) if weights is None else weights[kept]
    mean = np.average(rows, weights=shares)
    # A weight of 2 is a row twice.
    total = shares.sum()
    if total <= 1:
        return float(mean), np.nan
    variance = shares @ (rows - mean) ** 2 / (total - 1)
    return float(mean), float(np.sqrt(variance / total))


# Warnings


def _warn_of_unweighted(models: dict[str, Any]) -> None:
    """Name models whose fits ignore weights."""
    names = [name for name, model in models.items() if not takes_weights(model)]
    if names:
        warn(
            f"sample_weight has no effect on fits of {', '.join(names)}, which take "
            "none; it counts in their means.",
            PoorDataWarning,
        )


def _warn_of_failures(results: dict[str, _Result]) -> None:
    """Name models that failed, with the first reason."""
    for name, result in results.items():
        if result.error is not None:
            warn(f"{name} failed and is not compared. {result.error}", PoorDataWarning)


def _warn_of_units(models: dict[str, Any], results: dict[str, _Result]) -> None:
    """Say which log-likelihoods do not compare."""
    kinds: dict[float, list[str]] = {}
    for name, result in results.items():
        if not np.isnan(result.n_numeric):
            kinds.setdefault(result.n_numeric, []).append(name)
    if len(kinds) > 1:
        groups = [f"{', '.join(kinds[n])} of {n:g}" for n in sorted(kinds)]
        warn(
            "Log-likelihoods of densities and of probabilities do not compare. Number "
            "of features that models read as numbers with a density, and not as "
            f"categories: {'; '.join(groups)}.",
            ModelMisfitWarning,
        )
    changed = [
        name
        for name, model in models.items()
        if isinstance(model, Pipeline)
        and any(step not in (None, "passthrough") for _, step in model.steps[:-1])
    ]
    if changed and len(changed) < len(models):
        warn(
            f"{', '.join(changed)} scores the columns that its last step sees, not "
            "those of X. Scaled columns have other densities, which do not compare "
            "with the other models.",
            ModelMisfitWarning,
        )


# Models, and what is known of them


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
    found = (getattr(m, "n_slices", None) for _, m in pairs if not isinstance(m, type))
    slices = next((s for s in found if s is not None), None)
    return {str(name): _estimator(name, model, slices) for name, model in pairs}


def _with_names(models: Sequence) -> list[tuple[str, Any]]:
    """Names of classes, numbered where several models have the same."""
    names = [m if isinstance(m, str) else type(m).__name__ for m in models]
    return [
        (f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name, m)
        for i, (name, m) in enumerate(zip(names, models, strict=True))
    ]


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
    if hasattr(model, "_n_parameters"):
        return float(model._n_parameters())
    if not hasattr(model, "noise_variance_"):
        return np.nan
    # Factor analysis and probabilistic PCA, up to rotations.
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
