"""Filling gaps by the model and by neighbouring values."""

import numpy as np
import pandas as pd
import pytest
from dbn_strategies import dbns, seeds, sequences
from hypothesis import given, settings

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.temporal import LPCC, LatentDBN, LGLPCCTemporal, TemporalGraph
from sklearn_latent.temporal._em import impute
from sklearn_latent.temporal._em.em import fit_chain
from sklearn_latent.temporal._em.impute import IMPUTE_STRATEGIES, Imputer, _last_known
from sklearn_latent.temporal._panels.panel import Panel

few = settings(max_examples=15, deadline=None)


def fitted(network, codes, weights=None):
    return Imputer(Panel.of(codes, network.n_categories, weights)).fit(network)


@few
@given(dbns(), seeds)
@pytest.mark.parametrize("strategy", IMPUTE_STRATEGIES)
def test_only_gaps_are_filled(strategy, network, seed):
    codes = sequences(network, 10, 3, seed)
    imputer = fitted(network, codes)
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
    imputer = fitted(network, nothing)
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
    weighted = fitted(network, codes, counts.astype(float))
    repeated = fitted(
        network, rng.permutation(np.repeat(codes, counts, axis=0), axis=0)
    )
    for a, b in zip(weighted.weights, repeated.weights, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@few
@given(dbns(), seeds)
def test_a_sequence_is_filled_without_regard_to_the_others(network, seed):
    codes = sequences(network, 6, 3, seed)
    imputer = fitted(network, codes)
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
    training = Panel.of(codes[:300], [3] * 3)
    network = fit_chain(training, graph, [2], random_state=0).state
    imputer = Imputer(training).fit(network)
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
    imputer = fitted(network, train)
    hidden = np.random.default_rng(0).random(test.shape) < 0.15
    gaps = np.where(hidden, -1, test)
    hybrid = accuracy(imputer.fill(network, gaps, "hybrid"), test, hidden)
    posterior = accuracy(imputer.fill(network, gaps), test, hidden)
    assert hybrid > posterior - 0.01


def test_weights_are_learned_from_a_bounded_number_of_values(monkeypatch):
    rng = np.random.default_rng(0)
    inputs, offset = rng.normal(size=(101, 2)), np.zeros((101, 3))
    target, mass = rng.integers(3, size=101), np.ones(101)
    monkeypatch.setattr(impute, "MAX_VALUES", 51)
    some = impute._fit_weights(inputs, offset, target, mass)
    # Every second value, from the first to the last.
    every = [part[::2] for part in (inputs, offset, target, mass)]
    np.testing.assert_allclose(some, impute._fit_weights(*every))
    monkeypatch.undo()
    assert not np.allclose(some, impute._fit_weights(inputs, offset, target, mass))


def test_last_known_value_and_its_age():
    column = np.array([[2, -1, -1, 0, -1], [-1, -1, 1, 1, -1]])
    value, age = _last_known(column)
    np.testing.assert_array_equal(value, [[-1, 2, 2, 2, 0], [-1, -1, -1, 1, 1]])
    # Slices since the last value; before any value there is none to count from.
    np.testing.assert_array_equal(age[0], [0, 1, 2, 3, 1])
    np.testing.assert_array_equal(age[1, 3:], [1, 1])


def test_an_older_value_counts_less():
    # Values stay for one more slice only: the last value tells the next, but no more.
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (600, 8, 2))
    codes[:, 1::2] = codes[:, ::2]
    graph = TemporalGraph([[1, 1]], [[0]], [[0]])
    training = Panel.of(codes, [3, 3])
    network = fit_chain(training, graph, [1]).state
    imputer = Imputer(training).fit(network)
    gaps = np.full((3, 8, 2), -1)
    gaps[:, 3, 0] = range(3)
    table = imputer.probabilities(network, gaps, "hybrid")[0].reshape(3, 7, 3)
    each = np.arange(3)
    one_ago, two_ago = table[each, 3, each], table[each, 4, each]
    assert (one_ago > 0.5).all()
    assert (two_ago < one_ago - 0.1).all()


BOOLEAN_TABLES = {
    "nullable": lambda b: pd.array(b, dtype="boolean"),
    "categories": lambda b: pd.Categorical(b, categories=[False, True]),
    "objects": lambda b: pd.Series(b, dtype=object),
}


@pytest.mark.parametrize("beside", ["nothing", "labels"])
@pytest.mark.parametrize("kind", BOOLEAN_TABLES)
def test_booleans_stay_booleans(kind, beside):
    codes = make_latent_dbn("G1", 200, 1, cardinality=2, random_state=0).codes[:, 0]
    values = codes.astype(bool).astype(object)
    values[np.random.RandomState(0).uniform(size=values.shape) < 0.1] = None
    frame = pd.DataFrame(
        {f"c{j}": BOOLEAN_TABLES[kind](column) for j, column in enumerate(values.T)}
    )
    if beside == "labels":
        frame["c2"] = pd.Categorical(np.where(codes[:, 2], "yes", "no"))
    filled = LPCC(random_state=0).fit(frame).impute(frame)
    assert filled.dtypes.equals(frame.dtypes)
    assert not filled.isna().to_numpy().any()
    known = frame.notna().to_numpy()
    assert (filled.to_numpy(object)[known] == frame.to_numpy(object)[known]).all()
    assert {type(value) for value in filled["c0"].tolist()} == {bool}


def test_what_a_sequence_shows_elsewhere_counts():
    # Each sequence prefers a value of its own, in no order: neighbours say little more
    # than any other slice.
    rng = np.random.default_rng(0)
    own = rng.integers(0, 4, (500, 1, 1))
    codes = np.where(
        rng.random((500, 12, 1)) < 0.5, own, rng.integers(0, 4, (500, 12, 1))
    )
    network = fit_chain(Panel.of(codes, [4]), TemporalGraph([[1]], [[0]], [[0]]), [1])
    imputer = Imputer(Panel.of(codes, [4])).fit(network.state)
    gaps = np.full((1, 12, 1), -1)
    gaps[0, [0, 1, 2, 3], 0] = 3
    gaps[0, [9, 11], 0] = 1
    shares = imputer.probabilities(network.state, gaps, "hybrid")[0]
    # The first gap follows on four values of 3; far gaps lean to 3 more than to 1, too.
    assert shares[0].argmax() == 3
    assert shares[3, 3] > shares[3, 0]
    np.testing.assert_allclose(
        impute._own_shares(gaps[:, :, 0], 4), [[0, 2 / 7, 0, 4 / 7]]
    )


def test_the_default_is_the_hybrid():
    data = make_latent_dbn("G1", 200, 4, random_state=0)
    model = LGLPCCTemporal(4, random_state=0).fit(data.X)
    X = np.where(
        np.random.RandomState(0).uniform(size=data.X.shape) < 0.3, np.nan, data.X
    )
    np.testing.assert_array_equal(model.impute(X), model.impute(X, "hybrid"))
    assert not np.array_equal(model.impute(X), model.impute(X, "posterior"))
