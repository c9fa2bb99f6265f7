"""Noise models: densities, their derivatives, ideal means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from sklearn_latent.gaussian._noise import (
    Additive,
    Multiplicative,
    get_noise,
)

NOISES = [Additive(), Multiplicative()]
values = st.floats(0.2, 5.0)
variances = st.floats(0.01, 0.5)


def test_densities_are_normal():
    x, g, variance = 1.7, 1.4, 0.3
    assert Additive().log_density(x, g, variance) == pytest.approx(
        norm.logpdf(x, g, np.sqrt(variance))
    )
    assert Multiplicative().log_density(x, g, variance) == pytest.approx(
        norm.logpdf(x, g, g * np.sqrt(variance))
    )


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@given(x=values, g=values, variance=variances)
def test_score_is_finite_difference(noise, x, g, variance):
    step = 1e-6 * g
    change = noise.log_density(x, g + step, variance)
    change -= noise.log_density(x, g - step, variance)
    score = noise.score(x, g, variance)
    assert score == pytest.approx(change / (2 * step), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@given(g=values, variance=variances)
def test_information_is_expected_squared_score(noise, g, variance):
    deviation = np.sqrt(variance) * (g if noise.positive else 1.0)

    def integrand(x):
        return np.exp(noise.log_density(x, g, variance)) * (
            noise.score(x, g, variance) ** 2
        )

    reach = 12 * deviation
    expected, _ = quad(integrand, g - reach, g + reach, points=[g])
    assert noise.information(g, variance) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@given(x=values, variance=variances)
def test_ideal_mean_makes_the_value_most_probable(noise, x, variance):
    g = noise.ideal_mean(x, variance)
    assert noise.score(x, g, variance) == pytest.approx(0.0, abs=1e-9)
    best = noise.log_density(x, g, variance)
    assert (noise.log_density(x, g * np.linspace(0.5, 2, 31), variance) <= best).all()


@given(x=values, variance=variances)
def test_ideal_mean_is_equation_22(x, variance):
    expected = x * (-1 + np.sqrt(1 + 4 * variance)) / (2 * variance)
    assert Multiplicative().ideal_mean(x, variance) == pytest.approx(expected)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@given(x=values, variance=variances)
def test_curvature_at_the_ideal_mean(noise, x, variance):
    g = noise.ideal_mean(x, variance)
    step = 1e-4 * g
    density = np.exp(
        noise.log_density(x, g + step * np.array([-1.0, 0.0, 1.0]), variance)
    )
    second = (density[0] - 2 * density[1] + density[2]) / step**2
    assert noise.ideal_curvature(g, variance) == pytest.approx(
        -second / density[1], rel=1e-3
    )


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_draws_have_the_variance_of_the_model(noise):
    g = np.full(100_000, 2.0)
    x = noise.draw(g, 0.04, np.random.default_rng(0))
    assert noise.best_variance(x, g, None) == pytest.approx(0.04, rel=0.02)
    assert x.mean() == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_multiplicative_noise_needs_positive_values(bad):
    X = np.array([[1.0, 2.0], [np.nan, bad]])
    with pytest.raises(ValueError, match="multiplicative noise needs positive values"):
        Multiplicative().check(X)
    Additive().check(X)
    Multiplicative().check(np.array([[1.0, np.nan]]))


def test_noises_by_name():
    assert isinstance(get_noise("additive"), Additive)
    assert isinstance(get_noise("multiplicative"), Multiplicative)
    with pytest.raises(ValueError, match=r"noise must be one of .*'white'"):
        get_noise("white")
