"""What the estimators of panel data share: input, inference, imputation and export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from .._base import BaseLatentModel
from .._blocks import Blocks
from .._fill import fill_gaps
from .._progress import Progress, with_callbacks
from .._rows import read_blocks
from .._transaction import all_or_nothing
from .._validation import (
    MOST_ROWS,
    check_choice,
    check_columns,
    check_count,
    check_tol,
)
from ._em.impute import IMPUTE_STRATEGIES
from ._emissions.base import Emission
from ._emissions.request import requested_kinds
from ._export import dbn_to_networkx
from ._graph import TemporalGraph
from ._model import LatentDBN
from ._panels.encoding import PanelEncoder, is_missing, known_orders
from ._panels.panel import Panel
from ._panels.reading import (
    CHECKS,
    Sample,
    check_block,
    check_values,
    draw_sample,
    keep_block,
    labels_only,
)

if TYPE_CHECKING:
    import networkx as nx

# Values of the forward pass that are held at a time, 128 MB.
BATCH_VALUES = 2**24


@dataclass(frozen=True)
class Training:
    """The sequences of a fit.

    blocks: all of them, not encoded
    sample: those from which categories and structure are learned
    encoder: made from the sample
    panel: the sample, encoded
    """

    blocks: Blocks
    sample: Sample
    encoder: PanelEncoder
    panel: Panel


class PanelModel(BaseLatentModel):
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.three_d_array = True
        return tags

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
            Weights of the sequences; a weight of 2 is a sequence twice.

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
        ):
            self._learn(X, sample_weight, progress)
        return self

    def _check_parameters(self):
        """Refuse parameters of the wrong kind."""
        for name, least in (("n_bins", 2), ("max_categories", 2), ("max_iter", 1)):
            check_count(name, getattr(self, name), least)
        check_count("max_joint_states", self.max_joint_states, 1, MOST_ROWS)
        check_tol(self.tol)

    # Input

    def _n_slices_of(self, width: int) -> int:
        """Number of slices in a row of `width` values."""
        if width % check_count("n_slices", self.n_slices):
            raise ValueError(
                "X must have a number of columns that n_slices divides, slice after "
                f"slice, got {width} columns and n_slices={self.n_slices}."
            )
        return int(self.n_slices)

    def _check_X(self, X, shape=None) -> np.ndarray:
        """Validate `X` and cut its rows into slices.

        `shape` is (n_slices, n_observed) of sequences seen before, None for the first.
        """
        check_columns("X", X)
        n_slices = None
        n_dimensions = _n_dimensions(X)
        if n_dimensions > 3:
            raise ValueError(
                f"X must have two or three dimensions, got {n_dimensions}."
            )
        if n_dimensions == 3:
            X = check_array(X, allow_nd=True, input_name="X", **CHECKS)
            n_slices, n_observed = X.shape[1:]
            if not n_slices or not n_observed:
                raise ValueError(
                    "X must have at least one slice and one feature, got shape "
                    f"{X.shape}."
                )
            if n_slices > 1 and not hasattr(self, "n_slices"):
                raise ValueError(
                    "X must have one slice, because the model has no time, got shape "
                    f"{X.shape}."
                )
            if shape is not None and n_observed == shape[1]:
                # Tables are the same for all slices, so sequences may be shorter or
                # longer than those of fit.
                return check_values(X)
            X = X.reshape(len(X), -1)
        X = check_values(validate_data(self, X, reset=shape is None, **CHECKS))
        if shape is not None:
            n_slices = shape[0]
        return X.reshape(len(X), n_slices or self._n_slices_of(X.shape[1]), -1)

    def _check_training(self) -> Callable:
        """A function that validates the tables of a fit, all like the first."""
        shape = None

        def check(X):
            nonlocal shape
            values = self._check_X(X, shape)
            if shape not in (None, values.shape[1:]):
                raise ValueError(
                    "X must have sequences of the same shape in all batches, "
                    f"{shape}, got {values.shape[1:]}."
                )
            shape = values.shape[1:]
            return values

        return check

    def _read_training(self, X, sample_weight, seed, most=None) -> Training:
        """Validate the data of ``fit``, and encode at most so many sequences.

        Rows of weight 0 are left out, so that they leave no trace in categories and
        bins either.
        """
        columns = (getattr(X, "shape", None) or [0])[-1]
        if hasattr(X, "columns"):
            columns = list(X.columns)
        blocks = read_blocks(
            X,
            sample_weight,
            self._check_training(),
            partial(
                check_block,
                columns=columns,
                n_slices=getattr(self, "n_slices", 1),
            ),
        )
        if isinstance(X, Iterator):
            blocks = blocks.map(keep_block)
        sample = draw_sample(blocks, seed, most)
        n_observed = sample.values.shape[2]
        names = list(getattr(X, "columns", ()))[:n_observed]
        encoder = PanelEncoder(
            self.n_bins,
            self.max_categories,
            requested_kinds(self.emissions, n_observed, names),
            known_orders(X, n_observed),
        )
        with labels_only():
            encoder.fit(sample.values, sample.weights)
            panel = encoder.panel(sample.values, sample.weights)
        return Training(blocks, sample, encoder, panel)

    def _read(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Further sequences, and their values as the network has them."""
        check_is_fitted(self)
        values = self._check_X(X, (self.n_slices_, self.n_observed_))
        with labels_only():
            return values, self._encoder.panel(values).values

    def _encode(self, X) -> np.ndarray:
        """Values of further sequences, as the network has them."""
        return self._read(X)[1]

    def _in_batches(self, codes, function):
        """Apply a function of codes to a bounded number of sequences at a time."""
        n_states = int(np.prod(np.minimum(self.cardinality_, 32.0))) or 1
        n_states = min(n_states, 2**12)
        n_rows = max(1, BATCH_VALUES // (codes.shape[1] * n_states))
        parts = [function(codes[rows]) for rows in gen_batches(len(codes), n_rows)]
        return np.concatenate(parts)

    # Fitted attributes

    def _store(self, network, encoder, imputer):
        """Set the network and what follows from it, at the end of ``fit``."""
        graph = network.graph
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
        self._imputer = imputer

    @property
    def n_observed_(self) -> int:
        """Number of features per slice."""
        return self.structure_.shape[1]

    @property
    def n_slices_(self) -> int:
        """Number of slices seen in `fit`."""
        return self.n_features_in_ // self.n_observed_

    @property
    def _n_features_out(self):
        return self.n_slices_ * int(self.cardinality_.sum())

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Only checked against the names seen in `fit`.

        Returns
        -------
        names : ndarray of str objects
            ``t0_latent0_state0`` and so on, slice by slice, in each latent by latent;
            without the slice if the model has no time.
        """
        self._feature_names(input_features)
        states = [
            f"{name}_state{k}"
            for name, n_states in zip(
                self.latent_names_, self.cardinality_, strict=True
            )
            for k in range(n_states)
        ]
        if hasattr(self, "n_slices"):
            states = [f"t{t}_{name}" for t in range(self.n_slices_) for name in states]
        return np.asarray(states, dtype=object)

    def _node_names(self) -> list[str]:
        """Names of the features of a slice: those of the columns of the first slice."""
        return [str(name) for name in self._feature_names()[: self.n_observed_]]

    # Inference

    def transform(self, X: Any) -> np.ndarray:
        """Infer the states of the latents in each slice.

        Parameters
        ----------
        X : array-like of shape (n_sequences, n_slices * n_observed) or \
(n_sequences, n_slices, n_observed)
            Sequences; NaN is missing.

        Returns
        -------
        posterior : ndarray of shape (n_sequences, n_slices * n_states)
            P(state | whole sequence), slice by slice, in each latent by latent;
            ``n_states`` is the sum of ``cardinality_``.
        """
        return self._in_batches(self._encode(X), self._posterior)

    def _posterior(self, codes):
        """Posterior of all latents in all slices, as rows."""
        parts = self.network_.posterior(codes)
        if not len(parts):
            return np.zeros((len(codes), 0))
        return np.concatenate(parts, axis=2).reshape(len(codes), -1)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable path of the latents (Viterbi).

        Parameters
        ----------
        X : array-like of shape (n_sequences, n_slices * n_observed) or \
(n_sequences, n_slices, n_observed)
            Sequences; NaN is missing.

        Returns
        -------
        states : ndarray of shape (n_sequences, n_slices, n_latents)
            State numbers that have the highest probability together; for rows without
            time of shape (n_samples, n_latents).
        """
        states = self._in_batches(self._encode(X), self.network_.viterbi)
        return self._without_time(states)

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
            Log-probability of the categories of each sequence.
        """
        return self._in_batches(self._encode(X), self.network_.log_likelihood)

    def impute(self, X: Any, strategy: str = "posterior") -> Any:
        """Fill missing values with the most probable ones.

        Parameters
        ----------
        X : array-like of shape (n_sequences, n_slices * n_observed) or \
(n_sequences, n_slices, n_observed)
            Sequences; NaN and None are missing.
        strategy : {"posterior", "hybrid"}, default="posterior"
            "posterior": given the latents, as the model has it. "hybrid": also given
            the feature's own previous and next value, which real panels often follow
            closer than any latent. It is learned at its first use, for which the
            estimator keeps up to 2,000 training sequences until then; so does a saved
            estimator.

        Returns
        -------
        filled : same type and shape as X
            `X` with its missing values filled, and all others as they were. A binned
            column is filled with a typical value of the bin.
        """
        check_choice("strategy", strategy, IMPUTE_STRATEGIES)
        values, codes = self._read(X)
        filled = self._in_batches(
            codes, lambda part: self._imputer.fill(self.network_, part, strategy)
        )
        return fill_gaps(X, is_missing(values), self._encoder.decode(filled))

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

    def to_networkx(self) -> nx.DiGraph:
        """Export the fitted model as a graph.

        Returns
        -------
        graph : networkx.DiGraph
            Latents and features of two consecutive slices.
        """
        check_is_fitted(self)
        return dbn_to_networkx(
            self.network_,
            self.latent_names_,
            self._node_names(),
            support=getattr(self, "support_", None),
        )


def _n_dimensions(X) -> int:
    """Number of dimensions, without turning `X` into an array if it knows."""
    if isinstance(X, (list, tuple)):
        return np.ndim(np.asarray(X, dtype=object))
    return getattr(X, "ndim", 2)
