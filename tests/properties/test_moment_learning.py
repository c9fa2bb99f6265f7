"""Exact moments in, true parameters out, for whatever structure."""

import numpy as np
import pytest
from exact_moments import exact_moments
from hypothesis import event, given, settings
from hypothesis import strategies as st
from strategies import networks, structures, with_parameters

from sklearn_latent.noisy_or import find_schedule
from sklearn_latent.noisy_or._moment_plan import Plan
from sklearn_latent.noisy_or._triplets import solve_leak, solve_schedule

TOLERANCE = 1e-8


def worst_error(network, *, use_pairs, refine):
    """Largest error of what the schedule reaches, and the depths that it reaches."""
    plan = Plan.of(
        network.structure, use_pairs=use_pairs, clean_up=False, refine=refine
    )
    moments = exact_moments(network, plan.sets)
    estimates = solve_schedule(moments, plan.schedule)
    reached = np.isfinite(plan.schedule.depth)
    prior_reached = reached.any(axis=1)
    errors = [
        np.abs(estimates.failure - network.failure)[reached],
        np.abs(estimates.prior - network.prior)[prior_reached],
    ]
    if plan.schedule.is_complete:
        leak = solve_leak(moments, estimates.prior, estimates.failure)
        # Leaks are clipped away from zero.
        errors.append(np.abs(leak - np.maximum(network.leak, 1e-6)))
    depths = set(plan.schedule.depth[reached].astype(int).tolist())
    return max((e.max(initial=0.0) for e in errors), default=0.0), depths


@settings(max_examples=150, deadline=None)
@given(networks(), st.booleans(), st.booleans())
def test_true_parameters_from_exact_moments(network, use_pairs, refine):
    error, depths = worst_error(network, use_pairs=use_pairs, refine=refine)
    event(f"depths {sorted(depths)}")
    assert error < TOLERANCE


@pytest.mark.parametrize("use_pairs", [True, False])
def test_every_depth_from_0_to_3_is_exact(use_pairs):
    rng = np.random.default_rng(0)
    seen = set()
    for seed in range(150):
        structure = rng.random((rng.integers(2, 6), rng.integers(5, 12))) < 0.5
        structure = structure[structure.any(axis=1)]
        network = with_parameters(structure, seed)
        error, depths = worst_error(network, use_pairs=use_pairs, refine=False)
        assert error < TOLERANCE
        seen |= depths
    assert seen >= {0, 1, 2, 3}


@settings(max_examples=50, deadline=None)
@given(structures(), st.randoms(use_true_random=False))
def test_permutation_permutes_depths(structure, random):
    rows = random.sample(range(len(structure)), len(structure))
    columns = random.sample(range(structure.shape[1]), structure.shape[1])
    depth = find_schedule(structure).depth
    permuted = find_schedule(structure[rows][:, columns]).depth
    np.testing.assert_array_equal(permuted, depth[rows][:, columns])


@settings(max_examples=50, deadline=None)
@given(structures())
def test_pairs_never_make_a_schedule_deeper(structure):
    with_pairs = find_schedule(structure, use_pairs=True).depth
    without = find_schedule(structure, use_pairs=False).depth
    edges = structure.astype(bool)
    assert (with_pairs[edges] <= without[edges]).all()
