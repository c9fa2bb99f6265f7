"""The slices after the last recorded one."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from dbn_strategies import (
    DISCRETE,
    assert_same,
    dbns,
    mixed_dbns,
    one_latent,
    seeds,
    sequences,
)
from hypothesis import given, settings

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.mixed import (
    LPCC,
    SEMDBN,
    LatentDBN,
    LGLPCCTemporal,
    TemporalGraph,
    sequences_from_frame,
)
from sklearn_latent.mixed._emissions.categories import CategoricalMemory
from sklearn_latent.mixed._emissions.numbers import GaussianMemory

few = settings(max_examples=20, deadline=None)


def by_enumeration(network, codes, n_steps, f):
    """P(category of a feature | sequence) of each next slice, from likelihoods alone.

    All values of the feature in the slices ahead are tried; others are missing.
    """
    recorded = np.flatnonzero((codes >= 0).any(axis=1))
    codes = codes[: recorded[-1] + 1] if len(recorded) else codes[:0]
    paths = np.array(
        list(product(range(network.n_categories[f]), repeat=n_steps)), dtype=int
    )
    tried = np.full((len(paths), len(codes) + n_steps, codes.shape[1]), -1)
    tried[:, : len(codes)] = codes
    tried[:, len(codes) :, f] = paths
    share = np.exp(network.log_likelihood(tried))
    share /= share.sum()
    widths = range(network.n_categories[f])
    return np.array(
        [[share[paths[:, t] == v].sum() for v in widths] for t in range(n_steps)]
    )


@few
@given(mixed_dbns(DISCRETE, max_latents=2), seeds)
def test_probabilities_are_those_of_enumeration(network, seed):
    codes = sequences(network, 3, 3, seed)
    found = network.forecast(codes, 3)
    for f, shares in enumerate(found.probabilities):
        for i in range(len(codes)):
            expected = by_enumeration(network, codes[i], 3, f)
            np.testing.assert_allclose(shares[i], expected, atol=1e-9)


@few
@given(dbns(), seeds)
def test_states_are_those_after_a_gap(network, seed):
    codes = sequences(network, 4, 3, seed)
    found = network.forecast(codes, 2)
    padded = np.concatenate([codes, np.full((4, 2, codes.shape[2]), -1)], axis=1)
    posterior = network.posterior(padded)
    for j, states in enumerate(found.states):
        for i, slices in enumerate(found.slices):
            np.testing.assert_allclose(states[i], posterior[j][i, slices], atol=1e-9)


def sticky(memory=False, **options):
    graph = one_latent(2)
    table = np.array([[0.9, 0.1], [0.2, 0.8]])
    after = np.stack([[[0.95, 0.05], [0.5, 0.5]], [[0.4, 0.6], [0.1, 0.9]]])
    emission = CategoricalMemory(table, after) if memory else table
    return LatentDBN(
        graph,
        [2],
        [[0.5, 0.5]],
        [[[0.9, 0.1], [0.3, 0.7]]],
        [emission, table],
        **options,
    )


def test_numbers_have_a_mean_and_a_spread():
    graph = one_latent(1)
    emission = GaussianMemory([0, 9], [1, 1], [1, 5], [0.5, 0.8], [0.3, 0.4])
    network = LatentDBN(graph, [2], [[0.5, 0.5]], [np.eye(2)], [emission])
    found = network.forecast([[[np.nan], [9.0]]], 2)
    first, second = 5 + 0.8 * 9, 5 + 0.8 * (5 + 0.8 * 9)
    spread = [0.4, 0.4 * np.sqrt(1 + 0.8**2)]
    np.testing.assert_allclose(found.values[0, :, 0], [first, second])
    np.testing.assert_allclose(found.probabilities[0][0, :, 1], spread)
    frame = found.to_frame()
    assert list(frame.columns) == ["sequence", "step", "slice", "x0", "std(x0)"]
    np.testing.assert_allclose(frame["std(x0)"], spread)


def test_each_sequence_ends_where_it_ends():
    network = sticky(memory=True)
    codes = np.array([[[0, 1], [1, -1], [-1, -1]]])
    short = network.forecast(codes[:, :2], 2)
    ragged = network.forecast(codes, 2)
    assert short.slices.tolist() == ragged.slices.tolist() == [[2, 3]]
    assert_same(short.probabilities, ragged.probabilities)


def test_nothing_recorded_is_forecast_from_the_start():
    found = sticky(memory=True).forecast(np.full((1, 3, 2), -1), 2)
    assert found.slices.tolist() == [[0, 1]]
    np.testing.assert_allclose(found.states[0][0], [[0.5, 0.5], [0.6, 0.4]])
    np.testing.assert_allclose(found.probabilities[0][0, 0], [0.55, 0.45])


def test_far_ahead_is_the_long_run():
    found = sticky().forecast([[[0, 0]]], 200)
    np.testing.assert_allclose(found.states[0][0, -1], [0.75, 0.25])
    assert found.values.shape == (1, 200, 2)


@pytest.mark.parametrize("n_steps", [0, -1, 1.5, "2"])
def test_wrong_numbers_of_steps(n_steps):
    with pytest.raises(ValueError, match="n_steps must be an integer"):
        sticky().forecast([[[0, 0]]], n_steps)


@pytest.mark.parametrize("memory", [False, True])
def test_factored_inference(memory):
    graph = TemporalGraph([[1, 0], [0, 1]], [[0, 1], [0, 0]], [[1, 0], [0, 1]])
    table = np.array([[0.8, 0.2], [0.3, 0.7]])
    emission = CategoricalMemory(table, [table, table]) if memory else table
    stay, mild = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.4, 0.6]]])
    arguments = (
        [2, 2],
        [[0.6, 0.4], stay],
        [stay, np.stack([mild, stay])],
        [emission, emission],
    )
    codes = np.random.RandomState(0).randint(2, size=(5, 4, 2))
    codes[0] = -1
    exact = LatentDBN(graph, *arguments).forecast(codes, 2)
    factored = LatentDBN(graph, *arguments, max_joint_states=3)
    with pytest.warns(ApproximateInferenceWarning):
        found = factored.forecast(codes, 2)
    for one, two in zip(exact.probabilities, found.probabilities, strict=True):
        np.testing.assert_allclose(two.sum(axis=2), 1.0)
        np.testing.assert_allclose(one, two, atol=0.1)


@pytest.fixture(scope="module")
def data():
    return make_latent_dbn("G3", 600, 6, cardinality=3, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return LGLPCCTemporal(random_state=0).fit(data.codes[:500, :5])


def test_better_than_the_last_value(data, model):
    found = model.forecast(data.codes[500:, :5])
    truth = data.codes[500:, 5]
    carried = (data.codes[500:, 4] == truth).mean()
    assert (found.values[:, 0] == truth).mean() > carried
    scores = [
        np.log(shares[np.arange(100), 0, column]).mean()
        for shares, column in zip(found.probabilities, truth.T, strict=True)
    ]
    # The first latent does not depend on its past.
    assert np.mean(scores[:3]) > -np.log(3) - 0.05
    assert np.min(scores[3:]) > -np.log(3) + 0.02


def test_batches_are_one(data, model, monkeypatch):
    X = data.codes[500:520, :5]
    whole = model.forecast(X, 2)
    monkeypatch.setattr("sklearn_latent.mixed._panel_estimator.BATCH_VALUES", 100)
    parts = model.forecast(X, 2)
    for name in ("probabilities", "states"):
        assert_same(getattr(whole, name), getattr(parts, name))
    np.testing.assert_array_equal(whole.values, parts.values)
    np.testing.assert_array_equal(whole.slices, parts.slices)
    assert parts.sequence_labels.tolist() == list(range(20))


def test_labels_and_names(data):
    words = np.array(["low", "middle", "high"])
    who, when = np.indices(data.codes.shape[:2])
    frame = pd.DataFrame(words[data.codes].reshape(-1, 6), columns=list("abcdef"))
    frame["a"] = data.codes[:, :, 0].ravel()
    frame.insert(0, "who", [f"p{i}" for i in who.ravel()])
    frame.insert(1, "year", 2000 + when.ravel())
    X = sequences_from_frame(frame, sequence="who", time="year")
    model = LGLPCCTemporal(random_state=0).fit(X[:100])
    for table in (X[:3], frame[frame["who"].isin(X[:3].sequence_labels)]):
        found = model.forecast(table, n_steps=2)
        assert set(found.values[:, :, 1].ravel()) <= set(words)
        shown = found.to_frame()
        assert shown.columns[:5].tolist() == ["sequence", "step", "slice", "a", "b"]
        assert (
            shown["sequence"].tolist() == np.repeat(X[:3].sequence_labels, 2).tolist()
        )
        assert shown["step"].tolist() == [1, 2] * 3
        assert shown["slice"].tolist() == [6, 7] * 3
        assert shown["P(b)"].between(1 / 3, 1).all()


def test_which_models_forecast(data):
    assert not hasattr(LPCC, "forecast")
    model = SEMDBN(1, 2, n_init=1, random_state=0).fit(data.codes[:100, :, :3])
    assert model.forecast(data.codes[:7, :, :3], 3).values.shape == (7, 3, 3)
