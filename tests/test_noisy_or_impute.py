"""Missing cells get the more probable value, given the rest of their row."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from brute_force import answer, random_network, random_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sklearn_latent import (
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.noisy_or import _posterior
from sklearn_latent.noisy_or._posterior import predict_off

seeds = st.integers(0, 2**32 - 1)


def fitted(network):
    model = NoisyOrMoMLearner()
    model.n_features_in_ = network.n_features
    model._store(network)
    return model


def brute_off(network, X):
    """P(off) of each missing cell, from sums over all states."""
    found = []
    for row, feature in np.argwhere(np.isnan(X)):
        off = X[[row]].copy()
        off[0, feature] = 0.0
        ratio = answer(network, off)[0][0] - answer(network, X[[row]])[0][0]
        found.append(np.exp(ratio))
    return np.array(found)


def predict(network, X):
    return predict_off(network, X == 1, ~np.isnan(X))


@settings(max_examples=25, deadline=None)
@given(seed=seeds, n_latents=st.integers(0, 4), by_parts=st.booleans())
def test_probabilities_are_ratios_of_likelihoods(seed, n_latents, by_parts):
    network = random_network(seed, n_latents, 5)
    X = random_rows(seed, 12, 5, missing=0.4)
    with pytest.MonkeyPatch.context() as patch:
        if by_parts:
            patch.setattr(_posterior, "MAX_TABLE", 0)
        found = predict(network, X)
    assert not found.is_bound.any()
    np.testing.assert_allclose(found.off, brute_off(network, X), atol=1e-9)


@pytest.mark.parametrize("most", [0, 10])
def test_rows_that_cannot_be_say_nothing(monkeypatch, most):
    monkeypatch.setattr(_posterior, "MAX_TABLE", most)
    failure = np.array([[0.5, 0.2]])
    network = NoisyOrNetwork([0.0], failure, [0.0, 0.3])
    found = predict(network, np.array([[1.0, np.nan]]))
    np.testing.assert_allclose(found.off, [0.7])


def test_other_causes_explain_a_cell_away():
    """The joint posterior counts: alone, each latent would leave the cell off."""
    network = NoisyOrNetwork(
        [0.1, 0.1],
        [[0.05, 1.0, 0.05], [1.0, 0.05, 0.05]],
        [0.001, 0.001, 0.001],
    )
    X = np.array([[1, 0, np.nan], [0, 0, np.nan], [0, 1, np.nan]])
    filled = fitted(network).impute(X)
    np.testing.assert_array_equal(filled[:, 2], [1, 0, 1])
    np.testing.assert_array_equal(filled[:, :2], X[:, :2])


@pytest.fixture(scope="module")
def rows():
    network = NoisyOrNetwork([0.4], [[0.1] * 6], [0.05] * 6)
    X = network.sample(400, random_state=0)[0].astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize(
    "model",
    [
        NoisyOrMoMLearner(np.ones((1, 6))),
        QuartetStructureLearner(),
        NoisyOrEM(random_state=0),
        NoisyOrEM(inference="variational", random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__}",
)
def test_containers_and_types_stay(model, rows):
    model = model.fit(rows)
    filled = model.impute(rows)
    missing = np.isnan(rows)
    np.testing.assert_array_equal(filled[~missing], rows[~missing])
    others = np.nanmean(np.where(missing, np.nan, rows), axis=1)
    certain = missing & ((others > 0.8) | (others < 0.2))[:, None]
    np.testing.assert_array_equal(filled[certain], (others > 0.5)[certain.nonzero()[0]])

    full = np.nan_to_num(rows)
    np.testing.assert_array_equal(model.impute(full), full)
    assert model.impute(full) is not full
    small = rows.astype(np.float32)
    assert model.impute(small).dtype == np.float32
    np.testing.assert_array_equal(model.impute(small), filled)
    np.testing.assert_array_equal(model.impute(rows[:5].tolist()), filled[:5])
    columns = sparse.csc_array(np.nan_to_num(rows, nan=7.0))
    columns.data[columns.data == 7.0] = np.nan
    assert model.impute(columns).format == "csc"
    np.testing.assert_array_equal(model.impute(columns).toarray(), filled)


def test_frames(rows):
    names = list("abcdef")
    index = np.arange(len(rows)) + 100
    frame = pd.DataFrame(rows, columns=names, index=index)
    frame = frame.astype({"b": "boolean", "c": "Int8", "d": "float32"})
    model = NoisyOrEM(random_state=0).fit(frame)
    filled = model.impute(frame)
    pd.testing.assert_index_equal(filled.index, frame.index)
    assert list(filled.dtypes) == list(frame.dtypes)
    expected = NoisyOrEM(random_state=0).fit(rows).impute(rows)
    np.testing.assert_array_equal(filled.to_numpy(dtype=float), expected)

    bools = pd.DataFrame(np.where(np.isnan(rows), None, rows == 1), columns=names)
    assert {type(v) for v in model.impute(bools).to_numpy().ravel()} <= {bool, np.bool_}

    polar = pl.DataFrame(rows, schema=names).fill_nan(None)
    polar = polar.with_columns(pl.col("a").cast(pl.Boolean))
    assert model.impute(polar).schema == polar.schema
    np.testing.assert_array_equal(
        model.impute(polar).to_numpy().astype(float), expected
    )


@pytest.mark.parametrize("threshold", [-2.5, -1, 0.0, 0.5, 1, 2.7])
def test_filled_values_lie_on_their_side_of_the_threshold(rows, threshold):
    expected = NoisyOrEM(random_state=0).fit(rows).impute(rows)
    # The same rows, around another threshold.
    moved = rows + np.floor(threshold)
    model = NoisyOrEM(binarize=threshold, random_state=0).fit(moved)
    filled = model.impute(moved)
    np.testing.assert_array_equal(filled > threshold, expected == 1)
    np.testing.assert_array_equal(filled, expected + np.floor(threshold))
    frame = pd.DataFrame(moved).astype("Int64")
    np.testing.assert_array_equal(model.impute(frame).to_numpy(dtype=float), filled)


def test_rows_out_of_reach_are_said_to_be(monkeypatch):
    monkeypatch.setattr(_posterior, "MAX_TABLE", 0)
    monkeypatch.setattr(_posterior, "MAX_COST", {"auto": 1, "quick": 1, "exact": 1})
    network = random_network(3, 4, 6, density=1.0)
    X = np.array([[1, 1, 1, 1, 1, np.nan], [0, 0, 0, 0, 0, np.nan]])
    with pytest.warns(ApproximateInferenceWarning, match="1 of 2 missing values"):
        fitted(network).impute(X)
