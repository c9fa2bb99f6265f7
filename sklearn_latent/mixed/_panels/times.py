"""Times of a long table as slices."""

from __future__ import annotations

import re
from numbers import Real

import numpy as np

from ..._core.validation import MOST_COLUMNS, shown
from ..._core.warn import warn
from ...exceptions import PoorDataWarning

# Visit numbers are shared: more distinct times than this many times the rows of the
# longest sequence are days or ages. Dates and fractions are hardly ever visit numbers.
MOST_TIMES, MOST_DATES = 3.0, 1.5

# Slices up to which a table may be mostly empty.
FEW_SLICES = 50


def slices_of(times, rows, time_bins) -> tuple[np.ndarray, np.ndarray]:
    """Slice of each row of a table, and labels of the slices.

    times: column of times, sorted within each sequence
    rows: number of the sequence of each row
    """
    if isinstance(time_bins, str) and time_bins == "visit":
        return _visit_numbers(rows)
    exact = time_bins is None or (isinstance(time_bins, str) and time_bins == "exact")
    slices, labels = numbered(times, "time") if exact else _bins(times, time_bins)
    if not exact and _mostly_empty(rows, slices, len(labels)):
        raise ValueError(
            f"time_bins={time_bins!r} makes {len(labels)} slices, and most sequences "
            "have no row in most of them; a larger width makes fewer."
        )
    return slices, labels


def numbered(column, argument: str) -> tuple[np.ndarray, np.ndarray]:
    """Number the labels of a column in order; ordered categories have their own.

    Text is in the order of the numbers in it: v1, v2, v10.
    """
    if column.isna().any():
        raise ValueError(
            f"{argument} must name a column without missing values, got some in "
            f"{column.name!r}."
        )
    if getattr(column.dtype, "ordered", False):
        codes, index = np.unique(column.cat.codes.to_numpy(), return_inverse=True)
        return index.ravel(), column.cat.categories.to_numpy()[codes]
    try:
        labels, index = np.unique(column.to_numpy(), return_inverse=True)
    except TypeError:
        raise ValueError(
            f"{argument} must name a column of labels that can be put in order, got "
            f"{shown(column.tolist())} in {column.name!r}."
        ) from None
    ordered = in_order(labels)
    place = {label: number for number, label in enumerate(ordered.tolist())}
    if not np.array_equal(ordered, labels):
        index = np.array([place[label] for label in labels.tolist()])[index]
    return index.ravel(), ordered


def in_order(labels: np.ndarray) -> np.ndarray:
    """Sort different labels, text by the numbers in it."""
    if not all(isinstance(label, str) for label in labels.tolist()):
        return np.sort(labels)
    try:
        return labels[np.lexsort((labels, labels.astype(np.float64)))]
    except ValueError:
        return np.array(sorted(labels.tolist(), key=_parts), dtype=labels.dtype)


def _parts(label: str) -> tuple:
    """Words and numbers of a text in turn, and the text."""
    parts = re.split(r"(\d+)", label)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], label


def warn_of_text(times) -> None:
    """Say so if times are text whose order in time is not certain."""
    _, labels = numbered(times, "time")
    is_text = [isinstance(label, str) for label in labels.tolist()]
    if getattr(times.dtype, "ordered", False) or not all(is_text):
        return
    words = {re.sub(r"\d+", "", label) for label in labels.tolist()}
    orders = [sorted(labels.tolist(), key=key) for key in (str, _parts)]
    doubtful = any(order != labels.tolist() for order in orders)
    year_last = any(re.match(r"\d{1,3}\D.*\d{4}", label) for label in labels.tolist())
    if doubtful or year_last or (len(words) > 1 and max(map(len, words)) > 1):
        warn(
            f"Times of {times.name!r} are text, and are put in this order: "
            f"{', '.join(map(repr, labels[:5].tolist()))}"
            f"{', ...' if len(labels) > 5 else ''}. If that is not their order in "
            "time, use numbers or ordered pandas categories.",
            PoorDataWarning,
        )


def _visit_numbers(rows) -> tuple[np.ndarray, np.ndarray]:
    """Number the rows of each sequence, which follow each other."""
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    slices = np.arange(len(rows)) - np.repeat(first, np.diff(first, append=len(rows)))
    return slices, np.arange(slices.max(initial=-1) + 1)


def _bins(times, width) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of a width, all of them from the first to the last that has a row."""
    kind = getattr(times.dtype, "kind", "O")
    if kind not in "iufmM":
        raise ValueError(
            'time_bins must be None, "exact" or "visit", because the times are labels, '
            f"got {shown(width)}."
        )
    index, start = (_date_bins if kind in "mM" else _number_bins)(times, width)
    first = index.min() if len(index) else 0
    if not index.max(initial=first) - first < MOST_COLUMNS:
        raise ValueError(
            f"time_bins must be a width that makes less than {MOST_COLUMNS} slices, "
            f"got {shown(width)} for times from {times.min()} to {times.max()}."
        )
    slices = (index - first).astype(np.int64)
    return slices, start(first + np.arange(slices.max(initial=-1) + 1))


def _number_bins(times, width):
    """Number of the interval of each time, and a function to where intervals begin."""
    is_number = isinstance(width, Real) and not isinstance(width, bool)
    if not is_number or not 0 < float(width) < np.inf:
        raise ValueError(
            'time_bins must be None, "exact", "visit" or a number above 0, because the '
            f"times are numbers, got {shown(width)}."
        )
    with np.errstate(over="ignore"):
        quotient = times.to_numpy(dtype=np.float64) / float(width)
    # 0.3 / 0.1 is less than 3 in floating point.
    index = np.floor(quotient + 1e-9 * np.maximum(1.0, np.abs(quotient)))
    dtype = np.int64 if float(width).is_integer() else np.float64
    return index, lambda number: (number * float(width)).astype(dtype)


def _date_bins(times, width):
    """Number of the interval of each date, and a function to where intervals begin."""
    import pandas as pd

    try:
        # A bare number would be nanoseconds.
        step = pd.NaT if isinstance(width, Real) else pd.Timedelta(width)
    except (TypeError, ValueError):
        step = pd.NaT
    if not step > pd.Timedelta(0):
        raise ValueError(
            'time_bins must be None, "exact", "visit" or a length such as "90D", '
            f"because the times are dates, got {shown(width)}."
        )
    # Not the earliest date, so that tables of the same people have the same intervals.
    is_length = times.dtype.kind == "m"
    zero = pd.Timedelta(0) if is_length else pd.Timestamp(0, tz=times.dt.tz)
    index = np.asarray((times - zero) // step)
    return index, lambda number: np.asarray(zero + number * step)


def check_shared(times, rows) -> None:
    """Refuse times that are no visit numbers."""
    slices, labels = numbered(times, "time")
    longest = np.bincount(rows).max(initial=0)
    crowded = len(labels) > longest * (MOST_DATES if _is_fine(times) else MOST_TIMES)
    if not crowded and not _mostly_empty(rows, slices, len(labels)):
        return
    raise ValueError(
        f"time must name a column of visit numbers or of times that sequences share, "
        f"got {len(labels)} different times in {times.name!r} for sequences of at most "
        f'{longest} rows. Use time_bins="visit" for the first, second, ... row of each '
        f"sequence; a width, such as time_bins={_example_width(times, longest)}, for "
        f'intervals; or time_bins="exact" for {len(labels)} slices.'
    )


def _is_fine(times) -> bool:
    """Whether times are dates or fractions."""
    kind = getattr(times.dtype, "kind", "O")
    return kind in "mM" or (kind == "f" and bool((times % 1 != 0).any()))


def _mostly_empty(rows, slices, n_slices: int) -> bool:
    """Whether there are many slices, and most sequences have no row in most."""
    n_cells = (rows.max(initial=-1) + 1) * n_slices
    n_filled = len(np.unique(rows * n_slices + slices))
    return n_slices > FEW_SLICES and n_filled < n_cells / 2


def _example_width(times, longest) -> str:
    """A round width that would make about as many intervals as a sequence has rows."""
    if getattr(times.dtype, "kind", "O") not in "iuf":
        return '"90D"'
    span = float(times.max() - times.min()) / max(int(longest), 1)
    return f"{float(f'{span:.1g}'):g}" if 0 < span < np.inf else "1"


def time_names(times: np.ndarray) -> list[str]:
    """Short text of times; dates without the hour if it is midnight."""
    if times.dtype.kind == "M":
        days = (times == times.astype("datetime64[D]")).all()
        return np.datetime_as_string(times, unit="D" if days else "s").tolist()
    return [str(time) for time in times.tolist()]
