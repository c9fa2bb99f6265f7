"""Clean-up and schedules, branch by branch: what is supposed, and what counts."""

import numpy as np
import pytest
from exact_moments import exact_moments
from scipy.special import expit, logit

from sklearn_latent import NoisyOrNetwork
from sklearn_latent.noisy_or import find_schedule
from sklearn_latent.noisy_or._parameters import cleanup, solve
from sklearn_latent.noisy_or._parameters.cleanup import Piece, plan_clean_up
from sklearn_latent.noisy_or._parameters.plan import Plan
from sklearn_latent.noisy_or._parameters.solve import Estimates, solve_schedule

# Two parents that share all children but one each: no triplet is singly coupled.
SHARED = np.array([[1, 1, 1, 1, 1, 0], [0, 1, 1, 1, 1, 1]], dtype=bool)
TWINS = np.ones((2, 6), dtype=bool)


def hypotheses(structure, known=None):
    known = np.zeros_like(structure) if known is None else known
    return cleanup._hypotheses(structure, known)


class TestAnchors:
    def test_edges_with_most_open_siblings_come_first(self):
        # They are the children of one parent alone.
        assert hypotheses(SHARED)[:2] == [(0, 0), (1, 5)]

    def test_known_edges_are_not_supposed(self):
        known = np.zeros_like(SHARED)
        known[0, 0] = True
        assert (0, 0) not in hypotheses(SHARED, known)
        assert (1, 5) in hypotheses(SHARED, known)

    def test_edges_without_open_siblings_are_not_supposed(self):
        assert hypotheses(TWINS) == []

    def test_limits(self, monkeypatch):
        assert max(np.bincount([i for i, _ in hypotheses(SHARED)])) <= 3
        monkeypatch.setattr(cleanup, "ANCHORS_PER_LATENT", 1)
        assert hypotheses(SHARED) == [(0, 0), (1, 5)]
        monkeypatch.setattr(cleanup, "HYPOTHESES_TRIED", 1)
        assert hypotheses(SHARED) == [(0, 0)]

    def test_one_anchor_unlocks_everything(self):
        plan = plan_clean_up(find_schedule(SHARED))
        (piece,) = plan.pieces
        assert piece.anchor == (0, 0)
        np.testing.assert_array_equal(piece.free_edge, SHARED)
        assert piece.free_prior.all()
        # The anchor itself is supposed, not scheduled.
        assert np.isnan(piece.schedule.depth[piece.anchor])
        assert np.isfinite(piece.schedule.depth[1, 5])

    def test_the_anchor_that_unlocks_most_is_taken(self):
        """A third parent apart makes a smaller gain, and comes second."""
        structure = np.zeros((4, 10), dtype=bool)
        structure[:2, :6] = SHARED
        structure[2, 6:9] = structure[3, 7:] = True
        plan = plan_clean_up(find_schedule(structure))
        gains = [int(piece.free_edge.sum()) for piece in plan.pieces]
        assert gains[0] == SHARED.sum()
        assert sum(gains) == structure.sum()
        taken = np.sum([piece.free_edge for piece in plan.pieces], axis=0)
        np.testing.assert_array_equal(taken, plan.structure)

    def test_twins_have_no_anchor(self):
        (piece,) = plan_clean_up(find_schedule(TWINS)).pieces
        assert piece.anchor is None
        assert piece.schedule is None
        assert piece.free_edge.all()
        assert piece.free_prior.all()

    def test_a_prior_that_is_known_stays(self):
        known = np.zeros_like(SHARED)
        known[0, 0] = True
        piece = cleanup._next_piece(SHARED, known)
        assert piece.free_prior.tolist() == [False, True]
        assert not piece.free_edge[0, 0]
        assert (piece.free_edge | known == SHARED).all()


class TestStarts:
    def starts(self, piece, network):
        estimates = Estimates.unknown(SHARED, 0)
        estimates.prior[:] = network.prior
        plan = Plan.of(SHARED)
        moments = exact_moments(network, plan.sets)
        return list(cleanup._starts(moments, estimates, piece))

    @pytest.fixture
    def network(self):
        failure = np.where(SHARED, np.linspace(0.2, 0.7, 6), 1.0)
        return NoisyOrNetwork([0.3, 0.4], failure, np.full(6, 0.05))

    def test_grid_over_prior_and_failure(self, network):
        (piece,) = plan_clean_up(find_schedule(SHARED)).pieces
        starts = self.starts(piece, network)
        assert len(starts) == len(cleanup.GRID_PRIOR) * len(cleanup.GRID_FAILURE)
        cells = {(prior[0], failure[0, 0]) for prior, failure in starts}
        assert len(cells) == len(starts)

    def test_a_known_prior_leaves_the_failures(self, network):
        (piece,) = plan_clean_up(find_schedule(SHARED)).pieces
        fixed = Piece(
            piece.anchor,
            piece.schedule,
            np.array([False, True]),
            piece.free_edge,
            piece.sets,
        )
        starts = self.starts(fixed, network)
        assert len(starts) == len(cleanup.GRID_FAILURE)
        assert {prior[0] for prior, _ in starts} == {0.3}

    def test_random_starts_move_what_is_free_alone(self, network):
        free = SHARED.copy()
        free[0] = False
        piece = Piece(None, None, np.array([False, True]), free, np.zeros((0, 3)))
        starts = self.starts(piece, network)
        assert len(starts) == cleanup.RANDOM_STARTS
        assert {prior[0] for prior, _ in starts} == {0.3}
        assert len({prior[1] for prior, _ in starts}) == len(starts)
        for prior, failure in starts:
            assert 0.1 <= prior[1] <= 0.6
            assert np.isnan(failure[0, SHARED[0]]).all()
            assert (
                (failure[1, SHARED[1]] >= 0.2) & (failure[1, SHARED[1]] <= 0.8)
            ).all()

    def test_exact_moments_give_the_truth(self, network):
        schedule = find_schedule(SHARED)
        moments = exact_moments(network, Plan.of(SHARED).sets)
        estimates = solve_schedule(moments, schedule)
        cleanup.clean_up(moments, estimates, plan_clean_up(schedule))
        np.testing.assert_allclose(estimates.prior, network.prior, atol=1e-3)
        np.testing.assert_allclose(estimates.failure, network.failure, atol=1e-3)


class TestCombination:
    PARAMETER = np.array([0, 0, 1, 1, -1])
    VARIANCE = np.array([1.0, 3.0, np.nan, 2.0, 1.0])
    VALID = np.array([True, True, True, True, True])

    def weights(self, valid=VALID, variance=VARIANCE, combine=True):
        return solve._combining_weights(
            self.PARAMETER, variance, valid, 3, combine
        ).toarray()

    def test_inverse_variances(self):
        expected = [[0.75, 0.25, 0, 0, 0], [0, 0, 0, 1, 0], [0] * 5]
        np.testing.assert_allclose(self.weights(), expected)

    def test_as_published_the_first_valid_estimate_counts(self):
        found = self.weights(combine=False)
        np.testing.assert_array_equal(found[:2], [[1, 0, 0, 0, 0], [0, 0, 0, 1, 0]])
        valid = np.array([False, True, True, True, True])
        found = self.weights(valid, combine=False)
        np.testing.assert_array_equal(found[0], [0, 1, 0, 0, 0])

    def test_variances_of_exact_moments_do_not_divide_by_zero(self):
        found = self.weights(variance=np.array([0.0, 1.0, 0.0, 0.0, 0.0]))
        np.testing.assert_allclose(found[0], [1, 0, 0, 0, 0], atol=1e-12)
        np.testing.assert_allclose(found[1], [0, 0, 0.5, 0.5, 0])

    def learn(self, values, variance, combine=True):
        """One latent with two edges; the second edge gets no estimate."""
        estimates = Estimates.unknown(np.ones((1, 2), dtype=bool), 0)
        result = (
            np.array([[0, 1], [0, 1]]),
            np.array(values),
            np.array(variance),
            np.ones((2, 2), dtype=bool),
            None,
        )
        learned = solve._learn(estimates, np.ones(3, dtype=bool), [result], combine)
        return learned, estimates

    def test_priors_are_combined_on_the_logit_scale(self):
        learned, estimates = self.learn(
            [[0.2, 0.4], [0.4, 0.6]], [[0.01, 0.01], [0.01, 0.01]]
        )
        precision = np.array([0.2 * 0.8, 0.4 * 0.6]) ** 2
        mean = precision @ logit([0.2, 0.4]) / precision.sum()
        assert learned[0] == pytest.approx(expit(mean))
        assert learned[1] == pytest.approx(0.5)
        assert estimates.prior[0] == learned[0]

    def test_what_has_no_support_has_no_effect(self):
        learned, estimates = self.learn(
            [[0.2, 0.4], [0.4, 0.6]], np.full((2, 2), np.nan)
        )
        assert learned[0] == 0.5
        assert learned[1] == pytest.approx(1.0, abs=2e-6)
        assert not estimates.supported.any()
        learned, estimates = self.learn([[0.2, 0.4], [0.4, 0.6]], np.ones((2, 2)))
        assert estimates.supported.tolist() == [True, True, False]
        assert learned[2] == pytest.approx(1.0, abs=2e-6)

    def test_published_values_are_not_mixed(self):
        learned, _ = self.learn(
            [[0.2, 0.4], [0.4, 0.6]], np.ones((2, 2)), combine=False
        )
        np.testing.assert_allclose(learned[:2], [0.2, 0.4])


def test_a_known_prior_is_not_learned_again():
    network = NoisyOrNetwork([0.3], [[0.2, 0.4, 0.5]], [0.01] * 3)
    structure = np.ones((1, 3), dtype=bool)
    schedule = find_schedule(structure)
    moments = exact_moments(network, Plan.of(structure).sets)
    estimates = Estimates.unknown(structure, len(moments.sets))
    estimates.prior[0] = 0.9
    found = solve_schedule(moments, schedule, estimates=estimates)
    assert found.prior[0] == 0.9
    np.testing.assert_allclose(found.failure, network.failure, atol=1e-6)


def test_features_never_seen_together_do_not_count():
    """Of two triplets, the one without rows has no variance and no weight."""
    network = NoisyOrNetwork([0.3], [[0.2, 0.4, 0.5, 0.6]], [0.01] * 4)
    structure = np.ones((1, 4), dtype=bool)
    plan = Plan.of(structure)
    moments = exact_moments(network, plan.sets)
    gone = (moments.sets == 3).any(axis=1) & ((moments.sets >= 0).sum(axis=1) > 1)
    moments.total[gone] = moments.off[gone] = 0.0
    found = solve_schedule(moments, plan.schedule)
    np.testing.assert_allclose(found.failure[0, :3], network.failure[0, :3], atol=1e-6)
    assert found.prior[0] == pytest.approx(0.3, abs=1e-6)
    assert found.failure[0, 3] == pytest.approx(1.0, abs=2e-6)
    assert not found.supported[4]
