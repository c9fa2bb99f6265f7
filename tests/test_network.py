"""The model object: validation, sampling, moments."""

import pickle

import numpy as np
import pytest
from brute_force import answer, networks, random_network, random_rows, states
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sklearn_latent import NoisyOrNetwork


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (([0.5], [[0.5, 0.5]], [0.1]), r"failure .* shape \(1, 1\), got .*\(1, 2\)"),
        (([0.5], [0.5], [0.1]), r"failure must have 2 dimension"),
        (([[0.5]], [[0.5]], [0.1]), r"prior must have 1 dimension"),
        (
            ([1.5], [[0.5]], [0.1]),
            r"prior must hold prob.*\[0, 1\], got .*1\.5",
        ),
        (([0.5], [[np.nan]], [0.1]), r"failure must hold prob.*nan"),
        (([0.5], [[0.5]], [-0.1]), r"leak must hold prob.*-0\.1"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        NoisyOrNetwork(*parameters)


def test_model_object_is_a_value():
    prior = np.array([0.5])
    network = NoisyOrNetwork(prior, [[0.2, 1.0]], [0.1, 0.2])
    prior[0] = 0.9
    assert network.prior[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        network.prior[0] = 0.1
    same = pickle.loads(pickle.dumps(network))
    assert same == network
    assert hash(same) == hash(network)
    assert network != NoisyOrNetwork([0.4], [[0.2, 1.0]], [0.1, 0.2])
    assert network != "network"
    assert repr(network) == "NoisyOrNetwork(n_latents=1, n_features=2, n_edges=1)"
    np.testing.assert_array_equal(network.structure, [[True, False]])


@settings(max_examples=40, deadline=None)
@given(network=networks, data=st.data())
def test_negative_moment_is_the_probability_of_all_off(network, data):
    index = st.integers(0, network.n_features - 1)
    sets = data.draw(st.lists(st.tuples(index, index, index), min_size=1, max_size=5))
    rows = np.full((len(sets), network.n_features), np.nan)
    for row, features in zip(rows, sets, strict=True):
        row[list(features)] = 0
    expected = np.exp(answer(network, rows)[0])
    np.testing.assert_allclose(network.negative_moment(sets), expected, atol=1e-12)
    first = network.negative_moment(list(sets[0]))
    assert isinstance(first, float)
    assert first == pytest.approx(expected[0], abs=1e-12)
    assert network.negative_moment([]) == 1.0


@pytest.mark.parametrize("features", [[7], [-1], [[0, 1], [1, 9]], [0.5], 1])
def test_wrong_sets_are_refused(features):
    with pytest.raises(ValueError, match="features must"):
        random_network(0, 2, 3).negative_moment(features)


@pytest.mark.parametrize("n_features", [6, 80])
def test_sample_follows_the_network(n_features):
    """Both the dense and the sparse product of latents and failures."""
    density = 0.7 if n_features == 6 else 0.05
    network = random_network(1, 5, n_features, density=density)
    n = 20_000
    X, Z = network.sample(n, random_state=0)
    assert X.dtype == Z.dtype == np.int8
    assert X.shape == (n, n_features)
    # Five standard errors: a right sampler fails once in a million.
    margin = 5 / np.sqrt(4 * n)
    np.testing.assert_allclose(Z.mean(axis=0), network.prior, atol=margin)
    pairs = np.array([(i, i + 1) for i in range(n_features - 1)])
    off = (X[:, pairs] == 0).all(axis=2).mean(axis=0)
    np.testing.assert_allclose(network.negative_moment(pairs), off, atol=margin)
    # Latents and features are drawn together, not just each with the right rate.
    both = ((Z[:, 0] == 1) & (X[:, 0] == 0)).mean()
    without = NoisyOrNetwork([0.0, *network.prior[1:]], network.failure, network.leak)
    expected = network.prior[0] * network.failure[0, 0] * without.negative_moment([0])
    assert both == pytest.approx(expected, abs=margin)


def test_sample_is_reproducible_and_respects_certainty():
    network = NoisyOrNetwork([1.0, 0.0], [[0.0, 1.0], [0.0, 0.0]], [0.0, 0.0])
    X, Z = network.sample(50, random_state=3)
    np.testing.assert_array_equal(X, np.tile([1, 0], (50, 1)))
    np.testing.assert_array_equal(Z, np.tile([1, 0], (50, 1)))
    network = random_network(2, 3, 4)
    for one, two in zip(network.sample(9, 5), network.sample(9, 5), strict=True):
        np.testing.assert_array_equal(one, two)
    with pytest.raises(ValueError, match="n_samples must be an integer from 1"):
        network.sample(0)


@settings(max_examples=20, deadline=None)
@given(network=networks)
def test_probabilities_of_all_rows_sum_to_one(network):
    X = states(network.n_features)
    total = np.exp(network.log_likelihood(X)).sum()
    assert total == pytest.approx(1.0, abs=1e-10)


def test_rows_come_in_many_forms():
    network = random_network(3, 2, 4)
    X = random_rows(0, 5, 4)
    expected = network.posterior(X)
    forms = X.astype(bool), X.astype(np.int8), X.tolist(), sparse.csr_array(X)
    for form in forms:
        np.testing.assert_allclose(network.posterior(form), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 3)), r"shape \(n_samples, 4\), got \(2, 3\)"),
        (np.zeros(4), r"shape \(n_samples, 4\), got \(4,\)"),
        (np.full((1, 4), 2.0), r"only 0 and 1 .* got the value .*2\.0"),
    ],
)
def test_wrong_rows_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        random_network(3, 2, 4).posterior(X)


def test_no_latents():
    network = NoisyOrNetwork([], np.ones((0, 2)), [0.25, 0.5])
    X = np.array([[0, 1], [1, np.nan]])
    assert network.posterior(X).shape == (2, 0)
    np.testing.assert_allclose(
        network.log_likelihood(X), np.log([0.375, 0.25]), rtol=1e-12
    )
    assert network.negative_moment([0, 1]) == pytest.approx(0.375)
    assert [a.shape for a in network.sample(3, 0)] == [(3, 2), (3, 0)]


def test_exports_use_the_names():
    network = NoisyOrNetwork([0.5], [[0.2, 1.0]], [0.1, 0.2])
    graph = network.to_networkx(["flu"], ["cough", "rash"])
    assert list(graph.edges) == [("flu", "cough")]
    assert len(network.to_frame()) == 1
    assert network.to_pgmpy().check_model()
