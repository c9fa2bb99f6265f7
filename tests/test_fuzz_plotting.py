"""Whatever comes in: a documented exception, or a picture; and exports to others."""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest
from hostile import (
    JUNK,
    arguments,
    attempt,
    fuzz,
    numbers,
    options,
    probabilities,
    tables,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sklearn_latent import LPCC, IdealParentGaussianBN, NoisyOrMoMLearner, datasets
from sklearn_latent.export import edges_to_frame, to_dot, to_mermaid
from sklearn_latent.plotting import (
    LatentGraphDisplay,
    LatentImagesDisplay,
    TrajectoryDisplay,
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def plot(display, **keywords):
    """Draw all the way, so that faults in what was handed to matplotlib show."""
    name = f"{type(display).__name__}.plot"
    drawn = attempt(name, display.plot, **keywords)
    if drawn is not None:
        attempt(name, drawn.figure_.canvas.draw)
    plt.close("all")


NAMES = arguments(None, None, ["a", "b"], ["a"], ["a", "a"])


@st.composite
def graphs(draw):
    """Graphs as estimators make them, and as they do not."""
    graph = draw(st.sampled_from([nx.DiGraph, nx.DiGraph, nx.Graph, nx.MultiDiGraph]))()
    if draw(st.booleans()):
        graph.graph["family"] = draw(st.sampled_from(["noisy-or", "gaussian", 3]))
    kinds = st.sampled_from(["latent", "feature", "feature", None])
    n = draw(st.integers(0, 5))
    timed = draw(st.booleans())
    for node in range(n):
        graph.add_node(node, kind=draw(kinds), prior=draw(probabilities))
        if timed:
            graph.nodes[node]["slice"] = draw(st.sampled_from([0, 1, 0, 1, None, 2]))
    for _ in range(draw(st.integers(0, 6)) if n else 0):
        edge = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
        if draw(st.integers(0, 5)):
            edge = tuple(sorted(edge))
        strength = draw(st.one_of(st.floats(0, 1), st.floats(0, 1), arguments(0.5)))
        graph.add_edge(*edge, strength=strength, weight=draw(numbers))
    return graph


@fuzz(25)
@given(st.data())
def test_graphs(data):
    graph = data.draw(graphs() | graphs() | st.sampled_from(JUNK))
    plot(
        LatentGraphDisplay(graph),
        **data.draw(
            options(
                ax=[None],
                min_strength=["auto", 0.0, 0.5, np.inf],
                focus=[None, None, 0, [0, 1]],
                color_by=[None, "weight", "strength"],
                legend=[True, False],
            )
        ),
    )
    attempt("edges_to_frame", edges_to_frame, graph)
    shown = options(min_strength=["auto", 0.5], focus=[None, None, 0, [0, 1]])
    for write in (to_dot, to_mermaid):
        text = attempt(write.__name__, write, graph, **data.draw(shown))
        assert text is None or text.encode()


@fuzz(15)
@given(st.data())
def test_networks(data):
    network = datasets.make_noisy_or(n_samples=1, random_state=0).network
    names = [data.draw(arguments(None, ["a", "b"], list("abcde"))) for _ in range(2)]
    for export in (
        network.to_networkx,
        network.to_pgmpy,
        network.to_frame,
        network.to_dot,
        network.to_mermaid,
    ):
        attempt(export.__name__, export, *names)
    plt.close("all")


@fuzz(20)
@given(st.data())
def test_images(data):
    strength = data.draw(
        hnp.arrays(np.float64, (2, 4), elements=probabilities) | tables(max_columns=4)
    )
    shape = data.draw(arguments((2, 2), (2, 2), (1, 4), (-2, -2), (4.0, 1), [2, 2]))
    display = LatentImagesDisplay(strength, shape, data.draw(NAMES))
    plot(display, ax=data.draw(arguments(None)), cmap=data.draw(arguments("gray")))


@fuzz(25)
@given(st.data())
def test_trajectories(data):
    shape = (data.draw(st.integers(0, 8)), data.draw(st.integers(0, 3)), 2)
    states = data.draw(hnp.arrays(np.float64, shape, elements=probabilities))
    states = np.where(data.draw(st.booleans()), np.full(shape, 0.5), states)
    display = TrajectoryDisplay(
        data.draw(arguments([states], [states, states], [states, states[:1]], states)),
        *(data.draw(NAMES) for _ in range(3)),
    )
    plot(display, ax=data.draw(arguments(None)))


ROWS = datasets.make_noisy_or(n_samples=30, random_state=0).X


@fuzz(10)
@given(st.data())
def test_estimators(data):
    kind = data.draw(st.sampled_from([LPCC, IdealParentGaussianBN, NoisyOrMoMLearner]))
    model = attempt(kind.__name__, kind().fit, ROWS)
    model = data.draw(st.sampled_from([model, model, model, kind(), *JUNK]))
    X = data.draw(st.just(ROWS) | tables(max_columns=5))
    name = "LatentGraphDisplay.from_estimator"
    attempt(name, LatentGraphDisplay.from_estimator, model)
    name, shape = "LatentImagesDisplay.from_estimator", data.draw(arguments((1, 5)))
    attempt(name, LatentImagesDisplay.from_estimator, model, shape)
    name = "TrajectoryDisplay.from_estimator"
    attempt(name, TrajectoryDisplay.from_estimator, model, X)
    plt.close("all")
