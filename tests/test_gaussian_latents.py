"""Hidden variables of linear networks: found, counted, placed, dropped."""

from dataclasses import replace

import numpy as np
import pytest
from gaussian_strategies import free_options
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

from sklearn_latent.gaussian import GaussianNetwork
from sklearn_latent.gaussian._latents.factors import FactorData, fit_factors
from sklearn_latent.gaussian._latents.free_placement import residual_correlation
from sklearn_latent.gaussian._latents.growth import profile_correlation
from sklearn_latent.gaussian._latents.two_layer import TwoLayerSearch, edge_gains
from sklearn_latent.gaussian._learn import learn_incomplete
from sklearn_latent.gaussian._missing.linear_em import fit_network
from sklearn_latent.gaussian._missing.structural_em import StructuralEM
from sklearn_latent.gaussian._options import SearchOptions
from sklearn_latent.gaussian._statistics.incomplete import IncompleteData
from sklearn_latent.gaussian._statistics.statistics import GaussianStatistics


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


def with_gaps(X, share):
    X = X.copy()
    X[np.random.RandomState(0).uniform(size=X.shape) < share] = np.nan
    return X


@pytest.fixture(scope="module")
def planted():
    truth = two_layers(36, 3, 0.5)
    X, Z = truth.sample(500, random_state=1)
    return truth, X, Z


@pytest.fixture(scope="module")
def data(planted):
    return FactorData(GaussianStatistics.of(planted[1]))


class TestFactors:
    @pytest.mark.parametrize("n_latents", [1, 2, 3])
    def test_all_edges_is_factor_analysis(self, planted, data, n_latents):
        X = planted[1]
        referee = FactorAnalysis(
            n_latents, tol=1e-12, max_iter=20_000, svd_method="lapack"
        ).fit(X)
        rng = np.random.RandomState(0)
        mask = np.ones((n_latents, 36), dtype=bool)
        start = data.start(mask, rng.normal(0, 0.3, mask.shape))
        factors = fit_factors(data, start, tol=1e-12, max_iter=5000)
        assert_allclose(factors.log_likelihood / 500, referee.score(X), atol=1e-6)
        covariance = factors.loadings.T @ factors.loadings + np.diag(factors.noise)
        assert_allclose(covariance, referee.get_covariance(), atol=1e-4)

    def test_likelihood_never_falls(self, planted, data):
        truth = planted[0]
        mask = truth.adjacency[36:, :36]
        for seed in range(5):
            rng = np.random.RandomState(seed)
            trace = []
            start = data.start(mask, mask * rng.normal(size=mask.shape))
            factors = fit_factors(data, start, tol=1e-10, trace=trace)
            assert np.diff(trace).min() > -1e-7
            assert (factors.loadings[~mask] == 0).all()

    def test_likelihood_is_that_of_the_covariance(self, planted, data):
        truth, X, _ = planted
        mask = truth.adjacency[36:, :36]
        factors = fit_factors(data, data.start(mask, truth.weights[36:, :36]))
        covariance = factors.loadings.T @ factors.loadings + np.diag(factors.noise)
        reference = multivariate_normal(factors.mean, covariance).logpdf(X).sum()
        assert_allclose(factors.log_likelihood, reference)

    def test_edges_are_rated_as_refits_say(self, planted, data):
        truth = planted[0]
        mask = truth.adjacency[36:, :36].copy()
        mask[0, np.flatnonzero(mask[0])[0]] = False  # one that is missed
        start = data.start(mask, truth.weights[36:, :36] * mask)
        factors = fit_factors(data, start, tol=1e-10)
        gains, _ = edge_gains(data, factors)
        for latent, feature in [(0, i) for i in range(36)]:
            other = factors.mask.copy()
            other[latent, feature] ^= True
            refit = fit_factors(data, factors.with_mask(other), tol=1e-10)
            exact = abs(refit.log_likelihood - factors.log_likelihood)
            estimate = gains[latent, feature]
            if exact < 15:  # a quadratic is good for small changes
                assert_allclose(estimate, exact, rtol=0.25, atol=0.3)
            else:
                assert estimate > 10


class TestTwoLayers:
    def test_planted_network_comes_back(self, planted):
        truth, X, Z = planted
        learned = learn_incomplete(X, None, options(36, 8, bipartite=True))
        network = learned.network
        assert network.n_latents == 3
        correlation, f1 = recovery(truth, Z, network, X)
        assert correlation > 0.95
        assert f1 > 0.95
        assert not network.adjacency[:36].any()
        assert not network.adjacency[:, 36:].any()
        expected = network.log_likelihood(X).sum()
        expected -= 0.5 * np.log(500) * network.n_parameters
        assert_allclose(learned.score, expected)
        assert learned.n_evaluated > 0
        assert learned.n_considered > 0

    def test_better_than_what_others_offer(self, planted):
        truth, X, _ = planted
        test = truth.sample(1000, random_state=2)[0]
        ours = learn_incomplete(X, None, options(36, 8, bipartite=True)).network
        without = learn_incomplete(X, None, options(36, 0)).network
        score = ours.log_likelihood(test).mean()
        assert score > without.log_likelihood(test).mean()
        assert score > max(FactorAnalysis(k).fit(X).score(test) for k in range(1, 7))

    def test_with_gaps(self, planted):
        truth, X, Z = planted
        learned = learn_incomplete(
            with_gaps(X, 0.2), None, options(36, 6, bipartite=True)
        )
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
            learned = learn_incomplete(planted[1], None, setting)
            assert len(calls) == 1
            assert np.isfinite(learned.score)

    def test_latents_are_standardised(self, planted):
        network = learn_incomplete(
            planted[1], None, options(36, 6, bipartite=True)
        ).network
        mean, covariance = network.joint()
        assert_allclose(mean[36:], 0.0, atol=1e-6)
        assert_allclose(np.diagonal(covariance)[36:], 1.0, rtol=1e-6)
        assert (network.weights[36:].sum(axis=1) > 0).all()

    def test_number_is_limited(self, planted):
        network = learn_incomplete(
            planted[1], None, options(36, 2, bipartite=True)
        ).network
        assert network.n_latents == 2
        few = options(36, 4, bipartite=True, max_parents=1)
        network = learn_incomplete(planted[1], None, few).network
        assert network.adjacency.sum(axis=0).max() <= 1

    @pytest.mark.parametrize("published", [False, True])
    def test_independent_features_have_none(self, published):
        X = np.random.RandomState(0).normal(size=(300, 12))
        learned = learn_incomplete(
            X, None, options(12, 3, bipartite=True, published=published)
        )
        assert learned.network.n_latents == 0
        assert not learned.network.adjacency.any()

    def test_one_latent_over_all_is_factor_analysis(self, planted):
        X = planted[1][:, :8]
        learned = learn_incomplete(X, None, options(8, 1, bipartite=True, penalty=0.0))
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
        weighted = learn_incomplete(X, weight, setting)
        repeated = learn_incomplete(np.vstack([X, X[75:]]), None, setting)
        assert_allclose(weighted.score, repeated.score, rtol=1e-8)
        assert_array_equal(weighted.network.adjacency, repeated.network.adjacency)

    def test_columns_may_be_permuted(self, planted):
        X = planted[1]
        order = np.random.RandomState(0).permutation(36)
        plain = learn_incomplete(X, None, options(36, 4, bipartite=True))
        permuted = learn_incomplete(X[:, order], None, options(36, 4, bipartite=True))
        assert_allclose(permuted.score, plain.score, rtol=1e-6)
        first = plain.network.adjacency[36:, :36][:, order]
        assert_array_equal(first, permuted.network.adjacency[36:, :36])

    def test_chance_makes_no_latents(self):
        # With 60 features, some triples are correlated by chance.
        truth = two_layers(60, 2, 0.2)
        for seed in range(3):
            X, _ = truth.sample(300, random_state=seed)
            network = learn_incomplete(X, None, options(60, 6, bipartite=True)).network
            assert network.n_latents == 2

    def test_deaths_undo_too_many(self, planted):
        data = FactorData(GaussianStatistics.of(planted[1]))
        search = TwoLayerSearch(data, 6, 6, 0.5 * np.log(500))
        rng = np.random.RandomState(0)
        mask = rng.uniform(size=(6, 36)) < 0.5
        start = search.fit(data.start(mask, mask * rng.normal(0, 0.5, mask.shape)))
        best = search.improve(start)
        assert search.score(best) > search.score(start)
        assert best.n_latents < 6


class TestPaper:
    def test_two_layers(self, planted):
        truth, X, _ = planted
        test = truth.sample(1000, random_state=2)[0]
        learned = learn_incomplete(
            X, None, options(36, 8, bipartite=True, published=True)
        )
        without = learn_incomplete(X, None, options(36, 0))
        assert learned.network.n_latents == 3
        assert learned.score > without.score
        ours = learned.network.log_likelihood(test).mean()
        assert ours > without.network.log_likelihood(test).mean()
        assert ("latent", 1) in [move for move, _ in learned.history]
        for entry in learned.trace:
            assert np.diff(entry["log_likelihood"]).min() > -1e-6
            before, after = entry.get("expected_score", (0.0, 0.0))
            assert after >= before

    def test_the_default_scores_higher(self, planted):
        X = planted[1]
        setting = options(36, 8, bipartite=True)
        paper = learn_incomplete(X, None, replace(setting, published=True))
        assert learn_incomplete(X, None, setting).score > paper.score

    def test_free_placement(self, planted):
        X = planted[1][:, :15]
        learned = learn_incomplete(X, None, options(15, 2, published=True))
        assert learned.score >= learn_incomplete(X, None, options(15, 0)).score - 1e-6


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
        learned = learn_incomplete(X, None, options(16, 4))
        without = learn_incomplete(X, None, options(16, 0))
        assert learned.network.n_latents == 2
        correlation, _ = recovery(truth, Z, learned.network, X)
        assert correlation > 0.9
        assert learned.score > without.score + 50
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
        network = learn_incomplete(X, None, options(20, 4)).network
        assert network.n_latents == 2
        assert network.adjacency[20:, 20:].sum() == 1
        correlation, f1 = recovery(truth, Z, network, X)
        assert correlation > 0.9
        assert f1 > 0.9

    def test_unexplained_correlation_is_that_of_ideal_profiles(self, mixed):
        X = mixed[1]
        learned = learn_incomplete(X, None, options(16, 0))
        network = learned.network
        em = StructuralEM(IncompleteData.of(X), options(16, 0))
        state = fit_network(
            em.data,
            network.adjacency,
            (network.weights, network.intercept, network.noise_variance),
        )
        profiles = X - network.conditional_means(X)
        expected = np.corrcoef(profiles.T)
        assert_allclose(profile_correlation(em, state), expected, atol=1e-6)
        assert_allclose(residual_correlation(em, state), expected, atol=1e-6)

    def test_none_where_none_is_needed(self):
        rng = np.random.RandomState(0)
        weights = np.diag(rng.uniform(0.8, 1.2, 7), 1)
        truth = GaussianNetwork(weights != 0, weights, np.zeros(8), np.ones(8))
        X, _ = truth.sample(500, random_state=0)
        learned = learn_incomplete(X, None, options(8, 2))
        assert learned.network.n_latents == 0

    def test_masks(self, mixed):
        X = mixed[1]
        required = np.zeros((16, 16), dtype=bool)
        required[0, 1] = True
        setting = SearchOptions(
            np.eye(16, dtype=bool), required, max_latents=2, max_parents=3
        )
        network = learn_incomplete(X, None, setting).network
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
        learned = learn_incomplete(X, None, setting)
        network = learned.network
        assert np.isfinite(learned.score)
        assert np.isfinite(network.weights).all()
        assert np.isfinite(network.log_likelihood(X)).all()
        assert np.isfinite(network.expectation(X)).all()
