"""How sure edges are: directions, and calibration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_latent.gaussian import IdealParentGaussianBN


def chain(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 1]
    return X


RULES = {"forbidden": [(1, 0)], "required": [(1, 2)]}


@pytest.mark.parametrize(
    ("rules", "share", "tolerance"), [({}, 0.5, 0.02), (RULES, 1.0, 0.0)]
)
def test_open_edges_count_a_half_in_either_direction_others_a_whole(
    rules, share, tolerance
):
    model = IdealParentGaussianBN(**rules)
    confidence = model.edge_confidence(chain(500, 0), 5)
    assert_allclose(confidence[[0, 1], [1, 2]], share, atol=0.02)
    assert_allclose(confidence[[1, 2], [0, 1]], 1.0 - share, atol=tolerance)


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
