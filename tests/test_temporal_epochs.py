"""Processes that change: one network per epoch."""

import pickle

import numpy as np
import pytest
from dbn_strategies import (
    assert_same,
    assert_same_counts,
    dbns,
    of_epochs,
    one_latent,
    seeds,
    sequences,
)
from hypothesis import given, settings

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import ApproximateInferenceWarning, ModelMisfitWarning
from sklearn_latent.mixed import LatentDBN, LGLPCCTemporal

few = settings(max_examples=15, deadline=None)


@few
@given(dbns(max_latents=2), seeds)
def test_equal_epochs_are_one(network, seed):
    epochs = of_epochs([network] * 2, [2])
    codes = sequences(network, 5, 4, seed)
    assert epochs.n_parameters == network.n_parameters
    one, two = network.expected_counts(codes), epochs.expected_counts(codes)
    assert_same_counts(one, two, atol=1e-8)
    assert_same(network.predictive(codes), epochs.predictive(codes), atol=1e-9)
    ahead = (one.forecast(codes, 2).probabilities for one in (network, epochs))
    assert_same(*ahead, atol=1e-9)
    np.testing.assert_array_equal(network.impute(codes), epochs.impute(codes))


def switching():
    """A latent that stays, and from slice 3 on moves; a feature that turns round."""
    graph = one_latent(2)
    stay, show = (
        np.array([[0.95, 0.05], [0.05, 0.95]]),
        np.array([[0.9, 0.1], [0.2, 0.8]]),
    )
    before = LatentDBN(graph, [2], [[1.0, 0.0]], [stay], [show, show])
    after = LatentDBN(graph, [2], [[1.0, 0.0]], [stay[::-1]], [show, show[:, ::-1]])
    return of_epochs([before, after], [3])


def test_samples_follow_their_epoch():
    codes, states = switching().sample(4000, 6, random_state=0)
    moved = states[:, 1:, 0] != states[:, :-1, 0]
    np.testing.assert_allclose(moved.mean(axis=0), [0.05] * 2 + [0.95] * 3, atol=0.02)
    same = (codes[:, :, 0] == codes[:, :, 1]).mean(axis=0)
    assert (same[:3] > 0.6).all() and (same[3:] < 0.4).all()
    short, _ = switching().sample(5, 2, random_state=0)
    assert short.shape == (5, 2, 2)


def test_what_it_is_made_of():
    network = switching()
    assert network.n_epochs == 2
    # One more transition table, and one more emission.
    assert network.n_parameters == network.earlier[0].n_parameters + 2 + 2
    assert repr(network).startswith("LatentDBN(n_epochs=2, n_latents=1")
    assert LatentDBN.from_json(network.to_json()) == network
    assert pickle.loads(pickle.dumps(network)) == network
    assert network.to_networkx().graph["note"] == "last of 2 epochs, since slice 3"
    assert network.has_time
    total = network.expected_counts(np.zeros((3, 5, 2), int))
    assert sum(table.sum() for table in total.transition) == pytest.approx(3 * 4)


@pytest.mark.parametrize(
    ("n", "points", "match"),
    [
        (2, [0], "change_points must be slices from 1 on"),
        (3, [4, 2], "in increasing order"),
        (2, [1.5], "change_points must be slices"),
        (3, [2], "one network per change point, 1, got 2"),
        (1, [2], "one network per change point, 1, got 0"),
    ],
)
def test_wrong_epochs(n, points, match):
    with pytest.raises(ValueError, match=match):
        of_epochs(switching().earlier * n, points)


def test_networks_must_agree_and_be_exact():
    one = make_latent_dbn("G1", 2, 2, random_state=0).network
    with pytest.raises(ValueError, match="the same graph"):
        of_epochs([one, switching().earlier[0]], [1])
    two = make_latent_dbn("G3", 2, 2, random_state=0).network
    small = LatentDBN(
        two.graph,
        two.cardinality,
        two.start,
        two.transition,
        two.emission,
        max_joint_states=5,
    )
    with pytest.raises(ValueError, match="few enough joint states"):
        of_epochs([small, small], [1])
    with pytest.raises(ValueError, match="earlier must be a list"):
        LatentDBN._fields["earlier"].decode("earlier", 3)


def changing(seed, n=300, n_slices=9, at=(3, 6)):
    """Four features of a latent of three states, whose moves change twice."""
    rng = np.random.default_rng(seed)
    graph = one_latent(4)
    tables = [np.where(np.eye(3)[rng.permutation(3)] > 0, 0.8, 0.1) for _ in range(5)]
    networks = [
        LatentDBN(
            graph, [3], [[1 / 3] * 3], [np.roll(tables[0], k, axis=1)], tables[1:]
        )
        for k in range(len(at) + 1)
    ]
    return of_epochs(networks, at).sample(n, n_slices, random_state=seed)[0]


@pytest.fixture(scope="module")
def codes():
    return changing(0)


@pytest.fixture(scope="module")
def model(codes):
    return LGLPCCTemporal(epochs="auto", random_state=0).fit(codes)


def test_change_points_are_found_and_what_is_the_same_is_shared(codes, model):
    assert model.epochs_.tolist() == [0, 3, 6]
    assert model.cardinality_.tolist() == [3]
    # 2 of the start, 6 of each transition, 6 of each emission.
    assert model.network_.n_parameters == 2 + 3 * 6 + 4 * 6
    for one in model.network_._epochs[1:]:
        np.testing.assert_array_equal(one.emission[0], model.emission_[0])
    with pytest.warns(ModelMisfitWarning, match="since slice 3, 6"):
        pooled = LGLPCCTemporal(random_state=0).fit(codes)
    assert pooled.epochs_.tolist() == [0]
    assert model.bic_ < pooled.bic_
    assert model.score(changing(0, n=200)) > pooled.score(changing(0, n=200))


def test_all_methods_work(codes, model):
    X = codes[:20].astype(float)
    X[:, 4, 1] = np.nan
    assert model.transform(X).shape == (20, 27)
    assert model.predict(X).shape == (20, 9, 1)
    filled = model.impute(X)
    assert (filled[:, 4, 1] == codes[:20, 4, 1]).mean() > 0.5
    assert model.forecast(X, 2).values.shape == (20, 2, 4)
    assert model.sample(3, random_state=0)[0].shape == (3, 36)
    assert model.score_samples(codes).sum() == pytest.approx(model.log_likelihood_)
    assert len(model.to_frame()) == 9
    assert model.to_pgmpy().check_model()
    assert model.diagnose(codes)["ok"].mean() > 0.9
    texts = [text.get_text() for text in model.plot().ax_.texts]
    assert "last of 3 epochs, since slice 6" in texts


@pytest.mark.parametrize("epochs", [3, [3, 6], [0, 3, 6], np.array([3, 6])])
def test_epochs_that_are_told(codes, epochs):
    model = LGLPCCTemporal(epochs=epochs, random_state=0).fit(codes)
    assert model.epochs_.tolist() == [0, 3, 6]


def test_false_change_points_are_dropped_by_auto_alone():
    data = make_latent_dbn("G1", 300, 8, random_state=0)
    model = LGLPCCTemporal(epochs="auto", random_state=0).fit(data.codes)
    assert model.epochs_.tolist() == [0]
    told = LGLPCCTemporal(epochs=[4], random_state=0).fit(data.codes)
    assert told.epochs_.tolist() == [0, 4]
    # All tables are shared, so nothing is lost.
    assert told.bic_ == pytest.approx(model.bic_, rel=1e-3)


@pytest.mark.parametrize(
    ("epochs", "match"),
    [
        ("all", "epochs must be one of"),
        (0, "epochs must be an integer of at least|epochs must be an integer from"),
        ([3, 3], "list of first slices in increasing order"),
        ([2.5], "list of first slices"),
        ([12], "epochs must be first slices of X, up to 8, got"),
    ],
)
def test_wrong_values(codes, epochs, match):
    with pytest.raises(ValueError, match=match):
        LGLPCCTemporal(epochs=epochs, random_state=0).fit(codes[:50])


@pytest.mark.filterwarnings("ignore:Latents that depend:Warning")
def test_factored_inference_has_one_epoch():
    data = make_latent_dbn("G3", 300, 8, cardinality=3, random_state=0)
    model = LGLPCCTemporal(epochs=[4], max_joint_states=4, random_state=0)
    with pytest.warns(ApproximateInferenceWarning, match="too many joint states"):
        model.fit(data.codes)
    assert model.epochs_.tolist() == [0]


def test_a_stream_has_one_epoch(monkeypatch):
    # More sequences than the sample from which the structure is learned.
    monkeypatch.setattr("sklearn_latent.mixed._lpcc.MAX_SAMPLE", 200)
    codes = make_latent_dbn("G1", 400, 6, random_state=0).codes
    model = LGLPCCTemporal(epochs=[3], random_state=0)
    with pytest.warns(ApproximateInferenceWarning, match="not in memory as a whole"):
        model.fit(iter(np.split(codes, 4)))
    assert model.epochs_.tolist() == [0]
