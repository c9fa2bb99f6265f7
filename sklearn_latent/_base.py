"""What every estimator of the library shares, whatever its model family."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from . import export
from ._progress import CallbackSupportMixin
from ._validation import check_numbers, shown

__all__ = ["BaseLatentModel", "check_sample_weight"]

# Weights are summed, multiplied with squares of data and divided by. Outside of these
# limits such numbers could leave the range of floats.
LIGHTEST, HEAVIEST = 1e-100, 1e100


def check_sample_weight(sample_weight, n_samples: int) -> np.ndarray | None:
    """Validate row weights.

    sample_weight (n_samples,) -> weights (n_samples,).
    """
    if sample_weight is None:
        return None
    weights = check_numbers("sample_weight", sample_weight)
    if weights.ndim == 0:
        weights = np.full(n_samples, weights)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have one value per row, shape ({n_samples},), "
            f"got shape {weights.shape}."
        )
    if np.isnan(weights).any():
        raise ValueError("sample_weight must hold numbers, got NaN.")
    if weights.min(initial=0.0) < 0:
        raise ValueError(
            f"sample_weight must be non-negative, got a minimum of {weights.min():g}."
        )
    heaviest = weights.max(initial=0.0)
    if heaviest > HEAVIEST:
        raise ValueError(
            f"sample_weight must be at most {HEAVIEST:g}, so that weights can be "
            f"summed, got a maximum of {heaviest:g}."
        )
    if heaviest < LIGHTEST:
        raise ValueError(
            f"sample_weight must not be all zero, or below {LIGHTEST:g}, got a maximum "
            f"of {heaviest:g}."
        )
    return np.where(weights < LIGHTEST, 0.0, weights)


class BaseLatentModel(CallbackSupportMixin, TransformerMixin, BaseEstimator):
    """Base class of all estimators.

    A subclass provides ``fit``, ``transform``, ``score_samples``, ``sample``,
    ``to_networkx``, ``_n_features_out`` (number of columns of ``transform``) and
    ``_n_parameters`` (free parameters of the fitted model), and gets the rest from
    here.
    """

    def __sklearn_is_fitted__(self):
        # Batches that are still to be learned from leave other attributes.
        return hasattr(self, "network_")

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
        return np.asarray(
            [f"latent{i}" for i in range(self._n_features_out)], dtype=object
        )

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
        log_likelihood = self.score_samples(X)
        return float(
            -2.0 * log_likelihood.sum()
            + self._n_parameters() * np.log(len(log_likelihood))
        )

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
        return float(-2.0 * self.score_samples(X).sum() + 2.0 * self._n_parameters())

    def to_frame(self):
        """Table of the edges of the fitted model.

        Returns
        -------
        frame : pandas.DataFrame
            One row per edge: parent, child and what was learned of the edge.
        """
        return export.edges_to_frame(self.to_networkx())

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
        from .plotting import LatentGraphDisplay

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
