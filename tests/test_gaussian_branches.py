"""Control flow of the Gaussian searches: when they stop, and what they try before."""

from copy import copy
from types import SimpleNamespace

import numpy as np
import pytest
from gaussian_strategies import free_options
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.gaussian import GaussianNetwork
from sklearn_latent.gaussian import _latent_placement as search_module
from sklearn_latent.gaussian import _structural_em as em_module
from sklearn_latent.gaussian._bent_em import NonlinearEM, bent_network
from sklearn_latent.gaussian._bent_inference import MeanField
from sklearn_latent.gaussian._conditional import IncompleteData
from sklearn_latent.gaussian._latent_likelihood import fit_point
from sklearn_latent.gaussian._latent_placement import LatentSearch
from sklearn_latent.gaussian._latent_placement import _same_edges as same_edges
from sklearn_latent.gaussian._linear_scores import LinearEvaluator
from sklearn_latent.gaussian._paper_latents import (
    Cluster,
    profile_correlation,
    with_cluster,
)
from sklearn_latent.gaussian._statistics import GaussianStatistics
from sklearn_latent.gaussian._structural_em import (
    StructuralEM,
    drop_latents,
    fit_parameters,
)


def make_em(X, weights=None, **options):
    setting = free_options(X.shape[1], **options)
    return StructuralEM(IncompleteData.of(X, weights), setting)


def make_search(X, **options):
    return LatentSearch(make_em(X, **options), GaussianStatistics.of(X))


def fitted(em, adjacency):
    n = len(adjacency)
    own = 0.5 * adjacency, np.zeros(n), np.ones(n)
    return fit_parameters(em.data, GaussianNetwork(adjacency, *own)).network


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 5)) + np.arange(5)


class TestPaper:
    def test_profiles_of_weighted_rows(self, X):
        weights = np.arange(40) % 3 + 1.0
        chain = np.eye(5, k=1, dtype=bool)
        weighted = make_em(X, weights)
        repeated = make_em(X.repeat(weights.astype(int), axis=0))
        found = [
            profile_correlation(em, fitted(em, chain)) for em in (weighted, repeated)
        ]
        assert_allclose(*found, atol=1e-9)

    def test_a_new_latent_keeps_the_variance_of_its_children(self, X):
        em = make_em(X, max_latents=1, max_parents=1)
        chain = np.zeros((5, 5), dtype=bool)
        chain[0, 1] = True
        network = fitted(em, chain)
        direction = np.array([0.8, 0.0, 0.6])
        grown = with_cluster(
            em, network, Cluster(np.array([0, 1, 3]), direction, 5.0, 1.0)
        )
        assert grown.n_latents == 1
        # Feature 1 has as many parents as it may have.
        assert np.flatnonzero(grown.adjacency[5]).tolist() == [0, 3]
        before = network.noise_variance
        expected = 2.0 * direction[[0, 2]] * np.sqrt(before[[0, 3]])
        assert_allclose(grown.weights[5, [0, 3]], expected)
        left = before[[0, 3]] / (1 + expected**2 / before[[0, 3]])
        assert_allclose(grown.noise_variance[[0, 3]], left)
        assert_allclose(grown.noise_variance[[1, 2, 4]], before[[1, 2, 4]])
        assert (grown.noise_variance[5], grown.intercept[5]) == (1.0, 0.0)

    def drop(self, gains, stop_after=None):
        """Drop some of three latents, the last the weakest; scores come in turn."""
        tried = []
        em = SimpleNamespace(tol=1e-3, history=[], stopped=False)
        weights = np.zeros((5, 5))
        weights[2:, 0] = [3, 2, 1]
        own = np.zeros(5), np.ones(5)
        first = GaussianNetwork(weights != 0, weights, *own, n_latents=3)

        def without(state, latent):
            tried.append(latent)
            em.stopped = len(tried) == stop_after
            gain = gains[len(tried) - 1]
            return SimpleNamespace(network=state.network._without([latent]), score=gain)

        start = SimpleNamespace(network=first, score=0.0)
        found = drop_latents(em, start, without, lambda state: state.score)
        return found.network.n_latents, tried, em.history

    def test_latents_are_dropped_the_weakest_first(self):
        assert self.drop([-1.0, -1.0, -1.0]) == (3, [2, 1, 0], [])

    def test_dropping_goes_on_from_what_is_left(self):
        history = [(("drop latent", 2), 2.0)]
        assert self.drop([2.0, 1.0, 1.0]) == (2, [2, 1, 0], history)

    def test_a_gain_below_the_tolerance_is_none(self):
        assert self.drop([1e-3, 0.0, 0.0])[0] == 3
        assert self.drop([1.1e-3, 0.0, 0.0])[0] == 2

    def test_dropping_may_be_stopped(self):
        assert len(self.drop([-1.0, -1.0, -1.0], stop_after=2)[1]) == 2


class TestPlacement:
    @pytest.mark.parametrize("improvements", [0, 1, 3])
    def test_changes_end_when_none_improves(self, X, monkeypatch, improvements):
        search = make_search(X, max_latents=1)
        calls = []

        def changed(model, kind, starts):
            calls.append(kind)
            return copy(model) if len(calls) <= improvements else model

        monkeypatch.setattr(search, "settle", lambda model: model)
        monkeypatch.setattr(search, "changed", changed)
        search.improve(search.fit(search.bare()))
        assert calls == ["birth"] * (improvements + 1) + ["edges", "death"]

    def test_stopped_before_the_changes(self, X, monkeypatch):
        em = make_em(X, max_latents=1)
        em.stopped = True
        search = LatentSearch(em, GaussianStatistics.of(X))
        monkeypatch.setattr(search, "changed", None)
        start = search.fit(search.bare())
        monkeypatch.setattr(search, "settle", lambda model: model)
        assert search.improve(start) is start

    @pytest.fixture
    def trials(self, X, monkeypatch):
        """A search in which scores are given: of adapted and of settled networks."""
        search = make_search(X, max_latents=1)
        settled = []

        def point(low, high):
            return SimpleNamespace(
                score=low, settled=high, network=SimpleNamespace(n_latents=0)
            )

        monkeypatch.setattr(search, "fit", lambda point: point)
        monkeypatch.setattr(search, "adapt", lambda point: point)
        monkeypatch.setattr(search, "score", lambda point: point.score)
        monkeypatch.setattr(search_module, "_same_edges", lambda *_: False)

        def settle(trial):
            settled.append(trial.score)
            return point(trial.settled, None)

        monkeypatch.setattr(search, "settle", settle)

        def run(*scores):
            starts = iter([point(*own) for own in scores])
            return search.changed(point(0.0, None), "birth", starts).score, settled

        return run

    def test_the_first_change_that_gains_is_settled(self, trials):
        assert trials((-5.0, 9.0), (2.0, 3.0), (4.0, 5.0)) == (3.0, [2.0])

    def test_changes_that_lose_are_not_taken(self, trials):
        assert trials((-9.0, 9.0), (-2.0, 9.0), (0.04, 9.0)) == (0.0, [])

    def test_no_births_beyond_the_limit(self, X):
        search = make_search(X, max_latents=1)
        full = search.bare()._with_latents(np.arange(5), np.full((1, 5), 0.5), 0.7)
        assert not list(search.births(search.fit(full)))

    def test_redraws_make_parents_of_latents_children(self):
        X = make_gaussian_bn(8, 1, 500, bipartite=True, random_state=0).X
        search = make_search((X - X.mean(axis=0)) / X.std(axis=0), max_latents=2)
        adjacency = np.zeros((9, 9), dtype=bool)
        adjacency[8, 1:8] = adjacency[0, 8] = adjacency[1, 2] = True
        start = search.bare()._with_latents(np.arange(8), np.full((1, 8), 0.5), 0.7)
        point = search.fit(search.fit(start).network._with_edges(adjacency))
        for drawn in search.redraws(point):
            assert drawn.adjacency[8, :8].all()
            assert not drawn.adjacency[:8].any()

    def test_pairs_without_common_neighbours_are_not_redrawn(self, X):
        search = make_search(X, max_latents=2)

        def redrawn(*weights):
            network = search.bare()._with_latents(np.arange(5), np.array(weights), 0.7)
            point = fit_point(search.given, network, max_iter=0)
            return network, list(search.redraws(point))

        network, starts = redrawn([0.5, 0.5, 0, 0, 0], [0, 0, 0.5, 0.5, 0.5])
        assert len(starts) == 2
        assert all(same_edges(start, network) for start in starts)
        shared, starts = redrawn([0.5, 0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5, 0.5])
        assert len(starts) == 3
        assert not same_edges(shared, network)

    def test_no_more_parents_than_allowed(self, X):
        search = make_search(X, max_latents=2, max_parents=1)
        start = search.bare()
        start = start._with_latents(np.arange(5), np.full((1, 5), 0.1), np.ones(5))
        start = start._with_latents(np.arange(4), np.full((1, 4), 0.2), np.ones(4))
        limited = search._limited(start)
        assert_array_equal(limited.adjacency[6, :5], [1, 1, 1, 1, 0])
        assert_array_equal(limited.adjacency[5, :5], [0, 0, 0, 0, 1])

    def test_latents_under_a_new_one_keep_their_effects(self, X):
        start = make_search(X).bare()
        own = np.arange(5), np.full((1, 5), 0.5), np.full(5, 0.75)
        start = start._with_latents(*own)
        grown = start._with_latents([5], np.array([[0.8]]), np.array([0.36]))
        # Latent 5 varies as before, in units of its noise.
        assert_allclose(grown.weights[6, 5], 0.8 / 0.6)
        assert_allclose(grown.weights[5, :5], 0.5 * 0.6)
        assert_allclose(grown.noise_variance, [*[0.75] * 5, 1, 1])

    def test_edges_that_would_close_a_cycle_are_left_out(self, X):
        search = make_search(X, max_latents=2)
        moves = [(3.0, 0, 1, 0.5), (2.0, 1, 0, 0.5), (1.0, 1, 2, 0.25)]
        moved = search._moved(search.bare(), moves)
        assert np.argwhere(moved.adjacency).tolist() == [[0, 1], [1, 2]]
        assert (moved.weights[0, 1], moved.weights[1, 2]) == (0.5, 0.25)

    @pytest.mark.parametrize(("search", "kept"), [("greedy", 2), ("order", None)])
    def test_candidates_are_pruned_if_that_was_asked_for(
        self, X, search, kept, monkeypatch
    ):
        made = []

        def evaluator(*arguments, **options):
            made.append(options)
            return LinearEvaluator(*arguments, **options)

        monkeypatch.setattr(em_module, "LinearEvaluator", evaluator)
        em = make_em(X, search=search, n_candidates=2)
        em.search(GaussianStatistics.of(X), np.zeros((5, 5), dtype=bool))
        assert [options["n_candidates"] for options in made] == [kept]


class TestNonlinear:
    def test_families_keep_what_is_better(self):
        X = make_gaussian_bn(3, 0, 100, link="sigmoid", random_state=0).X
        em = NonlinearEM(X, None, make_em(X, link="sigmoid"))
        graph = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
        field = MeanField(X, 3, positive=False)
        best = em.maximise(graph, 0, field)
        noise = best.noise_variance * [1.0, 1.0, 4.0]
        worse = bent_network(best, graph, best.weights, best.link_parameters, noise)
        again = em.maximise(graph, 0, field, worse)
        assert_allclose(again.noise_variance, best.noise_variance, rtol=1e-6)
        # A family with other parents has nothing to keep.
        other = em.maximise(graph & [True, True, False], 0, field, best)
        assert not other.weights[:, 2].any()
