"""NoisyOrMoMLearner: wrong input is an error, poor data make a poor model."""

import numpy as np
import pytest
from scipy import sparse
from strategies import with_parameters

from sklearn_latent import NoisyOrMoMLearner
from sklearn_latent.datasets import figure_1_structure, make_noisy_or
from sklearn_latent.exceptions import (
    ModelMisfitWarning,
    PoorDataWarning,
    UnidentifiableWarning,
)

FIGURE_1 = figure_1_structure()


def figure_1_data(n_samples=5000, seed=0):
    return make_noisy_or(FIGURE_1, n_samples, leak=0.01, random_state=seed)


def assert_same(one, two, atol=0.0):
    for name in ("prior_", "failure_", "leak_"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(two, name), rtol=0, atol=atol, err_msg=name
        )


def assert_valid(learner):
    for values in (learner.prior_, learner.failure_, learner.leak_):
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        assert (values <= 1).all()


class TestBadInput:
    @pytest.mark.parametrize(
        ("structure", "message"),
        [
            (
                np.ones((2, 4)),
                r"structure must have one column per feature.*5.*\(2, 4\)",
            ),
            ([[1, 1, 1, 0, 0], [0] * 5], "structure must give every latent.*latent 1"),
            ([[1, 1, 3, 0, 0]], "structure must hold booleans"),
        ],
    )
    def test_structure(self, structure, message):
        with pytest.raises(ValueError, match=message):
            NoisyOrMoMLearner(structure).fit(figure_1_data(50).X)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (-np.ones(50), "sample_weight must be non-negative.*-1"),
            (np.zeros(50), "sample_weight must not be all zero"),
            (np.ones(49), r"sample_weight must have one value per row.*\(49,\)"),
            (np.full(50, np.nan), "sample_weight must hold numbers, got NaN"),
            (np.full(50, 1e308), "sample_weight must be at most 1e.100.*1e.308"),
            (np.full(50, 1e-320), "sample_weight must not be all zero, or below"),
            ("balanced", "sample_weight must be an array of numbers, got .*balanced"),
        ],
    )
    def test_weights(self, weights, message):
        with pytest.raises(ValueError, match=message):
            NoisyOrMoMLearner(FIGURE_1).fit(figure_1_data(50).X, sample_weight=weights)

    def test_values(self):
        X = figure_1_data(2000).X.astype(float)
        learner = NoisyOrMoMLearner(FIGURE_1, binarize=None)
        assert_same(learner.fit(X), NoisyOrMoMLearner(FIGURE_1).fit(X))
        with pytest.raises(ValueError, match=r"0 and 1.*binarize=None.*value 2\."):
            learner.fit(X * 2)
        with pytest.raises(ValueError, match=r"0 and 1.*binarize=None.*0\.5"):
            learner.fit(sparse.csr_array(X * 0.5))
        with pytest.raises(ValueError, match="infinity"):
            learner.fit(np.where(X == 1, np.inf, X))
        with pytest.raises(ValueError, match="0 sample"):
            learner.fit(X[:0])
        with pytest.raises(ValueError, match="binarize must be at least 0 for sparse"):
            NoisyOrMoMLearner(FIGURE_1, binarize=-1.0).fit(sparse.csr_array(X))
        with pytest.raises(ValueError, match="got 'a' in column 0"):
            learner.fit([["a", "b", "c", "d", "e"]])

    @pytest.mark.parametrize("value", ["high", [0.5], np.nan])
    def test_binarize(self, value):
        with pytest.raises((ValueError, TypeError), match="binarize"):
            NoisyOrMoMLearner(FIGURE_1, binarize=value).fit(figure_1_data(50).X)

    def test_partial_fit_with_another_width(self):
        learner = NoisyOrMoMLearner(FIGURE_1).partial_fit(figure_1_data(2000).X)
        with pytest.raises(ValueError, match=r"4 features.*expecting 5"):
            learner.partial_fit(np.zeros((3, 4)))


class TestPoorData:
    def test_unreached_edges_are_named(self):
        structure = np.array([[1, 1, 1, 1, 0], [0, 1, 1, 1, 1]], dtype=bool)
        network = with_parameters(structure, 0)
        X, _ = network.sample(5000, random_state=0)
        with pytest.warns(
            UnidentifiableWarning, match=r"8 of 8 edges.*\(0, 0\), \(0, 1\)"
        ):
            learner = NoisyOrMoMLearner(structure, refine=False).fit(X)
        assert_valid(learner)
        assert np.isinf(learner.depth_[structure]).all()
        with pytest.warns(UnidentifiableWarning, match="left without effect"):
            left = NoisyOrMoMLearner(structure, refine=False, clean_up=False).fit(X)
        assert (left.failure_[structure] > 0.999).all()

    @pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.LatentWarning")
    @pytest.mark.parametrize("refine", [True, False])
    @pytest.mark.parametrize(
        "spoil",
        [
            lambda X: np.zeros_like(X),
            lambda X: np.ones_like(X),
            lambda X: X[:1],
            lambda X: X[:2],
            lambda X: np.hstack([X[:, :1]] * 5),
            lambda X: np.where(np.arange(5) == 2, 1, X),
            lambda X: np.where(np.arange(5) == 2, 0, X),
            lambda X: np.where(np.arange(5) == 2, np.nan, X),
            lambda X: np.full(X.shape, np.nan),
            lambda X: np.random.default_rng(0).integers(0, 2, X.shape),
            lambda X: 1 - X,
            lambda X: X * 1e300,
            lambda X: X * 1e-300,
        ],
    )
    def test_a_finite_model_whatever_the_rows(self, spoil, refine):
        X = spoil(figure_1_data(300).X.astype(float))
        for structure in (FIGURE_1, None, np.ones((3, 5)), np.eye(5)):
            learner = NoisyOrMoMLearner(structure, refine=refine).fit(X)
            assert_valid(learner)
            assert np.isfinite(learner.transform(X)).all()
            assert np.isfinite(learner.score(X))
            error = learner.failure_stderr_
            assert (error[np.isfinite(error)] >= 0).all()

    def test_independent_features_are_reported(self):
        X = np.random.default_rng(0).integers(0, 2, (400, 5))
        X[:, 3] = 0
        with (
            pytest.warns(PoorDataWarning, match="no dependence"),
            pytest.warns(PoorDataWarning, match="column x3 is never on"),
        ):
            NoisyOrMoMLearner(FIGURE_1).fit(X)

    @pytest.mark.parametrize("refine", [True, False])
    def test_columns_that_exclude_each_other_contradict_the_model(self, refine):
        """The published estimator was less likely than independent columns."""
        rng = np.random.default_rng(0)
        on = rng.random(500) < 0.5
        noise = rng.random((2, 500)) < 0.1
        X = np.column_stack([on, ~on, on ^ noise[0], ~on ^ noise[1]])
        with pytest.warns(ModelMisfitWarning, match="pairs of features differ"):
            NoisyOrMoMLearner(np.ones((1, 4)), refine=refine).fit(X)
