"""Noise models: densities, their derivatives, ideal means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm, t

from sklearn_latent.gaussian._noise import (
    Additive,
    Multiplicative,
    Student,
    get_noise,
)

NOISES = [Additive(), Multiplicative(), Student(2.5), Student(30.0)]
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

    reach = (200 if isinstance(noise, Student) else 12) * deviation
    expected, _ = quad(integrand, g - reach, g + reach, points=[g], limit=200)
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


@given(x=values, g=values, variance=variances, df=st.floats(0.5, 100.0))
def test_density_of_student(x, g, variance, df):
    expected = t.logpdf(x, df, g, np.sqrt(variance))
    assert Student(df).log_density(x, g, variance) == pytest.approx(expected)


@pytest.mark.parametrize("df", [1.5, 4.0, 20.0])
def test_student_fits_as_scipy_does(df):
    x = 5.0 + 2.0 * np.random.default_rng(1).standard_t(df, (2, 500))
    noise = Student(df)
    centre = noise.centre(x, None)
    variance = noise.best_variance(x, centre[:, None], None)
    for row, location, square in zip(x, centre, variance, strict=True):
        _, expected, scale = t.fit(row, fdf=df)
        assert location == pytest.approx(expected, abs=1e-3)
        assert np.sqrt(square) == pytest.approx(scale, rel=1e-3)
    found, *_ = t.fit(x[0], df, floc=5.0)
    assert Student().fitted(x[:1] - 5.0).df == pytest.approx(found, rel=1e-2)


def test_weights_of_student_are_repetitions():
    rng = np.random.default_rng(0)
    x, weights = rng.standard_t(3, (2, 60)), rng.integers(0, 3, 60)
    repeated = x.repeat(weights, axis=1)
    noise = Student(3.0)
    for method in (
        noise.centre,
        lambda x, w: noise.best_variance(x, 0.0 * x[:, :1], w),
    ):
        np.testing.assert_allclose(
            method(x, weights.astype(float)), method(repeated, None), rtol=1e-2
        )
    assert noise.fitted(x, weights).df == pytest.approx(
        noise.fitted(repeated).df, rel=1e-4
    )


def test_noises_by_name():
    assert get_noise("student").df is None
    assert get_noise("student(4.5)").df == 4.5
    for bad in ("student()", "student(0)", "student(x)"):
        with pytest.raises(ValueError, match="noise must be one of"):
            get_noise(bad)
    with pytest.raises(ValueError, match="degrees of freedom here"):
        Student().log_density(0.0, 0.0, 1.0)
    assert isinstance(get_noise("additive"), Additive)
    assert isinstance(get_noise("multiplicative"), Multiplicative)
    with pytest.raises(ValueError, match=r"noise must be one of .*'white'"):
        get_noise("white")
