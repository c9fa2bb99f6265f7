"""Display of the columns of a continuous network: data, densities, normal scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from .._core.validation import check_names, check_numbers
from ._style import PALETTE, check_has, check_plot, fit_width, spelled

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

# Columns that are drawn unless more are asked for.
MOST_COLUMNS = 6
# Of a column and of its name, in points.
WIDTH, TITLE_FONT = 150.0, 11.0
# Points of a curve, and how far it goes beyond the data, as a share of their range.
N_POINTS = 301
BEYOND = 0.05


class MarginsDisplay:
    """Data, fitted density and normal scores of columns.

    For each column the upper picture has a histogram and the density that the model
    gives the column by itself; the lower one has the normal score of every value, and
    as points what the ranks of the data say. A column that is normal has a straight
    line.

    Parameters
    ----------
    values : sequence of array-like of shape (n_values,)
        Data of each column, without missing ones.
    grid, density, score : array-like of shape (n_columns, n_points)
        Values at which curves are drawn, the density there and the standardised score.
    names : sequence of str or None, default=None
        Names of the columns.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (2, n_columns)
        Densities, then scores.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent import IdealParentGaussianBN
    >>> from sklearn_latent.plotting import MarginsDisplay
    >>> X = np.exp(np.random.default_rng(0).normal(size=(200, 2)))
    >>> model = IdealParentGaussianBN().fit(X)
    >>> MarginsDisplay.from_estimator(model, X).axes_.shape
    (2, 2)
    """

    axes_: NDArray[Any]
    figure_: Figure | SubFigure

    def __init__(
        self,
        values: Sequence[ArrayLike],
        grid: ArrayLike,
        density: ArrayLike,
        score: ArrayLike,
        names: Sequence[str] | None = None,
    ) -> None:
        self.values = values
        self.grid = grid
        self.density = density
        self.score = score
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        features: Sequence[int] | None = None,
        axes: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw columns of a fitted estimator.

        Parameters
        ----------
        estimator : IdealParentGaussianBN
            Fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Data; NaN is missing.
        features : sequence of int or None, default=None
            Numbers of the columns; None stands for the first six.
        axes : array-like of matplotlib Axes of shape (2, n_columns) or None, \
                default=None
            Axes to draw on. If None, a new figure is created.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : MarginsDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        check_has(estimator, "attribute", "network_", "noise_variance_")
        rows = estimator._check_X(X)
        chosen = range(rows.shape[1])[:MOST_COLUMNS] if features is None else features
        numbers = check_numbers("features", list(chosen), dtype=None)
        if not (np.isin(numbers, np.arange(rows.shape[1])).all() and numbers.size):
            raise ValueError(
                f"features must hold numbers from 0 to {rows.shape[1] - 1}, got "
                f"{features!r}."
            )
        columns = [_curves(estimator.network_, rows, int(n)) for n in numbers]
        values, grid, density, score = zip(*columns, strict=True)
        names = [str(estimator.node_names_[int(number)]) for number in numbers]
        display = cls(values, np.array(grid), np.array(density), np.array(score), names)
        return display.plot(axes=axes, **kwargs)

    def plot(self, axes: Any = None, *, bins: int = 30) -> Self:
        """Draw the columns.

        Parameters
        ----------
        axes : array-like of matplotlib Axes of shape (2, n_columns) or None, \
                default=None
            Axes to draw on. If None, a new figure is created.
        bins : int, default=30
            Number of bars of the histograms.

        Returns
        -------
        self : MarginsDisplay
            With the drawing in ``axes_`` and ``figure_``.
        """
        check_plot("MarginsDisplay", None)
        grid, density, score = (
            np.atleast_2d(check_numbers(name, getattr(self, name)))
            for name in ("grid", "density", "score")
        )
        n = len(grid)
        if not len(self.values) == n == len(density) == len(score):
            raise ValueError(
                f"values, grid, density and score must have one entry per column, got "
                f"{len(self.values)}, {n}, {len(density)} and {len(score)}."
            )
        names = [""] * n if self.names is None else check_names("names", self.names, n)
        axes = _new_axes(n) if axes is None else np.asarray(axes, dtype=object)
        for ax in axes.ravel():
            check_plot("MarginsDisplay", False if ax is None else ax, "axes")
        if axes.size != 2 * n:
            raise ValueError(f"axes must hold {2 * n} Axes, got {axes.size}.")
        axes = axes.reshape(2, n)
        for column in range(n):
            upper, lower = axes[:, column]
            values = check_numbers("values", self.values[column])
            upper.hist(values, bins=bins, density=True, color="#D0D0D0")
            upper.plot(grid[column], density[column], color=PALETTE[0])
            name = fit_width(names[column], WIDTH, TITLE_FONT)
            upper.set_title(spelled(name), fontsize=TITLE_FONT)
            upper.set(yticks=[])
            ordered = np.sort(values)
            ranks = ndtri((np.arange(len(values)) + 0.5) / max(len(values), 1))
            lower.plot(ordered, ranks, ".", color="#A0A0A0", markersize=3)
            lower.plot(grid[column], score[column], color=PALETTE[0])
            lower.set(xlim=upper.get_xlim())
        axes[0, 0].set_ylabel("density")
        axes[1, 0].set_ylabel("normal score")
        self.axes_, self.figure_ = axes, axes[0, 0].figure
        return self


def _curves(network, X, column: int):
    """Values of a column, and grid, density and standardised score along it."""
    values = X[:, column][~np.isnan(X[:, column])]
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    margin = BEYOND * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, N_POINTS)
    # The density of a column by itself is that of rows that lack all others.
    rows = np.full((N_POINTS, X.shape[1]), np.nan)
    rows[:, column] = grid
    density = np.exp(network.log_likelihood(rows))
    scores = values, grid
    if network.margins is not None:
        scores = tuple(network.margins[column].scores(part) for part in scores)
    centre, scale = (scores[0].mean(), scores[0].std()) if len(values) else (0.0, 1.0)
    return values, grid, density, (scores[1] - centre) / (scale or 1.0)


def _new_axes(n_columns: int) -> NDArray[Any]:
    """Axes of a new figure, two for each column."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(
        2,
        n_columns,
        figsize=(1.0 + WIDTH / 68.0 * n_columns, 4.2),
        squeeze=False,
        sharex="col",
        layout="constrained",
    )
    return axes
