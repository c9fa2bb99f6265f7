"""Comparison of models by held-out likelihood."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold, cross_validate
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_latent import LGLPCCTemporal, NoisyOrEM, compare
from sklearn_latent.baselines import IndependentFeatures, LatentClasses
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import ModelMisfitWarning, PoorDataWarning


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.RandomState(0)
    return rng.normal(size=(90, 1)) + 0.5 * rng.normal(size=(90, 4))


@pytest.fixture(scope="module")
def coins():
    return (np.random.RandomState(0).rand(80, 3) < 0.3).astype(int)


class Constant(BaseEstimator):
    """Says the same of every row, or fails, or finds it impossible."""

    def __init__(self, value=0.0, error=None, impossible=None):
        self.value, self.error, self.impossible = value, error, impossible

    def fit(self, X, y=None, sample_weight=None):
        if self.error:
            raise RuntimeError(self.error)
        self.n_features_in_ = X.shape[1]
        return self

    def score_samples(self, X):
        rows = np.full(len(X), float(self.value))
        if self.impossible is not None:
            rows[np.asarray(X)[:, 0] == self.impossible] = -np.inf
        return rows


def test_means_and_paired_differences(numbers):
    models = {"one": GaussianMixture(1), "factors": FactorAnalysis(1)}
    table = compare(models, numbers, cv=3)
    rows = {}
    for name, model in models.items():
        rows[name] = np.empty(len(numbers))
        for train, test in KFold(3, shuffle=True, random_state=0).split(numbers):
            rows[name][test] = model.fit(numbers[train]).score_samples(numbers[test])
    for name, own in rows.items():
        line = table.loc[name]
        assert line["log_likelihood"] == pytest.approx(own.mean())
        assert line["stderr"] == pytest.approx(own.std(ddof=1) / np.sqrt(len(own)))
    best, other = table.index
    gap = rows[other] - rows[best]
    assert table.loc[other, "difference"] == pytest.approx(gap.mean())
    error = gap.std(ddof=1) / np.sqrt(len(gap))
    assert table.loc[other, "difference_stderr"] == pytest.approx(error)
    assert table.loc[best, ["difference", "difference_stderr"]].tolist() == [0, 0]


def test_best_first_and_reference(numbers):
    models = {"poor": Constant(-2), "good": Constant(-1), "middle": Constant(-1.5)}
    table = compare(models, numbers)
    assert table.index.tolist() == ["good", "middle", "poor"]
    table = compare(models, numbers, reference="middle")
    assert table["difference"].tolist() == [0.5, 0.0, -0.5]


def test_order_of_models_does_not_matter(numbers):
    names = ["independence", "mixture", FactorAnalysis(1)]
    one, other = (compare(some, numbers, cv=2) for some in (names, names[::-1]))
    columns = ["log_likelihood", "stderr", "difference", "parameters"]
    pd.testing.assert_frame_equal(one[columns], other[columns])


def test_a_list_gets_unique_names(numbers):
    models = [Constant(-1), Constant(-2), "independence", PCA(1)]
    table = compare(models, numbers, cv=2)
    assert set(table.index) == {"Constant 1", "Constant 2", "independence", "PCA"}


def test_numbers_of_parameters_and_latents(numbers):
    models = [GaussianMixture(2), FactorAnalysis(1), PCA(1), KernelDensity()]
    table = compare(models, numbers, cv=2)
    assert table["parameters"].drop("KernelDensity").to_dict() == {
        "GaussianMixture": 1 + 2 * (4 + 10),
        "FactorAnalysis": 4 + 4 + 4,
        "PCA": 4 + 4 + 1,
    }
    assert np.isnan(table.loc["KernelDensity", "parameters"])
    assert table.loc["FactorAnalysis", "latents"] == 1


def test_a_failure_is_one_row(numbers):
    models = {"works": Constant(-1), "breaks": Constant(error="out of\nluck")}
    with pytest.warns(
        PoorDataWarning, match="breaks failed.*RuntimeError: out of luck"
    ):
        table = compare(models, numbers)
    assert table.loc["breaks"].isna().all()
    assert table.loc["works", "difference"] == 0


def test_all_may_fail(numbers):
    with pytest.warns(PoorDataWarning, match="breaks failed"):
        assert compare({"breaks": Constant(error="no")}, numbers).isna().all().all()


def test_gaps_fail_where_models_refuse_them(numbers):
    gaps = numbers.copy()
    gaps[0, 0] = np.nan
    with pytest.warns(PoorDataWarning, match="PCA failed.*NaN"):
        table = compare([PCA(1), "independence"], gaps)
    assert np.isfinite(table.loc["independence", "log_likelihood"])


def test_impossible_rows_are_said_to_be_so(coins):
    models = {"sure": Constant(-1, impossible=1), "unsure": Constant(-3)}
    table = compare(models, coins)
    assert table.index.tolist() == ["unsure", "sure"]
    assert table.loc["sure", "log_likelihood"] == -np.inf
    assert table.loc["sure", "difference"] == -np.inf
    assert np.isnan(table.loc["sure", "difference_stderr"])
    both = {"a": Constant(-1, impossible=1), "b": Constant(-2, impossible=1)}
    gaps = compare(both, coins, reference="a").loc["b"]
    assert gaps["difference"] == pytest.approx(-np.mean(coins[:, 0] == 0))


def test_rows_in_no_test_set_do_not_count(coins):
    split = [(np.arange(40), np.arange(40, 60))]
    table = compare({"it": IndependentFeatures()}, coins, cv=split)
    rows = IndependentFeatures().fit(coins[:40]).score_samples(coins[40:60])
    assert table.loc["it", "log_likelihood"] == pytest.approx(rows.mean())


def test_weights_count_rows_several_times(coins):
    weights = np.arange(80) % 3
    split = [(np.arange(40), np.arange(40, 80))]
    table = compare([IndependentFeatures()], coins, split, sample_weight=weights)
    many = np.repeat(np.arange(80), weights)
    twice = [(np.flatnonzero(many < 40), np.flatnonzero(many >= 40))]
    again = compare([IndependentFeatures()], coins[many], twice)
    columns = ["log_likelihood", "stderr", "parameters"]
    pd.testing.assert_frame_equal(table[columns], again[columns])


def test_sampling_weights_have_no_scale(coins):
    weights = np.random.default_rng(0).lognormal(size=80)
    one, two = (
        compare([LatentClasses()], coins, sample_weight=scale * weights)
        for scale in (1.0, 700.3)
    )
    columns = ["log_likelihood", "stderr"]
    np.testing.assert_allclose(one[columns], two[columns], rtol=1e-4)


def test_a_row_without_weight_may_be_impossible(coins):
    weights = (coins[:, 0] == 0).astype(float)
    table = compare({"it": Constant(-1, impossible=1)}, coins, sample_weight=weights)
    assert table.loc["it", "log_likelihood"] == -1


def test_fits_without_weights_are_named(numbers):
    with pytest.warns(PoorDataWarning, match="no effect on fits of PCA"):
        compare([PCA(1), Constant()], numbers, sample_weight=np.ones(90))


def test_densities_and_probabilities_do_not_compare(coins):
    models = {"numbers": GaussianMixture(1), "categories": NoisyOrEM(1)}
    with pytest.warns(ModelMisfitWarning, match="categories of 0; numbers of 3"):
        compare(models, coins, cv=2)


def test_scaled_columns_do_not_compare(numbers):
    models = {"scaled": make_pipeline(StandardScaler(), PCA(1)), "plain": PCA(1)}
    with pytest.warns(ModelMisfitWarning, match="scaled scores the columns"):
        compare(models, numbers, cv=2)


def test_frames_stay_frames():
    frame = pd.DataFrame({"colour": ["red", "blue"] * 30, "size": np.arange(60) % 5})
    table = compare([IndependentFeatures(), LatentClasses(2)], frame, cv=2)
    assert np.isfinite(table["log_likelihood"]).all()


def test_baselines_take_the_slices_of_other_models():
    X = make_latent_dbn("G1", 60, 3, cardinality=2, random_state=0).X
    models = [LGLPCCTemporal(3, random_state=0), "mixture", "independence"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorDataWarning)
        table = compare(models, X, cv=2)
    # One distribution for all slices: as many parameters as one slice has.
    assert table.loc["independence", "parameters"] == 3


def test_jobs_change_nothing(coins, capsys):
    models = ["independence", "mixture"]
    columns = ["log_likelihood", "difference", "parameters"]
    one = compare(models, coins, cv=2, verbose=1)
    assert "[compare] independence:" in capsys.readouterr().out
    two = compare(models, coins, cv=2, n_jobs=2)
    pd.testing.assert_frame_equal(one[columns], two[columns])


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"models": []}, ValueError, "models must hold at least one"),
        ({"models": 3}, TypeError, "models must be a dictionary"),
        ({"models": ["magic"]}, ValueError, "models must name baselines"),
        ({"models": [StandardScaler()]}, TypeError, "score_samples"),
        ({"models": [PCA]}, TypeError, "models must hold estimators"),
        ({"reference": "other"}, ValueError, "reference must be the name"),
        ({"cv": []}, ValueError, "cv must give at least one split"),
        ({"cv": 1}, ValueError, "n_splits"),
        ({"sample_weight": [1.0]}, ValueError, "sample_weight must"),
        ({"n_jobs": 0}, ValueError, "n_jobs must"),
    ],
)
def test_wrong_arguments_are_named(coins, options, error, match):
    arguments = {"models": ["independence"], "X": coins, **options}
    with pytest.raises(error, match=match):
        compare(**arguments)


def test_weights_are_routed_to_scores(coins):
    weights = np.arange(80) % 4 + 0.5
    folds = KFold(2)
    with sklearn.config_context(enable_metadata_routing=True):
        model = NoisyOrEM(1, random_state=0)
        model.set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        found = cross_validate(
            model, coins, cv=folds, params={"sample_weight": weights}
        )["test_score"]
    for score, (train, test) in zip(found, folds.split(coins), strict=True):
        model = NoisyOrEM(1, random_state=0)
        model.fit(coins[train], sample_weight=weights[train])
        expected = model.score(coins[test], sample_weight=weights[test])
        assert score == pytest.approx(expected)


@pytest.mark.parametrize(
    "cv",
    ["5", [3], [([0, 1], [9])], [([0.5], [1])], [([], [1])], [([0], [1], [2])], []],
)
def test_folds_that_are_none(cv):
    with pytest.raises(ValueError, match="cv must"):
        compare(["independence"], np.eye(4), cv)


def test_folds_may_be_truth_values():
    X = np.random.default_rng(0).normal(size=(20, 2))
    train = np.arange(20) < 15
    one = compare(["independence"], X, [(train, ~train)])
    other = compare(["independence"], X, [(np.arange(15), np.arange(15, 20))])
    assert one.log_likelihood.iloc[0] == other.log_likelihood.iloc[0]
