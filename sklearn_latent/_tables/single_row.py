"""Reading of a single row: an array, a series, a dictionary or a table of one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._core.validation import shown


class SingleRow(NamedTuple):
    """A row that a user gave.

    table: what `transform` takes, with one row
    cells: values as they were given, in the order of the features, as objects
    """

    table: Any
    cells: np.ndarray


def read_row(row: Any, names: list[str], *, named: bool) -> SingleRow:
    """Read one row, by names if it has them.

    names: of the features; named: whether the data of ``fit`` had them
    """
    if isinstance(row, Mapping):
        return _of_mapping(row, names, named)
    if hasattr(row, "columns"):
        return _of_frame(row, names, named)
    if hasattr(row, "index") and hasattr(row, "to_list"):
        if named and all(isinstance(label, str) for label in row.index):
            if not row.index.is_unique:
                raise ValueError("row must have each name once, got one twice.")
            return _of_mapping(dict(row.items()), names, named)
        row = row.to_list()
    if sparse.issparse(row):
        cells = _flat(row.toarray(), len(names))
        return SingleRow(sparse.csr_array(row.reshape(1, len(names))), cells)
    return _of_cells(_flat(row, len(names)), names, named)


def _of_mapping(row: Mapping, names, named) -> SingleRow:
    """Cells by name; what is not named is missing."""
    _check_known(row, names)
    cells = np.empty(len(names), dtype=object)
    cells[:] = [row.get(name, np.nan) for name in names]
    return _of_cells(cells, names, named)


def _of_frame(frame, names, named) -> SingleRow:
    """A table of one row, of pandas or polars."""
    if frame.shape[0] != 1:
        raise ValueError(f"row must be a single row, got {frame.shape[0]} rows.")
    is_pandas = hasattr(frame, "iloc")
    if named and all(isinstance(name, str) for name in frame.columns):
        _check_known(frame.columns, names)
        if is_pandas and frame.columns.is_unique:
            frame = frame.reindex(columns=names)
    if frame.shape[1] != len(names):
        raise ValueError(
            f"row must have {len(names)} columns, as in fit, got {frame.shape[1]}."
        )
    cells = np.empty(len(names), dtype=object)
    # Columns one by one: pandas would turn integers beside floats into floats.
    columns = (column for _, column in frame.items()) if is_pandas else None
    cells[:] = [c.iloc[0] for c in columns] if columns else list(frame.row(0))
    return SingleRow(frame, cells)


def _of_cells(cells, names, named) -> SingleRow:
    """Cells in the order of the features."""
    for name, cell in zip(names, cells, strict=True):
        if isinstance(cell, list | tuple | dict | set | np.ndarray):
            raise ValueError(
                f"row must have one value per feature, got {shown(cell)} for {name!r}."
            )
    if named:
        import pandas as pd

        columns = dict(zip(names, cells, strict=True))
        return SingleRow(pd.DataFrame(columns, index=[0]), cells)
    values = np.asarray(cells.tolist())
    # Numbers beside strings would become strings.
    table = cells if values.dtype.kind in "USO" else values
    return SingleRow(table.reshape(1, -1), cells)


def _flat(row, n_features: int) -> np.ndarray:
    """Cells of an array of one row."""
    try:
        array = np.asarray(row, dtype=object)
    except ValueError:  # lists of different lengths
        array = np.empty((0, 0), dtype=object)
    if array.ndim == 2 and len(array) == 1:
        array = array[0]
    if array.shape != (n_features,):
        raise ValueError(
            f"row must be a single row of {n_features} values, as in fit, got "
            + (f"shape {array.shape}." if array.size else f"{shown(row)}.")
        )
    return array


def _check_known(given, names) -> None:
    """Refuse names that are none of the features."""
    known = set(names)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(
            f"row must have names of features, such as {names[0]!r}, got "
            f"{shown(unknown[0])}."
        )
