"""Whatever comes in: a documented exception, or a comparison, a plan, a report."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hostile import JUNK, arguments, attempt, fuzz, tables
from hypothesis import given
from hypothesis import strategies as st

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    baselines,
    compare,
    report,
    rows_needed,
)
from sklearn_latent._studies.compare import COLUMNS
from sklearn_latent.exceptions import LatentWarning

MODELS = [
    "independence",
    "mixture",
    NoisyOrMoMLearner(),
    NoisyOrEM(max_iter=3),
    IdealParentGaussianBN(margins="normal"),
    baselines.IndependentFeatures(),
]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@fuzz(25)
@given(st.data())
def test_comparison(data):
    some = st.lists(st.sampled_from(MODELS), min_size=1, max_size=2)
    models = data.draw(
        st.one_of(some, some, some, st.sampled_from(JUNK), st.just({"a": "mixture"}))
    )
    X, cv = data.draw(tables()), data.draw(arguments(2, 3))
    keywords = {
        "reference": data.draw(arguments(None)),
        "sample_weight": data.draw(arguments(None)),
        "n_jobs": data.draw(arguments(None)),
    }
    table = attempt("compare", compare, models, X, cv, **keywords)
    if table is not None:
        assert list(table.columns) == list(COLUMNS)
        assert len(table) and table.index.is_unique


@fuzz(25)
@given(st.data())
def test_rows_needed(data):
    network = NoisyOrNetwork([0.3], [[0.2, 0.2, 0.3]], [0.1, 0.1, 0.1])
    network = data.draw(st.sampled_from([network] * 9 + JUNK))
    estimator = data.draw(st.sampled_from([NoisyOrEM(1, max_iter=2)] * 9 + JUNK))
    keywords = {
        "probability": data.draw(arguments(0.5)),
        "sizes": data.draw(st.one_of(st.just([20, 40]), arguments([30]))),
        "n_repeats": data.draw(arguments(2)),
        "criterion": data.draw(arguments(None)),
        "random_state": data.draw(arguments(0, None)),
    }
    found = attempt("rows_needed", rows_needed, network, estimator, **keywords)
    if found is not None:
        assert len(found.to_frame()) == len(found.sizes)
        assert str(found)


def _fitted():
    rng = np.random.default_rng(0)
    on, numbers = rng.random((40, 3)) < 0.5, rng.normal(size=(40, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LatentWarning)
        return [
            NoisyOrMoMLearner().fit(on),
            IdealParentGaussianBN(margins="normal").fit(numbers),
            LPCC(random_state=0).fit(on.astype(int)),
        ]


FITTED = _fitted()


@fuzz(8)
@given(st.data())
def test_reports(tmp_path_factory, data):
    model = data.draw(st.sampled_from(FITTED))
    path = tmp_path_factory.mktemp("report") / "report.html"
    where = data.draw(st.sampled_from([path, path, path, 3, None]))
    X, title = data.draw(tables()), data.draw(arguments(None, "<title>"))
    attempt("report", model.report, where, X, title=title)
    models = data.draw(st.sampled_from([{"a": model}, {}, {"a": (model, X, X)}, *JUNK]))
    attempt("report of several", report, models, path)
