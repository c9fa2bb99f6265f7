"""What the estimators of panel data share: input, inference, imputation and export."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from sklearn.utils import check_array, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from .._base import BaseLatentModel
from .._validation import check_choice, check_columns, check_count, check_sample_weight
from ._em.filling import OnDemandImputer, fill_gaps
from ._em.impute import IMPUTE_STRATEGIES
from ._export import dbn_to_networkx, dbn_to_pgmpy
from ._panels.encoding import PanelEncoder

__all__ = ["OnDemandImputer", "PanelModel"]

# Values of the forward pass that are held at a time, 128 MB.
BATCH_VALUES = 2**24


class PanelModel(BaseLatentModel):
    """Base class of the estimators whose fitted model is a `LatentDBN`.

    A subclass has the parameters ``n_bins`` and ``max_categories``, says through
    ``_n_slices_of`` how many slices a row holds, starts its ``fit`` with
    ``_read_training`` and ends it with ``_store``.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.three_d_array = True
        return tags

    # Input

    def _n_slices_of(self, width: int) -> int:
        """Number of slices in a row of `width` values."""
        if width % check_count("n_slices", self.n_slices):
            raise ValueError(
                "X must have a number of columns that n_slices divides, slice after "
                f"slice, got {width} columns and n_slices={self.n_slices}."
            )
        return int(self.n_slices)

    def _check_X(self, X, *, reset=False) -> np.ndarray:
        """Validate `X` and cut its rows into slices.

        X (n_sequences, n_slices * n_observed) or (n_sequences, n_slices, n_observed) ->
        panel (n_sequences, n_slices, n_observed).
        """
        check_columns("X", X)
        checks = {"dtype": None, "ensure_all_finite": "allow-nan"}
        n_slices = None
        n_dimensions = _n_dimensions(X)
        if n_dimensions > 3:
            raise ValueError(
                f"X must have two or three dimensions, got {n_dimensions}."
            )
        if n_dimensions == 3:
            X = check_array(X, allow_nd=True, input_name="X", **checks)
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
            if not reset and n_observed == self.n_observed_:
                # Tables are the same for all slices, so sequences may be shorter or
                # longer than those of fit.
                return _without_complex(X)
            X = X.reshape(len(X), -1)
        X = _without_complex(validate_data(self, X, reset=reset, **checks))
        if reset:
            n_slices = n_slices or self._n_slices_of(X.shape[1])
        else:
            n_slices = self.n_slices_
        return X.reshape(len(X), n_slices, -1)

    def _read_training(self, X, sample_weight):
        """Validate and encode the data of ``fit``.

        Rows of weight 0 are left out, so that they leave no trace in categories and
        bins either.

        Returns codes (n_sequences, n_slices, n_observed), weights (n_sequences,).
        """
        panel = self._check_X(X, reset=True)
        weights = check_sample_weight(sample_weight, len(panel))
        weights = np.ones(len(panel)) if weights is None else weights
        panel, weights = panel[weights > 0], weights[weights > 0]
        encoder = PanelEncoder(n_bins=self.n_bins, max_categories=self.max_categories)
        with _labels_only():
            encoder.fit(panel, sample_weight=weights)
            codes = encoder.encode(panel)
        return codes, weights, encoder

    def _encode(self, X) -> np.ndarray:
        """Codes of further sequences."""
        check_is_fitted(self, "network_")
        panel = self._check_X(X)
        with _labels_only():
            return self._encoder.encode(panel)

    def _in_batches(self, codes, function):
        """Apply a function of codes to a bounded number of sequences at a time."""
        n_states = int(np.prod(np.minimum(self.cardinality_, 32.0))) or 1
        n_states = min(n_states, 2**12)
        n_rows = max(1, BATCH_VALUES // (codes.shape[1] * n_states))
        parts = [function(codes[rows]) for rows in gen_batches(len(codes), n_rows)]
        return np.concatenate(parts)

    # Fitted attributes

    def _store(self, network, encoder, imputer, **fitted):
        """Set all fitted attributes, at the end of ``fit``."""
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
        self.categories_ = encoder.categories_
        self._encoder = encoder
        self._imputer = imputer
        for name, value in fitted.items():
            setattr(self, name, value)

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

    def _n_parameters(self):
        return self.network_.n_parameters

    def get_feature_names_out(self, input_features=None):
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
            f"latent{i}_state{k}"
            for i, n_states in enumerate(self.cardinality_)
            for k in range(n_states)
        ]
        if hasattr(self, "n_slices"):
            states = [f"t{t}_{name}" for t in range(self.n_slices_) for name in states]
        return np.asarray(states, dtype=object)

    def _observed_names(self) -> list[str]:
        """Names of the features of a slice: those of the columns of the first slice."""
        return [str(name) for name in self._feature_names()[: self.n_observed_]]

    # Inference

    def transform(self, X):
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

    def predict(self, X):
        """Most probable path of the latents (Viterbi).

        Parameters
        ----------
        X : array-like of shape (n_sequences, n_slices * n_observed) or \
(n_sequences, n_slices, n_observed)
            Sequences; NaN is missing.

        Returns
        -------
        states : ndarray of shape (n_sequences, n_slices, n_latents)
            State numbers that have the highest probability together.
        """
        return self._in_batches(self._encode(X), self.network_.viterbi)

    def score_samples(self, X):
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

    def impute(self, X, strategy="posterior"):
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
        codes = self._encode(X)
        panel = self._check_X(X)
        filled = self._in_batches(
            codes, lambda part: self._imputer.fill(self.network_, part, strategy)
        )
        return fill_gaps(X, panel, self._encoder.decode(filled))

    def sample(self, n_samples=1, random_state=None):
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
            The states behind them.
        """
        check_is_fitted(self)
        codes, states = self.network_.sample(
            n_samples, self.n_slices_, random_state=random_state
        )
        return self._encoder.decode(codes).reshape(n_samples, -1), states

    # Export

    def _latent_names(self) -> list[str]:
        return [f"latent{i}" for i in range(self.n_latents_)]

    def to_networkx(self):
        """Export the fitted model as a graph.

        Returns
        -------
        graph : networkx.DiGraph
            Latents and features of two consecutive slices.
        """
        check_is_fitted(self, "network_")
        return dbn_to_networkx(
            self.network_,
            self._latent_names(),
            self._observed_names(),
            support=getattr(self, "support_", None),
        )

    def to_pgmpy(self):
        """Export the fitted model to pgmpy.

        Returns
        -------
        model : pgmpy.models.DynamicBayesianNetwork
            Two slices; undirected edges are oriented as in the fitted tables.
        """
        check_is_fitted(self, "network_")
        return dbn_to_pgmpy(self.network_, self._latent_names(), self._observed_names())


@contextmanager
def _labels_only():
    """Say what is wrong with values that cannot be categories."""
    try:
        yield
    except TypeError as error:
        raise TypeError(
            "Each value of the X argument must be a string, a number or another label "
            f"that can be told from others, got an error: {error}."
        ) from error


def _n_dimensions(X) -> int:
    """Number of dimensions, without turning `X` into an array if it knows."""
    if isinstance(X, (list, tuple)):
        return np.ndim(np.asarray(X, dtype=object))
    return getattr(X, "ndim", 2)


def _without_complex(X):
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold labels or numbers.")
    return X
