"""Latents over time: what users see."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import ApproximateInferenceWarning, PoorDataWarning
from sklearn_latent.mixed import LGLPCCTemporal, TemporalGraph


@pytest.fixture(scope="module")
def data():
    return make_latent_dbn("G3", 800, 4, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return LGLPCCTemporal(4, random_state=0).fit(data.X)


def test_nested_lists_of_three_dimensions(data, model):
    codes = data.codes[:5]
    expected = model.transform(codes)
    np.testing.assert_array_equal(model.transform(codes.tolist()), expected)


def test_close_to_the_true_model(data, model):
    fresh = data.network.sample(500, 4, random_state=1)[0]
    truth = data.network.log_likelihood(fresh).mean()
    assert model.score(fresh) == pytest.approx(truth, abs=0.3)
    states = model.predict(data.X)
    assert states.shape == data.Z.shape
    agreement = pd.crosstab(states[:, :, 0].ravel(), data.Z[:, :, 0].ravel())
    assert agreement.max(axis=1).sum() / agreement.to_numpy().sum() > 0.85


def test_two_and_three_dimensions_agree(data, model):
    cube = LGLPCCTemporal(random_state=0).fit(data.codes)
    assert cube.graph_ == model.graph_
    assert cube.n_slices_ == 4 and cube.n_features_in_ == 24
    assert np.allclose(cube.transform(data.codes), model.transform(data.X))
    assert np.allclose(model.score_samples(data.codes), model.score_samples(data.X))
    scores = [
        cross_val_score(LGLPCCTemporal(4, random_state=0), X, cv=3)
        for X in (data.X, data.codes)
    ]
    assert np.allclose(*scores)


def test_sequences_of_another_length(data, model):
    assert model.score_samples(data.codes[:5, :2]).shape == (5,)
    assert model.predict(data.codes[:5, :2]).shape == (5, 2, 2)
    with pytest.raises(ValueError, match="features"):
        model.score_samples(data.codes[:5, :, :2])


def test_transform_are_probabilities(data, model):
    posterior = model.transform(data.X)
    assert posterior.shape == (800, 4 * 8)
    assert np.allclose(posterior.reshape(800, 4, 2, 4).sum(axis=3), 1.0)
    names = model.get_feature_names_out()
    assert len(names) == 32 and names[0] == "t0_latent0_state0"


def test_grid_search(data):
    search = GridSearchCV(
        LGLPCCTemporal(4, random_state=0), {"cardinality": [2, 4]}, cv=2
    )
    search.fit(data.X[:400])
    assert search.best_params_ == {"cardinality": 4}


def test_pipeline(data):
    pipeline = make_pipeline(
        LGLPCCTemporal(4, random_state=0), RandomForestClassifier(10, random_state=0)
    )
    pipeline.fit(data.X[:400], data.Z[:400, -1, 1])
    assert pipeline.score(data.X[400:], data.Z[400:, -1, 1]) > 0.7


def test_polars_frames(data, model):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(data.X.astype(float))
    fitted = LGLPCCTemporal(4, random_state=0).fit(frame)
    assert fitted.graph_ == model.graph_
    holed = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 0)
        .then(None)
        .otherwise(pl.col("column_3"))
        .alias("column_3")
    )
    filled = fitted.impute(holed)
    assert (
        isinstance(filled, pl.DataFrame)
        and filled.null_count().sum_horizontal()[0] == 0
    )
    assert filled[1:].equals(frame[1:])


def test_ragged_sequences(data):
    X = data.codes.astype(float)
    X[:300, 2:] = np.nan
    model = LGLPCCTemporal(random_state=0).fit(X)
    assert model.graph_ == data.graph
    assert np.allclose(model.score_samples(X[:300]), model.score_samples(X[:300, :2]))


def test_independent_feature_has_its_own_distribution(data):
    noise = np.random.default_rng(0).choice(3, (800, 4, 1), p=[0.5, 0.3, 0.2])
    X = np.concatenate([data.codes, noise], axis=2)
    model = LGLPCCTemporal(random_state=0).fit(X)
    assert not model.structure_[:, 6].any()
    assert np.allclose(model.emission_[6], [[0.5, 0.3, 0.2]], atol=0.03)
    holed = X.astype(float)
    holed[0, 0, 6] = np.nan
    assert model.impute(holed)[0, 0, 6] == 0


def test_zero_latents():
    X = np.random.default_rng(0).integers(2, size=(100, 6))
    with pytest.warns(PoorDataWarning, match="No latent found.*do not depend on each"):
        model = LGLPCCTemporal(3, random_state=0).fit(X)
    assert model.n_latents_ == 0
    assert model.transform(X).shape == (100, 0)
    assert model.predict(X).shape == (100, 3, 0)
    # All values are independent.
    shares = [table[0] for table in model.emission_]
    expected = np.log([shares[j % 2][X[:, j]] for j in range(6)]).sum(axis=0)
    np.testing.assert_allclose(model.score_samples(X), expected)


@pytest.mark.parametrize("value", [np.nan, 3.0])
def test_one_warning_where_there_is_nothing_to_learn(value):
    with pytest.warns(PoorDataWarning) as caught:
        model = LGLPCCTemporal(3, random_state=0).fit(np.full((20, 6), value))
    assert model.n_latents_ == 0
    (warning,) = caught
    assert "No latent found" in str(warning.message)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_slices", 0),
        ("local", "other"),
        ("cardinality", 1),
        ("max_cardinality", 1),
        ("n_bins", 1),
        ("max_joint_states", 0),
        ("tol", -1),
    ],
)
def test_wrong_parameters(data, name, value):
    with pytest.raises(ValueError, match=name):
        LGLPCCTemporal(4).set_params(**{name: value}).fit(data.X)


def test_wrong_strategy(data, model):
    with pytest.raises(ValueError, match="strategy"):
        model.impute(data.X, strategy="mean")


def test_sequences_without_values(data):
    X = data.X[:300].astype(float)
    X[:3] = np.nan
    with pytest.warns(PoorDataWarning, match="3 of 300 sequences"):
        model = LGLPCCTemporal(4, random_state=0).fit(X)
    assert np.allclose(model.score_samples(X[:3]), 0.0)
    assert not np.isnan(model.impute(X[:3])).any()


def test_constant_feature(data):
    X = data.codes.copy()
    X[:, :, 0] = 7
    with pytest.warns(PoorDataWarning, match="one value"):
        model = LGLPCCTemporal(random_state=0).fit(X)
    assert not model.structure_[:, 0].any()


def test_unseen_category(data, model):
    X = data.X[:5].copy()
    X[0, 0] = 99
    with pytest.warns(PoorDataWarning, match="99"):
        scores = model.score_samples(X)
    holed = X.astype(float)
    holed[0, 0] = np.nan
    assert np.allclose(scores, model.score_samples(holed))
    with pytest.warns(PoorDataWarning, match="99"):
        assert model.impute(X)[0, 0] == 99


def test_too_many_joint_states(data):
    with pytest.warns(ApproximateInferenceWarning, match="max_joint_states=8"):
        model = LGLPCCTemporal(4, max_joint_states=8, random_state=0).fit(data.X)
    assert model.graph_ == data.graph


def test_verbose(data, capsys):
    LGLPCCTemporal(4, random_state=0, verbose=1).fit(data.X[:200])
    assert "latents" in capsys.readouterr().out


def test_undirected_edge_in_time():
    # Latents without memory: nothing tells the direction of the edge.
    graph = TemporalGraph(
        np.kron(np.eye(2), np.ones((1, 3))), [[0, 1], [0, 0]], np.zeros((2, 2))
    )
    data = make_latent_dbn(graph, 1000, 3, random_state=0)
    model = LGLPCCTemporal(3, random_state=0).fit(data.X)
    assert model.intra_[0, 1] and model.intra_[1, 0]
    assert not model.inter_.any()


def test_one_slice_with_more_joint_states_than_allowed():
    data = make_latent_dbn("G2", n_sequences=300, n_slices=1, random_state=0)
    model = LGLPCCTemporal(random_state=0, max_joint_states=8)
    with pytest.warns(ApproximateInferenceWarning, match="8"):
        model.fit(data.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximateInferenceWarning)
        assert np.isfinite(model.score(data.X))


def test_more_dimensions_than_sequences_have():
    with pytest.raises(ValueError, match="two or three dimensions, got 4"):
        LGLPCCTemporal(2).fit(np.zeros((3, 2, 2, 2)))


def test_criterion_of_the_training_sequences():
    data = make_latent_dbn("G1", 200, 3, random_state=0)
    X = data.X.astype(float)
    X[0] = np.nan  # a sequence that says nothing counts as a row all the same
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    with pytest.warns(PoorDataWarning, match="no value at all"):
        model = LGLPCCTemporal(3, random_state=0).fit(X)
    np.testing.assert_allclose(model.bic_, model.bic(X))
    np.testing.assert_allclose(model.log_likelihood_, model.score_samples(X).sum())
    assert model.is_exact_
