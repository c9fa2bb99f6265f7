"""Structures as data frames, and names of latents."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_validate

from sklearn_latent import (
    IdealParentGaussianBN,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
)

FEATURES = ["fever", "cough", "rash", "itch", "ache"]
STRUCTURE = pd.DataFrame(
    [[1, 1, 0, 0, 1], [0, 1, 1, 1, 1]], index=["flu", "measles"], columns=FEATURES
)
NETWORK = NoisyOrNetwork(
    [0.4, 0.3], np.where(STRUCTURE.to_numpy() == 1, 0.2, 1.0), [0.05] * 5
)
X = pd.DataFrame(NETWORK.sample(3000, random_state=0)[0].astype(int), columns=FEATURES)

BOTH = pytest.mark.parametrize(
    "learner",
    [
        NoisyOrMoMLearner(STRUCTURE),
        NoisyOrEM(structure=STRUCTURE, n_init=1, random_state=0),
    ],
)
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.LatentWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


def with_structure(learner, structure):
    return clone(learner).set_params(structure=structure)


@BOTH
def test_columns_are_matched_by_name_or_by_place(learner):
    expected = clone(learner).fit(X)
    turned = STRUCTURE.iloc[:, [4, 2, 0, 1, 3]]
    polars = pl.DataFrame({name: turned[name].tolist() for name in turned})
    for structure in (turned, polars):
        found = with_structure(learner, structure).fit(X)
        np.testing.assert_array_equal(found.structure_, expected.structure_)
        np.testing.assert_allclose(found.failure_, expected.failure_)
    nameless = clone(learner).fit(X.to_numpy())
    np.testing.assert_allclose(nameless.failure_, expected.failure_)
    assert nameless.latent_names_.tolist() == ["flu", "measles"]


@BOTH
def test_rows_name_the_latents_everywhere(learner):
    model = clone(learner).fit(X)
    assert model.latent_names_.tolist() == ["flu", "measles"]
    assert list(model.get_feature_names_out()) == ["flu", "measles"]
    assert set(model.to_frame()["parent"]) <= {"flu", "measles"}
    assert "flu" in model.to_networkx()
    named = model.set_output(transform="pandas").transform(X)
    assert list(named.columns) == ["flu", "measles"]


@BOTH
@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (STRUCTURE.drop(columns="rash"), "none for 'rash'"),
        (STRUCTURE.assign(pox=1), "also 'pox'"),
        (STRUCTURE.rename(columns={"rash": "pox"}), "none for 'rash'; also 'pox'"),
        (STRUCTURE.set_axis(["flu", "flu"]), "no two rows named 'flu'"),
        (STRUCTURE.set_axis(["a", "b", "c", "d", "d"], axis=1), "'d' twice"),
    ],
)
def test_other_labels_are_refused(learner, structure, message):
    with pytest.raises(ValueError, match=message):
        with_structure(learner, structure).fit(X)


def test_many_names_are_not_all_listed():
    wide = pd.DataFrame(np.ones((1, 9), int), columns=[f"y{i}" for i in range(9)])
    with pytest.raises(ValueError, match="'y4' and 4 more"):
        NoisyOrMoMLearner(wide).fit(X)


def test_numbered_rows_name_nothing():
    model = NoisyOrMoMLearner(STRUCTURE.reset_index(drop=True)).fit(X)
    assert model.latent_names_.tolist() == ["latent0", "latent1"]


class TestRename:
    @pytest.mark.parametrize(
        "names", [["a", "b"], {"latent0": "a", "latent1": "b"}, np.array(["a", "b"])]
    )
    def test_lists_and_dictionaries(self, names):
        model = NoisyOrMoMLearner(STRUCTURE.to_numpy()).fit(X)
        assert model.rename_latents(names) is model
        assert list(model.get_feature_names_out()) == ["a", "b"]

    @pytest.mark.parametrize(
        "names",
        [
            ["a"],
            ["a", "a"],
            "ab",
            None,
            [1, 2],
            {"latent7": "a"},
            {"latent0": "latent1"},
        ],
    )
    def test_wrong_names(self, names):
        model = NoisyOrMoMLearner(STRUCTURE.to_numpy()).fit(X)
        with pytest.raises(ValueError, match="names must"):
            model.rename_latents(names)

    def test_a_fit_forgets_them_a_copy_does_not(self):
        model = (
            NoisyOrMoMLearner(STRUCTURE.to_numpy()).fit(X).rename_latents(["a", "b"])
        )
        for same in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert same.latent_names_.tolist() == ["a", "b"]
        assert model.fit(X).latent_names_.tolist() == ["latent0", "latent1"]

    def test_continuous_networks(self):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(400, 1)) * [2, -2, 2, 3, -2, 2] + rng.normal(
            size=(400, 6)
        )
        model = IdealParentGaussianBN(max_latents=1).fit(rows)
        model.rename_latents(["size"])
        assert model.node_names_[-1] == "size"
        assert list(model.get_feature_names_out())[-1] == "size"
        assert "size" in model.to_networkx()


def test_weights_of_scores():
    weights = np.arange(len(X)) % 3 + 1.0
    with sklearn.config_context(enable_metadata_routing=True):
        learner = NoisyOrMoMLearner(STRUCTURE)
        learner.set_fit_request(sample_weight=True)
        learner.set_score_request(sample_weight=True)
        params = {"sample_weight": weights}
        found = cross_validate(learner, X, cv=2, params=params)["test_score"]
    half = len(X) // 2
    model = clone(learner).fit(X[half:], sample_weight=weights[half:])
    expected = model.score(X[:half], sample_weight=weights[:half])
    assert found[0] == pytest.approx(expected)
    repeated = X.loc[X.index.repeat(weights.astype(int))]
    assert model.score(X, sample_weight=weights) == pytest.approx(model.score(repeated))
    assert model.score(X, sample_weight=2.0) == pytest.approx(model.score(X))
    with pytest.raises(ValueError, match="sample_weight"):
        model.score(X, sample_weight=[1.0])
