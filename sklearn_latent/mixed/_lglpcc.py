"""Latent variables over time: local graphs of slices, combined to a global one."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from .._core.climb import Ascent
from .._core.validation import (
    MOST_COLUMNS,
    check_choice,
    check_count,
    check_numbers,
    shown,
)
from .._core.warn import warn
from ..exceptions import ApproximateInferenceWarning, ModelMisfitWarning
from ._em.choice import told_by_one_feature
from ._em.epochs import fit_epochs
from ._inference.surprise import Surprise, longer_memory, surprise
from ._latent_search import local_graphs
from ._local_graphs import LocalGraph, Support, measure_support
from ._lpcc import LatentLearner
from ._panel_estimator import Forecaster
from ._panel_input import Training
from ._panels.panel import Panel


class LGLPCCTemporal(LatentLearner, Forecaster):
    """Latent variables over time, from sequences of discrete features.

    Learns how many latents there are, which features measure each, how many states
    they have, and how they cause each other within a slice and from one slice to the
    next [1]_. The result is a dynamic Bayesian network that infers latents, fills gaps,
    scores and draws sequences.

    All slices together, and networks over time, tell which features share a latent.
    Numbers of states are chosen by BIC, given what slices suggest of the neighbours of
    a latent and of its own past and future. One EM on the chain of all slices gives the
    tables. A local graph of every pair of consecutive slices, or of
    windows of several pairs where sequences are few, shows how far the slices agree;
    in the published method, they vote for the graph.

    Parameters
    ----------
    n_slices : int, default=1
        Number of slices of a row of a two-dimensional `X`. Three-dimensional data
        brings its own.
    local : {"bic", "lpcc"}, default="bic"
        How local graphs are learned. "bic": features share a latent where one hidden
        class explains them better than two dependent ones, and edges are those of
        highest BIC given expected counts. "lpcc": pairwise cluster comparison and a
        majority vote for latents and edges, as published [1]_ [2]_; it needs clean
        data.
    cardinality : "auto" or int, default="auto"
        Number of states of every latent. "auto": chosen by BIC for each.
    max_cardinality : int, default=6
        Largest number of states that "auto" tries.
    emissions : str, list or dict, default="auto"
        How each feature shows the state of its latent: a kind for all features, a list
        of one per feature of a slice, or a dictionary by name or number, in which
        features that are not named are "auto". "categorical": a probability of each
        category by state; numbers are cut into bins. "repeat": the category before is
        kept with some probability; "memory": probabilities by state and category
        before. "gaussian": a mean and a standard deviation by state; "gaussian memory":
        a linear regression on the number before; "lognormal", "lognormal memory": the
        same of logarithms. "ordinal": categories in order, with one location by state;
        "ordinal memory": shifted by the category before. "auto": numbers with many
        values are gaussian or lognormal, ordered pandas categories ordinal if BIC
        prefers that, all others categorical; memory is added where BIC gains, unless
        `local` is "lpcc".
    epochs : None, "auto", int or list of int, default=None
        Whether the tables change at some slices. None: they do not; if the data say
        otherwise, there is a warning. "auto": change points are found by BIC. A number
        of epochs, or a list of their first slices. Latents, edges and numbers of states
        are then learned from the longest epoch, and each epoch has tables of its own
        where BIC gains. Exact inference only, and sequences that fit in memory.
    n_bins : int, default=4
        Numbers that are not whole, or that take more than `max_categories` values, are
        cut into as many bins of about equal size while the latents are sought, and for
        emissions of categories.
    max_categories : int, default=10
        Whole numbers up to this many values are categories.
    max_joint_states : int, default=500
        Joint states of latents that inference keeps together, up to which it is exact,
        at most 4,096. Above, it is factored, with a warning; see `LatentDBN`.
    max_iter : int, default=200
        Maximum number of EM iterations on the chain of all slices.
    tol : float, default=1e-4
        EM has converged when its log-posterior gains no more than this per sequence
        and iteration, and the gains are not about to grow again. Of sequences of more
        than 16 slices, each 16 count as one.
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
        The fitted network, of the last epoch; `earlier` has the networks of others.
    categories_ : list of ndarray
        Labels of each feature of a slice, by number; none for numbers.
    epochs_ : ndarray of int of shape (n_epochs,)
        First slices of the epochs.
    n_latents_ : int
        Number of latents.
    duplicates_ : list of list of int
        Groups of features that are nearly the same, which share a latent.
    constant_features_ : ndarray of int
        Features that never change within a sequence, which measure no latent.
    hierarchy_ : ndarray of shape (n_latents - 1, 4)
        Hierarchy of the latents as a linkage matrix of `scipy.cluster.hierarchy`:
        complete linkage by one less the normalised mutual information of their most
        probable states.
    observed_names_ : ndarray of str objects
        Names of the features of a slice.
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
    SEMDBN : Structural EM, which is told the number of latents.
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

    local_graphs_: list[LocalGraph]
    support_: Support
    epochs_: np.ndarray

    def __init__(
        self,
        n_slices: int = 1,
        *,
        local: str = "bic",
        cardinality: int | str = "auto",
        max_cardinality: int = 6,
        emissions: Any = "auto",
        epochs: Any = None,
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
        self.epochs = epochs
        self.n_bins = n_bins
        self.max_categories = max_categories
        self.max_joint_states = max_joint_states
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self):
        super()._check_parameters()
        epochs = self.epochs
        if isinstance(epochs, str):
            check_choice("epochs", epochs, ("auto",))
        elif epochs is None or isinstance(epochs, Integral):
            check_count("epochs", epochs, 1, MOST_COLUMNS, optional=True)
        else:
            firsts = check_numbers("epochs", epochs).reshape(-1)
            if (firsts < 0).any() or (firsts % 1).any() or (np.diff(firsts) <= 0).any():
                raise ValueError(
                    'epochs must be None, "auto", a number or a list of first slices '
                    f"in increasing order, got {shown(epochs)}."
                )

    def _over_time(self, ascent: Ascent, found, training: Training, fit_network):
        panel = training.panel
        self._changes = surprise(ascent.state, panel) if panel.n_slices > 2 else None
        points = self._change_points(self._changes) if self._changes else ()
        if not len(points):
            return ascent, found
        if training.sample.is_all:
            return self._fit_epochs(panel, points, fit_network) or (ascent, found)
        _warn_of_one_epoch("the sequences are not in memory as a whole")
        return ascent, found

    def _report_over_time(self, ascent: Ascent, found, panel: Panel) -> None:
        latents, graphs = found
        if not graphs and latents.latents:
            graphs = local_graphs(panel, latents, self.structure_, self.n_jobs)
        self.local_graphs_ = graphs
        self.support_ = measure_support(graphs, ascent.state.graph)
        points = getattr(ascent.state, "change_points", ())
        self.epochs_ = np.append(0, points).astype(int)
        changes = self.__dict__.pop("_changes")
        # Slices seem to differ where edges are missing, as in the published method.
        if changes and len(self.epochs_) == 1 and self.local == "bic":
            self._warn_of_misfit(changes, panel, ascent)

    def _fit_epochs(self, panel: Panel, points, fit_network):
        """A network per epoch; None if one network is to stay."""
        part = panel.of_slices(_longest_epoch(panel, points))
        some, found = fit_network(part, lambda _: None)
        if not some.state.is_exact():
            _warn_of_one_epoch("the latents have too many joint states")
            return None
        prune = isinstance(self.epochs, str)
        ascent = fit_epochs(panel, some.state, points, self._em_options(), prune=prune)
        return (ascent, found) if len(ascent.state.change_points) else None

    def _change_points(self, changes: Surprise) -> np.ndarray | tuple:
        """First slices of later epochs, by `epochs`."""
        if self.epochs is None:
            return ()
        if isinstance(self.epochs, str):
            return changes.change_points() if changes.is_odd.any() else ()
        if isinstance(self.epochs, Integral):
            return changes.change_points(int(self.epochs))
        firsts = check_numbers("epochs", self.epochs).reshape(-1).astype(int)
        if firsts.max(initial=0) > changes.last:
            raise ValueError(
                f"epochs must be first slices of X, up to {changes.last}, got "
                f"{shown(self.epochs)}."
            )
        return firsts[firsts > 0]

    def _warn_if_process_changes(self, found: Surprise) -> None:
        """Say so if slices contradict each other."""
        if not found.is_odd.any():
            return
        points, names = found.change_points(), self._slice_names()
        odd = found.first[found.is_odd.any(axis=1)]
        times = ", ".join(names[t] for t in (points if len(points) else odd)[:10])
        features = self._encoder.names_of(found.changed_features()[:5])
        warn(
            "The process changes: what follows on the past is different "
            f"{'since' if len(points) else 'at'} slice {times}, "
            f"most in {features}. One model for all slices mixes what "
            'differs, and may need false states for it; epochs="auto" fits several.',
            ModelMisfitWarning,
        )

    def _warn_of_misfit(self, changes, panel: Panel, ascent: Ascent) -> None:
        """Say so if sequences contradict the network that was learned from them."""
        self._warn_if_process_changes(changes)
        self._warn_of_features(
            longer_memory(self.network_, panel),
            "The past is longer than a slice: values of two slices before tell what "
            "the latents do not, most in {}. The model remembers one slice, and may "
            "need false states for the rest.",
        )
        # A process that changes has false states, too.
        if self.cardinality == "auto" and not changes.is_odd.any():
            self._warn_of_features(
                told_by_one_feature(ascent, panel),
                "States of a latent differ in one feature alone: {}. It may follow "
                "another latent as well, and these states may stand for that.",
            )

    def _warn_of_features(self, features, text: str) -> None:
        """Say what is wrong with some features, if there are any."""
        if len(features):
            names = self._encoder.names_of(features[:5])
            warn(text.format(names), ModelMisfitWarning)


def _warn_of_one_epoch(reason: str) -> None:
    """Say that epochs were asked for in vain."""
    warn(
        f"One network is fitted to all epochs, because {reason}.",
        ApproximateInferenceWarning,
    )


def _longest_epoch(panel: Panel, points) -> slice:
    """Slices of the epoch with the most recorded values."""
    recorded = panel.weights @ (panel.codes >= 0).any(axis=2)
    ends = [0, *np.asarray(points).tolist(), panel.n_slices]
    spans = [slice(low, high) for low, high in pairwise(ends)]
    return max(spans, key=lambda span: recorded[span].sum())
