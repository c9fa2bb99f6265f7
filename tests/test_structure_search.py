"""Search by likelihood: edges, and how latents come, go, split and unite."""

import numpy as np
import pytest
from beams import EVERYTHING, cases, searched
from brute_force import random_network
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_latent import NoisyOrNetwork, QuartetStructureLearner
from sklearn_latent.datasets import make_noisy_or, make_noisy_or_images
from sklearn_latent.metrics import edge_f1
from sklearn_latent.noisy_or import _beam
from sklearn_latent.noisy_or import _cause_search as _search
from sklearn_latent.noisy_or._beam import FINE, Beam, Width
from sklearn_latent.noisy_or._cause_search import Search
from sklearn_latent.noisy_or._proposals import (
    failure_gains,
    least_gains,
    new_edges,
    propose_children,
    propose_splits,
    residual_dependence,
    weak_edges,
)
from sklearn_latent.noisy_or._statistics.patterns import Patterns


@pytest.fixture(scope="module")
def images():
    return make_noisy_or_images(1000, random_state=0)


def true_parameters(data):
    network = data.network
    return NoisyOrNetwork._of(network.prior, network.failure, network.leak)


def beam_of(parameters, patterns, width=FINE):
    beam = Beam(patterns, parameters.n_latents, width)
    beam.search(parameters)
    return beam


def changed_likelihood(network, X, weights, latent, feature, failure):
    """Log-likelihood with one failure changed, by inference of its own."""
    failures = np.array(network.failure)
    failures[latent, feature] = failure
    other = NoisyOrNetwork(
        network.class_prior,
        failures,
        network.leak,
        class_weight=network.class_weight,
        polarity=network.polarity,
    )
    return weights @ other.log_likelihood(X)


class TestEdges:
    FAILURES = (0.1, 0.6, 1.0)

    def assert_exact(self, network, X):
        beam = searched(network, X)
        latents, features = np.indices(network.failure.shape).reshape(2, -1)
        gains = failure_gains(beam, latents, features, self.FAILURES)
        weights = beam.patterns.weights
        before = weights @ network.log_likelihood(X)
        for value, row in zip(self.FAILURES, gains, strict=True):
            for latent, feature, gain in zip(latents, features, row, strict=True):
                after = changed_likelihood(network, X, weights, latent, feature, value)
                assert gain == pytest.approx(after - before, rel=1e-6, abs=1e-6)

    @settings(max_examples=15, deadline=None)
    @given(cases(n_latents=(1, 4), n_features=(1, 5), n_classes=(1, 2)))
    def test_gains_are_differences_of_likelihoods(self, case):
        self.assert_exact(*case)

    @pytest.mark.parametrize("missing", [0.0, 0.3])
    def test_rows_may_lie_in_two_chunks(self, missing, monkeypatch):
        """Of 128 states of a row, chunks hold 64."""
        network = random_network(4, 7, 4, density=0.5, n_classes=1)
        X = network.sample(15, random_state=0)[0] * 1.0
        X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
        monkeypatch.setattr(_beam, "CHUNK_ELEMENTS", 1)
        self.assert_exact(network, X)

    @settings(max_examples=25, deadline=None)
    @given(
        cases(n_latents=(1, 4), n_features=(1, 5), n_classes=(1, 2)),
        st.floats(0.1, 0.9),
    )
    def test_bounds_are_below_the_gains(self, case, failure):
        """And equal to them if a row has one state only."""
        network, X = case
        latents, features = np.nonzero(~network.structure)
        for width in (EVERYTHING, Width(1e-2, 1e-2, 1)):
            beam = searched(network, X, width)
            bounds = least_gains(beam, beam.expect(), failure)[latents, features]
            gains = failure_gains(beam, latents, features, (failure,))[0]
            assert (bounds <= gains + 1e-8).all()
            if width.most == 1:
                np.testing.assert_allclose(bounds, gains, atol=1e-8)


class TestBirths:
    @pytest.mark.parametrize("missing", [0.0, 0.2])
    def test_children_of_a_deleted_latent_are_proposed(self, missing):
        data = make_noisy_or_images(2000, random_state=0)
        X = data.X.astype(float)
        X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
        truth = true_parameters(data)
        for latent in (0, 2, 5):
            rest = truth._keep(np.arange(8) != latent)
            found = Search(Patterns.of(X))
            found.beam.add(7)
            fitted = found.fit(rest)
            assert fitted.parameters.n_latents == 7
            children = propose_children(residual_dependence(found.beam), 1)
            alike = edge_f1(truth.structure[[latent]], children)
            assert alike > 0.5, (latent, alike)

    def test_constant_features_have_no_residual(self):
        X = np.random.default_rng(0).random((200, 5)) < 0.5
        X[:, 0], X[:, 1] = False, True
        parameters = NoisyOrNetwork._independent(
            np.clip(X.mean(axis=0), 1e-6, 1 - 1e-6)
        )
        z = residual_dependence(beam_of(parameters, Patterns.of(X)))
        assert np.isfinite(z).all()
        np.testing.assert_array_equal(z[:2], 0)

    def test_groups_come_strongest_first_and_once(self):
        z = np.zeros((10, 10))
        z[:4, :4], z[5:9, 5:9] = 6.0, 9.0
        np.fill_diagonal(z, 0.0)
        children = propose_children(z, 5)
        assert [np.flatnonzero(row).tolist() for row in children] == [
            [5, 6, 7, 8],
            [0, 1, 2, 3],
        ]
        assert len(propose_children(z, 1)) == 1

    def test_pairs_and_weak_groups_are_no_latents(self):
        z = np.zeros((6, 6))
        z[0, 1] = z[1, 0] = 20.0
        z[2:, 2:] = 2.0
        np.fill_diagonal(z, 0.0)
        assert propose_children(z, 5).shape == (0, 6)


def united(truth, one, two):
    """A network with one latent in place of two."""
    failure, prior = np.array(truth.failure), np.array(truth.class_prior)
    failure[one] = np.minimum(failure[one], failure[two])
    prior[:, one] += prior[:, two]
    kept = np.arange(len(failure)) != two
    return truth._with(failure=failure, class_prior=prior)._keep(kept)


class TestSplits:
    @pytest.mark.parametrize("missing", [0.0, 0.2])
    def test_a_latent_that_stands_for_two_is_split(self, missing):
        structure = np.zeros((4, 25), dtype=bool)
        for latent, children in enumerate(structure):
            children[6 * latent : 6 * latent + 7] = True
        data = make_noisy_or(structure, 2000, random_state=0)
        X = data.X.astype(float)
        X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
        for one, two in ((0, 1), (1, 3)):
            search = Search(Patterns.of(X))
            search.beam.add(3)
            search.fit(united(true_parameters(data), one, two), search=True)
            ((latent, side),) = propose_splits(search.beam)
            assert latent == one
            children = structure[one] ^ structure[two]
            assert (
                edge_f1(structure[[one, two]], np.array([side, children & ~side])) > 0.9
            )

    def test_both_are_found(self, images):
        truth = true_parameters(images)
        search = Search(Patterns.of(images.X == 1))
        found = search.run(united(truth, 2, 5)).parameters
        assert found.n_latents == 8
        assert edge_f1(truth.structure, found.structure) > 0.98

    def test_few_children_are_not_split(self):
        """Half of them would be a pair."""
        rng = np.random.default_rng(0)
        cause = rng.random((3000, 2)) < 0.3
        X = np.repeat(cause, [3, 2], axis=1)
        X ^= rng.random(X.shape) < 0.05
        one = NoisyOrNetwork._of([0.5], np.full((1, 5), 0.4), np.full(5, 0.05))
        assert not propose_splits(beam_of(one, Patterns.of(X)))
        more = np.hstack([X, cause[:, [1]]])
        one = NoisyOrNetwork._of([0.5], np.full((1, 6), 0.4), np.full(6, 0.05))
        (split,) = propose_splits(beam_of(one, Patterns.of(more)))
        side = split.side[0]
        np.testing.assert_array_equal(split.side, [side] * 3 + [not side] * 3)


class TestSearch:
    def search(self, X, n_latents):
        search = Search(Patterns.of(X))
        search.beam.add(n_latents)
        return search

    def test_deletion_loss_is_the_difference_of_likelihoods(self, images):
        truth = true_parameters(images)
        patterns = Patterns.of(images.X[:100] == 1)
        search = Search(patterns)
        search.beam = beam_of(truth, patterns, EVERYTHING)
        losses = search.deletion_losses(truth)
        full = patterns.weights @ search.beam.log_likelihood
        for latent in range(8):
            rest = truth._keep(np.arange(8) != latent)
            less = patterns.weights @ rest.log_likelihood(patterns.on)
            assert losses[latent] == pytest.approx(full - less, rel=1e-6)

    def test_the_truth_stays(self, images):
        """Residuals are noise; two rare leaks in a row are no cause."""
        truth = true_parameters(images)
        search = self.search(images.X == 1, 8)
        right = search.settle(truth)
        np.testing.assert_array_equal(right.parameters.structure, truth.structure)
        assert search._prune(right) is search._merge(right) is right
        z = residual_dependence(search.beam)[np.triu_indices(64, 1)]
        assert abs(z.mean()) < 0.1
        assert z.std() < 1.1
        assert not propose_splits(search.beam)
        found = Search(Patterns.of(images.X == 1)).run(truth).parameters
        np.testing.assert_array_equal(found.structure, truth.structure)

    @pytest.mark.parametrize(
        ("children", "failure", "prior"),
        [([0, 9, 20, 40], 0.5, 0.1), ([0, 9], 0.1, 0.2)],
    )
    def test_latents_that_add_nothing_are_dropped(
        self, images, children, failure, prior
    ):
        truth, row = true_parameters(images), np.ones((1, 64))
        row[0, children] = failure
        search = self.search(images.X == 1, 9)
        kept = search._prune(search.settle(truth._with_latents(prior, row)))
        np.testing.assert_array_equal(kept.parameters.structure, truth.structure)

    def test_missing_and_false_edges_are_repaired(self, images):
        truth = true_parameters(images)
        failure = np.array(truth.failure)
        lost = np.flatnonzero(failure[0] < 1)[:2]
        false = int(np.flatnonzero(failure[1] == 1)[-1])
        failure[0, lost], failure[1, false] = 1.0, 0.9
        search = self.search(images.X == 1, 8)
        wrong = truth._with(failure=failure)
        search.beam.search(wrong)
        weak = np.argwhere(weak_edges(search.beam, wrong, 0.5 * np.log(1000)))
        np.testing.assert_array_equal(weak, [[1, false]])
        new = new_edges(search.beam, wrong, search.beam.expect(), np.log(1000))
        # Other latents may take them, too, but none more than the right one.
        assert (new[0, lost] < 1).all()
        assert set(np.nonzero(new < 1)[1]) == set(lost)
        fitted = search.settle(wrong)
        np.testing.assert_array_equal(fitted.parameters.structure, truth.structure)

    def test_halves_are_united(self, images):
        truth = true_parameters(images)
        halves = np.vstack([truth.failure[:1], truth.failure])
        halves[0, ::2] = 1.0
        halves[1, 1::2] = 1.0
        start = NoisyOrNetwork._of(np.full(9, 0.25), halves, truth.leak)
        search = self.search(images.X == 1, 9)
        united = search._merge(search.settle(start)).parameters
        assert united.n_latents == 8
        assert edge_f1(truth.structure, united.structure) == 1.0

    def test_what_two_latents_have_in_common_is_handed_over(self):
        """A third latent that stands for either of two explains their common part."""
        structure = np.zeros((2, 16), dtype=bool)
        structure[0, :10], structure[1, 6:] = True, True
        data = make_noisy_or(
            structure, 2000, prior=0.25, failure=0.1, leak=0.01, random_state=0
        )
        parts = np.zeros((3, 16), dtype=bool)
        parts[0, :6], parts[1, 6:10], parts[2, 10:] = True, True, True
        start = NoisyOrNetwork._of(
            np.array([0.25, 0.44, 0.25]), np.where(parts, 0.1, 1.0), data.network.leak
        )
        search = self.search(data.X == 1, 3)
        found = search._merge(search.settle(start)).parameters
        assert edge_f1(structure, found.structure) == 1.0

    def test_no_latent_is_left_alone(self):
        X = np.random.default_rng(0).random((300, 8)) < 0.3
        nothing = NoisyOrNetwork._independent(np.full(8, 0.3))
        fitted = Search(Patterns.of(X)).run(nothing)
        assert fitted.parameters.n_latents == 0
        np.testing.assert_allclose(fitted.parameters.leak, X.mean(axis=0), atol=1e-6)

    def test_latents_are_born_one_after_another(self, images):
        truth = true_parameters(images)
        start = NoisyOrNetwork._independent(images.X.mean(axis=0))
        found = Search(Patterns.of(images.X == 1)).run(start).parameters
        assert found.n_latents == 8
        assert edge_f1(truth.structure, found.structure) == 1.0

    def test_a_change_never_lowers_the_score(self, images, monkeypatch):
        """What is not better is undone, with the states that belong to it."""
        search = self.search(images.X == 1, 7)
        before = search.settle(true_parameters(images)._keep(np.arange(7)))
        value = search.patterns.weights @ search.beam.log_likelihood
        monkeypatch.setattr(_search, "START_PRIOR", 1e-6)
        worse = before._replace(score=-np.inf)
        monkeypatch.setattr(search, "_improve", lambda _: worse)
        after = search._grow(before, 1)
        assert after is before
        assert search.beam.states.shape[1] == 7
        assert search.beam.update(before.parameters) >= value - 1e-6 * abs(value)

    def test_report_ends_the_search(self, images):
        calls = []

        def report(parameters):
            calls.append(parameters.n_latents)
            return True

        search = Search(Patterns.of(images.X == 1), report)
        search.run(true_parameters(images)._keep([0, 1]))
        assert len(calls) == 1


def test_unlikely_rows_show_latents_with_the_same_children():
    """No set of children can tell two latents over all features apart."""
    rng = np.random.RandomState(0)
    truth = NoisyOrNetwork([0.3, 0.4], rng.uniform(0.05, 0.9, (2, 12)), [0.02] * 12)
    X, _ = truth.sample(5000, random_state=0)
    learner = QuartetStructureLearner().fit(X)
    assert learner.n_latents_ == 2
    held_out, _ = truth.sample(5000, random_state=1)
    assert learner.score(held_out) > truth.log_likelihood(held_out).mean() - 0.01
