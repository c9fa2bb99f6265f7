"""Information criteria: one sign, one floor, and scikit-learn's numbers."""

from math import comb, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

from sklearn_latent._core.criteria import aic, bic, bic_price, bic_score, log_choices

LOG_LIKELIHOOD = st.floats(-1e6, 1e6)
PARAMETERS = st.integers(0, 1000)
ROWS = st.floats(0, 1e9)


@pytest.mark.parametrize("n_features", [1, 3])
def test_agree_with_scikit_learn(n_features):
    X = np.random.default_rng(0).normal(size=(50, n_features))
    mixture = GaussianMixture(1, reg_covar=0.0).fit(X)
    total = mixture.score_samples(X).sum()
    n_parameters = n_features + n_features * (n_features + 1) // 2
    assert bic(total, n_parameters, 50) == pytest.approx(mixture.bic(X))
    assert aic(total, n_parameters) == pytest.approx(mixture.aic(X))


@given(LOG_LIKELIHOOD, st.floats(1e-3, 1e3), PARAMETERS, ROWS)
def test_a_better_fit_is_a_lower_criterion(log_likelihood, gain, n_parameters, n_rows):
    better = log_likelihood + gain
    assert bic(better, n_parameters, n_rows) < bic(log_likelihood, n_parameters, n_rows)
    assert aic(better, n_parameters) < aic(log_likelihood, n_parameters)
    assert bic_score(better, n_parameters, n_rows) > bic_score(
        log_likelihood, n_parameters, n_rows
    )


@given(LOG_LIKELIHOOD, PARAMETERS, ROWS)
def test_score_of_searches_is_minus_half_the_criterion(log_likelihood, k, n_rows):
    score = bic_score(log_likelihood, k, n_rows)
    assert bic(log_likelihood, k, n_rows) == -2 * score
    assert score == pytest.approx(log_likelihood - k * bic_price(n_rows))


@given(LOG_LIKELIHOOD, PARAMETERS, ROWS)
def test_parameters_are_never_a_gain(log_likelihood, k, n_rows):
    assert bic(log_likelihood, k + 1, n_rows) >= bic(log_likelihood, k, n_rows)
    assert aic(log_likelihood, k + 1) == pytest.approx(aic(log_likelihood, k) + 2)


@given(ROWS, ROWS)
def test_price_grows_with_the_rows(n_rows, more):
    assert bic_price(n_rows + more) >= bic_price(n_rows)


@pytest.mark.parametrize("n_rows", [0, 0.0, 0.3, 1])
def test_floor_of_one_row(n_rows):
    assert bic_price(n_rows) == 0.0
    assert bic(-3.0, 5, n_rows) == 6.0


def test_price_is_half_the_log_of_the_rows():
    assert bic_price(np.e**2) == pytest.approx(1.0)
    assert bic_price(1.5) == pytest.approx(np.log(1.5) / 2)


@given(st.integers(0, 60), st.data())
def test_choices_are_binomial_coefficients(n_things, data):
    n_chosen = data.draw(st.integers(0, n_things))
    expected = log(comb(n_things, n_chosen))
    assert log_choices(n_things, n_chosen) == pytest.approx(expected, abs=1e-9)
