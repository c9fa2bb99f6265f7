"""Long tables, one row per visit, as sequences, and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ..._core.validation import check_choice, check_columns, shown
from ..._tables.fill import fill_gaps
from ..._tables.schema import is_category, is_missing
from .sequences import Labels, Reading, Sequences
from .times import check_shared, in_order, numbered, slices_of, warn_of_text

REPEATED = ("error", "first", "last")


def sequences_from_frame(
    frame: Any,
    sequence: str | None = None,
    time: str | None = None,
    columns: Iterable[str] | None = None,
    *,
    time_bins: Any = None,
    repeated: str = "error",
) -> Sequences:
    """Turn a long table, one row per sequence and time, into an array of sequences.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        The table; its rows may be in any order.
    sequence : str
        Column that says to which sequence (person, machine) a row belongs.
    time : str
        Column of the time of a row.
    columns : list of str or None, default=None
        Columns to keep; None keeps all but `sequence` and `time`.
    time_bins : None, "exact", "visit", number or str, default=None
        What the slices are. None: the distinct times of the whole table, in order,
        as long as sequences share most of them; times that differ between sequences,
        such as days, ages or dates, are an error. "exact": the same without that
        check. "visit": the first, second, ... row of each sequence. A number, or a
        length of time such as "90D" for dates: intervals of that width, which begin at
        its multiples (for dates, since 1970).
    repeated : {"error", "first", "last"}, default="error"
        Which row counts if a sequence has several in a slice. "first" and "last" go by
        time, then by the order of rows.

    Returns
    -------
    X : Sequences of shape (n_sequences, n_slices, n_columns)
        Sequences in the order of their labels; NaN where a visit or a value is
        missing. Numbers are floats; an array with other labels holds objects. The
        array has the labels of sequences and slices and the names of columns, which
        estimators use, and ``X.to_frame()`` is a long table again.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_latent.mixed import sequences_from_frame
    >>> frame = pd.DataFrame(
    ...     {"id": [1, 1, 2], "month": [0, 6, 0], "mood": [3, 1, 2], "sleep": [1, 1, 0]}
    ... )
    >>> X = sequences_from_frame(frame, sequence="id", time="month")
    >>> X
    Sequences([[[ 3.,  1.],
                [ 1.,  1.]],
    <BLANKLINE>
               [[ 2.,  0.],
                [nan, nan]]])
    >>> X.feature_names, X.times
    (['mood', 'sleep'], array([0, 6]))
    """
    check_choice("repeated", repeated, REPEATED)
    frame = _as_pandas(frame)
    check_columns("frame", frame)
    sequence, time = _column(frame, "sequence", sequence), _column(frame, "time", time)
    names = _feature_columns(frame, columns, (sequence, time))
    reading = Reading(sequence, time, names, time_bins, repeated)
    places, rows, slices, sequences, times = _find_visits(frame, reading)
    if time_bins is None:
        warn_of_text(frame[time])
    values = _values(frame[names].iloc[places])
    shape = (len(sequences), len(times))
    array = np.full((*shape, len(names)), np.nan, dtype=values.dtype)
    array[rows, slices] = values
    visits = np.full(shape, -1, dtype=np.intp)
    visits[rows, slices] = places
    dtypes = [frame[name].dtype for name in names]
    stamps = frame[time].reset_index(drop=True)
    return Sequences(array, Labels(sequences, times, dtypes, visits, stamps, reading))


def _find_visits(frame, reading: Reading):
    """Rows that count, sequence and slice of each, and labels of these."""
    rows, sequences = numbered(frame[reading.sequence], "sequence")
    moments, _ = numbered(frame[reading.time], "time")
    if reading.time_bins is None:
        check_shared(frame[reading.time], rows)
    # By time, and rows of the same time in their own order.
    places = np.lexsort((moments, rows))
    places = places[_one_per_cell(frame.iloc[places], reading, moments[places])]
    slices, times = slices_of(
        frame[reading.time].iloc[places], rows[places], reading.time_bins
    )
    kept = _one_per_cell(frame.iloc[places], reading, slices)
    places = places[kept]
    return places, rows[places], slices[kept], sequences, times


def _feature_columns(frame, columns, keys) -> list:
    """Names of the features, all other columns if None."""
    if columns is None:
        return [name for name in frame.columns if name not in keys]
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        columns = [columns]
    columns = [_column(frame, "columns", name) for name in columns]
    if len(set(columns)) < len(columns):
        raise ValueError(f"columns must hold no name twice, got {shown(columns)}.")
    return columns


def _one_per_cell(frame, reading: Reading, slices) -> np.ndarray:
    """Which rows of a sorted table count: one per sequence and slice."""
    sequence, time = frame[reading.sequence], frame[reading.time]
    same = np.asarray(sequence.iloc[1:]) == np.asarray(sequence.iloc[:-1])
    same &= np.diff(slices) == 0
    if same.any() and reading.repeated == "error":
        place = int(np.flatnonzero(same)[0])
        one, two = time.iloc[place : place + 2].tolist()
        when = f"time {one!r}" if one == two else f"times {one!r} and {two!r}"
        raise ValueError(
            "frame must have one row per sequence and slice, got more for sequence "
            f"{sequence.iloc[[place]].tolist()[0]!r} at {when} ({int(same.sum())} such "
            'rows in all). Use repeated="first" or "last", or combine them before.'
        )
    others = [same, [False]] if reading.repeated == "last" else [[False], same]
    return np.flatnonzero(~np.concatenate(others)[: len(frame)])


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

        columns = {
            name: pd.Series(
                frame[name].to_list(),
                dtype="category" if is_category(frame[name].dtype) else None,
            )
            for name in frame.columns
        }
        return pd.DataFrame(columns)
    raise TypeError(
        f"frame must be a pandas or polars DataFrame, got {type(frame).__name__}."
    )


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


def is_long(X, labels: Labels) -> bool:
    """Whether `X` is a table with the columns of sequences and times of another."""
    keys = {labels.reading.sequence, labels.reading.time}
    return keys <= set(getattr(X, "columns", ()))


def read_like(frame, labels: Labels) -> Sequences:
    """Sequences of a table, in the slices of the one that has given labels.

    Times that the other did not have are further slices.
    """
    reading = labels.reading
    known = "exact" if reading.time_bins is None else reading.time_bins
    X = sequences_from_frame(frame, **asdict(replace(reading, time_bins=known)))
    if known == "visit":
        return X
    times = _all_times(labels.times, X.times)
    place = {time: t for t, time in enumerate(times.tolist())}
    slices = [place[time] for time in X.times.tolist()]
    values = np.full((len(X), len(times), X.shape[2]), np.nan, dtype=X.dtype)
    values[:, slices] = X
    visits = np.full(values.shape[:2], -1, dtype=np.intp)
    visits[:, slices] = X.known_labels.visits
    return Sequences(values, replace(X.known_labels, times=times, visits=visits))


def _all_times(known: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Known times and others: in order, or the others last if the order is not known.

    Ordered categories are in no order that their labels tell.
    """
    others = np.array([t for t in new.tolist() if t not in set(known.tolist())])
    times = np.concatenate([known, others.astype(new.dtype)])
    return in_order(times) if np.array_equal(in_order(known), known) else times


def fill_long(frame, X: Sequences, filled: np.ndarray):
    """The table with the gaps of its visits filled; rows and types as they are."""
    visits = X.known_labels.visits
    there = visits >= 0
    names = X.feature_names
    gaps = np.zeros((len(frame), len(names)), dtype=bool)
    empty = is_missing(np.asarray(X)) & ~is_missing(filled)
    gaps[visits[there]] = empty[there]
    values = np.empty(gaps.shape, dtype=filled.dtype)
    values[visits[there]] = filled[there]
    part = fill_gaps(frame[names], gaps, values)
    if hasattr(frame, "iloc"):
        return frame.assign(**{name: part[name] for name in names})
    return frame.with_columns(*part.get_columns())
