"""How sure edges are: classes, calibration, and their picture."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from sklearn_latent.gaussian import IdealParentGaussianBN


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def chain(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 1]
    return X


def test_open_edges_count_a_half_in_either_direction():
    confidence = IdealParentGaussianBN().edge_confidence(chain(500, 0), 5)
    np.testing.assert_allclose(confidence[[0, 1], [1, 2]], 0.5, atol=0.02)
    np.testing.assert_allclose(confidence[[1, 2], [0, 1]], 0.5, atol=0.02)


def test_edges_that_must_have_a_direction_count_as_a_whole():
    model = IdealParentGaussianBN(forbidden=[(1, 0)], required=[(1, 2)])
    confidence = model.edge_confidence(chain(500, 0), 5)
    np.testing.assert_allclose(confidence[[0, 1], [1, 2]], 1.0, atol=0.02)
    assert confidence[1, 0] == confidence[2, 1] == 0.0


def test_confidence_overstates_no_edge():
    """Pairs, and edges with their direction."""
    rng = np.random.default_rng(0)
    found, true = [], []
    for seed in range(30):
        graph = np.triu(rng.uniform(size=(6, 6)) < 0.35, 1)
        weights = graph * rng.uniform(0.1, 0.7, (6, 6))
        X = np.linalg.solve(np.eye(6) - weights.T, rng.normal(size=(6, 100))).T
        model = IdealParentGaussianBN().fit(X)
        confidence = model.edge_confidence(X, 20, random_state=seed)
        apart, pairs = ~np.eye(6, dtype=bool), np.triu_indices(6, 1)
        found.append([confidence[apart], (confidence + confidence.T)[pairs]])
        true.append([graph[apart], graph[pairs]])
    for kind in range(2):
        stated, share = (np.concatenate([p[kind] for p in s]) for s in (found, true))
        for low, high in ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0)):
            chosen = (stated > low) & (stated <= high)
            error = np.sqrt((stated * (1 - stated))[chosen].sum()) / chosen.sum()
            assert stated[chosen].mean() < share[chosen].mean() + 0.05 + 3.0 * error
