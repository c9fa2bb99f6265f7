"""Names of the columns of a wide table: which feature, and at which time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..._warn import warn
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


@dataclass(frozen=True)
class WideLayout:
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


def wide_layout(names) -> WideLayout | None:
    """Read names such as mood_t0, sleep_t0, mood_t1, ...; None if they are not so.

    Every feature must have every time. Numbers that no word marks as times may be
    those of items, so one feature alone needs such a word.
    """
    found = [_read(str(name)) for name in names]
    cells = [cell for cell in found if cell is not None]
    if len(cells) < len(found) or len(set(cells)) < len(cells):
        return None
    stems = list(dict.fromkeys(stem for stem, *_ in cells))
    times = list(dict.fromkeys(time for _, time, _ in cells))
    marked = all(word for *_, word in cells)
    if len(times) < 2 or len(stems) * len(times) != len(cells):
        return None
    if len(stems) < 2 and not marked:
        return None
    grid = [(stem, time) for time in times for stem in stems]
    by_slice = [(stem, time) for stem, time, _ in cells] == grid
    return WideLayout(stems, len(times), by_slice, marked)


def slice_names(names, n_observed: int) -> list[str]:
    """Names of the features of a slice: without the time, or those of the first."""
    layout = wide_layout(names)
    if layout and layout.marked and layout.by_slice and len(layout.stems) == n_observed:
        return layout.stems
    return [str(name) for name in names[:n_observed]]


def warn_of_layout(names, n_slices: int) -> None:
    """Say so if the names of the columns contradict the number of slices."""
    layout = wide_layout(names)
    if layout is None:
        return
    if n_slices == 1:
        warn(
            f"n_slices=1 makes features of all {len(names)} columns, but their names, "
            f"such as {names[0]!r} and {names[-1]!r}, look like {len(layout.stems)} "
            f"features at {layout.n_times} times. If so, set n_slices="
            f"{layout.n_times}, with the columns slice after slice.",
            PoorDataWarning,
        )
    elif n_slices == layout.n_times and not layout.by_slice:
        warn(
            f"X must have its columns slice after slice, but their names, {names[0]!r} "
            f"before {names[1]!r}, look like feature after feature.",
            PoorDataWarning,
        )


def _read(name: str) -> tuple[str, int, bool] | None:
    """Feature and time of a column, and whether a word says that it is a time."""
    match = BEFORE.fullmatch(name) or AFTER.fullmatch(name)
    if match is None or not match["stem"]:
        return None
    return match["stem"], int(match["time"]), match["word"] is not None
