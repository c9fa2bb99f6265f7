"""Mean field for networks that are not jointly Gaussian."""

import warnings

import numpy as np
import pytest
from gaussian_strategies import free_options, learn_rows, network_of, score, with_gaps
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.gaussian import GaussianNetwork
from sklearn_latent.gaussian._bent_em import NonlinearEM
from sklearn_latent.gaussian._bent_inference import (
    MeanField,
    derivatives,
    infer,
    sign_points,
)
from sklearn_latent.gaussian._conditional import IncompleteData, Joint, condition
from sklearn_latent.gaussian._structural_em import StructuralEM

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.ApproximateInferenceWarning"
)


def sigmoid_network(n_nodes=6, noise="additive", seed=0, n_latents=0):
    rng = np.random.RandomState(seed)
    adjacency = np.triu(rng.uniform(size=(n_nodes, n_nodes)) < 0.5, 1)[::-1, ::-1]
    weights = adjacency * rng.uniform(0.7, 2.0, adjacency.shape)
    weights *= rng.choice([-1, 1], adjacency.shape)
    theta = np.zeros((n_nodes, 3))
    theta[:, 0], theta[:, 1] = rng.normal(size=n_nodes), rng.uniform(1, 3, n_nodes)
    variance = rng.uniform(0.1, 0.3, n_nodes)
    intercept = theta[:, 0]
    if noise == "multiplicative":
        theta[:, 0] = 1.0 + np.abs(theta[:, 0])
        intercept, variance = theta[:, 0] + 2.0, variance / 10
    return GaussianNetwork(
        adjacency,
        weights,
        intercept,
        variance,
        link="sigmoid",
        noise=noise,
        link_parameters=theta,
        n_latents=n_latents,
    )


@pytest.fixture(params=["additive", "multiplicative"])
def network(request):
    return sigmoid_network(noise=request.param)


class TestPoints:
    @pytest.mark.parametrize("n_missing", [1, 2, 3, 5, 8, 17])
    def test_moments(self, n_missing):
        points = sign_points(n_missing)
        assert_allclose(points.mean(axis=0), 0.0)
        assert_allclose(points.T @ points / len(points), np.eye(n_missing), atol=1e-12)
        third = np.einsum("ni,nj,nk->ijk", points, points, points)
        assert_allclose(third, 0.0)

    def test_many_dimensions(self):
        points = sign_points(100)
        assert points.shape == (128, 100)
        assert_allclose(points.mean(axis=0), 0.0)

    def test_table_has_the_moments_of_the_posterior(self):
        network = sigmoid_network()
        X = with_gaps(network.sample(30, random_state=0)[0], 0.3)
        field = MeanField(X, network.n_nodes, positive=network._noise.positive)
        field.start_forward(network)
        field.improve(network)
        weight = np.arange(1.0, 31.0)
        table, weights = field.table(weight)
        assert_allclose(weights.sum(), weight.sum())
        assert np.isfinite(table).all()
        assert_allclose(weights @ table, weight @ field.expectation())


class TestInference:
    def test_linear_bound_is_that_of_mean_field(self):
        # The gap is the information that independent factors lose: closed form.
        weights = np.zeros((3, 3))
        weights[0, 1] = weights[0, 2] = 1.0
        network = network_of(weights)
        X = np.array([[np.nan, np.nan, 1.0]])
        field = MeanField(X, network.n_nodes, positive=network._noise.positive)
        field.start_forward(network)
        bound = field.improve(network)
        joint = Joint(weights, np.zeros(3), np.ones(3))
        precision = joint.precision[:2, :2]
        lost = np.log(np.diagonal(precision)).sum() - np.linalg.slogdet(precision)[1]
        assert_allclose(bound, condition(joint, X)[1] - 0.5 * lost, atol=1e-8)

    def test_one_missing_value_against_a_grid(self, network):
        complete = network.sample(80, random_state=0)[0]
        rng = np.random.RandomState(1)
        X = complete.copy()
        gaps = rng.randint(6, size=80)
        X[np.arange(80), gaps] = np.nan
        means, log_likelihood = infer(network, X)[:2]
        positive = network.noise == "multiplicative"
        for row, node in enumerate(gaps):
            low, high = complete[:, node].min() - 3, complete[:, node].max() + 3
            grid = np.linspace(max(low, 1e-3) if positive else low, high, 4001)
            values = np.repeat(X[[row]], len(grid), axis=0)
            values[:, node] = grid
            density = network._family_log_likelihoods(values).sum(axis=1)
            top = density.max()
            share = np.exp(density - top)
            exact = top + np.log(share.sum() * (grid[1] - grid[0]))
            mean = share @ grid / share.sum()
            spread = np.sqrt(share @ (grid - mean) ** 2 / share.sum())
            assert_allclose(log_likelihood[row], exact, atol=0.03)
            assert abs(means[row, node] - mean) < 0.2 * spread

    def test_improving_never_lowers_the_bound(self, network):
        X = with_gaps(network.sample(60, random_state=0)[0], 0.4)
        field = MeanField(X, network.n_nodes, positive=network._noise.positive)
        field.start_forward(network)
        before = field.bound(network)
        for _ in range(5):
            after = field.improve(network, max_steps=1)
            assert (after >= before - 1e-9).all()
            assert_allclose(after, field.bound(network), atol=1e-8)
            before = after

    def test_gradient_against_differences(self, network):
        values = network.sample(5, random_state=0)[0][:, None]
        missing = np.tile([1, 4], (5, 1))
        gradient, metric = derivatives(network, values, missing)
        for place, node in enumerate([1, 4]):
            step = np.zeros(6)
            step[node] = 1e-5
            high = network._family_log_likelihoods((values + step)[:, 0]).sum(axis=1)
            low = network._family_log_likelihoods((values - step)[:, 0]).sum(axis=1)
            assert_allclose(
                gradient[:, 0, place], (high - low) / 2e-5, rtol=1e-4, atol=1e-4
            )
        assert (np.linalg.eigvalsh(metric) > 0).all()

    def test_rows_do_not_depend_on_their_company(self, network):
        X = with_gaps(network.sample(20, random_state=0)[0], 0.3)
        means, log_likelihood = infer(network, X)[:2]
        for row in range(20):
            alone, density = infer(network, X[[row]])[:2]
            assert_allclose(alone[0], means[row], atol=1e-5)
            assert_allclose(density[0], log_likelihood[row], atol=1e-5)

    def test_complete_rows_are_exact_and_silent(self, network):
        X = network.sample(20, random_state=0)[0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            means, log_likelihood = infer(network, X)[:2]
        assert_array_equal(means, X)
        assert_allclose(log_likelihood, network._family_log_likelihoods(X).sum(axis=1))

    def test_gaps_are_announced(self, network):
        X = with_gaps(network.sample(5, random_state=0)[0], 0.5)
        with pytest.warns(ApproximateInferenceWarning, match="approximate"):
            infer(network, X)

    def test_a_row_that_misses_everything(self, network):
        means, log_likelihood = infer(network, np.full((1, 6), np.nan))[:2]
        assert np.isfinite(means).all()
        assert_allclose(log_likelihood, 0.0, atol=0.3)


@pytest.fixture(scope="module")
def truth():
    """A chain of sigmoid responses."""
    weights, theta = np.diag(np.full(4, 2.0), 1), np.tile([-1.5, 3.0, 0.0], (5, 1))
    noise = [1.0, 0.1, 0.1, 0.1, 0.1]
    return network_of(weights, noise, link="sigmoid", link_parameters=theta)


class TestLearning:
    def options(self, n, **more):
        more.setdefault("link", "sigmoid")
        return free_options(n, n_candidates=None, **more)

    def test_chain_with_gaps(self, truth):
        complete = truth.sample(300, random_state=0)[0]
        X = with_gaps(complete, 0.15)
        learned = learn_rows(X, self.options(5))
        found = learned.network.adjacency
        true = truth.adjacency
        assert ((found | found.T) & true).sum() == 4
        gaps = np.isnan(X)
        ours = (learned.network.expectation(X) - complete)[gaps]
        means = (np.nanmean(X, axis=0) - complete)[gaps]
        assert np.mean(ours**2) < 0.5 * np.mean(means**2)

    def test_bound_never_falls(self, truth):
        X = with_gaps(truth.sample(100, random_state=0)[0], 0.2)
        setting = self.options(5)
        em = NonlinearEM(X, None, StructuralEM(IncompleteData.of(X), setting))
        filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        start = em.first(truth.adjacency, 0, filled, np.ones(5))
        bounds = [em.fit(start, max_steps=k).log_likelihood for k in (1, 1, 2, 3, 5)]
        assert np.diff(bounds).min() > -1e-6

    def test_weight_two_is_a_row_twice(self, truth):
        X = with_gaps(truth.sample(60, random_state=0)[0], 0.1)
        weight = np.repeat([1.0, 2.0], 30)
        weighted = learn_rows(X, self.options(5), weight)
        repeated = learn_rows(np.vstack([X, X[30:]]), self.options(5))
        found = [score(each.network, X, weight) for each in (weighted, repeated)]
        assert_allclose(*found, rtol=1e-3)

    def test_latent(self):
        rng = np.random.RandomState(0)
        weights = np.zeros((9, 9))
        weights[8, :8] = rng.uniform(1.5, 2.5, 8) * rng.choice([-1, 1], 8)
        bent = {"link": "sigmoid", "link_parameters": np.tile([-1.5, 3, 0], (9, 1))}
        truth = network_of(weights, [0.1] * 8 + [1.0], n_latents=1, **bent)
        X, Z = truth.sample(250, random_state=1)
        network, linear = (
            learn_rows(
                X, self.options(8, link=link, max_latents=2, bipartite=True)
            ).network
            for link in ("sigmoid", "linear")
        )
        assert network.n_latents == 1
        assert network.adjacency[8, :8].all()
        assert not network.adjacency[:8].any()
        latent = network.expectation(X)[:, 8]
        assert abs(np.corrcoef(latent, Z[:, 0])[0, 1]) > 0.95
        test = truth.sample(300, random_state=2)[0]
        assert network.log_likelihood(test).mean() > linear.log_likelihood(test).mean()

    def test_multiplicative_noise(self):
        truth = sigmoid_network(noise="multiplicative")
        X = with_gaps(truth.sample(150, random_state=0)[0], 0.1)
        setting = self.options(6, noise="multiplicative")
        network = learn_rows(X, setting).network
        completed = network.expectation(X)
        assert (completed > 0).all()
        assert np.isfinite(network.log_likelihood(X)).all()
