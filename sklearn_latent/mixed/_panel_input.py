"""What the estimators of panel data share: reading sequences, and names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from .._answers.base import BaseLatentModel
from .._core.validation import check_count, check_table, check_tol
from .._tables.blocks import Blocks, read_blocks
from .._tables.schema import check_columns_of, known_orders
from .._tables.single_row import SingleRow
from ._emissions.kinds import requested_kinds
from ._latent_dbn import MOST_JOINT_STATES
from ._panels.encoding import PanelEncoder
from ._panels.frames import is_long, read_like
from ._panels.panel import Panel
from ._panels.reading import (
    CHECKS,
    Sample,
    check_block,
    draw_sample,
    keep_block,
    labels_only,
    plain_frame,
)
from ._panels.sequences import Labels, Sequences
from ._panels.wide_names import slice_names, warn_of_layout


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


class PanelInput(BaseLatentModel):
    """Base class of the estimators of sequences: parameters, input, names."""

    cardinality_: np.ndarray
    # Those of the sequences of ``fit``, but for the sequences themselves.
    _labels: Labels | None = None
    _encoder: PanelEncoder

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.three_d_array = True
        return tags

    def _check_parameters(self):
        """Refuse parameters of the wrong kind."""
        for name, least in (("n_bins", 2), ("max_categories", 2), ("max_iter", 1)):
            check_count(name, getattr(self, name), least)
        check_count("max_joint_states", self.max_joint_states, 1, MOST_JOINT_STATES)
        check_tol(self.tol)

    # Input

    def _check_X(self, X, shape=None) -> np.ndarray:
        """Validate `X` and cut its rows into slices.

        `shape` is (n_slices, n_observed) of sequences seen before, None for the first.
        """
        check_table("X", X)
        X = check_columns_of(X if shape is None else self._sequences_of(X))
        n_slices = None if shape is None else shape[0]
        n_dimensions = _n_dimensions(X)
        if n_dimensions > 3:
            raise ValueError(
                f"X must have two or three dimensions, got {n_dimensions}."
            )
        if n_dimensions == 3:
            X = check_array(X, allow_nd=True, input_name="X", **CHECKS)
            if not X.shape[1] or not X.shape[2]:
                raise ValueError(
                    "X must have at least one slice and one feature, got shape "
                    f"{X.shape}."
                )
            if X.shape[1] > 1 and not hasattr(self, "n_slices"):
                raise ValueError(
                    "X must have one slice, because the model has no time, got shape "
                    f"{X.shape}."
                )
            if shape is not None and X.shape[2] == shape[1]:
                # Tables are the same for all slices, so sequences may be shorter or
                # longer than those of fit.
                return X
            n_slices = n_slices or X.shape[1]
            X = X.reshape(len(X), -1)
        X = validate_data(self, plain_frame(X), reset=shape is None, **CHECKS)
        if n_slices is None:
            n_slices = check_count("n_slices", getattr(self, "n_slices", 1))
        if X.shape[1] % n_slices:
            raise ValueError(
                "X must have a number of columns that n_slices divides, slice after "
                f"slice, got {X.shape[1]} columns and n_slices={n_slices}."
            )
        return X.reshape(len(X), n_slices, -1)

    def _sequences_of(self, X):
        """Sequences of a long table like that of ``fit``; others as they are."""
        labels = self._labels
        if labels is None or not is_long(X, labels):
            return X
        return read_like(X, labels)

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

    def _read_training(self, X, sample_weight, most=None) -> Training:
        """Validate the data of ``fit``, and encode at most so many sequences.

        Rows of weight 0 are left out, so that they leave no trace in categories and
        bins either.
        """
        named = isinstance(X, Sequences) and X.labels is not None
        self._labels = X.labels.without_sequences() if named else None
        blocks = read_blocks(
            X,
            sample_weight,
            self._check_training(),
            partial(check_block, n_slices=getattr(self, "n_slices", 1)),
        )
        if hasattr(X, "columns") and hasattr(self, "n_slices"):
            warn_of_layout(X, self.n_slices)
        if isinstance(X, Iterator):
            blocks = blocks.map(keep_block)
        sample = draw_sample(blocks, most)
        encoder = self._new_encoder(X, sample.values.shape[2])
        with labels_only():
            encoder.fit(sample.values, sample.weights)
            panel = encoder.panel(sample.values, sample.weights)
        return Training(blocks, sample, encoder, panel)

    def _new_encoder(self, X, n_observed: int) -> PanelEncoder:
        """An encoder that knows what is known of the columns before their values."""
        names = self._names_seen(n_observed)
        columns = list(getattr(X, "columns", ()))[:n_observed]
        own = self._labels
        dtypes = getattr(X, "dtypes", ()) if own is None else own.dtypes
        return PanelEncoder(
            self.n_bins,
            self.max_categories,
            requested_kinds(self.emissions, n_observed, columns, names),
            known_orders(list(dtypes)[:n_observed]),
            names,
        )

    def _panel_of(self, X) -> tuple[np.ndarray, Panel]:
        """Further sequences, and the same encoded."""
        check_is_fitted(self)
        values = self._check_X(X, (self.n_slices_, self.n_observed_))
        with labels_only():
            return values, self._encoder.panel(values)

    def _encode(self, X) -> np.ndarray:
        """Values of further sequences, as the network has them."""
        return self._panel_of(X)[1].values

    def _single_row(self, row: Any) -> SingleRow:
        """One sequence: a row, an array of slices, or a long table of a sequence."""
        sequences = self._sequences_of(row)
        n_dimensions = _n_dimensions(sequences)
        if n_dimensions == 2 and not hasattr(sequences, "columns"):
            values = np.asarray(sequences, dtype=object)
            if hasattr(self, "n_slices") and values.shape[1:] == (self.n_observed_,):
                return SingleRow(np.asarray(sequences)[np.newaxis], values.ravel())
        if n_dimensions < 3:
            return super()._single_row(sequences)
        if len(sequences) != 1:
            raise ValueError(
                f"row must be a single sequence, got {len(sequences)} of them."
            )
        return SingleRow(sequences, np.asarray(sequences, dtype=object).ravel())

    def _feature_values(self, X) -> Iterator[np.ndarray]:
        """Values of each feature, in all slices of all sequences."""
        return iter(self._panel_of(X)[0].reshape(-1, self.n_observed_).T)

    # Names

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
            ``t0_latent0_state0`` and so on, slice by slice, in each latent by latent,
            with the times of a long table if `fit` got one; without them if the model
            has no time.
        """
        self._feature_names(input_features)
        states = self._state_names()
        if hasattr(self, "n_slices"):
            times = self._slice_names()
            states = [f"t{time}_{name}" for time in times for name in states]
        return np.asarray(states, dtype=object)

    def _state_names(self) -> list[str]:
        """Names of the states of all latents."""
        latents = zip(self.latent_names_, self.cardinality_, strict=True)
        return [f"{name}_state{k}" for name, size in latents for k in range(size)]

    def _node_names(self) -> list[str]:
        """Names of the features of a slice."""
        return self._names_seen(self.n_observed_) or [
            str(name) for name in self._feature_names()[: self.n_observed_]
        ]

    def _names_seen(self, n_observed: int) -> list[str] | None:
        """Names that the data gave to the features of a slice, None if none."""
        if self._labels is not None:
            return [str(name) for name in self._labels.reading.columns]
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else slice_names(names, n_observed)

    def _slice_names(self) -> list[str]:
        """Names of the slices seen in ``fit``."""
        if self._labels is not None:
            return self._labels.time_names
        return [str(t) for t in range(self.n_slices_)]

    @property
    def observed_names_(self) -> np.ndarray:
        """Names of the features of a slice."""
        check_is_fitted(self)
        return np.asarray(self._node_names(), dtype=object)


def _n_dimensions(X) -> int:
    """Number of dimensions, without turning `X` into an array if it knows."""
    if isinstance(X, (list, tuple)):
        return np.ndim(np.asarray(X, dtype=object))
    return getattr(X, "ndim", 2)
