"""Checks of arguments that every family shares."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_latent import (
    LPCC,
    SEMDBN,
    GaussianNetwork,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
    identifiability_order,
)
from sklearn_latent._core.validation import (
    check_count,
    check_counts,
    check_names,
    check_numbers,
    check_sample_weight,
    check_training_weight,
    shown,
)
from sklearn_latent.datasets import (
    make_gaussian_bn,
    make_latent_dbn,
    make_noisy_or,
    make_noisy_or_images,
    make_qmr_like,
)
from sklearn_latent.exceptions import PoorDataWarning

ESTIMATORS = [
    NoisyOrEM(2, random_state=0),
    NoisyOrMoMLearner(),
    QuartetStructureLearner(),
    IdealParentGaussianBN(),
    LPCC(random_state=0),
    LGLPCCTemporal(2, max_iter=5, random_state=0),
    SEMDBN(2, 2, 2, n_init=1, max_rounds=1, max_iter=5, random_state=0),
]


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_jobs", 0),
        ("n_jobs", 1.5),
        ("n_jobs", True),
        ("n_jobs", 10**30),
        ("n_jobs", "all"),
        ("verbose", "yes"),
        ("verbose", None),
        ("verbose", np.zeros(2)),
    ],
)
def test_every_fit_checks_how_it_runs(model, name, value):
    if name not in model.get_params():
        return
    model = clone(model).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"{name} must be"):
        model.fit(np.eye(4))


@pytest.mark.parametrize("value", [None, True, 0, 8, 2.0, "3", 10**30, np.array([3])])
def test_counts(value):
    with pytest.raises(ValueError, match="size must be an integer from 1 to 7, got"):
        check_count("size", value, 1, 7)


def test_counts_are_python_integers():
    assert type(check_count("size", np.int8(3))) is int
    assert check_count("size", None, optional=True) is None
    assert check_count("size", 10**30) == 10**30
    with pytest.raises(ValueError, match="size must be an integer of at least 1 or No"):
        check_count("size", 0, optional=True)


@pytest.mark.parametrize(
    "values", ["a", [[1], [1, 2]], 1j, None, np.datetime64("2020-01-01"), {}, object]
)
def test_what_is_no_array_of_numbers(values):
    with pytest.raises(ValueError, match="weights must be an array of numbers, got"):
        check_numbers("weights", values)


def test_numbers_keep_their_type_if_asked():
    assert check_numbers("x", [True, False], dtype=None).dtype == bool
    assert check_numbers("x", [True, None]).tolist()[0] == 1.0
    with pytest.raises(ValueError, match="states must hold whole numbers from 1"):
        check_counts("states", [2, 2.5])


@pytest.mark.parametrize("names", [5, "ab", [[], []], ["a"], np.array(5)])
def test_names(names):
    with pytest.raises(ValueError, match=r"names must .* got"):
        check_names("names", names, 2)


def test_weights_too_small_to_divide_by_count_as_zero():
    weights = check_sample_weight([1.0, 1e-320, 1e-100, 1e100], 4)
    np.testing.assert_array_equal(weights, [1.0, 0.0, 1e-100, 1e100])


@pytest.mark.parametrize(
    "kind", [IdealParentGaussianBN, NoisyOrMoMLearner, QuartetStructureLearner]
)
def test_batches_know_whether_to_update(kind):
    with pytest.raises(ValueError, match="update must be True or False, got"):
        kind().partial_fit(np.eye(4), update=np.zeros(2))


@pytest.mark.parametrize(
    "kind", [IdealParentGaussianBN, NoisyOrMoMLearner, QuartetStructureLearner]
)
def test_batches_that_were_only_read_make_no_model(kind):
    model = kind().partial_fit(np.eye(4), update=False)
    for method in (model.sample, model.to_networkx, model.get_feature_names_out):
        with pytest.raises(NotFittedError):
            method()


@pytest.mark.parametrize("kind", [LPCC, LGLPCCTemporal, SEMDBN])
def test_nothing_is_exported_before_fit(kind):
    for method in (kind().to_networkx, kind().to_pgmpy, kind().to_frame):
        with pytest.raises(NotFittedError):
            method()


@pytest.mark.parametrize("kind", [IdealParentGaussianBN, LPCC, NoisyOrMoMLearner])
@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.LatentWarning")
def test_names_are_a_list(kind):
    model = kind().fit([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match="input_features must be a list of names"):
        model.get_feature_names_out([["a", "b"], ["c", "d"]])


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_columns_of_the_same_name_are_refused(model):
    frame = pd.DataFrame(np.eye(4), columns=["a", "b", "a", "c"])
    with pytest.raises(ValueError, match="no two columns of the same name, got 'a' tw"):
        clone(model).fit(frame)


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(
    ("table", "remedy"),
    [
        ({"a": [0, 1], "b": [1, 0]}, r"; pass pd\.DataFrame\(X\)"),
        ([{"a": 0, "b": 1}, {"a": 1, "b": 0}], r"; pass pd\.DataFrame\(X\)"),
        ("rows.csv", r"got 'rows.csv'; read the file first, .* pd\.read_csv\(X\)"),
        (Path("rows.csv"), r"rows.csv.*; read the file first, .* pd\.read_csv\(X\)"),
        (pd.Series([0, 1]), r"; pass X\.to_frame\(\) if it is a single column"),
        (None, "got None"),
        (3.0, r"got 3\.0"),
    ],
    ids=["dict", "records", "str", "Path", "Series", "None", "number"],
)
def test_what_is_no_table_is_refused_with_the_remedy(model, table, remedy):
    with pytest.raises(TypeError, match=rf"X must be a table of rows .*{remedy}\.$"):
        clone(model).fit(table)


BINARY = np.random.default_rng(0).integers(0, 2, (40, 6))


def fit_seeded(estimator):
    return lambda seed: clone(estimator).set_params(random_state=seed).fit(BINARY)


SEEDED = [
    *(fit_seeded(e) for e in ESTIMATORS if "random_state" in e.get_params()),
    lambda seed: NoisyOrNetwork([0.5], [[0.5]], [0.1]).sample(2, seed),
    lambda seed: GaussianNetwork([[0]], [[0.0]], [0.0], [1.0]).sample(2, seed),
    lambda seed: make_latent_dbn().network.sample(2, 2, seed),
    lambda seed: identifiability_order(np.ones((1, 4)), random_state=seed),
    lambda seed: make_noisy_or(random_state=seed),
    lambda seed: make_noisy_or_images(random_state=seed),
    lambda seed: make_qmr_like(random_state=seed),
    lambda seed: make_gaussian_bn(random_state=seed),
    lambda seed: make_latent_dbn(random_state=seed),
]


@pytest.mark.parametrize("draw", SEEDED)
@pytest.mark.parametrize("seed", [-1, 2**32, 2**40, 1.5, "a", [1, 2], np.nan])
@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.LatentWarning")
def test_seeds_that_are_none(draw, seed):
    with pytest.raises(ValueError, match="random_state must be None"):
        draw(seed)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, np.ndarray.tolist])
@pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.LatentWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:X .* feature names:UserWarning",
)
def test_integers_beyond_floats(estimator, container):
    """Python's own integers have no limit."""
    X = BINARY.astype(object)
    X[3, 2] = 10**400
    with pytest.raises(ValueError, match="X must hold numbers"):
        estimator.fit(container(X))
    fitted = clone(estimator).fit(BINARY)
    for method in ("transform", "score", "impute"):
        with pytest.raises(ValueError, match="X must hold numbers"):
            getattr(fitted, method)(container(X))


def test_polars_tables_are_not_printed():
    frame = pl.DataFrame({"a": [1, 2]})
    assert shown(frame) == "a polars DataFrame"
    assert shown(frame["a"]) == "a polars Series"


def test_sampling_weights_add_up_to_the_effective_number_of_rows():
    weights = np.random.default_rng(0).lognormal(size=50)
    found = check_training_weight(weights, 50)
    assert found.sum() == pytest.approx(weights.sum() ** 2 / (weights @ weights))
    np.testing.assert_allclose(found / found[0], weights / weights[0])
    for same in (found, 1e-90 * weights):
        np.testing.assert_allclose(check_training_weight(same, 50), found)
    # A square that is zero cannot be divided by.
    heavy = check_training_weight([1e80, 0.5, 1e-90], 3)
    np.testing.assert_array_equal(heavy > 0.0, [True, True, False])
    counts = np.arange(5.0)
    np.testing.assert_array_equal(check_training_weight(counts, 5), counts)


def test_many_counts_may_be_sampling_weights():
    check_training_weight([0, 10, 10], 3)
    message = "counts: 2 rows stand for 21. If they are sampling weights"
    with pytest.warns(PoorDataWarning, match=message):
        check_training_weight([0, 10, 11], 3)
