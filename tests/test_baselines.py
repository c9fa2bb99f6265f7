"""Baselines against closed forms and other implementations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from sklearn_latent import LPCC
from sklearn_latent.baselines import (
    IndependentFeatures,
    LatentClasses,
)
from sklearn_latent.datasets import make_latent_dbn


def coins(n=300, seed=0, rate=(0.2, 0.7)):
    return (np.random.RandomState(seed).rand(n, len(rate)) < rate).astype(int)


def test_independent_categories_have_their_shares():
    X = coins()
    model = IndependentFeatures().fit(X)
    shares = np.log(X.mean(axis=0)), np.log(1 - X.mean(axis=0))
    expected = np.where(X == 1, *shares).sum(axis=1)
    np.testing.assert_allclose(model.score_samples(X), expected, atol=2e-3)
    assert model.n_latents_ == 0
    assert model.transform(X).shape == (len(X), 0)


def test_independent_numbers_are_normal():
    X = np.random.RandomState(0).normal([-5.0, 3.0], [1.0, 20.0], size=(400, 2))
    expected = norm(X.mean(axis=0), X.std(axis=0)).logpdf(X).sum(axis=1)
    found = IndependentFeatures().fit(X).score_samples(X)
    np.testing.assert_allclose(found, expected, atol=5e-3)


def test_missing_values_are_left_out():
    X = coins().astype(float)
    X[::3, 0] = np.nan
    model = IndependentFeatures().fit(X)
    alone = IndependentFeatures().fit(X[:, 1:]).score_samples(X[:, 1:])
    np.testing.assert_allclose(model.score_samples(X)[::3], alone[::3], atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(4)))
def test_order_of_columns_does_not_matter(order):
    X = coins(rate=(0.1, 0.4, 0.6, 0.8))
    score = IndependentFeatures().fit(X).score(X)
    permuted = X[:, order]
    assert IndependentFeatures().fit(permuted).score(permuted) == pytest.approx(score)


def test_number_of_classes_is_found():
    X = make_latent_dbn("G1", 800, n_slices=1, reliability=0.9, random_state=0).X
    model = LatentClasses().fit(X)
    assert model.n_classes_ == 4
    assert model.transform(X).shape == (800, 4)
    # The true model, learned by another route.
    other = LPCC(random_state=0).fit(X)
    assert model.score(X) == pytest.approx(other.score(X), abs=1e-2)


def test_independent_features_have_one_class():
    X = coins(2000)
    model = LatentClasses().fit(X)
    assert (model.n_classes_, model.n_latents_) == (1, 0)


def test_classes_over_time_are_a_hidden_markov_model():
    data = make_latent_dbn("G1", 300, 4, cardinality=2, random_state=0)
    model = LatentClasses(2, n_slices=4).fit(data.X)
    assert model.inter_.tolist() == [[True]]
    truth = data.network.log_likelihood(data.codes).mean()
    assert model.score(data.X) == pytest.approx(truth, abs=0.05)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (LatentClasses("many"), "n_classes"),
        (LatentClasses(0), "n_classes"),
        (IndependentFeatures(n_slices=0), "n_slices"),
        (IndependentFeatures(emissions="poisson"), "emissions"),
    ],
)
def test_wrong_parameters_are_named(model, name):
    with pytest.raises(ValueError, match=f"{name} must"):
        model.fit(coins())
