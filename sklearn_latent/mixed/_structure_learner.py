"""What LPCC and LGLPCCTemporal share: from sequences to a fitted model."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._core.climb import Ascent
from .._core.validation import (
    MOST_COLUMNS,
    check_choice,
    check_count,
    check_numbers,
    check_random_state,
    shown,
)
from .._core.warn import warn
from .._tables.blocks import is_blockwise
from ..exceptions import (
    ApproximateInferenceWarning,
    ModelMisfitWarning,
    PoorDataWarning,
)
from ._em.chain_em import EMOptions, climb_chain, fit_chain
from ._em.choice import fit_with_kinds
from ._em.epochs import fit_epochs
from ._em.fewer import told_by_one_feature
from ._em.hybrid import Hybrid
from ._graph import TemporalGraph
from ._hierarchy import cut_hierarchy, latent_hierarchy
from ._inference.expectation import warn_if_approximate
from ._inference.surprise import Surprise, longer_memory, surprise
from ._local.local import learn_global_graph, learn_latents
from ._local.local_to_global import LocalGraph, Support, measure_support
from ._local.redundant import Redundant
from ._measurement.groups import SearchOptions
from ._panel_estimator import PanelModel
from ._panels.encoding import PanelEncoder
from ._panels.panel import Panel
from ._panels.reading import MAX_SAMPLE, encode_block

LOCAL = ("bic", "lpcc")


class StructureLearner(PanelModel):
    """What `LPCC` and `LGLPCCTemporal` share: all but parameters."""

    local_graphs_: list[LocalGraph]
    support_: Support
    epochs_: np.ndarray
    duplicates_: list[list[int]]
    constant_features_: np.ndarray
    hierarchy_: np.ndarray
    # A model without time has one epoch.
    epochs: Any = None
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
        redundant = self._find_redundant(panel, training.encoder)
        em = EMOptions(self.max_iter, self.tol, self.max_joint_states)

        def fit_network(panel, progress):
            return self._fit_network(panel, redundant, options, em, progress)

        ascent, graphs = fit_network(panel, progress)
        progress(f"log-likelihood {ascent.statistics.log_likelihood:.6g}")
        changes = surprise(ascent.state, panel) if panel.n_slices > 2 else None
        points = self._change_points(changes) if changes else ()
        if not training.sample.is_all:
            encoded = training.blocks.map(encode_block, training.encoder)
            ascent = climb_chain(
                ascent.state,
                encoded,
                em,
                lambda n, value: n and progress(f"log-posterior {value:.6g}"),
            )
            if len(points):
                _warn_of_one_epoch("the sequences are not in memory as a whole")
        elif len(points):
            several = self._fit_epochs(panel, points, em, fit_network)
            ascent, graphs = several or (ascent, graphs)
        warn_if_approximate(ascent.state)
        self._store(ascent.state, training.encoder, Hybrid(panel))
        self.hierarchy_ = self._hierarchy(panel)
        kept = panel.of_features(redundant.kept)
        self._warn_if_no_latents(_why_no_latent(kept, self.local))
        self.epochs_ = np.append(0, getattr(ascent.state, "change_points", ())).astype(
            int
        )
        # Slices seem to differ where edges are missing, as in the published method.
        if changes and len(self.epochs_) == 1 and self.local == "bic":
            self._warn_of_misfit(changes, panel, ascent)
        self.local_graphs_ = graphs
        self.support_ = measure_support(graphs, ascent.state.graph)
        self._store_ascent(ascent, training.sample.total)

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

    def _fit_network(self, panel: Panel, redundant: Redundant, options, em, progress):
        """Latents, edges and tables: the result of EM, and local graphs."""
        if self.local == "lpcc":
            redundant = redundant.none_left_out()
        cardinality, *learned = self._learn_graph(panel, redundant, options, progress)
        graph, graphs, emission = redundant.expand(panel, *learned)
        progress(f"{int(graph.intra.sum() + graph.inter.sum())} edges")
        if self.local == "lpcc":
            return fit_chain(panel, graph, cardinality, emission, em), graphs
        may_join = options.n_states is None
        ascent = fit_with_kinds(
            panel, graph, cardinality, emission, em, may_join=may_join
        )
        return ascent, graphs

    def _fit_epochs(self, panel: Panel, points, em, fit_network):
        """A network per epoch and local graphs; None if one network is to stay."""
        part = panel.of_slices(_longest_epoch(panel, points))
        some, graphs = fit_network(part, lambda _: None)
        if not some.state.is_exact():
            _warn_of_one_epoch("the latents have too many joint states")
            return None
        prune = isinstance(self.epochs, str)
        ascent = fit_epochs(panel, some.state, points, em, prune=prune)
        return (ascent, graphs) if len(ascent.state.change_points) else None

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

    def _learn_graph(self, panel: Panel, redundant: Redundant, options, progress):
        """Numbers of states, graph, local graphs and emissions of the features kept."""
        copies = redundant.panels_of_copies(panel)
        panel = panel.of_features(redundant.kept)
        if not panel.n_observed:  # all of them never change
            nothing = np.zeros((0, 0), dtype=bool)
            return [], TemporalGraph(nothing, nothing, nothing), [], []
        measurement, graphs = learn_latents(
            panel, self.local, options, copies, self.n_jobs
        )
        progress(f"{len(measurement.groups)} latents")
        graph, emission = learn_global_graph(
            panel, self.local, measurement, graphs, options
        )
        cardinality = [len(emission[f.argmax()]) for f in graph.structure]
        return cardinality, graph, graphs, emission

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
        "the features depend neither on each other nor on their own past, or the "
        "sequences are too few to tell"
    )
