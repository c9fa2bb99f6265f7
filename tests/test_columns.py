"""Columns that cannot be meant as they are get a warning that names them."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.base import clone

from sklearn_latent import NoisyOrEM, NoisyOrMoMLearner, QuartetStructureLearner
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.noisy_or._statistics.watched_columns import Columns, Watched

VALUES = st.sampled_from([0.0, 1.0, 2.0, -1.0, 0.5, 1.5, 7.0, np.nan])
TABLES = hnp.arrays(
    float, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=VALUES
)
pytestmark = pytest.mark.filterwarnings("ignore:structure=None assumes")
ESTIMATORS = [
    NoisyOrMoMLearner(),
    NoisyOrEM(random_state=0),
    QuartetStructureLearner(random_state=0),
]


def by_hand(X, threshold):
    rows = [], [], [], [], []
    for column in X.T:
        values = column[~np.isnan(column)]
        rows[0].append(bool((values > threshold).any()))
        rows[1].append(bool((values <= threshold).any()))
        rows[2].append(not set(values) <= {0.0, 1.0})
        rows[3].append(set(values) <= {1.0, 2.0})
        rows[4].append(min(values, default=2) > 1)
    return np.array(rows)


def assert_equal(one, two):
    assert one.n_rows == two.n_rows
    np.testing.assert_array_equal(one[1:], two[1:])


def table(n=300):
    """Two latents of three features each; enough rows that no column is constant."""
    rng = np.random.default_rng(0)
    Z = rng.random((n, 2)) < 0.4
    on = rng.random((n, 6)) < np.where(np.repeat(Z, 3, axis=1), 0.8, 0.1)
    return on.astype(float)


def complaints(model, X, **options):
    """Messages of a fit about columns; all warnings must point to this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, **options)
    assert all(w.filename == __file__ for w in caught)
    found = [str(w.message) for w in caught if "poor columns" in str(w.message)]
    assert all(
        w.category is PoorDataWarning for w in caught if "poor" in str(w.message)
    )
    assert len(found) <= 1
    return found[0] if found else ""


@settings(max_examples=100, deadline=None)
@given(X=TABLES, threshold=st.sampled_from([0.0, 0.5, 1.0, -1.0]))
def test_all_kinds_of_tables_are_looked_at_alike(X, threshold):
    expected = by_hand(X, threshold)
    np.testing.assert_array_equal(Columns.of(X, threshold)[1:], expected)
    np.testing.assert_array_equal(
        Columns.of(sparse.csr_array(X), threshold)[1:], expected
    )
    whole = np.nan_to_num(X).astype(np.int8)
    np.testing.assert_array_equal(
        Columns.of(whole, threshold)[1:], by_hand(whole.astype(float), threshold)
    )
    np.testing.assert_array_equal(
        Columns.of(whole > 0, threshold)[1:], by_hand((whole > 0) * 1.0, threshold)
    )


@settings(max_examples=60, deadline=None)
@given(X=TABLES, cut=st.integers(1, 7))
def test_blocks_add_up(X, cut):
    parts = [Columns.of(part, 0.0) for part in (X[:cut], X[cut:]) if len(part)]
    assert_equal(sum(parts[1:], parts[0]), Columns.of(X, 0.0))


def test_a_block_is_packed_and_its_columns_are_seen():
    X, weights = np.array([[0.0, 2.0], [5.0, 1.0]]), np.array([1.0, 0.0])
    one = Watched.of((X, weights), 0.0, lambda rows: rows.total)
    assert one.result == 1.0
    assert_equal(one.columns, Columns.of(X[:1], 0.0))
    assert_equal((one + one).columns, Columns.of(X[[0, 0]], 0.0))
    assert Watched.of((X, 0.0 * weights), 0.0, lambda rows: rows.total) is None


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
class TestWarnings:
    def test_binary_tables_are_quiet(self, model):
        assert complaints(model, table()) == ""
        assert complaints(model, table() > 0) == ""
        assert complaints(model, sparse.csr_array(table())) == ""

    def test_constant_columns_are_named(self, model):
        X = pd.DataFrame(table(), columns=list("abcdef"))
        X["b"], X["c"], X["e"] = 0.0, 1.0, np.nan
        message = complaints(model, X)
        assert "column c is always on" in message
        assert "column b is never on" in message
        assert "column e is without any value" in message

    def test_columns_coded_1_and_2_are_named_with_the_remedy(self, model):
        X = table()
        X[:, [1, 4]] += 1
        message = "x1, x4 are coded 1 and 2, .* binarize=1.0 if 2 means on; pass X == 1"
        for rows in (X, sparse.csr_array(X), iter(np.array_split(X, 9))):
            with pytest.raises(ValueError, match=message):
                clone(model).fit(rows)
        assert complaints(clone(model).set_params(binarize=1.0), table() + 1) == ""

    def test_other_values_are_named(self, model):
        X = np.random.default_rng(0).normal(size=(300, 12))
        message = complaints(model, X)
        assert (
            "12 columns (x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, ...) are not"
            in message
        )
        assert "another threshold" in message
        assert "x2 is not binary" in complaints(model, table() * [1, 1, 3, 1, 1, 1])
        assert complaints(clone(model).set_params(binarize=0.1), X) == ""

    def test_rows_without_weight_do_not_count(self, model):
        X = table()
        X[0] = 5.0
        weights = np.ones(len(X))
        weights[0] = 0.0
        assert complaints(model, X, sample_weight=weights) == ""
        assert "not binary" in complaints(model, X)

    def test_blocks_are_one_table(self, model):
        X = table()
        X[:, 0] = 0
        X[:, 1] = 2
        expected = complaints(model, X)
        assert "x0 is never on" in expected
        assert "x1 is always 2" in expected
        assert complaints(model, iter(np.array_split(X, 40))) == expected
        assert complaints(model, da.from_array(X, chunks=(7, 3))) == expected
        assert complaints(model, sparse.csr_array(X)) == expected


@pytest.mark.parametrize("model", [ESTIMATORS[0], ESTIMATORS[2]])
def test_batches_are_judged_together(model):
    X, model = table(), clone(model)
    X[:, 0] = 0
    for batch in np.array_split(X, 60)[:-1]:
        model.partial_fit(batch, update=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.partial_fit(X[-5:])
    messages = [str(w.message) for w in caught if "poor columns" in str(w.message)]
    expected = (
        "X has poor columns: column x0 is never on, which tells nothing of latents."
    )
    assert messages == [expected]
    assert caught[0].filename == __file__


def test_the_estimator_keeps_no_values():
    with pytest.warns(PoorDataWarning, match="not binary"):
        model = NoisyOrEM(2, random_state=0).fit(table() * 1234.5)
    assert all(values.dtype == bool for values in model._columns[1:])


def test_weights_count_rows():
    X, model = table(), NoisyOrEM(2, random_state=0)
    assert model.fit(X, sample_weight=np.full(len(X), 2.0))._columns.n_rows == 600
    learner = NoisyOrMoMLearner(np.repeat(np.eye(2, dtype=bool), 3, axis=1))
    learner.partial_fit(X[:100]).partial_fit(X[100:])
    assert learner._columns.n_rows == 300
