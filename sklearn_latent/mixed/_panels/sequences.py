"""An array of sequences that knows the names of its rows, slices and columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.validation import check_flag
from .times import time_names

if TYPE_CHECKING:
    import pandas as pd


ALL = slice(None)


@dataclass(frozen=True)
class Reading:
    """Arguments of `sequences_from_frame`, for further tables of the same kind."""

    sequence: Any
    time: Any
    columns: list
    time_bins: Any
    repeated: str


@dataclass(frozen=True)
class Labels:
    """What the axes of sequences are called, and the table that they came from.

    sequences: labels, (n_sequences,)
    times: labels of the slices, (n_slices,)
    dtypes: pandas types of the features
    visits: row of the table of each visit, -1 if it has none, (n_sequences, n_slices)
    stamps: the times of all rows of the table, a pandas series
    reading: how the table was read, with the names of the features
    """

    sequences: np.ndarray
    times: np.ndarray
    dtypes: list
    visits: np.ndarray
    stamps: Any
    reading: Reading

    def take(self, rows, slices=ALL, features=ALL) -> Labels:
        """Labels of some rows, slices and features."""
        kept = np.arange(len(self.dtypes))[features]
        names = [self.reading.columns[j] for j in kept]
        return replace(
            self,
            sequences=self.sequences[rows],
            times=self.times[slices],
            dtypes=[self.dtypes[j] for j in kept],
            visits=self.visits[rows][:, slices],
            reading=replace(self.reading, columns=names),
        )

    @property
    def time_names(self) -> list[str]:
        """Short text of the times."""
        return time_names(self.times)

    def without_sequences(self) -> Labels:
        """What a model keeps: slices and features."""
        return replace(self.take(slice(0)), stamps=self.stamps.iloc[:0])

    def to_frame(self, columns: dict, *, missed: bool = False) -> pd.DataFrame:
        """Long table of columns with a value per sequence and slice."""
        import pandas as pd

        rows, slices = np.nonzero((self.visits >= 0) | missed)
        place = self.visits[rows, slices]
        times = self.stamps.iloc[np.maximum(place, 0)].reset_index(drop=True)
        if (place < 0).any():
            # The slices of visit numbers have no times.
            numbered = self.reading.time_bins == "visit"
            other = None if numbered else pd.Series(self.times[slices])
            times = times.where(place >= 0, other)
        keys = {self.reading.sequence: self.sequences[rows], self.reading.time: times}
        return pd.DataFrame(
            keys | {name: values[rows, slices] for name, values in columns.items()}
        )


class Sequences(np.ndarray):
    """Sequences of a long table: an array whose axes have names.

    An array of shape (n_sequences, n_slices, n_features), as `sequences_from_frame`
    makes it. Names follow as long as rows, slices or features are selected along one
    axis at a time; the result of anything else is an array without them.

    Parameters
    ----------
    values : array-like of shape (n_sequences, n_slices, n_features)
        The values.
    labels : Labels
        Names of the axes, and where they come from.

    Attributes
    ----------
    sequence_labels : ndarray of shape (n_sequences,)
        Labels of the sequences.
    times : ndarray of shape (n_slices,)
        Labels of the slices.
    feature_names : list
        Names of the features.

    See Also
    --------
    sequences_from_frame : Makes sequences of a long table.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_latent.mixed import sequences_from_frame
    >>> frame = pd.DataFrame({"id": [1, 1, 2], "month": [0, 6, 0], "mood": [3, 1, 2]})
    >>> X = sequences_from_frame(frame, sequence="id", time="month")
    >>> X[1:].sequence_labels
    array([2])
    >>> X.to_frame()
       id  month  mood
    0   1      0     3
    1   1      6     1
    2   2      0     2
    """

    labels: Labels | None = None

    def __new__(cls, values: Any, labels: Labels | None) -> Sequences:
        """View values as sequences with labels."""
        self = np.asarray(values).view(cls)
        self.labels = labels
        return self

    @property
    def sequence_labels(self) -> np.ndarray:
        """Labels of the sequences."""
        return self.known_labels.sequences

    @property
    def times(self) -> np.ndarray:
        """Labels of the slices."""
        return self.known_labels.times

    @property
    def feature_names(self) -> list:
        """Names of the features."""
        return list(self.known_labels.reading.columns)

    @property
    def known_labels(self) -> Labels:
        """All labels, which an array computed from sequences does not have."""
        if self.labels is None:
            raise AttributeError(
                "The array was computed from sequences and has no labels any more."
            )
        return self.labels

    def __getitem__(self, key):
        found = super().__getitem__(key)
        if isinstance(found, Sequences):
            found.labels = self._labels_of(key) if found.ndim == 3 else None
        return found if getattr(found, "labels", None) else _plain(found)

    def _labels_of(self, key) -> Labels | None:
        """Labels of a selection along single axes, else None."""
        keys = list(key) if isinstance(key, tuple) else [key]
        for place in [i for i, one in enumerate(keys) if one is Ellipsis]:
            keys[place : place + 1] = [ALL] * (4 - len(keys))
        n_lists = sum(not isinstance(one, slice) for one in keys)
        along = all(isinstance(one, slice) or np.ndim(one) == 1 for one in keys)
        if self.labels is None or not along or n_lists > 1:
            return None
        return self.labels.take(*keys)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        # What is computed from values has no labels.
        return array[()] if return_scalar else array

    def copy(self, order: Any = "C") -> Sequences:
        """Copy of the values, with the same labels.

        Parameters
        ----------
        order : {"C", "F", "A", "K"}, default="C"
            Layout in memory.

        Returns
        -------
        copied : Sequences
            The copy.
        """
        return Sequences(super().copy(order), self.labels)

    def like(self, values: Any) -> Sequences:
        """Other values with the labels of these.

        Parameters
        ----------
        values : array-like of shape (n_sequences, n_slices, n_features)
            The other values.

        Returns
        -------
        sequences : Sequences
            With the labels of these.
        """
        return Sequences(values, self.known_labels)

    def to_frame(self, *, missed: bool = False) -> pd.DataFrame:
        """Long table, one row per visit, in order of sequences and times.

        Parameters
        ----------
        missed : bool, default=False
            Whether to list visits that the table did not have, too. The time of such
            a visit is the label of its slice.

        Returns
        -------
        frame : pandas.DataFrame
            The columns that `sequences_from_frame` read, with their types.
        """
        check_flag("missed", missed)
        labels = self.known_labels
        names, values = labels.reading.columns, np.asarray(self)
        frame = labels.to_frame(
            {name: values[:, :, j] for j, name in enumerate(names)}, missed=missed
        )
        for name, dtype in zip(names, labels.dtypes, strict=True):
            frame[name] = _restored(frame[name], dtype)
        return frame

    def __reduce__(self):
        reduced: Any = super().__reduce__()
        return (*reduced[:2], (reduced[2], self.labels))

    def __setstate__(self, state):
        super().__setstate__(state[0])
        self.labels = state[1]

    def __deepcopy__(self, memo):
        return self.copy()


def _plain(values):
    """An array without labels."""
    return values.view(np.ndarray) if isinstance(values, Sequences) else values


def _restored(column: pd.Series, dtype) -> pd.Series:
    """A column in the type that it had in the table."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        labels = list(dtype.categories)
        unknown = [v for v in column.dropna().unique().tolist() if v not in labels]
        return column.astype(pd.CategoricalDtype(labels + unknown, dtype.ordered))
    if column.isna().any() and isinstance(dtype, np.dtype) and dtype.kind in "biu":
        # NumPy's integers and booleans have no missing value; pandas' have.
        return column.astype("boolean" if dtype.kind == "b" else "Int64")
    return column.astype(dtype)
