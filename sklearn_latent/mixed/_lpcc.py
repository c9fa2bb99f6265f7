"""Latents behind the columns of a table: what learns them, and `LPCC`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._core.climb import Ascent
from .._core.graphs import slice_equivalence_class
from .._core.validation import (
    MOST_COLUMNS,
    check_choice,
    check_count,
    check_random_state,
)
from .._core.warn import warn
from .._tables.blocks import is_blockwise
from ..exceptions import PoorDataWarning
from ._column_groups import SearchOptions
from ._em.chain_em import EMOptions, climb_chain, fit_chain
from ._em.choice import fit_with_kinds
from ._em.hybrid import Hybrid
from ._graph import TemporalGraph
from ._inference.expectation import warn_if_approximate
from ._latent_search import find_latents, vote_for_latents
from ._local_graphs import LocalGraph
from ._mutual_information import cut_hierarchy, latent_hierarchy
from ._panel_estimator import PanelModel
from ._panel_input import Training
from ._panels.encoding import PanelEncoder
from ._panels.panel import Panel
from ._panels.reading import MAX_SAMPLE, encode_block
from ._redundant import Redundant


class LatentLearner(PanelModel):
    """Base class of what learns latents: columns, groups, states, edges, tables."""

    duplicates_: list[list[int]]
    constant_features_: np.ndarray
    hierarchy_: np.ndarray
    # What a row of the data is called, and whether `n_jobs` is a parameter.
    _unit = "sequences"
    n_jobs: int | None = None

    def _check_parameters(self):
        """Refuse parameters of the wrong kind."""
        super()._check_parameters()
        check_choice("local", self.local, ("bic", "lpcc"))
        if isinstance(self.cardinality, str):
            check_choice("cardinality", self.cardinality, ("auto",))
        else:
            check_count("cardinality", self.cardinality, 2, MOST_COLUMNS)
        check_count("max_cardinality", self.max_cardinality, 2)

    def _max_steps(self, X) -> int:
        """Three steps, and those of EM over blocks, which are reported one by one."""
        return 3 + (self.max_iter if is_blockwise(X) else 0)

    def _learn(self, X, sample_weight, progress):
        """From rows to fitted attributes."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        most = MAX_SAMPLE if is_blockwise(X) else None
        training = self._read_training(X, sample_weight, most)
        panel, encoder = training.panel, training.encoder
        _warn_of_poor_data(panel, encoder, self._unit)
        redundant = self._find_redundant(panel, encoder)

        def fit_network(panel, progress):
            return self._fit_network(panel, redundant, seed, progress)

        ascent, found = fit_network(panel, progress)
        progress(f"log-likelihood {ascent.statistics.log_likelihood:.6g}")
        ascent, found = self._over_time(ascent, found, training, fit_network)
        if not training.sample.is_all:
            ascent = climb_chain(
                ascent.state,
                training.blocks.map(encode_block, encoder),
                self._em_options(),
                lambda n, value: n and progress(f"log-posterior {value:.6g}"),
            )
        warn_if_approximate(ascent.state)
        self._store(ascent.state, encoder, Hybrid(panel))
        self.hierarchy_ = self._hierarchy(panel)
        self._warn_if_no_latents(
            _why_no_latent(panel.of_features(redundant.kept), self.local)
        )
        self._store_ascent(ascent, training.sample.total)
        self._report_over_time(ascent, found, panel)

    def _fit_network(self, panel: Panel, redundant: Redundant, seed, progress):
        """The result of EM, and the latents that it started from with local graphs."""
        n_states = None if self.cardinality == "auto" else int(self.cardinality)
        options = SearchOptions(self.max_cardinality, n_states, seed)
        graphs: list[LocalGraph] = []
        if self.local == "lpcc":
            redundant = Redundant.none(panel.n_observed)
            found, graphs = vote_for_latents(panel, options, self.n_jobs)
            intra = found.intra
        else:
            found = find_latents(panel, redundant, options, self.max_joint_states)
            intra = slice_equivalence_class(found.intra, found.inter)
        progress(f"{len(found.latents)} latents")
        structure = redundant.with_copies(found.graph(panel.n_observed).structure)
        graph = TemporalGraph(structure, intra, found.inter)
        progress(f"{int(graph.intra.sum() + graph.inter.sum())} edges")
        emission: list = found.emission(panel)
        for f in np.flatnonzero(redundant.copy_of != np.arange(panel.n_observed)):
            # EM starts from what the latent of the original says of a copy.
            emission[f] = None if structure[:, f].any() else emission[f]
        em, cards = self._em_options(), found.cardinality
        if self.local == "lpcc":  # as published, features have no memory
            return fit_chain(panel, graph, cards, emission, em), (found, graphs)
        may_join = n_states is None
        ascent = fit_with_kinds(panel, graph, cards, emission, em, may_join=may_join)
        return ascent, (found, graphs)

    def _em_options(self) -> EMOptions:
        """How EM of the tables runs."""
        return EMOptions(self.max_iter, self.tol, self.max_joint_states)

    def _over_time(self, ascent: Ascent, found, training: Training, fit_network):
        """Another result of EM if the process changes; tables of one slice do not."""
        return ascent, found

    def _report_over_time(self, ascent: Ascent, found, panel: Panel) -> None:
        """Attributes and warnings of what has time."""

    def _store_ascent(self, ascent: Ascent, total: float) -> None:
        """Keep what EM reached, and say so if it was cut short."""
        self._store_fit(
            ascent.statistics.log_likelihood, total, is_exact=ascent.state.is_exact()
        )
        self.n_iter_ = ascent.n_iter
        self.converged_ = ascent.converged
        # A callback may have asked for fewer steps.
        if not self.converged_ and self.n_iter_ >= self.max_iter:
            warn(
                f"EM did not converge in max_iter={self.max_iter} iterations.",
                ConvergenceWarning,
            )

    def group_latents(self, n_groups: int | None = None) -> np.ndarray:
        """Group latents that depend on each other, such as facets of one trait.

        Items of one trait often share more than the trait, and are then measurements of
        several latents. The hierarchy of latents (`hierarchy_`) is cut into groups.

        Parameters
        ----------
        n_groups : int or None, default=None
            Number of groups. None: as many as are left before the longest step of the
            hierarchy.

        Returns
        -------
        labels : ndarray of int of shape (n_latents,)
            Group of each latent, from 0 on.

        Examples
        --------
        >>> from sklearn_latent import LPCC
        >>> from sklearn_latent.datasets import make_latent_dbn
        >>> data = make_latent_dbn("G2", n_sequences=2000, n_slices=1, random_state=0)
        >>> LPCC(random_state=0).fit(data.X).group_latents(1)
        array([0, 0])
        """
        check_is_fitted(self)
        if n_groups is not None:
            check_count("n_groups", n_groups, 1, max(self.n_latents_, 1))
        return cut_hierarchy(self.hierarchy_, n_groups)[: self.n_latents_]

    def _hierarchy(self, panel: Panel) -> np.ndarray:
        """Hierarchy of latents by the states of all slices that have values."""
        if self.n_latents_ < 2:
            return np.zeros((0, 4))

        def likeliest(values):
            # Not `posterior`: a warning of factored inference has been given.
            parts = self.network_._expect(self.network_._data(values)).states
            return np.stack([part.argmax(axis=2) for part in parts], axis=2)

        states = self._in_batches(panel.values, likeliest)
        known = (panel.codes >= 0).any(axis=2)
        weights = np.broadcast_to(panel.weights[:, None], known.shape)
        return latent_hierarchy(states[known], self.cardinality_, weights[known])

    def _find_redundant(self, panel: Panel, encoder: PanelEncoder) -> Redundant:
        """Near-duplicates and features that never change, with a word about them."""
        found = Redundant.of(panel)
        self.duplicates_ = found.groups
        self.constant_features_ = np.flatnonzero(found.constant)
        for group in found.groups[:10]:
            warn(
                f"Features are nearly the same: {encoder.names_of(group)}. They "
                + ("share a latent, and " if self.local == "bic" else "")
                + "count as so many measurements; consider leaving one.",
                PoorDataWarning,
            )
        if found.constant.any():
            warn(
                "Features that never change within a sequence measure no latent: "
                f"{encoder.names_of(self.constant_features_[:10])}.",
                PoorDataWarning,
            )
        return found


class LPCC(LatentLearner):
    """Latent variables behind discrete features, each of which measures one latent.

    Learns how many latents there are, which features measure each, how many states
    they have and which of them depend on each other. Named after learning by pairwise
    cluster comparison [1]_, which ``local="lpcc"`` runs as published; the default
    compares models by BIC instead and needs less data.

    Parameters
    ----------
    local : {"bic", "lpcc"}, default="bic"
        "bic": features share a latent where one hidden class explains them better than
        two dependent ones, and edges are those of highest BIC given expected counts.
        "lpcc": both stages of pairwise cluster comparison.
    cardinality : "auto" or int, default="auto"
        Number of states of every latent. "auto": chosen by BIC for each.
    max_cardinality : int, default=6
        Largest number of states that "auto" tries.
    emissions : str, list or dict, default="auto"
        How each feature shows the state of its latent: a kind for all features, a list
        of one per feature of a slice, or a dictionary by name or number, in which
        features that are not named are "auto". "categorical": a probability of each
        category by state; numbers are cut into bins. "gaussian": a mean and a standard
        deviation by state; "lognormal": the same of logarithms. "ordinal": categories
        in order, with one location by state. "auto": numbers with many values are
        gaussian or lognormal, ordered pandas categories ordinal if BIC prefers that,
        all others categorical. Kinds with a memory are for rows with time.
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
        Maximum number of EM iterations.
    tol : float, default=1e-4
        EM has converged when its log-posterior gains no more than this per row and
        iteration, and the gains are not about to grow again.
    random_state : int, RandomState instance or None, default=None
        Source of the random starts of latent class models, and of the sample of
        batches or of a Dask collection.
    verbose : int, default=0
        Whether to report progress.

    Attributes
    ----------
    structure_ : ndarray of bool of shape (n_latents, n_features)
        Features of each latent. A feature that depends on nothing measures none.
    intra_ : ndarray of bool of shape (n_latents, n_latents)
        Edges: ``[i, j]`` and not ``[j, i]`` is i -> j; both are an undirected edge,
        whose direction the data cannot tell.
    cardinality_ : ndarray of int of shape (n_latents,)
        Number of states of each latent.
    graph_ : TemporalGraph
        The matrices as one object, with no edges into a next slice.
    start_ : list of ndarray
        Tables of the fitted network.
    emission_ : list of ndarray or Emission
        Emission of each feature; of a categorical one P(category | state).
    network_ : LatentDBN
        The fitted network, with one slice.
    categories_ : list of ndarray
        Labels of each feature, by number; none for numbers.
    n_latents_ : int
        Number of latents.
    duplicates_ : list of list of int
        Groups of features that are nearly the same, which share a latent.
    hierarchy_ : ndarray of shape (n_latents - 1, 4)
        Hierarchy of the latents as a linkage matrix of `scipy.cluster.hierarchy`:
        complete linkage by one less the normalised mutual information of their most
        probable states.
    log_likelihood_ : float
        Log-likelihood of the training data; a lower bound if `is_exact_` is False.
    bic_ : float
        Bayesian information criterion of the training data; lower is better.
    is_exact_ : bool
        Whether inference is exact, with at most `max_joint_states` joint states.
    n_iter_ : int
        Number of EM iterations.
    converged_ : bool
        Whether it converged.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has string names.

    See Also
    --------
    LGLPCCTemporal : For sequences.

    References
    ----------
    .. [1] Asbeh, N., Lerner, B. (2016). Learning latent variable models by pairwise
       cluster comparison. Journal of Machine Learning Research, 17.

    Examples
    --------
    >>> from sklearn_latent import LPCC
    >>> from sklearn_latent.datasets import make_latent_dbn
    >>> data = make_latent_dbn("G2", n_sequences=2000, n_slices=1, random_state=0)
    >>> model = LPCC(random_state=0).fit(data.X)
    >>> model.structure_.astype(int)
    array([[1, 1, 1, 0, 0, 0],
           [0, 0, 0, 1, 1, 1]])
    >>> model.cardinality_
    array([4, 4])
    >>> model.transform(data.X).shape
    (2000, 8)
    """

    _unit = "rows"

    def __init__(
        self,
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
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.local = local
        self.cardinality = cardinality
        self.max_cardinality = max_cardinality
        self.emissions = emissions
        self.n_bins = n_bins
        self.max_categories = max_categories
        self.max_joint_states = max_joint_states
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose


def _warn_of_poor_data(panel: Panel, encoder: PanelEncoder, unit: str) -> None:
    """Say what cannot be learned from; `unit` is what a row of the data is called."""
    codes = panel.codes
    empty = int((codes < 0).all(axis=(1, 2)).sum())
    if 0 < empty < len(codes):
        warn(
            f"{empty} of {len(codes)} {unit} have no value at all and say nothing.",
            PoorDataWarning,
        )
    constant = np.flatnonzero(panel.n_categories < 2)
    constant = np.setdiff1d(constant, encoder.set_aside)
    # Without any other feature there is no latent, which is another warning.
    if 0 < len(constant) < len(panel.n_categories):
        names = encoder.names_of(constant[:10])
        warn(f"Features with one value measure no latent: {names}.", PoorDataWarning)


def _why_no_latent(panel: Panel, local: str) -> str:
    """Why no latent may have been found."""
    if not panel.n_observed:
        return "no feature changes within a sequence"
    if (panel.codes < 0).all():
        return "X has no value at all, so nothing can be learned from it"
    if not (panel.n_categories > 1).any():
        return "no feature takes more than one value"
    if local == "lpcc":
        return (
            "no two features change together in all comparisons of large clusters, "
            'which takes clean data; local="bic" needs less'
        )
    if panel.n_slices == 1:
        return "the features show no dependence, or the rows are too few to tell"
    return (
        "the features do not depend on each other, or the sequences are too few to tell"
    )
