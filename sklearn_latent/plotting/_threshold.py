"""Display of structure and held-out likelihood along the values of a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted

from .._core.text import shorten
from .._core.validation import check_choice, check_jobs, check_numbers, shown
from ._style import (
    PALETTE,
    check_has,
    check_plot,
    new_axes,
    size_in_points,
    spelled,
    split_axes,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# With larger numbers matplotlib fails to choose the limits of an axis.
LARGEST = 1e100
TICK_FONT = 9.0

COUNTS = {"n_latents": "latents", "n_edges": "edges"}


def score_and_count(estimator: Any, X: Any, y: Any = None) -> dict[str, float]:
    """Score a fitted model and count its latents and edges.

    Use it as the ``scoring`` of scikit-learn's searches, with ``refit="score"``.
    `ThresholdCurveDisplay.from_search` then shows structure and likelihood.

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
        ``score``, the mean log-likelihood of `X`, ``n_latents`` and ``n_edges``. For
        temporal models, latents of one slice and edges that leave it are counted.

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
    check_has(estimator, "method", "score", "to_networkx")
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

    The upper panel shows the mean log-likelihood of held-out rows, with one standard
    error over the folds; the best value is marked. The panels below show the numbers
    of latents and edges, if they were counted.

    Parameters
    ----------
    param_name : str
        Name of the parameter.
    param_values : sequence of length n_values
        Its values. Positive numbers that span more than a factor of ten are drawn on
        a logarithmic axis, values that are not numbers side by side.
    score : array-like of shape (n_values,)
        Mean log-likelihood of held-out rows.
    score_error : array-like of shape (n_values,) or None, default=None
        Its standard error.
    counts : dict of str to array-like of shape (n_values,) or None, default=None
        Numbers to show in the panels below, by label.

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
    score_and_count : Scoring function that counts latents and edges.

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

    ax_: Axes
    axes_: NDArray[Any]
    figure_: Figure | SubFigure

    def __init__(
        self,
        param_name: str,
        param_values: Sequence[Any],
        score: ArrayLike,
        *,
        score_error: ArrayLike | None = None,
        counts: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        self.param_name = param_name
        self.param_values = param_values
        self.score = score
        self.score_error = score_error
        self.counts = counts

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        param_name: str,
        param_range: Iterable[Any],
        cv: Any = None,
        n_jobs: int | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Cross-validate an estimator with every value, and draw.

        Parameters
        ----------
        estimator : estimator
            Estimator with ``score`` and ``to_networkx``; it is cloned.
        X : array-like of shape (n_samples, n_features)
            Data.
        param_name : str
            Name of the parameter to vary.
        param_range : sequence
            Its values.
        cv : int, splitter or None, default=None
            Folds, as in :func:`sklearn.model_selection.cross_validate`.
        n_jobs : int or None, default=None
            Number of folds to fit at the same time.
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        display : ThresholdCurveDisplay
            The drawn display.
        """
        check_has(estimator, "method", "score", "to_networkx", "get_params")
        check_choice("param_name", param_name, sorted(estimator.get_params()))
        check_jobs(n_jobs)
        values = list(param_range) if isinstance(param_range, Iterable) else []
        if not values:
            raise ValueError(
                f"param_range must hold at least one value, got {shown(param_range)}."
            )
        search = GridSearchCV(
            estimator,
            {param_name: values},
            scoring=score_and_count,
            refit=False,
            cv=cv,
            n_jobs=n_jobs,
            error_score="raise",
        )
        return cls.from_search(search.fit(X), ax=ax)

    @classmethod
    def from_search(
        cls, search: Any, *, param_name: str | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw the results of a search.

        Parameters
        ----------
        search : GridSearchCV or another search of scikit-learn
            Fitted search. Latents and edges are shown if its ``scoring`` was
            `score_and_count`.
        param_name : str or None, default=None
            Parameter to show. At each of its values, the best values of the other
            parameters are taken. If None, the only parameter of the search.
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.

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
        # Standard error of the mean over folds.
        error = results[f"std_test_{metric}"] / np.sqrt(max(search.n_splits_ - 1, 1))
        counts = {
            name: results[f"mean_test_{key}"][best]
            for key, name in COUNTS.items()
            if f"mean_test_{key}" in results
        }
        display = cls(
            str(param_name), values, score[best], score_error=error[best], counts=counts
        )
        return display.plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        self : ThresholdCurveDisplay
            With the drawing in ``ax_``, ``axes_`` and ``figure_``.
        """
        check_plot("ThresholdCurveDisplay", ax)
        score, error, counts = self._check()
        n_panels = 1 + len(counts)
        self.ax_ = new_axes(6.4, 1.8 + 1.4 * n_panels) if ax is None else ax
        self.figure_ = self.ax_.figure
        self.axes_ = split_axes(self.ax_, n_panels)[:, 0]
        is_numeric = _are_numbers(self.param_values)
        values = self.param_values if is_numeric else range(len(self.param_values))
        x = np.asarray(values, dtype=float)
        # A line between values without an order would mean nothing.
        marks = "o-" if is_numeric else "o"

        top = self.axes_[0]
        top.errorbar(x, score, error, fmt=marks, color=PALETTE[0], capsize=2.5)
        top.set_ylabel("held-out log-likelihood\n(nats a row)")
        for panel, (name, count), color in zip(
            self.axes_[1:], counts.items(), PALETTE[1:], strict=False
        ):
            panel.plot(x, count, marks, color=color)
            panel.set_ylabel(spelled(shorten(name)))
            panel.set_ylim(bottom=min(0.0, *count), top=1.1 * max(1.0, *count))
        if np.isfinite(score).any():
            chosen = int(np.nanargmax(score))
            for panel in self.axes_:
                panel.axvline(x[chosen], color="0.6", ls=":", lw=1.2, zorder=0)
            label = f"best: {_write(self.param_values[chosen])}"
            top.set_title(spelled(label), fontsize=9, color="0.35")
        self._label_values(x, is_numeric)
        return self

    def _label_values(self, x, is_numeric) -> None:
        """Share one axis of values, written below the last panel."""
        for panel in self.axes_:
            if not is_numeric:
                labels = [_write(value) for value in self.param_values]
                room = 0.9 * size_in_points(self.ax_)[0] / len(labels)
                turned = text_width(labels, TICK_FONT) > room
                style = {"fontsize": TICK_FONT, "rotation": 90 if turned else 0}
                panel.set_xticks(x, list(map(spelled, labels)), **style)
                panel.set_xlim(-0.5, len(x) - 0.5)
            elif np.min(x) > 0 and np.max(x) > 10 * np.min(x):
                panel.set_xscale("log")
            panel.grid(axis="y", color="0.92")
            panel.spines[["top", "right"]].set_visible(False)
        for panel in self.axes_[:-1]:
            panel.tick_params(axis="x", which="both", labelbottom=False)
        self.axes_[-1].set_xlabel(spelled(shorten(self.param_name, 60)))

    def _check(self):
        """Arrays with one number per value."""
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
        """Validate an array; numbers too large for an axis become NaN."""
        array = check_numbers(name, array)
        if array.shape != (len(self.param_values),):
            raise ValueError(
                f"{name} must have one number per value, shape "
                f"({len(self.param_values)},), got shape {array.shape}."
            )
        return np.where(np.abs(array) <= LARGEST, array, np.nan)


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
    """Whether all values can be placed on an axis; True and False are not."""
    return all(
        isinstance(value, Real)
        and not isinstance(value, bool | np.bool_)
        and abs(float(value)) <= LARGEST
        for value in values
    )


def _write(value) -> str:
    """Label of a value."""
    return f"{value:.3g}" if _are_numbers([value]) else shorten(value)
