"""The structure learner: what it finds, and how it behaves."""

import pickle
import warnings

import matplotlib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_latent import (
    NoisyOrEM,
    NoisyOrMoMLearner,
    QuartetStructureLearner,
)
from sklearn_latent.datasets import (
    image_sources,
    make_noisy_or,
    make_noisy_or_images,
)
from sklearn_latent.exceptions import LatentWarning, PoorDataWarning
from sklearn_latent.metrics import edge_f1, match_latents
from sklearn_latent.noisy_or._beam import FINE, Beam
from sklearn_latent.noisy_or._maximum_likelihood import climb_beams
from sklearn_latent.noisy_or._noisy_or_network import NoisyOrNetwork
from sklearn_latent.noisy_or._statistics.patterns import Patterns
from sklearn_latent.plotting import LatentImagesDisplay

matplotlib.use("Agg")

PAPER = {"quartet_threshold": 0.01, "extend_threshold": 0.1, "refine": False}


def n_recovered(truth, learner):
    return match_latents(truth.failure, learner.failure_, learner.prior_)[1].sum()


@pytest.fixture(scope="module")
def images():
    return make_noisy_or_images(1000, random_state=0)


@pytest.fixture(scope="module")
def fitted(images):
    return QuartetStructureLearner().fit(images.X)


@pytest.mark.parametrize(
    ("n_samples", "seed", "missing"),
    [(200, 0, 0.0), (200, 1, 0.0), (500, 1, 0.0), (2000, 0, 0.0), (2000, 0, 0.2)],
)
def test_finds_the_images_and_nothing_else(n_samples, seed, missing):
    data = make_noisy_or_images(n_samples, random_state=seed)
    X = data.X.astype(float)
    X[np.random.RandomState(0).uniform(size=X.shape) < missing] = np.nan
    learner = QuartetStructureLearner().fit(X)
    assert learner.n_latents_ == n_recovered(data.network, learner) == 8
    if not missing:
        assert edge_f1(data.network.structure, learner.structure_) == 1.0
    assert np.isfinite(learner.score(X))


def test_beats_likelihood_from_the_truth_on_few_rows():
    found = limit = 0
    for seed in range(3):
        data = make_noisy_or_images(100, random_state=seed)
        learner = QuartetStructureLearner().fit(data.X)
        assert learner.n_latents_ <= 9
        found += n_recovered(data.network, learner)
        truth = data.network
        start = NoisyOrNetwork._of(truth.prior, truth.failure, truth.leak)
        beam = Beam(Patterns.of(data.X == 1), 8, FINE)
        # No pseudo-rows: plain maximum likelihood.
        best = climb_beams(start, [beam], tol=1e-6, max_iter=200, smooth=False).state
        limit += match_latents(truth.failure, best.failure, best.prior)[1].sum()
    assert found > limit + 6


def test_sixty_rows_show_nearly_all_sources():
    data = make_noisy_or_images(60, random_state=0)
    learner = QuartetStructureLearner().fit(data.X)
    assert learner.n_latents_ == 8
    assert n_recovered(data.network, learner) >= 7


@pytest.mark.parametrize(
    ("sizes", "n_features", "n_samples", "parameters", "least"),
    [
        ([8] * 8, 64, 5000, (0.125, 0.1, 0.001), 1.0),
        ([24] * 8, 64, 5000, (0.125, 0.1, 0.001), 1.0),
        ([9] * 5 + [3] * 2, 40, 10_000, ((0.1, 0.2), (0.05, 0.5), 0.001), 0.98),
        ([7] * 4, 32, 10_000, ((0.5, 0.7), (0.2, 0.5), 0.01), 0.98),
        # More than can be enumerated.
        ([9] * 18, 120, 5000, (0.1, (0.1, 0.3), 0.001), 0.99),
    ],
)
def test_planted_latents_are_found(sizes, n_features, n_samples, parameters, least):
    rng = np.random.RandomState(0)
    structure = np.zeros((len(sizes), n_features), dtype=bool)
    for row, size in zip(structure, sizes, strict=True):
        row[rng.choice(n_features, size, replace=False)] = True
    names = dict(zip(("prior", "failure", "leak"), parameters, strict=True))
    data = make_noisy_or(structure, n_samples, random_state=0, **names)
    learner = QuartetStructureLearner().fit(data.X)
    assert learner.n_latents_ == n_recovered(data.network, learner) == len(sizes)
    assert edge_f1(structure, learner.structure_) >= least
    assert np.isfinite(learner.prior_stderr_).all()
    # No quartet can show a latent with three children.
    few = learner.structure_.sum(axis=1) == 3
    assert np.isinf(learner.depth_[few]).all()
    assert (learner.quartets_[few] == -1).all()


# Of so many rare features, some are never on in 100 rows.
@pytest.mark.filterwarnings("ignore:X has poor columns")
@pytest.mark.parametrize("n_samples", [100, 2000])
def test_independent_features_have_no_latent(n_samples):
    for seed in range(20):
        rng = np.random.RandomState(seed)
        X = rng.uniform(size=(n_samples, 64)) < rng.uniform(0.02, 0.5, 64)
        for refine in (True, False):
            learner = QuartetStructureLearner(refine=refine)
            with pytest.warns(PoorDataWarning, match="No latent found"):
                learner.fit(X)
            assert learner.n_latents_ == 0
            assert learner.transform(X).shape == (n_samples, 0)
            np.testing.assert_allclose(learner.leak_, X.mean(axis=0), atol=0.01)


@pytest.mark.parametrize("options", [PAPER, {"test": "coherence", "refine": False}])
def test_paper_algorithm_on_many_rows(options):
    data = make_noisy_or_images(10_000, random_state=0)
    learner = QuartetStructureLearner(**options).fit(data.X)
    assert n_recovered(data.network, learner) >= 6
    if options is not PAPER:
        return
    assert learner.n_latents_ <= 9
    assert (learner.quartets_ >= 0).all()
    assert np.take_along_axis(learner.structure_, learner.quartets_, axis=1).all()
    assert {0.0, 1.0} <= set(learner.depth_)
    # Errors of priors are those of a few standard errors.
    pairs, recovered = match_latents(
        data.network.failure, learner.failure_, learner.prior_
    )
    chosen = pairs[recovered[pairs[:, 0]], 1]
    z = (learner.prior_[chosen] - 0.25) / learner.prior_stderr_[chosen]
    assert np.abs(z).max() < 5


# Quartets alone leave much unexplained, and the fit says so.
@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.ModelMisfitWarning")
def test_max_depth_limits_the_rounds():
    data = make_noisy_or_images(10_000, random_state=0)
    learner = QuartetStructureLearner(max_depth=0, refine=False).fit(data.X)
    assert (learner.depth_ == 0).all()
    assert 0 < learner.n_latents_ < 8


def test_standard_errors_are_calibrated():
    """Coverage of 95% intervals for all priors of five draws."""
    inside = []
    for seed in range(5):
        data = make_noisy_or_images(2000, random_state=seed)
        learner = QuartetStructureLearner().fit(data.X)
        z = (learner.prior_ - 0.25) / learner.prior_stderr_
        inside.append(np.abs(z) < 1.96)
    assert 0.85 <= np.mean(inside) <= 1.0


# Quartets alone leave much unexplained, and the fit says so.
@pytest.mark.filterwarnings("ignore:X looks suspicious")
@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.ModelMisfitWarning")
def test_weight_two_is_a_row_twice(images):
    X = images.X[:300]
    weights = np.random.RandomState(0).randint(0, 4, len(X))
    for options in ({}, PAPER):
        weighted = QuartetStructureLearner(**options).fit(X, sample_weight=weights)
        repeated = QuartetStructureLearner(**options).fit(np.repeat(X, weights, axis=0))
        np.testing.assert_array_equal(weighted.failure_, repeated.failure_)
        np.testing.assert_array_equal(weighted.prior_, repeated.prior_)


@pytest.mark.parametrize(("weight", "n_latents"), [(12.0, 1), (12.5, 0)])
@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.LatentWarning")
def test_copies_of_a_row_make_a_latent_and_a_heavy_row_does_not(weight, n_latents):
    X = np.random.default_rng(0).random((300, 12)) < 0.05
    X[0] = np.arange(12) < 6
    weights = np.where(np.arange(300), 1.0, weight)
    learner = QuartetStructureLearner(dependence=None, random_state=0)
    assert learner.fit(X, sample_weight=weights).n_latents_ == n_latents


def test_order_of_features_does_not_matter(images, fitted):
    order = np.random.RandomState(0).permutation(64)
    again = QuartetStructureLearner().fit(images.X[:, order])
    assert edge_f1(fitted.structure_[:, order], again.structure_) == 1.0


def test_same_random_state_same_result(monkeypatch):
    # Small tables, so that rows must be chosen.
    for name in ("FIRST_ROWS", "MOST_ROWS"):
        monkeypatch.setattr(f"sklearn_latent.noisy_or._refine_causes.{name}", 200)
    data = make_noisy_or_images(1500, random_state=0)
    results = []
    for random_state in (3, 3, 4):
        learner = QuartetStructureLearner(random_state=random_state)
        results.append(learner.fit(data.X).failure_)
    np.testing.assert_array_equal(results[0], results[1])
    assert edge_f1(results[0] < 1, results[2] < 1) == 1.0


@pytest.mark.parametrize("options", [{}, {"refine": False}, PAPER])
@pytest.mark.parametrize(
    "case",
    ["three features", "off", "on", "one row", "empty", "half missing", "one feature"],
)
def test_poor_data_makes_a_poor_model(case, options):
    rng = np.random.RandomState(0)
    noise = (rng.uniform(size=(60, 8)) < 0.4).astype(float)
    X = {
        "three features": noise[:, :3],
        "one feature": noise[:, :1],
        "off": np.zeros_like(noise),
        "on": np.ones_like(noise),
        "one row": noise[:1],
        "empty": np.full_like(noise, np.nan),
        "half missing": np.where(rng.uniform(size=noise.shape) < 0.5, np.nan, noise),
    }[case]
    learner = QuartetStructureLearner(**options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(X)
    assert learner.n_latents_ == 0
    assert {w.category for w in caught} == {PoorDataWarning}
    messages = ["No latent found"]
    if case in ("off", "on", "one row", "empty"):
        messages.insert(0, "X has poor columns")
    for warning, start in zip(caught, messages, strict=True):
        assert str(warning.message).startswith(start)
    assert np.isfinite(learner.score(X))
    assert learner.transform(X).shape == (len(X), 0)
    assert learner.sample(3, random_state=0)[0].shape == (3, X.shape[1])


def test_duplicate_features_are_one_latent():
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(1000, 5)) < 0.3
    learner = QuartetStructureLearner().fit(np.hstack([X] * 4))
    assert learner.n_latents_ == 5
    np.testing.assert_array_equal(learner.structure_.sum(axis=0), np.ones(20))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("test", "other"),
        ("quartet_threshold", -0.1),
        ("quartet_threshold", "0.01"),
        ("quartet_threshold", True),
        ("coherence_threshold", None),
        ("coherence_threshold", np.nan),
        ("extend_threshold", 0.0),
        ("extend_threshold", np.inf),
        ("max_depth", -1),
        ("max_depth", 1.5),
    ],
)
def test_wrong_parameters(parameter, value, images):
    learner = QuartetStructureLearner(**{parameter: value})
    with pytest.raises(ValueError, match=f"{parameter} must be .* got"):
        learner.fit(images.X[:50])


def test_table_of_latents(fitted, images):
    frame = fitted.latents_frame()
    assert list(frame.index) == list(fitted.get_feature_names_out())
    np.testing.assert_array_equal(frame["n_children"], fitted.structure_.sum(axis=1))
    assert frame["children"].map(len).equals(frame["n_children"])
    assert (frame["prior_stderr"] > 0).all()
    for quartet, children in zip(frame["quartet"], frame["children"], strict=True):
        assert set(quartet) <= set(children)


def test_attributes_belong_together(fitted):
    np.testing.assert_array_equal(fitted.structure_, fitted.failure_ < 1)
    assert len(fitted.prior_) == fitted.n_latents_ == len(fitted.depth_)
    assert fitted.quartets_.shape == (8, 4)
    assert fitted.failure_stderr_.shape == fitted.failure_.shape
    assert np.isnan(fitted.failure_stderr_[~fitted.structure_]).all()
    # Discovered ones first, by depth.
    assert (fitted.depth_[1:] >= fitted.depth_[:-1]).all()


def test_better_than_guessing_the_number(images, fitted):
    held_out = make_noisy_or_images(1000, random_state=99).X
    known = NoisyOrMoMLearner(image_sources()).fit(images.X)
    assert fitted.score(held_out) > known.score(held_out) - 0.05
    guessed = NoisyOrEM(6, random_state=0, max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guessed.fit(images.X)
    assert fitted.score(held_out) > guessed.score(held_out) + 1


def test_grid_search_picks_thresholds(images):
    grid = {"quartet_threshold": [0.0005, 0.01, 0.2], "extend_threshold": [0.05, 0.1]}
    learner = QuartetStructureLearner(refine=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LatentWarning)
        search = GridSearchCV(learner, grid, cv=2).fit(images.X[:500])
        default = clone(learner).fit(images.X[:500])
    truth = images.network.structure
    found = edge_f1(truth, search.best_estimator_.structure_)
    assert found >= edge_f1(truth, default.structure_) - 0.1


def test_pickle_clone_pipeline(fitted, images):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(images.X), fitted.transform(images.X))
    pipeline = make_pipeline(FunctionTransformer(), clone(fitted))
    assert pipeline.fit_transform(images.X[:300]).shape[1] == 8


def test_pictures(fitted):
    display = fitted.plot_images((8, 8))
    assert isinstance(display, LatentImagesDisplay)
    assert len(display.axes_) == 8
    image = display.axes_[0].images[0].get_array()
    np.testing.assert_allclose(image.ravel(), 1 - fitted.failure_[0])
    with pytest.raises(ValueError, match="shape must be"):
        fitted.plot_images((8, 9))
    with pytest.raises(TypeError, match="failure_"):
        LatentImagesDisplay.from_estimator(FunctionTransformer().fit([[1]]), (1, 1))
    assert len(fitted.plot().positions_) == 72
    matplotlib.pyplot.close("all")
