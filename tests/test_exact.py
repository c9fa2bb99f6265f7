"""Enumeration kernels, exact EM, maximum likelihood and standard errors."""

import numpy as np
import pytest
from brute_force import (
    FIGURE_1,
    answer,
    figure_1_network,
    joint,
    networks,
    random_network,
    random_rows,
    states,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_latent import NoisyOrNetwork
from sklearn_latent.noisy_or import _state_table
from sklearn_latent.noisy_or._maximum_likelihood import (
    climb_table,
    likelihood_gradient,
    maximize_likelihood,
    standard_errors,
)
from sklearn_latent.noisy_or._probabilities import EPSILON
from sklearn_latent.noisy_or._state_table import (
    StateTable,
    TableRows,
    normalize,
)
from sklearn_latent.noisy_or._statistics.patterns import Patterns

seeds = st.integers(0, 2**32 - 1)


def start():
    """A network of the structure of Figure 1, from which EM may start."""
    failure = np.where(FIGURE_1, 0.5, 1.0)
    return NoisyOrNetwork(np.full(2, 0.4), failure, np.full(5, 0.05))


def arrays(network):
    return network.prior, network.failure, network.leak


def all_rows(network):
    """Every possible row with its probability as weight: infinite data."""
    X = states(network.n_features)
    return Patterns.of(X, np.exp(answer(network, X)[0]))


def some_patterns(seed, n_features, missing=0.2):
    weights = np.random.default_rng(seed).integers(1, 5, 30)
    return Patterns.of(random_rows(seed, 30, n_features, missing=missing), weights)


@settings(max_examples=30, deadline=None)
@given(network=networks, seed=seeds)
def test_joint_probability_is_that_of_enumeration(network, seed):
    X = random_rows(seed, 10, network.n_features, missing=0.2)
    expected, Z = joint(network, X)
    result = StateTable.of(network).joint(X == 1, ~np.isnan(X))
    order = Z[:, ::-1] @ (1 << np.arange(network.n_latents)[::-1])
    np.testing.assert_allclose(np.exp(result)[:, order], expected, atol=1e-12)
    log_likelihood = normalize(result)
    np.testing.assert_allclose(log_likelihood, answer(network, X)[0], atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, n_latents=st.integers(0, 4), missing=st.sampled_from([0.0, 0.3]))
def test_gradient_is_the_slope_of_the_likelihood(seed, n_latents, missing):
    network = random_network(seed, n_latents, 5)
    patterns = some_patterns(seed, 5, missing)
    rows, point = TableRows(patterns), arrays(network._clipped())
    gradient = likelihood_gradient(network._clipped(), rows.expect(network._clipped()))
    for which, slopes in enumerate(gradient):
        for index in zip(*np.nonzero(point[which] < 1.0), strict=True):
            values = []
            for step in (-1e-6, 1e-6):
                moved = [array.copy() for array in point]
                moved[which][index] += step
                values.append(rows.expect(NoisyOrNetwork._of(*moved)).log_likelihood)
            slope = (values[1] - values[0]) / 2e-6
            assert slopes[index] == pytest.approx(slope, rel=1e-4, abs=1e-4)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, n_latents=st.integers(0, 4), missing=st.sampled_from([0.0, 0.3]))
def test_em_never_goes_down(seed, n_latents, missing):
    network = random_network(seed, n_latents, 5)
    patterns = some_patterns(seed, 5, missing)
    point, values = network, []
    for _ in range(15):
        step = climb_table(point, TableRows(patterns), tol=0.0, max_iter=1)
        point = step.state
        values.extend(step.objectives)
        np.testing.assert_array_equal(point.structure, network.structure)
        for array in (point.prior, point.failure[network.structure], point.leak):
            assert ((array >= EPSILON) & (array <= 1 - EPSILON)).all()
    assert (np.diff(values) >= -1e-9).all()


def test_chunks_add_up(monkeypatch):
    network = random_network(0, 3, 5)
    rows = TableRows(some_patterns(0, 5))
    whole = rows.expect(network)
    monkeypatch.setattr(_state_table, "CHUNK_ELEMENTS", 20)
    parts = rows.expect(network)
    for one, two in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


def test_feature_that_is_never_known_keeps_its_parameters():
    network = random_network(1, 2, 3, density=1.0)
    X = random_rows(0, 20, 3)
    X[:, 1] = np.nan
    patterns = Patterns.of(X)
    point = climb_table(network, TableRows(patterns), tol=0.0, max_iter=1).state
    np.testing.assert_allclose(point.failure[:, 1], network.failure[:, 1])
    assert point.leak[1] == pytest.approx(network.leak[1])


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n_features=st.integers(0, 20), missing=st.sampled_from([0.0, 0.3]))
def test_patterns_keep_every_row(seed, n_features, missing):
    rng = np.random.default_rng(seed)
    X = random_rows(seed, 40, n_features, missing=missing)[rng.integers(0, 40, 60)]
    weights = rng.integers(0, 3, 60).astype(float)
    patterns = Patterns.of(X, weights)
    assert patterns.weights.sum() == weights.sum()
    assert (patterns.weights > 0).all()
    rows = np.where(patterns.known, patterns.on, np.nan)
    assert len({row.tobytes() for row in rows}) == len(rows)
    order = rng.permutation(60)
    halves = [Patterns.of(X[i], weights[i]) for i in np.array_split(order, 2)]
    merged = Patterns.merge(halves)
    np.testing.assert_array_equal(merged.on, patterns.on)
    np.testing.assert_array_equal(merged.known, patterns.known)
    np.testing.assert_array_equal(merged.weights, patterns.weights)
    twice = Patterns.of(np.repeat(X, weights.astype(int), axis=0))
    np.testing.assert_array_equal(twice.weights, patterns.weights)


def projected_gradient(fit, patterns):
    """Largest slope that leads uphill inside the bounds, per row."""
    point, expected = arrays(fit.network), TableRows(patterns).expect(fit.network)
    slopes = likelihood_gradient(fit.network, expected)
    worst = 0.0
    for values, slope in zip(point, slopes, strict=True):
        uphill = np.where(values <= 2 * EPSILON, np.maximum(slope, 0), slope)
        uphill = np.where(values >= 1 - 2 * EPSILON, np.minimum(uphill, 0), uphill)
        worst = max(worst, np.abs(np.where(values < 1, uphill, 0)).max(initial=0))
    return worst / expected.total


@pytest.mark.parametrize("seed", range(4))
def test_maximum_is_stationary_and_beats_em(seed):
    network = figure_1_network(seed)
    X, _ = network.sample(2000, random_state=seed)
    patterns = Patterns.of(X)
    fit = maximize_likelihood(start(), patterns)
    assert fit.converged
    assert projected_gradient(fit, patterns) < 1e-5
    expected = patterns.weights @ answer(fit.network, patterns.on)[0]
    assert fit.log_likelihood == pytest.approx(expected, abs=1e-6)
    ascent = climb_table(start(), TableRows(patterns), tol=0.0, max_iter=200)
    assert fit.log_likelihood >= ascent.objective - 1e-6


def test_maximum_with_infinite_data_is_the_truth():
    network = figure_1_network(11)
    patterns = all_rows(network)
    patterns = patterns._replace(weights=patterns.weights * 1e6)
    fit = maximize_likelihood(start(), patterns, tol=1e-6, max_iter=2000)
    for new, old in zip(arrays(fit.network), arrays(network), strict=True):
        np.testing.assert_allclose(new, old, atol=1e-4)


def test_components_are_maximised_apart():
    """Two networks side by side give the parameters of each alone."""
    both = np.zeros((4, 10), dtype=bool)
    both[:2, :5] = both[2:, 5:] = FIGURE_1
    X = np.hstack([figure_1_network(s).sample(1000, s)[0] for s in (0, 1)])
    failure = np.where(both, 0.5, 1.0)
    double = NoisyOrNetwork(np.full(4, 0.4), failure, np.full(10, 0.05))
    fit = maximize_likelihood(double, Patterns.of(X))
    alone = maximize_likelihood(start(), Patterns.of(X[:, :5]))
    found = fit.network.failure[:2, :5]
    np.testing.assert_allclose(found, alone.network.failure, atol=1e-8)
    other = maximize_likelihood(start(), Patterns.of(X[:, 5:]))
    assert fit.n_iter == max(alone.n_iter, other.n_iter) > 0
    total = alone.log_likelihood + other.log_likelihood
    assert fit.log_likelihood == pytest.approx(total)
    prior, failure, _ = standard_errors(fit.network, Patterns.of(X))
    of_first = standard_errors(alone.network, Patterns.of(X[:, :5]))
    np.testing.assert_allclose(prior[:2], of_first[0], rtol=1e-6)
    np.testing.assert_array_equal(np.isnan(failure), ~both)


def test_standard_errors_are_the_curvature_with_infinite_data():
    """Outer product of the scores = minus the second derivative, at the truth."""
    network, weight = figure_1_network(3), 1e6
    patterns = all_rows(network)
    rows = TableRows(patterns._replace(weights=patterns.weights * weight))

    def gradient(values):
        prior, edges, leak = np.split(values, [2, 9])
        failure = np.ones(FIGURE_1.shape)
        failure[FIGURE_1] = edges
        moved = NoisyOrNetwork._of(prior, failure, leak)
        slopes = likelihood_gradient(moved, rows.expect(moved))
        return np.concatenate([slopes[0], slopes[1][FIGURE_1], slopes[2]])

    centre = np.concatenate([network.prior, network.failure[FIGURE_1], network.leak])
    steps = np.eye(len(centre)) * 1e-5
    hessian = [
        (gradient(centre + step) - gradient(centre - step)) / 2e-5 for step in steps
    ]
    expected = np.sqrt(np.diag(np.linalg.inv(-np.array(hessian))))
    prior, failure, leak = standard_errors(network, rows.patterns)
    errors = np.concatenate([prior, failure[FIGURE_1], leak])
    np.testing.assert_allclose(errors, expected, rtol=1e-3)


def test_standard_errors_of_nothing_are_those_of_a_guess():
    """Constant features: bounds, singular information, and still finite numbers."""
    X = np.zeros((50, 5))
    fit = maximize_likelihood(start(), Patterns.of(X))
    prior, failure, leak = standard_errors(fit.network, Patterns.of(X))
    for array in (prior, failure[FIGURE_1], leak):
        assert ((array > 0) & (array <= np.sqrt(1 / 12) + 1e-9)).all()
    # Fifty rows without the feature leave about one in fifty to the leak.
    assert (leak < 0.05).all()


def test_standard_errors_of_rows_too_heavy_for_the_others():
    """Information so large that the rest is lost to rounding."""
    X = np.array([[1, 0, 1, 1], [1, 0, 0, 0], [0, 1, 1, 1]], dtype=float)
    patterns = Patterns.of(X, np.array([1e100, 0.3, 1e100]))
    network = NoisyOrNetwork([0.4], np.full((1, 4), 0.5), np.full(4, 0.05))
    for array in standard_errors(network, patterns):
        assert ((array >= 0) & (array <= np.sqrt(1 / 12) + 1e-9)).all()
