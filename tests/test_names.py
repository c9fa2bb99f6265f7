"""One idea has one name in all estimators and model objects."""

import inspect
import re
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

import sklearn_latent
from sklearn_latent import (
    LPCC,
    SEMDBN,
    GaussianNetwork,
    IdealParentGaussianBN,
    LatentDBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent.datasets import make_latent_dbn

STRUCTURE = np.kron(np.eye(2, dtype=bool), np.ones((1, 5), dtype=bool))
ESTIMATORS = {
    "NoisyOrMoMLearner": NoisyOrMoMLearner(STRUCTURE),
    "NoisyOrEM": NoisyOrEM(2, random_state=0),
    "QuartetStructureLearner": QuartetStructureLearner(random_state=0),
    "IdealParentGaussianBN": IdealParentGaussianBN(max_latents=1, random_state=0),
    "LPCC": LPCC(random_state=0),
    "LGLPCCTemporal": LGLPCCTemporal(2, random_state=0),
    "SEMDBN": SEMDBN(2, 2, 2, n_init=1, random_state=0),
}
WITH_BIC = [name for name in ESTIMATORS if name != "NoisyOrMoMLearner"]
# Fitting with these climbs a bound or an estimate of the likelihood.
APPROXIMATE = {
    "NoisyOrEM": NoisyOrEM(2, inference="variational", random_state=0),
    "IdealParentGaussianBN": IdealParentGaussianBN(
        link="sigmoid", max_latents=1, max_iter=5, random_state=0
    ),
}
MODELS = [NoisyOrNetwork, GaussianNetwork, LatentDBN]
ALL = pytest.mark.parametrize("name", ESTIMATORS)
SCORED = pytest.mark.parametrize("name", WITH_BIC)

# Names that parameters had once, or have elsewhere.
RETIRED = [
    "max_steps",
    "measurement",
    "n_repeats",
    "n_restarts",
    "n_starts",
    "seed",
    "tolerance",
]

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.LatentWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


@cache
def rows(name):
    """Rows in which the estimator finds latents."""
    rng = np.random.default_rng(0)
    if name == "IdealParentGaussianBN":
        latent = rng.normal(size=(300, 1))
        return latent * [2, -2, 2, 3, -2, 2] + rng.normal(size=(300, 6))
    if name in ("LPCC", "LGLPCCTemporal", "SEMDBN"):
        n_slices = 1 if name == "LPCC" else 2
        X = make_latent_dbn("G1", 300, n_slices, random_state=0).X
        return np.asarray(X, dtype=float).reshape(300, -1)
    network = NoisyOrNetwork([0.4, 0.3], np.where(STRUCTURE, 0.2, 1.0), [0.05] * 10)
    return network.sample(500, random_state=0)[0].astype(float)


@cache
def fitted(name):
    return clone(ESTIMATORS[name]).fit(rows(name))


def n_slices(name):
    return getattr(ESTIMATORS[name], "n_slices", 1)


def parameters(cls):
    signature = inspect.signature(cls.__init__).parameters
    return {key: value for key, value in signature.items() if key != "self"}


def test_the_list_is_complete():
    classes = {
        name
        for name in sklearn_latent.__all__
        if hasattr(getattr(sklearn_latent, name), "fit")
    }
    assert classes == set(ESTIMATORS)


class TestFittedAttributes:
    @ALL
    def test_latents_structure_and_network(self, name):
        model = fitted(name)
        assert isinstance(model.n_latents_, int)
        assert model.n_latents_ >= 1
        names = model.latent_names_
        assert len(names) == len(set(names)) == model.n_latents_
        assert all(isinstance(latent, str) for latent in names)
        n_features = rows(name).shape[1] // n_slices(name)
        assert isinstance(model.structure_, np.ndarray)
        assert model.structure_.dtype == bool
        assert model.structure_.shape == (model.n_latents_, n_features)
        assert model.structure_.any(axis=1).all()
        assert isinstance(model.network_, tuple(MODELS))
        assert isinstance(model.network_.n_parameters, int)
        if "max_iter" in model.get_params():
            assert 0 <= model.n_iter_ <= model.max_iter

    def test_structure_is_a_block_of_the_adjacency(self):
        model = fitted("IdealParentGaussianBN")
        n = rows("IdealParentGaussianBN").shape[1]
        np.testing.assert_array_equal(model.structure_, model.adjacency_[n:, :n])
        assert list(model.latent_names_) == list(model.node_names_[n:])

    @ALL
    def test_nothing_is_hidden(self, name):
        model = fitted(name)
        names = [*vars(model), *vars(model.network_), *dir(type(model))]
        public = [key for key in names if not key.startswith("_")]
        assert not [key for key in public if "hidden" in key or "measurement" in key]


class TestCriteria:
    @SCORED
    @pytest.mark.parametrize("weighted", [False, True])
    def test_criteria_are_of_weighted_rows(self, name, weighted):
        model, X = fitted(name), rows(name)
        weights = np.arange(len(X)) % 3 if weighted else np.ones(len(X))
        if weighted:
            model = clone(ESTIMATORS[name]).fit(X, sample_weight=weights)
        assert model.is_exact_ is True
        assert isinstance(model.log_likelihood_, float)
        total = weights @ model.score_samples(X)
        assert model.log_likelihood_ == pytest.approx(total, rel=1e-9)
        n_parameters = model.network_.n_parameters
        penalty = n_parameters * np.log(weights.sum())
        assert model.bic_ == pytest.approx(penalty - 2 * total, rel=1e-9)
        if not weighted:
            assert model.score(X) == pytest.approx(total / len(X), rel=1e-9)
            assert model.bic_ == pytest.approx(model.bic(X), rel=1e-9)
            assert model.aic(X) == pytest.approx(2 * n_parameters - 2 * total)

    @ALL
    def test_lower_is_better(self, name):
        """Rows that look like the training rows have the lower criteria."""
        model, X = fitted(name), rows(name)
        shuffled = np.random.default_rng(0).permuted(X, axis=0)
        assert model.bic(X) < model.bic(shuffled)
        assert model.aic(X) < model.aic(shuffled)

    def test_lower_for_the_better_model(self):
        X = rows("NoisyOrEM")
        one = NoisyOrEM(1, random_state=0).fit(X)
        assert fitted("NoisyOrEM").bic_ < one.bic_
        X = rows("IdealParentGaussianBN")
        none = IdealParentGaussianBN(max_parents=0).fit(X)
        assert fitted("IdealParentGaussianBN").bic_ < none.bic_
        X = rows("SEMDBN")
        one = SEMDBN(1, 1, 2, n_init=1, random_state=0).fit(X)
        assert fitted("SEMDBN").bic_ < one.bic_

    def test_moments_compute_no_likelihood(self):
        model = fitted("NoisyOrMoMLearner")
        for name in ("bic_", "log_likelihood_", "is_exact_"):
            assert not hasattr(model, name)

    @pytest.mark.parametrize("name", APPROXIMATE)
    def test_a_bound_says_so(self, name):
        model, X = clone(APPROXIMATE[name]).fit(rows(name)), rows(name)
        penalty = model.network_.n_parameters * np.log(len(X))
        assert model.bic_ == pytest.approx(penalty - 2 * model.log_likelihood_)
        if model.is_exact_:
            total = model.score_samples(X).sum()
            assert model.log_likelihood_ == pytest.approx(total, rel=1e-9)
        # A latent behind a sigmoid has no closed form.
        assert model.is_exact_ is (name != "IdealParentGaussianBN")


class TestParameters:
    @ALL
    def test_no_retired_name(self, name):
        names = set(parameters(type(ESTIMATORS[name])))
        assert not names & set(RETIRED)
        assert not [key for key in names if "hidden" in key]

    @ALL
    def test_tolerance_is_per_row(self, name):
        if "tol" not in ESTIMATORS[name].get_params():
            return
        text = inspect.getdoc(type(ESTIMATORS[name]))
        described = re.search(r"^tol : .*?\n\n", text, flags=re.M | re.S)
        # A row of a temporal model is a sequence.
        assert described and re.search(r"per\s+(row|sequence)", described[0])

    @ALL
    def test_random_state(self, name):
        known = parameters(type(ESTIMATORS[name]))
        if "random_state" in known:
            # The same every time is a visible 0.
            assert known["random_state"].default in (None, 0)

    def test_chance_and_iterations_have_their_names(self):
        for cls in (NoisyOrEM, SEMDBN):
            expected = {"n_init", "max_iter", "tol", "random_state"}
            assert expected <= set(parameters(cls))
        assert {"max_iter", "tol"} <= set(parameters(IdealParentGaussianBN))


VERBS = [
    "fit(self, X, y, sample_weight",
    "transform(self, X",
    "fit_transform(self, X, y",
    "score(self, X, y",
    "score_samples(self, X",
    "sample(self, n_samples, random_state",
    "bic(self, X",
    "aic(self, X",
    "get_feature_names_out(self, input_features",
    "plot(self, ax",
    "to_networkx(self",
    "to_pgmpy(self",
    "to_frame(self",
]


class TestVerbs:
    @ALL
    @pytest.mark.parametrize("verb", VERBS)
    def test_estimators(self, name, verb):
        method, _, arguments = verb.partition("(")
        method = getattr(type(ESTIMATORS[name]), method)
        assert ", ".join(inspect.signature(method).parameters).startswith(arguments)

    @pytest.mark.parametrize("model", MODELS, ids=lambda cls: cls.__name__)
    def test_model_objects_have_them(self, model):
        assert isinstance(model.n_parameters, property)
        for verb in ("to_networkx", "to_pgmpy", "to_frame"):
            known = list(inspect.signature(getattr(model, verb)).parameters)
            assert known == ["self", "latent_names", "feature_names"]

    @ALL
    def test_model_objects(self, name):
        model = fitted(name).network_
        X, Z = model.sample(7, random_state=0)
        assert len(X) == len(Z) == 7
        likelihood = model.log_likelihood(X)
        assert likelihood.shape == (7,) and np.isfinite(likelihood).all()
        posterior = model.posterior(X)
        for part in posterior if isinstance(posterior, list) else [posterior]:
            assert len(part) == 7 and np.isfinite(part).all()
        assert len(model.to_frame()) == model.to_networkx().number_of_edges()
        assert type(model).from_json(model.to_json()) == model
        assert type(model).from_dict(model.to_dict()) == model
        assert hash(type(model).from_json(model.to_json())) == hash(model)

    @ALL
    def test_estimator_and_its_model_agree(self, name):
        estimator = fitted(name)
        edges = estimator.to_networkx().number_of_edges()
        assert edges == estimator.network_.to_networkx().number_of_edges()
        X, Z = estimator.sample(5, random_state=0)
        assert np.shape(X) == (5, rows(name).shape[1])
        assert len(Z) == 5

    def test_posterior_is_what_transform_returns(self):
        for name in ("NoisyOrEM", "QuartetStructureLearner"):
            expected = fitted(name).transform(rows(name))
            posterior = fitted(name).network_.posterior(rows(name))
            np.testing.assert_allclose(posterior, expected, atol=1e-12)
        model, X = fitted("IdealParentGaussianBN"), rows("IdealParentGaussianBN")
        means = model.network_.posterior(X)
        assert means.shape == (len(X), model.n_latents_)
        np.testing.assert_allclose(means, model.transform(X)[:, X.shape[1] :])


def with_gaps(X):
    gaps = X.copy()
    gaps[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return gaps


class TestImpute:
    @staticmethod
    def model(name):
        if not get_tags(ESTIMATORS[name]).input_tags.allow_nan:
            assert not hasattr(ESTIMATORS[name], "impute")
            pytest.skip("takes no gaps")
        return fitted(name)

    @ALL
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_array(self, name, dtype):
        X = with_gaps(rows(name)).astype(dtype)
        before = X.copy()
        filled = self.model(name).impute(X)
        assert type(filled) is np.ndarray
        assert np.isfinite(filled).all()
        seen = ~np.isnan(X)
        np.testing.assert_array_equal(filled[seen], X[seen], strict=True)
        np.testing.assert_array_equal(X, before)

    @ALL
    def test_without_gaps_nothing_changes(self, name):
        X = rows(name)
        kinds = [float] if name == "IdealParentGaussianBN" else [float, int]
        for given in map(X.astype, kinds):
            filled = self.model(name).impute(given)
            np.testing.assert_array_equal(filled, given, strict=True)
            assert filled is not given

    @ALL
    @pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
    def test_frame(self, name, container):
        self.model(name)
        X = with_gaps(rows(name))
        frame = container({f"c{j}": column for j, column in enumerate(X.T)})
        if container is pd.DataFrame:
            frame.index = np.arange(len(X))[::-1]
            frame["c0"] = frame["c0"].astype(np.float32)
        before = frame.__copy__()
        filled = clone(ESTIMATORS[name]).fit(frame).impute(frame)
        assert isinstance(filled, container)
        assert list(filled.dtypes) == list(frame.dtypes)
        if container is pd.DataFrame:
            pd.testing.assert_index_equal(filled.index, frame.index)
        values, given = filled.to_numpy(), frame.to_numpy()
        assert np.isfinite(values).all()
        np.testing.assert_array_equal(values[~np.isnan(X)], given[~np.isnan(X)])
        assert frame.equals(before)

    @ALL
    def test_each_row_by_itself(self, name):
        X = with_gaps(rows(name))[:10]
        model = self.model(name)
        one_by_one = np.vstack([model.impute(row[np.newaxis]) for row in X])
        np.testing.assert_allclose(model.impute(X), one_by_one)
