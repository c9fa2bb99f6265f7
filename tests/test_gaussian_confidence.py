"""How sure edges are: classes, calibration, and their picture."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from sklearn_latent.gaussian import IdealParentGaussianBN
from sklearn_latent.plotting import EdgeConfidenceDisplay


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


class TestDisplay:
    def test_bars_are_the_shares(self):
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(chain(200, 0), columns=["a", "b", "c"])
        model = IdealParentGaussianBN()
        display = EdgeConfidenceDisplay.from_estimator(
            model, X, n_bootstraps=4, random_state=0
        )
        confidence = model.edge_confidence(X, 4, random_state=0)
        total = sum(bar.get_width() for bar in display.ax_.patches)
        shown = np.triu(confidence + confidence.T, 1)
        assert total == pytest.approx(shown[shown >= 0.05].sum())
        labels = {text.get_text() for text in display.ax_.get_yticklabels()}
        assert labels <= {f"{i} → {j}" for i in "abc" for j in "abc"}

    def test_at_most_so_many_pairs(self):
        confidence = np.triu(np.full((10, 10), 0.6), 1)
        display = EdgeConfidenceDisplay(confidence).plot(max_pairs=7)
        assert len(display.ax_.get_yticklabels()) == 7
        assert not EdgeConfidenceDisplay(confidence).plot(least=0.7).ax_.patches

    def test_wrong_arguments(self):
        with pytest.raises(ValueError, match="confidence must be a square matrix"):
            EdgeConfidenceDisplay([[0.1, 0.2]]).plot()
        with pytest.raises(TypeError, match="edge_confidence"):
            EdgeConfidenceDisplay.from_estimator(object(), np.eye(2))
        with pytest.raises(ValueError, match="max_pairs"):
            EdgeConfidenceDisplay([[0.0]]).plot(max_pairs=0)
