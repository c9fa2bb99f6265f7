"""Structural EM for linear networks with values missing."""

import numpy as np
import pytest
from gaussian_strategies import free_options, learn_rows, score, with_gaps
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_latent.gaussian import GaussianNetwork, IdealParentGaussianBN
from sklearn_latent.gaussian._conditional import IncompleteData
from sklearn_latent.gaussian._editing import Units
from sklearn_latent.gaussian._greedy import greedy_search
from sklearn_latent.gaussian._linear_scores import LinearEvaluator, fit_linear
from sklearn_latent.gaussian._options import SearchOptions
from sklearn_latent.gaussian._statistics import GaussianStatistics
from sklearn_latent.gaussian._structural_em import (
    fit_parameters,
    learn,
    maximise,
    saturated_statistics,
)


def random_network(n_nodes, seed=0, share=0.3):
    rng = np.random.RandomState(seed)
    adjacency = np.triu(rng.uniform(size=(n_nodes, n_nodes)) < share, 1)
    signs = rng.choice([-1, 1], adjacency.shape)
    weights = adjacency * signs * rng.uniform(0.5, 1.5, adjacency.shape)
    return GaussianNetwork(
        adjacency, weights, rng.normal(size=n_nodes), rng.uniform(0.5, 1, n_nodes)
    )


def skeleton_errors(true, learned):
    return int(np.triu((true | true.T) != (learned | learned.T)).sum())


@pytest.fixture(scope="module")
def truth():
    return random_network(10)


@pytest.fixture(scope="module")
def complete_rows(truth):
    return truth.sample(600, random_state=1)[0]


def start_of(X, graph):
    """Columns without effects, as a start under a graph."""
    n = X.shape[1]
    own = np.zeros((n, n)), np.nanmean(X, axis=0), np.nanvar(X, axis=0)
    return GaussianNetwork(graph, *own)


class TestParameters:
    @pytest.mark.parametrize("share", [0.05, 0.3, 0.6])
    def test_likelihood_never_falls(self, truth, complete_rows, share):
        X = with_gaps(complete_rows, share)
        data, start = IncompleteData.of(X), start_of(X, truth.adjacency)
        fits = [fit_parameters(data, start, tol=0.0, max_iter=k) for k in range(12)]
        assert np.diff([fit.log_likelihood for fit in fits]).min() > -1e-7
        last = fits[-1]
        assert_allclose(last.log_likelihood, last.network.log_likelihood(X).sum())

    def test_a_maximum_is_reached(self, truth, complete_rows):
        X = with_gaps(complete_rows, 0.3)
        data, start = IncompleteData.of(X), start_of(X, truth.adjacency)
        network, _, best = fit_parameters(data, start, tol=1e-12, max_iter=2000)
        for seed in range(10):
            rng = np.random.RandomState(seed)
            other = GaussianNetwork(
                truth.adjacency,
                network.weights + truth.adjacency * rng.normal(0, 0.01, (10, 10)),
                network.intercept + rng.normal(0, 0.01, 10),
                network.noise_variance * np.exp(rng.normal(0, 0.01, 10)),
            )
            assert other.log_likelihood(X).sum() < best

    def test_complete_data_takes_one_step(self, truth, complete_rows):
        start = start_of(complete_rows, truth.adjacency)
        network = fit_parameters(IncompleteData.of(complete_rows), start).network
        statistics = GaussianStatistics.of(complete_rows)
        expected = fit_linear(statistics, truth.adjacency)
        for found, own in zip(network._parameters, expected, strict=True):
            assert_allclose(found, own, atol=1e-9)

    def test_parameters_come_back(self, truth):
        X = with_gaps(truth.sample(4000, random_state=2)[0], 0.3)
        network = fit_parameters(
            IncompleteData.of(X), start_of(X, truth.adjacency)
        ).network
        assert_allclose(network.weights, truth.weights, atol=0.15)
        assert_allclose(network.noise_variance, truth.noise_variance, atol=0.15)

    def test_latents_are_standardised(self, truth):
        rng = np.random.RandomState(0)
        scatter = rng.normal(size=(30, 10))
        statistics = GaussianStatistics(30.0, rng.normal(size=10), scatter.T @ scatter)
        plain = maximise(statistics, truth.adjacency, 0)
        latent = maximise(statistics, truth.adjacency, 2)
        deviation = np.sqrt(np.diagonal(statistics.covariance)[8:])
        shift = np.append(np.zeros(8), -statistics.mean[8:] / deviation)
        expected = plain._rescaled(np.append(np.ones(8), 1.0 / deviation), shift)
        for found, own in zip(latent._parameters, expected._parameters, strict=True):
            assert_allclose(found, own)

    def test_saturated_guess_keeps_correlations(self, complete_rows):
        X = with_gaps(complete_rows, 0.4)
        guess = saturated_statistics(IncompleteData.of(X))
        plain = GaussianStatistics.of(complete_rows)
        filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        mean_filled = GaussianStatistics.of(filled)

        def error(statistics):
            return np.abs(statistics.covariance - plain.covariance).mean()

        assert error(guess) < 0.5 * error(mean_filled)


class TestLearn:
    """The score of a step is its number; every step is tried once."""

    def run(self, scores, **limits):
        tried = []

        def fit(step):
            tried.append(step)
            return step

        def search(step):
            return step + 1 if step + 1 < len(scores) else None

        return learn(0, fit, search, lambda step: scores[step], **limits), tried

    def test_it_ends_where_the_score_falls(self):
        assert self.run([0.0, 1.0, 2.0, 1.5, 9.0]) == (2, [0, 1, 2, 3])

    def test_it_ends_where_nothing_is_found(self):
        assert self.run([0.0, 1.0]) == (1, [0, 1])

    def test_a_gain_below_the_tolerance_is_none(self):
        assert self.run([0.0, 0.4, 9.0], tol=0.4)[0] == 0
        assert self.run([0.0, 0.41], tol=0.4)[0] == 1

    def test_rounds_are_limited(self):
        assert self.run([0.0, 1.0, 2.0, 3.0], max_rounds=2)[0] == 2


class TestStructure:
    @pytest.mark.parametrize("search", ["greedy", "order"])
    def test_searches_are_told(self, complete_rows, search):
        X = with_gaps(complete_rows, 0.2)
        learned = learn_rows(X, free_options(10, search=search))
        assert learned.n_evaluated > 0
        assert learned.history
        nothing = start_of(X, np.zeros((10, 10), dtype=bool))
        assert score(learned.network, X) > score(nothing, X)

    def test_nothing_missing_is_plain_search(self, complete_rows):
        # In the same units and order, so that ties are decided alike.
        X = Units.of(complete_rows).scores(complete_rows)
        learned = learn_rows(X, free_options(10))
        plain = GaussianStatistics.of(X)
        rounded = GaussianStatistics(
            600.0, 0 * plain.mean, 600 * plain.covariance.round(10)
        )
        result = greedy_search(LinearEvaluator(rounded))
        assert_array_equal(learned.network.adjacency, result.adjacency)
        assert_allclose(score(learned.network, X), result.score)

    @pytest.mark.parametrize("share", [0.1, 0.3])
    def test_structure_survives_gaps(self, truth, complete_rows, share):
        options = free_options(10, search="order")
        full = learn_rows(complete_rows, options).network.adjacency
        X = with_gaps(complete_rows, share)
        found = learn_rows(X, options).network.adjacency
        errors = skeleton_errors(truth.adjacency, found)
        assert errors <= skeleton_errors(truth.adjacency, full) + 6

    def test_gaps_are_filled_better_than_by_means(self, complete_rows):
        X = with_gaps(complete_rows, 0.2)
        gaps = np.isnan(X)
        network = learn_rows(X, free_options(10)).network
        ours = (network.expectation(X) - complete_rows)[gaps]
        means = (np.nanmean(X, axis=0) - complete_rows)[gaps]
        assert np.mean(ours**2) < 0.6 * np.mean(means**2)

    @pytest.mark.filterwarnings("ignore:.*fitted without noise")
    @pytest.mark.filterwarnings("ignore:Latents were found in 18 rows")
    @pytest.mark.parametrize("max_latents", [0, 2])
    def test_order_and_repetition_do_not_change_a_digit(self, max_latents):
        """Also where EM is far from the end when it stops: features outnumber rows."""
        rng = np.random.RandomState(0)
        X = rng.normal(size=(15, 30))
        X[rng.uniform(size=X.shape) < 0.1] = np.nan
        weights = rng.randint(0, 4, size=len(X))
        learner = IdealParentGaussianBN(max_latents=max_latents, penalty=1.0)
        weighted = learner.fit(X, sample_weight=weights).network_
        repeated = learner.fit(rng.permutation(X.repeat(weights, axis=0))).network_
        assert_array_equal(weighted.weights, repeated.weights)
        assert_array_equal(weighted.noise_variance, repeated.noise_variance)

    def test_masks_and_limits(self, truth, complete_rows):
        X = with_gaps(complete_rows, 0.1)
        forbidden = truth.adjacency | np.eye(10, dtype=bool)
        required = np.zeros((10, 10), dtype=bool)
        required[9, 0] = True
        options = SearchOptions(forbidden, required, max_parents=2)
        found = learn_rows(X, options).network.adjacency
        assert not (found & truth.adjacency).any()
        assert found[9, 0]
        assert found.sum(axis=0).max() <= 2


@pytest.mark.parametrize("scale, shift", [(1e-9, 0.0), (1e6, 1e9)])
def test_any_scale(scale, shift, complete_rows):
    X = with_gaps(complete_rows[:200], 0.2)
    plain = learn_rows(X, free_options(10)).network
    scaled = learn_rows(scale * X + shift, free_options(10)).network
    assert skeleton_errors(plain.adjacency, scaled.adjacency) == 0
    assert_allclose(plain.weights, scaled.weights, atol=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.PoorDataWarning")
def test_collinear_features_of_very_heavy_rows():
    X = [[0.0, 0.0, np.nan, 1.0, 1.0], [0.0] * 5, [0.0] * 5]
    for heavy in (1e16, 1e90):
        model = IdealParentGaussianBN().fit(X, sample_weight=[heavy, 0.3, 1e-320])
        assert np.isfinite(model.transform(X)).all()
