"""Filling gaps by the model and by neighbouring values."""

import numpy as np
import pytest
from dbn_strategies import dbns, seeds, sequences
from hypothesis import given, settings

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.temporal import LatentDBN, TemporalGraph
from sklearn_latent.temporal._em.em import fit_chain
from sklearn_latent.temporal._em.impute import IMPUTE_STRATEGIES, Imputer

few = settings(max_examples=15, deadline=None)


@few
@given(dbns(), seeds)
@pytest.mark.parametrize("strategy", IMPUTE_STRATEGIES)
def test_only_gaps_are_filled(strategy, network, seed):
    codes = sequences(network, 10, 3, seed)
    imputer = Imputer().fit(network, codes)
    before = codes.copy()
    filled = imputer.fill(network, codes, strategy)
    np.testing.assert_array_equal(codes, before)
    known = codes >= 0
    np.testing.assert_array_equal(filled[known], codes[known])
    assert (filled >= 0).all()
    assert (filled < network.n_categories).all()
    for f, table in enumerate(imputer.probabilities(network, codes, strategy)):
        assert table.shape == ((~known[:, :, f]).sum(), network.n_categories[f])
        np.testing.assert_allclose(table.sum(axis=1), 1.0)


@few
@given(dbns(), seeds)
def test_without_training_the_hybrid_is_the_model(network, seed):
    codes = sequences(network, 10, 3, seed)
    nothing = np.full_like(codes, -1)
    imputer = Imputer().fit(network, nothing)
    for a, b in zip(
        imputer.probabilities(network, codes, "hybrid"),
        imputer.probabilities(network, codes, "posterior"),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-9)


@few
@given(dbns(), seeds)
def test_weights_and_order_of_training_sequences(network, seed):
    codes = sequences(network, 12, 3, seed)
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 3, 12)
    weighted = Imputer().fit(network, codes, counts.astype(float))
    repeated = Imputer().fit(
        network, rng.permutation(np.repeat(codes, counts, axis=0), axis=0)
    )
    for a, b in zip(weighted.weights, repeated.weights, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@few
@given(dbns(), seeds)
def test_a_sequence_is_filled_without_regard_to_the_others(network, seed):
    codes = sequences(network, 6, 3, seed)
    imputer = Imputer().fit(network, codes)
    together = imputer.probabilities(network, codes, "hybrid")
    for f in range(network.n_observed):
        rows = np.argwhere(codes[:, :, f] < 0)[:, 0]
        for i in range(6):
            alone = imputer.probabilities(network, codes[i : i + 1], "hybrid")[f]
            np.testing.assert_allclose(alone, together[f][rows == i], atol=1e-9)


def accuracy(filled, codes, hidden):
    return (filled == codes)[hidden].mean()


def test_hybrid_learns_habits_that_the_latents_do_not_explain():
    # Each feature repeats its own last value, whatever the latent does.
    rng = np.random.default_rng(0)
    n, n_slices, n_observed = 400, 5, 3
    codes = np.empty((n, n_slices, n_observed), dtype=int)
    codes[:, 0] = rng.integers(0, 3, (n, n_observed))
    for t in range(1, n_slices):
        stay = rng.random((n, n_observed)) < 0.85
        codes[:, t] = np.where(
            stay, codes[:, t - 1], rng.integers(0, 3, (n, n_observed))
        )
    graph = TemporalGraph(np.ones((1, n_observed)), [[0]], [[1]])
    network, _ = fit_chain(codes[:300], [3] * 3, graph, [2], random_state=0)
    imputer = Imputer().fit(network, codes[:300])
    test = codes[300:]
    hidden = rng.random(test.shape) < 0.1
    gaps = np.where(hidden, -1, test)
    hybrid = accuracy(imputer.fill(network, gaps, "hybrid"), test, hidden)
    posterior = accuracy(imputer.fill(network, gaps), test, hidden)
    assert hybrid > 0.8 > 0.65 > posterior


def test_hybrid_is_as_good_as_a_true_model():
    data = make_latent_dbn("G3", n_sequences=2000, n_slices=5, random_state=0)
    network: LatentDBN = data.network
    train, test = data.codes[:1000], data.codes[1000:]
    imputer = Imputer().fit(network, train)
    hidden = np.random.default_rng(0).random(test.shape) < 0.15
    gaps = np.where(hidden, -1, test)
    hybrid = accuracy(imputer.fill(network, gaps, "hybrid"), test, hidden)
    posterior = accuracy(imputer.fill(network, gaps), test, hidden)
    assert hybrid > posterior - 0.01
