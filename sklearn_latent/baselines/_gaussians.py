"""Mixtures of normal distributions, whose number is chosen."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validation import check_count

# Shapes of components that are tried.
SHAPES = ("full", "diag")

# Rows per component below which none is tried: a component on a few rows has a spike
# there, which BIC takes for a fit. Diagonal ones need fewer.
FEWEST_ROWS = 10


class GaussianMixtureBIC(DensityMixin, BaseEstimator):
    """Mixture of normal distributions whose size and shape BIC chooses.

    scikit-learn's :class:`~sklearn.mixture.GaussianMixture` on columns of unit
    variance, with full or diagonal covariances. There are at least ten rows per
    component, and of full covariances twice as many as columns. Densities are those of
    the columns as they were.

    Parameters
    ----------
    max_components : int, default=8
        Largest number of components that is tried.
    random_state : int, RandomState instance or None, default=0
        Source of the starts.

    Attributes
    ----------
    mixture_ : GaussianMixture
        The chosen mixture, of columns with mean 0 and variance 1.
    mean_, scale_ : ndarray of shape (n_features,)
        Means and standard deviations of the columns.
    n_components_ : int
        Number of components.
    n_parameters_ : int
        Number of free parameters.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if `X` has string names.

    See Also
    --------
    LatentClasses : Mixture of categories and numbers, with gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.baselines import GaussianMixtureBIC
    >>> rng = np.random.RandomState(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (200, 2)), rng.normal(4, 1, (200, 2))])
    >>> GaussianMixtureBIC().fit(X).n_components_
    2
    """

    mixture_: GaussianMixture
    n_components_: int
    n_features_in_: int

    def __init__(self, max_components: int = 8, *, random_state: Any = 0):
        self.max_components = max_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit mixtures of all sizes and shapes, and keep the one of lowest BIC.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, without gaps.
        y : Ignored
            Present for API consistency.

        Returns
        -------
        self : GaussianMixtureBIC
            The fitted estimator.
        """
        check_count("max_components", self.max_components)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self.mean_ = X.mean(axis=0)
        spread = X.std(axis=0)
        self.scale_ = np.where(spread > 0, spread, 1.0)
        scaled = (X - self.mean_) / self.scale_
        self.mixture_ = min(self._candidates(scaled), key=lambda m: m.bic(scaled))
        self.n_components_ = self.mixture_.n_components
        # Means and standard deviations are estimated once, in the mixture.
        self.n_parameters_ = int(self.mixture_._n_parameters())
        return self

    def _candidates(self, X) -> list[GaussianMixture]:
        """Mixtures of all sizes and shapes."""
        n_rows, n_features = X.shape
        fewest = {"full": max(FEWEST_ROWS, 2 * (n_features + 1)), "diag": FEWEST_ROWS}
        models = [
            GaussianMixture(size, covariance_type=shape, random_state=self.random_state)
            for size in range(1, min(self.max_components, n_rows) + 1)
            for shape in SHAPES
            if size == 1 or n_rows >= size * fewest[shape]
        ]
        # Starts by k-means are for NumPy arrays alone, which these are.
        with warnings.catch_warnings(), config_context(array_api_dispatch=False):
            # Too many components for the rows: BIC will not choose them.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return [model.fit(X) for model in models]

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log-density of each row, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log-densities of the columns as they are.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scaled = (X - self.mean_) / self.scale_
        return self.mixture_.score_samples(scaled) - np.log(self.scale_).sum()

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density per row, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        y : Ignored
            Present for API consistency.

        Returns
        -------
        score : float
            Mean of `score_samples`.
        """
        return float(self.score_samples(X).mean())
