"""General graphs and two-slice graphs are drawn whole, and labels stay apart."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sklearn_latent import NoisyOrMoMLearner
from sklearn_latent.datasets import figure_1_structure, make_noisy_or
from sklearn_latent.plotting import LatentGraphDisplay, LatentImagesDisplay
from sklearn_latent.plotting._layout import find_layers, layered_layout


def random_dag(seed, n, share):
    rng = np.random.RandomState(seed)
    order = rng.permutation(n)
    upper = np.triu(rng.uniform(size=(n, n)) < share, k=1)
    adjacency = np.zeros((n, n), dtype=bool)
    adjacency[np.ix_(order, order)] = upper
    return adjacency


def graph_of(adjacency, n_latents=0):
    n = len(adjacency)
    rng = np.random.RandomState(0)
    graph = nx.DiGraph(family="gaussian")
    for i in range(n):
        hidden = i >= n - n_latents
        graph.add_node(f"x{i}", kind="latent" if hidden else "feature")
    for i, j in np.argwhere(adjacency):
        weight = rng.normal()
        graph.add_edge(f"x{i}", f"x{j}", weight=weight, strength=rng.uniform())
    return graph


def two_slices(n_latents, n_each, directed=True):
    graph = nx.DiGraph(family="temporal")
    for when in (0, 1):
        for i in range(n_latents):
            graph.add_node(f"L{i}@{when}", kind="latent", slice=when, name=f"L{i}")
        for j in range(n_latents * n_each):
            graph.add_node(f"x{j}@{when}", kind="feature", slice=when, name=f"x{j}")
            parent = f"L{j // n_each}@{when}"
            graph.add_edge(parent, f"x{j}@{when}", kind="measurement")
        for i in range(1, n_latents):
            edge = f"L{i - 1}@{when}", f"L{i}@{when}"
            graph.add_edge(*edge, kind="intra", directed=directed, support=0.75)
            if not directed:
                graph.add_edge(*edge[::-1], kind="intra", directed=False)
    for i in range(n_latents):
        graph.add_edge(f"L{i}@0", f"L{i}@1", kind="inter", support=1.0)
    return graph


def draw(graph, size=None, **kwargs):
    if size is None:
        display = LatentGraphDisplay(graph).plot(**kwargs)
        import matplotlib.pyplot as plt

        plt.close(display.figure_)
        return display
    figure = Figure(figsize=size)
    display = LatentGraphDisplay(graph).plot(ax=figure.add_subplot(), **kwargs)
    FigureCanvasAgg(figure).draw()
    return display


def boxes(display):
    renderer = FigureCanvasAgg(display.figure_).get_renderer()
    shown = [t for t in display.ax_.texts if t.get_text().startswith("x")]
    return [(t.get_text(), t.get_window_extent(renderer)) for t in shown]


dags = st.builds(
    random_dag,
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 12),
    share=st.floats(0.0, 0.6),
)


@settings(max_examples=50, deadline=None)
@given(adjacency=dags, squeezed=st.booleans())
def test_every_edge_runs_downwards_and_nodes_keep_their_room(adjacency, squeezed):
    n, layer = len(adjacency), find_layers(adjacency)
    parents, children = np.nonzero(adjacency)
    assert np.all(layer[parents] < layer[children])
    width = np.random.RandomState(0).uniform(1.0, 3.0, size=n)
    layout = layered_layout(adjacency, layer, width)
    size = np.bincount(layer, width).max() + 0.1 if squeezed else 2.0 * layout.span
    layout = layout.within(size)
    for i, j in combinations(range(n), 2):
        if layer[i] == layer[j]:
            gap = abs(layout.place[i] - layout.place[j])
            assert gap >= (width[i] + width[j]) / 2 - 1e-6
    assert np.all(layout.place[:n] >= width / 2 - 1e-6)
    assert np.all(layout.place[:n] <= size - width / 2 + 1e-6)
    for (i, j), way in layout.ways.items():
        assert (way[0], way[-1]) == (i, j)
        assert len(way) == layer[j] - layer[i] + 1


def test_a_cycle_cannot_be_layered():
    cycle = np.array([[False, True], [True, False]])
    with pytest.raises(ValueError, match="cycle"):
        find_layers(cycle)


@settings(max_examples=15, deadline=None)
@given(adjacency=dags)
def test_every_node_and_edge_of_a_dag_is_drawn(adjacency):
    graph = graph_of(adjacency)
    display = draw(graph, size=(9, 6))
    assert set(display.positions_) == set(graph)
    assert len(display.edges_.get_segments()) == adjacency.sum()
    assert {t.get_text() for t in display.ax_.texts} >= set(graph)


def test_sign_gives_the_colour_and_strength_the_width():
    graph = nx.DiGraph(family="gaussian")
    graph.add_nodes_from(["a", "b", "c"], kind="feature")
    graph.add_edge("a", "b", weight=2.0, strength=0.9)
    graph.add_edge("a", "c", weight=-2.0, strength=0.2)
    display = draw(graph, size=(6, 4))
    assert len(np.unique(np.asarray(display.edges_.get_colors())[:, :3], axis=0)) == 2
    labels = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert labels[-2:] == ["positive", "negative"]
    assert len(draw(graph, size=(6, 4), min_strength=0.5).edges_.get_segments()) == 1


def test_hidden_roots_over_leaves_are_drawn_in_two_layers():
    graph = nx.DiGraph(family="gaussian")
    graph.add_node("h", kind="latent")
    graph.add_nodes_from(["a", "b"], kind="feature")
    graph.add_edges_from([("h", "a"), ("h", "b")], strength=0.5)
    display = draw(graph, size=(6, 4))
    heights = {name: y for name, (_, y) in display.positions_.items()}
    assert heights["h"] > heights["a"] == heights["b"]


def test_axes_may_be_in_a_subfigure():
    graph = nx.DiGraph(family="gaussian")
    graph.add_node("h", kind="latent")
    graph.add_node("a", kind="feature")
    graph.add_edge("h", "a", strength=0.5)
    parts = Figure(figsize=(8, 4)).subfigures(1, 2)
    ax = parts[0].subplots()
    assert LatentGraphDisplay(graph).plot(ax=ax).ax_ is ax
    ax = parts[1].subplots()
    assert LatentImagesDisplay(np.eye(2), (1, 2), ["a", "b"]).plot(ax).ax_ is ax


@pytest.mark.parametrize("n_latents", [1, 2, 6, 20])
def test_two_slices_show_every_node_and_edge(n_latents):
    graph = two_slices(n_latents, 4)
    display = draw(graph)
    assert set(display.positions_) == set(graph)
    assert len(display.edges_.get_segments()) == graph.number_of_edges()
    for when, side in ((0, -1), (1, 1)):
        inside, outside = (display.positions_[f"{k}0@{when}"][0] for k in "Lx")
        assert np.sign(outside - inside) == side
    shown = boxes(display)
    assert len(shown) == 2 * 4 * n_latents
    for (first, a), (second, b) in combinations(shown, 2):
        assert not a.overlaps(b), (first, second)


def test_without_edges_over_time_one_slice_is_drawn():
    graph = two_slices(3, 4)
    between = [e[:2] for e in graph.edges(data="kind") if e[2] == "inter"]
    graph.remove_edges_from(between)
    display = draw(graph)
    assert set(display.positions_) == {n for n in graph if n.endswith("@0")}
    texts = [t.get_text() for t in display.ax_.texts]
    assert {"L0", "L1", "L2"} <= set(texts)
    assert not any("time" in text for text in texts)
    assert len(display.edges_.get_segments()) == graph.number_of_edges() / 2


def test_an_edge_without_direction_is_one_line_without_arrow():
    directed, undirected = (draw(two_slices(2, 3, flag)) for flag in (True, False))
    n_lines = [len(d.edges_.get_segments()) for d in (directed, undirected)]
    assert n_lines[0] == n_lines[1]
    # Features have boxes, so that all other marks are tips.
    n_arrows = [len(d.ax_.collections) - 1 for d in (directed, undirected)]
    assert n_arrows[0] == n_arrows[1] + 2
    labels = [t.get_text() for t in undirected.ax_.get_legend().get_texts()]
    assert "direction unknown" in labels


def entries(display):
    return [t.get_text() for t in display.ax_.get_legend().get_texts()]


def test_colours_can_show_the_depth():
    structure = figure_1_structure()
    X = make_noisy_or(structure, 2000, random_state=0).X
    learner = NoisyOrMoMLearner(structure).fit(X)
    display = LatentGraphDisplay.from_estimator(
        learner, ax=Figure().add_subplot(), color_by="depth"
    )
    assert entries(display)[-2:] == ["depth 0", "depth 1"]
    starts = [segment[0, 0] for segment in display.edges_.get_segments()]
    first = display.positions_["latent0"][0]
    colors = np.asarray(display.edges_.get_colors())[:, :3]
    late = np.isclose(starts, first)
    # latent0 waits for latent1: one colour each.
    assert len(np.unique(colors[late], axis=0)) == 1
    assert len(np.unique(colors[~late], axis=0)) == 1
    assert len(np.unique(colors, axis=0)) == 2


def test_edges_out_of_reach_are_named():
    structure = np.ones((2, 60), dtype=bool)
    graph = make_noisy_or(structure, 1, random_state=0).network.to_networkx()
    for *_, data in graph.edges(data=True):
        data["depth"] = np.inf
    assert entries(draw(graph, size=(9, 5), color_by="depth"))[-1] == "out of reach"


def test_colours_can_show_the_support():
    display = draw(two_slices(3, 2), color_by="support")
    assert entries(display) == ["measured by", "support 0.75", "support 1"]


def test_colours_of_a_general_graph():
    graph = graph_of(random_dag(0, 8, 0.4))
    for k, (*_, data) in enumerate(graph.edges(data=True)):
        data["confidence"] = 0.1 * k
    display = draw(graph, size=(7, 5), color_by="confidence")
    colors = np.asarray(display.edges_.get_colors())[:, :3]
    assert len(np.unique(colors, axis=0)) == graph.number_of_edges()


def test_an_unknown_attribute_is_named():
    with pytest.raises(ValueError, match=r"color_by must be.*weight.*got 'age'"):
        draw(graph_of(random_dag(0, 8, 0.4)), size=(7, 5), color_by="age")


def test_no_latents_over_time_draw():
    graph = nx.DiGraph(family="temporal")
    for when in (0, 1):
        graph.add_node(f"x@{when}", kind="feature", slice=when, name="x")
    display = draw(graph, size=(6, 4))
    assert "no latents" in [t.get_text() for t in display.ax_.texts]


def test_no_features_draw():
    assert draw(nx.DiGraph(family="gaussian"), size=(6, 4)).positions_ == {}
