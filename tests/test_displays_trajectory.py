"""Bars and heat maps show the probabilities that they are given."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from sklearn_latent.plotting import TrajectoryDisplay


def posterior(seed, n_sequences, n_slices, cardinality):
    rng = np.random.RandomState(seed)
    return [
        rng.dirichlet(np.ones(k), size=(n_sequences, n_slices)) for k in cardinality
    ]


def draw(probabilities, size=(9, 6), **kwargs):
    figure = Figure(figsize=size)
    display = TrajectoryDisplay(probabilities, **kwargs)
    display.plot(ax=figure.add_subplot())
    FigureCanvasAgg(figure).draw()
    return display


class Panel(BaseEstimator):
    """Stands in for a fitted estimator: its data are the posteriors."""

    def __init__(self, cardinality):
        self.cardinality_ = np.asarray(cardinality)
        self.latent_names_ = [f"mood {j}" for j in range(len(cardinality))]

    def fit(self, X):
        return self

    def transform(self, X):
        return X


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_sequences=st.integers(1, 6),
    n_slices=st.integers(1, 9),
    cardinality=st.lists(st.integers(1, 5), min_size=1, max_size=3),
)
def test_bars_have_the_heights_of_the_probabilities(
    seed, n_sequences, n_slices, cardinality
):
    parts = posterior(seed, n_sequences, n_slices, cardinality)
    # The order of the columns of `transform`: slice by slice, in each latent by latent.
    flat = np.concatenate(parts, axis=2).reshape(n_sequences, -1)
    display = TrajectoryDisplay.from_estimator(
        Panel(cardinality), flat, ax=Figure().add_subplot()
    )
    assert display.axes_.shape == (n_sequences, len(cardinality))
    for i in range(n_sequences):
        for j, states in enumerate(parts):
            bars = display.axes_[i, j].patches
            heights = np.array([bar.get_height() for bar in bars])
            np.testing.assert_allclose(heights.reshape(-1, n_slices).T, states[i])
            top = max(bar.get_y() + bar.get_height() for bar in bars)
            assert top == pytest.approx(1.0)
    labels = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert labels == [f"state {k}" for k in range(max(cardinality))]
    titles = [panel.get_title() for panel in display.axes_[0]]
    assert titles == [f"mood {j}" for j in range(len(cardinality))]


def test_many_sequences_are_lines_of_a_heat_map():
    sure = np.zeros((40, 5, 3))
    sure[..., 1] = 1.0
    unsure = np.full((40, 5, 3), 1 / 3)
    display = draw([sure, unsure])
    assert display.axes_.shape == (1, 2)
    colored, white = (panel.get_images()[0].get_array() for panel in display.axes_[0])
    assert colored.shape[:2] == (40, 5)
    assert (colored < 0.99).any(axis=2).all()
    np.testing.assert_allclose(white, 1.0)


def test_certainty_deepens_the_colour_and_the_state_gives_the_hue():
    states = np.array([[[0.6, 0.4], [0.9, 0.1], [0.1, 0.9]]])
    image = draw([states.repeat(7, 0)]).axes_[0, 0].get_images()[0].get_array()
    pale, deep, other = image[0]
    assert (deep <= pale).all()
    assert deep.sum() < pale.sum()
    assert np.argmin(deep) != np.argmin(other)


@pytest.mark.parametrize(("n_sequences", "n_slices"), [(1, 4), (6, 15), (60, 40)])
def test_labels_do_not_overlap(n_sequences, n_slices):
    names = [f"patient {i}" for i in range(n_sequences)]
    parts = posterior(0, n_sequences, n_slices, [3, 2])
    display = draw(parts, sequence_names=names, latent_names=["illness", "mood"])
    renderer = display.figure_.canvas.get_renderer()
    texts = [panel.title for panel in display.axes_.flat]
    texts += [panel.yaxis.label for panel in display.axes_.flat]
    texts += [panel.xaxis.label for panel in display.axes_.flat]
    for panel in display.axes_.flat:
        for axis in (panel.xaxis, panel.yaxis):
            texts += [tick.label1 for tick in axis.get_major_ticks()]
    texts += display.ax_.get_legend().get_texts()
    shown = [t for t in texts if t.get_visible() and t.get_text()]
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in shown]
    for (first, a), (second, b) in combinations(boxes, 2):
        assert not a.padded(-1).overlaps(b.padded(-1)), (first, second)


def test_names_are_shown():
    display = draw(
        posterior(0, 2, 3, [2]),
        latent_names=["mood"],
        sequence_names=["Ada", "Ben"],
        slice_names=["May", "June", "July"],
    )
    assert display.axes_[0, 0].get_title() == "mood"
    assert [panel.get_ylabel() for panel in display.axes_[:, 0]] == ["Ada", "Ben"]
    ticks = [t.get_text() for t in display.axes_[1, 0].get_xticklabels()]
    assert ticks == ["May", "June", "July"]


def test_no_latents_draw():
    display = TrajectoryDisplay.from_estimator(
        Panel([]), np.zeros((3, 0)), ax=Figure().add_subplot()
    )
    assert "no latents" in [t.get_text() for t in display.ax_.texts]


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 2), (2, 3, 0), (9, 0, 2)])
def test_nothing_to_draw(shape):
    display = draw([np.zeros(shape)] * 2)
    assert "no sequences" in [t.get_text() for t in display.ax_.texts]


def test_wrong_input_is_named():
    parts = posterior(0, 2, 3, [2])
    with pytest.raises(ValueError, match=r"latent_names must be a list of 1 names"):
        draw(parts, latent_names="ab")
    with pytest.raises(ValueError, match=r"slice_names must hold 3 names"):
        draw(parts, slice_names=["a"])
    with pytest.raises(ValueError, match=r"probabilities must hold.*\(2, 3\)"):
        draw([parts[0][..., 0]])
    for wrong in (3, {}, [[[["a"]]]], [np.full((2, 3, 2), 1.5)], [[[[np.nan]]]]):
        with pytest.raises(ValueError, match="probabilities must be"):
            draw(wrong)
    with pytest.raises(TypeError, match="ax must be matplotlib Axes, got 3"):
        TrajectoryDisplay(parts).plot(ax=3)
    with pytest.raises(TypeError, match=r"must have transform, got an instance of int"):
        TrajectoryDisplay.from_estimator(3, None)
    with pytest.raises(NotFittedError):
        TrajectoryDisplay.from_estimator(StandardScaler(), np.zeros((2, 2)))
    scaler = StandardScaler().fit(np.zeros((2, 2)))
    with pytest.raises(TypeError, match=r"cardinality_, got.*StandardScaler"):
        TrajectoryDisplay.from_estimator(scaler, np.zeros((2, 2)))


def test_without_axes_a_figure_is_made():
    import matplotlib.pyplot as plt

    display = TrajectoryDisplay(posterior(0, 2, 3, [2, 3])).plot()
    assert display.ax_.figure is display.figure_
    plt.close(display.figure_)
