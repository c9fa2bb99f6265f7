"""Comparison of models by the likelihood of rows that they have not seen."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
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
from ..exceptions import ModelMisfitWarning, PoorDataWarning
from .models import n_latents, n_numeric, n_parameters, read_models, takes_weights

if TYPE_CHECKING:
    import pandas as pd

# Letters of an error that are shown.
LONGEST_REASON = 200

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
    if not hasattr(cv, "split") and isinstance(cv, Iterable):
        folds = [_read_fold(fold, _num_samples(X)) for fold in cv]
    else:
        folds = list(check_cv(cv).split(X))
    if not folds:
        raise ValueError("cv must give at least one split, got none.")
    return folds


def _read_fold(fold, n_rows: int) -> tuple:
    """A pair of indices of rows that a user gave."""
    pair = fold if isinstance(fold, tuple | list) else ()
    if len(pair) != 2:
        raise ValueError(
            "cv must hold pairs of indices, of training and of test rows, got "
            f"{shown(fold)}."
        )
    return tuple(_read_indices(part, n_rows) for part in pair)


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


@dataclass(frozen=True)
class _Outcome:
    """One fit: log-likelihoods of the test rows, or an error."""

    rows: np.ndarray | None
    seconds: float
    parameters: float
    latents: float
    n_numeric: float
    error: str | None = None


def _fit_and_score(name, model, X, weights, fold, verbose) -> _Outcome:
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
        return _Outcome(None, np.nan, np.nan, np.nan, np.nan, text)
    if verbose:
        print(f"[compare] {name}: {rows.mean():.4g} nats per row ({seconds:.1f} s)")
    return _Outcome(
        rows,
        seconds,
        n_parameters(model),
        n_latents(model),
        n_numeric(model),
    )


# Results


@dataclass(frozen=True)
class _Result:
    """All folds of a model: log-likelihood of each row, NaN if never held out."""

    rows: np.ndarray
    parameters: float
    latents: float
    seconds: float
    n_numeric: float
    error: str | None


def _collect(outcomes: list[_Outcome], folds, n_rows: int) -> _Result:
    """Put the folds together."""
    error = next((o.error for o in outcomes if o.error is not None), None)
    total, count = np.zeros(n_rows), np.zeros(n_rows)
    for outcome, (_, test) in zip(outcomes, folds, strict=True):
        if outcome.rows is not None:
            np.add.at(total, test, outcome.rows)
            np.add.at(count, test, 1.0)
    rows = np.divide(total, count, out=np.full(n_rows, np.nan), where=count > 0)
    if error is not None:
        return _Result(np.full(n_rows, np.nan), np.nan, np.nan, np.nan, np.nan, error)
    sizes = np.mean([[o.parameters, o.latents, o.seconds] for o in outcomes], axis=0)
    parameters, latents, seconds = sizes.tolist()
    numeric = outcomes[0].n_numeric
    return _Result(rows, parameters, latents, seconds, numeric, None)


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
        sizes = (result.parameters, result.latents, result.seconds)
        lines.append((*means[name], *gap, *sizes))
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
