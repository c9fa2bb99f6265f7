"""A warning points to the line of the user that caused it."""

import threading
import warnings
from inspect import currentframe
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_latent import (
    LPCC,
    SEMDBN,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    QuartetStructureLearner,
)
from sklearn_latent._core import warn as _warn
from sklearn_latent._core.progress import with_callbacks
from sklearn_latent.exceptions import LatentWarning, PoorDataWarning

# Constant columns: nothing can be learned.
POOR = np.zeros((6, 4))
RICH = np.random.default_rng(0).integers(0, 2, size=(30, 4)).astype(float)


def in_library(source):
    """Names that a source defines, as if it stood in a file of the library."""
    space = {"warn": _warn.warn, "PoorDataWarning": PoorDataWarning}
    exec(compile(source, _warn.__file__, "exec"), space)
    return space


def points_to_its_line(function, *arguments, **options):
    """Call, and check that our warnings point to the line of this call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*arguments, **options), (line := currentframe().f_lineno)
    points_to(line, found)


def points_to(line, found):
    expected = LatentWarning, ConvergenceWarning
    ours = [w for w in found if issubclass(w.category, expected)]
    assert ours
    for warning in ours:
        assert (warning.filename, warning.lineno) == (__file__, line)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_through_functions_of_the_library(depth):
    source = "def f0(): warn('Hm.', PoorDataWarning)\n" + "".join(
        f"def f{i}(): f{i - 1}()\n" for i in range(1, depth + 1)
    )
    function = in_library(source)[f"f{depth}"]
    points_to_its_line(function)


def test_the_nearest_user_counts():
    """A function of the user that the library calls is nearer than their script."""
    call = in_library("def call(function): return function()")["call"]
    warns = in_library("def warns(): warn('Hm.', PoorDataWarning)")["warns"]

    def back():
        warns(), (line := currentframe().f_lineno)
        return line

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        line = call(back)
    points_to(line, found)


def test_through_the_wrapper_of_callbacks():
    source = "def fit(self, X, y=None): warn('Hm.', PoorDataWarning)"
    fit = with_callbacks(in_library(source)["fit"])
    estimator = IdealParentGaussianBN()
    points_to_its_line(fit, estimator, POOR)


def test_no_user_at_all():
    """A thread that runs the library alone."""
    run = in_library("def run(): warn('Hm.', PoorDataWarning)")["run"]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert [w.category for w in found] == [PoorDataWarning]


CASES = [
    (NoisyOrMoMLearner(np.ones((1, 4), dtype=bool)), POOR),
    (NoisyOrEM(1, max_iter=1, tol=0.0, random_state=0), RICH),
    (QuartetStructureLearner(), POOR),
    (IdealParentGaussianBN(), np.where([True, False, False, False], np.nan, RICH)),
    (LPCC(random_state=0), POOR),
    (LGLPCCTemporal(2, random_state=0), POOR),
    (SEMDBN(3, 2, 2, n_init=1, random_state=0), RICH),
]
EACH = pytest.mark.parametrize(
    ("estimator", "X"), CASES, ids=[type(estimator).__name__ for estimator, _ in CASES]
)


@EACH
def test_through_fit(estimator, X):
    points_to_its_line(estimator.fit, X)


@EACH
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_through_a_pipeline(estimator, X, method):
    fit = getattr(make_pipeline("passthrough", estimator), method)
    points_to_its_line(fit, X)


def test_through_cross_validation():
    points_to_its_line(cross_val_score, CASES[0][0], POOR, cv=3)


@pytest.mark.parametrize(
    "place", ["callback/_callback_support.py", "base.py", "utils/_set_output.py"]
)
def test_through_wrappers_of_any_scikit_learn(place):
    """Versions wrap methods in different files, callbacks since 1.9."""
    fit = in_library("def fit(self, X): warn('Hm.', PoorDataWarning)")["fit"]
    wrapper = (
        "from contextlib import nullcontext\n"
        "def wrap(method):\n"
        "    def managed(estimator, *args, **kwargs):\n"
        "        with nullcontext():\n"
        "            return method(estimator, *args, **kwargs)\n"
        "    return managed\n"
    )
    space = {}
    exec(compile(wrapper, Path(sklearn.__file__).parent / place, "exec"), space)
    wrapped = space["wrap"](fit)
    points_to_its_line(wrapped, None, POOR)


def test_through_callbacks_that_watch():
    """An estimator that reports to a callback warns at the same line."""
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    estimator = clone(CASES[2][0]).set_callbacks(callback.ProgressBar())
    points_to_its_line(estimator.fit, POOR)
