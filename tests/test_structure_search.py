"""Search by likelihood: evidence of edges, losses by deletion, proposals."""

import numpy as np
import pytest

from sklearn_latent import (
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent.datasets import (
    image_sources,
    make_noisy_or_images,
)
from sklearn_latent.noisy_or._statistics.patterns import Patterns
from sklearn_latent.noisy_or._statistics.rows import BlockMoments
from sklearn_latent.noisy_or._structure_search import proposals as _proposals
from sklearn_latent.noisy_or._structure_search import search as _search
from sklearn_latent.noisy_or._structure_search.coupling import Triplets
from sklearn_latent.noisy_or._structure_search.evidence import Likelihood
from sklearn_latent.noisy_or._structure_search.smoothed import (
    Model,
    deletion_losses,
    edge_evidence,
)


@pytest.fixture(scope="module")
def images():
    return make_noisy_or_images(1000, random_state=0)


def true_model(data):
    return Model(data.network.prior, data.network.failure, data.network.leak)


def test_deletion_loss_is_the_difference_of_likelihoods(images):
    patterns = Patterns.of(images.X == 1)
    losses = deletion_losses(true_model(images), patterns)
    full = images.network.log_likelihood(images.X).sum()
    for latent in (0, 5):
        keep = np.arange(8) != latent
        part = true_model(images).keep(keep)
        less = NoisyOrNetwork(*part[:3]).log_likelihood(images.X).sum()
        assert losses[latent] == pytest.approx(full - less, rel=1e-6)


def test_edge_evidence_is_the_gradient(images):
    network = images.network
    slope, information = edge_evidence(true_model(images), Patterns.of(images.X == 1))
    for latent, feature in [(0, 3), (2, 0), (4, 30)]:
        failure = np.array(network.failure)
        values = []
        start = min(failure[latent, feature], 1 - 2e-6)
        for step in (-1e-6, 1e-6):
            failure[latent, feature] = start + step
            moved = NoisyOrNetwork(network.prior, failure, network.leak)
            values.append(moved.log_likelihood(images.X).sum())
        slope_there = (values[1] - values[0]) / 2e-6
        assert slope[latent, feature] == pytest.approx(slope_there, rel=1e-3, abs=0.05)
    assert (information >= 0).all()


def test_search_repairs_missing_and_false_edges_and_halves(images):
    patterns = Patterns.of(images.X == 1)
    likelihood = Likelihood(patterns, np.random.RandomState(0))
    model = true_model(images)
    failure = np.array(model.failure)
    failure[0, np.flatnonzero(failure[0] < 1)[:3]] = 1.0
    failure[1, 60] = 0.8
    broken = likelihood.fit(model._replace(failure=failure))
    repaired = _search.change_edges(broken, likelihood)
    np.testing.assert_array_equal(repaired.structure, model.structure)

    halves = np.vstack([failure[:1], failure])
    halves[0, ::2] = 1.0
    halves[1, 1::2] = 1.0
    double = Model(np.full(9, 0.25), halves, model.leak)
    united = _search.merge_latents(likelihood.fit(double), likelihood)
    assert len(united.prior) == 8


def test_unlikely_rows_show_latents_with_the_same_children():
    """No set of children can tell two latents over all features apart."""
    rng = np.random.RandomState(0)
    truth = NoisyOrNetwork([0.3, 0.4], rng.uniform(0.05, 0.9, (2, 12)), [0.02] * 12)
    X, _ = truth.sample(5000, random_state=0)
    learner = QuartetStructureLearner().fit(X)
    assert learner.n_latents_ == 2
    held_out, _ = truth.sample(5000, random_state=1)
    assert learner.score(held_out) > truth.log_likelihood(held_out).mean() - 0.01


def test_cover_takes_no_proposal_twice(images):
    source = BlockMoments.of_patterns(Patterns.of(images.X == 1))
    proposals = _search.first_proposals(source, np.repeat(image_sources(), 2, axis=0))
    assert len(proposals) in range(8, 11)


class TestVotes:
    def elect(self, votes, weight):
        return _proposals._elect(np.array(votes, dtype=bool), np.array(weight))

    def test_like_votes_are_one_set_by_majority(self):
        votes = [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0]]
        elected = self.elect(votes, [1.0, 1.0, 1.0])
        np.testing.assert_array_equal(elected, [[1, 1, 1, 1, 0, 0]])
        # A heavier vote is a majority.
        elected = self.elect(votes, [1.0, 1.0, 3.0])
        np.testing.assert_array_equal(elected, [[1, 1, 1, 0, 0, 0]])

    def test_unlike_votes_stay_apart_and_the_largest_comes_first(self):
        one, two = [1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1]
        elected = self.elect([one, one, two, two, two], np.ones(5))
        np.testing.assert_array_equal(elected, [two, one])

    def test_one_vote_is_not_enough(self):
        one, two = [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]
        elected = self.elect([one, one, two], np.ones(3))
        np.testing.assert_array_equal(elected, [one])

    def test_sets_must_hang_together(self):
        """Two triplets that share a pair are no set of four."""
        loose = Triplets(np.array([[0, 1, 2], [0, 1, 3]]), np.ones(2))
        children = _proposals.propose_children(loose, 5)
        assert children.sum(axis=1).tolist() == [3, 3]
        all_four = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])
        tight = _proposals.propose_children(Triplets(all_four, np.ones(4)), 5)
        np.testing.assert_array_equal(tight, [[1, 1, 1, 1, 0]])

    def test_the_strongest_features_take_part(self, monkeypatch):
        sets = np.array([[0, 1, 2], [3, 4, 5]])
        triplets = Triplets(sets, np.array([1.0, 5.0]))
        assert len(_proposals.propose_children(triplets, 6)) == 2
        monkeypatch.setattr(_proposals, "MAX_FEATURES", 3)
        found = _proposals.propose_children(triplets, 6)
        np.testing.assert_array_equal(found, [[0, 0, 0, 1, 1, 1]])


def test_cover_needs_a_share_of_new_triplets():
    sets = np.array([[0, 1, k] for k in range(2, 12)])
    triplets = Triplets(sets, np.ones(len(sets)))
    proposals = np.zeros((3, 12), dtype=bool)
    proposals[0, :11] = True  # nine of the ten
    proposals[1] = True  # all ten: one is new, a tenth
    proposals[2, [0, 1, 11]] = True  # the last one alone
    chosen = _search.cover(proposals, triplets)
    np.testing.assert_array_equal(chosen, proposals[[0, 2]])


class TestStops:
    """When the search ends, and what it may not do."""

    @pytest.fixture
    def likelihood(self, images):
        return Likelihood(Patterns.of(images.X == 1), np.random.RandomState(0))

    def test_no_latent_is_left_alone(self, likelihood):
        nothing = Model(np.zeros(0), np.ones((0, 64)), np.full(64, 0.1))
        assert _search.change_edges(nothing, likelihood) is nothing
        assert _search.prune_latents(nothing, likelihood) is nothing
        assert _search.merge_latents(nothing, likelihood) is nothing

    def test_latents_of_two_features_are_dropped(self, images, likelihood):
        model = true_model(images)
        failure = np.vstack([model.failure, np.ones(64)])
        failure[-1, [0, 9]] = 0.1
        grown = Model(np.append(model.prior, 0.2), failure, model.leak)
        kept = _search.prune_latents(likelihood.fit(grown), likelihood)
        assert len(kept.prior) == 8
        assert (kept.structure.sum(axis=1) >= 3).all()

    def test_latents_of_three_features_may_stay(self):
        network = NoisyOrNetwork([0.3], [[0.1, 0.1, 0.1]], [0.01] * 3)
        X, _ = network.sample(500, random_state=0)
        likelihood = Likelihood(Patterns.of(X), np.random.RandomState(0))
        model = likelihood.fit(Model(network.prior, network.failure, network.leak))
        assert _search.prune_latents(model, likelihood) is model

    def test_a_model_that_is_right_stays(self, images, likelihood):
        right = likelihood.fit(true_model(images))
        assert _search.change_edges(right, likelihood) is right
        assert _search.prune_latents(right, likelihood) is right
        assert _search.merge_latents(right, likelihood) is right

    def test_edges_do_not_couple_too_many(self, images, likelihood, monkeypatch):
        model = true_model(images)
        failure = np.array(model.failure)
        failure[0, np.flatnonzero(failure[0] < 1)[:3]] = 1.0
        broken = likelihood.fit(model._replace(failure=failure))
        monkeypatch.setattr(_search, "MAX_COUPLED", 0)
        kept = _search.change_edges(broken, likelihood)
        assert (kept.structure <= broken.structure).all()
        assert not len(_search._those_with_room(broken, model.structure))

    def test_report_ends_the_search(self, images, likelihood):
        source = BlockMoments.of_patterns(likelihood.patterns)
        calls = []

        def report(model):
            calls.append(len(model.prior))
            return True

        _search.search_latents(
            source, likelihood, images.network.structure[:2], report=report
        )
        assert len(calls) == 1


def test_batches_wait_for_the_search(images):
    learner = QuartetStructureLearner().partial_fit(images.X[:300], update=False)
    assert not hasattr(learner, "network_")
    learner.partial_fit(images.X[300:])
    assert learner.n_latents_ == 8
