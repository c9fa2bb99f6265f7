"""Latents behind the features of a table."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.mixed import LPCC


@pytest.fixture(scope="module")
def data():
    return make_latent_dbn("G2", 2000, 1, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return LPCC(random_state=0).fit(data.X)


def test_true_model(data, model):
    assert np.array_equal(model.structure_, data.graph.structure)
    assert model.cardinality_.tolist() == [4, 4]
    # A single slice cannot tell the direction.
    assert model.intra_[0, 1] and model.intra_[1, 0]
    assert not model.inter_.any()


def test_cluster_comparison_on_clean_data():
    data = make_latent_dbn("G2", 3000, 1, reliability=0.97, random_state=0)
    model = LPCC(local="lpcc", random_state=0).fit(data.X)
    assert np.array_equal(model.structure_, data.graph.structure)


def test_state_is_the_most_probable(data, model):
    posterior = model.transform(data.X).reshape(-1, 2, 4)
    agree = posterior.argmax(axis=2) == model.predict(data.X)
    assert agree.mean() > 0.97


def test_bins_of_numbers():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(1000, 2))
    X = np.repeat(factor, 3, axis=1) + 0.4 * rng.normal(size=(1000, 6))
    model = LPCC(random_state=0).fit(X)
    assert [np.flatnonzero(row).tolist() for row in model.structure_] == [
        [0, 1, 2],
        [3, 4, 5],
    ]
    holed = X.copy()
    holed[0, 0] = np.nan
    assert np.isfinite(model.impute(holed)[0, 0])


def test_export(model):
    assert model.to_pgmpy().check_model()
    frame = model.to_frame()
    assert len(frame) == model.structure_.sum() + 1  # each edge once
    assert set(frame["parent"]) == {"latent0", "latent1"}
    assert frame["child"].is_unique


def test_one_graph_has_no_support(model):
    """It would be 0% or 100%, whatever the edge."""
    assert model.to_frame().support.isna().all()
    texts = [text.get_text() for text in model.plot().ax_.texts]
    assert not any("%" in text for text in texts)
    labels = [text.get_text() for text in model.plot().ax_.get_legend().get_texts()]
    assert "within a slice" not in labels


def test_strengths_are_those_of_the_fitted_dependence(data, model):
    frame = model.to_frame().set_index("kind")
    states = pd.DataFrame(data.Z[:, 0])
    joint = pd.crosstab(states[0], states[1], normalize=True).to_numpy()
    rows, columns = entropy(joint.sum(axis=1)), entropy(joint.sum(axis=0))
    information = rows + columns - entropy(joint, axis=None)
    strength = frame.loc["intra", "strength"]
    assert strength == pytest.approx(information / min(rows, columns), abs=0.05)
    assert strength > 0.2


def test_a_row_has_no_transitions(data, model):
    # (4 - 1) + 4 * (4 - 1) of the latents, 4 * (4 - 1) of each feature.
    assert model._n_parameters() == 15 + 6 * 12
    expected = -2 * model.log_likelihood_ + (15 + 72) * np.log(2000)
    assert model.bic_ == pytest.approx(expected)
    assert model.bic(data.X) == pytest.approx(expected, rel=1e-6)
    for start, transition in zip(model.start_, model.transition_, strict=True):
        np.testing.assert_array_equal(start, transition)


def test_messages_are_of_rows(data):
    X = data.X[:200].astype(float)
    X[:3] = np.nan
    with pytest.warns(PoorDataWarning, match="3 of 200 rows have no value"):
        LPCC(random_state=0).fit(X)


@pytest.mark.parametrize(
    ("local", "reason"),
    [("bic", "no dependence, or the rows are too few"), ("lpcc", "takes clean data")],
)
def test_no_latent(local, reason):
    X = np.random.default_rng(0).integers(3, size=(60, 4))
    with pytest.warns(PoorDataWarning, match=f"No latent found.*{reason}"):
        model = LPCC(local=local, random_state=0).fit(X)
    assert model.transform(X).shape == (60, 0)
    assert model.predict(X).shape == (60, 0)
    assert np.isfinite(model.score(X))


def test_sequences_are_no_rows_without_time():
    X = make_latent_dbn("G1", 50, 1, random_state=0).codes
    model = LPCC(random_state=0).fit(X)
    assert model.transform(X).shape[1] == len(model.get_feature_names_out())
    longer = np.repeat(X, 2, axis=1)
    for method in (LPCC().fit, model.transform):
        with pytest.raises(ValueError, match="X must have one slice, because the mode"):
            method(longer)
