"""Binary columns as people store them: words such as yes and no.

Words come from a list of pairs, so that what a word means depends neither on the other
rows nor on the block of rows in which it is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .odd_columns import (
    MARKERS,
    Column,
    column_number,
    few,
    is_numeric_text,
    number_column,
    odd_columns,
    with_columns,
)

# On, off. A word is in one pair alone.
PAIRS = (
    ("yes", "no"),
    ("y", "n"),
    ("true", "false"),
    ("t", "f"),
    ("on", "off"),
    ("1", "0"),
    ("1.0", "0.0"),
    ("+", "-"),
    ("positive", "negative"),
    ("pos", "neg"),
    ("present", "absent"),
    ("checked", "unchecked"),
    ("detected", "not detected"),
    ("enabled", "disabled"),
    ("active", "inactive"),
)
PAIR_OF = {word: pair for pair in PAIRS for word in pair}

EXPECTED = "0 and 1, True and False, or words such as 'yes' and 'no'"

DATES = "make 0 and 1 of it, such as whether it is after some date"

# Different values of a column that are kept of each block.
MOST_LEVELS = 100


class Words(NamedTuple):
    """The words of a column: the pair, and both as seen in the data, if they were."""

    pair: tuple[str, str]
    seen: tuple[str | None, ...]

    @classmethod
    def of(cls, pair, levels: list[str]) -> Words:
        """Words of a pair, spelled as in the data."""
        spelled = (
            min((level for level in levels if _plain(level) == word), default=None)
            for word in pair
        )
        return cls(pair, tuple(spelled))

    @property
    def on(self) -> str:
        """The word for on, perhaps in the capitals of the other."""
        return self.seen[0] or _like(self.pair[0], self.seen[1])

    @property
    def off(self) -> str:
        """The word for off."""
        return self.seen[1] or _like(self.pair[1], self.seen[0])


# Words of the columns that have some, by number of the column.
Coding = Mapping[int, Words]


def _plain(level: str) -> str:
    return " ".join(level.split()).casefold()


def _like(word: str, other: str | None) -> str:
    """A word in the capitals of another."""
    if other is None or other.islower():
        return word
    return word.upper() if other.isupper() and len(other) > 1 else word.capitalize()


def decode(X, coding: Coding, threshold: float | None) -> Any:
    """The table as numbers that are on, or off, by the threshold.

    coding: what is known of the words; see `learn_coding`
    """
    X, odd = odd_columns(X)
    new = {c.place: _decoded(c, coding.get(c.place), threshold) for c in odd}
    if threshold is not None and not 0 <= threshold < 1:
        # True is on by any threshold.
        for j, dtype in enumerate(getattr(X, "dtypes", ())):
            if getattr(dtype, "kind", "O") == "b" and j not in new:
                new[j] = on_value(number_column(X, j), threshold)
    X = with_columns(X, new)
    # A table of another width is refused later.
    width = X.shape[1] if len(getattr(X, "shape", ())) == 2 else 0
    for place, words in coding.items():
        if place not in new and place < width:
            name = column_number(getattr(X, "columns", None), place)
            _check_zero_one(number_column(X, place), name, words)
    return X


def on_value(is_on, threshold: float | None) -> Any:
    """Numbers that are on, or off, by the threshold."""
    return np.floor(threshold or 0.0) + is_on


def _decoded(column: Column, words: Words | None, threshold) -> np.ndarray:
    """Numbers of a column that is not stored as numbers."""
    column.refuse_odd(EXPECTED, DATES)
    if column.kind == "numbers":
        numbers = column.numbers()
        if words is not None:
            _check_zero_one(numbers, str(column), words)
        as_flags = words is not None or _is_flags(column)
        return on_value(numbers, threshold) if as_flags else numbers
    if words is None:
        raise ValueError(
            f"X must hold numbers in {column}, as in fit, got {few(column.levels)}."
        )
    codes, levels = column.coded
    # The last is found by the code -1 of missing values.
    meanings = [*(_meaning(level, words, column) for level in levels), np.nan]
    return on_value(np.array(meanings, dtype=float)[codes], threshold)


def _meaning(level: str, words: Words, column: Column) -> bool:
    """Whether a word means on."""
    plain = _plain(level)
    if plain not in words.pair:
        raise ValueError(
            f"X must hold {words.on!r} or {words.off!r} in {column}, as in fit, got "
            f"{level!r}.{_if_missing(level)}"
        )
    return plain == words.pair[0]


def _check_zero_one(numbers, name: str, words: Words) -> None:
    """Refuse numbers other than 0 and 1, which are off and on."""
    odd = (numbers != 0) & (numbers != 1) & ~np.isnan(numbers)
    if odd.any():
        raise ValueError(
            f"X must hold {words.on!r} or {words.off!r}, or 1 or 0, in {name}, as in "
            f"fit, got {numbers[odd][0]:g}."
        )


def learn_coding(X, before: Coding) -> Coding:
    """Words of a table or a Dask collection, whose other parts had those before.

    What a word means must not depend on the block, so that all are looked at.
    """
    if not hasattr(X, "__dask_graph__"):
        return coding_of(find_levels(X), before)
    if not _may_hold_words(X):
        return before
    # Dask is optional.
    from .dask_blocks import look_at_collection

    return coding_of(merge_levels(look_at_collection(X, find_levels)), before)


def find_levels(X) -> dict[int, Column]:
    """Columns of a block that hold text, reduced to some of their different values."""
    found = {}
    for column in odd_columns(X)[1]:
        column.refuse_odd(EXPECTED, DATES)
        if column.kind == "text":
            found[column.place] = _shortened(column, column.levels)
    return found


def merge_levels(parts) -> dict[int, Column]:
    """Columns of text of several blocks."""
    merged: dict[int, Column] = {}
    for part in parts:
        for place, column in (part or {}).items():
            levels = merged[place].levels if place in merged else []
            merged[place] = _shortened(column, sorted({*levels, *column.levels}))
    return merged


def _shortened(column: Column, levels: list) -> Column:
    """A column of some of its values."""
    kept = np.array(levels[:MOST_LEVELS], dtype=object)
    return Column(column.place, column.name, kept)


def coding_of(columns: Mapping[int, Column], before: Coding) -> Coding:
    """Words of columns of text, whose other parts had those given before."""
    learned = {place: _words_of(c, before.get(place)) for place, c in columns.items()}
    return {**before, **learned}


def _words_of(column: Column, before: Words | None) -> Words:
    """Words of a column of text."""
    spelled = {_plain(level): level for level in column.levels}
    pairs = {PAIR_OF.get(word) for word in spelled}
    if before is not None:
        pairs.add(before.pair)
    if len(pairs) != 1 or None in pairs:
        _refuse_words(column, spelled, before)
    (pair,) = pairs
    seen = filter(None, () if before is None else before.seen)
    return Words.of(pair, [*column.levels, *seen])


def _refuse_words(column: Column, spelled: dict[str, str], before) -> None:
    """Raise an error for words that do not say which of them is on."""
    unknown = [level for word, level in spelled.items() if word not in PAIR_OF]
    markers = [level for level in unknown if _plain(level) in MARKERS]
    words = [level for word, level in spelled.items() if word not in MARKERS]
    choice = (words or column.levels)[0]
    expected, say = EXPECTED, f"say which value is on, as in {column.access} =="
    if before is not None:
        odd = next(x for word, x in spelled.items() if word not in before.pair)
        expected = f"{before.on!r} or {before.off!r} in all rows of a column"
        remedy = f"Recode {column.access}.{_if_missing(odd)}"
    elif markers and len(markers) == len(unknown) and len(spelled) > len(markers):
        remedy = _if_missing(markers[0]).strip()
    elif is_numeric_text(column.levels):
        remedy = (
            "These are numbers stored as text. Convert them with "
            f"pd.to_numeric({column.access}, errors='coerce') and set binarize."
        )
    elif len(words) <= 2:
        remedy = f"S{say[1:]} {choice!r}, or drop the column."
    else:
        remedy = (
            f"Use LPCC, whose features are categories, {say} {choice!r}, or drop the "
            "column."
        )
    column.refuse(expected, remedy)


def _if_missing(level) -> str:
    """What to do with text that may stand for a missing value."""
    if _plain(level) not in MARKERS:
        return ""
    return f" If {level!r} means missing, replace it by None."


def _may_hold_words(X) -> bool:
    """Whether some column of a Dask collection is not declared as numbers."""
    dtypes = X.dtypes if hasattr(type(X), "columns") else [getattr(X, "dtype", None)]
    return any(getattr(dtype, "kind", "O") not in "biuf" for dtype in dtypes)


def encode(X, is_on: np.ndarray, coding: Coding, threshold: float | None) -> np.ndarray:
    """Binary values as the columns of a table store them.

    is_on: 0.0 and 1.0, of the shape of X
    """
    values = on_value(is_on, threshold)
    for j, dtype in enumerate(getattr(X, "dtypes", ())):
        if getattr(dtype, "kind", "O") == "b":
            values[:, j] = is_on[:, j]
    words: dict[int, Words] = {}
    for column in odd_columns(X)[1]:
        j = column.place
        if _is_flags(column):
            values[:, j] = is_on[:, j]
        elif j in coding and (column.kind == "text" or not len(column.known)):
            words[j] = coding[j]
    if words:
        values = values.astype(object)
    for j, own in words.items():
        values[:, j] = np.where(is_on[:, j] > 0, own.on, own.off)
    return values


def _is_flags(column: Column) -> bool:
    """Whether a column holds truth values."""
    flags = all(isinstance(value, bool | np.bool_) for value in column.known)
    return flags and len(column.known) > 0
