"""The mean-field bound is a bound, and its updates climb."""

import numpy as np
import pytest
from brute_force import (
    FIGURE_1,
    answer,
    figure_1_network,
    random_network,
    random_rows,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_latent import NoisyOrNetwork
from sklearn_latent.noisy_or._mean_field_em import (
    MeanField,
    VariationalEM,
    better_shares,
    log_fired,
    log_fired_slope,
)
from sklearn_latent.noisy_or._statistics.patterns import Patterns

seeds = st.integers(0, 2**32 - 1)


def problem(seed, n_latents, n_features, missing):
    network = random_network(seed, n_latents, n_features)
    patterns = Patterns.of(random_rows(seed, 25, n_features, missing=missing))
    em = VariationalEM(network.structure, patterns)
    return network, patterns, em


def log_likelihood(point, patterns):
    X = np.where(patterns.known, patterns.on, np.nan)
    return patterns.weights @ answer(point, X)[0]


def test_slope_of_g():
    x = np.array([1e-6, 0.1, 1.0, 30.0])
    difference = (log_fired(x * (1 + 1e-6)) - log_fired(x * (1 - 1e-6))) / (2e-6 * x)
    np.testing.assert_allclose(log_fired_slope(x), difference, rtol=1e-5, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    seed=seeds,
    n_latents=st.integers(0, 4),
    n_features=st.integers(1, 6),
    missing=st.sampled_from([0.0, 0.3]),
)
def test_em_climbs_and_stays_below_the_likelihood(seed, n_latents, n_features, missing):
    network, patterns, em = problem(seed, n_latents, n_features, missing)
    point = network._clipped()
    shares, bounds = em.start(), []
    for _ in range(20):
        previous = point
        bound, (point, shares) = em.step(point, shares)
        assert bound <= log_likelihood(previous, patterns) + 1e-9
        np.testing.assert_array_equal(point.failure == 1.0, ~network.structure)
        bounds.append(bound)
    assert (np.diff(bounds) >= -1e-9).all()


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n_latents=st.integers(1, 4), n_features=st.integers(1, 6))
def test_sweeps_climb_for_every_row(seed, n_latents, n_features):
    network, _, em = problem(seed, n_latents, n_features, 0.0)
    couplings = em.couplings(network)
    shares = em.start()
    lift = couplings.lift(shares)
    point = MeanField.of(couplings, shares, lift)
    for _ in range(10):
        shares, lift = better_shares(couplings, shares, lift, point.posterior)
        total = couplings.per_finding(shares)
        has_parents = couplings.per_finding(None) > 0
        np.testing.assert_allclose(total[has_parents], 1.0, rtol=1e-12)
        after = MeanField.of(couplings, shares, lift)
        gain = after.log_normalizer - point.log_normalizer
        gain = gain.reshape(-1, n_latents).sum(axis=1)
        assert (gain >= -1e-12).all()
        point = after


def test_one_parent_per_feature_is_exact():
    """Shares have nothing to divide, so that Jensen's inequality is an equality."""
    failure = np.array([[0.3, 0.5, 1.0, 1.0], [1.0, 1.0, 0.2, 0.6]])
    network = NoisyOrNetwork([0.4, 0.2], failure, [0.1, 0.05, 0.2, 0.01])
    patterns = Patterns.of(random_rows(0, 30, 4, missing=0.2))
    em = VariationalEM(network.structure, patterns)
    bound, _ = em.step(network, em.start())
    assert bound == pytest.approx(log_likelihood(network, patterns), abs=1e-9)


def test_children_of_two_parents_go_to_one():
    """The bias that Halpern and Sontag report in Section 4.1 of their paper.

    In a good part of the runs one of the two parents of b or c ends with a failure
    near 1, where the truth is at most 0.8.
    """
    pruned = []
    for seed in range(10):
        X, _ = figure_1_network(seed).sample(5000, random_state=seed)
        em = VariationalEM(FIGURE_1, Patterns.of(X))
        rng = np.random.default_rng(seed)
        start = NoisyOrNetwork(
            rng.uniform(0.2, 0.8, 2),
            np.where(FIGURE_1, rng.uniform(0.2, 0.8, FIGURE_1.shape), 1.0),
            np.full(5, 0.05),
        )
        ascent = em.climb(start, em.start(), tol=0.0, max_iter=600)
        network, _ = ascent.state
        pruned.append((network.failure[:, [1, 2]].max(axis=0) > 0.95).any())
    assert np.mean(pruned) >= 0.3
