"""Ideal parents against the formulas of the paper, written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_latent.gaussian._ideal_parent import (
    Response,
    expected_gain_c1,
    expected_gain_c2,
    ideal_profile,
    inner_product_weights,
    similarity_c1,
    similarity_c2,
)
from sklearn_latent.gaussian._links import Sigmoid
from sklearn_latent.gaussian._noise import Additive, Multiplicative

RNG = np.random.default_rng(0)
N = 40
THETA = np.array([0.5, 3.0, 0.0])


def sigmoid_data(noise_scale):
    """A child of two parents, inside the image of its link, and its expectation."""
    eta = np.array([0.8, -0.5]) @ RNG.normal(size=(2, N))
    x = Sigmoid().value(eta + RNG.normal(scale=noise_scale, size=N), THETA)
    return x, eta


def test_theorem_3_2_and_3_4_written_out():
    y = RNG.normal(size=N)
    z = RNG.normal(size=(3, N))
    variance = y @ y / N
    weights = np.full(N, 1 / variance)
    c1 = [(y @ row) ** 2 / (row @ row) / (2 * variance) for row in z]
    assert_allclose(similarity_c1(y, z, weights), c1)
    cosine = np.array([(y @ row) ** 2 / (row @ row) / (y @ y) for row in z])
    assert_allclose(c1, N / 2 * cosine)  # proposition 3.3
    assert_allclose(similarity_c2(y, z, weights, N), -N / 2 * np.log(1 - cosine))


def test_theorem_7_1_written_out():
    x, eta = sigmoid_data(0.5)
    variance, link = 0.2, Sigmoid()
    response = Response(link, Additive(), THETA, variance)
    y = ideal_profile(x, eta, response)
    slope = link.derivative(eta + y, THETA)
    z = RNG.normal(size=(4, N))
    bent, k1 = z * slope, (y * slope) @ (y * slope)
    k2 = ((x - link.value(eta, THETA)) ** 2).sum()
    explained = (bent @ (y * slope)) ** 2 / (bent**2).sum(axis=1)
    c1 = explained / (2 * variance) - (k1 - k2) / (2 * variance)
    assert_allclose(expected_gain_c1(x, eta, y, z, response), c1)
    c2 = -N / 2 * np.log(1 - explained / k1) - N / 2 * np.log(k1 / k2)
    assert_allclose(expected_gain_c2(x, eta, y, z, response), c2)


def test_theorem_8_2_for_multiplicative_noise_written_out():
    x, eta = sigmoid_data(0.3)
    variance, link, noise = 0.05, Sigmoid(), Multiplicative()
    response = Response(link, noise, THETA, variance)
    y = ideal_profile(x, eta, response)
    g = link.value(eta + y, THETA)
    # Equation 22.
    assert_allclose(g, x * (-1 + np.sqrt(1 + 4 * variance)) / (2 * variance))
    weights = inner_product_weights(y, eta, response)
    k_sigma = 1 + (x / g) ** 2 / variance
    assert np.ptp(k_sigma) < 1e-9  # a function of sigma alone
    ratio = link.derivative(eta + y, THETA) / g
    assert_allclose(weights, k_sigma * ratio**2)
    z = RNG.normal(size=(3, N))
    explained = ((z * weights) @ y) ** 2 / (z**2 @ weights) / 2
    expected = gain_of_the_ideal(x, eta, y, response) - (weights * y**2).sum() / 2
    assert_allclose(expected_gain_c1(x, eta, y, z, response), expected + explained)


def gain_of_the_ideal(x, eta, y, response):
    """Gain in log-likelihood of a child that gets its ideal parent."""
    with_parent, without = (
        response.noise.log_density(x, response.mean(place), response.variance)
        for place in (eta + y, eta)
    )
    return (with_parent - without).sum()


@pytest.mark.parametrize("noise", [Additive(), Multiplicative()], ids=repr)
def test_the_ideal_parent_itself_gains_what_is_expected(noise):
    """The expansion is exact where it is made: at the ideal parent."""
    x, eta = sigmoid_data(0.3)
    response = Response(Sigmoid(), noise, THETA, 0.05)
    y = ideal_profile(x, eta, response)
    expected = expected_gain_c1(x, eta, y, y[None], response)
    assert_allclose(expected, [gain_of_the_ideal(x, eta, y, response)])


def test_many_families_at_a_time():
    theta, variance = np.array([THETA, [0.0, 4.0, 0.2]]), np.array([0.1, 0.4])
    x = RNG.uniform(0.6, 3.0, size=(2, N))
    eta, z = RNG.normal(size=(2, N)), RNG.normal(size=(5, N))
    weight = RNG.uniform(0.5, 2.0, size=N)
    both = Response(Sigmoid(), Additive(), theta, variance)
    y = ideal_profile(x, eta, both)
    together = expected_gain_c1(x, eta, y, z, both, sample_weight=weight)
    assert together.shape == (2, 5)
    for row in range(2):
        own = Response(Sigmoid(), Additive(), theta[row], variance[row])
        one = x[row], eta[row], y[row], z, own
        assert_allclose(together[row], expected_gain_c1(*one, sample_weight=weight))


def test_no_length_no_similarity():
    y = RNG.normal(size=N)
    nothing = np.zeros((1, N))
    assert similarity_c1(y, nothing, np.ones(N)).tolist() == [0.0]
    assert similarity_c2(y, nothing, np.ones(N), N).tolist() == [0.0]
    assert similarity_c2(np.zeros(N), y[None], np.ones(N), N).tolist() == [0.0]
    assert np.isfinite(similarity_c2(y, y[None], np.ones(N), N)).all()
