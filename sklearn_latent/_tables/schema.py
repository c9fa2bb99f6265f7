"""What is known of the columns of a table once it was learned: levels, order, bins.

`odd_columns.Column` says what a column holds; here it becomes codes, of labels of any
type or of bins of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Number
from typing import NamedTuple

import numpy as np

from .._core.warn import warn
from ..exceptions import PoorDataWarning
from .odd_columns import (
    MARKERS,
    Column,
    columns_of,
    few,
    is_numeric_text,
    odd_columns,
    ordered,
)

# Code of a value that is not known.
MISSING = -1

# Categories of a feature, at the most. Time and memory grow with their square, and
# labels of 2% of the rows and less hardly show a latent.
MAX_LABELS = 50
OTHERS = "(other)"
# A feature with more labels than this share of its values names the rows.
NAMES = 0.8

EXPECTED = "labels or numbers"
DATES = "make labels of it; sequences_from_frame takes a column of times"


class Feature(NamedTuple):
    """Labels or bins of a feature.

    name: for messages
    labels: by code; of bins the median of the values in it
    edges: inner edges of bins, None for labels
    others: code of other labels, None if there should be none
    is_ordered: whether the table says in which order labels are
    """

    name: str
    labels: np.ndarray
    edges: np.ndarray | None = None
    others: int | None = None
    is_ordered: bool = False

    @classmethod
    def of_labels(cls, name, column: Column, weights, order, most: float) -> Feature:
        """Labels of a column, of which rare ones are one.

        order: of the labels, None if they may be none; most: as in `_check_labels`
        """
        labels = _sorted_labels(column, order or ())
        most = most if order is None else np.inf
        _check_labels(labels.tolist(), name, most)
        found = _common_labels(labels, column, weights, most)
        is_all = len(found) == len(labels)
        others = None if is_all else len(found) - 1
        return cls(name, found, None, others, bool(is_all and order))

    @classmethod
    def of_numbers(cls, name, numbers, weights, n_bins: int, most: int) -> Feature:
        """Numbers as they are if few (most: of integers), else bins of equal weight."""
        if not len(numbers):
            # Nothing is known of the feature: one category, which says nothing.
            return cls(name, np.zeros(1))
        _refuse_infinity(numbers, name)
        values, inverse = np.unique(numbers, return_inverse=True)
        whole = (values == np.round(values)).all()
        if len(values) <= (max(most, 2) if whole else n_bins):
            return cls(name, values)
        mass = np.bincount(inverse.ravel(), weights, minlength=len(values))
        return cls(name, *_quantile_bins(values, mass, n_bins))

    @property
    def names_rows(self) -> bool:
        """Whether nearly all labels differ, so that they are none."""
        return self.others == MISSING

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Codes of values that are known; -1 for labels that were not in the data."""
        if self.labels.dtype.kind == "O":
            import pandas as pd

            places = pd.Index(self.labels, dtype=object)
            return places.get_indexer(pd.Index(values, dtype=object))
        numbers = numbers_or_nan(values)
        _refuse_infinity(numbers, self.name)
        if self.edges is not None:
            places = np.searchsorted(self.edges, numbers, side="left")
            return np.where(np.isnan(numbers), MISSING, places)
        place = np.minimum(np.searchsorted(self.labels, numbers), len(self.labels) - 1)
        return np.where(self.labels[place] == numbers, place, MISSING)


def check_columns_of(X):
    """The table, a list as an array; refuse dates and what can be no label.

    X: table of two dimensions, or array of sequences of three
    """
    if getattr(X, "ndim", 2) == 3:
        labels, values = getattr(X, "labels", None), np.asarray(X)
        names = None if labels is None else labels.reading.columns
        odd = values.dtype.kind in "OUSTMm"
        columns = columns_of(values.reshape(-1, values.shape[2]), names) if odd else []
    else:
        X, columns = odd_columns(X)
    for column in columns:
        column.refuse_odd(EXPECTED, DATES, mixed=True)
        if column.kind == "numbers":
            column.numbers()
    return X


def check_slices(feature: np.ndarray, name: str) -> None:
    """Refuse a feature that is text in one slice and numbers in another.

    feature: (n_sequences, n_slices)
    """
    columns = [Column(t, None, feature[:, t]) for t in range(feature.shape[1])]
    kinds = {column.kind: column for column in columns if len(column.known)}
    if {"text", "numbers"} <= set(kinds):
        one, two = kinds["text"], kinds["numbers"]
        raise ValueError(
            f"X must hold the same labels in all slices of a feature, got "
            f"{few(one.levels)} in slice {one.place} and {few(two.levels)} in slice "
            f"{two.place} of {name}. Recode one of them, or set n_slices."
        )


def known_orders(dtypes: Sequence) -> dict[int, list]:
    """Labels of ordered categories, none of others, by number of the column."""
    return {
        j: list(dtype.categories) if getattr(dtype, "ordered", False) else []
        for j, dtype in enumerate(dtypes)
        if is_category(dtype)
    }


def is_category(dtype) -> bool:
    """Whether a type of pandas or polars says that labels are categories."""
    return str(dtype).startswith(("category", "Categorical", "Enum"))


def is_missing(values: np.ndarray) -> np.ndarray:
    """Where a value is NaN, None or the like."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    import pandas as pd

    return np.asarray(pd.isna(values), dtype=bool)


def numbers_or_nan(values: np.ndarray) -> np.ndarray:
    """Numbers, and NaN for labels among them."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    numbers = [float(v) if _is_number(v) else np.nan for v in values.tolist()]
    return np.array(numbers, dtype=np.float64)


def _is_number(value) -> bool:
    return isinstance(value, Number | np.bool_)


def _refuse_infinity(numbers, name: str) -> None:
    if np.isinf(numbers).any():
        raise ValueError(f"X must hold no infinity, got one in {name}.")


def _sorted_labels(column: Column, order: Sequence) -> np.ndarray:
    """Distinct labels, in a known order or one that does not depend on the rows."""
    try:
        distinct = column.coded[1].tolist()
    except TypeError as error:
        raise TypeError(
            "X must hold labels that can be compared; an argument must be a string or "
            f"a number, got others ({error})."
        ) from error
    labels = np.empty(len(distinct), dtype=object)
    place = {label: number for number, label in enumerate(order)}
    known = len(place) and all(label in place for label in distinct)
    labels[:] = sorted(distinct, key=place.__getitem__) if known else ordered(distinct)
    return labels


def _common_labels(labels, column: Column, weights, most: float) -> np.ndarray:
    """Labels of a feature that are categories: none if they name the rows.

    Of many the most frequent, and one for all others; most: as in `_check_labels`
    """
    if len(labels) > max(most, NAMES * weights.sum()):
        return labels[:0]
    if len(labels) <= MAX_LABELS:
        return labels
    codes, distinct = column.coded
    mass = np.bincount(codes[codes >= 0], weights, minlength=len(distinct))
    weight_of = dict(zip(distinct.tolist(), mass.tolist(), strict=True))
    own = np.array([weight_of[label] for label in labels])
    order = np.argsort(-own, kind="stable")
    common = labels[np.sort(order[labels[order] != OTHERS][: MAX_LABELS - 1])]
    return np.append(common, np.array([OTHERS], dtype=object))


def _check_labels(labels: list, name: str, most: float) -> None:
    """Refuse numbers stored as text, and warn of labels that may mean missing.

    labels: the different labels of a feature; most: number of those of a feature of
    integers, above which they are not categories, infinite if they are said to be
    """
    text = [label for label in labels if isinstance(label, str)]
    others = [label for label in labels if not isinstance(label, str)]
    twice = [label for label in others if str(label) in text]
    if twice:
        raise ValueError(
            f"X must hold labels of one type, got both {twice[0]!r} and "
            f"{str(twice[0])!r} in {name}. Convert the column with astype(str), or "
            "with pd.to_numeric if its labels are numbers."
        )
    markers = [label for label in text if label.strip().casefold() in MARKERS]
    words = [label for label in text if label not in markers]
    numeric = is_numeric_text(words) if words else bool(others)
    if numeric and len(words) + len(others) > max(most, 2):
        raise ValueError(
            f"X must hold labels or numbers, got numbers stored as text in {name}: "
            f"{few(labels)}. Convert the column with pd.to_numeric(..., "
            "errors='coerce'), or drop it if it holds identifiers."
        )
    if markers and (words or others):
        warn(
            f"{name} has the label {markers[0]!r}, which is a category like any other. "
            "If it means missing, replace it by None.",
            PoorDataWarning,
        )


def _quantile_bins(values, mass, n_bins):
    """Cut between distinct values, where the mass is closest to equal shares.

    A function of the distinct values and their weights alone, so that a weight of 2 is
    a row twice.
    """
    share = np.cumsum(mass)[:-1] / mass.sum()
    targets = np.arange(1, n_bins) / n_bins
    cuts = np.unique(np.abs(share[:, None] - targets).argmin(axis=0))
    edges = (values[cuts] + values[cuts + 1]) / 2
    medians = []
    for low, high in pairwise([0, *(cuts + 1).tolist(), len(values)]):
        half = np.cumsum(mass[low:high])
        medians.append(values[low + int(np.searchsorted(half, half[-1] / 2))])
    return np.asarray(medians), edges
