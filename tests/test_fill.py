"""Gaps are filled; container, types, labels and all else stay."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from sklearn_latent._tables.fill import fill_gaps

MISSING = np.array([[False, True], [False, False], [True, False]])
VALUES = np.array([[9.0, 1.0], [9.0, 9.0], [0.0, 9.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_keep_their_type_and_are_not_changed_in_place(dtype):
    X = np.array([[1, np.nan], [0, 1], [np.nan, 0]], dtype=dtype)
    filled = fill_gaps(X, MISSING, VALUES)
    assert filled.dtype == dtype
    np.testing.assert_array_equal(filled, [[1, 1], [0, 1], [0, 0]])
    assert np.isnan(X[0, 1])


def test_lists_become_arrays():
    filled = fill_gaps([[1, np.nan], [0, 1], [np.nan, 0]], MISSING, VALUES)
    np.testing.assert_array_equal(filled, [[1, 1], [0, 1], [0, 0]])


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_sparse_matrices_stay_sparse(format):
    X = sparse.random_array((3, 2), density=0).asformat(format)
    filled = fill_gaps(X, MISSING, VALUES)
    assert filled.format == format
    np.testing.assert_array_equal(filled.toarray(), [[0, 1], [0, 0], [0, 0]])


def test_cells_of_panels_are_in_the_order_of_their_rows():
    X = np.array([[1.0, np.nan], [0.0, 1.0], [np.nan, 0.0]])
    filled = fill_gaps(X[None], MISSING.ravel(), VALUES.ravel())
    np.testing.assert_array_equal(filled, [[[1, 1], [0, 1], [0, 0]]])


@pytest.mark.parametrize(
    ("dtype", "first", "expected"),
    [
        ("float32", 1.0, 0.0),
        ("boolean", True, False),
        ("Int64", 1, 0),
        (object, True, False),
        (object, 1, 0),
    ],
)
def test_pandas_columns_keep_dtype_index_and_names(dtype, first, expected):
    index = ["a", "b", "c"]
    X = pd.DataFrame(
        {
            "p": pd.array([first, first, None], dtype=dtype),
            "q": [np.nan, 1.0, 0.0],
        },
        index=index,
    )
    filled = fill_gaps(X, MISSING, VALUES)
    assert list(filled.index) == index
    assert list(filled.columns) == ["p", "q"]
    assert list(filled.dtypes) == list(X.dtypes)
    value = filled["p"].iloc[2]
    assert value == expected
    if dtype is object:
        assert type(value) is type(expected)
    assert filled["q"].tolist() == [1.0, 1.0, 0.0]
    assert X["p"].isna().sum() == 1


def test_categories_that_this_frame_lacks_are_added():
    X = pd.DataFrame({"p": pd.Categorical(["a", None])})
    filled = fill_gaps(X, [[False], [True]], np.array([[None], ["b"]], dtype=object))
    assert filled["p"].tolist() == ["a", "b"]


@pytest.mark.parametrize("dtype", [pl.Boolean, pl.Int8, pl.Float32, pl.Float64])
def test_polars_columns_keep_dtype_and_names(dtype):
    X = pl.DataFrame({"p": pl.Series([1, 1, None]).cast(dtype), "q": [None, 1.0, 0.0]})
    filled = fill_gaps(X, MISSING, VALUES)
    assert filled.schema == X.schema
    assert filled["p"].to_list() == [1, 1, 0]
    assert filled["q"].to_list() == [1.0, 1.0, 0.0]


def test_integer_columns_take_the_nearest_integer():
    X = pd.DataFrame({"p": pd.array([1, None], dtype="Int64")})
    filled = fill_gaps(X, [[False], [True]], np.array([[0.0], [1.7]]))
    assert filled["p"].tolist() == [1, 2]


@pytest.mark.parametrize("labels", [[False, True], [0, 1], [0.0, 1.0]])
def test_categories_that_are_numbers_are_found(labels):
    X = pd.DataFrame({"p": pd.Categorical([labels[0], None], categories=labels)})
    for one in (1.0, True, 1):
        values = np.array([[None], [one]], dtype=object)
        filled = fill_gaps(X, [[False], [True]], values)
        assert filled.dtypes.equals(X.dtypes)
        assert filled["p"].iloc[1] is labels[1] or filled["p"].iloc[1] == labels[1]


def test_arrays_of_objects_keep_the_type_of_each_column():
    X = np.array([[True, 1], [None, None]], dtype=object, order="F")
    gaps = np.array([[False, False], [True, True]])
    values = np.array([[9.0, 9.0], [0.0, 2.0]])
    for shape in ((2, 2), (1, 2, 2)):
        filled = fill_gaps(X.reshape(shape), gaps, values).reshape(2, 2)
        assert filled[1].tolist() == [False, 2]
        assert [type(value) for value in filled[1]] == [bool, int]


def test_integers_beside_labels():
    frame = pl.DataFrame({"p": [1, None], "q": ["a", None]})
    values = np.array([[9.0, "b"], [2.0, "b"]], dtype=object)
    filled = fill_gaps(frame, [[False, False], [True, True]], values)
    assert filled.rows() == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("container", [np.array, pd.DataFrame, pl.DataFrame])
def test_columns_without_a_value_take_text(container):
    X = np.full((2, 2), np.nan)
    values = np.array([["yes", 1.0], ["no", 2.0]], dtype=object)
    filled = fill_gaps(container(X), np.ones((2, 2), dtype=bool), values)
    assert np.asarray(filled).tolist() == values.tolist()
