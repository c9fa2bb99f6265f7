"""Control flow of the Gaussian searches: when they stop, and what they try before."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from gaussian_strategies import free_options

from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.gaussian._bent_inference import MeanField
from sklearn_latent.gaussian._conditional import IncompleteData
from sklearn_latent.gaussian._latents import growth
from sklearn_latent.gaussian._latents import search as search_module
from sklearn_latent.gaussian._latents.clusters import Cluster
from sklearn_latent.gaussian._latents.search import LatentSearch
from sklearn_latent.gaussian._latents.search import _same_edges as same_edges
from sklearn_latent.gaussian._missing.linear_em import climb_by_leaps, fit_network
from sklearn_latent.gaussian._missing.nonlinear_em import _NonlinearEM, bent_network
from sklearn_latent.gaussian._missing.structural_em import StructuralEM
from sklearn_latent.gaussian._statistics import GaussianStatistics


def make_em(X, weights=None, **options):
    setting = free_options(X.shape[1], **options)
    return StructuralEM(IncompleteData.of(X, weights), setting)


def fitted(em, adjacency, n_latents=0):
    n = len(adjacency)
    start = 0.5 * adjacency, np.zeros(n), np.ones(n)
    return fit_network(em.data, adjacency, start, n_latents)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 5)) + np.arange(5)


class TestGrowth:
    def test_profiles_of_weighted_rows(self, X):
        weights = np.arange(40) % 3 + 1.0
        chain = np.eye(5, k=1, dtype=bool)
        weighted = make_em(X, weights)
        repeated = make_em(X.repeat(weights.astype(int), axis=0))
        np.testing.assert_allclose(
            growth.profile_correlation(weighted, fitted(weighted, chain)),
            growth.profile_correlation(repeated, fitted(repeated, chain)),
            atol=1e-9,
        )

    def test_a_new_latent_keeps_the_variance_of_its_children(self, X, monkeypatch):
        em = make_em(X, max_latents=1, max_parents=1)
        chain = np.zeros((5, 5), dtype=bool)
        chain[0, 1] = True
        state = fitted(em, chain)
        seen = []
        monkeypatch.setattr(em, "refine", lambda *arguments: seen.append(arguments))
        direction = np.array([0.8, 0.0, 0.6])
        growth.grow(em, state, Cluster(np.array([0, 1, 3]), direction, 5.0, 1.0))
        adjacency, (weights, intercept, noise), n_latents = seen[0]
        assert n_latents == 1
        # Feature 1 has as many parents as it may have.
        assert np.flatnonzero(adjacency[5]).tolist() == [0, 3]
        assert np.flatnonzero(weights[5]).tolist() == [0, 3]
        expected = 2.0 * direction[[0, 2]] * np.sqrt(state.noise_variance[[0, 3]])
        np.testing.assert_allclose(weights[5, [0, 3]], expected)
        before = state.noise_variance[[0, 3]]
        np.testing.assert_allclose(noise[[0, 3]], before / (1 + expected**2 / before))
        np.testing.assert_allclose(noise[[1, 2, 4]], state.noise_variance[[1, 2, 4]])
        assert (noise[5], intercept[5]) == (1.0, 0.0)

    def make_state(self, n_latents):
        """Latents over two features, the last the weakest."""
        n = 2 + n_latents
        weights = np.zeros((n, n))
        weights[2:, 0] = np.arange(n_latents, 0, -1)
        return SimpleNamespace(
            adjacency=weights != 0,
            weights=weights,
            intercept=np.zeros(n),
            noise_variance=np.ones(n),
            n_latents=n_latents,
        )

    def drop(self, gains, stop_after=None):
        """Tries in turn, each with the next score; the weights that were left."""
        tried = []
        em = SimpleNamespace(
            data=SimpleNamespace(n_features=2), tol=1e-3, history=[], stopped=False
        )

        def refine(adjacency, parameters, n_latents):
            weights, _, noise = parameters
            tried.append((weights[2:, 0].tolist(), float(noise[0])))
            em.stopped = len(tried) == stop_after
            state = self.make_state(n_latents)
            state.weights, state.score = weights, gains[len(tried) - 1]
            state.noise_variance = noise
            return state

        em.refine = refine
        first = self.make_state(3)
        first.score = 0.0
        found = growth.drop_latents(em, first, lambda state: state.score)
        return found, tried, em.history

    def test_latents_are_dropped_the_weakest_first(self):
        found, tried, history = self.drop([-1.0, -1.0, -1.0])
        assert found.n_latents == 3 and not history
        # What a latent explained becomes noise.
        assert tried == [([3, 2], 2.0), ([3, 1], 5.0), ([2, 1], 10.0)]

    def test_dropping_goes_on_from_what_is_left(self):
        found, tried, history = self.drop([2.0, 1.0, 1.0])
        assert found.n_latents == 2 and len(tried) == 3
        assert history == [(("drop latent", 2), 2.0)]

    def test_a_gain_below_the_tolerance_is_none(self):
        assert self.drop([1e-3, 0.0, 0.0])[0].n_latents == 3
        assert self.drop([1.1e-3, 0.0, 0.0])[0].n_latents == 2

    def test_dropping_may_be_stopped(self):
        _, tried, _ = self.drop([-1.0, -1.0, -1.0], stop_after=2)
        assert len(tried) == 2


class TestPlacement:
    @pytest.mark.parametrize("improvements", [0, 1, 3])
    def test_changes_end_when_none_improves(self, X, monkeypatch, improvements):
        search = LatentSearch(make_em(X, max_latents=1), GaussianStatistics.of(X))
        calls = []

        def changed(model, kind, starts):
            calls.append(kind)
            return replace(model) if len(calls) <= improvements else model

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
        search = LatentSearch(make_em(X, max_latents=1), GaussianStatistics.of(X))
        settled = []
        monkeypatch.setattr(search, "fit", lambda model: model)
        monkeypatch.setattr(search, "adapt", lambda model: model)
        monkeypatch.setattr(search, "score", lambda model: model.log_likelihood)
        monkeypatch.setattr(search_module, "_same_edges", lambda *_: False)

        def settle(model):
            settled.append(model.log_likelihood)
            return replace(model, log_likelihood=model.weights.sum())

        monkeypatch.setattr(search, "settle", settle)

        def run(*scores):
            models = [
                replace(search.bare(), log_likelihood=low, weights=np.array([high]))
                for low, high in scores
            ]
            best = replace(search.bare(), log_likelihood=0.0)
            found = search.changed(best, "birth", iter(models))
            return found.log_likelihood, settled

        return run

    def test_the_first_change_that_gains_is_settled(self, trials):
        assert trials((-5.0, 9.0), (2.0, 3.0), (4.0, 5.0)) == (3.0, [2.0])

    def test_changes_that_lose_little_are_settled_the_best_first(self, trials):
        scores = (-9.0, -1.0), (-31.0, 9.0), (-2.0, 0.04), (-4.0, 1.0), (-11.0, 2.0)
        assert trials(*scores) == (1.0, [-2.0, -4.0])

    def test_no_births_beyond_the_limit(self, X):
        search = LatentSearch(make_em(X, max_latents=1), GaussianStatistics.of(X))
        assert not list(search.births(SimpleNamespace(n_latents=1)))

    def test_redraws_make_parents_of_latents_children(self):
        data = make_gaussian_bn(8, 1, 500, bipartite=True, random_state=0)
        search = LatentSearch(
            make_em(data.X, max_latents=2), GaussianStatistics.of(data.X)
        )
        adjacency = np.zeros((9, 9), dtype=bool)
        adjacency[8, 1:8] = adjacency[0, 8] = adjacency[1, 2] = True
        start = search.fit(search.bare().with_latents(np.arange(8), [[0.5] * 8], 0.7))
        model = search.fit(start.with_adjacency(adjacency))
        for drawn in search.redraws(model):
            assert drawn.adjacency[8, :8].all()
            assert not drawn.adjacency[:8].any()

    def test_pairs_without_common_neighbours_are_not_redrawn(self, X):
        search = LatentSearch(make_em(X, max_latents=2), GaussianStatistics.of(X))
        model = search.bare().with_latents(
            np.arange(5), [[0.5, 0.5, 0.0, 0.0, 0.0], [0, 0, 0.5, 0.5, 0.5]], 0.7
        )
        starts = list(search.redraws(model))
        assert len(starts) == 4  # two each
        assert all(same_edges(start, model) for start in starts)
        shared = search.bare().with_latents(
            np.arange(5), [[0.5, 0.5, 0.5, 0.0, 0.0], [0, 0, 0.5, 0.5, 0.5]], 0.7
        )
        assert len(list(search.redraws(shared))) == 5
        assert not same_edges(shared, model)

    def test_no_more_parents_than_allowed(self, X):
        em = make_em(X, max_latents=2, max_parents=1)
        search = LatentSearch(em, GaussianStatistics.of(X))
        start = search.bare()
        start = start.with_latents(np.arange(5), np.full((1, 5), 0.1), np.ones(5))
        start = start.with_latents(np.arange(4), np.full((1, 4), 0.2), np.ones(4))
        limited = search._limited(start)
        np.testing.assert_array_equal(limited.adjacency[6, :5], [1, 1, 1, 1, 0])
        np.testing.assert_array_equal(limited.adjacency[5, :5], [0, 0, 0, 0, 1])

    def test_latents_under_a_new_one_keep_their_effects(self, X):
        start = LatentSearch(make_em(X), GaussianStatistics.of(X)).bare()
        start = start.with_latents(np.arange(5), np.full((1, 5), 0.5), np.full(5, 0.75))
        grown = start.with_latents(np.array([5]), np.array([[0.8]]), np.array([0.36]))
        # Latent 5 varies as before, in units of its noise.
        np.testing.assert_allclose(grown.weights[6, 5], 0.8 / 0.6)
        np.testing.assert_allclose(grown.weights[5, :5], 0.5 * 0.6)
        np.testing.assert_allclose(grown.noise, 0.75)

    def test_edges_that_would_close_a_cycle_are_left_out(self, X):
        search = LatentSearch(make_em(X, max_latents=2), GaussianStatistics.of(X))
        moves = [(3.0, 0, 1, 0.5), (2.0, 1, 0, 0.5), (1.0, 1, 2, 0.25)]
        moved = search._moved(search.bare(), moves)
        assert np.argwhere(moved.adjacency).tolist() == [[0, 1], [1, 2]]
        assert (moved.weights[0, 1], moved.weights[1, 2]) == (0.5, 0.25)

    def test_a_gain_below_the_tolerance_is_none(self, X):
        em = make_em(X, tol=0.1)
        one, two = (SimpleNamespace(n_latents=k, score=4.0 * k) for k in (0, 1))
        # Forty rows of a tenth of a nat each.
        assert growth.better(em, one, two, lambda s: s.score) is one
        assert not em.history
        two.score += 0.1
        assert growth.better(em, one, two, lambda s: s.score) is two
        assert em.history[0][0] == ("latent", 1)

    @pytest.mark.parametrize(("search", "kept"), [("greedy", 2), ("order", None)])
    def test_candidates_are_pruned_if_that_was_asked_for(self, X, search, kept):
        em = make_em(X, search=search, n_candidates=2)
        assert em.evaluator(GaussianStatistics.of(X)).n_candidates == kept


class TestNonlinear:
    def test_families_keep_what_is_better(self):
        X = make_gaussian_bn(3, 0, 100, link="sigmoid", random_state=0).X
        em = _NonlinearEM(X, None, make_em(X, link="sigmoid"))
        graph = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
        field = MeanField(X, 3, positive=False)
        best = em.maximise(graph, 0, field)
        noise = best.noise_variance * [1.0, 1.0, 4.0]
        worse = bent_network(best, graph, best.weights, best.link_parameters, noise)
        again = em.maximise(graph, 0, field, worse)
        np.testing.assert_allclose(again.noise_variance, best.noise_variance, rtol=1e-6)
        # A family with other parents has nothing to keep.
        other = em.maximise(graph & [True, True, False], 0, field, best)
        assert not other.weights[:, 2].any()


@dataclass
class Place:
    """A point on a line, and what is maximised there."""

    parameters: np.ndarray

    @property
    def log_likelihood(self):
        """A parabola with a cliff behind its top."""
        x = float(self.parameters[0])
        return -((x - 1.0) ** 2) if x < 1.5 else -100.0


class TestLeaps:
    def climb(self, rate, start, **limits):
        """EM that goes a share of the way; number of E-steps, and where it ends."""
        places = []

        def expect(parameters):
            places.append(float(parameters[0]))
            return Place(parameters)

        def maximise(place):
            # Steps that bend make leaps go wrong.
            return place.parameters + rate(1.0 - place.parameters)

        units = (lambda p: p), (lambda v: v)
        limits = {"tol": 1e-12, "max_iter": 100} | limits
        ascent = climb_by_leaps(
            Place(np.array([start])), expect, maximise, lambda _: units, **limits
        )
        return ascent, places

    def test_leaps_arrive_where_steps_crawl(self):
        ascent, _ = self.climb(lambda left: 0.01 * left, 0.0)
        assert ascent.converged and ascent.n_iter < 20
        assert ascent.state.parameters[0] == pytest.approx(1.0, abs=1e-4)
        assert (np.diff(ascent.objectives) >= 0).all()

    def test_a_leap_off_the_cliff_is_not_taken(self):
        ascent, places = self.climb(lambda left: 0.1 * np.sign(left), 0.0, max_iter=4)
        # Steps of the same length promise a leap without end.
        assert max(places) > 1.5
        assert ascent.state.parameters[0] < 1.5
        assert (np.diff(ascent.objectives) >= 0).all()
