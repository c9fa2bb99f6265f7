"""Which edges can be learned from moments, and in which order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from strategies import seeds, structures

from sklearn_latent.datasets import figure_1_structure, make_qmr_like
from sklearn_latent.noisy_or import find_schedule, identifiability_order


def replay(schedule):
    """Check a schedule by the definitions of the paper alone, step by step.

    Returns the depth of each edge and latent that the steps learn.
    """
    structure = schedule.structure
    edge_depth, prior_depth = {}, {}
    for step in schedule.steps:
        before = {edge for edge, depth in edge_depth.items() if depth < step.depth}
        assert len(set(step.features)) == len(step.features)
        assert all(structure[step.latent, f] for f in step.features)
        # Whatever is removed has its prior and all its edges into the set known.
        for parent in step.removes:
            assert parent != step.latent
            assert prior_depth[parent] < step.depth
            assert all(
                (parent, f) in before for f in step.features if structure[parent, f]
            )
        # Definition 1: nobody else couples two of the features.
        for parent in range(len(structure)):
            if parent != step.latent and parent not in step.removes:
                assert sum(structure[parent, f] for f in step.features) < 2
        if len(step.features) == 3:
            prior_depth.setdefault(step.latent, step.depth)
        else:
            # A pair needs the prior and the other edge.
            assert prior_depth[step.latent] < step.depth
            assert (step.latent, step.features[1]) in before
        edge_depth.setdefault((step.latent, step.target), step.depth)
    return edge_depth


def singly_coupled(structure, features, latent, known):
    """Definition 1, parents with known edges into the set not counted."""
    for parent in range(len(structure)):
        mine = [f for f in features if structure[parent, f]]
        unknown = any((parent, f) not in known for f in mine)
        if parent != latent and len(mine) >= 2 and unknown:
            return False
    return True


def slow_rounds(structure, use_pairs):
    """Algorithm 1 by loops over all triplets and pairs: the reference for depths."""
    known = {}
    for depth in range(structure.sum() + 1):
        learned = {}
        for i, a in np.argwhere(structure).tolist():
            others = [c for c in np.flatnonzero(structure[i]).tolist() if c != a]
            sets = [(a, b, c) for b in others for c in others if b < c]
            if use_pairs:
                sets += [(a, b) for b in others if (i, b) in known]
            if (i, a) not in known and any(
                singly_coupled(structure, features, i, known) for features in sets
            ):
                learned[i, a] = depth
        if not learned:
            break
        known |= learned
    return known


@settings(max_examples=60, deadline=None)
@given(structures(), st.booleans())
def test_certificate_holds_and_rounds_are_minimal(structure, use_pairs):
    schedule = find_schedule(structure, use_pairs=use_pairs)
    replayed = replay(schedule)
    expected = slow_rounds(structure, use_pairs)
    assert replayed == expected
    depth = np.where(structure, np.inf, np.nan)
    for edge, value in expected.items():
        depth[edge] = value
    np.testing.assert_array_equal(schedule.depth, depth)
    assert schedule.is_complete == (len(expected) == structure.sum())
    assert schedule.n_rounds == len(set(expected.values()))


def test_figure_1():
    schedule = find_schedule(figure_1_structure())
    nan = np.nan
    np.testing.assert_array_equal(
        schedule.depth, [[1, 1, 1, nan, nan], [nan, 0, 0, 0, 0]]
    )
    assert "7 of 7 edges in 2 rounds" in repr(schedule)


def test_sharing_all_but_one_child_is_out_of_reach():
    structure = np.ones((2, 62), dtype=bool)
    structure[0, -1] = structure[1, 0] = False
    schedule = find_schedule(structure)
    assert not schedule.is_complete
    assert schedule.steps == []
    assert len(schedule.unreached) == 122


def test_schedule_of_a_diagnosis_network_replays():
    network = make_qmr_like(60, 300, 1500, n_samples=1, random_state=0).network
    schedule = find_schedule(network.structure)
    assert len(replay(schedule)) == np.isfinite(schedule.depth).sum()


def test_sparse_structure_is_the_same():
    structure = figure_1_structure()
    dense, compressed = (
        find_schedule(structure),
        find_schedule(sparse.csr_array(structure)),
    )
    np.testing.assert_array_equal(dense.depth, compressed.depth)


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        ([[0, 0], [1, 1]], "structure must give every latent .* latent 0"),
        ([[0, 2], [1, 1]], "structure must hold booleans .* got values such as"),
        ([[np.nan, 1]], "structure contains NaN"),
        ([1, 0, 1], r"structure must have two dimensions.*\(3,\)"),
        ([["a", "b"]], "structure must be an array of numbers"),
        ([[1], [1, 1]], "structure must be an array of numbers"),
    ],
)
def test_bad_structure(structure, message):
    with pytest.raises(ValueError, match=message):
        find_schedule(structure)


def test_no_latents():
    schedule = find_schedule(np.zeros((0, 4), dtype=bool))
    assert schedule.is_complete
    assert schedule.n_rounds == 0


# Table 1 of Halpern and Sontag: hidden variables down, observed across.
TABLE_1 = [
    [-1, -1, 3, 3, 3, 3, 3],
    [-1, -1, -1, 3, 3, 3, 3],
    [-1, -1, -1, -1, 3, 3, 3],
    [-1, -1, -1, -1, 4, 3, 3],
    [-1, -1, -1, -1, -1, 3, 3],
    [-1, -1, -1, -1, -1, 4, 3],
    [-1, -1, -1, -1, -1, 4, 3],
]


def test_table_1_cell_by_cell():
    table = [
        [identifiability_order(np.ones((n, m)), random_state=0) for m in range(1, 8)]
        for n in range(1, 8)
    ]
    assert table == TABLE_1


@settings(max_examples=30, deadline=None)
@given(structures(max_latents=3, max_features=7), seeds)
def test_a_complete_schedule_certifies_third_order(structure, seed):
    """Theorem 1: what a schedule reaches is identifiable from third-order moments."""
    if find_schedule(structure).is_complete:
        assert identifiability_order(structure, random_state=seed) in (1, 2, 3)


@settings(max_examples=20, deadline=None)
@given(structures(max_latents=3, max_features=6))
def test_the_random_point_does_not_matter(structure):
    orders = {identifiability_order(structure, random_state=s) for s in range(3)}
    assert len(orders) == 1


def test_options_of_schedules_and_orders():
    structure = np.ones((4, 5))
    assert identifiability_order(structure, max_order=3, random_state=0) == -1
    assert identifiability_order(structure, max_order=4, random_state=0) == 4
    for max_order in (0, -1, 2.5, "3"):
        with pytest.raises(
            ValueError, match="max_order must be an integer of at least"
        ):
            identifiability_order(structure, max_order=max_order)
    with pytest.raises(ValueError, match="use_pairs must be True or False, got 'a'"):
        find_schedule([[1, 1, 1]], use_pairs="a")
