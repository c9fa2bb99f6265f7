"""Generated data has the structure, the parameters and the moments it claims."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sklearn_latent.datasets import (
    figure_1_structure,
    image_sources,
    make_noisy_or,
    make_noisy_or_images,
    make_qmr_like,
)
from sklearn_latent.noisy_or import find_schedule


def assert_moments_agree(data, sets):
    """Empirical P(all off) is within five standard errors of the network's."""
    for features in sets:
        expected = data.network.negative_moment(list(features))
        observed = np.mean(~data.X[:, list(features)].any(axis=1))
        error = np.sqrt(expected * (1 - expected) / len(data.X))
        assert abs(observed - expected) < 5 * error + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_noisy_or_has_the_moments_of_its_network(seed):
    data = make_noisy_or(n_samples=20_000, random_state=seed)
    sets = [c for k in (1, 2, 3, 4) for c in combinations(range(5), k)]
    assert_moments_agree(data, sets)
    error = np.sqrt(data.network.prior / len(data.Z))
    assert np.all(np.abs(data.Z.mean(axis=0) - data.network.prior) < 5 * error)


def test_images_have_the_moments_of_their_network():
    data = make_noisy_or_images(5000, random_state=0)
    assert_moments_agree(data, combinations(range(0, 64, 7), 3))
    assert data.X.shape == (5000, 64)
    assert data.Z.shape == (5000, 8)
    assert len(set(data.feature_names)) == 64


def test_images_are_the_sources():
    network = make_noisy_or_images(1, random_state=0).network
    np.testing.assert_array_equal(network.structure, image_sources())
    np.testing.assert_array_equal(network.prior, 0.25)
    np.testing.assert_array_equal(network.failure[network.structure], 0.1)
    np.testing.assert_array_equal(network.leak, 0.001)


@settings(max_examples=30, deadline=None)
@given(
    n_latents=st.integers(1, 12),
    n_features=st.integers(1, 40),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_qmr_like_keeps_its_promises(n_latents, n_features, share, seed):
    n_edges = n_latents + int(share * n_latents * (n_features - 1))
    data = make_qmr_like(n_latents, n_features, n_edges, 5, random_state=seed)
    structure = data.network.structure
    assert structure.shape == (n_latents, n_features)
    assert structure.sum() == n_edges
    assert structure.any(axis=1).all()
    if n_edges >= n_latents + n_features:
        assert structure.any(axis=0).all()
    assert data.X.shape == (5, n_features)
    assert len(data.feature_names) == n_features
    assert len(data.latent_names) == n_latents


def test_qmr_like_at_full_size():
    network = make_qmr_like(n_samples=1, random_state=1).network
    structure = network.structure
    assert structure.shape == (570, 4075)
    assert structure.sum() == 45_470
    in_degree = structure.sum(axis=0)
    assert in_degree.min() >= 1
    assert np.median(in_degree) <= 5
    assert in_degree.max() >= 200
    assert 0.002 <= network.prior.min() <= 0.005
    assert network.prior.max() <= 0.2
    depth = find_schedule(structure).depth[structure]
    assert np.mean(depth == 0) > 0.8
    assert 0.01 < np.mean((depth >= 1) & (depth <= 3)) < 0.2
    assert np.mean(np.isfinite(depth)) > 0.99


@pytest.mark.parametrize(
    "make",
    [
        lambda **kwargs: make_noisy_or(n_samples=50, **kwargs),
        lambda **kwargs: make_noisy_or_images(n_samples=50, **kwargs),
        lambda **kwargs: make_qmr_like(10, 50, 100, n_samples=50, **kwargs),
    ],
)
def test_same_seed_same_data(make):
    a, b, c = make(random_state=0), make(random_state=0), make(random_state=1)
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.Z, b.Z)
    assert a.network == b.network
    assert not np.array_equal(a.X, c.X)
    assert a.X.dtype == a.Z.dtype == np.int8
    assert a.DESCR


def test_noisy_or_takes_numbers_ranges_and_arrays():
    structure = figure_1_structure()
    leak = np.linspace(0.01, 0.05, 5)
    network = make_noisy_or(
        sparse.csr_array(structure),
        n_samples=1,
        prior=[0.3, 0.4],
        failure=(0.1, 0.2),
        leak=leak,
    ).network
    np.testing.assert_array_equal(network.prior, [0.3, 0.4])
    np.testing.assert_array_equal(network.leak, leak)
    np.testing.assert_array_equal(network.structure, structure)
    edges = network.failure[structure]
    assert np.all((edges >= 0.1) & (edges <= 0.2))


def test_no_latents_are_data_too():
    data = make_noisy_or(np.zeros((0, 3)), 10, leak=1.0)
    assert data.Z.shape == (10, 0)
    assert data.X.all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: make_noisy_or([[1, 1], [0, 0]]), ValueError, "structure.*latent 1"),
        (lambda: make_noisy_or(prior=(0.8, 0.2)), ValueError, r"prior.*\(low, high\)"),
        (lambda: make_noisy_or(prior=[0.1]), ValueError, r"prior.*\(2,\).*\(1,\)"),
        (lambda: make_noisy_or(leak=-0.1), ValueError, r"leak.*\[0, 1\].*-0.1"),
        (lambda: make_noisy_or(failure=np.nan), ValueError, r"failure.*\[0, 1\]"),
        (lambda: make_noisy_or(n_samples=0), ValueError, "n_samples.*got 0"),
        (lambda: make_noisy_or(n_samples=1.5), ValueError, "n_samples.*integer.*1.5"),
        (
            lambda: make_qmr_like(10, 20, 9),
            ValueError,
            "n_edges.*from 10 to 200, got 9",
        ),
        (lambda: make_noisy_or(n_samples=10**30), ValueError, "n_samples.*from 1 to"),
        (lambda: make_noisy_or(prior=(0.5, "a")), ValueError, "prior.*array of num"),
        (lambda: make_noisy_or(leak=10**400), ValueError, "leak.*array of numbers"),
        (lambda: make_qmr_like(10**30), ValueError, "n_latents.*from 1 to"),
        (lambda: make_qmr_like(10, 20, 201), ValueError, "n_edges.*got 201"),
        (lambda: make_qmr_like(0, 20, 30), ValueError, "n_latents.*got 0"),
    ],
)
def test_wrong_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
