"""The two-slice graph, and the structural Hamming distance of graphs."""

import pickle
from itertools import permutations

import numpy as np
import pytest
from dbn_strategies import graphs, one_latent, seeds
from hypothesis import given, settings
from scipy.sparse import csr_array

from sklearn_latent import metrics
from sklearn_latent._core.graphs import is_acyclic
from sklearn_latent.metrics import structural_hamming_distance
from sklearn_latent.mixed import TemporalGraph

few = settings(max_examples=50, deadline=None)


@few
@given(graphs(max_latents=5), seeds)
def test_permuting_back_is_the_same_graph(graph, seed):
    order = np.random.default_rng(seed).permutation(graph.n_latents)
    there = graph.permuted(order)
    assert there.permuted(np.argsort(order)) == graph
    for i, j in enumerate(order):
        before = {int(np.flatnonzero(order == k)[0]) for k in graph.parents_before(j)}
        assert set(there.parents_before(i)) == before
        np.testing.assert_array_equal(there.features_of(i), graph.features_of(j))


@few
@given(graphs(max_latents=5))
def test_directed_keeps_all_edges_and_has_no_cycle(graph):
    directed = graph.directed()
    assert directed.is_directed
    assert is_acyclic(directed.intra)
    np.testing.assert_array_equal(
        directed.intra | directed.intra.T, graph.intra | graph.intra.T
    )
    known = graph.intra & ~graph.intra.T
    assert directed.intra[known].all()
    np.testing.assert_array_equal(directed.inter, graph.inter)


@few
@given(graphs(max_latents=5))
def test_components_partition_the_latents(graph):
    parts = graph.components()
    np.testing.assert_array_equal(
        np.sort(np.concatenate(parts)), np.arange(graph.n_latents)
    )
    joined = graph.intra | graph.inter
    for a in parts:
        for b in parts:
            if a is not b:
                assert not joined[np.ix_(a, b)].any()


@few
@given(graphs())
def test_value_semantics(graph):
    same = pickle.loads(pickle.dumps(graph))
    assert same == graph
    assert hash(same) == hash(graph)
    assert graph != "graph"
    with pytest.raises(ValueError, match="read-only"):
        graph.inter[0, 0] = True


def test_orientation_respects_directed_edges():
    # 2 -> 0 is directed, 0 - 1 and 1 - 2 are not; no orientation may close a cycle.
    intra = np.zeros((3, 3))
    intra[2, 0] = intra[0, 1] = intra[1, 0] = intra[1, 2] = intra[2, 1] = 1
    directed = TemporalGraph(np.zeros((3, 1)), intra, np.zeros((3, 3))).directed()
    assert 2 in directed.parents_within(0)
    assert directed.intra.sum() == 3


def test_orientation_makes_no_new_collider():
    # 0 - 2 - 1 means that 0 and 1 are independent given 2, which 0 -> 2 <- 1 is not.
    intra = np.zeros((3, 3))
    intra[0, 2] = intra[2, 0] = intra[1, 2] = intra[2, 1] = 1
    directed = TemporalGraph(np.zeros((3, 1)), intra, np.zeros((3, 3))).directed()
    assert len(directed.parents_within(2)) == 1
    # The past of latent 1 is no parent of latent 0, so 0 -> 1 would be a collider.
    graph = TemporalGraph(np.eye(2), [[0, 1], [1, 0]], [[0, 0], [0, 1]])
    assert graph.directed().parents_within(0) == (1,)


def test_graph_without_latents():
    graph = TemporalGraph(np.zeros((0, 3)), [], [])
    assert (graph.n_latents, graph.n_observed) == (0, 3)
    assert graph.components() == []
    assert graph.is_directed
    assert graph.is_pure


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        (([1, 0], [[0]], [[0]]), "structure must be a two-dimensional"),
        (([[2]], [[0]], [[0]]), "structure must hold only 0 and 1"),
        (([["a"]], [[0]], [[0]]), "structure must be an array of numbers"),
        (([[1]], [[0, 1]], [[0]]), r"intra must have .* shape \(1, 1\), got \(1, 2\)"),
        (([[1]], [[0]], np.zeros((2, 2))), "inter must have"),
        (([[1]], [[1]], [[0]]), "intra must not join a latent with itself"),
    ],
)
def test_wrong_matrices(matrices, message):
    with pytest.raises(ValueError, match=message):
        TemporalGraph(*matrices)


def test_cycles_are_refused():
    intra = np.roll(np.eye(3), 1, axis=1)
    with pytest.raises(ValueError, match="no directed cycle"):
        TemporalGraph(np.eye(3), intra, np.eye(3))


def test_wrong_order():
    graph = TemporalGraph(np.eye(2), np.zeros((2, 2)), np.eye(2))
    with pytest.raises(ValueError, match="order must hold each of 0 to 1 once"):
        graph.permuted([0, 0])
    with pytest.raises(ValueError, match="order must hold each"):
        graph.permuted(1)


def plain_distance(a, b):
    """Edge by edge, permutation by permutation, for graphs of as many latents."""
    best = (10**9, 10**9)
    n = a.n_latents
    for order in permutations(range(n)):
        c = b.permuted(order)
        observed = int((a.structure != c.structure).sum())
        total = observed + int((a.inter != c.inter).sum())
        for i in range(n):
            for k in range(i):
                mine = (a.intra[i, k], a.intra[k, i])
                total += mine != (c.intra[i, k], c.intra[k, i])
        best = min(best, (total, observed))
    return best


def renamed(graph, seed):
    return graph.permuted(np.random.default_rng(seed).permutation(graph.n_latents))


@few
@given(graphs(max_latents=4), graphs(max_latents=4), seeds)
def test_distance_laws(a, b, seed):
    if a.n_observed != b.n_observed:
        with pytest.raises(ValueError, match="same number of columns"):
            structural_hamming_distance(a, b)
        return
    distance = structural_hamming_distance(a, b)
    assert structural_hamming_distance(b, a) == distance
    assert structural_hamming_distance(renamed(a, seed), b) == distance
    assert 0 <= distance[1] <= distance[0]
    if a.n_latents == b.n_latents:
        assert distance == plain_distance(a, b)
        equal = any(a == b.permuted(o) for o in permutations(range(a.n_latents)))
        assert (distance[0] == 0) == equal


@few
@given(graphs(max_latents=5), seeds)
def test_zero_for_the_same_graph_by_other_names(graph, seed):
    assert structural_hamming_distance(graph, renamed(graph, seed)) == (0, 0)


@few
@given(graphs(max_latents=4, max_observed=6), seeds)
def test_assignment_agrees_where_features_tell_latents_apart(graph, seed):
    measured = graph.structure.any(axis=1)
    keep = np.flatnonzero(measured)
    graph = TemporalGraph(
        graph.structure[keep],
        graph.intra[np.ix_(keep, keep)],
        graph.inter[np.ix_(keep, keep)],
    )
    intra = graph.intra.copy()
    intra[np.triu_indices(len(keep), 1)] = False
    other = renamed(
        TemporalGraph(graph.structure, np.triu(intra.T, 1), graph.inter), seed
    )
    exact = structural_hamming_distance(graph, other)
    limit, metrics.MAX_PERMUTED = metrics.MAX_PERMUTED, 0
    try:
        assert structural_hamming_distance(graph, other) == exact
    finally:
        metrics.MAX_PERMUTED = limit


def test_kinds_of_difference_count_one_each():
    measurement = np.kron(np.eye(2), np.ones((1, 2)))
    true = TemporalGraph(measurement, [[0, 1], [0, 0]], np.eye(2))
    # Features tell the latents apart, so no relabelling hides a reversed edge.
    for intra in ([[0, 0], [1, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 0]]):
        learned = TemporalGraph(measurement, intra, np.eye(2))
        assert structural_hamming_distance(true, learned) == (1, 0)
    learned = TemporalGraph(measurement, true.intra, [[1, 1], [0, 0]])
    assert structural_hamming_distance(true, learned) == (2, 0)
    moved = measurement.copy()
    moved[:, 0] = moved[::-1, 0]
    learned = TemporalGraph(moved, true.intra, true.inter)
    assert structural_hamming_distance(true, learned) == (2, 2)


def test_latents_without_a_partner_bring_all_their_edges():
    true = TemporalGraph(
        np.kron(np.eye(2), np.ones((1, 2))), np.zeros((2, 2)), np.eye(2)
    )
    learned = one_latent(4)
    assert structural_hamming_distance(true, learned) == (2 + 2 + 1, 4)
    none = TemporalGraph(np.zeros((0, 4)), np.zeros((0, 0)), np.zeros((0, 0)))
    assert structural_hamming_distance(true, none) == (6, 4)


def test_many_latents_are_matched_by_their_features():
    n = 12
    rng = np.random.default_rng(0)
    graph = TemporalGraph(
        np.kron(np.eye(n), np.ones((1, 2))),
        np.triu(rng.random((n, n)) < 0.2, 1),
        np.eye(n),
    )
    assert structural_hamming_distance(graph, renamed(graph, 1)) == (0, 0)


def test_all_forms_of_a_graph():
    measurement = np.array([[1, 1, 0], [0, 0, 1]])
    intra = np.array([[0, 1], [0, 0]])
    graph = TemporalGraph(measurement, intra, np.zeros((2, 2)))
    adjacency = np.zeros((5, 5), dtype=int)
    adjacency[3:, :3], adjacency[3:, 3:] = measurement, intra
    sparse = csr_array(adjacency)
    for other in (graph, (measurement, intra), adjacency, sparse):
        assert structural_hamming_distance(graph, other) == (0, 0)
    assert structural_hamming_distance(graph, measurement) == (1, 0)
    assert structural_hamming_distance(adjacency.tolist(), adjacency) == (0, 0)
    lonely = adjacency.copy()
    lonely[3] = 0  # the first latent has lost its three edges
    assert structural_hamming_distance(adjacency, lonely) == (3, 2)
    assert structural_hamming_distance(graph, lonely) == (3, 2)


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros(3),
        ([[1]], [[0, 1]]),
        ([[1]],) * 4,
        (),
        np.eye(3),
        (np.zeros(2),),
        [[1], [1, 2]],
        None,
        {},
    ],
)
def test_wrong_graphs(bad):
    good = one_latent(1, 0)
    with pytest.raises(ValueError, match="learned"):
        structural_hamming_distance(good, bad)
