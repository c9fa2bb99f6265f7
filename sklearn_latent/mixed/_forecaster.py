"""What the estimators whose rows have time share: forecasts and explanations."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._answers.explain import Explanation
from .._core.validation import check_choice
from ._em.hybrid import STRATEGIES
from ._forecast import Forecast
from ._panel_estimator import PanelModel


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
