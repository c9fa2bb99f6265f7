"""How many rows recover the latents of a network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from sklearn_latent import (
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrNetwork,
    QuartetStructureLearner,
    RowsNeeded,
    rows_needed,
)
from sklearn_latent._studies.rows_needed import _crossing, is_same, plan_trial, redraw
from sklearn_latent.datasets import make_gaussian_bn, make_latent_dbn

FAILURE = np.kron(np.eye(2), np.full((1, 4), -0.8)) + 1.0
NETWORK = NoisyOrNetwork([0.3, 0.3], FAILURE, np.full(8, 0.02))


@given(st.floats(0.05, 0.95), st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_the_crossing_is_between_the_sizes(probability, shares):
    sizes = 10 * 2 ** np.arange(len(shares))
    needed = _crossing(sizes, np.array(shares), probability)
    if min(shares) >= probability:
        assert needed == sizes[0]
    elif max(shares) < probability:
        assert needed == np.inf
    else:
        assert needed == np.inf or 10 <= needed <= sizes[-1] * (1 + 1e-12)


def test_the_crossing_of_a_line_is_on_it():
    assert _crossing(np.array([10, 1000]), np.array([0.2, 1.0]), 0.6) == (
        pytest.approx(100)
    )


class Told(BaseEstimator):
    """Recovers what it was told if there are enough rows."""

    def __init__(self, network=None, enough=300):
        self.network, self.enough = network, enough

    def fit(self, X, y=None):
        self.n_rows_ = len(X)
        return self


def enough_rows(network, model, X):
    return model.n_rows_ >= model.enough


def study(**options):
    return rows_needed(NETWORK, Told(), criterion=enough_rows, **options)


def test_result_of_a_known_answer():
    result = study()
    assert isinstance(result, RowsNeeded)
    assert 250 < result.n_rows < 380
    low, high = result.interval
    assert low < result.n_rows < high
    assert "rows recover the latents with probability 0.9" in repr(result)
    frame = result.to_frame()
    assert frame["n_fits"].sum() == result.n_fits.sum()
    assert ((frame["low"] <= frame["share"]) & (frame["share"] <= frame["high"])).all()
    assert (frame["share"] == (frame["n_rows"] >= 300)).all()


def test_a_higher_probability_needs_more_rows():
    rng = np.random.RandomState(0)

    def by_chance(network, model, X):
        return rng.rand() < 1 - np.exp(-len(X) / 100)

    few, many = (
        rows_needed(NETWORK, Told(), probability=p, criterion=by_chance).n_rows
        for p in (0.5, 0.95)
    )
    assert 50 < few < 100 < 230 < many < 390


def test_never_is_said(capsys):
    result = study(max_rows=200, n_repeats=5, verbose=1)
    assert result.n_rows == np.inf
    assert "not recovered with probability 0.9 with up to 200 rows" in repr(result)
    assert "200 rows: 0 of 5 fits" in capsys.readouterr().out


def test_given_sizes_are_tried():
    result = study(sizes=[400, 200, 300], n_repeats=4)
    assert result.sizes.tolist() == [200, 300, 400]
    assert result.n_recovered.tolist() == [0, 4, 4]
    assert 200 < result.n_rows < 400
    assert study(sizes=[100, 200], n_repeats=4).n_rows == np.inf


def test_same_seed_same_result_whatever_the_jobs():
    options = {"sizes": [60, 120], "n_repeats": 4}
    one = rows_needed(NETWORK, random_state=3, **options)
    two = rows_needed(NETWORK, random_state=3, n_jobs=2, **options)
    assert one.n_recovered.tolist() == two.n_recovered.tolist()


def test_many_rows_recover_noisy_or_networks():
    result = rows_needed(NETWORK, sizes=[15, 1000], n_repeats=3)
    assert result.n_recovered[0] < 3
    assert result.n_recovered[1] == 3
    assert isinstance(result.estimator, QuartetStructureLearner)


def test_many_rows_recover_continuous_networks():
    data = make_gaussian_bn(6, 1, 500, bipartite=True, n_parents=1, random_state=0)
    result = rows_needed(data.network, sizes=[500], n_repeats=3)
    assert result.n_recovered.tolist() == [3]
    assert result.estimator.bipartite


def test_many_rows_recover_sequences():
    data = make_latent_dbn("G1", 300, 3, cardinality=2, random_state=0)
    result = rows_needed(data.network, n_slices=3, sizes=[300], n_repeats=2)
    assert result.n_recovered.tolist() == [2]
    assert isinstance(result.estimator, LGLPCCTemporal)


def test_a_network_recovers_itself():
    data = make_latent_dbn("G2", 200, 1, cardinality=2, random_state=0)
    told = Told()
    told.network_ = data.network
    told.n_latents_, told.structure_ = 2, data.graph.structure[::-1]
    assert is_same(data.network, told, data.X)
    told.structure_ = np.eye(2, 6, dtype=bool)
    assert not is_same(data.network, told, data.X)

    told.network_ = NoisyOrNetwork([0.3, 0.3], FAILURE[::-1], NETWORK.leak)
    assert is_same(NETWORK, told, None)
    told.network_ = NoisyOrNetwork([0.3, 0.01], FAILURE[::-1], NETWORK.leak)
    assert not is_same(NETWORK, told, None)

    normal = make_gaussian_bn(6, 2, 200, bipartite=True, random_state=0)
    told.network_ = normal.network
    assert is_same(normal.network, told, normal.X)
    told.n_latents_ = 1
    assert not is_same(normal.network, told, normal.X)


def test_a_fitted_estimator_is_simulated():
    data = make_gaussian_bn(5, 1, 300, bipartite=True, n_parents=1, random_state=0)
    model = IdealParentGaussianBN(max_latents=1, bipartite=True).fit(data.X)
    trial, network, learner = plan_trial(model, None, None, None)
    assert learner.get_params() == model.get_params()
    assert network is model.network_
    assert redraw(model, 7, 0).shape == (7, 5)
    assert trial(400, 0)


def test_rows_of_a_fitted_estimator_have_its_names_and_labels():
    import pandas as pd

    data = make_latent_dbn("G1", 100, 3, cardinality=2, random_state=0)
    names = [f"{name}_{t}" for t in range(3) for name in "abc"]
    frame = pd.DataFrame(np.where(data.X == 1, "yes", "no"), columns=names)
    model = LGLPCCTemporal(3, random_state=0).fit(frame)
    drawn = redraw(model, 20, 0)
    assert list(drawn.columns) == names
    assert set(np.unique(drawn.to_numpy())) <= {"yes", "no"}
    long = LGLPCCTemporal(random_state=0).fit(data.codes)
    assert redraw(long, 20, 0).shape == (20, 3, 3)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"network": "magic"}, TypeError, "network must be"),
        (
            {"network": NoisyOrNetwork([], np.ones((0, 2)), [0.1, 0.2])},
            ValueError,
            "at",
        ),
        ({"probability": 1.0}, ValueError, "probability must"),
        ({"sizes": []}, ValueError, "sizes must"),
        ({"sizes": [0]}, ValueError, "sizes must"),
        ({"n_repeats": 0}, ValueError, "n_repeats must"),
        ({"n_slices": 3}, ValueError, "n_slices must"),
        ({"max_rows": 3}, ValueError, "max_rows must"),
        ({"criterion": 3}, TypeError, "criterion must"),
        ({"n_jobs": 0}, ValueError, "n_jobs must"),
    ],
)
def test_wrong_arguments_are_named(options, error, match):
    with pytest.raises(error, match=match):
        rows_needed(**{"network": NETWORK, **options})


def test_sequences_need_a_length():
    network = make_latent_dbn("G1", 1, 3, random_state=0).network
    with pytest.raises(ValueError, match="n_slices must be the number of slices"):
        rows_needed(network)
