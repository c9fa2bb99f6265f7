"""What is to be expected of the next slices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Forecast:
    """Distributions of the features and latents of the slices after the last.

    Parameters
    ----------
    probabilities : list of ndarray of shape (n_sequences, n_steps, n_categories)
        One array per feature: P(category). Of a numeric feature mean and standard
        deviation, in shape (n_sequences, n_steps, 2).
    values : ndarray of shape (n_sequences, n_steps, n_observed)
        The most probable value of each feature; of a numeric one the mean.
    states : list of ndarray of shape (n_sequences, n_steps, cardinality)
        One array per latent: P(state).
    slices : ndarray of int of shape (n_sequences, n_steps)
        Numbers of the slices; the first follows the last recorded slice of the
        sequence.
    feature_names : list of str
        Names of the features.
    sequence_labels : ndarray of shape (n_sequences,)
        Labels of the sequences.
    is_numeric : list of bool
        Which features are numbers.

    Examples
    --------
    >>> from sklearn_latent.mixed import LatentDBN, TemporalGraph
    >>> network = LatentDBN(
    ...     TemporalGraph(structure=[[1]], intra=[[0]], inter=[[1]]),
    ...     cardinality=[2],
    ...     start=[[0.5, 0.5]],
    ...     transition=[[[0.9, 0.1], [0.1, 0.9]]],
    ...     emission=[[[0.8, 0.2], [0.2, 0.8]]],
    ... )
    >>> network.forecast([[[1], [1]]], n_steps=2).to_frame().round(3)
       sequence  step  slice  x0  P(x0)
    0         0     1      2   1  0.701
    1         0     2      3   1  0.661
    """

    probabilities: list[np.ndarray]
    values: np.ndarray
    states: list[np.ndarray]
    slices: np.ndarray
    feature_names: list[str]
    sequence_labels: np.ndarray
    is_numeric: list[bool]

    @classmethod
    def joined(cls, parts: list[Forecast]) -> Forecast:
        """Forecasts of batches of sequences as one.

        Parameters
        ----------
        parts : list of Forecast
            At least one, all with the same features and steps.

        Returns
        -------
        forecast : Forecast
            That of all sequences.
        """
        if len(parts) == 1:
            return parts[0]
        joined: dict[str, Any] = {}
        for name in ("probabilities", "states"):
            lists = zip(*(getattr(part, name) for part in parts), strict=True)
            joined[name] = [np.concatenate(arrays) for arrays in lists]
        for name in ("values", "slices", "sequence_labels"):
            joined[name] = np.concatenate([getattr(part, name) for part in parts])
        return replace(parts[0], **joined)

    def to_frame(self) -> pd.DataFrame:
        """Long table of the most probable values.

        Returns
        -------
        frame : pandas.DataFrame
            One row per sequence and step: ``sequence``, ``step`` from 1 on, ``slice``,
            the most probable value of each feature and, as ``P(feature)``, its
            probability; of numbers the mean and, as ``std(feature)``, its standard
            deviation.
        """
        import pandas as pd

        n, n_steps = self.slices.shape
        columns: dict[str, Any] = {
            "sequence": np.repeat(self.sequence_labels, n_steps),
            "step": np.tile(np.arange(1, n_steps + 1), n),
            "slice": self.slices.ravel(),
        }
        for f, name in enumerate(self.feature_names):
            columns[name] = self.values[:, :, f].ravel()
        for name, shares, numeric in zip(
            self.feature_names, self.probabilities, self.is_numeric, strict=True
        ):
            certainty = shares[:, :, 1] if numeric else shares.max(axis=2)
            columns[f"{'std' if numeric else 'P'}({name})"] = certainty.ravel()
        return pd.DataFrame(columns).infer_objects()
