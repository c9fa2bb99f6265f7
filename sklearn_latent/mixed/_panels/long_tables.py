"""Further long tables for a model that was learned from one."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np

from ..._tables.fill import fill_gaps
from .encoding import is_missing
from .frames import sequences_from_frame
from .sequences import Labels, Sequences
from .times import in_order


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
