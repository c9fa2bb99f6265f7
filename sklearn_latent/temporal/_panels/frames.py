"""Long tables, one row per visit, as sequences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..._validation import check_columns, check_flag, shown


def sequences_from_frame(
    frame: Any,
    *,
    sequence: str,
    time: str,
    columns: Iterable[str] | None = None,
    return_labels: bool = False,
) -> Any:
    """Turn a long table, one row per sequence and time, into an array of sequences.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        The table.
    sequence : str
        Column that says to which sequence (person, machine) a row belongs.
    time : str
        Column of the time of a row. Its distinct values in the whole table, in order,
        are the slices.
    columns : list of str or None, default=None
        Columns to keep; None keeps all but `sequence` and `time`.
    return_labels : bool, default=False
        Whether to return the labels of sequences and slices too.

    Returns
    -------
    X : ndarray of shape (n_sequences, n_slices, n_columns)
        Sequences in the order of their labels; NaN where a visit or a value is
        missing. Numbers are floats; an array with other labels holds objects.
    sequences : ndarray of shape (n_sequences,)
        Labels of the sequences, only with `return_labels`.
    times : ndarray of shape (n_slices,)
        Labels of the slices, only with `return_labels`.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_latent.temporal import sequences_from_frame
    >>> frame = pd.DataFrame(
    ...     {"id": [1, 1, 2], "month": [0, 6, 0], "mood": [3, 1, 2], "sleep": [1, 1, 0]}
    ... )
    >>> sequences_from_frame(frame, sequence="id", time="month")
    array([[[ 3.,  1.],
            [ 1.,  1.]],
    <BLANKLINE>
           [[ 2.,  0.],
            [nan, nan]]])
    """
    check_flag("return_labels", return_labels)
    frame = _as_pandas(frame)
    check_columns("frame", frame)
    sequence, time = _column(frame, "sequence", sequence), _column(frame, "time", time)
    if columns is None:
        columns = [name for name in frame.columns if name not in (sequence, time)]
    elif isinstance(columns, str) or not isinstance(columns, Iterable):
        columns = [columns]
    columns = [_column(frame, "columns", name) for name in columns]
    if len(set(columns)) < len(columns):
        raise ValueError(f"columns must hold no name twice, got {shown(columns)}.")
    rows, sequences = _numbered(frame[sequence], "sequence")
    slices, times = _numbered(frame[time], "time")
    cell = rows * len(times) + slices
    if len(np.unique(cell)) != len(cell):
        order = np.argsort(cell, kind="stable")
        twice = order[1:][np.diff(cell[order]) == 0][0]
        raise ValueError(
            "frame must have one row per sequence and time, got more for sequence "
            f"{sequences[rows[twice]]!r} at time {times[slices[twice]]!r}."
        )
    values = _values(frame[columns])
    X = np.full((len(sequences), len(times), len(columns)), np.nan, dtype=values.dtype)
    X[rows, slices] = values
    return (X, sequences, times) if return_labels else X


def _column(frame, argument: str, name):
    """A name, if a column of the table has it."""
    try:
        found = name in frame.columns
    except TypeError:  # it has no hash
        found = False
    if not found:
        raise ValueError(
            f"{argument} must name columns of frame, got {shown(name)}; the columns "
            f"are {list(frame.columns)}."
        )
    return name


def _as_pandas(frame):
    """A pandas table of a pandas or polars one."""
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        return frame
    if hasattr(frame, "with_columns") and hasattr(frame, "columns"):
        import pandas as pd

        return pd.DataFrame({name: frame[name].to_list() for name in frame.columns})
    raise TypeError(
        f"frame must be a pandas or polars DataFrame, got {type(frame).__name__}."
    )


def _numbered(column, argument: str):
    """Number the labels of a column in order."""
    if column.isna().any():
        raise ValueError(
            f"{argument} must name a column without missing values, got some in "
            f"{column.name!r}."
        )
    try:
        labels, index = np.unique(column.to_numpy(), return_inverse=True)
    except TypeError:
        raise ValueError(
            f"{argument} must name a column of labels that can be put in order, got "
            f"{shown(column.tolist())} in {column.name!r}."
        ) from None
    return index.ravel(), labels


def _values(frame) -> np.ndarray:
    """Values as floats, or as objects if some are no numbers."""
    try:
        numeric = [
            frame[name].dtype.kind in "biuf" or frame[name].isna().all()
            for name in frame.columns
        ]
        if all(numeric):
            return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        pass
    values = frame.astype(object).to_numpy(dtype=object, copy=True)
    values[np.asarray(frame.isna())] = np.nan
    return values
