"""Numbers of states, judged together with the latents around."""

from dataclasses import replace

import numpy as np

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.mixed import TemporalGraph
from sklearn_latent.mixed._edges.states import (
    _near,
    _part,
    settle_states,
    with_own_past,
)
from sklearn_latent.mixed._edges.structure import _without_edge, better_graph
from sklearn_latent.mixed._em.chain_em import fit_chain
from sklearn_latent.mixed._measurement.groups import (
    Measurement,
    SearchOptions,
    compared_chain,
    slice_states,
)
from sklearn_latent.mixed._panels.panel import Panel
from sklearn_latent.mixed._tables import normalized

OPTIONS = SearchOptions()


def two_latents(n, seed=0):
    """Two binary latents of two features each; the second depends on the first."""
    structure = np.kron(np.eye(2), np.ones((1, 2)))
    graph = TemporalGraph(structure, [[0, 1], [0, 0]], [[0, 0], [0, 1]])
    data = make_latent_dbn(
        graph, n, 4, cardinality=2, reliability=0.9, random_state=seed
    )
    return data, Panel.of(data.codes, [2] * 4)


def with_states(panel, numbers, groups=((0, 1), (2, 3))):
    """Two latents with given numbers of states."""
    tables = [
        slice_states(panel.of_features(g), SearchOptions(n_states=k))
        for g, k in zip(groups, numbers, strict=True)
    ]
    return Measurement(list(groups), tables, panel.n_observed)


def settled_numbers(panel, measurement):
    """Numbers of states that are found."""
    graph, emission = settle_states(panel, measurement, OPTIONS)
    return [len(emission[features.argmax()]) for features in graph.structure]


def test_too_many_states_are_taken_back():
    _, panel = two_latents(2000)
    assert settled_numbers(panel, with_states(panel, [2, 3])) == [2, 2]


def test_settled_states_stay():
    _, panel = two_latents(500)
    assert settled_numbers(panel, with_states(panel, [2, 2])) == [2, 2]
    assert settled_numbers(panel, Measurement([], [], 4)) == []


def test_the_better_of_two_graphs_is_kept():
    data, panel = two_latents(500)
    measurement = with_states(panel, [2, 2])
    emission = measurement.emission(panel)
    none = np.zeros((2, 2), dtype=bool)
    empty = TemporalGraph(data.graph.structure, none, none)
    for graph, rival in ((data.graph, empty), (empty, data.graph)):
        found, tables = better_graph(panel, measurement, graph, emission, rival)
        np.testing.assert_array_equal(found.inter, data.graph.inter)
        np.testing.assert_array_equal(found.intra, data.graph.intra)
        # Tables of the rival come from its own chain.
        assert (tables is emission) == (graph is data.graph)


def test_large_graphs_have_no_rival(monkeypatch):
    def refuse(*_):
        raise AssertionError("EM of all latents would take long")

    monkeypatch.setattr("sklearn_latent.mixed._edges.states.better_graph", refuse)
    _, panel = two_latents(500)
    few = SearchOptions(max_joint_states=3)
    graph, _ = settle_states(panel, with_states(panel, [2, 2]), few)
    np.testing.assert_array_equal(graph.inter.diagonal(), [False, True])


def test_an_own_past_is_found_by_the_chain():
    data, panel = two_latents(1000)
    measurement = with_states(panel, [2, 2])
    none = np.zeros((2, 2), dtype=bool)
    graph = with_own_past(panel, measurement, replace(data.graph, inter=none))
    np.testing.assert_array_equal(graph.inter, data.graph.inter)
    assert graph.intra[0, 1] and not graph.intra[1, 0]
    once = panel.of_slices(slice(1))
    assert with_own_past(once, measurement, graph) is graph


def test_fewer_states_start_from_joined_ones():
    # From states of slices, EM seems hopeless at first and is given up.
    structure = np.repeat(np.eye(2), [4, 2], axis=1)
    graph = TemporalGraph(structure, np.zeros((2, 2)), [[1, 1], [0, 1]])
    data = make_latent_dbn(
        graph, 600, 5, cardinality=[3, 2], reliability=0.72, random_state=1
    )
    panel = Panel.of(data.codes, [3] * 4 + [2] * 2)
    measurement = with_states(panel, [3, 3], [(0, 1, 2, 3), (4, 5)])
    assert settled_numbers(panel, measurement) == [3, 2]


def test_parents_and_neighbours_of_few_states_come_first():
    cards = np.array([3, 6, 2, 4, 8])
    edges = np.zeros((5, 5), dtype=bool)
    assert _near(2, edges, cards) == [2]
    edges[0] = True  # a parent of all, and of itself
    assert _near(0, edges, cards) == [0, 2, 3]
    edges[1, 0] = True
    assert _near(0, edges, cards) == [0, 1, 2]
    # All three would have too many joint states.
    edges = np.zeros((5, 5), dtype=bool)
    edges[[1, 3], 4] = True
    assert _near(4, edges, cards) == [3, 4]


def test_latents_whose_parent_is_left_out_follow_their_past():
    graph = TemporalGraph(np.eye(3), np.zeros((3, 3)), [[1, 1, 0], [0, 0, 1], [0] * 3])
    part = _part(graph, [1, 2], [1, 2])
    np.testing.assert_array_equal(part.inter, [[1, 1], [0, 0]])
    np.testing.assert_array_equal(_part(graph, [0, 1], [0, 1]).inter, [[1, 1], [0, 0]])


def test_a_graph_without_an_edge_starts_from_counts():
    data, panel = two_latents(300)
    ascent = fit_chain(panel, data.graph, [2, 2], data.network)
    graph, start = _without_edge(ascent, "inter", 1, 1)
    assert not graph.inter.any() and graph.intra[0, 1]
    np.testing.assert_array_equal(start.start[1], ascent.state.start[1])
    counts = ascent.statistics.transition[1].sum(axis=0)
    np.testing.assert_allclose(start.transition[1], normalized(counts, 0.1))
    graph, start = _without_edge(ascent, "intra", 0, 1)
    assert not graph.intra.any() and graph.inter[1, 1]
    assert start.start[1].shape == (2,) and start.transition[1].shape == (2, 2)
    # It is as good a start as any.
    cold = compared_chain(panel, graph, list(data.network.emission))[0]
    assert compared_chain(panel, graph, start)[0] > cold - 0.5
