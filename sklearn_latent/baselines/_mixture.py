"""Mixtures of products: one hidden class explains all features."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.climb import Ascent
from .._core.criteria import aic
from .._core.validation import MOST_COLUMNS, check_count
from ..mixed._graph import TemporalGraph
from ..mixed._panels.panel import Panel
from ._features import FixedGraph, fit_graph, no_latents, without_memory

# Numbers of classes that are tried, and how many of them without a gain end the search.
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
PATIENCE = 2


class LatentClasses(FixedGraph):
    """Mixture of independent features: rows belong to hidden classes.

    Of 0/1 columns this is a mixture of Bernoullis. Columns are read as in
    `IndependentFeatures`, and may be mixed and have gaps. In sequences the class may
    change from slice to slice: a hidden Markov model.

    Parameters
    ----------
    n_classes : "auto" or int, default="auto"
        Number of classes. "auto": of 1, 2, 3, 4, 6, 8, 12, ... the one of lowest AIC.
    n_slices : int, default=1
        Number of slices of a row, for panels.
    emissions : str, list or dict, default="auto"
        Kinds of distributions of the features, as for `LPCC`.
    max_categories : int, default=10
        Whole numbers up to this many values are categories.
    verbose : int, default=0
        Whether to report progress.

    Attributes
    ----------
    n_classes_ : int
        Number of classes.
    emission_ : list of ndarray or Emission
        Distribution of each feature by class.
    network_ : LatentDBN
        The fitted model, a network with one latent, or none if there is one class.
    n_latents_ : int
        1, or 0 if there is one class.
    log_likelihood_ : float
        Log-likelihood of the training rows.
    bic_ : float
        Bayesian information criterion of the training rows; lower is better.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if `X` has string names.

    See Also
    --------
    sklearn_latent.compare : Compares models by held-out likelihood.

    Examples
    --------
    >>> from sklearn_latent.baselines import LatentClasses
    >>> from sklearn_latent.datasets import make_latent_dbn
    >>> X = make_latent_dbn("G1", 500, n_slices=1, random_state=0).X
    >>> LatentClasses().fit(X).n_classes_
    4
    """

    def __init__(
        self,
        n_classes: int | str = "auto",
        *,
        n_slices: int = 1,
        emissions: Any = "auto",
        max_categories: int = 10,
        verbose: int = 0,
    ):
        super().__init__(
            n_slices,
            emissions=emissions,
            max_categories=max_categories,
            verbose=verbose,
        )
        self.n_classes = n_classes

    def _check_parameters(self):
        super()._check_parameters()
        if self.n_classes != "auto":
            check_count("n_classes", self.n_classes, 1, MOST_COLUMNS)

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return int(self.cardinality_[0]) if len(self.cardinality_) else 1

    def _fit_panel(self, panel: Panel) -> Ascent:
        panel = without_memory(panel)
        if self.n_classes != "auto":
            return self._fit_classes(panel, int(self.n_classes))
        best: Any = None
        lowest, failures = np.inf, 0
        total = panel.weights.sum()
        # What counts is other rows, for which AIC stands; BIC chooses too few classes
        # for them (of 1,257 digits 16, with 0.8 nats less per row than 32).
        for n_classes in SIZES:
            found = self._fit_classes(panel, n_classes)
            n_free = found.state.n_parameters
            value = aic(found.statistics.log_likelihood, n_free)
            failures = 0 if value < lowest else failures + 1
            if value < lowest:
                best, lowest = found, value
            if failures == PATIENCE or 2 * n_classes > total:
                break
        return best

    def _fit_classes(self, panel: Panel, n_classes: int) -> Ascent:
        """A network with one latent of so many states."""
        if n_classes == 1:
            return fit_graph(panel, no_latents(panel.n_observed), [], self._options())
        over_all = np.ones((1, panel.n_observed), dtype=bool)
        has_time = np.full((1, 1), panel.n_slices > 1)
        graph = TemporalGraph(over_all, np.zeros((1, 1), dtype=bool), has_time)
        return fit_graph(panel, graph, [n_classes], self._options())
