"""Clean-up, least squares on interactions, and covariance of moments."""

import numpy as np
import pytest
from brute_force import joint
from exact_moments import exact_moments
from hypothesis import given, settings
from strategies import networks, seeds, with_parameters
from test_moments import every_set

from sklearn_latent.noisy_or import NoisyOrNetwork, find_schedule
from sklearn_latent.noisy_or._parameters.cleanup import clean_up, plan_clean_up
from sklearn_latent.noisy_or._parameters.interactions import (
    FreeParameters,
    Interactions,
    fit_interactions,
    pairs_of,
)
from sklearn_latent.noisy_or._parameters.learn import (
    influence_variance,
    moment_covariance,
)
from sklearn_latent.noisy_or._parameters.plan import Plan
from sklearn_latent.noisy_or._parameters.solve import Estimates, solve_schedule
from sklearn_latent.noisy_or._statistics.moments import NegativeMoments


def exact_interactions(network):
    sets = every_set(network.n_features, 3)
    moments = exact_moments(network, sets)
    return Interactions(
        moments, network.structure, pairs_of(sets[(sets >= 0).sum(axis=1) >= 2])
    )


@settings(max_examples=40, deadline=None)
@given(networks(max_latents=4, max_features=6))
def test_a_network_implies_its_own_interactions(network):
    interactions = exact_interactions(network)
    np.testing.assert_allclose(
        interactions.implied(network.prior, network.failure),
        interactions.observed,
        atol=1e-10,
    )
    before = interactions.weight
    interactions.reweigh(network.prior, network.failure)
    np.testing.assert_allclose(interactions.weight, before, rtol=1e-5)


@settings(max_examples=20, deadline=None)
@given(networks(max_latents=3, max_features=6), seeds)
def test_jacobian_is_the_derivative(network, seed):
    other = with_parameters(network.structure, seed)
    interactions = exact_interactions(network)
    interactions.weight = np.ones_like(interactions.weight)
    free = FreeParameters(
        other.prior, other.failure, np.ones(len(other.prior), bool), other.structure
    )
    x = free.pack(other.prior, other.failure)
    _, J = free.linearize(interactions, x)
    for column in range(len(x)):
        step = np.zeros(len(x))
        step[column] = 1e-6
        up = interactions.residuals(*free.unpack(x + step))
        down = interactions.residuals(*free.unpack(x - step))
        np.testing.assert_allclose(
            J.toarray()[:, column], (up - down) / 2e-6, rtol=1e-5, atol=1e-7
        )


def test_least_squares_finds_the_truth_from_nearby():
    rng = np.random.default_rng(0)
    structure = rng.random((4, 12)) < 0.5
    network = with_parameters(structure, 0)
    interactions = exact_interactions(network)
    prior, failure, cost = fit_interactions(
        interactions,
        np.clip(network.prior + rng.normal(0, 0.05, 4), 0.05, 0.95),
        np.where(
            structure,
            np.clip(network.failure + rng.normal(0, 0.05, structure.shape), 0.05, 0.95),
            1.0,
        ),
        np.ones(4, dtype=bool),
        structure,
    )
    np.testing.assert_allclose(prior, network.prior, atol=1e-6)
    np.testing.assert_allclose(failure, network.failure, atol=1e-6)
    assert cost >= 0


def test_least_squares_does_not_stop_at_a_damped_step():
    """Where the start is poor, a short step may be a damped one, far from the end."""
    rng = np.random.RandomState(13)
    structure = rng.random_sample((5, 14)) < 0.5
    structure[:, 0] = True
    prior = rng.uniform(0.005, 0.3, 5)
    failure = np.where(structure, rng.uniform(0.1, 0.9, structure.shape), 1.0)
    interactions = exact_interactions(NoisyOrNetwork(prior, failure, np.full(14, 0.01)))
    interactions.n[:] = 1e5
    rng = np.random.RandomState(13)
    start = rng.uniform(0.3, 0.9, 5)
    strong = np.where(structure, rng.uniform(0.02, 0.3, structure.shape), 1.0)
    every = np.ones(5, dtype=bool)
    fit = fit_interactions(interactions, start, strong, every, structure, tol=0.03)
    np.testing.assert_allclose(fit[0], prior, atol=1e-4)
    np.testing.assert_allclose(fit[1], failure, atol=1e-3)


@pytest.mark.parametrize(("n_shared", "seed"), [(3, 0), (3, 1), (8, 2), (30, 3)])
def test_clean_up_is_exact_on_exact_moments(n_shared, seed):
    """Figure 2 of Halpern and Sontag, and larger: all but one child shared."""
    structure = np.ones((2, n_shared + 2), dtype=bool)
    structure[0, -1] = structure[1, 0] = False
    network = with_parameters(structure, seed)
    plan = Plan.of(structure, refine=False)
    moments = exact_moments(network, plan.sets)
    estimates = solve_schedule(moments, plan.schedule, combine=False)
    assert np.isnan(estimates.prior).all()
    clean_up(moments, estimates, plan.rest)
    np.testing.assert_allclose(estimates.prior, network.prior, atol=1e-6)
    np.testing.assert_allclose(estimates.failure, network.failure, atol=1e-6)


def test_clean_up_uses_what_the_schedule_learned():
    """A reached latent beside the unreached pair, sharing features with it."""
    structure = np.zeros((3, 14), dtype=bool)
    structure[0, :7] = structure[1, 1:8] = True
    structure[2, [2, 3, 10, 11, 12, 13]] = True
    network = with_parameters(structure, 1)
    schedule = find_schedule(structure)
    assert np.isfinite(schedule.depth[2, 10:]).all()
    plan = Plan.of(structure, refine=False)
    moments = exact_moments(network, plan.sets)
    estimates = solve_schedule(moments, schedule, combine=False)
    clean_up(moments, estimates, plan.rest)
    np.testing.assert_allclose(estimates.failure, network.failure, atol=1e-6)


def test_fully_connected_pairs_have_no_anchor_and_still_fit():
    structure = np.ones((2, 6), dtype=bool)
    plan = plan_clean_up(find_schedule(structure))
    assert [piece.anchor for piece in plan.pieces] == [None]
    network = with_parameters(structure, 0)
    moments = exact_moments(network, Plan.of(structure).sets)
    estimates = Estimates.unknown(structure, len(moments.sets))
    clean_up(moments, estimates, plan)
    order = np.argsort(estimates.failure[:, 0])
    truth = np.argsort(network.failure[:, 0])
    np.testing.assert_allclose(
        estimates.failure[order], network.failure[truth], atol=1e-4
    )


@settings(max_examples=20, deadline=None)
@given(networks(max_latents=3, max_features=5))
def test_covariance_of_moments_by_enumeration(network):
    sets = every_set(network.n_features, 3)
    moments = NegativeMoments(
        sets, np.ones(len(sets)), np.full(len(sets), 10.0), network.n_features
    )
    rows = np.array(
        [
            [int(b) for b in f"{i:0{network.n_features}b}"]
            for i in range(2**network.n_features)
        ]
    )
    chance = joint(network, rows)[0].sum(axis=1)
    off = np.array([(rows[:, s[s >= 0]] == 0).all(axis=1) for s in sets]).astype(float)
    mean = off @ chance
    expected = (off * chance) @ off.T - np.outer(mean, mean)
    computed = moment_covariance(np.arange(len(sets)), moments, network)
    np.testing.assert_allclose(computed, expected / 10, atol=1e-10)


def test_variance_of_influences_in_runs(monkeypatch):
    from scipy import sparse

    from sklearn_latent.noisy_or._parameters import learn as _learn

    network = with_parameters(np.ones((2, 6), dtype=bool), 0)
    sets = every_set(6, 3)
    moments = exact_moments(network, sets)
    influence = sparse.csr_array(
        sparse.random(30, len(sets), density=0.2, random_state=0)
    )
    covariance = moment_covariance(np.arange(len(sets)), moments, network)
    expected = np.diag(influence @ covariance @ influence.T.toarray())
    for entries in (5, 50, 10_000):
        monkeypatch.setattr(_learn, "ENTRIES_AT_A_TIME", entries)
        np.testing.assert_allclose(
            influence_variance(influence, moments, network), expected, rtol=1e-9
        )
