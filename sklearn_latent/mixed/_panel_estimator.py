"""What the estimators of panel data share: inference, imputation and export."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from .._answers.diagnosis import Subject
from .._answers.explain import Evidence, Explanation
from .._answers.protocol import GraphParts
from .._answers.summary import Parts
from .._core.progress import Progress, with_callbacks
from .._core.transaction import all_or_nothing
from .._core.validation import check_choice
from .._tables.fill import fill_gaps
from .._tables.schema import is_missing
from .._tables.single_row import SingleRow
from ._em.chain_em import replace_tables
from ._em.hybrid import STRATEGIES
from ._emissions.emission import Emission
from ._forecast import Forecast
from ._graph import TemporalGraph
from ._latent_dbn import LatentDBN
from ._misfit_of_sequences import subject_of
from ._mixed_answers import choose_slice, describe, part_of
from ._panel_input import PanelInput
from ._panels.frames import fill_long
from ._panels.panel import is_known
from ._panels.sequences import Sequences

if TYPE_CHECKING:
    pass

# Values of the forward pass that are held at a time, 128 MB.
BATCH_VALUES = 2**24


class PanelModel(PanelInput):
    """Base class of the estimators whose fitted model is a `LatentDBN`.

    A subclass has the parameters that ``_check_parameters`` names and, if its rows have
    time, ``n_slices``. It says how many steps it reports (``_max_steps``), and its
    ``_learn`` starts with ``_read_training`` and ends with ``_store`` and
    ``_store_fit``.
    """

    network_: LatentDBN
    graph_: TemporalGraph
    structure_: np.ndarray
    intra_: np.ndarray
    inter_: np.ndarray
    cardinality_: np.ndarray
    start_: list[np.ndarray]
    transition_: list[np.ndarray]
    emission_: list[np.ndarray | Emission]
    categories_: list[np.ndarray]
    n_iter_: int
    converged_: bool

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the structure and the tables.

        Parameters
        ----------
        X : array-like of shape (n_sequences, n_slices * n_observed) or \
(n_sequences, n_slices, n_observed)
            Sequences; NaN is missing. Also an iterator of such batches or, with Dask
            installed, a Dask array or data frame of two dimensions. `LPCC` and
            `LGLPCCTemporal` then learn latents, edges and categories from a random
            sample of at most 20,000 sequences, and tables from all of them, on the
            workers that hold them; `SEMDBN` gathers all.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_sequences,) or None, default=None
            Weights of the sequences. Whole numbers are counts: a weight of 2 is a
            sequence twice. If any is not whole, all are sampling weights, whose scale
            does not matter.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        self._check_parameters()
        max_steps = self._max_steps(X)
        with (
            Progress(self, max_steps=max_steps, X=X) as progress,
            all_or_nothing(self),
            # A second thread gains nothing on small matrices, and waits for a core that
            # is busy: two fits of pbcseq side by side took 50 s each instead of 5.
            threadpool_limits(1),
        ):
            self._learn(X, sample_weight, progress)
        return self

    # Fitted attributes

    def _store(self, network, encoder, hybrid):
        """Set the network and what follows from it, at the end of ``fit``."""
        graph = network.graph
        if self.n_features_in_ == graph.n_observed and not graph.inter.any():
            # There is no second slice to learn from: it is like the first.
            network = replace_tables(network, transition=network.start)
        self.network_ = network
        self.graph_ = graph
        self.structure_ = graph.structure
        self.intra_ = graph.intra
        self.inter_ = graph.inter
        self.cardinality_ = np.asarray(network.cardinality, dtype=int)
        self.n_latents_ = graph.n_latents
        self.start_ = network.start
        self.transition_ = network.transition
        self.emission_ = network.emission
        self.categories_ = encoder.labels
        self._encoder = encoder
        self._hybrid = hybrid

    # Inference

    def _in_batches(self, codes, function):
        """Apply a function of codes to a bounded number of sequences at a time."""
        return np.concatenate(self._batch_results(codes, function))

    def _batch_results(self, codes, function) -> list:
        """What a function says of each batch of sequences."""
        n_states = int(np.prod(np.minimum(self.cardinality_, 32.0))) or 1
        n_states = min(n_states, 2**12)
        n_rows = max(1, BATCH_VALUES // (codes.shape[1] * n_states))
        return [function(codes[rows]) for rows in gen_batches(len(codes), n_rows)]

    def transform(self, X: Any) -> np.ndarray:
        """Infer the states of the latents in each slice.

        Parameters
        ----------
        X : array-like of shape (n_sequences, n_slices * n_observed) or \
(n_sequences, n_slices, n_observed)
            Sequences; NaN is missing. If `fit` got sequences of a long table, also
            such a table.

        Returns
        -------
        posterior : ndarray of shape (n_sequences, n_slices * n_states)
            P(state | whole sequence), slice by slice, in each latent by latent;
            ``n_states`` is the sum of ``cardinality_``. For a long table, a long table:
            a row per visit and a column per state.
        """
        check_is_fitted(self)
        sequences = self._sequences_of(X)
        posterior = self._in_batches(self._encode(sequences), self._posterior)
        if sequences is X:
            return posterior
        states = posterior.reshape(*sequences.shape[:2], int(self.cardinality_.sum()))
        return _long_table(sequences, self._state_names(), states)

    def _posterior(self, codes):
        """Posterior of all latents in all slices, as rows."""
        nothing = np.zeros((*codes.shape[:2], 0))
        parts = [nothing, *self.network_.posterior(codes)]
        return np.concatenate(parts, axis=2).reshape(len(codes), -1)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable path of the latents (Viterbi).

        Parameters
        ----------
        X : array-like of shape (n_sequences, n_slices * n_observed) or \
(n_sequences, n_slices, n_observed)
            Sequences; NaN is missing. If `fit` got sequences of a long table, also
            such a table.

        Returns
        -------
        states : ndarray of shape (n_sequences, n_slices, n_latents)
            State numbers that have the highest probability together; for rows without
            time of shape (n_samples, n_latents). For a long table, a long table: a row
            per visit and a column per latent.
        """
        check_is_fitted(self)
        sequences = self._sequences_of(X)
        states = self._in_batches(self._encode(sequences), self.network_.viterbi)
        if sequences is X:
            return self._without_time(states)
        return _long_table(sequences, self.latent_names_, states)

    def _evidence(self, row: SingleRow, slice: Any = None) -> Evidence:
        codes = self._encode(row.table)[0]
        n_slices, known = len(codes), is_known(codes)
        times = self._times_of(n_slices)
        t = choose_slice(slice, times, known)
        # Warns if inference is approximate, once for all of the rows to come.
        found = self.network_.posterior(codes[np.newaxis])
        states = {j: int(one[0, t].argmax()) for j, one in enumerate(found)}
        return Evidence(
            partial(part_of, self.network_, self._states_of, codes, t, states),
            row.cells,
            self._node_names() * n_slices,
            np.repeat(times, known.shape[1]).tolist() if n_slices > 1 else None,
            states,
            times[t] if n_slices > 1 else None,
        )

    def _states_of(self, codes) -> list[np.ndarray]:
        """Posterior of each latent, without warnings."""
        network = self.network_
        parts = self._batch_results(
            codes, lambda part: network._expect(network._data(part)).states
        )
        return [np.concatenate(own) for own in zip(*parts, strict=True)]

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each sequence, in nats.

        Parameters
        ----------
        X : array-like of shape (n_sequences, n_slices * n_observed) or \
(n_sequences, n_slices, n_observed)
            Sequences; NaN is missing and is summed out.

        Returns
        -------
        log_likelihood : ndarray of shape (n_sequences,)
            Log-probability of the categories of each sequence, and log-density of its
            numbers.
        """
        return self._in_batches(self._encode(X), self.network_.log_likelihood)

    def _describe(self) -> Parts:
        return describe(self)

    def _subject(self, X: Any) -> Subject:
        panel = self._panel_of(X)[1]
        return subject_of(
            self.network_,
            panel,
            self._node_names(),
            self.latent_names_,
            self._times_of(panel.n_slices),
            [[str(label) for label in own] for own in self.categories_],
            self._n_learned,
        )

    def _times_of(self, n_slices: int) -> list[str]:
        """Names of slices; numbers if there are more or less than in ``fit``."""
        names = self._slice_names()
        return names if len(names) == n_slices else [str(t) for t in range(n_slices)]

    def impute(self, X: Any, strategy: str = "hybrid") -> Any:
        """Fill missing values with the most probable ones, numbers with their mean.

        Parameters
        ----------
        X : array-like of shape (n_sequences, n_slices * n_observed) or \
(n_sequences, n_slices, n_observed)
            Sequences; NaN and None are missing. If `fit` got sequences of a long table,
            also such a table.
        strategy : {"hybrid", "posterior"}, default="hybrid"
            "posterior": given the latents, as the model has it. "hybrid": also given
            the other values of the feature in the sequence, first of all the previous
            and the next one, which real panels often follow closer than any latent,
            the other features of the slice, and the level of the slice. It is learned
            at its first use, for which the estimator keeps up to 2,000 training
            sequences; so does a saved estimator.

        Returns
        -------
        filled : same type and shape as X
            `X` with its missing values filled, and all others as they were. A binned
            column is filled with a typical value of the bin; labels that name the rows
            are not filled.
        """
        check_choice("strategy", strategy, STRATEGIES)
        check_is_fitted(self)
        sequences = self._sequences_of(X)
        values, panel = self._panel_of(sequences)
        filled = self._in_batches(
            panel.values, lambda part: self._hybrid.fill(self.network_, part, strategy)
        )
        found = self._encoder.decode(filled)
        if sequences is not X:
            return fill_long(X, sequences, found)
        gaps = is_missing(values) & ~is_missing(found)
        filled = fill_gaps(X, gaps, found)
        is_named = isinstance(X, Sequences) and X.labels is not None
        return X.like(filled) if is_named else filled

    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw sequences from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of sequences.
        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        X : ndarray of shape (n_samples, n_slices * n_observed)
            Values as in the training data; a binned column holds a typical value of
            each bin.
        Z : ndarray of shape (n_samples, n_slices, n_latents)
            The states behind them, shaped as in `predict`.
        """
        check_is_fitted(self)
        codes, states = self.network_.sample(
            n_samples, self.n_slices_, random_state=random_state
        )
        X = self._encoder.decode(codes).reshape(n_samples, -1)
        return X, self._without_time(states)

    def _without_time(self, states):
        """States of rows without time have no axis of slices."""
        return states if hasattr(self, "n_slices") else states[:, 0]

    # Export

    def _graph(self, latents: list, features: list) -> GraphParts:
        # A single local graph is no vote.
        votes = len(getattr(self, "local_graphs_", ())) > 1
        support = getattr(self, "support_", None) if votes else None
        return self.network_._graph(latents, features, support=support)


class Forecaster(PanelModel):
    """Base class of the estimators whose rows have time."""

    def explain(
        self, row: Any, *, latents: Any = None, slice: int | str | None = None
    ) -> Explanation:
        """Which cells of a sequence moved the states of latents, and by how much.

        As `explain` of other estimators, for the most probable state of each latent in
        one slice; cells of all slices count.

        Parameters
        ----------
        row : array-like of shape (n_slices * n_observed,) or (n_slices, n_observed)
            The sequence; NaN is missing. Also a series, a dictionary or a frame of one
            row and, if `fit` got sequences of a long table, such a table.
        latents : str, int, list of these or None, default=None
            Names or numbers of the latents to explain; None: all.
        slice : int, str or None, default=None
            Number of the slice, or its name in a long table; None: the last one that
            has a value.

        Returns
        -------
        explanation : Explanation
            Prints as text; ``to_frame()`` is a table, ``plot()`` a picture.
        """
        return self._explain(row, latents, slice=slice)

    def forecast(self, X: Any, n_steps: int = 1, strategy: str = "hybrid") -> Forecast:
        """What to expect of the slices after the last recorded one of each sequence.

        Parameters
        ----------
        X : array-like of shape (n_sequences, n_slices * n_observed) or \
(n_sequences, n_slices, n_observed)
            Sequences; NaN is missing, and a sequence ends with its last slice that has
            a value. If `fit` got sequences of a long table, also such a table.
        n_steps : int, default=1
            Number of slices.
        strategy : {"hybrid", "posterior"}, default="hybrid"
            "posterior": as the model has it, like ``network_.forecast``. "hybrid":
            corrected by the last values of all features, earlier ones of the feature
            and the level of the slice, as far as that helps to forecast slices of the
            training sequences from those before. It is learned at its first use, as
            for `impute`. ``states`` are those of the model.

        Returns
        -------
        forecast : Forecast
            ``probabilities`` of the categories of each feature, most probable
            ``values`` in the labels of the data, ``states`` of the latents, and
            ``to_frame()``. With "posterior" exact where `is_exact_` is True; a numeric
            feature that follows its own past is approximated after the first step.
        """
        check_choice("strategy", strategy, STRATEGIES)
        check_is_fitted(self)
        sequences = self._sequences_of(X)
        codes = self._encode(sequences)
        forecast = partial(self._hybrid.forecast, self.network_)
        parts = self._batch_results(codes, lambda x: forecast(x, n_steps, strategy))
        found = Forecast.joined(parts)
        labels = getattr(sequences, "labels", None)
        return replace(
            found,
            values=self._encoder.decode(found.values),
            feature_names=self._node_names(),
            sequence_labels=np.arange(len(codes))
            if labels is None
            else labels.sequences,
        )


def _long_table(sequences: Sequences, names, values):
    """Long table of values of shape (n_sequences, n_slices, n_names)."""
    columns = {name: values[:, :, k] for k, name in enumerate(names)}
    return sequences.known_labels.to_frame(columns)
