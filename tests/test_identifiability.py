import numpy as np
import pytest
from hypothesis import given, settings
from strategies import seeds, structures

from sklearn_latent.noisy_or import find_schedule, identifiability_order

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


def test_max_order_limits_the_search():
    structure = np.ones((4, 5))
    assert identifiability_order(structure, max_order=3, random_state=0) == -1
    assert identifiability_order(structure, max_order=4, random_state=0) == 4


@pytest.mark.parametrize("max_order", [0, -1, 2.5, "3"])
def test_bad_max_order(max_order):
    with pytest.raises(ValueError, match="max_order must be an integer of at least 1"):
        identifiability_order(np.ones((1, 3)), max_order=max_order)
