"""Display of how sure the edges of a network are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._core.validation import check_count, check_numbers
from ._style import (
    NEGATIVE_COLOR,
    POSITIVE_COLOR,
    add_legend,
    check_has,
    check_plot,
    labels_or_default,
    new_axes,
    spelled,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Pairs that are shown; further ones would be too small to read.
MOST_PAIRS = 40
LABEL_FONT = 10.0


class EdgeConfidenceDisplay:
    """Bars of the shares of bootstrap fits that have an edge, one per pair of features.

    The two parts of a bar are the two directions, the more frequent one first. The
    pairs that are joined most often are at the top.

    Parameters
    ----------
    confidence : array-like of shape (n_features, n_features)
        ``[i, j]`` is the share of fits with the edge i -> j, as returned by
        `IdealParentGaussianBN.edge_confidence`.
    feature_names : sequence of str or None, default=None
        Names of the features. If None, they are x0, x1, ...

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> from sklearn_latent.plotting import EdgeConfidenceDisplay
    >>> display = EdgeConfidenceDisplay([[0.0, 0.9], [0.05, 0.0]], ["cause", "effect"])
    >>> [label.get_text() for label in display.plot().ax_.get_yticklabels()]
    ['cause → effect']
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self, confidence: ArrayLike, feature_names: Sequence[str] | None = None
    ) -> None:
        self.confidence = confidence
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        n_bootstraps: int = 100,
        n_jobs: int | None = None,
        random_state: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the confidence in edges, and draw it.

        Parameters
        ----------
        estimator : IdealParentGaussianBN
            Estimator with the method ``edge_confidence``.
        X : array-like of shape (n_samples, n_features)
            Data.
        n_bootstraps : int, default=100
            Number of bootstrap fits.
        n_jobs : int or None, default=None
            Number of jobs, through joblib.
        random_state : int, RandomState instance or None, default=None
            Source of the draws.
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : EdgeConfidenceDisplay
            The drawn display.
        """
        check_plot(cls.__name__, ax)
        check_has(estimator, "method", "edge_confidence")
        confidence = estimator.edge_confidence(
            X, n_bootstraps, n_jobs=n_jobs, random_state=random_state
        )
        names = getattr(X, "columns", None)
        display = cls(confidence, None if names is None else [str(n) for n in names])
        return display.plot(ax=ax, **kwargs)

    def plot(
        self, *, ax: Axes | None = None, max_pairs: int = 20, least: float = 0.05
    ) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        max_pairs : int, default=20
            Maximum number of pairs to show, at most 40.
        least : float, default=0.05
            Pairs that are joined less often are not shown.

        Returns
        -------
        self : EdgeConfidenceDisplay
            The drawn display.
        """
        check_plot(type(self).__name__, ax)
        max_pairs = check_count("max_pairs", max_pairs, 1, MOST_PAIRS)
        confidence = check_numbers("confidence", self.confidence)
        if confidence.ndim != 2 or len(confidence) != confidence.shape[1]:
            raise ValueError(
                f"confidence must be a square matrix, got shape {confidence.shape}."
            )
        names = labels_or_default(
            "feature_names", self.feature_names, "x", len(confidence)
        )
        pairs = _surest(confidence, max_pairs, least)
        labels = [f"{names[i]} → {names[j]}" for i, j in pairs]
        if ax is None:
            width = max(6.0, 4.2 + text_width(labels, LABEL_FONT) / 72.0)
            ax = new_axes(width, 1.2 + 0.28 * max(len(pairs), 1))
        first = np.array([confidence[i, j] for i, j in pairs])
        second = np.array([confidence[j, i] for i, j in pairs])
        places = np.arange(len(pairs))[::-1]
        forward = ax.barh(places, first, color=POSITIVE_COLOR)
        backward = ax.barh(places, second, left=first, color=NEGATIVE_COLOR)
        ax.set_yticks(places, list(map(spelled, labels)), fontsize=LABEL_FONT)
        ax.set_xlim(0.0, 1.0)
        ax.set_xlabel("share of bootstrap fits with the edge")
        entries = [(forward, "this direction"), (backward, "the other direction")]
        add_legend(ax, entries, loc="lower left", bbox_to_anchor=(0.0, 1.0))
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _surest(confidence, max_pairs, least) -> list[tuple[int, int]]:
    """Pairs that are joined most often, each in its more frequent direction."""
    both = np.triu(confidence + confidence.T, 1)
    order = np.argsort(-both, axis=None, kind="stable")[:max_pairs]
    chosen = [divmod(int(place), len(both)) for place in order]
    return [
        (i, j) if confidence[i, j] >= confidence[j, i] else (j, i)
        for i, j in chosen
        if both[i, j] >= least
    ]
