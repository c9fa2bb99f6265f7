"""Rows that say little make a poor network, not a crash, in every kind of search."""

import numpy as np
import pytest
from gaussian_strategies import free_options, learn_rows, with_gaps
from numpy.testing import assert_allclose

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.ApproximateInferenceWarning"
)

BIPARTITE = {"max_latents": 2, "bipartite": True}
SETTINGS = {
    "greedy": {"search": "greedy"},
    "order": {"search": "order"},
    "latents": {"max_latents": 2},
    "latents of the paper": {"max_latents": 2, "published": True},
    "two layers": BIPARTITE,
    "two layers of the paper": BIPARTITE | {"published": True},
    "sigmoid": {"link": "sigmoid", "max_latents": 1, "n_candidates": None},
}


def emptied(X, place):
    X = X.copy()
    X[place] = np.nan
    return X


TABLES = {
    "constant": lambda X: np.column_stack([X, np.full(len(X), 7.0)]),
    "duplicates": lambda X: X[:, [0, 1, 2, 1, 1]],
    "wide": lambda X: X.reshape(6, -1)[:, :12],
    "one row": lambda X: X[:1],
    "one column": lambda X: X[:, :1],
    "a column with one value": lambda X: emptied(X, np.s_[1:, 0]),
    "an empty row": lambda X: emptied(X, np.s_[3]),
    "many gaps": lambda X: emptied(with_gaps(X, 0.4), np.s_[0]),
}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_networks_of_poor_tables_are_finite(setting, kind, gaps):
    X = np.random.RandomState(0).normal(size=(30, 4))
    X = TABLES[kind](X if not gaps else with_gaps(X, 0.1))
    network = learn_rows(X, free_options(X.shape[1], **SETTINGS[setting])).network
    assert np.isfinite(network.weights).all() and np.isfinite(network.intercept).all()
    assert (network.noise_variance > 0).all()
    assert np.isfinite(network.log_likelihood(X)).all()
    completed = network.expectation(X)
    assert np.isfinite(completed).all()
    if kind == "constant":
        assert_allclose(network.intercept[4], 7.0)
        assert not network.adjacency[4].any()
    if kind == "an empty row" and setting != "sigmoid":
        assert_allclose(completed[3], network.joint()[0], atol=1e-9)
