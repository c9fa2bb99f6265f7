"""Display of observed against modelled rates and pairs."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from test_summary import CASES

from sklearn_latent import NoisyOrEM
from sklearn_latent._core.checks import Comparison, comparisons_to_frame
from sklearn_latent.datasets import make_noisy_or
from sklearn_latent.plotting import FitDisplay

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.LatentWarning"
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def n_points(panel):
    return [len(points.get_offsets()) for points in panel.collections]


@pytest.mark.parametrize(
    ("estimator", "X"), CASES, ids=lambda case: type(case).__name__
)
def test_all_estimators(estimator, X):
    model = estimator.fit(X)
    display = FitDisplay.from_estimator(model, X)
    checks = display.checks
    left, right = display.axes_
    assert sum(n_points(right)) == (checks.check == "pair").sum()
    assert sum(n_points(left)) == (checks.check != "pair").sum()
    # All lines of the diagnosis are among the points.
    diagnosis = model.diagnose(X)
    kinds = diagnosis.check.isin(["rate", "pair"])
    shown = set(zip(checks.check, checks.what, checks.ok, strict=True))
    lines = diagnosis[kinds]
    assert set(zip(lines.check, lines.what, lines.ok, strict=True)) <= shown


def test_failing_points_are_labelled_inside_of_the_panel():
    X = make_noisy_or(n_samples=1000, random_state=0).X
    model = NoisyOrEM(2, random_state=0).fit(X)
    display = FitDisplay.from_estimator(model, 1 - X, n_labels=3)
    panel = display.axes_[0]
    assert n_points(panel)[1] > 3
    assert len(panel.texts) == 3
    display.figure_.canvas.draw()
    frame = panel.get_window_extent()
    for text in panel.texts:
        assert frame.y0 <= text.get_window_extent().y0
        assert text.get_window_extent().y1 <= frame.y1
    figure = display.figure_.get_window_extent()
    for artist in (panel.title, panel.xaxis.label):
        assert figure.y0 <= artist.get_window_extent().y0
        assert artist.get_window_extent().y1 <= figure.y1


def test_given_axes_and_given_checks():
    X = make_noisy_or(n_samples=200, random_state=0).X
    model = NoisyOrEM(2, random_state=0).fit(X)
    _, ax = plt.subplots()
    display = FitDisplay(model.diagnose(X)).plot(ax=ax, n_labels=0)
    assert display.figure_ is ax.figure
    with pytest.raises(TypeError, match="ax must be"):
        display.plot(ax=3)
    with pytest.raises(ValueError, match="checks must be"):
        FitDisplay(3).plot()
    with pytest.raises(ValueError, match="n_labels"):
        display.plot(n_labels=100)
    with pytest.raises(TypeError, match="estimator must have"):
        FitDisplay.from_estimator(object(), X)


def test_of_very_many_pairs_the_worst_are_kept():
    z = np.arange(1000.0)
    comparison = Comparison("pair", str, z, z, z, 900.5)
    frame = comparisons_to_frame([comparison], 100)
    assert 50 < len(frame) <= 100
    assert set(range(950, 1000)) <= set(frame.z)
    assert frame.ok.any()


def test_nothing_to_draw():
    X = make_noisy_or(n_samples=50, random_state=0).X[:, :1]
    model = NoisyOrEM(1, random_state=0).fit(X)
    panels = FitDisplay.from_estimator(model, X).axes_
    assert panels[1].get_title() == "nothing: 0 of 0 differ"
