"""Gaps and next slices by the model and by the values nearby."""

import pickle

import numpy as np
import pandas as pd
import pytest
from dbn_strategies import assert_same, dbns, one_latent, seeds, sequences
from hypothesis import given, settings

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.mixed import (
    LPCC,
    LatentDBN,
    LGLPCCTemporal,
)
from sklearn_latent.mixed._em import hybrid
from sklearn_latent.mixed._em.chain_em import fit_chain
from sklearn_latent.mixed._em.correction import Correction, Examples
from sklearn_latent.mixed._em.hybrid import STRATEGIES, Hybrid, _last_known
from sklearn_latent.mixed._panels.panel import Panel

few = settings(max_examples=15, deadline=None)


def fitted(network, codes, weights=None):
    return Hybrid(Panel.of(codes, network.n_categories, weights))


@few
@given(dbns(), seeds)
@pytest.mark.parametrize("strategy", STRATEGIES)
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
    imputer = fitted(network, np.full_like(codes, -1))
    both = (imputer.probabilities(network, codes, s) for s in STRATEGIES)
    assert_same(*both, atol=1e-9)


@few
@given(dbns(), seeds)
def test_weights_and_order_of_training_sequences(network, seed):
    codes = sequences(network, 12, 3, seed)
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 3, 12)
    counts[0] = 1
    weighted = fitted(network, codes, counts.astype(float))
    repeated = fitted(
        network, rng.permutation(np.repeat(codes, counts, axis=0), axis=0)
    )
    for ahead in range(3):
        one, two = (
            [found.weights for found in each.learned(network, ahead)]
            for each in (weighted, repeated)
        )
        assert_same(one, two, atol=1e-6)


@few
@given(dbns(), seeds)
def test_a_sequence_is_completed_without_regard_to_the_others(network, seed):
    codes = sequences(network, 6, 3, seed)
    hybrid = fitted(network, codes)
    filled = hybrid.probabilities(network, codes, "hybrid")
    ahead = hybrid.forecast(network, codes, 4, "hybrid").probabilities
    for shares in ahead:
        np.testing.assert_allclose(shares.sum(axis=2), 1.0)
    for i in range(6):
        own = codes[i : i + 1]
        expected = [
            filled[f][np.argwhere(codes[:, :, f] < 0)[:, 0] == i]
            for f in range(network.n_observed)
        ]
        found = hybrid.probabilities(network, own, "hybrid")
        assert_same(found, expected, atol=1e-9)
        found = hybrid.forecast(network, own, 4, "hybrid").probabilities
        assert_same(found, [shares[i : i + 1] for shares in ahead], atol=1e-9)


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
    graph = one_latent(n_observed)
    training = Panel.of(codes[:300], [3] * 3)
    network = fit_chain(training, graph, [2], random_state=0).state
    imputer = Hybrid(training)
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


def test_corrections_are_learned_from_a_bounded_number_of_values(monkeypatch):
    data = make_latent_dbn("G1", 300, 4, random_state=0)
    monkeypatch.setattr(hybrid, "MAX_VALUES", 50)
    seen = []
    learned = Correction.learned
    monkeypatch.setattr(
        Correction,
        "learned",
        lambda examples, numeric: (
            seen.append(len(examples.target)) or learned(examples, numeric)
        ),
    )
    for ahead in (0, 1):
        fitted(data.network, data.codes).learned(data.network, ahead)
    assert seen == [50] * 2 * data.network.n_observed


def test_the_last_two_known_values():
    column = np.array([[2, -1, -1, 0, -1], [-1, -1, 1, 1, -1]])
    last, second = _last_known(column)
    np.testing.assert_array_equal(last, [[-1, 0, 0, 0, 3], [-1, -1, -1, 2, 3]])
    np.testing.assert_array_equal(second, [[-1, -1, -1, -1, 0], [-1, -1, -1, -1, 2]])


def test_an_older_value_counts_less():
    # Values stay for one more slice only: the last value tells the next, but no more.
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (600, 8, 2))
    codes[:, 1::2] = codes[:, ::2]
    graph = one_latent(2, 0)
    training = Panel.of(codes, [3, 3])
    network = fit_chain(training, graph, [1]).state
    imputer = Hybrid(training)
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
    network = fit_chain(Panel.of(codes, [4]), one_latent(1, 0), [1])
    imputer = Hybrid(Panel.of(codes, [4]))
    gaps = np.full((1, 12, 1), -1)
    gaps[0, [0, 1, 2, 3], 0] = 3
    gaps[0, [9, 11], 0] = 1
    shares = imputer.probabilities(network.state, gaps, "hybrid")[0]
    # The first gap follows on four values of 3; far gaps lean to 3 more than to 1, too.
    assert shares[0].argmax() == 3
    assert shares[3, 3] > shares[3, 0]


def test_forecasts_learn_what_the_latents_do_not_explain():
    # Each feature repeats the value of two slices ago, which no network of this kind
    # can say.
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (600, 8, 3))
    for t in range(2, 8):
        stay = rng.random((600, 3)) < 0.9
        codes[:, t] = np.where(stay, codes[:, t - 2], codes[:, t])
    graph = one_latent(3)
    training = Panel.of(codes[:400], [2] * 3)
    network = fit_chain(training, graph, [2], random_state=0).state
    learned = Hybrid(training)
    for step in (1, 2):
        alone, found = (
            learned.forecast(network, codes[400:, : 8 - step], step, strategy)
            for strategy in STRATEGIES
        )
        right, baseline = (
            (one.values[:, -1] == codes[400:, 7]).mean() for one in (found, alone)
        )
        assert right > 0.9 > 0.75 > baseline


@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.LatentWarning")
def test_numbers_have_levels_by_slice_and_an_honest_spread():
    # The level of a slice is the same in all sequences, and x1 follows x0.
    rng = np.random.default_rng(0)
    level = rng.normal(0, 3, 6)
    x0 = rng.normal(size=(500, 6))
    x1 = level + np.roll(x0, 1, axis=1) + 0.3 * rng.normal(size=(500, 6))
    X = np.stack([x0, x1], axis=2)
    model = LGLPCCTemporal(6, random_state=0).fit(X[:300])
    before, truth = X[300:, :5], X[300:, 5, 1]
    found = {s: model.forecast(before, strategy=s) for s in STRATEGIES}
    error = {s: truth - one.values[:, 0, 1] for s, one in found.items()}
    assert error["hybrid"].std() < 0.4 < 1 < np.sqrt((error["posterior"] ** 2).mean())
    z = error["hybrid"] / found["hybrid"].probabilities[1][:, 0, 1]
    assert 0.8 < z.std() < 1.25


@pytest.mark.parametrize("graph", ["G1", "G3"])
def test_the_model_speaks_alone_where_data_follow_it(graph):
    data = make_latent_dbn(graph, 600, 6, random_state=0)
    network, codes = data.network, data.codes
    learned = fitted(network, codes[:400])
    test, n = codes[400:, :5], len(codes) - 400
    alone, found = (learned.forecast(network, test, 1, s) for s in STRATEGIES)
    for f in range(network.n_observed):
        own, other = (
            -np.log(one.probabilities[f][np.arange(n), 0, codes[400:, 5, f]]).mean()
            for one in (found, alone)
        )
        assert own < other + 0.02
    weights = [one.weights for one in learned.learned(network, 1)]
    assert np.mean([not one.any() for one in weights]) >= 0.5


def test_forecasts_of_epochs_are_learned_from_the_last_one():
    # What stays in the first epoch moves in the second.
    graph = one_latent(1)
    stay, move = [[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]
    networks = [
        LatentDBN(graph, [2], [[0.5, 0.5]], [table], [np.eye(2) * 0.98 + 0.01])
        for table in (stay, move)
    ]
    network = networks[-1].with_earlier(networks[:-1], [5])
    codes, _ = network.sample(800, 8, random_state=0)
    learned = fitted(network, codes[:600])
    alone, found = (
        learned.forecast(network, codes[600:, :7], 1, s) for s in STRATEGIES
    )
    np.testing.assert_allclose(
        found.probabilities[0], alone.probabilities[0], atol=0.05
    )


def test_steps_without_any_training_example():
    data = make_latent_dbn("G1", 50, 2, random_state=0)
    network, codes = data.network, data.codes
    long = fitted(network, codes).forecast(network, codes, 5, "hybrid")
    assert long.values.shape == (50, 5, network.n_observed)
    # A single slice, and sequences that end with their first one, teach nothing.
    ended = np.where(np.arange(2)[:, None] == 0, codes, -1)
    for training in (codes[:, :1], ended):
        learned = fitted(network, training)
        alone, found = (learned.forecast(network, codes, 2, s) for s in STRATEGIES)
        assert_same(alone.probabilities, found.probabilities)


@pytest.mark.parametrize("numeric", [False, True])
def test_weights_that_do_not_help_are_none(numeric):
    rng = np.random.default_rng(0)
    n = 300
    inputs, offset = rng.normal(size=(n, 5)), np.zeros((n, 1 if numeric else 2))
    target = rng.normal(size=n) if numeric else rng.integers(0, 2, n)
    noise = Correction.learned(Examples(inputs, offset, target, np.ones(n)), numeric)
    assert not noise.weights.any()
    assert noise.spread == 1.0
    shown = inputs[:, 0] if numeric else (inputs[:, 0] > 0).astype(int)
    signal = Correction.learned(Examples(inputs, offset, shown, np.ones(n)), numeric)
    assert np.abs(signal.weights).argmax() in (0, 1)  # of the first input
    if numeric:
        assert signal.spread < 0.1


@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.LatentWarning")
def test_the_default_is_the_hybrid():
    data = make_latent_dbn("G1", 300, 5, random_state=0)
    X = np.repeat(data.codes, 2, axis=1)[:, :6].astype(float)  # each value twice
    model = LGLPCCTemporal(6, random_state=0).fit(X)
    gaps = np.where(np.random.RandomState(0).uniform(size=X.shape) < 0.3, np.nan, X)
    np.testing.assert_array_equal(model.impute(gaps), model.impute(gaps, "hybrid"))
    assert not np.array_equal(model.impute(gaps), model.impute(gaps, "posterior"))
    default, found = model.forecast(X[:, :5]), model.forecast(X[:, :5], 1, "hybrid")
    np.testing.assert_array_equal(default.values, found.values)
    again = pickle.loads(pickle.dumps(model)).forecast(X[:, :5])
    np.testing.assert_array_equal(default.values, again.values)
    alone = model.forecast(X[:, :5], strategy="posterior")
    network = model.network_.forecast(X[:, :5])
    for one, two, three in zip(
        alone.probabilities, network.probabilities, found.probabilities, strict=True
    ):
        np.testing.assert_allclose(one, two)
        assert not np.allclose(one, three)
    with pytest.raises(ValueError, match="strategy must be"):
        model.forecast(X, strategy="mean")
