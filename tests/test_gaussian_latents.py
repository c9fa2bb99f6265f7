"""Hidden variables of linear networks: found, counted, placed, dropped."""

from dataclasses import replace

import numpy as np
import pytest
from gaussian_strategies import free_options, learn_rows, score
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

from sklearn_latent.gaussian import GaussianNetwork
from sklearn_latent.gaussian._conditional import IncompleteData
from sklearn_latent.gaussian._factors import (
    DenseSets,
    correlated_factors,
    factor_analysis,
    near_cliques,
)
from sklearn_latent.gaussian._latent_likelihood import Point, edge_gains, fit_point
from sklearn_latent.gaussian._latent_placement import LatentSearch
from sklearn_latent.gaussian._options import SearchOptions
from sklearn_latent.gaussian._paper_latents import profile_correlation
from sklearn_latent.gaussian._statistics import GaussianStatistics
from sklearn_latent.gaussian._structural_em import StructuralEM


def two_layers(n_features, n_latents, shared, seed=0):
    """A network of latent roots over features, some of them with two parents."""
    rng = np.random.RandomState(seed)
    mask = np.zeros((n_latents, n_features), dtype=bool)
    mask[np.arange(n_features) % n_latents, np.arange(n_features)] = True
    for column in mask.T:
        if rng.uniform() < shared:
            column[rng.choice(n_latents, 2, replace=False)] = True
    size = rng.uniform(0.6, 1.0, mask.shape) * rng.choice([-1, 1], mask.shape)
    weights = np.zeros((n_features + n_latents,) * 2)
    weights[n_features:, :n_features] = mask * size
    return GaussianNetwork(
        weights != 0,
        weights,
        np.concatenate([rng.normal(size=n_features), np.zeros(n_latents)]),
        np.concatenate([rng.uniform(0.3, 0.8, n_features), np.ones(n_latents)]),
        n_latents=n_latents,
    )


def recovery(truth, Z, network, X):
    """Smallest correlation of matched latents, and F1 of their edges."""
    n = X.shape[1]
    found = network.expectation(X)[:, n:]
    n_true = truth.n_latents
    correlation = np.abs(np.corrcoef(Z.T, found.T)[:n_true, n_true:])
    rows, columns = linear_sum_assignment(-correlation)
    true, learned = truth.adjacency[n:, :n], network.adjacency[n:, :n]
    hits = (true[rows] & learned[columns]).sum()
    f1 = 2 * hits / (true.sum() + learned.sum())
    return correlation[rows, columns].min(), f1


def options(n_features, max_latents, **more):
    return free_options(n_features, max_latents=max_latents, **more)


def extended(n_features, max_latents):
    """Options of the default search."""
    return options(n_features, max_latents, search="order", penalty="ebic")


def with_gaps(X, share):
    X = X.copy()
    X[np.random.RandomState(0).uniform(size=X.shape) < share] = np.nan
    return X


@pytest.fixture(scope="module")
def planted():
    truth = two_layers(36, 3, 0.5)
    X, Z = truth.sample(500, random_state=1)
    return truth, X, Z


def standard(X):
    """Statistics of standardised columns."""
    return GaussianStatistics.of((X - X.mean(axis=0)) / X.std(axis=0))


def standardised(network, X):
    """A network in the units of standardised columns."""
    scale = np.append(1.0 / X.std(axis=0), np.ones(network.n_latents))
    return network._rescaled(scale)._in_noise_units()


def implied(network):
    """Covariance of the features under a network."""
    n = network.n_features
    return network._joint().covariance[:n, :n]


def exact(network):
    """Statistics of 1,000 rows as a network has them on average."""
    n = network.n_features
    return GaussianStatistics(1000.0, np.zeros(n), 1000.0 * implied(network))


def latent_search(X, options):
    """A search for latents of standardised columns."""
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    em = StructuralEM(IncompleteData.of(X), options)
    return LatentSearch(em, GaussianStatistics.of(X))


@pytest.fixture(scope="module")
def related():
    """Features with edges, under latents of which one causes the other."""
    base = two_layers(16, 2, 0.3, seed=4)
    weights = base.weights.copy()
    weights[16, 17] = 0.7
    weights[0, 1] = weights[3, 4] = 0.8
    truth = GaussianNetwork(
        weights != 0, weights, base.intercept, base.noise_variance, n_latents=2
    )
    X, _ = truth.sample(1000, random_state=0)
    return truth, X, standard(X)


class TestPoint:
    def test_likelihood_is_that_of_the_covariance(self, related):
        truth, X, given = related
        point = fit_point(given, standardised(truth, X))
        rows = (X - X.mean(axis=0)) / X.std(axis=0)
        reference = multivariate_normal(np.zeros(16), implied(point.network))
        assert_allclose(point.log_likelihood, reference.logpdf(rows).sum())

    def test_gradient_is_that_of_the_likelihood(self, related):
        truth, X, given = related
        point = Point(given, standardised(truth, X))
        edges, gradient, _ = point.parameters
        step = 1e-5
        for place in range(len(gradient)):
            moves = step * np.eye(len(gradient))[place]
            up, down = (point.moved(sign * moves).log_likelihood for sign in (1, -1))
            assert_allclose((up - down) / (2 * step), gradient[place], atol=1e-2)
        assert_allclose(point.gradient[edges], gradient[: len(edges[0])])

    def test_information_is_the_curvature_at_the_truth(self, related):
        truth, X, _ = related
        network = standardised(truth, X)
        point = Point(exact(network), network)
        _, gradient, information = point.parameters
        assert_allclose(gradient, 0.0, atol=1e-6)
        step = 1e-4
        for place, row in enumerate(information):
            move = step * np.eye(len(row))[place]
            up, down = (point.moved(sign * move).parameters[1] for sign in (1, -1))
            assert_allclose((down - up) / (2 * step), row, atol=1e-2)

    def test_exact_statistics_give_the_true_network(self, related):
        truth, X, _ = related
        network = standardised(truth, X)
        noise = np.append(np.full(16, 0.5), np.ones(2))
        own = network.adjacency, 0.8 * network.weights, network.intercept, noise, 2
        start = GaussianNetwork._linear(*own)
        found = fit_point(exact(network), start, tol=1e-12, max_iter=200).network
        assert_allclose(found.weights, network.weights, atol=1e-4)
        assert_allclose(found.noise_variance, network.noise_variance, atol=1e-4)

    def test_edges_are_rated_as_refits_say(self, related):
        truth, X, given = related
        graph = truth.adjacency.copy()
        graph[3, 4] = False  # one that is missed
        start = standardised(truth, X)._with_edges(graph)
        point = fit_point(given, start, tol=1e-10)
        gains, _ = edge_gains(point, ~np.eye(18, dtype=bool))
        for i, j in [(16, 2), (16, 17), (3, 4), (0, 1), (17, 1), (17, 2), (5, 6)]:
            other = graph.copy()
            other[i, j] ^= True
            refit = fit_point(given, point.network._with_edges(other), tol=1e-10)
            change = abs(refit.log_likelihood - point.log_likelihood)
            if change < 15:  # a quadratic is good for small changes
                assert_allclose(gains[i, j], change, rtol=0.25, atol=0.3)
            else:
                assert gains[i, j] > 10

    def test_only_allowed_edges_are_rated(self, related):
        truth, X, given = related
        point = fit_point(given, standardised(truth, X))
        gains, _ = edge_gains(point, np.zeros((18, 18), dtype=bool))
        present = point.network.adjacency
        assert (gains[~present] == 0).all()
        assert (gains[present] > 0).all()

    def test_a_network_without_a_likelihood_gains_nothing(self, related):
        truth, X, given = related
        network = standardised(truth, X)
        noise = np.full(18, -1.0)
        own = network.adjacency, network.weights, network.intercept, noise, 2
        point = fit_point(given, GaussianNetwork._linear(*own))
        assert not point.is_valid
        assert not edge_gains(point, ~network.adjacency)[0].any()

    @pytest.mark.parametrize("n_latents", [1, 2, 3])
    def test_all_edges_is_factor_analysis(self, planted, n_latents):
        X = planted[1]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        referee = FactorAnalysis(
            n_latents, tol=1e-12, max_iter=20_000, svd_method="lapack"
        ).fit(X)
        loadings, noise = factor_analysis(standard(X).covariance, n_latents)
        covariance = loadings.T @ loadings + np.diag(noise)
        assert_allclose(covariance, referee.get_covariance(), atol=0.02)

    def test_correlated_factors_have_the_likelihood_of_factor_analysis(self, planted):
        # Without a price all edges stay, and a rotation changes no likelihood.
        given = standard(planted[1])
        start = correlated_factors(given, 3, 0.0)
        loadings, noise = factor_analysis(given.covariance, 3)
        assert start.adjacency[36:, 36:].sum() == 3
        expected = loadings.T @ loadings + np.diag(noise)
        assert_allclose(implied(start), expected, atol=1e-8)


class TestDenseSets:
    def test_children_of_a_latent_are_found_under_edges(self):
        rng = np.random.RandomState(0)
        weights = np.zeros((13, 13))
        weights[12, :6] = rng.uniform(0.7, 1.0, 6)
        weights[7, 8] = weights[8, 9] = weights[9, 2] = 0.8
        truth = GaussianNetwork(
            weights != 0, weights, np.zeros(13), np.ones(13), n_latents=1
        )
        X, _ = truth.sample(2000, random_state=0)
        graph = learn_rows(X, extended(12, 0)).network
        point = fit_point(standard(X), standardised(graph, X))
        price = 4.0 * np.arange(13) + 8.0
        best = DenseSets(point).find(np.arange(12), 4.0, price)[0]
        assert sorted(best) == list(range(6))

    def test_starts_are_close_to_fits(self, related):
        X, given = related[1:]
        search = latent_search(X, extended(16, 2))
        point = search.fit(search.bare())
        for members in DenseSets(point).find(np.arange(16), 1.0, np.zeros(17))[:3]:
            grown = search.redrawn(point, [], members, 1)
            assert_array_equal(np.flatnonzero(grown.adjacency[16]), np.sort(members))
            start = Point(given, grown).log_likelihood - point.log_likelihood
            exact = fit_point(given, grown).log_likelihood - point.log_likelihood
            assert_allclose(start, exact, rtol=0.05)

    @given(st.integers(3, 9), st.floats(0.1, 0.9), st.integers(0, 100))
    def test_members_are_joined_to_most_and_no_node_is_left(self, n, share, seed):
        joined = np.triu(np.random.RandomState(seed).uniform(size=(n, n)) < share, 1)
        joined |= joined.T
        for pair in np.argwhere(np.triu(joined)):
            clique, members = map(list, near_cliques(joined, pair))
            assert set(pair) <= set(clique) <= set(members)
            assert joined[np.ix_(clique, clique)].sum() == len(clique) * (
                len(clique) - 1
            )
            within = joined[np.ix_(members, members)].sum()
            missing = len(members) * (len(members) - 1) - within
            assert missing <= 2 * max(len(members) - 3, 0)
            others = np.setdiff1d(np.arange(n), members)
            most = max(2, len(members) - 1)
            assert (joined[np.ix_(others, members)].sum(axis=1) < most).all()

    def test_real_edges_among_children_do_not_hide_their_parent(self):
        rng = np.random.RandomState(0)
        weights = np.zeros((17, 17))
        weights[16, :7] = rng.uniform(0.7, 1.0, 7)
        weights[0, 1] = weights[2, 3] = 0.9
        weights[7, 0] = weights[8, 2] = weights[9, 4] = 0.7
        truth = GaussianNetwork(
            weights != 0, weights, np.zeros(17), np.ones(17), n_latents=1
        )
        X, _ = truth.sample(2000, random_state=0)
        network = learn_rows(X, extended(16, 2)).network
        assert network.n_latents == 1
        assert_array_equal(np.flatnonzero(network.adjacency[16]), np.arange(7))


class TestPrice:
    def test_prices_of_moves_are_differences_of_prices(self, related):
        search = latent_search(related[1], extended(16, 6))
        em = search.em
        adjacency = np.zeros((20, 20), dtype=bool)
        adjacency[16:19, :12] = np.kron(np.eye(3, dtype=bool), np.ones(4, dtype=bool))
        adjacency[16, 17] = adjacency[0, 1] = True
        adjacency[19, 17:19] = True
        add, drop = search._prices(adjacency)
        for i, j in [(2, 3), (16, 18), (17, 18), (16, 13), (0, 1), (16, 17), (17, 4)]:
            other = adjacency.copy()
            other[i, j] ^= True
            change = em.price(other) - em.price(adjacency)
            price = -drop[i, j] if adjacency[i, j] else add[i, j]
            assert_allclose(price, change)

    def test_edges_between_latents_are_chosen_among_all_pairs(self, related):
        em = StructuralEM(IncompleteData.of(related[1]), extended(16, 6))
        adjacency = np.zeros((20, 20), dtype=bool)
        adjacency[16:, :16] = np.kron(np.eye(4, dtype=bool), np.ones(4, dtype=bool))
        joined = adjacency.copy()
        joined[16, 17] = joined[17, 18] = True
        more = em.price(joined) - em.price(adjacency)
        each = em.penalty.parameter + em.penalty.latent_edge
        choice = em.penalty.multiplicity * np.log(15.0)  # 2 of 6 pairs
        assert_allclose(more, 2 * each + choice)


class TestTwoLayers:
    def test_planted_network_comes_back(self, planted):
        truth, X, Z = planted
        learned = learn_rows(X, options(36, 8, bipartite=True))
        network = learned.network
        assert network.n_latents == 3
        correlation, f1 = recovery(truth, Z, network, X)
        assert correlation > 0.95
        assert f1 > 0.95
        assert not network.adjacency[:36].any()
        assert not network.adjacency[:, 36:].any()
        assert learned.n_evaluated > 0
        assert learned.n_considered > 0

    def test_better_than_what_others_offer(self, planted):
        truth, X, _ = planted
        test = truth.sample(1000, random_state=2)[0]
        ours = learn_rows(X, options(36, 8, bipartite=True)).network
        without = learn_rows(X, options(36, 0)).network
        score = ours.log_likelihood(test).mean()
        assert score > without.log_likelihood(test).mean()
        assert score > max(FactorAnalysis(k).fit(X).score(test) for k in range(1, 7))

    def test_with_gaps(self, planted):
        truth, X, Z = planted
        learned = learn_rows(with_gaps(X, 0.2), options(36, 6, bipartite=True))
        assert learned.network.n_latents == 3
        correlation, f1 = recovery(truth, Z, learned.network, X)
        assert correlation > 0.95
        assert f1 > 0.9

    def test_stopping(self, planted):
        calls = []

        def progress(message):
            calls.append(message)
            return True

        for bipartite in (True, False):
            calls.clear()
            setting = options(36, 6, bipartite=bipartite, progress=progress)
            learned = learn_rows(planted[1], setting)
            assert len(calls) == 1
            assert np.isfinite(learned.network.log_likelihood(planted[1])).all()

    def test_latents_are_standardised(self, planted):
        network = learn_rows(planted[1], options(36, 6, bipartite=True)).network
        mean, covariance = network.joint()
        assert_allclose(mean[36:], 0.0, atol=1e-6)
        assert_allclose(np.diagonal(covariance)[36:], 1.0, rtol=1e-6)
        assert (network.weights[36:].sum(axis=1) > 0).all()

    def test_number_is_limited(self, planted):
        network = learn_rows(planted[1], options(36, 2, bipartite=True)).network
        assert network.n_latents == 2
        few = options(36, 4, bipartite=True, max_parents=1)
        network = learn_rows(planted[1], few).network
        assert network.adjacency.sum(axis=0).max() <= 1

    @pytest.mark.parametrize("published", [False, True])
    def test_independent_features_have_none(self, published):
        X = np.random.RandomState(0).normal(size=(300, 12))
        learned = learn_rows(X, options(12, 3, bipartite=True, published=published))
        assert learned.network.n_latents == 0
        assert not learned.network.adjacency.any()

    def test_one_latent_over_all_is_factor_analysis(self, planted):
        X = planted[1][:, :8]
        learned = learn_rows(X, options(8, 1, bipartite=True, penalty=0.0))
        assert learned.network.adjacency[8, :8].all()
        referee = FactorAnalysis(
            1, tol=1e-12, max_iter=20_000, svd_method="lapack"
        ).fit(X)
        assert_allclose(
            learned.network.log_likelihood(X).mean(), referee.score(X), atol=1e-6
        )

    def test_weight_two_is_a_row_twice(self, planted):
        X = planted[1][:150]
        weight = np.repeat([1.0, 2.0], 75)
        setting = options(36, 4, bipartite=True)
        weighted = learn_rows(X, setting, weight)
        repeated = learn_rows(np.vstack([X, X[75:]]), setting)
        assert_allclose(
            score(weighted.network, X, weight),
            score(repeated.network, X, weight),
            rtol=1e-8,
        )
        assert_array_equal(weighted.network.adjacency, repeated.network.adjacency)

    def test_columns_may_be_permuted(self, planted):
        X = planted[1]
        order = np.random.RandomState(0).permutation(36)
        plain = learn_rows(X, options(36, 4, bipartite=True))
        permuted = learn_rows(X[:, order], options(36, 4, bipartite=True))
        assert_allclose(
            score(permuted.network, X[:, order]), score(plain.network, X), rtol=1e-6
        )
        first = plain.network.adjacency[36:, :36][:, order]
        assert_array_equal(first, permuted.network.adjacency[36:, :36])

    def test_chance_makes_no_latents(self):
        # With 60 features, some triples are correlated by chance.
        truth = two_layers(60, 2, 0.2)
        for seed in range(3):
            X, _ = truth.sample(300, random_state=seed)
            network = learn_rows(X, options(60, 6, bipartite=True)).network
            assert network.n_latents == 2

    def test_too_many_are_undone(self, planted):
        X = planted[1]
        search = latent_search(X, options(36, 6, bipartite=True))
        rng = np.random.RandomState(0)
        weights = rng.normal(0, 0.5, (6, 36)) * (rng.uniform(size=(6, 36)) < 0.5)
        start = search.bare()._with_latents(np.arange(36), weights, np.full(36, 0.5))
        point = search.fit(start)
        best = search.improve(point)
        assert search.score(best) > search.score(point)
        assert best.network.n_latents < 6


class TestPaper:
    def test_two_layers(self, planted):
        truth, X, _ = planted
        test = truth.sample(1000, random_state=2)[0]
        learned = learn_rows(X, options(36, 8, bipartite=True, published=True))
        without = learn_rows(X, options(36, 0))
        assert learned.network.n_latents == 3
        assert score(learned.network, X) > score(without.network, X)
        ours = learned.network.log_likelihood(test).mean()
        assert ours > without.network.log_likelihood(test).mean()
        assert ("latent", 1) in [move for move, _ in learned.history]

    def test_the_default_scores_higher(self, planted):
        X = planted[1]
        setting = options(36, 8, bipartite=True)
        paper = learn_rows(X, replace(setting, published=True))
        default = learn_rows(X, setting)
        assert score(default.network, X) > score(paper.network, X)

    def test_free_placement(self, planted):
        X = planted[1][:, :15]
        learned = learn_rows(X, options(15, 2, published=True))
        without = learn_rows(X, options(15, 0))
        assert score(learned.network, X) >= score(without.network, X) - 1e-6


@pytest.fixture(scope="module")
def mixed():
    """Two latents, one the child of a feature, and edges of features."""
    base = two_layers(16, 2, 0.0, seed=4)
    weights = base.weights.copy()
    children = np.flatnonzero(base.adjacency[16, :16])
    weights[children[0], children[1]] = 1.5
    other = np.flatnonzero(base.adjacency[17, :16])
    weights[children[2], other[0]] = 1.5
    truth = GaussianNetwork(
        weights != 0, weights, base.intercept, base.noise_variance, n_latents=2
    )
    X, Z = truth.sample(1000, random_state=0)
    return truth, X, Z


class TestFreePlacement:
    def test_latent_and_observed_edges(self, mixed):
        truth, X, Z = mixed
        learned = learn_rows(X, options(16, 4))
        without = learn_rows(X, options(16, 0))
        assert learned.network.n_latents == 2
        correlation, _ = recovery(truth, Z, learned.network, X)
        assert correlation > 0.9
        assert score(learned.network, X) > score(without.network, X) + 50
        found = learned.network.adjacency[:16, :16]
        true = truth.adjacency[:16, :16]
        assert ((found | found.T) & true).sum() == 2
        assert found.sum() <= 6

    def test_a_latent_causes_another(self):
        base = two_layers(20, 2, 0.0, seed=1)
        weights = base.weights.copy()
        weights[20, 21] = 0.9
        truth = GaussianNetwork(
            weights != 0, weights, base.intercept, base.noise_variance, n_latents=2
        )
        X, Z = truth.sample(1000, random_state=0)
        network = learn_rows(X, options(20, 4)).network
        assert network.n_latents == 2
        assert network.adjacency[20:, 20:].sum() == 1
        correlation, f1 = recovery(truth, Z, network, X)
        assert correlation > 0.9
        assert f1 > 0.9

    def test_unexplained_correlation_is_that_of_ideal_profiles(self, mixed):
        X = mixed[1]
        learned = learn_rows(X, options(16, 0))
        network = learned.network
        em = StructuralEM(IncompleteData.of(X), options(16, 0))
        profiles = X - network.conditional_means(X)
        expected = np.corrcoef(profiles.T)
        assert_allclose(profile_correlation(em, network), expected, atol=1e-6)

    def test_correlated_factors_are_no_cross_loadings(self):
        # At 1,000 rows independent latents with cross-loadings fit nearly as well.
        base = two_layers(24, 4, 0.0, seed=2)
        weights = base.weights.copy()
        factor = np.linalg.cholesky(np.full((4, 4), 0.5) + 0.5 * np.eye(4))
        scale = np.diagonal(factor)
        weights[24:, 24:] = np.triu(
            (np.eye(4) - np.linalg.inv(factor) * scale[:, None]).T, 1
        )
        noise = np.append(base.noise_variance[:24], scale**2)
        truth = GaussianNetwork(
            weights != 0, weights, base.intercept, noise, n_latents=4
        )
        X, Z = truth.sample(1000, random_state=0)
        network = learn_rows(X, extended(24, 8)).network
        measured = network.adjacency[24:, :24].any(axis=1)
        assert measured.sum() == 4
        correlation, f1 = recovery(truth, Z, network, X)
        assert correlation > 0.85
        assert f1 > 0.97

    def test_the_top_of_a_hierarchy(self):
        base = two_layers(25, 5, 0.0, seed=3)
        weights = np.pad(base.weights, (0, 1))
        weights[30, 25:30] = 0.75
        noise = np.append(base.noise_variance, 1.0)
        noise[25:30] = 1.0 - 0.75**2
        truth = GaussianNetwork(
            weights != 0, weights, np.append(base.intercept, 0.0), noise, n_latents=6
        )
        X, Z = truth.sample(2000, random_state=0)
        network = learn_rows(X, extended(25, 10)).network
        assert network.n_latents == 6
        assert network.adjacency[25:, 25:].sum() == 5
        assert recovery(truth, Z, network, X)[0] > 0.8

    def test_a_hierarchy_that_births_alone_do_not_find(self):
        rng = np.random.RandomState(202)
        weights = np.zeros((31, 31))
        noise = np.append(rng.uniform(0.4, 1, 25), np.ones(6))
        for i in range(5):
            loadings = rng.uniform(0.6, 1.0, 5) * rng.choice([-1, 1], 5)
            weights[25 + i, 5 * i : 5 * i + 5] = loadings
            share = rng.uniform(0.6, 0.85)
            weights[30, 25 + i] = share
            noise[25 + i] = 1.0 - share**2
        truth = GaussianNetwork(weights != 0, weights, np.zeros(31), noise, n_latents=6)
        X, Z = truth.sample(1000, random_state=202)
        network = learn_rows(X, extended(25, 10)).network
        assert network.n_latents == 6
        assert network.adjacency[25:, :25].any(axis=1).sum() == 5
        assert recovery(truth, Z, network, X)[0] > 0.75

    def test_confounders_in_a_sparse_graph(self):
        rng = np.random.RandomState(5)
        weights = np.zeros((22, 22))
        for latent in (20, 21):
            weights[latent, rng.choice(20, 6, replace=False)] = 0.8
        order = rng.permutation(20)
        weights[order[:9], order[9:18]] = 0.7
        truth = GaussianNetwork(
            weights != 0, weights, np.zeros(22), np.full(22, 0.7), n_latents=2
        )
        X, Z = truth.sample(1000, random_state=0)
        network = learn_rows(X, extended(20, 5)).network
        assert network.n_latents == 2
        assert recovery(truth, Z, network, X)[0] > 0.85

    def test_none_where_none_is_needed(self):
        rng = np.random.RandomState(0)
        weights = np.diag(rng.uniform(0.8, 1.2, 7), 1)
        truth = GaussianNetwork(weights != 0, weights, np.zeros(8), np.ones(8))
        X, _ = truth.sample(500, random_state=0)
        learned = learn_rows(X, options(8, 2))
        assert learned.network.n_latents == 0

    def test_masks(self, mixed):
        X = mixed[1]
        required = np.zeros((16, 16), dtype=bool)
        required[0, 1] = True
        setting = SearchOptions(
            np.eye(16, dtype=bool), required, max_latents=2, max_parents=3
        )
        network = learn_rows(X, setting).network
        assert network.adjacency[0, 1]
        assert network.adjacency.sum(axis=0).max() <= 3


class TestPoorData:
    @pytest.mark.parametrize("bipartite", [True, False])
    @pytest.mark.parametrize("published", [False, True])
    @pytest.mark.parametrize(
        "case", ["constant", "duplicates", "wide", "one row", "one column", "gaps"]
    )
    def test_finite(self, case, bipartite, published):
        rng = np.random.RandomState(0)
        X = rng.normal(size=(40, 5))
        if case == "constant":
            X[:, 0] = 3.0
        elif case == "duplicates":
            X[:, 1:3] = X[:, :1]
        elif case == "wide":
            X = rng.normal(size=(6, 12))
        elif case == "one row":
            X = X[:1]
        elif case == "one column":
            X = X[:, :1]
        else:
            X = with_gaps(X, 0.4)
            X[0] = np.nan
        setting = options(X.shape[1], 2, bipartite=bipartite, published=published)
        learned = learn_rows(X, setting)
        network = learned.network
        assert np.isfinite(network.weights).all()
        assert np.isfinite(network.log_likelihood(X)).all()
        assert np.isfinite(network.expectation(X)).all()
