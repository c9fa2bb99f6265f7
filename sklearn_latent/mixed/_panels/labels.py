"""Labels of features as people store them: what can be no category, or hardly one."""

from __future__ import annotations

import numpy as np

from ..._core.warn import warn
from ..._tables.odd_columns import (
    MARKERS,
    Column,
    columns_of,
    few,
    is_numeric_text,
    odd_columns,
)
from ...exceptions import PoorDataWarning

EXPECTED = "labels or numbers"

# Categories of a feature, at the most. Time and memory grow with their square, and
# labels of 2% of the rows and less hardly show a latent.
MAX_LABELS = 50
OTHERS = "(other)"

# A feature with more labels than this share of its values names the rows.
NAMES = 0.8
DATES = "make labels of it; sequences_from_frame takes a column of times"


def check_columns_of(X):
    """The table, a list as an array; refuse dates and what can be no label.

    X: table of two dimensions, or array of sequences of three
    """
    if getattr(X, "ndim", 2) == 3:
        columns = _features_of(X)
    else:
        X, columns = odd_columns(X)
    for column in columns:
        column.refuse_odd(EXPECTED, DATES, mixed=True)
        if column.kind == "numbers":
            column.numbers()
    return X


def _features_of(X) -> list[Column]:
    """Features of sequences that are not stored as numbers."""
    labels = getattr(X, "labels", None)
    names = None if labels is None else labels.reading.columns
    values = np.asarray(X)
    if values.dtype.kind not in "OUSTMm":
        return []
    return columns_of(values.reshape(-1, values.shape[2]), names)


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


def common_labels(labels: np.ndarray, values, weights, most: float) -> np.ndarray:
    """Labels of a feature that are categories: none if they name the rows.

    Of many the most frequent, and one for all others; most: as in `check_labels`
    """
    import pandas as pd

    if len(labels) > max(most, NAMES * weights.sum()):
        return labels[:0]
    if len(labels) <= MAX_LABELS:
        return labels
    place = pd.Index(labels).get_indexer(pd.Index(values, dtype=object))
    mass = np.bincount(place, weights, minlength=len(labels))
    order = np.argsort(-mass, kind="stable")
    common = labels[np.sort(order[labels[order] != OTHERS][: MAX_LABELS - 1])]
    return np.append(common, np.array([OTHERS], dtype=object))


def check_labels(labels: list, name: str, most: float) -> None:
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
