"""What a parameter does to the structure and to the likelihood of rows held out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.utils.validation import check_is_fitted

from .._validation import check_choice, check_jobs, check_numbers, shown
from ._ink import PALETTE, check_axes, check_matplotlib
from ._panels import new_axes, split_axes

__all__ = ["ThresholdCurveDisplay", "score_and_count"]

# Beyond this, matplotlib fails to choose the limits of an axis.
LARGEST = 1e100

COUNTS = {"n_latents": "latents", "n_edges": "edges"}


def score_and_count(estimator, X, y=None):
    """Score a fitted model, and count what it consists of.

    Made to be the ``scoring`` of scikit-learn's searches, with ``refit="score"``: a
    search that has counted can be drawn by `ThresholdCurveDisplay.from_search` with
    the structure beside the likelihood.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator with ``score`` and ``to_networkx``.

    X : array-like of shape (n_samples, n_features)
        Rows to score.

    y : Ignored
        Present for API consistency.

    Returns
    -------
    scores : dict
        ``score``, the mean log-likelihood of `X`, ``n_latents`` and ``n_edges``. Of a
        model over time, latents of one slice and edges that leave it are counted.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn_latent import QuartetStructureLearner
    >>> from sklearn_latent.datasets import make_noisy_or_images
    >>> from sklearn_latent.plotting import score_and_count
    >>> X = make_noisy_or_images(500, random_state=0).X
    >>> search = GridSearchCV(
    ...     QuartetStructureLearner(refine=False),
    ...     {"quartet_threshold": [0.01, 0.1]},
    ...     scoring=score_and_count,
    ...     refit="score",
    ...     cv=2,
    ... ).fit(X)
    >>> bool(search.cv_results_["mean_test_n_edges"].min() > 0)
    True
    """
    _check_estimator(estimator)
    graph = estimator.to_networkx()
    first = {node: (place or 0) == 0 for node, place in graph.nodes(data="slice")}
    n_latents = sum(
        kind == "latent" and first[node] for node, kind in graph.nodes(data="kind")
    )
    # An edge without direction may be stored in both.
    edges = {
        (parent, child) if data.get("directed", True) else frozenset((parent, child))
        for parent, child, data in graph.edges(data=True)
        if first[parent]
    }
    return {
        "score": float(estimator.score(X)),
        "n_latents": int(n_latents),
        "n_edges": len(edges),
    }


class ThresholdCurveDisplay:
    """Likelihood and structure along the values of one parameter.

    The upper panel shows the mean log-likelihood of rows held out, with one standard
    error over the folds; the value that is best is marked. The panels below show how
    many latents and edges the model has, if that was counted.

    Parameters
    ----------
    param_name : str
        Name of the parameter.

    param_values : sequence of length n_values
        Its values. Positive numbers that span more than a factor of ten are drawn on
        a logarithmic axis, values that are no numbers side by side.

    score : array-like of shape (n_values,)
        Mean log-likelihood of rows held out.

    score_error : array-like of shape (n_values,) or None, default=None
        Its standard error.

    counts : dict of str to array-like of shape (n_values,) or None, default=None
        What to show below, by what to call it.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that hold the panels.

    axes_ : ndarray of matplotlib Axes of shape (1 + len(counts),)
        The panels, the likelihood first.

    figure_ : matplotlib Figure
        Figure of these axes.

    See Also
    --------
    score_and_count : Makes a search count latents and edges.

    Examples
    --------
    >>> from sklearn_latent import QuartetStructureLearner
    >>> from sklearn_latent.datasets import make_noisy_or_images
    >>> from sklearn_latent.plotting import ThresholdCurveDisplay
    >>> X = make_noisy_or_images(500, random_state=0).X
    >>> display = ThresholdCurveDisplay.from_estimator(
    ...     QuartetStructureLearner(refine=False),
    ...     X,
    ...     param_name="quartet_threshold",
    ...     param_range=[0.003, 0.01, 0.1],
    ...     cv=2,
    ... )
    >>> len(display.axes_)
    3
    """

    def __init__(
        self, param_name, param_values, score, *, score_error=None, counts=None
    ):
        self.param_name = param_name
        self.param_values = param_values
        self.score = score
        self.score_error = score_error
        self.counts = counts

    @classmethod
    def from_estimator(
        cls, estimator, X, *, param_name, param_range, cv=None, n_jobs=None, ax=None
    ):
        """Fit an estimator with every value, by cross-validation, and draw.

        Parameters
        ----------
        estimator : estimator
            Estimator with ``score`` and ``to_networkx``; it is cloned and not changed.

        X : array-like of shape (n_samples, n_features)
            Data.

        param_name : str
            Name of the parameter to change.

        param_range : sequence
            Its values.

        cv : int, splitter or None, default=None
            Folds, as in :func:`sklearn.model_selection.cross_validate`.

        n_jobs : int or None, default=None
            Number of folds to fit at the same time.

        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ThresholdCurveDisplay
            The drawn display.
        """
        _check_estimator(estimator, "get_params")
        check_choice("param_name", param_name, sorted(estimator.get_params()))
        check_jobs(n_jobs)
        values = list(param_range) if isinstance(param_range, Iterable) else []
        if not values:
            raise ValueError(
                f"param_range must hold at least one value, got {shown(param_range)}."
            )
        results = [
            cross_validate(
                clone(estimator).set_params(**{param_name: value}),
                X,
                scoring=score_and_count,
                cv=cv,
                n_jobs=n_jobs,
                error_score="raise",
            )
            for value in values
        ]
        folds = np.array([result["test_score"] for result in results])
        display = cls(
            param_name,
            values,
            folds.mean(axis=1),
            score_error=_standard_error(folds.std(axis=1), folds.shape[1]),
            counts={
                name: np.array([result[f"test_{key}"].mean() for result in results])
                for key, name in COUNTS.items()
            },
        )
        return display.plot(ax=ax)

    @classmethod
    def from_search(cls, search, *, param_name=None, ax=None):
        """Draw what a search has found.

        Parameters
        ----------
        search : GridSearchCV or another search of scikit-learn
            Fitted search. Latents and edges are shown if its ``scoring`` was
            `score_and_count`.

        param_name : str or None, default=None
            Parameter to show; of the other parameters that were searched, the best
            are taken at each of its values. None: the only one searched.

        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ThresholdCurveDisplay
            The drawn display.
        """
        if not hasattr(search, "get_params") or not hasattr(search, "refit"):
            raise TypeError(
                "search must be a fitted search such as GridSearchCV, got an instance "
                f"of {type(search).__name__}."
            )
        check_is_fitted(search, "cv_results_")
        results = search.cv_results_
        searched = sorted({name for params in results["params"] for name in params})
        if param_name is None and len(searched) == 1:
            param_name = searched[0]
        check_choice("param_name", param_name, searched)
        metric = search.refit if isinstance(search.refit, str) else "score"
        score = np.asarray(results[f"mean_test_{metric}"])
        values, best = _best_by_value(
            [params.get(param_name) for params in results["params"]], score
        )
        n_folds = getattr(search, "n_splits_", 1)
        display = cls(
            param_name,
            values,
            score[best],
            score_error=_standard_error(results[f"std_test_{metric}"][best], n_folds),
            counts={
                name: results[f"mean_test_{key}"][best]
                for key, name in COUNTS.items()
                if f"mean_test_{key}" in results
            },
        )
        return display.plot(ax=ax)

    def plot(self, ax=None):
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        self : ThresholdCurveDisplay
            With the drawing in ``ax_``, ``axes_`` and ``figure_``.
        """
        check_matplotlib("ThresholdCurveDisplay")
        check_axes("ax", ax)
        score, error, counts = self._check()
        n_panels = 1 + len(counts)
        self.ax_ = new_axes(6.4, 1.8 + 1.4 * n_panels) if ax is None else ax
        self.figure_ = self.ax_.figure
        self.axes_ = split_axes(self.ax_, n_panels)[:, 0]
        x = _places(self.param_values)
        # A line between values without an order would mean nothing.
        marks = "o-" if _are_numbers(self.param_values) else "o"

        top = self.axes_[0]
        top.errorbar(x, score, error, fmt=marks, color=PALETTE[0], capsize=2.5)
        top.set_ylabel("held-out log-likelihood\n(nats a row)")
        for panel, (name, count), color in zip(
            self.axes_[1:], counts.items(), PALETTE[1:], strict=False
        ):
            panel.plot(x, count, marks, color=color)
            panel.set_ylabel(name)
            panel.set_ylim(bottom=min(0.0, *count), top=1.1 * max(1.0, *count))
        if np.isfinite(score).any():
            chosen = int(np.nanargmax(score))
            for panel in self.axes_:
                panel.axvline(x[chosen], color="0.6", ls=":", lw=1.2, zorder=0)
            label = f"best: {_write(self.param_values[chosen])}"
            top.set_title(label, fontsize=9, color="0.35")
        self._label_values(x)
        return self

    def _label_values(self, x) -> None:
        """Share one axis of values, written below the last panel."""
        numbers = _are_numbers(self.param_values)
        for panel in self.axes_:
            if not numbers:
                panel.set_xticks(x, [_write(v) for v in self.param_values])
                panel.set_xlim(-0.5, len(x) - 0.5)
            elif _is_wide(x):
                panel.set_xscale("log")
            panel.grid(axis="y", color="0.92")
            panel.spines[["top", "right"]].set_visible(False)
        for panel in self.axes_[:-1]:
            panel.tick_params(axis="x", which="both", labelbottom=False)
        self.axes_[-1].set_xlabel(self.param_name)

    def _check(self):
        """Arrays of one length, in the order of the values."""
        values = self.param_values
        is_row = isinstance(values, Sequence) or getattr(values, "ndim", 0) == 1
        if not is_row or not len(values):
            raise ValueError(
                f"param_values must hold at least one value, got {shown(values)}."
            )
        if not isinstance(self.counts, dict | None):
            raise ValueError(f"counts must be a dictionary, got {shown(self.counts)}.")
        score = self._per_value("score", self.score)
        error = self.score_error
        if error is not None:
            error = self._per_value("score_error", error)
            if (error < 0).any():
                raise ValueError(
                    "score_error must be non-negative, got a minimum of "
                    f"{np.nanmin(error):g}."
                )
        counts = self.counts or {}
        return score, error, {n: self._per_value(n, a) for n, a in counts.items()}

    def _per_value(self, name, array) -> np.ndarray:
        """One number per value; those that no axis can show are missing."""
        array = check_numbers(name, array)
        if array.shape != (len(self.param_values),):
            raise ValueError(
                f"{name} must have one number per value, shape "
                f"({len(self.param_values)},), got shape {array.shape}."
            )
        return np.where(np.abs(array) <= LARGEST, array, np.nan)


def _check_estimator(estimator, *more) -> None:
    """Refuse what cannot be scored and counted."""
    for method in ("score", "to_networkx", *more):
        if not hasattr(estimator, method):
            raise TypeError(
                f"estimator must have a method {method}, got an instance of "
                f"{type(estimator).__name__}."
            )


def _standard_error(deviation, n_folds):
    """Standard error of a mean over folds, from their standard deviation."""
    return np.asarray(deviation) / np.sqrt(max(n_folds - 1, 1))


def _best_by_value(values, score):
    """Distinct values, sorted if they are numbers, and the best row of each."""
    best: dict = {}
    for row, value in enumerate(values):
        key = repr(value)
        if key not in best or not score[row] <= score[best[key][1]]:
            best[key] = (value, row)
    rows = list(best.values())
    if _are_numbers([value for value, _ in rows]):
        rows.sort(key=lambda pair: pair[0])
    return [value for value, _ in rows], np.array([row for _, row in rows])


def _are_numbers(values) -> bool:
    """Whether all values are numbers for an axis; True and False are not."""
    return all(
        isinstance(value, Real)
        and not isinstance(value, bool | np.bool_)
        and abs(float(value)) <= LARGEST
        for value in values
    )


def _is_wide(x) -> bool:
    """Whether only a logarithmic axis keeps the values apart."""
    return bool(np.min(x) > 0 and np.max(x) > 10 * np.min(x))


def _places(values) -> np.ndarray:
    """Where values stand on the axis."""
    if _are_numbers(values):
        return np.asarray(values, dtype=float)
    return np.arange(len(values), dtype=float)


def _write(value) -> str:
    """A value for people."""
    return f"{value:.3g}" if _are_numbers([value]) else str(value)
