"""The one EM loop: when it ends, and what it returns."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_latent._core.climb import (
    PATIENCE,
    _arrays,
    _Reader,
    _rebuilt,
    climb,
)


def follow(objectives, *, tol, max_iter=1000, **options):
    """Climb along given objectives; the state is the number of M-steps."""
    objectives = np.asarray(objectives, dtype=float)
    return climb(
        lambda step: (objectives[min(step, len(objectives) - 1)], ("statistics", step)),
        lambda step, statistics: step + 1,
        0,
        tol=tol,
        max_iter=max_iter,
        **options,
    )


def saddle(n_steps=200):
    """Objectives that settle, pause near a saddle point, and rise again."""
    time = np.arange(n_steps)
    return -200 * 0.9**time + 50 / (1 + np.exp(-(time - 60) / 8))


class TestEnd:
    def test_linear_convergence_ends(self):
        # Gains fall by a constant factor: the end, a few steps after the tolerance.
        objectives = -(0.5 ** np.arange(100.0))
        ascent = follow(objectives, tol=1e-6)
        first = int(np.flatnonzero(np.diff(objectives) <= 1e-6)[0]) + 1
        assert ascent.converged
        assert first <= ascent.n_iter <= first + PATIENCE

    def test_plateau_does_not_end(self):
        objectives = saddle()
        gains = np.diff(objectives)
        tol = 1.5
        # A rule that looks at one gain alone stops before the second rise.
        early = int(np.flatnonzero(gains <= tol)[0]) + 1
        missed = objectives[-1] - objectives[early]
        assert missed > 40
        ascent = follow(objectives, tol=tol)
        assert ascent.converged
        assert objectives[-1] - ascent.objective < missed / 3

    def test_one_small_step_does_not_end(self):
        objectives = np.cumsum([0, 10, 1e-6, 5, 5, 1e-6, 1e-7, 1e-8, 1e-9])
        ascent = follow(objectives, tol=1e-3)
        assert ascent.objective > 19.9

    def test_growing_gains_do_not_end(self):
        # All gains are below the tolerance, but each is larger than the last.
        ascent = follow(np.cumsum(1.1 ** np.arange(30.0)) * 1e-6, tol=1.0, max_iter=25)
        assert not ascent.converged and ascent.n_iter == 25

    @given(
        st.lists(st.floats(-10, 10), min_size=1, max_size=40),
        st.floats(0, 1),
        st.integers(0, 30),
    )
    def test_laws(self, objectives, tol, max_iter):
        objectives = np.sort(objectives)
        ascent = follow(objectives, tol=tol, max_iter=max_iter)
        assert ascent.n_iter <= max_iter
        assert ascent.converged or ascent.n_iter == max_iter
        assert len(ascent.objectives) == ascent.n_iter + 1
        # State, statistics and objective belong together.
        assert ascent.state == ascent.n_iter
        assert ascent.statistics == ("statistics", ascent.n_iter)
        last = objectives[min(ascent.n_iter, len(objectives) - 1)]
        assert ascent.objective == last
        if ascent.converged:
            tail = np.diff(ascent.objectives)[-PATIENCE:]
            assert len(tail) == PATIENCE and (tail <= max(tol, 1e-12)).all()

    def test_a_constant_ends_at_once(self):
        assert follow([3.0], tol=0.0).n_iter == PATIENCE

    def test_tolerance_zero_goes_on_while_anything_is_gained(self):
        objectives = 1 - 0.5 ** np.arange(200.0)
        ascent = follow(objectives, tol=0.0)
        assert ascent.converged and ascent.objective == pytest.approx(1, abs=1e-13)
        assert ascent.n_iter > 45

    def test_rounding_errors_are_no_gains(self):
        rng = np.random.default_rng(0)
        objectives = -1e6 + 1e-9 * rng.standard_normal(50)
        assert follow(objectives, tol=0.0).n_iter == PATIENCE

    def test_a_falling_objective_ends(self):
        assert follow(-np.arange(20.0), tol=0.0).n_iter == PATIENCE

    def test_minus_infinity(self):
        # Rows that the model rules out, all the time or at the start.
        assert follow([-np.inf], tol=1e-3).n_iter == PATIENCE
        ascent = follow([-np.inf, -np.inf, -5.0, -1.0, -1.0], tol=1e-3)
        assert ascent.objective == -1.0 and ascent.converged

    @pytest.mark.parametrize("shape", [(), (1,), (2,)])
    def test_without_patience_the_first_small_gain_ends(self, shape):
        objectives = np.cumsum([0, 10, 0.5, 20, 30])
        objectives = np.broadcast_to(
            objectives.reshape(-1, *[1] * len(shape)), (5, *shape)
        )
        ascent = follow(objectives, tol=0.5, patient=False)
        assert ascent.converged and ascent.n_iter == 2
        ascent = follow(objectives, tol=0.4, patient=False, max_iter=4)
        assert not ascent.converged and ascent.n_iter == 4
        constant = np.full((1, *shape), -np.inf)
        assert follow(constant, tol=0.5, patient=False).n_iter == 1

    def test_without_patience_all_must_gain_little(self):
        both = np.cumsum([[0, 0], [9, 9], [0.1, 9], [0.1, 0.1], [9, 9]], axis=0)
        assert follow(both, tol=0.5, patient=False).n_iter == 3

    def test_no_step(self):
        ascent = follow([1.0, 2.0], tol=0.0, max_iter=0)
        assert (ascent.n_iter, ascent.state, ascent.converged) == (0, 0, False)


class TestReport:
    def test_sees_every_expectation(self):
        seen = []
        ascent = follow(
            [1.0, 2.0, 3.0], tol=0.0, report=lambda n, value: seen.append((n, value))
        )
        assert seen[:3] == [(0, 1.0), (1, 2.0), (2, 3.0)]
        assert len(seen) == ascent.n_iter + 1 and not ascent.stopped

    def test_stops(self):
        ascent = follow(np.arange(50.0), tol=0.0, report=lambda n, value: n == 4)
        assert ascent.stopped and not ascent.converged and ascent.n_iter == 4


class TestLeaps:
    """Extrapolated statistics: the same optimum, sooner, and never a loss."""

    def mixture(self, **options):
        """EM for the shares of three known, hardly different distributions."""
        rng = np.random.default_rng(0)
        parts = rng.dirichlet(np.full(6, 20.0), size=3)
        counts = 1000 * np.array([0.1, 0.3, 0.6]) @ parts

        def expect(shares):
            joint = shares[:, None] * parts
            total = joint.sum(axis=0)
            return float(counts @ np.log(total)), [joint @ (counts / total)]

        return climb(
            expect,
            lambda _, statistics: statistics[0] / statistics[0].sum(),
            np.full(3, 1 / 3),
            **{"tol": 1e-9, "max_iter": 5000, **options},
        )

    def test_same_optimum_sooner(self):
        plain, fast = self.mixture(), self.mixture(accelerate=True)
        assert plain.converged and fast.converged
        assert fast.objective >= plain.objective - 1e-8
        assert fast.n_iter < plain.n_iter / 3
        np.testing.assert_allclose(fast.state, [0.1, 0.3, 0.6], atol=1e-2)

    def test_objectives_never_fall(self):
        gains = np.diff(self.mixture(accelerate=True, tol=0.0, max_iter=300).objectives)
        assert gains.min() > -1e-9

    def test_every_limit_of_steps_is_kept(self):
        for max_iter in range(8):
            ascent = self.mixture(accelerate=True, max_iter=max_iter)
            assert ascent.n_iter == max_iter == len(ascent.objectives) - 1

    def test_a_leap_that_loses_is_taken_back(self):
        """The objective has a wall that only a leap can cross."""

        def expect(state):
            return (-np.inf if state > 3 else -abs(state - 3)), (np.array([state]),)

        ascent = climb(
            expect,
            lambda _, statistics: float(3 - 0.9 * (3 - statistics[0][0])),
            0.0,
            tol=1e-6,
            max_iter=200,
            accelerate=True,
        )
        assert ascent.converged and np.isfinite(ascent.objectives).all()
        assert ascent.state == pytest.approx(3, abs=1e-4)

    def test_nested_statistics_keep_their_shape(self):
        @dataclass
        class Counts:
            value: float
            tables: list

        counts = Counts(1.5, [np.arange(6.0).reshape(2, 3), np.ones(2)])
        flat = np.concatenate([a.ravel() for a in _arrays(counts)])
        again = _rebuilt(counts, _Reader(2 * flat))
        assert again.value == 1.5  # a single number is no statistic
        for one, two in zip(counts.tables, again.tables, strict=True):
            np.testing.assert_array_equal(2 * one, two)
