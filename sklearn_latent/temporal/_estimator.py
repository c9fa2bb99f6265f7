"""Latent variables over time: local graphs of slices, combined to a global one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._rows import is_blockwise
from .._validation import (
    MOST_COLUMNS,
    check_choice,
    check_count,
)
from .._warn import warn
from ..exceptions import PoorDataWarning
from ._em.choice import choose_emissions
from ._em.em import EMOptions, climb_chain, fit_chain
from ._em.impute import Imputer
from ._inference.inference import warn_if_approximate
from ._local.local import learn_global_graph, learn_latents
from ._local.local_to_global import LocalGraph, Support, measure_support
from ._measurement.groups import SearchOptions
from ._panel_estimator import Forecaster, PanelModel
from ._panels.encoding import PanelEncoder
from ._panels.panel import Panel
from ._panels.reading import MAX_SAMPLE, encode_block

LOCAL = ("bic", "lpcc")


class StructureLearner(PanelModel):
    """What `LPCC` and `LGLPCCTemporal` share: all but parameters."""

    local_graphs_: list[LocalGraph]
    support_: Support
    # What a row of the data is called.
    _unit = "sequences"

    def _check_parameters(self):
        """Refuse parameters of the wrong kind."""
        super()._check_parameters()
        check_choice("local", self.local, LOCAL)
        if isinstance(self.cardinality, str):
            check_choice("cardinality", self.cardinality, ("auto",))
        else:
            check_count("cardinality", self.cardinality, 2, MOST_COLUMNS)
        check_count("max_cardinality", self.max_cardinality, 2)

    def _max_steps(self, X) -> int:
        """Three steps, and those of EM over blocks, which are reported one by one."""
        return 3 + (self.max_iter if is_blockwise(X) else 0)

    def _learn(self, X, sample_weight, progress):
        """From sequences to fitted attributes."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        most = MAX_SAMPLE if is_blockwise(X) else None
        training = self._read_training(X, sample_weight, seed, most)
        panel = training.panel
        _warn_of_poor_data(panel, training.encoder, self._unit)
        options = SearchOptions(
            self.max_cardinality,
            None if self.cardinality == "auto" else int(self.cardinality),
            self.max_joint_states,
            seed,
        )
        measurement, graphs = learn_latents(panel, self.local, options, self.n_jobs)
        n_latents = len(measurement.groups)
        _warn_if_no_latent(n_latents, panel, self.local)
        progress(f"{n_latents} latents")
        graph, emission = learn_global_graph(
            panel, self.local, measurement, graphs, options
        )
        progress(f"{int(graph.intra.sum() + graph.inter.sum())} edges")
        em = EMOptions(self.max_iter, self.tol, self.max_joint_states)
        cardinality = [len(emission[f.argmax()]) for f in graph.structure]
        ascent = fit_chain(panel, graph, cardinality, emission, em)
        ascent = choose_emissions(panel, ascent, em)
        progress(f"log-likelihood {ascent.statistics.log_likelihood:.6g}")
        if not training.sample.is_all:
            encoded = training.blocks.map(encode_block, training.encoder)
            ascent = climb_chain(
                ascent.state,
                encoded,
                em,
                lambda n, value: n and progress(f"log-posterior {value:.6g}"),
            )
        warn_if_approximate(ascent.state)
        self._store(ascent.state, training.encoder, Imputer(panel))
        self._store_fit(
            ascent.statistics.log_likelihood,
            training.sample.total,
            is_exact=ascent.state.is_exact(),
        )
        self.local_graphs_ = graphs
        self.support_ = measure_support(graphs, graph)
        self.n_iter_ = ascent.n_iter
        self.converged_ = ascent.converged
        # A callback may have asked for fewer steps.
        if not self.converged_ and self.n_iter_ >= self.max_iter:
            warn(
                f"EM did not converge in max_iter={self.max_iter} iterations.",
                ConvergenceWarning,
            )


class LGLPCCTemporal(StructureLearner, Forecaster):
    """Latent variables over time, from sequences of discrete features.

    Learns how many latents there are, which features measure each, how many states
    they have, and how they cause each other within a slice and from one slice to the
    next [1]_. The result is a dynamic Bayesian network that infers latents, fills gaps,
    scores and draws sequences.

    A local graph is learned for every pair of consecutive slices, or for windows of
    several pairs where sequences are few, and the local graphs vote for the features
    that share a latent. Numbers of states are chosen by BIC of the chain of each latent
    and its neighbours, and one EM on the chain of all slices gives the tables.

    Parameters
    ----------
    n_slices : int, default=1
        Number of slices of a row of a two-dimensional `X`. Three-dimensional data
        brings its own.
    local : {"bic", "lpcc"}, default="bic"
        How local graphs are learned. "bic": features share a latent where one hidden
        class explains them better than two dependent ones, and edges are those of
        highest BIC given expected counts; in the vote for an edge, each pair of slices
        weighs as much as its evidence. "lpcc": pairwise cluster comparison and a
        majority vote for edges, as published [1]_ [2]_; it needs clean data.
    cardinality : "auto" or int, default="auto"
        Number of states of every latent. "auto": chosen by BIC for each.
    max_cardinality : int, default=6
        Largest number of states that "auto" tries.
    emissions : str, list or dict, default="auto"
        How each feature shows the state of its latent: a kind for all features, a list
        of one per feature of a slice, or a dictionary by name or number, in which
        features that are not named are "auto". "categorical": a probability of each
        category by state; numbers are cut into bins. "memory": also by the category
        before. "gaussian": a mean and a standard deviation by state; "gaussian memory":
        a linear regression on the number before; "lognormal", "lognormal memory": the
        same of logarithms. "ordinal": categories in order, with one location by state;
        "ordinal memory": shifted by the category before. "auto": numbers with many
        values are gaussian or lognormal, ordered pandas categories ordinal if BIC
        prefers that, all others categorical; memory is added where BIC gains.
    n_bins : int, default=4
        Numbers that are not whole, or that take more than `max_categories` values, are
        cut into as many bins of about equal size while the latents are sought, and for
        emissions of categories.
    max_categories : int, default=10
        Whole numbers up to this many values are categories.
    max_joint_states : int, default=500
        Joint states of connected latents up to which inference is exact. Above, it is
        factored, with a warning.
    max_iter : int, default=200
        Maximum number of EM iterations on the chain of all slices.
    tol : float, default=1e-4
        EM has converged when its log-posterior gains no more than this per sequence
        and iteration, and the gains are not about to grow again.
    n_jobs : int or None, default=None
        Number of local graphs that are learned at the same time, through joblib.
    random_state : int, RandomState instance or None, default=None
        Source of the random starts of latent class models, and of the sample of
        batches or of a Dask collection.
    verbose : int, default=0
        Whether to report progress.

    Attributes
    ----------
    structure_ : ndarray of bool of shape (n_latents, n_observed)
        Features of each latent. A feature that depends on nothing measures none.
    intra_ : ndarray of bool of shape (n_latents, n_latents)
        Edges within a slice: ``[i, j]`` and not ``[j, i]`` is i -> j; both are an
        undirected edge, whose direction the data cannot tell.
    inter_ : ndarray of bool of shape (n_latents, n_latents)
        Edges from latent i to latent j of the next slice.
    cardinality_ : ndarray of int of shape (n_latents,)
        Number of states of each latent.
    graph_ : TemporalGraph
        The three matrices as one object.
    local_graphs_ : list of LocalGraph
        One per pair of consecutive slices; where sequences are few or long, one per
        window of several pairs.
    support_ : Support
        Share of the local graphs behind each possible edge, in the matrices
        ``structure``, ``intra`` and ``inter``.
    start_, transition_ : list of ndarray
        Tables of the fitted network.
    emission_ : list of ndarray or Emission
        Emission of each feature; of a categorical one P(category | state).
    network_ : LatentDBN
        The fitted network.
    categories_ : list of ndarray
        Labels of each feature of a slice, by number; none for numbers.
    n_latents_ : int
        Number of latents.
    n_slices_ : int
        Number of slices seen in `fit`.
    n_observed_ : int
        Number of features per slice.
    log_likelihood_ : float
        Log-likelihood of the training data; a lower bound if `is_exact_` is False.
    bic_ : float
        Bayesian information criterion of the training data; lower is better.
    is_exact_ : bool
        Whether inference is exact, with at most `max_joint_states` joint states.
    n_iter_ : int
        Number of iterations of the last EM.
    converged_ : bool
        Whether it converged.
    n_features_in_ : int
        Number of slices times number of features per slice.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if `X` has string names.

    See Also
    --------
    LPCC : The same for rows without time.
    SEMDBN : Structural EM, slower and told the number of latents.
    sequences_from_frame : Makes sequences of a long table.

    References
    ----------
    .. [1] Halbersberg, D., Lerner, B. (2020). Local to global learning of a latent
       dynamic Bayesian network. ECAI.
    .. [2] Asbeh, N., Lerner, B. (2016). Learning latent variable models by pairwise
       cluster comparison. Journal of Machine Learning Research, 17.

    Examples
    --------
    >>> from sklearn_latent import LGLPCCTemporal
    >>> from sklearn_latent.datasets import make_latent_dbn
    >>> data = make_latent_dbn("G3", n_sequences=1000, n_slices=4, random_state=0)
    >>> model = LGLPCCTemporal(n_slices=4, random_state=0).fit(data.X)
    >>> model.structure_.astype(int)
    array([[1, 1, 1, 0, 0, 0],
           [0, 0, 0, 1, 1, 1]])
    >>> model.cardinality_
    array([4, 4])
    >>> model.intra_.astype(int), model.inter_.astype(int)
    (array([[0, 1],
           [0, 0]]), array([[0, 0],
           [0, 1]]))
    """

    def __init__(
        self,
        n_slices: int = 1,
        *,
        local: str = "bic",
        cardinality: int | str = "auto",
        max_cardinality: int = 6,
        emissions: Any = "auto",
        n_bins: int = 4,
        max_categories: int = 10,
        max_joint_states: int = 500,
        max_iter: int = 200,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.n_slices = n_slices
        self.local = local
        self.cardinality = cardinality
        self.max_cardinality = max_cardinality
        self.emissions = emissions
        self.n_bins = n_bins
        self.max_categories = max_categories
        self.max_joint_states = max_joint_states
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


def _warn_of_poor_data(panel: Panel, encoder: PanelEncoder, unit: str) -> None:
    """Say what cannot be learned from; `unit` is what a row of the data is called."""
    codes = panel.codes
    empty = int((codes < 0).all(axis=(1, 2)).sum())
    if empty == len(codes):
        warn(
            "X has no value at all, so nothing can be learned from it.",
            PoorDataWarning,
        )
    elif empty:
        warn(
            f"{empty} of {len(codes)} {unit} have no value at all and say nothing.",
            PoorDataWarning,
        )
    constant = np.flatnonzero(panel.n_categories < 2)
    if len(constant):
        names = ", ".join(encoder.name_of(j) for j in constant[:10])
        warn(f"Features with one value measure no latent: {names}.", PoorDataWarning)


def _warn_if_no_latent(n_latents: int, panel: Panel, local: str) -> None:
    """Say so if no latent was found."""
    if n_latents or not (panel.n_categories > 1).any():
        return
    if local == "lpcc":
        reason = (
            "no two features change together in all comparisons of large clusters, "
            'which takes clean data; local="bic" needs less'
        )
    elif panel.n_slices == 1:
        reason = "the features show no dependence, or the rows are too few to tell"
    else:
        reason = (
            "the features depend neither on each other nor on their own past, or the "
            "sequences are too few to tell"
        )
    warn(
        f"No latent found: {reason}. The model treats all values as independent.",
        PoorDataWarning,
    )
