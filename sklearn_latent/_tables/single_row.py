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
    if hasattr(row, "columns"):
        row = _of_frame(row, named)
    elif hasattr(row, "index") and hasattr(row, "to_list"):
        if named and all(isinstance(label, str) for label in row.index):
            if not row.index.is_unique:
                raise ValueError("row must have each name once, got one twice.")
            row = dict(row.items())
        else:
            row = row.to_list()
    if isinstance(row, Mapping):
        known = set(names)
        for name in row:
            if name not in known:
                raise ValueError(
                    f"row must have names of features, such as {names[0]!r}, got "
                    f"{shown(name)}."
                )
        cells = np.empty(len(names), dtype=object)
        # What is not named is missing.
        cells[:] = [row.get(name, np.nan) for name in names]
        return _of_cells(cells, names, named)
    if sparse.issparse(row):
        cells = _flat(row.toarray(), len(names))
        return SingleRow(sparse.csr_array(row.reshape(1, len(names))), cells)
    return _of_cells(_flat(row, len(names)), names, named)


def _of_frame(frame, named: bool) -> Mapping | list:
    """Cells of a table of one row, of pandas or polars."""
    if frame.shape[0] != 1:
        raise ValueError(f"row must be a single row, got {frame.shape[0]} rows.")
    if hasattr(frame, "iloc"):
        # Columns one by one: pandas would turn integers beside floats into floats.
        cells = [column.iloc[0] for _, column in frame.items()]
    else:
        cells = list(frame.row(0))
    texts = all(isinstance(name, str) for name in frame.columns)
    is_unique = len(set(frame.columns)) == len(cells)
    if named and texts and is_unique:
        return dict(zip(frame.columns, cells, strict=True))
    return cells


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
