"""Every edge is one cell in the colour of its depth."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from sklearn_latent import NoisyOrEM, NoisyOrMoMLearner, QuartetStructureLearner
from sklearn_latent.datasets import (
    figure_1_structure,
    make_noisy_or,
    make_noisy_or_images,
)
from sklearn_latent.noisy_or import find_schedule
from sklearn_latent.plotting import ScheduleDisplay


def draw(depth, size=(8, 5), **kwargs):
    figure = Figure(figsize=size)
    display = ScheduleDisplay(depth, **kwargs).plot(ax=figure.add_subplot())
    FigureCanvasAgg(figure).draw()
    return display


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def cells(display):
    """Colour of every cell, rows in the order drawn."""
    return np.asarray(display.ax_.get_images()[0].get_array())


def random_structure(seed, n, m):
    structure = np.random.RandomState(seed).uniform(size=(n, m)) < 0.5
    structure[:, 0] |= ~structure.any(axis=1)  # a latent without features is refused
    return structure


structures = st.builds(
    random_structure,
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 6),
    m=st.integers(3, 12),
)


@settings(max_examples=25, deadline=None)
@given(structure=structures)
def test_every_edge_is_a_cell_and_the_legend_counts_them(structure):
    depth = find_schedule(structure).depth
    display = draw(depth)
    colored = (cells(display) != 1.0).any(axis=2)
    assert colored.sum() == structure.sum()
    rows = [label.get_text() for label in display.ax_.get_yticklabels()]
    order = [int(name.removeprefix("latent")) for name in rows]
    assert sorted(order) == list(range(len(structure)))
    np.testing.assert_array_equal(colored, structure[order])
    counts = [int(text.split()[-2]) for text in legend(display)]
    assert sum(counts) == structure.sum()
    # One colour per depth.
    shades = cells(display)[colored]
    values = depth[order][colored]
    for value in np.unique(values):
        assert len(np.unique(shades[values == value], axis=0)) == 1
    assert len(np.unique(shades, axis=0)) == len(np.unique(values))


def test_latents_that_are_learned_first_stand_on_top():
    display = draw(find_schedule(figure_1_structure()).depth)
    rows = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert rows == ["latent1", "latent0"]


def test_edges_out_of_reach_have_a_colour_of_their_own():
    depth = find_schedule(np.ones((2, 60))).depth
    assert np.isinf(depth).all()
    display = draw(depth)
    assert legend(display) == ["out of reach: 120 edges"]
    np.testing.assert_allclose(cells(display)[0, 0], to_rgba("#D55E00"))


@pytest.mark.parametrize("n_features", [8, 80, 300])
def test_labels_do_not_overlap(n_features):
    depth = np.zeros((20, n_features))
    names = [f"a finding, number {i}" for i in range(n_features)]
    display = draw(depth, feature_names=names)
    renderer = display.figure_.canvas.get_renderer()
    for axis, side in ((display.ax_.xaxis, "x"), (display.ax_.yaxis, "y")):
        labels = [t.get_window_extent(renderer) for t in axis.get_ticklabels()]
        ends = sorted((getattr(b, f"{side}0"), getattr(b, f"{side}1")) for b in labels)
        assert len(ends) >= min(8, n_features)
        for (_, right), (left, _) in pairwise(ends):
            assert right <= left + 1


def test_large_structures_are_counted():
    depth = np.full((200, 500), np.nan)
    depth[:, :3] = 0.0
    depth[:100, 5] = 1.0
    depth[3, 7] = np.inf
    display = draw(depth)
    assert {t.get_text() for t in display.ax_.texts} == {"600", "100", "1"}
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == ["depth 0", "depth 1", "out of reach"]


def test_estimators():
    structure = figure_1_structure()
    X = make_noisy_or(structure, 2000, random_state=0).X
    learner = NoisyOrMoMLearner(structure)
    with pytest.raises(NotFittedError):
        ScheduleDisplay.from_estimator(learner)
    ax = Figure().add_subplot()
    display = ScheduleDisplay.from_estimator(learner.fit(X), ax=ax)
    assert display.ax_ is ax
    assert legend(display) == ["depth 0: 4 edges", "depth 1: 3 edges"]

    found = QuartetStructureLearner().fit(make_noisy_or_images(1000, random_state=0).X)
    display = ScheduleDisplay.from_estimator(found, ax=Figure().add_subplot())
    counts = [int(text.split()[-2]) for text in legend(display)]
    assert sum(counts) == found.structure_.sum()

    with pytest.raises(TypeError, match=r"attribute depth_, got.*NoisyOrEM"):
        ScheduleDisplay.from_estimator(NoisyOrEM(structure=structure).fit(X))


def test_no_latents_draw():
    display = draw(np.zeros((0, 4)))
    assert [t.get_text() for t in display.ax_.texts] == ["no edges"]


def test_wrong_input_is_named():
    with pytest.raises(TypeError, match=r"schedule must be.*got an instance of list"):
        ScheduleDisplay.from_schedule([[0, 1]])
    with pytest.raises(ValueError, match=r"depth must have shape.*\(3,\)"):
        draw(np.zeros(3))
    with pytest.raises(ValueError, match="latent_names must hold 2 names, got 1"):
        draw(np.zeros((2, 3)), latent_names=["a"])
    with pytest.raises(ValueError, match="feature_names must hold 3 names, got 1"):
        draw(np.zeros((2, 3)), feature_names=["a"])
    for depth in ([[-1.0]], [[0.5]], [[1e308]], [[-np.inf]]):
        with pytest.raises(ValueError, match="depth must hold whole numbers"):
            draw(depth)
    with pytest.raises(ValueError, match="cmap must be the name of a colour map"):
        ScheduleDisplay(np.zeros((2, 3))).plot(cmap="a")


def test_without_axes_a_figure_is_made():
    import matplotlib.pyplot as plt

    display = ScheduleDisplay(np.zeros((2, 3))).plot()
    assert display.ax_.figure is display.figure_
    plt.close(display.figure_)
