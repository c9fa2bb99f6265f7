"""Steps towards latents: rotations of loadings, clusters of profiles."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group

from sklearn_latent.gaussian._factors import fewest_edges, promax, varimax
from sklearn_latent.gaussian._paper_latents import (
    agglomerate,
    leading,
    profile_gain,
)

WEIGHT, PRICE = np.full(32, 250.0), 3.0


@pytest.fixture(scope="module")
def sparse():
    rng = np.random.RandomState(0)
    loadings = np.kron(np.eye(4), np.ones(8)) * rng.uniform(0.5, 1, (4, 32))
    loadings[1, :3] = 0.8
    return loadings


def turned(loadings, seed):
    """Loadings in a random rotation."""
    size = len(loadings)
    return ortho_group.rvs(size, random_state=seed) @ loadings


def cost(loadings):
    """What edges cost, or their loss if that is less."""
    return np.minimum(loadings**2 * WEIGHT, PRICE).sum()


class TestRotation:
    def test_likelihood_stays(self, sparse):
        start = turned(sparse, 1)
        for back in (fewest_edges(start, WEIGHT, PRICE), varimax(start)):
            assert_allclose(back.T @ back, sparse.T @ sparse, atol=1e-10)

    def test_correlated_factors_get_few_loadings(self, sparse):
        correlation = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
        pure = np.where(np.kron(np.eye(4), np.ones(8)) > 0, sparse, 0.0)
        start = turned(np.linalg.cholesky(correlation).T @ pure, 1)
        pattern, found = promax(start)
        assert_allclose(pattern.T @ found @ pattern, start.T @ start, atol=1e-10)
        assert_allclose(np.diagonal(found), 1.0)
        assert (np.abs(pattern) > 0.25).sum() == 32
        assert (np.abs(found) > 0.3).all()

    def test_sparse_loadings_come_back(self, sparse):
        found = (fewest_edges(turned(sparse, i), WEIGHT, PRICE) for i in range(10))
        best = min(found, key=cost)
        assert_allclose(cost(best), PRICE * (sparse != 0).sum(), rtol=0.05)
        assert ((np.abs(best) > 0.1).sum()) == (sparse != 0).sum()

    def test_never_worse_than_before(self, sparse):
        for seed in range(5):
            start = turned(sparse, seed)
            assert cost(fewest_edges(start, WEIGHT, PRICE)) <= cost(start) + 1e-9


@pytest.fixture(scope="module")
def profiles():
    rng = np.random.RandomState(0)
    Z = rng.normal(size=(300, 2))
    Y = np.repeat(Z, 5, axis=1) + 0.5 * rng.normal(size=(300, 10))
    return (Y - Y.mean(axis=0)) / Y.std(axis=0)


class TestClusters:
    def test_eigenvector_maximises_the_bound(self, profiles):
        # Equation 11: the best profile among all combinations of the ideal profiles.
        Y = profiles[:, :5]
        value, vector = leading(Y.T @ Y)

        def bound(z):
            return ((z @ Y) ** 2).sum() / (z @ z)

        assert_allclose(bound(Y @ vector), value)
        rng = np.random.RandomState(1)
        for _ in range(50):
            assert bound(rng.normal(size=300)) <= value
            assert bound(Y @ rng.normal(size=5)) <= value + 1e-9

    def test_independent_features_gain_nothing(self):
        assert profile_gain(1.0, 1, 100, 0.0) < 0.0

    def test_groups_are_found(self, profiles):
        correlation = np.corrcoef(profiles.T)
        gain = partial(profile_gain, weight=300, parameter_cost=0.5 * np.log(300))
        levels = agglomerate(correlation, gain)
        assert [len(level) for level in levels] == list(range(10, 0, -1))
        for level in levels:
            members = np.sort(np.concatenate([c.members for c in level]))
            assert_array_equal(members, np.arange(10))
        pair = sorted(c.members.tolist() for c in levels[-2])
        assert pair == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
        for cluster in levels[-2]:
            block = correlation[np.ix_(cluster.members, cluster.members)]
            assert_allclose(cluster.eigenvalue, np.linalg.eigvalsh(block)[-1])
