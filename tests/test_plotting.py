"""Pictures show every node and edge, and leave the rest of matplotlib alone."""

import sys

import matplotlib
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from sklearn_latent import NoisyOrMoMLearner, NoisyOrNetwork
from sklearn_latent.datasets import image_sources, make_noisy_or
from sklearn_latent.plotting import LatentGraphDisplay, LatentImagesDisplay
from sklearn_latent.plotting._layout import count_crossings, layered_layout

matplotlib.use("Agg")

structures = st.builds(
    lambda seed, n, m: np.random.RandomState(seed).uniform(size=(n, m)) < 0.4,
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 6),
    m=st.integers(1, 9),
)


def network_of(structure):
    structure = np.asarray(structure, dtype=bool)
    rng = np.random.RandomState(0)
    failure = np.where(structure, rng.uniform(0.1, 0.9, size=structure.shape), 1.0)
    return NoisyOrNetwork(
        rng.uniform(size=len(failure)), failure, np.full(failure.shape[1], 0.01)
    )


def draw(network, size=(8, 5), **kwargs):
    figure = Figure(figsize=size)
    ax = figure.add_subplot()
    display = LatentGraphDisplay(network.to_networkx()).plot(ax, **kwargs)
    FigureCanvasAgg(figure).draw()
    return display


def texts(display):
    return [text.get_text() for text in display.ax_.texts]


def crossings(structure):
    """Crossings between two rows as they are laid out."""
    n, m = structure.shape
    adjacency = np.zeros((n + m, n + m), dtype=bool)
    adjacency[:n, n:] = structure
    layout = layered_layout(adjacency, np.repeat([0, 1], [n, m]), np.ones(n + m))
    upper, lower = np.argsort(layout.place[:n]), np.argsort(layout.place[n:])
    return count_crossings(structure[np.ix_(upper, lower)].astype(float))


@settings(max_examples=40, deadline=None)
@given(structure=structures)
def test_crossings_are_counted_right_and_not_increased(structure):
    edges = np.argwhere(structure)
    by_hand = sum(
        (a[0] - b[0]) * (a[1] - b[1]) < 0
        for k, a in enumerate(edges)
        for b in edges[:k]
    )
    assert count_crossings(structure.astype(float)) == by_hand
    assert crossings(structure) <= by_hand


def test_a_shuffled_chain_is_untangled():
    chain = np.zeros((5, 11), dtype=bool)
    for i in range(5):
        chain[i, 2 * i : 2 * i + 3] = True
    rng = np.random.RandomState(0)
    shuffled = chain[np.ix_(rng.permutation(5), rng.permutation(11))]
    assert count_crossings(shuffled.astype(float)) > 0
    assert crossings(shuffled) == 0


@settings(max_examples=15, deadline=None)
@given(structure=structures)
def test_every_node_and_edge_is_drawn(structure):
    network = network_of(structure)
    display = draw(network)
    graph = network.to_networkx()
    assert set(display.positions_) == set(graph)
    assert len(display.edges_.get_segments()) == structure.sum()
    assert set(graph) <= {text.split("  ")[0] for text in texts(display)}


def test_stronger_edges_are_wider_and_darker():
    display = draw(NoisyOrNetwork([0.3], [[0.1, 0.5, 0.9]], [0, 0, 0]))
    widths = np.asarray(display.edges_.get_linewidths())
    assert len(set(np.argsort(widths))) == 3
    np.testing.assert_array_equal(
        np.argsort(widths), np.argsort(display.edges_.get_colors()[:, 3])
    )
    ends = [segment[-1, 0] for segment in display.edges_.get_segments()]
    strongest = display.positions_["x0"][0]
    assert ends[int(np.argmax(widths))] == pytest.approx(strongest)


def test_the_class_stands_above_and_flipped_features_are_marked():
    network = NoisyOrNetwork(
        [[0.1, 0.5, 0.3], [0.2, 0.1, 0.3]],
        [[0.1, 0.5, 1.0], [1.0, 0.4, 0.3], [0.5, 1.0, 0.9]],
        [0, 0, 0],
        class_weight=[0.4, 0.6],
        polarity=[1, -1, 1],
    )
    display = draw(network)
    heights = {name: y for name, (_, y) in display.positions_.items()}
    assert set(heights) == set(network.to_networkx())
    assert heights["class"] > heights["latent1"] > heights["x1"]
    assert len(display.edges_.get_segments()) == 3 + 6
    assert {"class  2", "x0", "not x1"} <= set(texts(display))
    assert "x1" not in texts(display)
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "read as its opposite" in legend
    assert len(draw(network, min_strength=0.3).edges_.get_segments()) == 1 + 5
    by_failure = draw(network, color_by="failure")
    assert len(by_failure.edges_.get_segments()) == 3 + 6


def test_weak_edges_can_be_left_out():
    network = NoisyOrNetwork([0.3], [[0.1, 0.5, 0.9]], [0, 0, 0])
    assert len(draw(network, min_strength=0.3).edges_.get_segments()) == 2
    nothing = draw(network, min_strength=1.0)
    assert len(nothing.edges_.get_segments()) == 0
    assert nothing.note_ == "3 edges below 1 not shown"
    assert nothing.note_ in texts(nothing)


def test_priors_are_shown():
    assert "latent0  0.25" in texts(draw(NoisyOrNetwork([0.25], [[0.1]], [0])))


@pytest.mark.parametrize("n_features", [8, 80, 800])
def test_all_features_have_labels_or_they_are_counted(n_features):
    network = network_of(np.ones((2, n_features)))
    display = draw(network, size=(6, 14), min_strength=0.0)
    labels = [text for text in texts(display) if text.startswith("x")]
    assert len(labels) == (n_features if n_features < 800 else 0)
    assert ("800 features" in texts(display)) == (n_features == 800)


def test_hundreds_of_latents_are_only_counted():
    network = NoisyOrNetwork(np.full(600, 0.1), np.full((600, 2), 0.5), np.zeros(2))
    everything = draw(network, min_strength=0.0)
    assert sorted(texts(everything)) == ["600 latents", "x0", "x1"]


def test_no_pyplot_state_with_own_axes():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    draw(network_of(image_sources()))
    assert plt.get_fignums() == before


def test_no_latents_draw():
    assert "no latents" in texts(draw(network_of(np.zeros((0, 4)))))


def test_edges_between_features_make_a_general_graph():
    graph = network_of([[1, 1]]).to_networkx()
    graph.add_edge("x0", "x1")
    display = LatentGraphDisplay(graph).plot(ax=Figure().add_subplot())
    heights = [display.positions_[name][1] for name in ("latent0", "x0", "x1")]
    assert heights[0] > heights[1] > heights[2]


def test_estimators_draw_themselves():
    data = make_noisy_or(n_samples=2000, random_state=0)
    names = list("abcde")
    X = pd.DataFrame(data.X, columns=names)
    learner = NoisyOrMoMLearner(data.network.structure)
    with pytest.raises(NotFittedError):
        LatentGraphDisplay.from_estimator(learner)
    learner.fit(X)
    ax = Figure().add_subplot()
    display = learner.plot(ax=ax, legend=False)
    assert display.ax_ is ax
    assert set(display.positions_) == {"latent0", "latent1", *names}
    ax = Figure().add_subplot()
    again = LatentGraphDisplay.from_estimator(learner, ax=ax, legend=False)
    assert again.positions_ == display.positions_


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"ax": 3}, "ax must be matplotlib Axes, got 3"),
        ({"min_strength": np.nan}, "min_strength must be a number or 'auto', got nan"),
        ({"legend": None}, "legend must be True or False, got None"),
        ({"color_by": [1]}, "color_by must be a numeric attribute"),
        ({"color_by": "kind"}, "color_by must be a numeric attribute"),
    ],
)
def test_wrong_options_are_named(keywords, message):
    with pytest.raises((TypeError, ValueError), match=message):
        LatentGraphDisplay(network_of([[1, 1]]).to_networkx()).plot(**keywords)


def test_wrong_graphs_are_named():
    with pytest.raises(TypeError, match=r"estimator must have.*got an instance of int"):
        LatentGraphDisplay.from_estimator(3)
    for graph in (3, nx.Graph(), nx.MultiDiGraph()):
        with pytest.raises(TypeError, match=r"graph must be a networkx.DiGraph, got"):
            LatentGraphDisplay(graph).plot()
    graph = nx.DiGraph([(0, 1, {"strength": np.inf})])
    with pytest.raises(ValueError, match="strength is a finite number, got inf"):
        LatentGraphDisplay(graph).plot()
    graph = nx.DiGraph([(0, 1)])
    graph.nodes[0]["slice"] = 0
    with pytest.raises(ValueError, match="slice of 0 or 1 for every node, or for none"):
        LatentGraphDisplay(graph).plot()


def test_wrong_images_are_named():
    for strength, shape, message in [
        ([1.0], (1, 1), r"strength must have shape .*, got shape \(1,\)"),
        ("a", (1, 1), "strength must be an array of numbers"),
        ([[1.0, 1.0]], (-1, -2), "shape must be a tuple"),
    ]:
        with pytest.raises(ValueError, match=message):
            LatentImagesDisplay(strength, shape).plot()
    display = LatentImagesDisplay([[1.0, 1.0]], (1, 2), ["a", "b"])
    with pytest.raises(ValueError, match="titles must hold 1 names, got 2"):
        display.plot()
    with pytest.raises(TypeError, match="ax must be matplotlib Axes, got 3"):
        LatentImagesDisplay([[1.0, 1.0]], (1, 2)).plot(ax=3)


def test_missing_matplotlib_is_explained(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"sklearn-latent\[plot\]"):
        LatentGraphDisplay(network_of([[1, 1]]).to_networkx()).plot()
