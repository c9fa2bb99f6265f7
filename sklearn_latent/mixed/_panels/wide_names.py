"""Names of the columns of a wide table: which feature, and at which time."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..._core.warn import warn
from ...exceptions import PoorDataWarning

TIME_WORDS = (
    "t|v|w|time|visit|wave|slice|year|month|week|day|quarter|session|phase|round"
)
MARK = r"[\s_.:-]"

# mood_t0, mood.visit2, mood_3; and t0_mood, wave2.mood
AFTER = re.compile(
    rf"(?P<stem>.*?){MARK}+(?P<word>{TIME_WORDS})?{MARK}*(?P<time>\d+)", re.IGNORECASE
)
BEFORE = re.compile(
    rf"(?P<word>{TIME_WORDS}){MARK}*(?P<time>\d+){MARK}+(?P<stem>.+)", re.IGNORECASE
)

TIME_NAME = re.compile(
    rf"(.*[\W_])?({TIME_WORDS}|date|age|times?point|tp|occasion)s?([\W_].*)?",
    re.IGNORECASE,
)


class WideLayout(NamedTuple):
    """What the names of a wide table say.

    stems: names of the features of a slice, in order
    n_times: number of slices
    by_slice: whether the columns come slice by slice, and not feature by feature
    marked: whether a word says that the numbers are times
    """

    stems: list[str]
    n_times: int
    by_slice: bool
    marked: bool


def wide_layout(names, *, lone: bool = False) -> WideLayout | None:
    """Read names such as mood_t0, sleep_t0, mood_t1, ...; None if they are not so.

    Every feature must have every time. Numbers that no word marks as times may be
    those of items, so one feature alone needs such a word, unless `lone`.
    """
    cells = [cell for name in names if (cell := _read(str(name)))]
    if len(cells) < len(names) or len(set(cells)) < len(cells):
        return None
    stems = list(dict.fromkeys(stem for stem, *_ in cells))
    times = list(dict.fromkeys(time for _, time, _ in cells))
    marked = all(word for *_, word in cells)
    if len(times) < 2 or len(stems) * len(times) != len(cells):
        return None
    if len(stems) < 2 and not (marked or lone):
        return None
    grid = [(stem, time) for time in times for stem in stems]
    return WideLayout(stems, len(times), [cell[:2] for cell in cells] == grid, marked)


def slice_names(names, n_observed: int) -> list[str]:
    """Names of the features of a slice: without the time, or those of the first."""
    layout = wide_layout(names)
    if layout and layout.marked and layout.by_slice and len(layout.stems) == n_observed:
        return layout.stems
    return [str(name) for name in names[:n_observed]]


def warn_of_layout(X, n_slices: int) -> None:
    """Say so if names of the columns or a long table contradict the number of slices.

    X: data frame
    """
    names, n_names = list(X.columns), len(X.columns)
    text = ""
    if n_slices > 1:
        layout = wide_layout(names)
        if layout and n_slices == layout.n_times and not layout.by_slice:
            text = (
                f"X must have its columns slice after slice, but their names, "
                f"{names[0]!r} before {names[1]!r}, look like feature after feature."
            )
    elif keys := _long_keys(X, names):
        one, two = map(repr, keys)
        text = (
            f"X looks like a long table, with a row for each {two} of each {one}, but "
            "n_slices=1 takes each row for a sequence of its own. Fit "
            f"sequences_from_frame(X, sequence={one}, time={two}) instead."
        )
    # Others than these, such as an age, have no time.
    elif layout := wide_layout(timed := [n for n in names if _read(str(n))], lone=True):
        rest = "" if len(timed) == n_names else f" of X[{timed}]"
        text = (
            f"n_slices=1 makes features of all {n_names} columns, but their names, "
            f"such as {timed[0]!r} and {timed[-1]!r}, look like {len(layout.stems)} "
            f"features at {layout.n_times} times. If so, set "
            f"n_slices={layout.n_times}, with the columns{rest} slice after slice."
        )
    if text:
        warn(text, PoorDataWarning)


def _long_keys(X, names) -> tuple[Any, Any] | None:
    """Columns of sequences and times of a long table: both repeat, no pair does."""
    import pandas as pd

    if not isinstance(X, pd.DataFrame):
        return None
    for time in filter(lambda name: TIME_NAME.fullmatch(str(name)), names):
        n_times = X[time].nunique()
        for sequence in names:
            n_sequences = X[sequence].nunique()
            known = X[sequence].notna().all() and X[time].notna().all()
            if (
                sequence != time
                and known
                and 2 * max(n_sequences, n_times) <= len(X) <= n_sequences * n_times
                and not X.duplicated([sequence, time]).any()
            ):
                return sequence, time
    return None


def _read(name: str) -> tuple[str, int, bool] | None:
    """Feature and time of a column, and whether a word says that it is a time."""
    match = BEFORE.fullmatch(name) or AFTER.fullmatch(name)
    if match is None or not match["stem"]:
        return None
    return match["stem"], int(match["time"]), match["word"] is not None
