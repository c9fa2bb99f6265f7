"""The two-slice graph."""

import pickle

import numpy as np
import pytest
from dbn_strategies import graphs, seeds
from hypothesis import given, settings

from sklearn_latent._core.graphs import is_acyclic
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
