"""Fitted criteria are those of the training rows, and say when they are estimates."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_latent import NoisyOrEM, NoisyOrMoMLearner, QuartetStructureLearner
from sklearn_latent.datasets import make_noisy_or, make_noisy_or_images
from sklearn_latent.exceptions import ModelMisfitWarning
from sklearn_latent.noisy_or import _posterior
from sklearn_latent.noisy_or import _refine_causes as sampling

MODELS = [
    QuartetStructureLearner(),
    QuartetStructureLearner(refine=False),
    NoisyOrEM(3, random_state=0),
    NoisyOrEM(3, max_iter=2, random_state=0),
    NoisyOrEM(3, inference="variational", max_iter=50, random_state=0),
]


@pytest.fixture(scope="module")
def rows():
    structure = np.kron(np.eye(2, dtype=bool), np.ones((1, 5), dtype=bool))
    options = {"prior": 0.3, "failure": 0.1, "leak": 0.02, "random_state": 0}
    return make_noisy_or(structure, 1000, **options).X.astype(float)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_bic_is_that_of_the_training_rows(model, rows, missing):
    X = rows.copy()
    X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
    model = clone(model).fit(X)
    assert model.is_exact_
    assert model.bic_ == pytest.approx(model.bic(X), rel=1e-12)
    assert model.log_likelihood_ == pytest.approx(model.score_samples(X).sum())
    twice = clone(model).fit(X, sample_weight=np.full(len(X), 2.0))
    assert twice.bic_ == pytest.approx(twice.bic(np.vstack([X, X])), rel=1e-12)


def test_lower_bound_is_a_mean_and_a_bound(rows):
    exact = NoisyOrEM(2, random_state=0).fit(rows)
    assert exact.lower_bound_ == pytest.approx(exact.score(rows))
    bound = NoisyOrEM(2, inference="variational", random_state=0).fit(rows)
    assert bound.lower_bound_ < bound.score(rows)


def test_moments_have_no_likelihood(rows):
    with pytest.warns(ModelMisfitWarning):  # one latent is not enough
        model = NoisyOrMoMLearner(np.ones((1, rows.shape[1]))).fit(rows)
    for name in ("bic_", "log_likelihood_", "is_exact_"):
        assert not hasattr(model, name)


# Quartets alone leave much unexplained, and the fit says so.
@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.ModelMisfitWarning")
def test_bounds_and_samples_are_not_exact(monkeypatch):
    X = make_noisy_or_images(300, random_state=0).X
    monkeypatch.setattr(_posterior, "MAX_TABLE", 0)
    quick = QuartetStructureLearner(refine=False)
    assert quick.fit(X).is_exact_
    with monkeypatch.context() as patch:
        patch.setattr(_posterior, "MAX_COST", {"auto": 1, "exact": 1})
        model = QuartetStructureLearner().fit(X)
        assert not model.is_exact_
        with pytest.warns(UserWarning, match="out of reach"):
            assert model.bic_ == pytest.approx(model.bic(X))
    monkeypatch.setattr(sampling, "MAX_COUPLED", 2)
    monkeypatch.setattr(sampling, "SCORED_ROWS", (200_000, 100))
    assert not quick.fit(X).is_exact_
    assert quick.bic_ == pytest.approx(quick.bic(X), rel=0.2)
