"""What every estimator of the library shares, whatever its model family."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from . import _criteria
from ._progress import CallbackSupportMixin
from ._validation import shown
from .export import edges_to_frame
from .plotting import LatentGraphDisplay

__all__ = ["BaseLatentModel"]


class BaseLatentModel(CallbackSupportMixin, TransformerMixin, BaseEstimator):
    """Base class of all estimators.

    A subclass provides ``fit``, ``transform``, ``score_samples``, ``sample``,
    ``to_networkx`` and ``_n_features_out`` (number of columns of ``transform``), and
    sets ``network_``, ``n_latents_`` and ``structure_``. The rest comes from here.
    """

    network_: Any
    n_latents_: int
    structure_: np.ndarray

    def __sklearn_is_fitted__(self):
        # Batches that are still to be learned from leave other attributes.
        return hasattr(self, "network_")

    def _store_fit(self, log_likelihood, n_rows, *, is_exact=True):
        """Set how well the fitted network explains the training rows.

        `log_likelihood` is the total, `n_rows` the sum of the weights.
        """
        self.log_likelihood_ = float(log_likelihood)
        self.is_exact_ = bool(is_exact)
        self.bic_ = _criteria.bic(log_likelihood, self._n_parameters(), n_rows)

    def _n_parameters(self) -> int:
        """Free parameters of the fitted network."""
        return self.network_.n_parameters

    @property
    def latent_names_(self) -> np.ndarray:
        """Names of the latents: latent0, latent1, ..."""
        check_is_fitted(self)
        names = [f"latent{i}" for i in range(self.n_latents_)]
        return np.asarray(names, dtype=object)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: latent0, latent1, ...

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Only checked against the names seen in `fit`.

        Returns
        -------
        names : ndarray of str objects
            One name per column.
        """
        self._feature_names(input_features)
        return self.latent_names_

    def score(self, X, y=None):
        """Mean log-likelihood per row, in nats.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.

        y : Ignored
            Present for API consistency.

        Returns
        -------
        score : float
            Mean of `score_samples`.
        """
        return float(np.mean(self.score_samples(X)))

    def bic(self, X):
        """Bayesian information criterion on `X`; lower is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.

        Returns
        -------
        bic : float
            Minus twice the log-likelihood plus the penalty.
        """
        rows = self.score_samples(X)
        return _criteria.bic(rows.sum(), self._n_parameters(), len(rows))

    def aic(self, X):
        """Akaike information criterion on `X`; lower is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.

        Returns
        -------
        aic : float
            Minus twice the log-likelihood plus the penalty.
        """
        return _criteria.aic(self.score_samples(X).sum(), self._n_parameters())

    def to_frame(self):
        """Table of the edges of the fitted model.

        Returns
        -------
        frame : pandas.DataFrame
            One row per edge: parent, child and what was learned of the edge.
        """
        return edges_to_frame(self.to_networkx())

    def plot(self, ax=None, **kwargs):
        """Draw the fitted model.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        **kwargs : dict
            Passed on to `LatentGraphDisplay.plot`.

        Returns
        -------
        display : LatentGraphDisplay
            With the drawing in ``ax_`` and ``figure_``.
        """
        return LatentGraphDisplay.from_estimator(self, ax=ax, **kwargs)

    def _feature_names(self, input_features=None):
        """Names of the features: given, seen in fit, or the default x0, x1, ..."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if names.ndim != 1:
            raise ValueError(
                f"input_features must be a list of names, got {shown(input_features)}."
            )
        return names
