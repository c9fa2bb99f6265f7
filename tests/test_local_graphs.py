"""Algorithm 1: from local graphs to a global one."""

import numpy as np

from sklearn_latent.mixed import TemporalGraph
from sklearn_latent.mixed._local_graphs import (
    MAX_WINDOWS,
    LocalGraph,
    co_occurrences,
    edges_by_majority,
    edges_by_vote,
    global_partners,
    local_partners,
    measure_support,
    shared_parents,
    windows,
)
from sklearn_latent.mixed._panels.panel import Panel


def local(groups, edges=(), n_observed=6):
    """A local graph of one slice."""
    structure = np.zeros((len(groups), n_observed), dtype=bool)
    for row, group in zip(structure, groups, strict=True):
        row[[i - 1 for i in group]] = True
    adjacency = np.zeros((len(groups),) * 2, dtype=bool)
    for tail, head in edges:
        adjacency[tail, head] = True
    return LocalGraph(structure, np.zeros(len(groups), dtype=int), adjacency)


# Figure 2 and Table 3 of the paper, with features from 1 as there.
FIGURE_2 = [
    local([(1, 2, 3), (4, 5, 6)], [(0, 1)]),
    local([(1, 2, 3, 4, 5, 6)]),
    local([(4, 5, 6), (1, 2, 3)], [(0, 1)]),
    local([(1, 2, 3, 4), (5, 6)], [(0, 1)]),
]


def test_matrix_s_of_the_paper():
    shared = shared_parents(FIGURE_2)
    assert np.array_equal(
        shared,
        [
            [0, 4, 4, 2, 1, 1],
            [4, 0, 4, 2, 1, 1],
            [4, 4, 0, 2, 1, 1],
            [2, 2, 2, 0, 3, 3],
            [1, 1, 1, 3, 0, 4],
            [1, 1, 1, 3, 4, 0],
        ],
    )


def test_global_partners_of_the_paper():
    shared = shared_parents(FIGURE_2)
    partners = local_partners(shared)
    assert [(p + 1).tolist() for p in partners] == [
        [2, 3], [1, 3], [1, 2], [5, 6], [6], [5],
    ]  # fmt: skip
    assert global_partners(partners, shared) == [(0, 1, 2), (3, 4, 5)]


def test_matrix_co_and_edge_of_the_paper():
    structure = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], dtype=bool)
    intra, inter = co_occurrences(FIGURE_2, structure)
    assert np.array_equal(intra, [[0, 2], [1, 0]])
    assert not inter.any()
    edges, _ = edges_by_vote(intra, inter)
    assert np.array_equal(edges, [[False, True], [False, False]])


def test_feature_without_votes_has_no_partner():
    graphs = [local([(1, 2, 3)]), local([(1, 2, 3)])]
    shared = shared_parents(graphs)
    partners = local_partners(shared)
    assert all(not len(partners[i]) for i in (3, 4, 5))
    assert global_partners(partners, shared) == [(0, 1, 2)]


def test_no_feature_is_in_two_groups():
    # Feature 3 is as often with 1 and 2 as with 4 and 5.
    graphs = [local([(1, 2, 3), (4, 5)], n_observed=5)]
    graphs += [local([(1, 2), (3, 4, 5)], n_observed=5)]
    shared = shared_parents(graphs)
    groups = global_partners(local_partners(shared), shared)
    members = [i for group in groups for i in group]
    assert sorted(members) == [0, 1, 2, 3, 4]
    assert len(groups) == 2


def test_undirected_edge_counts_both_ways_and_stays_undirected():
    graphs = [local([(1, 2, 3), (4, 5, 6)], [(0, 1), (1, 0)])]
    structure = graphs[0].structure
    intra, inter = co_occurrences(graphs, structure)
    assert np.array_equal(intra, [[0, 1], [1, 0]])
    edges, _ = edges_by_vote(intra, inter)
    assert edges[0, 1] and edges[1, 0]


def test_vote_never_makes_a_cycle():
    votes = np.array([[0, 5, 0], [0, 0, 4], [3, 0, 0]])
    intra, _ = edges_by_vote(votes, np.zeros((3, 3)))
    assert np.array_equal(np.argwhere(intra), [[0, 1], [1, 2]])
    TemporalGraph(np.eye(3), intra, np.zeros((3, 3)))


def test_edges_need_a_vote():
    votes = np.array([[0, 1], [0, 0]])
    intra, inter = edges_by_vote(votes, votes)
    assert np.array_equal(intra, votes > 0) and np.array_equal(inter, votes > 0)
    intra, inter = edges_by_vote(0 * votes, 0 * votes)
    assert not intra.any() and not inter.any()


def test_edges_need_half_of_the_graphs_that_have_both_latents():
    both = [(1, 2, 3), (4, 5, 6)]
    structure = local(both).structure
    graphs = [local(both, [(0, 1)]), local(both), local([(1, 2, 3, 4, 5, 6)])]
    intra, _ = edges_by_majority(graphs, structure)
    assert np.array_equal(intra, [[False, True], [False, False]])
    intra, _ = edges_by_majority([*graphs, local(both)], structure)
    assert not intra.any()
    # Directions share the votes for an edge.
    graphs = [local(both, [(0, 1)]), local(both, [(1, 0)]), local(both), local(both)]
    intra, _ = edges_by_majority(graphs, structure)
    assert intra[0, 1] and intra[1, 0]


def test_each_slice_of_a_graph_has_a_vote():
    # Undirected in the earlier slice, directed in the later one.
    structure = np.kron(np.eye(2, dtype=bool), np.ones((1, 3), dtype=bool))
    graph = LocalGraph.of_tables(structure, ~np.eye(2, dtype=bool), np.eye(2) > 0)
    adjacency = graph.adjacency.copy()
    adjacency[3, 2] = False
    graph = LocalGraph(graph.structure, graph.slices, adjacency)
    intra, inter = co_occurrences([graph], structure)
    assert np.array_equal(intra, [[0, 2], [1, 0]])
    assert np.array_equal(inter, np.eye(2))
    intra, _ = edges_by_majority([graph], structure)
    assert np.array_equal(intra, [[False, True], [False, False]])


def test_orientation_rules():
    structure = np.kron(np.eye(2, dtype=bool), np.ones((1, 3), dtype=bool))
    intra = np.array([[0, 1], [0, 0]], dtype=bool)
    inter = np.array([[0, 0], [0, 1]], dtype=bool)
    graph = LocalGraph.of_tables(structure, intra, inter)
    adjacency = graph.adjacency.copy()
    adjacency[1, 0] = True  # undirected in the earlier slice
    adjacency[3, 1], adjacency[1, 3] = True, False  # against time
    oriented = LocalGraph(graph.structure, graph.slices, adjacency).oriented()
    assert np.array_equal(oriented.adjacency, graph.adjacency)


def test_support_is_a_share():
    structure = np.kron(np.eye(2, dtype=bool), np.ones((1, 3), dtype=bool))
    intra = np.array([[0, 1], [0, 0]], dtype=bool)
    inter = np.eye(2, dtype=bool)
    with_edge = LocalGraph.of_tables(structure, intra, inter)
    without = LocalGraph.of_tables(structure, np.zeros_like(intra), inter)
    graph = TemporalGraph(structure, intra, inter)
    support = measure_support([with_edge, with_edge, without, without], graph)
    assert support.intra[0, 1] == 0.5 and support.intra[1, 0] == 0
    assert np.array_equal(support.inter, inter.astype(float))
    assert np.array_equal(support.structure, structure.astype(float))


class TestWindows:
    """What a local graph is learned from."""

    def shapes(self, n, n_slices, weights=None):
        panel = Panel.of(np.zeros((n, n_slices, 1), dtype=int), [2], weights)
        return [window.codes.shape[1] for window in windows(panel)]

    def test_pairs_of_slices_where_sequences_are_many(self):
        assert self.shapes(200, 5) == [2] * 4
        assert self.shapes(200, 1) == [1]

    def test_few_sequences_share_windows(self):
        # 50 sequences need two pairs; windows overlap by a slice, and cover all.
        assert self.shapes(50, 5) == [3, 3]
        assert self.shapes(50, 6) == [3, 4]
        assert self.shapes(3, 4) == [4]

    def test_weights_are_sequences(self):
        assert self.shapes(50, 5, np.full(50, 4.0)) == [2] * 4
        assert self.shapes(0, 3) == [3]

    def test_long_series_have_few_windows(self):
        shapes = self.shapes(1, 2001)
        assert len(shapes) == MAX_WINDOWS and sum(shapes) == 2000 + MAX_WINDOWS
        assert len(self.shapes(1000, 201)) == MAX_WINDOWS
