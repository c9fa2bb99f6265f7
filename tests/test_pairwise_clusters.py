"""Pairwise cluster comparison."""

import numpy as np
import pytest

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.metrics import structural_hamming_distance
from sklearn_latent.mixed import LGLPCCTemporal
from sklearn_latent.mixed._hidden_classes import Rows
from sklearn_latent.mixed._pairwise_clusters import (
    Clusters,
    _first_stage,
    _paths,
    cluster_rows,
    compare_pairs,
    find_colliders,
    learn_by_comparison,
    lpcc_graph,
    maximal_sets,
    split_latent,
)
from sklearn_latent.mixed._panels.panel import Panel


def table_1():
    """Centroids of Table 1 of the paper."""
    return np.array(
        [[0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1], [0] * 6, [1, 1, 1, 0, 0, 0]]
    )


def test_comparisons_of_the_paper():
    changes, weights = compare_pairs(Clusters(table_1(), np.ones(4)))
    assert np.array_equal(
        changes.astype(int),
        [
            [1, 1, 1, 0, 0, 0],
            [0, 0, 0, 1, 1, 1],
            [1, 1, 1, 1, 1, 1],
            [1, 1, 1, 1, 1, 1],
            [0, 0, 0, 1, 1, 1],
            [1, 1, 1, 0, 0, 0],
        ],
    )
    sets = maximal_sets(changes, weights)
    assert sets == [(0, 1, 2), (3, 4, 5)]
    assert find_colliders(changes, sets, weights) == {}


def test_collider_of_the_paper():
    # Comparisons of Table 2b, of which the centroids in Table 2a are not the source.
    changes = np.array(
        [
            [1, 1, 0, 0, 1, 1],
            [0, 0, 1, 1, 1, 1],
            [1, 1, 0, 0, 0, 0],
            [1, 1, 1, 1, 0, 0],
            [0, 0, 0, 0, 1, 1],
            [1, 1, 1, 1, 1, 1],
        ],
        dtype=bool,
    )
    sets = maximal_sets(changes, np.ones(6))
    assert sets == [(0, 1), (2, 3), (4, 5)]
    assert find_colliders(changes, sets, np.ones(6)) == {1: [0, 2]}
    # One wrong comparison of a small cluster is no evidence; one of a large cluster is.
    alone = np.vstack([changes, [[0, 0, 1, 1, 0, 0]]]).astype(bool)
    assert find_colliders(alone, sets, np.append(np.ones(6), 0.1)) == {1: [0, 2]}
    assert find_colliders(alone, sets, np.ones(7)) == {}


def test_features_that_never_change_are_in_no_set():
    centers = np.array([[0, 0, 5], [1, 1, 5]])
    assert maximal_sets(*compare_pairs(Clusters(centers, np.ones(2)))) == [(0, 1)]


def test_clusters_gather_noise_around_frequent_rows():
    rng = np.random.default_rng(0)
    centers = np.array([[0] * 6, [1] * 6, [2] * 6])
    codes = np.repeat(centers, 300, axis=0)
    noisy = rng.random(codes.shape) < 0.05
    codes = np.where(noisy, rng.integers(3, size=codes.shape), codes)
    clusters = cluster_rows(Rows.of(codes, np.ones(900), np.full(6, 3)))
    assert np.array_equal(np.unique(clusters.centers[:3], axis=0), centers)
    assert clusters.sizes.sum() == 900


def test_second_stage_splits_a_follower():
    majors = Clusters(np.array([[a] * 6 for a in range(3)]), np.full(3, 100.0))
    minor = np.array([[a] * 3 + [b] * 3 for a in range(3) for b in range(3) if a != b])
    minors = Clusters(minor, np.full(6, 5.0))
    sets, adjacency = split_latent(tuple(range(6)), minors, majors)
    assert sets == [(0, 1, 2), (3, 4, 5)]
    assert adjacency[0, 1] and adjacency[1, 0]
    alone, _ = split_latent((0, 1, 2), minors, majors)
    assert alone == [(0, 1, 2)]


def test_clean_data_give_the_true_model():
    rng = np.random.default_rng(0)
    z = rng.integers(3, size=(2000, 2))
    codes = np.repeat(z, 3, axis=1)
    sets, adjacency = learn_by_comparison(Rows.of(codes, np.ones(2000), np.full(6, 3)))
    assert sets == [(0, 1, 2), (3, 4, 5)]
    assert not adjacency.any()


def test_local_graph_of_two_slices():
    data = make_latent_dbn("G1", 5000, 2, random_state=0)
    graph = lpcc_graph(Panel.of(data.codes, np.full(3, 4))).oriented()
    assert graph.structure.all()
    assert graph.slices.tolist() == [0, 1]
    assert np.array_equal(graph.adjacency, [[False, True], [False, False]])


@pytest.mark.parametrize("codes", [np.full((5, 2, 3), -1), np.zeros((5, 2, 3), int)])
def test_nothing_to_compare(codes):
    graph = lpcc_graph(Panel.of(codes, np.full(3, 2)))
    assert graph.n_latents == 0


def test_sets_that_change_together_are_joined():
    # Each leaf differs from the hub in one comparison and from another leaf in two.
    hub, leaves = np.ones((6, 1)), np.ones((6, 3)) - np.eye(6)[:, :3]
    columns = np.concatenate([leaves[:, :2], hub, leaves[:, 2:]], axis=1)
    expected = np.zeros((4, 4), bool)
    expected[2, [0, 1, 3]] = True
    apart = np.abs(columns[:, :, None] - columns[:, None]).mean(axis=0)
    np.testing.assert_array_equal(_paths(apart), expected)
    # With few sets nothing tells the direction.
    few = _paths(apart[:3, :3])
    np.testing.assert_array_equal(few, (expected | expected.T)[:3, :3])


def test_a_rare_configuration_of_latents_has_a_major_cluster_too():
    centers = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 3, axis=1)
    clusters = Clusters(centers, np.array([100.0, 100.0, 100.0, 5.0]))
    assert clusters.is_major.tolist() == [True, True, True, False]
    sets, majors, parents = _first_stage(clusters)
    assert sets == [(0, 1, 2), (3, 4, 5)] and not parents
    np.testing.assert_array_equal(majors.centers, centers)


def test_major_clusters_end_at_the_steepest_drop():
    def n_major(*sizes):
        return int(Clusters(np.zeros((len(sizes), 1)), np.array(sizes)).is_major.sum())

    # Four configurations of one latent, then those in which another did not follow.
    assert n_major(*[1050.0] * 4, *[107.0] * 36, *[15.0] * 140) == 4
    # Without a drop beyond chance, those that are not below the mean.
    assert n_major(230.0, 225.0, 222.0, 218.0, 215.0) == 3
    assert n_major(5.0) == 1
    assert n_major() == 0


def test_centers_are_the_most_frequent_categories():
    # With 20% errors in 12 features few rows are free of errors.
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.integers(4, size=(8, 4)), 3, axis=1)
    codes = truth[rng.integers(8, size=800)]
    codes = np.where(rng.random(codes.shape) < 0.2, rng.integers(4, size=(12,)), codes)
    clusters = cluster_rows(Rows.of(codes, np.ones(800), np.full(12, 4)))
    found = {
        tuple(center) for center in clusters.centers[: len(np.unique(truth, axis=0))]
    }
    assert found == {tuple(center) for center in truth}


def collider_of_a_follower():
    """L1 -> L2 and a collider of L2 and L3: major clusters, and minor ones."""
    table = np.array([[0, 0, 2], [0, 1, 1], [2, 1, 1]])

    def centers(configurations):
        rows = [(a, b, c, table[b, c]) for a, b, c in configurations]
        return np.repeat(rows, 3, axis=1)

    three = range(3)
    majors = centers([(a, a, c) for a in three for c in three])
    minors = centers([(a, b, c) for a in three for b in three for c in three if a != b])
    return Clusters(np.concatenate([majors, minors]), np.repeat([90.0, 10.0], [9, 18]))


def test_a_collider_belongs_to_the_latent_that_it_follows():
    clusters = collider_of_a_follower()
    codes = np.repeat(clusters.centers, clusters.sizes.astype(int), axis=0)
    rows = Rows.of(codes, np.ones(len(codes)), np.full(12, 3))
    sets, adjacency = learn_by_comparison(rows)
    assert sets == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]
    expected = np.zeros((4, 4), dtype=bool)
    expected[0, 1] = expected[1, 0] = True
    expected[[1, 2], 3] = True
    np.testing.assert_array_equal(adjacency, expected)


@pytest.mark.parametrize("graph", ["G1", "G2", "G3"])
def test_figure_4(graph):
    data = make_latent_dbn(graph, 2000, 4, random_state=11)
    model = LGLPCCTemporal(4, local="lpcc", random_state=0).fit(data.X)
    assert structural_hamming_distance(data.graph, model.graph_) == (0, 0)
