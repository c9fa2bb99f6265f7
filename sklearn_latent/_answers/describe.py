"""What the columns of a table hold, in a few words each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

# Labels of a column that are listed.
MOST_LABELS = 3


class ColumnText(NamedTuple):
    """A line about a column.

    missing: percentage of the values
    """

    column: str
    kind: str
    missing: float
    distinct: int
    values: str


def columns_of(X: Any) -> Iterator[np.ndarray]:
    """The columns of a data frame, a sparse matrix or an array, one at a time."""
    if hasattr(X, "iloc"):
        for j in range(X.shape[1]):
            yield X.iloc[:, j].to_numpy(dtype=object, na_value=np.nan)
    elif hasattr(X, "to_series"):
        for j in range(X.shape[1]):
            yield np.array(X.to_series(j).to_list(), dtype=object)
    elif sparse.issparse(X):
        by_column = sparse.csc_array(X)
        for j in range(X.shape[1]):
            yield by_column[:, [j]].toarray().ravel()
    else:
        yield from np.asarray(X).T


def describe(name: Any, values: np.ndarray) -> ColumnText:
    """A line about a column of numbers, of two values, or of labels."""
    missing = _is_missing(values)
    known = values[~missing]
    try:
        numbers = known.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        labels = [str(value) for value in known]
        kind, distinct, text = "labels", len(set(labels)), _shares(labels)
    else:
        kind, distinct, text = _describe_numbers(numbers)
    return ColumnText(
        str(name), kind, 100.0 * float(missing.mean()), distinct, text or "no value"
    )


def _is_missing(values) -> np.ndarray:
    """Cells that are None, NaN or pandas' NA, none of which equals itself."""
    if values.dtype.kind != "O":
        return values != values
    return np.array(
        [
            v is None or not isinstance(v == v, bool | np.bool_) or v != v
            for v in values
        ],
        dtype=bool,
    )


def _describe_numbers(numbers) -> tuple[str, int, str]:
    """Kind, number of distinct values, and words about numbers."""
    found = np.unique(numbers)
    if not len(found):
        return "empty", 0, ""
    if len(found) == 1:
        return "constant", 1, f"always {found[0]:.4g}"
    if len(found) == 2:
        share = np.mean(numbers == found[1])
        return "two values", 2, f"{found[1]:.4g} in {share:.1%}, else {found[0]:.4g}"
    low, middle, high = np.quantile(numbers, [0.0, 0.5, 1.0])
    return "numbers", len(found), f"{low:.4g} to {high:.4g}, median {middle:.4g}"


def _shares(labels: list[str]) -> str:
    """The most frequent labels and how frequent they are."""
    names, counts = np.unique(np.array(labels, dtype=object), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_LABELS]
    parts = [f"{names[i]} {counts[i] / len(labels):.1%}" for i in order]
    rest = len(names) - len(order)
    return ", ".join(parts) + (f" and {rest} more" if rest else "")
