"""A fit that does not end leaves the estimator as it was; a warm one goes on."""

import copy
import inspect
import sys

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent._core.progress import Progress
from sklearn_latent._core.transaction import all_or_nothing
from sklearn_latent.mixed import SEMDBN

STRUCTURE = np.kron(np.eye(2, dtype=bool), np.ones((1, 5), dtype=bool))
NETWORK = NoisyOrNetwork([0.3, 0.4], np.where(STRUCTURE, 0.3, 1.0), [0.05] * 10)
X, _ = NETWORK.sample(300, random_state=0)
WIDER = np.hstack([X, X[:, :1]])

ESTIMATORS = [
    NoisyOrMoMLearner(),
    NoisyOrEM(2, max_iter=30, tol=1e-3, random_state=0),
    NoisyOrEM(2, inference="variational", max_iter=30, tol=1e-3, random_state=0),
    QuartetStructureLearner(),
    QuartetStructureLearner(refine=False),
    IdealParentGaussianBN(search="greedy", random_state=0),
    LPCC(max_iter=5, random_state=0),
    LGLPCCTemporal(max_iter=5, random_state=0),
    SEMDBN(2, n_init=1, max_rounds=2, max_iter=5, random_state=0),
]
WAYS = ["fit", "partial_fit"]
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore::sklearn_latent.exceptions.LatentWarning",
)


def name_of(estimator):
    return str(estimator).split("(")[0]


def ways(estimator):
    return [way for way in WAYS if hasattr(estimator, way)]


class InterruptAt:
    """Trace function that raises after a number of calls within the package."""

    def __init__(self, number):
        self.left = number

    def __call__(self, frame, event, argument):
        if event == "call" and "sklearn_latent" in frame.f_code.co_filename:
            # Bookkeeping itself is so short that nobody hits it.
            if frame.f_code.co_filename.endswith(("_transaction.py", "_progress.py")):
                return None
            # Python ends a generator that nobody reads on by a call too, and there
            # ignores exceptions, an interrupt from the keyboard included.
            if frame.f_code.co_flags & inspect.CO_GENERATOR:
                return None
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return None


def n_calls(function):
    counter = InterruptAt(10**9)
    # Coverage is measured by a trace function, too.
    before = sys.gettrace()
    sys.settrace(counter)
    try:
        function()
    finally:
        sys.settrace(before)
    return 10**9 - counter.left


def interrupted(function, number):
    """Whether the function was stopped at that call."""
    before = sys.gettrace()
    sys.settrace(InterruptAt(number))
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def moments_of_interest(n):
    """The first calls and the last ones, and some in between."""
    rng = np.random.default_rng(0)
    return sorted({1, 2, 3, 5, n // 2, n - 3, n - 1, n, *rng.integers(1, n, 8)})


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
class TestRandomPoints:
    def test_unfitted_stays_unfitted(self, estimator):
        for way in ways(estimator):
            fresh = copy.deepcopy(estimator)
            total = n_calls(lambda: getattr(copy.deepcopy(estimator), way)(X))  # noqa: B023
            for number in moments_of_interest(total):
                interrupted(lambda: getattr(fresh, way)(X), number)  # noqa: B023
                if hasattr(fresh, "network_"):
                    break  # it came through
                assert vars(fresh) == vars(estimator)
                with pytest.raises(NotFittedError):
                    fresh.transform(X)

    def test_fitted_stays_as_it_was(self, estimator):
        fitted = copy.deepcopy(estimator).fit(X)
        before = fitted.transform(X)
        total = n_calls(lambda: copy.deepcopy(fitted).fit(WIDER))
        hits = 0
        for number in moments_of_interest(total):
            state = dict(vars(fitted))
            if not interrupted(lambda: fitted.fit(WIDER), number):
                break
            hits += 1
            assert vars(fitted).keys() == state.keys()
            assert all(vars(fitted)[name] is state[name] for name in state)
            np.testing.assert_array_equal(fitted.transform(X), before)
        assert hits > 5


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_interrupt_from_progress(estimator, monkeypatch):
    report = Progress.__call__

    def stop_at(limit):
        calls = iter(range(limit))

        def call(self, message, **fitted):
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return report(self, message, **fitted)

        return call

    for limit in range(10):
        fresh = copy.deepcopy(estimator)
        monkeypatch.setattr(Progress, "__call__", stop_at(limit))
        try:
            fresh.fit(X)
        except KeyboardInterrupt:
            assert vars(fresh) == vars(estimator)
        else:
            break
    assert limit > 0


def test_batches_before_an_interrupt_count():
    learner = QuartetStructureLearner().partial_fit(X[:200], update=False)
    assert interrupted(lambda: learner.partial_fit(X[200:]), 50)
    learner.partial_fit(X[200:])
    whole = QuartetStructureLearner().fit(X)
    np.testing.assert_allclose(learner.failure_, whole.failure_, atol=1e-10)


def test_wrong_input_does_not_harm_a_fitted_model():
    for estimator in ESTIMATORS:
        fitted = copy.deepcopy(estimator).fit(X)
        with pytest.raises(ValueError, match="sample_weight"):
            fitted.fit(WIDER, sample_weight=[1.0])
        assert fitted.n_features_in_ == 10
        fitted.transform(X)


class TestWarmStart:
    def test_two_short_fits_are_a_long_one(self):
        short = NoisyOrEM(2, max_iter=10, tol=0, warm_start=True, random_state=0)
        short.fit(X)
        first = short.lower_bound_
        short.fit(X)
        assert short.lower_bound_ > first
        long = NoisyOrEM(2, max_iter=20, tol=0, random_state=0).fit(X)
        # The bound is that of the parameters before the last step.
        assert abs(short.score(X) - long.score(X)) < 1e-3

    def test_converged_fit_stays(self):
        model = NoisyOrEM(structure=STRUCTURE, warm_start=True, random_state=0).fit(X)
        before = model.network_
        model.fit(X)
        assert model.converged_
        np.testing.assert_allclose(model.failure_, before.failure, atol=1e-3)

    def test_changed_shape(self):
        model = NoisyOrEM(2, warm_start=True, tol=1e-3, random_state=0).fit(X)
        with pytest.raises(ValueError, match="warm_start must go on"):
            model.fit(WIDER)
        with pytest.raises(ValueError, match="warm_start must go on"):
            model.set_params(n_latents=3).fit(X)

    def test_new_edges_take_part(self):
        model = NoisyOrEM(structure=STRUCTURE, warm_start=True, random_state=0).fit(X)
        wide = STRUCTURE.copy()
        wide[0, 5] = True
        model.set_params(structure=wide).fit(X)
        assert model.failure_[0, 5] != 0.5
        assert (model.failure_[~wide] == 1).all()

    def test_warns_when_stopped_early(self):
        with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
            NoisyOrEM(2, max_iter=1, random_state=0).fit(X)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_an_interrupt_that_became_another_error(estimator, monkeypatch):
    """C code that does not look after an exception raises a SystemError from it."""
    calls = []

    def interrupted_unique(*args, **kwargs):
        calls.append(args)
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            message = "returned a result with an exception set"
            raise SystemError(message) from interrupt

    monkeypatch.setattr(np, "unique", interrupted_unique)
    fresh = copy.deepcopy(estimator)
    try:
        fresh.fit(X)
    except KeyboardInterrupt:
        assert vars(fresh) == vars(estimator)
    else:
        assert not calls


@pytest.mark.parametrize("wrap", ["cause", "context", "both"])
def test_the_interrupt_behind_an_error(wrap):
    def fail():
        try:
            raise KeyboardInterrupt("as it came")
        except KeyboardInterrupt as interrupt:
            if wrap == "context":
                raise TypeError("in between")  # noqa: B904
            raise TypeError("in between") from interrupt

    def fail_again():
        try:
            fail()
        except TypeError as error:
            raise ValueError("at the end") from error

    with (
        pytest.raises(KeyboardInterrupt, match="as it came"),
        all_or_nothing(NoisyOrEM()),
    ):
        fail_again() if wrap == "both" else fail()


def test_errors_that_are_no_interrupts_stay():
    with pytest.raises(ValueError, match="plain") as found, all_or_nothing(NoisyOrEM()):
        try:
            raise TypeError("cause")
        except TypeError as error:
            raise ValueError("plain") from error
    assert isinstance(found.value.__cause__, TypeError)


def test_an_interrupt_before_the_fit_is_not_behind_its_error():
    """Whoever goes on after an interrupt wants to know of other errors."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(ValueError, match="sample_weight"):
            NoisyOrEM().fit(X, sample_weight=[1.0])
