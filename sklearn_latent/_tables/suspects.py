"""What hardly belongs in a table of independent rows, for a warning.

Numbers of rows or people, and times; codes for missing values; rows that resemble their
neighbours. The limits were chosen on 1,182 tables of R packages, of
50 to 20,000 rows and 3 to 80 columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from .._core.warn import warn
from ..exceptions import PoorDataWarning
from .odd_columns import KINDS

# Fewer rows, or different ones, say little.
FEWEST_ROWS = 30

# Values that are looked at, in half a second; of longer tables the first rows.
MOST_VALUES, MOST_COLUMNS = 2_000_000, 5_000

# Pairs of equal values that whole numbers spread evenly over their range would have by
# chance. Without any they number rows or people: in measurements 1 of 20,000 times.
EQUAL_PAIRS = 10.0

CODES = -9999, -999, -99, -9, 99, 999, 9999
CODE_SHARE = 0.01

# How much closer neighbours are than rows three apart, in three of four columns: 0.4 in
# chains of correlation 0.5, hardly at all in rows that were sorted by something else.
# Chance is 1.5 / sqrt(rows). Few columns may all be sorted, one within the other.
CLOSER, CHANCE, FEWEST_COLUMNS = 0.35, 4.5, 4


class Column(NamedTuple):
    """Values as floats, those of labels numbered, and their ranks."""

    name: str
    values: np.ndarray
    ranks: np.ndarray
    is_numeric: bool


def warn_of_suspects(X, values) -> None:
    """Say what is suspicious in a table.

    X: as the user has it; values: the same, validated. Of sequences, which have three
        dimensions, only codes for missing values are sought.
    """
    if sparse.issparse(values) or not values.size:
        return
    is_table = getattr(X, "ndim", 2) == 2
    width = values[0].size if is_table else values.shape[2]
    values = values.reshape(-1, width)
    values = values[: max(FEWEST_ROWS, MOST_VALUES // width)]
    if len(values) < FEWEST_ROWS or width > MOST_COLUMNS:
        return
    names = getattr(X, "columns", getattr(X, "feature_names", None))
    if names is None:
        names = [f"column {j}" for j in range(width)]
    columns = [_column(str(name), values[:, j]) for j, name in enumerate(names)]
    parts = [text for column in columns for text in _codes(column)]
    if is_table:
        parts += _numbers(columns, hasattr(X, "columns"))
        parts += _order(columns, _keys(columns))
    if parts:
        warn(f"X looks suspicious. {' '.join(parts)}", PoorDataWarning)


def _column(name: str, column: np.ndarray) -> Column:
    import pandas as pd

    known, numeric = ~pd.isna(column), column.dtype.kind in "biuf"
    if not numeric:
        numeric = KINDS.get(pd.api.types.infer_dtype(column)) == "numbers"
        column = column if numeric else pd.factorize(column)[0]
    values = np.full(len(column), np.nan)
    values[known] = column[known].astype(np.float64)
    ranks = np.unique(values, return_inverse=True)[1].ravel()
    return Column(name, values, ranks, numeric)


def _codes(column: Column) -> Iterator[str]:
    """Values that stand apart from all others, like codes for missing ones."""
    known = column.values[np.isfinite(column.values)]
    others = np.unique(known[~np.isin(known, CODES)])
    if not column.is_numeric or len(others) < 2:
        return
    # Floats of Python are infinite without a warning where they are too large.
    low, high = float(others[0]), float(others[-1])
    for code in CODES:
        count = int((known == code).sum())
        apart = max(low - code, code - high) > 2.0 * (high - low) or code < 0 <= low
        if apart and count >= max(2.0, CODE_SHARE * len(known)):
            yield (
                f"{code} in {count} rows of {column.name} is far from all others, "
                f"{low:g} to {high:g}, like a code for missing; if so, replace it by "
                "np.nan."
            )


def _numbers(columns: list[Column], is_frame: bool) -> Iterator[str]:
    """Columns that number rows or people, or are times."""
    found = [column.name for column in columns if _names_rows(column)]
    if found:
        remedy = f"X.drop(columns={found})" if is_frame else "a table without them"
        yield (
            f"{', '.join(found)}: numbers that rise with the rows, or whole ones that "
            "are all different, as those of rows, people and times do; if they "
            f"measure nothing else, fit {remedy}."
        )


def _names_rows(column: Column) -> bool:
    values, n = column.values, len(column.values)
    if not column.is_numeric or column.ranks.max() < n - 1 or np.isnan(values).any():
        return False
    span = float(values.max()) - float(values.min()) + 1.0
    is_whole = (values == np.round(values)).all()
    is_dense = is_whole and n * (n - 1) / 2.0 >= EQUAL_PAIRS * span
    return bool(is_dense or (values[1:] > values[:-1]).all())


def _keys(columns: list[Column]) -> np.ndarray:
    """A number for each row, the same for copies."""
    factors = np.random.RandomState(0).randint(2**62, size=len(columns), dtype=np.int64)
    keys = np.zeros(len(columns[0].values), dtype=np.uint64)
    for column, factor in zip(columns, factors, strict=True):
        # Sums of multiples of random odd numbers tell rows apart, modulo 2**64, too.
        keys += column.ranks.astype(np.uint64) * np.uint64(2 * factor + 1)
    return keys


def _order(columns: list[Column], keys: np.ndarray) -> Iterator[str]:
    """Rows that resemble their neighbours, but not because they were sorted."""
    varying = [c for c in columns if (np.diff(c.ranks) < 0).any()]
    least = max(CLOSER, CHANCE / np.sqrt(len(keys)))
    # Tables of counts, made one of persons, have all copies of a row together.
    n_runs, n_different = 1 + np.diff(keys).astype(bool).sum(), len(np.unique(keys))
    is_sorted = n_runs == n_different < 0.9 * len(keys)
    if len(varying) >= FEWEST_COLUMNS and not is_sorted:
        closer = np.quantile([_closeness(column) for column in varying], 0.25)
        if closer > least:
            yield (
                "Rows resemble their neighbours, as in time series and repeated "
                "measurements, but count as independent: latents may be trends. For "
                "several rows per person or machine, use sequences_from_frame and "
                "LGLPCCTemporal; else read latents with care."
            )


def _closeness(column: Column) -> float:
    """How much closer neighbours are than rows three apart, at most 1."""
    near, far = (_difference(column, step) for step in (1, 3))
    return 1.0 - near / far if far > 0 else 0.0


def _difference(column: Column, step: int) -> float:
    """Mean squared difference in rank of rows so far apart; of labels, if any."""
    known = ~np.isnan(column.values)
    change = column.ranks[step:] - column.ranks[:-step]
    change = change[known[step:] & known[:-step]].astype(np.float64)
    squares = change**2 if column.is_numeric else change != 0
    return float(squares.mean()) if len(change) else 0.0
