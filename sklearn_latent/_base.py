"""Base class of all estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from . import _criteria
from ._progress import CallbackSupportMixin
from ._validation import shown
from .export import edges_to_frame
from .plotting import LatentGraphDisplay

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.axes import Axes


class BaseLatentModel(CallbackSupportMixin, TransformerMixin, BaseEstimator):
    """Base class of all estimators.

    A subclass provides ``fit``, ``transform``, ``score_samples`` and
    ``_n_features_out`` (number of columns of ``transform``), and sets ``network_``,
    ``n_latents_`` and ``structure_``. The rest comes from here.
    """

    network_: Any
    n_latents_: int
    structure_: NDArray[np.bool_]
    log_likelihood_: float
    is_exact_: bool
    bic_: float
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    if TYPE_CHECKING:
        # scikit-learn has no types.
        def fit_transform(
            self, X: Any, y: Any = None, **fit_params: Any
        ) -> NDArray[np.float64]: ...

    def __sklearn_is_fitted__(self) -> bool:
        # `partial_fit` may set other attributes before there is a model.
        return hasattr(self, "network_")

    def _store_fit(
        self, log_likelihood: float, n_rows: float, *, is_exact: bool = True
    ) -> None:
        """Set the log-likelihood and the BIC of the training rows.

        `log_likelihood` is the total, `n_rows` the sum of the weights.
        """
        self.log_likelihood_ = float(log_likelihood)
        self.is_exact_ = bool(is_exact)
        self.bic_ = _criteria.bic(log_likelihood, self._n_parameters(), n_rows)

    def _n_parameters(self) -> int:
        """Free parameters of the fitted network."""
        return self.network_.n_parameters

    @property
    def latent_names_(self) -> NDArray[Any]:
        """Names of the latents: latent0, latent1, ..."""
        check_is_fitted(self)
        names = [f"latent{i}" for i in range(self.n_latents_)]
        return np.asarray(names, dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
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

    def score(self, X: Any, y: Any = None) -> float:
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

    def bic(self, X: Any) -> float:
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

    def aic(self, X: Any) -> float:
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

    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
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
            The latents behind them.
        """
        check_is_fitted(self)
        return self.network_.sample(n_samples, random_state=random_state)

    def to_networkx(self) -> nx.DiGraph:
        """Export the fitted network as a graph.

        Returns
        -------
        graph : networkx.DiGraph
            Nodes have a ``kind``, "latent" or "feature". Parameters are attributes of
            nodes and edges, and edges have a ``strength``.
        """
        check_is_fitted(self)
        return self.network_.to_networkx(self.latent_names_, self._node_names())

    def to_pgmpy(self) -> Any:
        """Export the fitted network to pgmpy.

        Returns
        -------
        model : pgmpy model
            As ``network_.to_pgmpy`` makes it, with the names of the data.
        """
        check_is_fitted(self)
        return self.network_.to_pgmpy(self.latent_names_, self._node_names())

    def _node_names(self) -> Any:
        """Names of the features as nodes of a graph."""
        return self._feature_names()

    def to_frame(self) -> pd.DataFrame:
        """Table of the edges of the fitted model.

        Returns
        -------
        frame : pandas.DataFrame
            One row per edge: parent, child and the parameters of the edge.
        """
        return edges_to_frame(self.to_networkx())

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> LatentGraphDisplay:
        """Draw the fitted model.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        **kwargs : dict
            Passed to `LatentGraphDisplay.plot`.

        Returns
        -------
        display : LatentGraphDisplay
            With the drawing in ``ax_`` and ``figure_``.
        """
        return LatentGraphDisplay.from_estimator(self, ax=ax, **kwargs)

    def _feature_names(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features: given, seen in fit, or the default x0, x1, ..."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if names.ndim != 1:
            raise ValueError(
                f"input_features must be a list of names, got {shown(input_features)}."
            )
        return names
