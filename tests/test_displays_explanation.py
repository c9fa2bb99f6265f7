"""The waterfall shows the numbers that it is given, and all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.special import expit

from sklearn_latent import NoisyOrEM
from sklearn_latent.datasets import make_noisy_or
from sklearn_latent.plotting import ExplanationDisplay

X = make_noisy_or(n_samples=500, random_state=0).X


def draw(sizes, base=0.0, max_cells=10, **options):
    figure = Figure(figsize=(6.4, 4.8))
    labels = [f"feature{i} = {i % 2}" for i in range(len(sizes))]
    display = ExplanationDisplay(sizes, labels, base, **options)
    display.plot(ax=figure.add_subplot(), max_cells=max_cells)
    FigureCanvasAgg(figure).draw()
    return display


def texts(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.floats(-50, 50), max_size=25),
    base=st.floats(-50, 50),
    max_cells=st.integers(1, 12),
    scale=st.sampled_from(["log-odds", "mean"]),
)
def test_bars_lead_from_base_to_total(sizes, base, max_cells, scale):
    ax = draw(sizes, base, max_cells, scale=scale).ax_
    bars = ax.patches
    start = base
    for bar in bars:
        assert bar.get_x() == pytest.approx(start, abs=1e-6)
        start = bar.get_x() + bar.get_width()
    assert start == pytest.approx(base + sum(sizes), abs=1e-6)
    assert len(bars) <= max_cells + 1
    assert len(texts(ax)) == len(bars) + 2
    low, high = ax.get_xlim()
    assert low < min(base, start) and max(base, start) < high


def test_the_largest_are_shown_in_their_order():
    ax = draw([1.0, 0.1, -3.0, 0.2, 2.0], max_cells=3).ax_
    shown = ["feature0 = 0", "feature2 = 0", "feature4 = 0"]
    assert texts(ax) == ["before", *shown, "2 others", "after"]
    raises, lowers = ax.patches[0], ax.patches[1]
    assert raises.get_facecolor() != lowers.get_facecolor()
    assert "1 other" in texts(draw([1.0, 0.5], max_cells=1).ax_)


def test_both_ends_have_their_probability():
    shown = {text.get_text() for text in draw([1.0, -0.5]).ax_.texts}
    assert {"P = 0.5", f"P = {expit(0.5):.3g}"} <= shown
    shown = {text.get_text() for text in draw([90.0], -60.0).ax_.texts}
    assert {"P < 0.001", "P > 0.999"} <= shown


def test_nothing_is_cut():
    names = ["a name that is much longer than any picture has room for"] * 3
    display = ExplanationDisplay([3.0, -1.0, 0.2], [f"{n} = 1" for n in names], -2.0)
    figure = display.plot().figure_
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    box = figure.get_tightbbox(canvas.get_renderer())
    width, height = figure.get_size_inches()
    assert box.x0 >= -0.01 and box.y0 >= -0.01
    assert box.x1 <= width + 0.01 and box.y1 <= height + 0.01
    labels = texts(display.ax_)[1:-1]
    assert all("…" in label and label.endswith(" = 1") for label in labels)


def test_from_estimator_is_that_of_the_explanation():
    model = NoisyOrEM(2, random_state=0).fit(X).rename_latents(["flu", "cold"])
    for latent in ("cold", 1):
        ax = ExplanationDisplay.from_estimator(model, X[0], latent=latent).ax_
        other = model.explain(X[0]).plot(latent=latent).ax_
        assert texts(ax) == texts(other)
        assert ax.get_title() == other.get_title() == "cold"
    explanation = model.explain(X[0])
    moved = np.argmax(np.abs(explanation.posterior - explanation.prior))
    assert explanation.plot().ax_.get_title() == ["flu", "cold"][moved]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": [[1.0]]}, "contributions must"),
        ({"sizes": [np.inf]}, "contributions must"),
        ({"sizes": ["a"]}, "contributions must"),
        ({"sizes": [1.0], "max_cells": 0}, "max_cells must"),
        ({"sizes": [1.0], "scale": "who"}, "scale must"),
    ],
)
def test_wrong_input(changes, message):
    with pytest.raises(ValueError, match=message):
        draw(**changes)


def test_wrong_estimator_and_latent():
    with pytest.raises(TypeError, match="explain"):
        ExplanationDisplay.from_estimator(object(), X[0])
    explanation = NoisyOrEM(2, random_state=0).fit(X).explain(X[0])
    with pytest.raises(ValueError, match="latent must"):
        explanation.plot(latent="who")
    with pytest.raises(ValueError, match="labels must"):
        ExplanationDisplay([1.0], []).plot()
