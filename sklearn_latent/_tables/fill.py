"""Filled gaps, in the type that the data came in."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def fill_gaps(X, missing, values):
    """Copy of `X` with values where it has none; container, dtypes, labels as they are.

    X: data frame (pandas, polars), sparse matrix or array-like
    missing: cells to fill, bool; values: what to put there. Both have as many cells as
    X, in its order.
    """
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    missing, values = np.reshape(missing, shape), np.reshape(values, shape)
    if hasattr(X, "iloc"):
        return _fill_pandas(X, missing, values)
    if hasattr(X, "with_columns"):
        return _fill_polars(X, missing, values)
    if sparse.issparse(X):
        rows, columns = missing.nonzero()
        filled = X.tolil(copy=True)
        filled[rows, columns] = values[rows, columns]
        return filled.asformat(X.format)
    filled = np.array(X, order="C")
    is_text = isinstance(X, list | tuple) and filled.dtype.kind == "U"
    if is_text or (filled.dtype.kind == "f" and _holds_text(values[missing])):
        # Numbers beside text would become text, and gaps alone cannot take any.
        filled = np.array(X, dtype=object, order="C")
    filled[missing] = values[missing]
    if filled.dtype.kind == "O" and filled.ndim > 1:
        _restore_types(filled, missing)
    return filled


def _holds_text(values) -> bool:
    """Whether some values are text."""
    return any(isinstance(value, str) for value in values)


def _restore_types(filled, missing) -> None:
    """Give the filled cells of each column of objects the type of its others."""
    columns = filled.reshape(-1, filled.shape[-1]).T
    for column, gaps in zip(columns, missing.reshape(columns.T.shape).T, strict=True):
        if gaps.any():
            column[gaps] = _as_type(column[gaps], set(map(type, column[~gaps])))


def _fill_pandas(X, missing, values):
    filled = X.copy()
    for j in np.flatnonzero(missing.any(axis=0)):
        column, gaps = filled.iloc[:, j].copy(), missing[:, j]
        new = values[gaps, j]
        if hasattr(column, "cat"):
            # A code of 1.0 is the category 1 or True.
            labels = {label: label for label in column.cat.categories}
            new = [labels.get(value, value) for value in new]
            # This frame may lack categories that the one in fit had.
            unknown = [value for value in dict.fromkeys(new) if value not in labels]
            column = column.cat.add_categories(unknown)
        elif column.dtype.kind == "O" and column.dtype != object:
            # A type of text; a column that had no value in fit may be filled with 0.
            new = _as_type(new, {str})
        elif column.dtype.kind == "O":
            # Columns of Python objects have the type of what is in them.
            new = _as_type(new, {type(value) for value in column[~gaps]})
        elif column.dtype.kind == "f" and _holds_text(new):
            column = column.astype(object)
        elif column.dtype.kind == "f":
            new = new.astype(getattr(column.dtype, "numpy_dtype", column.dtype))
        elif column.dtype.kind in "biu":
            new = _as_type(new, {{"b": bool}.get(column.dtype.kind, int)})
        column.iloc[gaps] = new
        filled.isetitem(j, column)
    return filled


def _fill_polars(X, missing, values):
    filled = X.clone()
    for j in np.flatnonzero(missing.any(axis=0)):
        series, gaps = filled.to_series(j), missing[:, j]
        column = np.empty(len(gaps), dtype=object)
        column[:] = series.to_list()
        dtype = series.dtype
        if dtype.is_float() and _holds_text(values[gaps, j]):
            dtype = None
        kind = object if dtype is None else _python_type(dtype)
        column[gaps] = _as_type(values[gaps, j], {kind})
        if hasattr(dtype, "categories") and str(dtype).startswith("Enum"):
            # This frame may lack categories that the one in fit had.
            known = dtype.categories.to_list()
            dtype = type(dtype)(list(dict.fromkeys(known + column.tolist())))
        filled.replace_column(
            j, type(series)(series.name, column.tolist(), dtype=dtype)
        )
    return filled


def _python_type(dtype) -> type:
    """What the cells of a polars column are; old versions have no `to_python`."""
    if dtype.is_integer():
        return int
    if dtype.is_float():
        return float
    if str(dtype) == "Boolean":
        return bool
    return str if str(dtype).startswith(("String", "Categorical", "Enum")) else object


def _as_type(values, types) -> np.ndarray:
    """Values as Python objects of their column's one type, if it is numbers or text."""
    kind = next(iter(types)) if len(types) == 1 else None
    if kind is int:
        values = np.rint(np.asarray(values, dtype=np.float64))
    new = np.empty(len(values), dtype=object)
    new[:] = list(values)
    if kind in (bool, int, float, str):
        new[:] = [kind(value) for value in values]
    return new
