"""The curve of a parameter shows what cross-validation measured."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from sklearn_latent import NoisyOrMoMLearner, QuartetStructureLearner
from sklearn_latent.datasets import (
    figure_1_structure,
    make_noisy_or,
    make_noisy_or_images,
)
from sklearn_latent.plotting import ThresholdCurveDisplay, score_and_count

X = make_noisy_or_images(400, random_state=0).X
VALUES = [0.1, 0.003, 0.02]

# Quartets alone leave much unexplained, and the fit says so.
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.ModelMisfitWarning"
)


def axes():
    return Figure(figsize=(6, 6)).add_subplot()


def drawn(panel):
    """Points of the curve, without the line that marks the best value."""
    lines = [line for line in panel.get_lines() if line.get_marker() == "o"]
    return np.asarray(lines[0].get_xydata())


def search(**kwargs):
    learner = QuartetStructureLearner(refine=False)
    return GridSearchCV(learner, {"quartet_threshold": VALUES}, cv=2, **kwargs).fit(X)


def test_counts_of_a_noisy_or_network():
    structure = figure_1_structure()
    data = make_noisy_or(structure, 1000, random_state=0)
    learner = NoisyOrMoMLearner(structure).fit(data.X)
    scores = score_and_count(learner, data.X)
    assert scores["n_latents"] == 2
    assert scores["n_edges"] == structure.sum()
    assert scores["score"] == learner.score(data.X)


def test_counts_of_a_model_over_time_are_those_of_one_slice():
    import networkx as nx

    graph = nx.DiGraph()
    for t in (0, 1):
        for name, kind in (("a", "latent"), ("b", "latent"), ("x", "feature")):
            graph.add_node((name, t), kind=kind, slice=t, name=name)
        graph.add_edge(("a", t), ("x", t), kind="measurement")
        graph.add_edge(("a", t), ("b", t), kind="intra", directed=False)
        graph.add_edge(("b", t), ("a", t), kind="intra", directed=False)
    graph.add_edge(("a", 0), ("a", 1), kind="inter")

    class Model:
        def to_networkx(self):
            return graph

        def score(self, X):
            return -1.0

    scores = score_and_count(Model(), X)
    assert scores == {"score": -1.0, "n_latents": 2, "n_edges": 3}


def test_the_curve_is_the_cross_validated_score():
    learner = QuartetStructureLearner(refine=False)
    display = ThresholdCurveDisplay.from_estimator(
        learner, X, param_name="quartet_threshold", param_range=VALUES, cv=2, ax=axes()
    )
    points = drawn(display.axes_[0])
    for value, (x, score) in zip(sorted(VALUES), points, strict=True):
        assert x == value
        by_hand = cross_val_score(
            learner.set_params(quartet_threshold=value), X, cv=2
        ).mean()
        assert score == pytest.approx(by_hand)
    assert display.axes_[0].get_xscale() == "log"
    assert [panel.get_ylabel() for panel in display.axes_[1:]] == ["latents", "edges"]


def test_a_search_and_the_estimator_draw_the_same():
    found = ThresholdCurveDisplay.from_search(
        search(scoring=score_and_count, refit="score"), ax=axes()
    )
    fitted = ThresholdCurveDisplay.from_estimator(
        QuartetStructureLearner(refine=False),
        X,
        param_name="quartet_threshold",
        param_range=sorted(VALUES),
        cv=2,
        ax=axes(),
    )
    for a, b in zip(found.axes_, fitted.axes_, strict=True):
        np.testing.assert_allclose(drawn(a), drawn(b))
    np.testing.assert_allclose(found.score_error, fitted.score_error)


def test_a_search_without_counts_shows_the_score_alone():
    result = search()
    display = ThresholdCurveDisplay.from_search(result, ax=axes())
    assert len(display.axes_) == 1
    points = drawn(display.axes_[0])
    np.testing.assert_array_equal(points[:, 0], sorted(VALUES))
    assert points[:, 1].max() == pytest.approx(result.best_score_)
    assert f"{result.best_params_['quartet_threshold']:.3g}" in (
        display.axes_[0].get_title()
    )


def test_other_parameters_are_at_their_best():
    grid = {"quartet_threshold": VALUES, "test": ["rank", "coherence"]}
    result = GridSearchCV(QuartetStructureLearner(refine=False), grid, cv=2).fit(X)
    display = ThresholdCurveDisplay.from_search(result, param_name="test", ax=axes())
    scores = result.cv_results_["mean_test_score"]
    tests = np.array([params["test"] for params in result.cv_results_["params"]])
    assert set(display.param_values) == {"rank", "coherence"}
    for value, (_, score) in zip(
        display.param_values, drawn(display.axes_[0]), strict=True
    ):
        assert score == scores[tests == value].max()
    labels = [label.get_text() for label in display.axes_[0].get_xticklabels()]
    assert labels == list(display.param_values)
    with pytest.raises(ValueError, match=r"param_name must be one of.*got None"):
        ThresholdCurveDisplay.from_search(result)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"estimator": KMeans()}, TypeError, "to_networkx, got an instance of KMeans"),
        ({"param_name": "depth"}, ValueError, "param_name must be one of .*'depth'"),
        ({"param_name": [1]}, ValueError, "param_name must be one of"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None or an integer"),
        ({"param_range": 5}, ValueError, "param_range must hold at least one"),
        ({"param_range": []}, ValueError, "param_range must hold at least one"),
        ({"param_range": [-1.0]}, ValueError, "quartet_threshold must be"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    usual = {
        "estimator": QuartetStructureLearner(refine=False),
        "X": X,
        "param_name": "quartet_threshold",
        "param_range": VALUES,
    }
    with pytest.raises(error, match=message):
        ThresholdCurveDisplay.from_estimator(**(usual | arguments))


def test_only_fitted_searches_are_drawn():
    with pytest.raises(TypeError, match=r"search must be.*got an instance of int"):
        ThresholdCurveDisplay.from_search(3)
    with pytest.raises(NotFittedError):
        ThresholdCurveDisplay.from_search(
            GridSearchCV(QuartetStructureLearner(), {"refine": [True]})
        )


def test_lengths_must_agree():
    display = ThresholdCurveDisplay("p", [1, 2], [0.0], counts={"latents": [1, 2]})
    with pytest.raises(ValueError, match=r"score must have one number per value"):
        display.plot(ax=axes())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"param_values": []}, "param_values must hold at least one value"),
        ({"param_values": np.array(1.0)}, "param_values must hold at least one value"),
        ({"score": ["a", "b"]}, "score must be an array of numbers"),
        ({"score_error": [0.1, -0.1]}, "score_error must be non-negative"),
        ({"counts": [1, 2]}, "counts must be a dictionary"),
    ],
)
def test_wrong_curves_are_named(changed, message):
    usual = {"param_name": "p", "param_values": [1, 2], "score": [0.0, 1.0]}
    with pytest.raises(ValueError, match=message):
        ThresholdCurveDisplay(**(usual | changed)).plot(ax=axes())


def test_numbers_that_no_axis_can_show():
    values, score = [1.0, np.inf, 1e300], [-np.inf, 1e308, 0.5]
    display = ThresholdCurveDisplay("p", values, score, counts={"latents": score})
    display.plot(ax=axes())
    assert display.axes_[0].get_title() == "best: 1e+300"


def test_without_axes_a_figure_is_made():
    import matplotlib.pyplot as plt

    display = ThresholdCurveDisplay("p", [1, 2], [0.0, 1.0]).plot()
    assert display.ax_.figure is display.figure_
    assert display.axes_[0].get_xscale() == "linear"
    plt.close(display.figure_)
