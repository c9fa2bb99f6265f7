"""Link functions, and how a new one is made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from sklearn_latent.gaussian._links import Linear, Link, Sigmoid, get_link


class Tanh(Link):
    """What a user has to write for a new link."""

    name = "tanh"
    image = (-1.0, 1.0)

    def shape(self, eta):
        return np.tanh(eta)

    def shape_inverse(self, level):
        return np.arctanh(level)

    def shape_derivative(self, eta):
        return 1.0 - np.tanh(eta) ** 2


class Softplus(Link):
    """A link whose image has one end only, and that is not symmetric."""

    name = "softplus"
    image = (0.0, np.inf)

    def shape(self, eta):
        return np.logaddexp(0.0, eta)

    def shape_inverse(self, level):
        return np.log(np.expm1(level))

    def shape_derivative(self, eta):
        return expit(eta)


LINKS = [Linear(), Sigmoid(), Tanh(), Softplus()]
thetas = st.tuples(
    st.floats(-5, 5), st.floats(0.1, 5) | st.floats(-5, -0.1), st.floats(-1, 1)
).map(np.array)


@pytest.mark.parametrize("link", LINKS, ids=repr)
@given(theta=thetas)
def test_inverse_undoes_value(link, theta):
    eta = np.linspace(-2, 2, 31)
    assert_allclose(link.inverse(link.value(eta, theta), theta), eta, atol=1e-7)


@pytest.mark.parametrize("link", LINKS, ids=repr)
@given(theta=thetas)
def test_derivatives_are_finite_differences(link, theta):
    eta = np.linspace(-4, 4, 33)
    step = 1e-5
    slope = (link.value(eta + step, theta) - link.value(eta - step, theta)) / (2 * step)
    assert_allclose(link.derivative(eta, theta), slope, atol=1e-7)


@pytest.mark.parametrize("link", [Sigmoid(), Tanh(), Softplus()], ids=repr)
def test_values_outside_of_the_image_go_to_its_closest_point(link):
    theta = np.array([1.0, 2.0, 0.0])
    low = 1.0 + 2.0 * link.image[0]
    eta = link.inverse(np.array([low - 10.0, low - 1.0, low]), theta)
    assert np.isfinite(eta).all()
    assert len(np.unique(eta)) == 1
    assert_allclose(link.value(eta, theta), low, atol=0.01)


def test_scale_of_zero_has_no_inverse():
    eta = Sigmoid().inverse(np.array([1.0, 2.0]), np.zeros(3))
    assert_array_equal(eta, 0.0)


@pytest.mark.parametrize("link", LINKS, ids=repr)
@given(mean=st.floats(-10, 10), reach=st.floats(0.01, 10))
def test_spanning_image_holds_the_child(link, mean, reach):
    theta = link.spanning(mean, reach)
    assert link.value(0.0, theta) == pytest.approx(mean)
    edges = mean + np.array([-reach, reach])
    assert_allclose(link.value(link.inverse(edges, theta), theta), edges, atol=1e-8)


def test_sigmoid_is_equation_4_of_the_paper():
    eta = np.array([-1.3, 0.0, 0.4])
    expected = 2.0 / (1.0 + np.exp(-eta)) + 0.5
    assert_allclose(Sigmoid().value(eta, [0.5, 2.0]), expected)
    assert_allclose(Sigmoid().value(eta, [0.5, 2.0, 0.0]), expected)


def test_number_of_parameters():
    counts = np.array([0, 1, 3])
    assert Linear().n_parameters(counts).tolist() == [1, 2, 4]
    assert Sigmoid().n_parameters(counts).tolist() == [1, 3, 5]
    assert Sigmoid().n_parameters(2) == 4


def test_links_by_name():
    assert isinstance(get_link("linear"), Linear)
    assert isinstance(get_link("sigmoid"), Sigmoid)
    own = Tanh()
    assert get_link(own) is own
    with pytest.raises(ValueError, match=r"link must be one of .*'cosine'"):
        get_link("cosine")
    with pytest.raises(ValueError, match="link must be"):
        get_link(None)
