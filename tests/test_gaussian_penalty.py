"""What networks cost, and that noise does not pay it."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from gaussian_strategies import score
from numpy.testing import assert_allclose
from scipy.stats import beta, chi2

from sklearn_latent import IdealParentGaussianBN
from sklearn_latent._core.criteria import log_choices, small_sample_factor
from sklearn_latent._core.graphs import equivalence_class
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.gaussian import GaussianNetwork
from sklearn_latent.gaussian._backward import extend
from sklearn_latent.gaussian._rules import Penalty

SHAPES = [(12, 30), (20, 40), (100, 30)]


def noise(n_samples, n_features, seed):
    return np.random.RandomState(seed).normal(size=(n_samples, n_features))


def random_graph(n_nodes, n_edges, seed):
    rng = np.random.RandomState(seed)
    pairs = np.argwhere(np.triu(np.ones((n_nodes, n_nodes)), 1))
    chosen = pairs[rng.choice(len(pairs), n_edges, replace=False)]
    graph = np.zeros((n_nodes, n_nodes), dtype=bool)
    graph[chosen[:, 0], chosen[:, 1]] = True
    order = rng.permutation(n_nodes)
    return graph[np.ix_(order, order)]


class TestPrices:
    @pytest.mark.parametrize("n_rows", [12, 20, 50, 500])
    @pytest.mark.parametrize("share", [0.0, 0.25, 0.5])
    def test_chance_gains_alike_with_few_rows_and_many(self, n_rows, share):
        # The squared partial correlation of independent columns has a beta
        # distribution, whatever the number of parents that are there already.
        n_parents = int(share * (n_rows - 4))
        for gain in (1.0, 3.0, 6.0):
            needed = small_sample_factor(n_rows, n_parents) * gain
            correlation = 1.0 - np.exp(-2.0 * needed / n_rows)
            chance = beta(0.5, 0.5 * (n_rows - n_parents - 2)).sf(correlation)
            assert_allclose(chance, chi2(1).sf(2.0 * gain), rtol=0.15)

    def test_many_rows_need_no_factor(self):
        many = Penalty("ebic", 1e9, 20)
        assert_allclose(many.parents(3), np.arange(4) * np.log(19), rtol=1e-6)
        rare = replace(many, n_edges=1)
        assert_allclose(rare.parents(3), np.arange(4) * np.log(190), rtol=1e-6)

    def test_structures_are_counted(self):
        for n_edges in range(11):
            assert_allclose(log_choices(10, n_edges), np.log(comb(10, n_edges)))
        penalty = Penalty("ebic", 1e9, 6)
        for n_edges in (0, 1, 7):
            price = penalty.structure(random_graph(6, n_edges, 0))
            assert_allclose(price, np.log(comb(15, n_edges)), rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize("kind", [1.0, "ebic"])
    def test_children_are_counted_once(self, kind):
        graph = np.zeros((9, 9), dtype=bool)
        graph[8, :3] = True  # a latent over 3 of 8 features
        price = Penalty(kind, 1e9, 8).structure(graph)
        assert_allclose(price, np.log(comb(8, 3)), rtol=1e-6)

    @pytest.mark.parametrize("seed", range(5))
    def test_equivalent_graphs_cost_the_same(self, seed):
        graph = random_graph(8, 14, seed)
        other = extend(
            equivalence_class(graph), np.random.RandomState(seed).choice(8, 1)
        )
        penalty = Penalty("ebic", 20, 8)
        assert_allclose(penalty.structure(graph), penalty.structure(other))
        prices = penalty.parents(8)
        assert_allclose(
            prices[graph.sum(axis=0)].sum(), prices[other.sum(axis=0)].sum()
        )

    def test_plain_bic_charges_nothing_but_parameters(self):
        penalty = Penalty(1.0, 12, 30)
        assert penalty.parameter == 0.5 * np.log(12)
        assert not penalty.parents(30).any()
        assert penalty.structure(random_graph(30, 50, 0)) == 0.0
        assert penalty.latent_edge == 0.0


class TestNoise:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("bipartite", [True, False])
    def test_next_to_nothing_is_found(self, shape, bipartite):
        with_edges = 0
        for seed in range(3):
            X = noise(*shape, seed)
            model = IdealParentGaussianBN(max_latents=2, bipartite=bipartite).fit(X)
            assert model.n_latents_ == 0
            assert model.adjacency_.sum() <= 3
            with_edges += model.adjacency_.any()
        # One table in twenty has edges by chance.
        assert with_edges <= 1

    @pytest.mark.parametrize(
        "settings", [{}, {"max_latents": 2, "search": "greedy", "penalty": "ebic"}]
    )
    def test_nor_by_other_searches(self, settings):
        n_edges = 0
        for shape in SHAPES:
            model = IdealParentGaussianBN(**settings).fit(noise(*shape, 0))
            n_edges += model.adjacency_.sum()
        assert n_edges <= 1

    def test_missing_values(self):
        X = noise(30, 12, 0)
        X[np.random.RandomState(1).uniform(size=X.shape) < 0.1] = np.nan
        for max_latents in (0, 2):
            model = IdealParentGaussianBN(max_latents=max_latents).fit(X)
            assert model.adjacency_.sum() <= 1
            assert model.n_latents_ == 0

    def test_constant_and_equal_columns(self):
        X = noise(15, 20, 0)
        X[:, 0] = 3.0
        X[:, 1] = X[:, 2]
        with (
            pytest.warns(PoorDataWarning, match="constant and have no edges: x0"),
            pytest.warns(PoorDataWarning, match="without noise"),
        ):
            model = IdealParentGaussianBN(max_latents=2).fit(X)
        assert model.adjacency_[1, 2] ^ model.adjacency_[2, 1]
        assert model.adjacency_.sum() == 1


class TestStructure:
    def test_latents_behind_more_features_than_rows(self):
        data = make_gaussian_bn(
            36, 3, 30, n_parents=1.5, bipartite=True, random_state=0
        )
        test = data.network.sample(1000, random_state=1)[0]
        layers = IdealParentGaussianBN(max_latents=4, bipartite=True).fit(data.X)
        free = IdealParentGaussianBN(max_latents=4).fit(data.X)
        without = IdealParentGaussianBN().fit(data.X)
        assert layers.n_latents_ == free.n_latents_ == 3
        assert min(layers.score(test), free.score(test)) > without.score(test)
        # Free placement includes two layers, and few rows must not make it worse.
        assert free.score(test) > layers.score(test) - 0.01 * 36

    def test_edges_that_fit_noise_do_not_hide_latents(self):
        base = make_gaussian_bn(
            20, 2, 10, n_parents=1.0, bipartite=True, random_state=0
        ).network
        weights = base.weights.copy()
        weights[0, 1] = weights[2, 3] = 1.2
        truth = GaussianNetwork(
            weights != 0, weights, base.intercept, base.noise_variance, n_latents=2
        )
        X, _ = truth.sample(100, random_state=0)
        model = IdealParentGaussianBN(max_latents=4).fit(X)
        assert model.n_latents_ == 2
        found = model.adjacency_[:20, :20]
        assert found.sum() <= 6
        assert ((found | found.T) & truth.adjacency[:20, :20]).sum() == 2

    def test_more_features_than_rows(self):
        data = make_gaussian_bn(40, 0, 30, random_state=0)
        test = data.network.sample(1000, random_state=1)[0]
        model = IdealParentGaussianBN(max_latents=2).fit(data.X)
        independent = GaussianNetwork(
            np.zeros((40, 40), dtype=bool),
            np.zeros((40, 40)),
            data.X.mean(axis=0),
            data.X.var(axis=0),
        )
        gain = model.score(test) - independent.log_likelihood(test).mean()
        assert gain > 0.3 * 40

    @pytest.mark.filterwarnings("ignore:X looks suspicious")
    def test_a_weight_of_two_is_a_row_twice(self):
        data = make_gaussian_bn(12, 2, 40, bipartite=True, random_state=0)
        weight = np.repeat([1.0, 2.0], 20)
        model = IdealParentGaussianBN(max_latents=3)
        weighted = model.fit(data.X, sample_weight=weight).bic_
        repeated = model.fit(np.vstack([data.X, data.X[20:]])).bic_
        assert_allclose(weighted, repeated, rtol=1e-8)


class TestPublished:
    @pytest.mark.parametrize("max_latents", [0, 2])
    @pytest.mark.parametrize("search", ["greedy", "order"])
    def test_penalty_of_one_is_the_bic(self, search, max_latents):
        model = IdealParentGaussianBN(
            search=search, penalty=1.0, max_latents=max_latents, margins="normal"
        )
        X = noise(15, 8, 0)
        network = model.fit(X).network_
        assert model.penalty_ == 1.0
        assert_allclose(-2 * score(network, X), model.bic_)

    def test_the_search_of_the_paper_takes_its_score(self):
        model = IdealParentGaussianBN(max_latents=1, search="greedy")
        assert model.fit(noise(30, 5, 0)).penalty_ == 1.0
        model.set_params(search="auto")
        assert model.fit(noise(30, 5, 0)).penalty_ == "ebic"
