"""Summaries: what a person reads first, for all estimators and all names."""

import pickle
import re
import warnings
from threading import Thread

import numpy as np
import pandas as pd
import pytest
from html_pages import Page
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent._answers.pages import Section, Summary
from sklearn_latent._answers.summary import with_error
from sklearn_latent._core.text import label, number
from sklearn_latent._core.transaction import all_or_nothing
from sklearn_latent._core.warn import warn
from sklearn_latent.datasets import make_gaussian_bn, make_latent_dbn, make_noisy_or
from sklearn_latent.exceptions import LatentWarning, PoorDataWarning
from sklearn_latent.mixed import SEMDBN

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.LatentWarning"
)

BINARY = make_noisy_or(n_samples=300, random_state=0)
NUMBERS = make_gaussian_bn(5, 1, 200, bipartite=True, random_state=0).X
PANEL = make_latent_dbn("G2", 100, 3, random_state=0).X
CASES = [
    (NoisyOrMoMLearner(BINARY.network.structure), BINARY.X),
    (QuartetStructureLearner(random_state=0), BINARY.X),
    (NoisyOrEM(2, random_state=0), BINARY.X),
    (IdealParentGaussianBN(max_latents=1), NUMBERS),
    (IdealParentGaussianBN(link="sigmoid"), NUMBERS),
    (LPCC(random_state=0), PANEL[:, :6]),
    (LGLPCCTemporal(3, random_state=0), PANEL),
    (SEMDBN(2, 2, 3, max_iter=3, random_state=0), PANEL),
]


def titles(summary):
    return [section.title for section in summary.sections]


@pytest.mark.parametrize(
    ("estimator", "X"), CASES, ids=lambda case: type(case).__name__
)
def test_all_estimators(estimator, X):
    model = clone(estimator)
    with pytest.raises(NotFittedError):
        model.summary()
    model.fit(X)
    summary = model.summary()
    assert isinstance(summary, str)
    assert repr(summary) == str(summary) == summary
    assert summary == model.summary()
    assert summary.startswith(type(model).__name__)
    assert f"{len(X)} " in summary.heading
    assert titles(summary)[0] == "What was found"
    assert "Does X follow the model?" not in titles(summary)
    assert "Does X follow the model?" in titles(model.summary(X))
    assert max(map(len, summary.splitlines())) <= 80
    allowed = "div section h3 h4 p ul li table thead tbody tr th td"
    assert all(tag in allowed.split() for tag in Page(summary._repr_html_()).tags)
    again = pickle.loads(pickle.dumps(summary))
    assert (again, again.sections) == (summary, summary.sections)
    assert pickle.loads(pickle.dumps(model)).summary() == summary
    for name in model.latent_names_:
        assert name in summary


@settings(deadline=None)
@given(st.text(), st.lists(st.text(), max_size=3), st.lists(st.text(), min_size=2))
def test_any_text_fits_on_the_page(title, lines, cells):
    clean = [label(cell) for cell in cells[:3]]
    section = Section(
        label(title, 60), [label(line, 200) for line in lines], clean, [clean], True
    )
    summary = Summary(label(title, 200), [section])
    assert max(map(len, summary.split("\n"))) <= 80
    Page(summary._repr_html_())


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.12345, "0.123"), (12345.6, "12,346"), (-1234.5, "-1,234"), (0.0, "0")],
)
def test_numbers(value, text):
    assert number(value) == text


def test_letters_that_no_terminal_shows():
    assert label("\ud800a\x07") == "?a?"
    assert label(" two\n lines ") == "two lines"


def test_errors_decide_the_digits():
    assert with_error(0.51234, 0.0312) == "0.512 ± 0.031"
    assert with_error(0.51234, np.nan) == "0.512"
    assert with_error(1e-6) == "0"


def test_standard_errors_are_shown_where_there_are():
    model = NoisyOrMoMLearner(BINARY.network.structure).fit(BINARY.X)
    assert with_error(model.prior_[0], model.prior_stderr_[0]) in model.summary()
    assert "±" not in NoisyOrEM(2, random_state=0).fit(BINARY.X).summary()


def test_many_features_and_latents_are_folded():
    structure = np.kron(np.eye(30, dtype=bool), np.ones((1, 10), dtype=bool))
    rng = np.random.default_rng(0)
    X = NoisyOrNetwork(
        np.full(30, 0.2), np.where(structure, 0.3, 1.0), np.full(300, 0.01)
    ).sample(200, random_state=rng.integers(100))[0]
    summary = NoisyOrMoMLearner(structure, refine=False).fit(X).summary()
    assert "and 4 more" in summary
    assert "and 10 more" in summary
    assert len(summary.splitlines()) < 120


def test_no_latents():
    X = np.random.default_rng(0).random((60, 4)) < 0.5
    model = QuartetStructureLearner(random_state=0).fit(X)
    assert model.n_latents_ == 0
    assert "transform returns no columns" in " ".join(model.summary().split())
    model = IdealParentGaussianBN().fit(NUMBERS)
    assert "adds no column" in " ".join(model.summary().split())


def test_failing_checks_in_words():
    model = NoisyOrEM(2, random_state=0).fit(BINARY.X)
    good, bad = model.summary(BINARY.X), model.summary(np.ones_like(BINARY.X))
    assert "No check fails" in good
    assert "No check fails" not in bad
    assert re.search(r"- rate: features have other rates", bad)


class Fitted:
    """An estimator whose fit warns as told."""

    def fit(self, *messages):
        with all_or_nothing(self):
            for message in messages:
                warn(message, PoorDataWarning)
        return self


class TestCautions:
    def test_fit_remembers_what_it_warned_of(self):
        X = np.column_stack([BINARY.X, np.zeros(len(BINARY.X))])
        with pytest.warns(PoorDataWarning) as caught:
            model = NoisyOrEM(2, random_state=0).fit(X)
        text = " ".join(model.summary().split())
        for warning in caught:
            assert f"fit warned: {' '.join(str(warning.message).split())}" in text

    def test_each_fit_starts_anew(self):
        model = Fitted().fit("first")
        assert model._cautions == ["first"]
        assert model.fit()._cautions == []

    def test_a_failed_fit_changes_nothing(self):
        model = Fitted().fit("first")
        with pytest.raises(ValueError), all_or_nothing(model):
            warn("second", PoorDataWarning)
            raise ValueError
        assert model._cautions == ["first"]

    def test_nested_fits(self):
        outer, inner = Fitted(), Fitted()
        with all_or_nothing(outer):
            warn("before", PoorDataWarning)
            inner.fit("inside")
            warn("after", PoorDataWarning)
        assert inner._cautions == ["inside"]
        assert outer._cautions == ["before", "inside", "after"]

    def test_threads_do_not_mix(self):
        outer, other = Fitted(), Fitted()
        with all_or_nothing(outer):
            thread = Thread(target=other.fit, args=("elsewhere",))
            thread.start()
            thread.join()
        assert (outer._cautions, other._cautions) == ([], ["elsewhere"])

    def test_warnings_are_still_shown(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Fitted().fit("seen")
        assert [str(w.message) for w in caught] == ["seen"]
        assert issubclass(caught[0].category, LatentWarning)


def test_words_that_count_as_on_are_told():
    X = make_noisy_or([[1, 1, 1]], 200, random_state=0).X
    frame = pd.DataFrame(np.where(X == 1, "yes", "no"), columns=list("abc"))
    text = NoisyOrEM(random_state=0).fit(frame).summary()
    assert "count as on: yes in a, yes in b, yes in c." in " ".join(text.split())


def test_what_directions_rest_on_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    X[:, 2] += X[:, 0] + X[:, 1]
    X[:, 4] += X[:, 3]
    text = " ".join(str(IdealParentGaussianBN().fit(X).summary()).split())
    assert "cannot tell the direction of 1 of the 3 edges" in text
    assert "2 directions rest on which nodes are independent" in text


def test_full_graphs_and_strengths_of_one_are_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    free = IdealParentGaussianBN().fit(X).summary()
    full = IdealParentGaussianBN().fit(X @ [[1, 1, 3], [0, 1, 1], [0, 0, 1]]).summary()
    copy = np.column_stack([X, X[:, 0] + 1e-3 * rng.normal(size=200)])
    copied = IdealParentGaussianBN().fit(copy).summary()
    assert "all 3 edges" in full and "all 3" not in free + copied
    assert "1 edge has a strength of 1" in copied and "strength of 1" not in free + full


def test_latents_of_few_rows_are_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 30))
    with pytest.warns(PoorDataWarning, match="Latents were found in 8 rows"):
        model = IdealParentGaussianBN(max_latents=1).fit(X[:8])
    assert model.n_latents_ == 1 and "8 rows" in model.summary()
    IdealParentGaussianBN(max_latents=1).fit(X[:40])
