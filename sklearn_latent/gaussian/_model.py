"""What a fitted Gaussian network offers as an estimator: inference and export."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from .._base import BaseLatentModel
from .._validation import check_columns
from ._export import gaussian_to_networkx, gaussian_to_pgmpy
from ._network import LARGEST, GaussianNetwork
from ._nonlinear.noise import get_noise

__all__ = ["GaussianModel"]


class GaussianModel(BaseLatentModel):
    """Base class of estimators whose fitted model is a `GaussianNetwork`.

    A subclass has a parameter ``noise`` and ends its ``fit`` with ``_store(network)``.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_X(self, X, *, reset=False):
        """Validate `X`; NaN is allowed, infinity is not."""
        check_columns("X", X)
        X = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        size = np.nanmax(np.abs(X), initial=0.0)
        if size > LARGEST:
            raise ValueError(
                f"X must hold values up to {LARGEST:g} in size, whose squares can be "
                f"summed, got {size:g}."
            )
        get_noise(self.noise).check(X)
        return X

    def _store(self, network: GaussianNetwork):
        """Set the fitted attributes that describe the network."""
        self.network_ = network
        self.adjacency_ = network.adjacency
        self.weights_ = network.weights
        self.intercept_ = network.intercept
        self.noise_variance_ = network.noise_variance
        self.n_latents_ = network.n_latents
        self.node_names_ = np.asarray(network.node_names, dtype=object)

    @property
    def _n_features_out(self):
        return self.network_.n_nodes

    def _n_parameters(self):
        return self.network_.n_parameters

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: the features, then the hidden nodes.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Only checked against the names seen in `fit`.

        Returns
        -------
        names : ndarray of str objects
            The same as ``node_names_``, unless `input_features` names features that
            had no names in `fit`.
        """
        names = self._feature_names(input_features)
        return np.concatenate([names, self.node_names_[len(names) :]]).astype(object)

    def transform(self, X):
        """Complete the rows and infer the hidden nodes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN is missing.

        Returns
        -------
        completed : ndarray of shape (n_samples, n_nodes)
            Expected value of every node given the observed values of the row; observed
            values are left as they are.
        """
        check_is_fitted(self, "network_")
        return self.network_.expectation(self._check_X(X))

    def score_samples(self, X):
        """Log-likelihood of each row over its observed values, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN is missing and is integrated out.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            Exact for linear networks, and for complete rows without hidden nodes; a
            lower bound otherwise.
        """
        check_is_fitted(self, "network_")
        return self.network_.log_likelihood(self._check_X(X))

    def predict_nodes(self, X):
        """Predict each feature from the others of its row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN is missing.

        Returns
        -------
        predicted : ndarray of shape (n_samples, n_features)
            Expected value of each feature given all other observed values, its own not
            used. Exact for linear networks; otherwise by numerical integration over
            the one feature, the missing and hidden ones at their expectations.
        """
        check_is_fitted(self, "network_")
        return self.network_.leave_one_out(self._check_X(X))

    def sample(self, n_samples=1, random_state=None):
        """Draw rows from the fitted network.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Features.

        Z : ndarray of shape (n_samples, n_latents)
            The hidden nodes behind them.
        """
        check_is_fitted(self, "network_")
        return self.network_.sample(n_samples, random_state=random_state)

    def to_networkx(self):
        """Export the fitted network as a graph.

        Returns
        -------
        graph : networkx.DiGraph
            Nodes with ``kind`` ("feature" or "latent"), ``intercept`` and
            ``noise_variance``; edges with a ``weight``.
        """
        check_is_fitted(self, "network_")
        return gaussian_to_networkx(self.network_)

    def to_pgmpy(self):
        """Export the fitted network to pgmpy.

        Returns
        -------
        model : pgmpy.models.LinearGaussianBayesianNetwork
            For ``link="linear"`` and ``noise="additive"`` only: pgmpy has no others.
        """
        check_is_fitted(self, "network_")
        return gaussian_to_pgmpy(self.network_)
