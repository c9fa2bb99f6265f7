"""Columns of a table that are not stored as numbers: what they hold; other values.

Tables of plain numbers are left alone. In others, each odd column is looked at by
itself, so that an error can name it, its values and the remedy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from numbers import Complex, Real
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from .._core.validation import shown

# What pandas calls columns of objects, and what they are here.
KINDS = {
    **dict.fromkeys(("floating", "integer", "mixed-integer-float"), "numbers"),
    **dict.fromkeys(("boolean", "decimal", "empty"), "numbers"),
    **dict.fromkeys(("datetime64", "datetime", "date", "timedelta64"), "dates"),
    **dict.fromkeys(("timedelta", "time", "period"), "dates"),
    "string": "text",
    "bytes": "bytes",
}

# Text that often stands for a missing value.
MARKERS = {"", "na", "n/a", "nan", "null", "none", "missing", "unknown", "?", ".", "-"}

MOST_SHOWN = 4


@dataclass(frozen=True)
class Column:
    """A column that is not stored as numbers.

    place: its number; name: its name in a data frame, None in an array
    values: (n_rows,) Python objects
    is_category: whether the table says that the values are categories
    is_dates: whether it says that they are dates or times; they are text then
    """

    place: int
    name: Any
    values: np.ndarray = field(repr=False)
    is_category: bool = False
    is_dates: bool = False

    def __str__(self) -> str:
        return f"column {self.place if self.name is None else repr(self.name)}"

    @property
    def access(self) -> str:
        """How to select the column of `X`."""
        return f"X[:, {self.place}]" if self.name is None else f"X[{self.name!r}]"

    @cached_property
    def known(self) -> np.ndarray:
        """Values that are not missing."""
        return self.values[~self.missing]

    @cached_property
    def missing(self) -> np.ndarray:
        """Where a value is None, NaN or the like, (n_rows,) bool."""
        import pandas as pd

        try:
            return np.asarray(pd.isna(self.values), dtype=bool)
        except ArithmeticError:
            raise ValueError(
                f"X must hold numbers, got a signalling NaN of decimals in {self}. "
                "Replace it by None."
            ) from None

    @cached_property
    def kind(self) -> str:
        """What the values are: "numbers", "text", "dates", "bytes", "mixed", "other".

        Mixed are numbers and text. Others are no values of a table, such as lists.
        """
        import pandas as pd

        if self.is_dates:
            return "dates"
        values = self.known
        kind = KINDS.get(pd.api.types.infer_dtype(values, skipna=False))
        if kind is not None:
            return kind
        numbers = [isinstance(value, Real | Decimal | np.bool_) for value in values]
        pairs = zip(values, numbers, strict=True)
        plain = all(number or isinstance(value, str) for value, number in pairs)
        return "other" if not plain else "numbers" if all(numbers) else "mixed"

    @property
    def levels(self) -> list:
        """The different values, missing ones left out, in an order of their own."""
        return ordered(self.coded[1])

    @cached_property
    def coded(self) -> tuple[np.ndarray, np.ndarray]:
        """Number of the level of each row, -1 for missing, and the levels."""
        import pandas as pd

        return pd.factorize(self.values)

    def numbers(self) -> np.ndarray:
        """The values of a column of numbers as floats, NaN where missing."""
        numbers = np.full(len(self.values), np.nan)
        try:
            numbers[~self.missing] = self.known.astype(np.float64)
        except OverflowError:
            large = next(value for value in self.known if _overflows(value))
            raise ValueError(
                "X must hold numbers that fit into 64-bit floats, got "
                f"{shown(large)} in {self}."
            ) from None
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X must hold numbers, got others in {self}: {error}."
            ) from None
        return numbers

    def refuse(self, expected: str, remedy: str) -> NoReturn:
        """Raise an error that names the column, some values and what to do."""
        raise ValueError(
            f"X must hold {expected}, got {few(self.levels)} in {self}. {remedy}"
        )

    def refuse_odd(self, expected: str, dates: str, *, mixed: bool = False) -> None:
        """Refuse dates, bytes, numbers beside text, and what is no value at all.

        dates: what to do with dates; mixed: whether numbers beside text are right
        """
        decode = ".astype(str)" if self.name is None else ".str.decode('utf-8')"
        remedies = {
            "dates": f"These are dates or times. Drop the column, or {dates}.",
            "bytes": f"These are bytes. Decode them with {self.access}{decode}.",
            "mixed": "Numbers and text are mixed. Make them one type, for example with "
            f"pd.to_numeric({self.access}, errors='coerce').",
        }
        if self.kind in remedies and not (mixed and self.kind == "mixed"):
            self.refuse(expected, remedies[self.kind])
        if self.kind == "other":
            plain = str | Real | Decimal
            odd = next(value for value in self.known if not isinstance(value, plain))
            if isinstance(odd, Complex):
                raise ValueError(f"Complex data not supported: {odd!r} in {self} of X.")
            raise TypeError(
                f"X must hold {expected}: the argument must be a string or a number in "
                f"each cell, got {shown(odd)} in {self}. Drop the column, or make one "
                "column of each part of its values."
            )


def _overflows(value) -> bool:
    try:
        return float(value) is None
    except OverflowError:
        return True


def ordered(values) -> list:
    """Different values in an order that does not depend on the rows."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, repr(value)))


def few(values: list) -> str:
    """The first of some values, and how many there are."""
    text = ", ".join(map(_short, values[:MOST_SHOWN]))
    if len(values) <= MOST_SHOWN:
        return text
    return f"{text}, ... ({len(values)} different values)"


def _short(value) -> str:
    """Text of a value; dates as people write them."""
    dated = hasattr(value, "isoformat") and not isinstance(value, str)
    return value.isoformat() if dated else shown(value)


def column_number(names, place: int) -> str:
    """What an error calls a column, as `Column` does."""
    return str(Column(place, None if names is None else names[place], np.empty(0)))


def number_column(X, place: int) -> np.ndarray:
    """A column of numbers or truth values as floats, of whatever table."""
    if hasattr(X, "iloc"):
        return X.iloc[:, place].to_numpy(dtype=float, na_value=np.nan)
    if hasattr(X, "with_columns"):
        return X.to_series(place).to_numpy().astype(float)
    if sparse.issparse(X):
        return X.tocsc()[:, [place]].toarray().ravel().astype(float)
    return X[:, place].astype(float)


def odd_columns(X) -> tuple[Any, list[Column]]:
    """The table, a list as an array, and its columns that are not stored as numbers.

    What is no table of two dimensions has none; scikit-learn will say what it is.
    """
    if sparse.issparse(X):
        return X, []
    if hasattr(X, "iloc") and hasattr(X, "dtypes"):
        return X, _odd_of_pandas(X)
    if hasattr(X, "with_columns"):
        return X, _odd_of_polars(X)
    if isinstance(X, list | tuple):
        X = _array_of(X)
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "OUSTMm":
        return X, []
    if isinstance(X, np.ma.MaskedArray):
        return X, []
    return X, columns_of(X)


def columns_of(X: np.ndarray, names=None) -> list[Column]:
    """All columns of an array of objects, text or dates."""
    is_dates = X.dtype.kind in "Mm"
    # Dates of nanoseconds, or far away, would become integers.
    objects = (X.astype(str) if is_dates else X).astype(object)
    return [
        Column(j, None if names is None else names[j], objects[:, j], False, is_dates)
        for j in range(X.shape[1])
    ]


def _array_of(rows):
    """An array of rows that are lists, whose cells keep their types; others as is."""
    try:
        array = np.asarray(rows)
        if array.dtype.kind in "US":
            # Numbers beside text would become text.
            array = np.asarray(rows, dtype=object)
    except (ValueError, TypeError, OverflowError):
        return rows
    return array if array.ndim == 2 else rows


def _odd_of_pandas(X) -> list[Column]:
    import pandas as pd

    odd: list[Column] = []
    for j, dtype in enumerate(X.dtypes if X.ndim == 2 else ()):
        # scikit-learn reads NumPy's and pandas' own types of numbers.
        if dtype.kind not in "biufc" or isinstance(dtype, pd.ArrowDtype):
            values = X.iloc[:, j].to_numpy(dtype=object)
            is_category = isinstance(dtype, pd.CategoricalDtype)
            odd.append(Column(j, X.columns[j], values, is_category))
    return odd


def _odd_of_polars(X) -> list[Column]:
    odd = []
    for j, (name, dtype) in enumerate(X.schema.items()):
        kind = str(dtype)
        if dtype.is_numeric() and not kind.startswith("Decimal"):
            continue
        is_dates = dtype.is_temporal()
        if is_dates:
            # Dates that are far away make polars panic.
            values = X.to_series(j).to_numpy().astype(str).astype(object)
        else:
            values = np.empty(X.height, dtype=object)
            values[:] = X.to_series(j).to_list()
        is_category = kind.startswith(("Categorical", "Enum"))
        odd.append(Column(j, name, values, is_category, is_dates))
    return odd


def with_columns(X, new: dict[int, np.ndarray]):
    """The table with some columns replaced, by number; names stay."""
    if not new:
        return X
    if hasattr(X, "iloc"):
        table = X.copy(deep=False)
        for j, values in new.items():
            table.isetitem(j, values)
        return table
    if hasattr(X, "with_columns"):
        table = X.clone()
        for j, values in new.items():
            series = type(X.to_series(j))
            table.replace_column(j, series(X.columns[j], values))
        return table
    table = np.empty(X.shape)
    for j in range(X.shape[1]):
        table[:, j] = new[j]
    return table


def read_numbers(X, family: str) -> Any:
    """The table with all columns as numbers.

    family: who reads them and what else could be used, the end of an error message
    """
    X, odd = odd_columns(X)
    return with_columns(X, {c.place: _numbers_of(c, family) for c in odd})


def _numbers_of(column: Column, family: str) -> np.ndarray:
    """Numbers of a column, which must not be labels."""
    column.refuse_odd("numbers", "make numbers of it, such as days since a date")
    remedy = ""
    if column.is_category and len(column.known):
        remedy = (
            "The column is one of categories. If they are amounts, convert it with "
            f"{column.access}.astype(float); else drop it, or {family}"
        )
    elif column.kind == "text":
        remedy = f"Drop the column, or {family}"
        if is_numeric_text(column.levels):
            remedy = (
                "These are numbers stored as text. Convert them with "
                f"pd.to_numeric({column.access}, errors='coerce')."
            )
    if remedy:
        column.refuse("numbers", remedy)
    return column.numbers()


def is_numeric_text(levels: list) -> bool:
    """Whether text holds numbers, but for markers of missing values."""
    words = [level for level in levels if level.strip().casefold() not in MARKERS]
    try:
        return bool(words) and all(np.isfinite(float(word)) for word in words)
    except ValueError:
        return False
