"""Clean-up, and least squares on interactions."""

import numpy as np
import pytest
from exact_moments import every_set, exact_moments, exact_rates
from hypothesis import given, settings
from strategies import networks, seeds, with_parameters

from sklearn_latent.noisy_or import NoisyOrNetwork
from sklearn_latent.noisy_or._interactions import (
    FreeParameters,
    Interactions,
    fit_interactions,
    pairs_of,
)
from sklearn_latent.noisy_or._moment_fit import clean_up
from sklearn_latent.noisy_or._moment_plan import Plan
from sklearn_latent.noisy_or._rates import Guess
from sklearn_latent.noisy_or._triplets import Estimates, solve_schedule


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


@pytest.mark.parametrize("guess", [False, True])
@settings(max_examples=20, deadline=None)
@given(network=networks(max_latents=3, max_features=6), seed=seeds)
def test_jacobian_is_the_derivative(guess, network, seed):
    """Of interactions, and of a guess by rates that explain some too often."""
    other = with_parameters(network.structure, seed)
    free = FreeParameters(
        other.prior, other.failure, np.ones(len(other.prior), bool), other.structure
    )
    x = free.pack(other.prior, other.failure)
    if guess:
        rates = exact_rates(network)
        rates.weight = np.ones_like(rates.weight)
        problem = Guess(rates, network.structure)
        J = problem.jacobian(free, *free.unpack(x)).toarray()
    else:
        problem = exact_interactions(network)
        problem.weight = np.ones_like(problem.weight)
        J = free.linearize(problem, x)[1].toarray()

    def residuals(x):
        both = free.unpack(x)
        return problem.residuals(free, *both) if guess else problem.residuals(*both)

    for column, step in zip(J.T, 1e-6 * np.eye(len(x)), strict=True):
        slope = (residuals(x + step) - residuals(x - step)) / 2e-6
        atol, rtol = (1e-4, 1e-7) if guess else (1e-7, 1e-5)
        np.testing.assert_allclose(column, slope, rtol=rtol, atol=atol)


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


def cleaned_up(network, refine=False):
    """What schedule and clean-up make of exact moments, and the former alone."""
    plan = Plan.of(network.structure, refine=refine)
    moments = exact_moments(network, plan.sets)
    estimates, reached = (solve_schedule(moments, plan.schedule) for _ in range(2))
    clean_up(moments, network.structure, estimates, plan.rest_sets, improve=refine)
    return estimates, reached


@pytest.mark.parametrize(("n_shared", "seed"), [(3, 0), (3, 1), (8, 2), (30, 3)])
def test_clean_up_is_exact_on_exact_moments(n_shared, seed):
    """Figure 2 of Halpern and Sontag, and larger: all but one child shared."""
    structure = np.ones((2, n_shared + 2), dtype=bool)
    structure[0, -1] = structure[1, 0] = False
    network = with_parameters(structure, seed)
    estimates, reached = cleaned_up(network)
    assert np.isnan(reached.prior).all()
    np.testing.assert_allclose(estimates.prior, network.prior, atol=1e-6)
    np.testing.assert_allclose(estimates.failure, network.failure, atol=1e-6)


def test_clean_up_uses_what_the_schedule_learned():
    """A reached latent beside the unreached pair, sharing features with it."""
    structure = np.zeros((3, 14), dtype=bool)
    structure[0, :7] = structure[1, 1:8] = True
    structure[2, [2, 3, 10, 11, 12, 13]] = True
    network = with_parameters(structure, 1)
    estimates, reached = cleaned_up(network)
    known = ~np.isnan(reached.failure)
    assert known[2, 10:].all()
    np.testing.assert_array_equal(estimates.failure[known], reached.failure[known])
    np.testing.assert_allclose(estimates.failure, network.failure, atol=1e-6)


@pytest.mark.parametrize("refine", [True, False])
def test_latents_with_the_same_children_are_told_apart(refine):
    network = with_parameters(np.ones((2, 6), dtype=bool), 0)
    estimates, _ = cleaned_up(network, refine)
    order = np.argsort(estimates.failure[:, 0])
    truth = np.argsort(network.failure[:, 0])
    # What is refined afterwards is not polished.
    atol = 0.05 if refine else 1e-4
    np.testing.assert_allclose(
        estimates.failure[order], network.failure[truth], atol=atol
    )


def test_features_never_seen_together_do_not_count():
    """Of two triplets, the one without rows has no weight."""
    network = NoisyOrNetwork([0.3], [[0.2, 0.4, 0.5, 0.6]], [0.01] * 4)
    structure = np.ones((1, 4), dtype=bool)
    plan = Plan.of(structure)
    moments = exact_moments(network, plan.sets)
    gone = (moments.sets == 3).any(axis=1) & ((moments.sets >= 0).sum(axis=1) > 1)
    moments.total[gone] = moments.off[gone] = 0.0
    found = solve_schedule(moments, plan.schedule)
    np.testing.assert_allclose(found.failure[0, :3], network.failure[0, :3], atol=1e-6)
    assert found.prior[0] == pytest.approx(0.3, abs=1e-6)
    assert found.failure[0, 3] == pytest.approx(1.0, abs=2e-6)
    np.testing.assert_array_equal(found.supported, [True, True, True, True, False])


def test_nothing_is_supported_by_independent_features():
    structure = np.ones((1, 4), dtype=bool)
    network = NoisyOrNetwork([0.3], np.ones((1, 4)), np.full(4, 0.2))
    plan = Plan.of(structure)
    found = solve_schedule(exact_moments(network, plan.sets), plan.schedule)
    assert isinstance(found, Estimates)
    assert not found.supported.any()
    assert found.prior[0] == 0.5
    np.testing.assert_allclose(found.failure, 1.0, atol=2e-6)
