"""The model object: validation, sampling, moments, hidden classes, exports."""

import json
import pickle

import networkx as nx
import numpy as np
import pytest
from brute_force import (
    answer,
    class_joint,
    class_networks,
    joint,
    networks,
    off_probability,
    random_network,
    random_rows,
    states,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sklearn_latent import NoisyOrEM, NoisyOrNetwork
from sklearn_latent.noisy_or._posterior import predict_off

PLAIN = {"prior": [0.3, 0.4], "failure": [[0.2, 1.0], [0.5, 0.6]], "leak": [0.1, 0.0]}
CLASSES = PLAIN | {"prior": [[0.3, 0.4], [0.9, 0.1]], "class_weight": [0.25, 0.75]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"failure": [[0.5] * 3] * 2}, r"failure .* shape \(2, 2\), got .*\(2, 3\)"),
        ({"failure": [0.5]}, "failure must have 2 dimension"),
        ({"class_weight": None}, "prior must have 1 dimension.*class_weight"),
        ({"prior": [0.3, 0.4]}, "prior must have 2 dimension.*class_weight"),
        ({"prior": [[1.5, 0.4]] * 2}, r"prior must hold prob.*\[0, 1\], got .*1\.5"),
        ({"failure": [[np.nan, 1]] * 2}, "failure must hold prob.*nan"),
        ({"leak": [-0.1, 0]}, r"leak must hold prob.*-0\.1"),
        ({"class_weight": [0.2, 0.3, 0.5]}, "one row per class_weight, expected 3"),
        ({"class_weight": [0.2, 0.3]}, "class_weight must hold positive.*sum to 1"),
        ({"class_weight": [0.0, 1.0]}, "class_weight must hold positive"),
        ({"class_weight": [-0.5, 1.5]}, "class_weight must hold probabilities"),
        ({"class_weight": 1.0}, "class_weight must have 1 dimension"),
        ({"class_weight": []}, "class_weight must hold positive"),
        ({"polarity": [1, 0]}, "polarity must hold 1 or -1"),
        ({"polarity": [1]}, "polarity must hold 1 or -1 for each of 2 features"),
        ({"polarity": "up"}, "polarity must"),
    ],
)
def test_wrong_parameters_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        NoisyOrNetwork(**CLASSES | changes)


def test_model_object_is_a_value():
    prior = np.array([0.5])
    network = NoisyOrNetwork(prior, [[0.2, 1.0]], [0.1, 0.2])
    prior[0] = 0.9
    assert network.prior[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        network.prior[0] = 0.1
    assert network != "network"
    assert network != NoisyOrNetwork([0.4], [[0.2, 1.0]], [0.1, 0.2])
    assert repr(network) == "NoisyOrNetwork(n_latents=1, n_features=2, n_edges=1)"
    np.testing.assert_array_equal(network.structure, [[True, False]])


@settings(max_examples=40, deadline=None)
@given(network=class_networks)
def test_round_trips(network):
    text = json.dumps(network.to_dict(), allow_nan=False)
    for again in (NoisyOrNetwork.from_json(text), pickle.loads(pickle.dumps(network))):
        assert again == network
        assert hash(again) == hash(network)


@settings(max_examples=60, deadline=None)
@given(network=networks | class_networks, data=st.data())
def test_negative_moment_is_the_probability_of_all_off(network, data):
    """Of columns as they are read."""
    index = st.integers(0, network.n_features - 1)
    sets = data.draw(st.lists(st.tuples(index, index, index), min_size=1, max_size=5))
    rows = np.full((len(sets), network.n_features), np.nan)
    for row, features in zip(rows, sets, strict=True):
        row[list(features)] = network.polarity[list(features)] < 0
    expected = np.exp(answer(network, rows)[0])
    np.testing.assert_allclose(network.negative_moment(sets), expected, atol=1e-12)
    first = network.negative_moment(list(sets[0]))
    assert isinstance(first, float)
    assert first == pytest.approx(expected[0], abs=1e-12)
    nothing = network.negative_moment([])
    assert nothing == (1.0 if network.n_classes == 1 else pytest.approx(1.0, abs=1e-12))


@pytest.mark.parametrize("features", [[7], [-1], [[0, 1], [1, 9]], [0.5], 1])
def test_wrong_sets_are_refused(features):
    with pytest.raises(ValueError, match="features must"):
        random_network(0, 2, 3).negative_moment(features)


@pytest.mark.parametrize(
    ("n_features", "density", "n_classes"),
    [(6, 0.7, None), (80, 0.05, None), (6, 0.6, 3)],
)
def test_sample_follows_the_network(n_features, density, n_classes):
    """Both the dense and the sparse product of latents and failures."""
    network = random_network(1, 4, n_features, density=density, n_classes=n_classes)
    n = 20_000
    X, Z = network.sample(n, random_state=0)
    assert X.dtype == Z.dtype == np.int8
    # Five standard errors: a right sampler fails once in a million.
    margin = 5 / np.sqrt(4 * n)
    np.testing.assert_allclose(Z.mean(axis=0), network.prior, atol=margin)
    # Latents and the first features are drawn together.
    Z_all, X_all = states(4), np.full((64, n_features), np.nan)
    X_all[:, :6] = states(6)
    for drawn, every, chance in (
        (Z, Z_all, class_joint(network, Z_all).sum(axis=0)),
        (X[:, :6], X_all[:, :6], np.exp(network.log_likelihood(X_all))),
    ):
        codes = 2 ** np.arange(drawn.shape[1])
        seen = np.bincount(drawn @ codes, minlength=len(every)) / n
        assert chance.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(
            seen[(every @ codes).astype(int)], chance, atol=margin
        )
    pairs = np.array([(i, i + 1) for i in range(n_features - 1)])
    off = ((X[:, pairs] == 1) == (network.polarity[pairs] < 0)).all(axis=2)
    np.testing.assert_allclose(
        network.negative_moment(pairs), off.mean(axis=0), atol=margin
    )
    # Latents and features are drawn together, not just each with the right rate.
    if n_classes is None:
        both = ((Z[:, 0] == 1) & (X[:, 0] == 0)).mean()
        prior = [0.0, *network.prior[1:]]
        rest = NoisyOrNetwork(prior, network.failure, network.leak)
        expected = network.prior[0] * network.failure[0, 0] * rest.negative_moment([0])
        assert both == pytest.approx(expected, abs=margin)


def test_sample_is_reproducible_and_respects_certainty():
    network = NoisyOrNetwork([1.0, 0.0], [[0.0, 1.0], [0.0, 0.0]], [0.0, 0.0])
    X, Z = network.sample(50, random_state=3)
    np.testing.assert_array_equal(X, np.tile([1, 0], (50, 1)))
    np.testing.assert_array_equal(Z, np.tile([1, 0], (50, 1)))
    network = random_network(2, 3, 4)
    for one, two in zip(network.sample(9, 5), network.sample(9, 5), strict=True):
        np.testing.assert_array_equal(one, two)
    with pytest.raises(ValueError, match="n_samples must be an integer from 1"):
        network.sample(0)


def test_rows_come_in_many_forms():
    network = random_network(3, 2, 4)
    X = random_rows(0, 5, 4)
    expected = network.posterior(X)
    forms = X.astype(bool), X.astype(np.int8), X.tolist(), sparse.csr_array(X)
    for form in forms:
        np.testing.assert_allclose(network.posterior(form), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 3)), r"shape \(n_samples, 4\), got \(2, 3\)"),
        (np.zeros(4), r"shape \(n_samples, 4\), got \(4,\)"),
        (np.full((1, 4), 2.0), r"only 0 and 1 .* got the value .*2\.0"),
    ],
)
def test_wrong_rows_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        random_network(3, 2, 4).posterior(X)


def test_no_latents():
    network = NoisyOrNetwork([], np.ones((0, 2)), [0.25, 0.5])
    X = np.array([[0, 1], [1, np.nan]])
    assert network.posterior(X).shape == (2, 0)
    np.testing.assert_allclose(
        network.log_likelihood(X), np.log([0.375, 0.25]), rtol=1e-12
    )
    assert network.negative_moment([0, 1]) == pytest.approx(0.375)
    assert [a.shape for a in network.sample(3, 0)] == [(3, 2), (3, 0)]


@settings(max_examples=40, deadline=None)
@given(network=class_networks, seed=st.integers(0, 99))
def test_missing_values_are_predicted_from_all_classes(network, seed):
    X = random_rows(seed, 8, network.n_features, missing=0.4)
    observed = ~np.isnan(X)
    found = predict_off(network, X == 1, observed)
    before = answer(network, X)[0]
    assert ((found.off >= 0) & (found.off <= 1)).all()
    for number, (i, j) in enumerate(np.argwhere(~observed)):
        if np.isneginf(before[i]):
            continue
        row = X[i].copy()
        row[j] = 0.0
        expected = np.exp(answer(network, [row])[0][0] - before[i])
        assert found.off[number] == pytest.approx(expected, abs=1e-9)


def test_classes_that_parts_of_a_row_rule_out():
    """Each of two parts makes another class improbable beyond floating point."""
    failure = np.kron(np.eye(2), np.full((1, 200), 0.01 - 1.0)) + 1.0
    network = NoisyOrNetwork(
        [[0.0, 1.0], [1.0, 0.0]],
        failure,
        np.full(400, 1e-3),
        class_weight=[0.25, 0.75],
    )
    row = np.ones((1, 400))
    expected = 200 * (np.log(1e-3) + np.log1p(-0.01 * (1 - 1e-3)))
    assert network.log_likelihood(row)[0] == pytest.approx(expected)
    np.testing.assert_allclose(network.class_posterior(row), [[0.25, 0.75]])
    np.testing.assert_allclose(network.posterior(row), [[0.75, 0.25]])


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_large_components_are_inferred_class_by_class(method):
    """More latents than a table of states has, of which few have an effect."""
    small = random_network(4, 3, 5, n_classes=3)
    failure = np.ones((15, 5))
    failure[:3] = small.failure
    failure[3:, :] = 1.0 - 1e-12
    prior = np.concatenate([small.class_prior, np.full((3, 12), 0.3)], axis=1)
    network = NoisyOrNetwork(
        prior,
        failure,
        small.leak,
        class_weight=small.class_weight,
        polarity=small.polarity,
    )
    X = random_rows(0, 20, 5, missing=0.2)
    np.testing.assert_allclose(
        network.log_likelihood(X, method), small.log_likelihood(X), atol=1e-8
    )
    np.testing.assert_allclose(
        network.posterior(X, method)[:, :3], small.posterior(X), atol=1e-8
    )
    np.testing.assert_allclose(
        network.class_posterior(X, method), small.class_posterior(X), atol=1e-8
    )


def test_what_is_not_there_is_not_written():
    fields = NoisyOrNetwork(**PLAIN).to_dict()["fields"]
    assert list(fields) == ["prior", "failure", "leak"]
    trivial = PLAIN | {"prior": [PLAIN["prior"]], "class_weight": [1.0]}
    one_class = NoisyOrNetwork(**trivial, polarity=[1, 1])
    assert one_class == NoisyOrNetwork(**PLAIN)
    assert one_class.n_classes == 1
    assert one_class != NoisyOrNetwork(**PLAIN, polarity=[1, -1])
    assert one_class != NoisyOrNetwork(**CLASSES)
    assert repr(NoisyOrNetwork(**CLASSES, polarity=[1, -1])) == (
        "NoisyOrNetwork(n_latents=2, n_features=2, n_edges=3, n_classes=2, n_flipped=1)"
    )


def test_parameters_are_counted():
    assert NoisyOrNetwork(**PLAIN).n_parameters == 2 + 3 + 2
    assert NoisyOrNetwork(**CLASSES).n_parameters == 4 + 1 + 3 + 2


def test_a_flipped_column_is_the_plain_one_recoded():
    plain = random_network(5, 3, 5)
    polarity = np.array([1, -1, 1, -1, -1])
    flipped = NoisyOrNetwork(plain.prior, plain.failure, plain.leak, polarity=polarity)
    X = random_rows(0, 30, 5, missing=0.2)
    turned = np.where(polarity < 0, 1 - X, X)
    np.testing.assert_array_equal(flipped.posterior(turned), plain.posterior(X))
    drawn, other = flipped.sample(50, 1)[0], plain.sample(50, 1)[0]
    np.testing.assert_array_equal(drawn, np.where(polarity < 0, 1 - other, other))


@settings(max_examples=15, deadline=None)
@given(
    network=st.builds(
        random_network,
        seed=st.integers(0, 999),
        n_latents=st.integers(0, 3),
        n_features=st.integers(1, 3),
        n_classes=st.integers(1, 3),
    )
)
def test_pgmpy_joint_is_the_joint_of_the_network(network):
    model = network.to_pgmpy()
    assert model.check_model()
    names = [f"latent{i}" for i in range(network.n_latents)]
    names += [f"x{j}" for j in range(network.n_features)]
    table = model.get_cpds()[0].to_factor()
    for cpd in model.get_cpds()[1:]:
        table = table * cpd.to_factor()
    if network.n_classes > 1:
        table.marginalize(["class"])
    values = np.transpose(table.values, [table.variables.index(n) for n in names])
    X = states(network.n_features)
    expected = joint(network, X)[0].T.ravel()
    np.testing.assert_allclose(values.ravel(), expected, atol=1e-12)


def test_graph_names_the_class_and_marks_flipped_features(tmp_path):
    network = NoisyOrNetwork(**CLASSES, polarity=[1, -1])
    graph = network.to_networkx(feature_names=["class", "x"])
    assert dict(graph.nodes(data="kind")) == {
        "class_": "class",
        "latent0": "latent",
        "latent1": "latent",
        "class": "feature",
        "x": "feature",
    }
    assert "polarity" not in graph.nodes["class"]
    assert graph.nodes["x"]["polarity"] == -1
    assert graph.edges["class_", "latent0"]["strength"] == pytest.approx(0.6)
    again = [graph.nodes[f"latent{k}"][f"prior{c}"] for c in (0, 1) for k in (0, 1)]
    np.testing.assert_array_equal(again, network.class_prior.ravel())
    assert graph.nodes["class_"]["weight1"] == 0.75
    nx.write_graphml(graph, tmp_path / "graph.graphml")
    frame = network.to_frame()
    assert len(frame) == 2 + 3
    assert frame.polarity.dropna().tolist() == [1, 1, -1]
    assert "polarity" not in NoisyOrNetwork(**CLASSES).to_frame()


def test_fitted_estimators_speak_for_their_network():
    network = random_network(7, 3, 6, n_classes=3)
    model = NoisyOrEM(structure=network.structure, max_iter=1, tol=10.0)
    X = random_rows(1, 40, 6, missing=0.2)
    model._check_X(X, reset=True)
    model._store(network)
    np.testing.assert_array_equal(model.transform(X), network.posterior(X))
    np.testing.assert_array_equal(model.score_samples(X), network.log_likelihood(X))
    np.testing.assert_array_equal(model.prior_, network.prior)
    total = network.log_likelihood(X).sum()
    assert model.aic(X) == pytest.approx(2 * network.n_parameters - 2 * total)
    filled = model.impute(X)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    for i, j in np.argwhere(np.isnan(X)):
        ends = np.tile(X[i], (2, 1))
        ends[:, j] = 0, 1
        off, on = network.log_likelihood(ends)
        assert filled[i, j] == (on > off)
    assert model.sample(3, 0)[0].shape == (3, 6)
    assert model.to_pgmpy().check_model()


def test_off_probability_is_of_columns_as_they_are_read():
    """The brute force of these tests agrees with the definition."""
    network = NoisyOrNetwork([1.0], [[0.25]], [0.2], polarity=[-1])
    assert off_probability(network, np.array([[1]]))[0, 0] == pytest.approx(0.2)
    assert np.exp(network.log_likelihood([[1]]))[0] == pytest.approx(0.2)
