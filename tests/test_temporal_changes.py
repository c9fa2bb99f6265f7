"""Does the process change? Slices against predictions from the past."""

import warnings

import numpy as np
import pytest
from dbn_strategies import DISCRETE, dbns, mixed_dbns, one_latent, seeds
from hypothesis import given, settings
from scipy import stats

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import ModelMisfitWarning
from sklearn_latent.mixed import (
    Gaussian,
    GaussianMemory,
    LatentDBN,
    LGLPCCTemporal,
    LogNormal,
    LogNormalMemory,
)
from sklearn_latent.mixed._inference import surprise as changes
from sklearn_latent.mixed._inference.surprise import (
    longer_memory,
    share_below,
    surprise,
)
from sklearn_latent.mixed._panels.panel import Panel

few = settings(max_examples=15, deadline=None)


def panel_of(network, codes, weights=None):
    return Panel.of(codes, network.n_categories, weights)


@few
@given(mixed_dbns(DISCRETE, max_latents=2), seeds)
def test_expected_shares_are_those_given_the_past(network, seed):
    codes, _ = network.sample(1, 4, random_state=seed)
    found = surprise(network, panel_of(network, codes))
    # All in one window: sums over the states before are plain sums of shares.
    for f in np.unique(found.feature):
        expected = np.zeros(network.n_categories[f])
        for t in range(1, 4):
            ahead = network.forecast(codes[:, :t], 1).probabilities[f]
            expected += ahead[0, 0]
        cells = found.expected[:, found.feature == f]
        sums = cells.reshape(-1, network.n_categories[f]).sum(axis=0)
        np.testing.assert_allclose(sums, expected)


@few
@given(dbns(), seeds)
def test_weights_are_repeated_sequences(network, seed):
    rng = np.random.default_rng(seed)
    codes, _ = network.sample(40, 4, random_state=seed)
    weights = rng.integers(1, 4, 40)
    one = surprise(network, panel_of(network, codes, weights))
    two = surprise(network, panel_of(network, np.repeat(codes, weights, axis=0)))
    np.testing.assert_allclose(one.z, two.z, atol=1e-6)


def test_sequences_that_were_repeated_are_no_evidence():
    odd = 0
    for seed in range(10):
        data = make_latent_dbn("G3", 200, 5, random_state=seed)
        codes = np.repeat(data.codes, 10, axis=0)
        odd += surprise(data.network, panel_of(data.network, codes)).is_odd.any()
    assert odd <= 1
    # But sequences that are bound to occur again are.
    codes = np.random.RandomState(0).randint(2, size=(4000, 3, 1))
    codes[:2000, 2] = codes[:2000, 1]
    graph = one_latent(1)
    flat = LatentDBN(graph, [1], [[1.0]], [[[1.0]]], [[[0.5, 0.5]]])
    copies = changes._copies(flat, panel_of(flat, codes).merged())
    assert copies.max() < 3


def test_windows_hold_many_values():
    short = Panel.of(np.zeros((500, 6, 1), dtype=int), [2])
    assert changes._windows(short).tolist() == [0, 1, 2, 3, 4]
    long = Panel.of(np.zeros((1, 1001, 1), dtype=int), [2])
    assert np.bincount(changes._windows(long)).tolist() == [100] * 10
    thin = Panel.of(np.zeros((5, 4, 1), dtype=int), [2])
    assert changes._windows(thin).tolist() == [0, 0, 0]
    ends = np.zeros((10, 101, 1), dtype=int)
    ends[1:, 50:] = -1
    counts = np.bincount(changes._windows(Panel.of(ends, [2])))
    assert counts.sum() == 100 and counts[-1] > counts[0]


@pytest.mark.parametrize("shape", [(300, 8), (20, 100), (1, 1500)])
def test_stationary_processes_are_not_odd(shape):
    odd = 0
    for seed in range(20):
        data = make_latent_dbn("G3", *shape, random_state=seed)
        found = surprise(data.network, panel_of(data.network, data.codes))
        odd += found.is_odd.any()
    assert odd <= 2  # 2.5% each


def two_processes(n, n_slices, at, seed, what):
    """Three features of a latent of three states that change from a slice on."""
    rng = np.random.default_rng(seed)
    graph = one_latent(3)

    def table(order):
        return np.where(np.eye(3)[order] > 0, 0.8, 0.1)

    first = [table(rng.permutation(3)) for _ in range(4)]
    later = list(first)
    place = 0 if what == "transition" else 1
    later[place] = np.roll(first[place], 1, axis=0)
    networks = [
        LatentDBN(graph, [3], [[1.0, 0.0, 0.0]], [one[0]], one[1:])
        for one in (first, later)
    ]
    codes, states = networks[0].sample(n, at, random_state=seed)
    # The rest goes on from the last state.
    tail = LatentDBN(graph, [3], [[1 / 3] * 3], networks[1].transition, later[1:])
    more, begin = tail.sample(60 * n, n_slices - at + 1, random_state=seed + 1)
    used = [
        np.flatnonzero(begin[:, 0, 0] == state)[: (states[:, -1, 0] == state).sum()]
        for state in range(3)
    ]
    order = np.argsort(states[:, -1, 0], kind="stable")
    rest = more[np.concatenate(used), 1:]
    return np.concatenate([codes[order], rest], axis=1), networks[0]


@pytest.mark.parametrize("what", ["transition", "emission"])
def test_change_points_are_found(what):
    for seed in range(5):
        codes, _ = two_processes(300, 9, 5, seed, what)
        # A single model of a process that changes may see more than one change.
        with pytest.warns(
            ModelMisfitWarning, match=r"since slice (\d, )*5(, \d)*, most"
        ):
            LGLPCCTemporal(random_state=0).fit(codes)
        model = LGLPCCTemporal(epochs="auto", random_state=0).fit(codes)
        assert model.epochs_.tolist() == [0, 5]


def test_a_start_of_its_own_is_no_change():
    for seed in range(5):
        # All sequences start in the same state, far from the long run.
        codes, network = two_processes(300, 9, 8, seed, "emission")
        codes = network.sample(400, 8, random_state=seed)[0]
        with warnings.catch_warnings():
            warnings.simplefilter("error", ModelMisfitWarning)
            LGLPCCTemporal(random_state=0).fit(codes)


def test_change_points_by_dynamic_programming():
    rng = np.random.default_rng(0)
    variance, feature = np.full((12, 6), 30.0), np.array([0, 0, 0, 2, 2, 2])
    shift = np.repeat([[0.0], [1.0], [-0.5]], 4, axis=0)
    difference = variance * shift + rng.normal(0, np.sqrt(30), variance.shape)
    assert changes._segments(difference, variance, feature).tolist() == [4, 8]
    flat = rng.normal(0, np.sqrt(30), variance.shape)
    assert changes._segments(flat, variance, feature).tolist() == []
    assert changes._segments(flat[:1], variance[:1], feature).tolist() == []
    assert changes._segments(flat[:0], variance[:0], feature).tolist() == []
    # One odd window is no epoch.
    spike = flat.copy()
    spike[6] += 300.0
    points = changes._segments(spike, variance, feature)
    assert (np.diff([0, *points, 12]) >= changes.MIN_LENGTH).all()


def test_odd_slices_without_an_epoch_are_named(monkeypatch):
    monkeypatch.setattr(changes, "_segments", lambda *_: np.zeros(0, dtype=int))
    codes, _ = two_processes(300, 6, 5, 0, "emission")
    with pytest.warns(ModelMisfitWarning, match=r"different at slice .*5, most in"):
        LGLPCCTemporal(random_state=0).fit(codes)


def test_features_are_named_the_most_surprising_first():
    found = changes.Surprise(
        observed=np.array([[65.0, 90.0, 50.0], [35.0, 10.0, 50.0]]),
        expected=np.full((2, 3), 50.0),
        variance=np.full((2, 3), 25.0),
        unit=np.ones((2, 3)),
        feature=np.array([4, 2, 7]),
        first=np.array([1, 2]),
        last=2,
    )
    assert found.changed_features().tolist() == [2, 4]
    assert found.is_odd.any(axis=0).tolist() == [True, True, False]


def numbers(n, what, seed, unit=np.asarray):
    """Six numbers of a latent; level or spread of the first two change at 4 and 8."""
    rng = np.random.default_rng(seed)
    states = np.empty((n, 12), dtype=int)
    states[:, 0] = rng.integers(3, size=n)
    for t in range(1, 12):
        stay = rng.random(n) < 0.7
        states[:, t] = np.where(stay, states[:, t - 1], rng.integers(3, size=n))
    epoch = np.searchsorted([4, 8], np.arange(12), side="right")[:, None]
    first = np.arange(6) < 2
    shift = np.array([0.0, 1.0, -0.5])[epoch] * first * (what == "level")
    spread = 1 + np.array([0.0, 0.6, 0.0])[epoch] * first * (what == "spread")
    levels = 2.0 * rng.permuted(np.tile(np.arange(3), (6, 1)), axis=1).T
    noise = rng.normal(size=(n, 12, 6))
    return unit(levels[states] + shift + spread * noise)


@pytest.mark.parametrize("unit", [np.asarray, lambda x: np.exp(x / 4)])
@pytest.mark.parametrize("what", ["level", "spread"])
def test_numbers_that_change(what, unit):
    X = numbers(500, what, 0, unit)
    with pytest.warns(ModelMisfitWarning, match="since slice 4, 8, most in"):
        LGLPCCTemporal(12, random_state=0).fit(X)


def test_numbers_that_do_not_change():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelMisfitWarning)
        LGLPCCTemporal(12, random_state=0).fit(numbers(500, "none", 0))


@pytest.mark.parametrize(
    "emission",
    [
        Gaussian([0.0, 3.0], [1.0, 2.0]),
        LogNormal([0.0, 1.0], [0.5, 0.2]),
        GaussianMemory([0.0, 3.0], [1.0, 2.0], [0.0, 1.0], [0.5, 0.9], [1.0, 0.5]),
        LogNormalMemory([0.0, 1.0], [0.5, 0.2], [0.0, 0.3], [0.5, 0.9], [0.1, 0.3]),
    ],
)
def test_places_of_numbers_are_uniform(emission):
    rng = np.random.RandomState(0)
    states = rng.randint(2, size=(1000, 4))
    values = emission.draw(states, rng)
    place = share_below(emission, values, np.eye(2)[states])
    assert stats.kstest(place.ravel(), "uniform").pvalue > 0.01
    # Where the states are not known, of mixtures over them.
    first = share_below(emission, values[:, :1], np.full((1000, 1, 2), 0.5))
    assert stats.kstest(first.ravel(), "uniform").pvalue > 0.01
    values[0, 1] = np.nan
    assert np.isfinite(share_below(emission, values, np.eye(2)[states])).all()


def second_order(seed, unit=lambda states, rng: states):
    """A latent that follows its state two slices ago, and six features of it."""
    rng = np.random.default_rng(seed)
    states = rng.integers(3, size=(300, 8))
    for t in range(2, 8):
        again = rng.random(300) < 0.8
        states[:, t] = np.where(again, states[:, t - 2], states[:, t])
    right = rng.random((300, 8, 6)) < 0.85
    shown = np.where(right, states[:, :, None], rng.integers(3, size=right.shape))
    return unit(shown.astype(float), rng)


@pytest.mark.parametrize(
    "unit", [lambda x, rng: x, lambda x, rng: 2 * x + rng.normal(size=x.shape)]
)
def test_a_past_longer_than_a_slice(unit):
    # With seed 0, numbers tell six states apart, which remember two slices.
    with pytest.warns(ModelMisfitWarning, match="The past is longer than a slice"):
        LGLPCCTemporal(8, random_state=0).fit(second_order(1, unit))


def test_a_past_of_one_slice():
    for seed in range(20):
        data = make_latent_dbn("G2", 300, 6, random_state=seed)
        panel = panel_of(data.network, data.codes)
        assert not len(longer_memory(data.network, panel))
    assert not len(longer_memory(data.network, panel.of_slices(slice(2))))
