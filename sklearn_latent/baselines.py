"""Simple models of any table, to compare others with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._core.choose import grow
from ._core.climb import Ascent
from ._core.criteria import aic
from ._core.validation import MOST_COLUMNS, check_count
from .mixed._em.chain_em import EMOptions, fit_chain
from .mixed._em.choice import choose_emissions, rough
from .mixed._em.hybrid import Hybrid
from .mixed._emissions.kinds import KINDS
from .mixed._graph import TemporalGraph
from .mixed._latent_dbn import MAX_JOINT_STATES
from .mixed._panel_estimator import PanelModel
from .mixed._panels.panel import Panel

__all__ = ["IndependentFeatures", "LatentClasses"]


class _ClassModel(PanelModel):
    """Base class: a `LatentDBN` with one latent behind all features, or none."""

    # What others let users choose.
    n_bins = 4
    max_joint_states = MAX_JOINT_STATES
    max_iter = 200
    tol = 1e-4

    def _check_parameters(self):
        super()._check_parameters()
        check_count("n_slices", self.n_slices)

    def _max_steps(self, X) -> int:
        return 1

    def _sizes(self, total: float) -> list[int]:
        """Numbers of classes to try."""
        return [1]

    def _learn(self, X, sample_weight, progress):
        """From rows to fitted attributes."""
        training = self._read_training(X, sample_weight)
        panel = _without_memory(training.panel)
        # What counts is other rows, for which AIC stands; BIC chooses too few classes
        # for them (of 1,257 digits 16, with 0.8 nats less per row than 32).
        ascent = grow(
            lambda n_classes: self._fit_classes(panel, n_classes),
            self._sizes(panel.weights.sum()),
            lambda one: aic(one.statistics.log_likelihood, one.state.n_parameters),
        ).best
        self._store(ascent.state, training.encoder, Hybrid(training.panel))
        log_likelihood = ascent.statistics.log_likelihood
        self._store_fit(log_likelihood, training.sample.total)
        self.n_iter_, self.converged_ = ascent.n_iter, ascent.converged
        progress(f"log-likelihood {log_likelihood:.6g}")

    def _fit_classes(self, panel: Panel, n_classes: int) -> Ascent:
        """A network with one latent of so many states, with emissions by BIC."""
        n_latents = int(n_classes > 1)
        graph = TemporalGraph(
            np.ones((n_latents, panel.n_observed), dtype=bool),
            np.zeros((n_latents, n_latents), dtype=bool),
            np.full((n_latents, n_latents), panel.n_slices > 1),
        )
        options = EMOptions(self.max_iter, self.tol, self.max_joint_states)
        cards = [n_classes] * n_latents
        first = fit_chain(panel, graph, cards, None, rough(options), random_state=0)
        return choose_emissions(panel, first, options)


def _without_memory(panel: Panel) -> Panel:
    """The same panel, whose features do not follow their own past unless asked to."""
    kinds = [panel.kinds_of(f) for f in range(panel.n_observed)]
    chosen = [tuple(k for k in own if not KINDS[k].has_memory) for own in kinds]
    pairs = zip(chosen, kinds, strict=True)
    return replace(panel, kinds=tuple(some or own for some, own in pairs))


class IndependentFeatures(_ClassModel):
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


class LatentClasses(_ClassModel):
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
        self.n_classes = n_classes
        self.n_slices = n_slices
        self.emissions = emissions
        self.max_categories = max_categories
        self.verbose = verbose

    def _check_parameters(self):
        super()._check_parameters()
        if self.n_classes != "auto":
            check_count("n_classes", self.n_classes, 1, MOST_COLUMNS)

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return int(self.cardinality_[0]) if len(self.cardinality_) else 1

    def _sizes(self, total: float) -> list[int]:
        if self.n_classes != "auto":
            return [int(self.n_classes)]
        powers = [2**k for k in range(1, 6)]
        sizes = sorted([1, *powers, *(3 * n // 2 for n in powers), 64])
        return [n for n in sizes if n < total] or [1]
