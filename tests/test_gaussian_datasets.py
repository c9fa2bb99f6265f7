import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_latent.datasets import make_gaussian_bn


def test_shapes_and_names():
    data = make_gaussian_bn(6, 2, 50, random_state=0)
    assert data.X.shape == (50, 6) and data.Z.shape == (50, 2)
    assert data.feature_names == [f"x{i}" for i in range(6)]
    assert data.network.n_latents == 2 and "6 features" in data.DESCR
    again = make_gaussian_bn(6, 2, 50, random_state=0)
    assert_array_equal(data.X, again.X)


@pytest.mark.parametrize("n_parents", [0.0, 1.0, 2.5, 100.0])
def test_number_of_edges(n_parents):
    edges = make_gaussian_bn(10, n_parents=n_parents, random_state=0).network.adjacency
    assert edges.sum() == min(round(10 * n_parents), 45)


def test_latents_are_roots():
    edges = make_gaussian_bn(10, 3, random_state=0).network.adjacency
    assert not edges[:, 10:].any()


def test_two_layers():
    network = make_gaussian_bn(
        141, 7, bipartite=True, n_parents=1.3, random_state=0
    ).network
    edges = network.adjacency
    assert not edges[:141].any() and not edges[:, 141:].any()
    n_parents = edges[141:, :141].sum(axis=0)
    assert n_parents.min() == 1
    assert_allclose(n_parents.mean(), 1.3, atol=0.01)
    assert edges[141:].sum(axis=1).min() >= 20


def test_missing_values():
    X = make_gaussian_bn(20, n_samples=2000, missing=0.2, random_state=0).X
    assert_allclose(np.isnan(X).mean(), 0.2, atol=0.01)


def test_multiplicative_noise_gives_positive_values():
    for link in ("linear", "sigmoid"):
        data = make_gaussian_bn(
            10, link=link, noise="multiplicative", n_samples=2000, random_state=0
        )
        assert (data.X > 0).all()


def test_sigmoids_are_bent():
    data = make_gaussian_bn(10, link="sigmoid", n_samples=5000, random_state=0)
    network = data.network
    children = network.adjacency.any(axis=0)
    spread = (data.X @ network.weights)[:, children].std(axis=0)
    assert_allclose(spread, 1.5, rtol=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_features": 0}, "n_features must be an integer from 1 to .*, got 0"),
        ({"n_latents": -1}, "n_latents"),
        ({"n_samples": 2.5}, "n_samples"),
        ({"n_parents": -1}, "n_parents must be a non-negative number"),
        ({"missing": 1.0}, "missing must be a share below 1"),
        ({"bipartite": True}, "n_latents must be at least 1"),
        ({"weight": (1.0, 0.5)}, "weight must be a pair .* of numbers from 1e-100"),
        ({"n_samples": 10**30}, "n_samples must be an integer from 1 to"),
        ({"bipartite": np.ones(2)}, "bipartite must be True or False"),
        ({"weight": (1e-320, 1e308)}, "weight must be a pair"),
        ({"noise_variance": 3}, "noise_variance must be a pair"),
    ],
)
def test_wrong_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        make_gaussian_bn(**change)


def test_noise_that_is_lost_in_rounding():
    data = make_gaussian_bn(
        5,
        link="sigmoid",
        noise="multiplicative",
        noise_variance=(1e-100, 1e-90),
        random_state=0,
    )
    assert np.isfinite(data.X).all()
