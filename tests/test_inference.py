"""Inference agrees with enumeration and with pgmpy on every route."""

import warnings

import numpy as np
import pytest
from brute_force import (
    answer,
    class_joint,
    class_networks,
    joint,
    networks,
    random_network,
    random_rows,
    states,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_latent import NoisyOrNetwork
from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.noisy_or import _coupled_parts, _posterior
from sklearn_latent.noisy_or._coupled_parts import sum_over_findings, sum_over_latents

ROUTES = {
    "table": {},
    "cheapest": {"MAX_TABLE": -1},
    "latents": {"MAX_TABLE": -1, "sum_over_findings": sum_over_latents},
    "findings": {"MAX_TABLE": -1, "sum_over_latents": sum_over_findings},
    "small batches": {"MAX_TABLE": -1, "BATCH_EDGES": 5, "BATCH_ELEMENTS": 16},
}


def take(route, patch):
    for name, value in ROUTES[route].items():
        module = _posterior if name == "MAX_TABLE" else _coupled_parts
        patch.setattr(module, name, value)


@pytest.mark.parametrize("route", ROUTES)
@settings(max_examples=30, deadline=None)
@given(network=networks | class_networks, seed=st.integers(0, 2**32 - 1))
def test_every_route_agrees_with_enumeration(route, network, seed):
    X = random_rows(seed, 12, network.n_features, missing=0.2)
    with pytest.MonkeyPatch.context() as patch:
        take(route, patch)
        log_likelihood = network.log_likelihood(X)
        posterior = network.posterior(X, method="exact")
        classes = network.class_posterior(X)
    expected, expected_posterior = answer(network, X)
    np.testing.assert_allclose(log_likelihood, expected, atol=1e-8)
    np.testing.assert_allclose(posterior, expected_posterior, atol=1e-8)
    shares = class_joint(network, states(network.n_latents))
    shares = joint(network, X)[0] @ (shares / np.maximum(shares.sum(0), 1e-300)).T
    shares[np.isneginf(expected)] = network.class_weight
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(classes, shares, atol=1e-8)


@pytest.mark.parametrize("dropped", [True, False])
def test_latents_that_are_surely_off_change_nothing(dropped, monkeypatch):
    """Strong evidence rules latents out; keeping them gives the same numbers."""
    rng = np.random.default_rng(0)
    failure = np.where(rng.random((7, 60)) < 0.4, 0.02, 1.0)
    network = NoisyOrNetwork(np.full(7, 0.2), failure, np.full(60, 0.01))
    X, _ = network.sample(40, random_state=0)
    monkeypatch.setattr(_posterior, "MAX_TABLE", -1)
    if not dropped:
        monkeypatch.setattr(_coupled_parts, "SURELY_OFF", -np.inf)
    expected, expected_posterior = answer(network, X)
    np.testing.assert_allclose(network.log_likelihood(X), expected, atol=1e-8)
    np.testing.assert_allclose(network.posterior(X), expected_posterior, atol=1e-8)


# pgmpy warns of its own modules when they are imported.
@pytest.mark.filterwarnings("ignore:.*pgmpy.*:FutureWarning")
@pytest.mark.parametrize("n_classes", [None, 3])
def test_agrees_with_pgmpy(n_classes):
    from pgmpy.inference import VariableElimination

    network = random_network(5, 4, 6, n_classes=n_classes)
    engine = VariableElimination(network.to_pgmpy())
    X = random_rows(1, 4, 6, missing=0.3)
    expected = {f"latent{i}": on for i, on in enumerate(network.posterior(X).T)}
    if n_classes:
        expected["class"] = network.class_posterior(X)
    for number, row in enumerate(X):
        evidence = {f"x{j}": int(v) for j, v in enumerate(row) if not np.isnan(v)}
        for name, values in expected.items():
            found = engine.query([name], evidence=evidence, show_progress=False).values
            found = found if name == "class" else found[1]
            np.testing.assert_allclose(found, values[number], atol=1e-8)


def wide_network(seed, n_latents=40, n_features=60, density=0.1):
    """More coupled latents than a table could hold, and rare ones."""
    rng = np.random.default_rng(seed)
    edges = rng.random((n_latents, n_features)) < density
    failure = np.where(edges, rng.uniform(0.1, 0.9, edges.shape), 1.0)
    return NoisyOrNetwork(
        rng.uniform(0.02, 0.1, n_latents), failure, rng.uniform(0.001, 0.02, n_features)
    )


def test_large_components_agree_whatever_the_route(monkeypatch):
    """No enumeration reaches 40 latents, but the two sums must meet."""
    network = wide_network(0)
    X, _ = network.sample(60, random_state=0)
    X[np.cumsum(X, axis=1) > 9] = 0
    monkeypatch.setattr(_coupled_parts, "SURELY_OFF", -np.inf)
    take("findings", monkeypatch)
    one = network.log_likelihood(X, "exact"), network.posterior(X, "exact")
    monkeypatch.undo()
    two = network.log_likelihood(X, "exact"), network.posterior(X, "exact")
    np.testing.assert_allclose(one[0], two[0], atol=1e-9)
    np.testing.assert_allclose(one[1], two[1], atol=1e-9)


def test_rows_do_not_depend_on_each_other():
    network = wide_network(1)
    X, _ = network.sample(80, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximateInferenceWarning)
        together = network.posterior(X)
        apart = np.vstack([network.posterior(row[np.newaxis]) for row in X])
        backwards = network.posterior(X[::-1])[::-1]
    np.testing.assert_allclose(together, apart, rtol=0, atol=1e-12)
    np.testing.assert_allclose(together, backwards, rtol=0, atol=1e-12)


def test_permuted_features_and_latents():
    network = random_network(6, 12, 9, density=0.4)
    X = random_rows(2, 20, 9, missing=0.1)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(12), rng.permutation(9)
    other = NoisyOrNetwork(
        network.prior[rows],
        network.failure[np.ix_(rows, columns)],
        network.leak[columns],
    )
    np.testing.assert_allclose(
        other.posterior(X[:, columns]), network.posterior(X)[:, rows], atol=1e-10
    )
    np.testing.assert_allclose(
        other.log_likelihood(X[:, columns]), network.log_likelihood(X), atol=1e-10
    )


def test_improbable_findings_keep_their_digits():
    """Where the alternating sum of Quickscore would cancel to nothing."""
    failure = np.full((12, 10), 1 - 1e-6)
    network = NoisyOrNetwork(np.full(12, 1e-4), failure, np.full(10, 1e-7))
    X = np.ones((1, 10))
    expected, expected_posterior = answer(network, X)
    for route in ("latents", "findings"):
        with pytest.MonkeyPatch.context() as patch:
            take(route, patch)
            patch.setattr(_coupled_parts, "SURELY_OFF", -np.inf)
            # 1 - off rounds in the reference as well, to about seven digits.
            assert network.log_likelihood(X)[0] == pytest.approx(expected[0], abs=1e-6)
            np.testing.assert_allclose(
                network.posterior(X), expected_posterior, rtol=1e-6
            )


@pytest.mark.parametrize("route", ROUTES)
def test_underflow_is_not_impossibility(route, monkeypatch):
    """Each finding has one chance in 1e40; the row has none in floating point."""
    n = 11
    network = NoisyOrNetwork(
        np.full(n, 1e-40),
        np.full((n, n), 0.5) + 0.5 * ~np.eye(n, k=1, dtype=bool),
        np.full(n, 1e-40),
    )
    take(route, monkeypatch)
    log_likelihood = network.log_likelihood(np.ones((1, n)))
    assert np.isfinite(log_likelihood).all()
    assert log_likelihood[0] == pytest.approx(n * np.log(1e-40), abs=n)


@pytest.mark.parametrize("n_latents", [2, 12])
def test_impossible_row_gets_the_prior(n_latents):
    """Latents without edges to x0, which never leaks, cannot switch it on."""
    failure = np.full((n_latents, 3), 0.5)
    failure[:, 0] = 1.0
    network = NoisyOrNetwork(np.full(n_latents, 0.3), failure, [0.0, 0.1, 0.1])
    X = np.array([[1, 1, 0], [0, 1, 0]])
    assert np.isneginf(network.log_likelihood(X)[0])
    posterior = network.posterior(X)
    np.testing.assert_array_equal(posterior[0], network.prior)
    assert (posterior[1] != network.prior).all()


def test_out_of_reach_is_labelled(monkeypatch):
    network = wide_network(2)
    X, _ = network.sample(30, random_state=0)
    exact = network.log_likelihood(X, method="exact")
    monkeypatch.setattr(_posterior, "MAX_COST", {"auto": 2, "exact": 2})
    with pytest.raises(ValueError, match=r"method='exact' .* got \d+ of 30 rows"):
        network.posterior(X, method="exact")
    with pytest.warns(ApproximateInferenceWarning, match="lower bound"):
        bound = network.log_likelihood(X)
    assert (bound <= exact + 1e-9).all()
    with pytest.raises(ValueError, match="method must be one of"):
        network.posterior(X, method="gibbs")


@pytest.mark.parametrize("together", [1 << 23, 0])
def test_sum_over_likeliest_states_is_a_close_bound(together, monkeypatch):
    """Some hundredths of a nat, and exact if there is little to sum."""
    monkeypatch.setattr(_posterior, "BEAM_VALUES", together)
    network = wide_network(4)
    X, _ = network.sample(200, random_state=0)
    X[np.cumsum(X, axis=1) > 12] = 0
    exact = network.log_likelihood(X, method="exact"), network.posterior(X, "exact")
    monkeypatch.setattr(_posterior, "MAX_COST", {"auto": 2, "exact": 2})
    with pytest.warns(ApproximateInferenceWarning):
        bound, posterior = network.log_likelihood(X), network.posterior(X)
    assert (bound <= exact[0] + 1e-9).all()
    assert (exact[0] - bound).mean() < 0.03
    assert np.abs(posterior - exact[1]).mean() < 2e-3
    few = random_network(8, 6, 8, density=0.8)
    X = random_rows(0, 30, 8, missing=0.2)
    monkeypatch.setattr(_posterior, "MAX_TABLE", -1)
    monkeypatch.setattr(_posterior, "MAX_COST", {"auto": 0, "exact": 0})
    with pytest.warns(ApproximateInferenceWarning):
        bound, posterior = few.log_likelihood(X), few.posterior(X)
    expected = answer(few, X)
    # A beam leaves out states with less than this share of the likeliest one.
    assert (bound <= expected[0] + 1e-9).all()
    least = _posterior.WIDE.least
    np.testing.assert_allclose(bound, expected[0], atol=2**6 * least)
    np.testing.assert_allclose(posterior, expected[1], atol=2**6 * least)
    every = _posterior.WIDE._replace(least=1e-300, expanded=0.0)
    monkeypatch.setattr(_posterior, "WIDE", every)
    with pytest.warns(ApproximateInferenceWarning):
        bound, posterior = few.log_likelihood(X), few.posterior(X)
    np.testing.assert_allclose(bound, expected[0], atol=1e-9)
    np.testing.assert_allclose(posterior, expected[1], atol=1e-9)


def test_bounds_hold_where_negative_findings_leave_nearly_nothing_of_a_latent(
    monkeypatch,
):
    """Odds of 1e-40 count as such, although a beam has no parameters below 1e-15."""
    failure = np.hstack([np.full((3, 2), 0.1), np.kron(np.eye(3), np.full(20, -0.99))])
    failure[:, 2:] += 1.0
    network = NoisyOrNetwork(np.full(3, 0.1), failure, np.full(62, 1e-9))
    X = np.zeros((1, 62))
    X[0, :2] = 1
    exact = network.log_likelihood(X, "exact")
    monkeypatch.setattr(_posterior, "MAX_TABLE", -1)
    monkeypatch.setattr(_posterior, "MAX_COST", {"auto": 0, "exact": 0})
    monkeypatch.setattr(_coupled_parts, "SURELY_OFF", -np.inf)
    with pytest.warns(ApproximateInferenceWarning):
        bound = network.log_likelihood(X)
    assert bound <= exact
    np.testing.assert_allclose(bound, exact, atol=1e-6)


@pytest.mark.parametrize("method", ["auto", "exact"])
@pytest.mark.parametrize("leak", [1e-150, 1e-300, 1e-320])
def test_findings_that_only_a_tiny_leak_explains(method, leak):
    """The other finding alone decides about the latent, by Bayes' rule."""
    network = NoisyOrNetwork([0.3], [[1.0, 0.4]], [leak, 0.1])
    expected = 0.3 * 0.64 / (0.3 * 0.64 + 0.7 * 0.1)
    posterior = network.posterior([[1, 1]], method)
    np.testing.assert_allclose(posterior, [[expected]])
    network = NoisyOrNetwork([0.9], [[0.0, 0.0]], [leak, 0.5])
    for X in ([[1, np.nan]], [[1, 0]], [[1, 1]]):
        assert np.isfinite(network.log_likelihood(X, method)).all()
        posterior = network.posterior(X, method)
        assert ((posterior >= 0) & (posterior <= 1)).all()
