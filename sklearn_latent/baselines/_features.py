"""Features that have nothing to do with each other."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from .._core.climb import Ascent
from .._core.validation import check_count
from ..mixed._em.chain_em import EMOptions, fit_chain
from ..mixed._em.choice import choose_emissions, rough
from ..mixed._em.hybrid import Hybrid
from ..mixed._emissions.kinds import KINDS
from ..mixed._graph import TemporalGraph
from ..mixed._model import MAX_JOINT_STATES
from ..mixed._panel_estimator import PanelModel
from ..mixed._panels.panel import Panel


class FixedGraph(PanelModel):
    """Base class of models whose graph is known: a `LatentDBN` of at most one latent.

    A subclass fits the network to a panel in ``_fit_panel``.
    """

    # What others let users choose.
    n_bins = 4
    max_joint_states = MAX_JOINT_STATES
    max_iter = 200
    tol = 1e-4

    def __init__(
        self,
        n_slices: int = 1,
        *,
        emissions: Any = "auto",
        max_categories: int = 10,
        verbose: int = 0,
    ):
        self.n_slices = n_slices
        self.emissions = emissions
        self.max_categories = max_categories
        self.verbose = verbose

    def _check_parameters(self):
        super()._check_parameters()
        check_count("n_slices", self.n_slices)

    def _max_steps(self, X) -> int:
        return 1

    @abstractmethod
    def _fit_panel(self, panel: Panel) -> Ascent:
        """Fit the network."""

    def _learn(self, X, sample_weight, progress):
        """From rows to fitted attributes."""
        training = self._read_training(X, sample_weight, seed=0)
        ascent = self._fit_panel(training.panel)
        self._store(ascent.state, training.encoder, Hybrid(training.panel))
        total = training.sample.total
        log_likelihood = ascent.statistics.log_likelihood
        self._store_fit(log_likelihood, total)
        self.n_iter_, self.converged_ = ascent.n_iter, ascent.converged
        progress(f"log-likelihood {log_likelihood:.6g}")

    def _options(self) -> EMOptions:
        """How EM runs."""
        return EMOptions(self.max_iter, self.tol, self.max_joint_states)


def without_memory(panel: Panel) -> Panel:
    """The same panel, whose features do not follow their own past unless asked to."""
    kinds = [panel.kinds_of(f) for f in range(panel.n_observed)]
    chosen = [tuple(k for k in own if not KINDS[k].has_memory) for own in kinds]
    pairs = zip(chosen, kinds, strict=True)
    return replace(panel, kinds=tuple(some or own for some, own in pairs))


def fit_graph(panel: Panel, graph: TemporalGraph, cardinality, options) -> Ascent:
    """Tables of a known graph, with the kinds of emissions that BIC prefers."""
    first = fit_chain(panel, graph, cardinality, None, rough(options), random_state=0)
    return choose_emissions(panel, first, options)


def no_latents(n_observed: int) -> TemporalGraph:
    """A graph of features alone."""
    nothing = np.zeros((0, 0), dtype=bool)
    return TemporalGraph(np.zeros((0, n_observed), dtype=bool), nothing, nothing)


class IndependentFeatures(FixedGraph):
    """All values are independent: the least that any other model should beat.

    Each column has a distribution of its own: shares of categories, slightly smoothed,
    a normal or log-normal distribution of numbers, whichever fits better. Columns are
    read as `LPCC` does it: whole numbers with few values and labels are categories.
    Missing values are left out. In sequences, a feature has the same distribution in
    all slices.

    Parameters
    ----------
    n_slices : int, default=1
        Number of slices of a row, for panels.
    emissions : str, list or dict, default="auto"
        Kinds of distributions of the features, as for `LPCC`: "categorical",
        "gaussian", "lognormal" or "ordinal".
    max_categories : int, default=10
        Whole numbers up to this many values are categories.
    verbose : int, default=0
        Whether to report progress.

    Attributes
    ----------
    emission_ : list of ndarray or Emission
        Distribution of each feature.
    network_ : LatentDBN
        The fitted model, a network without latents.
    n_latents_ : int
        0.
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
    >>> from sklearn_latent.baselines import IndependentFeatures
    >>> model = IndependentFeatures().fit([[0, 1.5], [1, 2.5], [1, 3.1], [1, 4.2]])
    >>> [type(emission).__name__ for emission in model.emission_]
    ['ndarray', 'ndarray']
    """

    def _fit_panel(self, panel: Panel) -> Ascent:
        graph = no_latents(panel.n_observed)
        return fit_graph(without_memory(panel), graph, [], self._options())
