"""Ideal parents against the formulas of the paper, written out."""

import numpy as np
import pytest

from sklearn_latent.gaussian._ideal_parent import (
    Response,
    expected_gain_c1,
    expected_gain_c2,
    ideal_profile,
    inner_product_weights,
    similarity_c1,
    similarity_c2,
)
from sklearn_latent.gaussian._links import Linear, Sigmoid
from sklearn_latent.gaussian._noise import Additive, Multiplicative

RNG = np.random.default_rng(0)
N = 40
THETA = np.array([0.5, 3.0, 0.0])


def sigmoid_data(noise_scale=0.05):
    """A child of two parents, inside the image of its link."""
    parents = RNG.normal(size=(2, N))
    weights = np.array([0.8, -0.5])
    eta = weights @ parents
    x = Sigmoid().value(eta + RNG.normal(scale=noise_scale, size=N), THETA)
    return x, parents, weights, eta


def test_linear_profile_is_the_residual():
    x, eta = RNG.normal(size=(2, N))
    theta = np.array([0.3, 1.0, 0.0])
    profile = ideal_profile(x, eta, Response(Linear(), Additive(), theta, 1.0))
    np.testing.assert_allclose(profile, x - eta - 0.3)


def test_theorem_3_2_and_3_4_written_out():
    y = RNG.normal(size=N)
    z = RNG.normal(size=(3, N))
    variance = y @ y / N
    weights = np.full(N, 1 / variance)
    c1 = [(y @ row) ** 2 / (row @ row) / (2 * variance) for row in z]
    np.testing.assert_allclose(similarity_c1(y, z, weights), c1)
    cosine = np.array([(y @ row) ** 2 / (row @ row) / (y @ y) for row in z])
    np.testing.assert_allclose(c1, N / 2 * cosine)  # proposition 3.3
    np.testing.assert_allclose(
        similarity_c2(y, z, weights, N), -N / 2 * np.log(1 - cosine)
    )


def test_theorem_7_1_written_out():
    x, _, _, eta = sigmoid_data(0.5)
    variance = 0.2
    link, noise = Sigmoid(), Additive()
    y = ideal_profile(x, eta, Response(link, noise, THETA, variance))
    slope = link.derivative(eta + y, THETA)
    z = RNG.normal(size=(4, N))
    bent, k1 = z * slope, (y * slope) @ (y * slope)
    k2 = ((x - link.value(eta, THETA)) ** 2).sum()
    explained = (bent @ (y * slope)) ** 2 / (bent**2).sum(axis=1)
    c1 = explained / (2 * variance) - (k1 - k2) / (2 * variance)
    np.testing.assert_allclose(
        expected_gain_c1(x, eta, y, z, Response(link, noise, THETA, variance)), c1
    )
    c2 = -N / 2 * np.log(1 - explained / k1) - N / 2 * np.log(k1 / k2)
    np.testing.assert_allclose(
        expected_gain_c2(x, eta, y, z, Response(link, noise, THETA, variance)), c2
    )


def test_theorem_8_2_for_multiplicative_noise_written_out():
    x, _, _, eta = sigmoid_data(0.3)
    variance = 0.05
    link, noise = Sigmoid(), Multiplicative()
    y = ideal_profile(x, eta, Response(link, noise, THETA, variance))
    g = link.value(eta + y, THETA)
    np.testing.assert_allclose(  # equation (22)
        g, x * (-1 + np.sqrt(1 + 4 * variance)) / (2 * variance)
    )
    weights = inner_product_weights(y, eta, Response(link, noise, THETA, variance))
    k_sigma = 1 + (x / g) ** 2 / variance
    assert np.ptp(k_sigma) < 1e-9  # a function of sigma alone
    ratio = link.derivative(eta + y, THETA) / g
    np.testing.assert_allclose(weights, k_sigma * ratio**2)
    z = RNG.normal(size=(3, N))
    inner = (z * weights) @ y
    log_densities = (
        noise.log_density(x, g, variance)
        - noise.log_density(x, link.value(eta, THETA), variance)
    ).sum()
    expected = (
        log_densities - (weights * y**2).sum() / 2 + inner**2 / (z**2 @ weights) / 2
    )
    np.testing.assert_allclose(
        expected_gain_c1(x, eta, y, z, Response(link, noise, THETA, variance)), expected
    )


@pytest.mark.parametrize("noise", [Additive(), Multiplicative()], ids=repr)
def test_the_ideal_parent_itself_gains_what_is_expected(noise):
    """The expansion is exact where it is made: at the ideal parent."""
    x, _, _, eta = sigmoid_data(0.3)
    variance, link = 0.05, Sigmoid()
    y = ideal_profile(x, eta, Response(link, noise, THETA, variance))
    gain = (
        noise.log_density(x, link.value(eta + y, THETA), variance)
        - noise.log_density(x, link.value(eta, THETA), variance)
    ).sum()
    expected = expected_gain_c1(
        x, eta, y, y[None], Response(link, noise, THETA, variance)
    )
    np.testing.assert_allclose(expected, [gain])


def test_replace_profile_takes_the_place_of_a_parent():
    x, parents, weights, eta = sigmoid_data()
    link = Sigmoid()
    leaving = weights[0] * parents[0]
    y = ideal_profile(x, eta - leaving, Response(link, Additive(), THETA, 1.0))
    np.testing.assert_allclose(link.value(eta - leaving + y, THETA), x)


def test_many_families_at_a_time():
    link, noise = Sigmoid(), Additive()
    theta = np.array([THETA, [0.0, 4.0, 0.2]])
    variance = np.array([0.1, 0.4])
    x = RNG.uniform(0.6, 3.0, size=(2, N))
    eta, z = RNG.normal(size=(2, N)), RNG.normal(size=(5, N))
    weight = RNG.uniform(0.5, 2.0, size=N)
    y = ideal_profile(x, eta, Response(link, noise, theta, variance))
    response = Response(link, noise, theta, variance)
    together = expected_gain_c1(x, eta, y, z, response, sample_weight=weight)
    assert together.shape == (2, 5)
    for row in range(2):
        alone = expected_gain_c1(
            x[row],
            eta[row],
            y[row],
            z,
            Response(link, noise, theta[row], variance[row]),
            sample_weight=weight,
        )
        np.testing.assert_allclose(together[row], alone)


def test_no_length_no_similarity():
    y = RNG.normal(size=N)
    nothing = np.zeros((1, N))
    assert similarity_c1(y, nothing, np.ones(N)).tolist() == [0.0]
    assert similarity_c2(y, nothing, np.ones(N), N).tolist() == [0.0]
    assert similarity_c2(np.zeros(N), y[None], np.ones(N), N).tolist() == [0.0]
    assert np.isfinite(similarity_c2(y, y[None], np.ones(N), N)).all()
