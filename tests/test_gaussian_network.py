import numpy as np
import pytest
from gaussian_strategies import network_of, random_linear_network, with_gaps
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from sklearn_latent._core.graphs import (
    equivalence_class,
)
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.gaussian import GaussianNetwork
from sklearn_latent.gaussian._bent_inference import expect_each
from sklearn_latent.gaussian._conditional import leave_one_out
from sklearn_latent.gaussian._gaussian_graph import edge_strengths

LINKS_AND_NOISES = [
    ("linear", "additive"),
    ("sigmoid", "additive"),
    ("linear", "multiplicative"),
    ("sigmoid", "multiplicative"),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n_latents", [0, 2])
def test_likelihood_is_that_of_the_marginal_of_what_is_known(n_latents, share, seed):
    network = random_linear_network(6, seed, n_latents=n_latents)
    X = with_gaps(network.sample(20, seed)[0], share)
    mean, covariance = network.joint()
    expected = np.zeros(len(X))
    for i, row in enumerate(X):
        seen = np.flatnonzero(~np.isnan(row))
        if len(seen):
            known = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)])
            expected[i] = known.logpdf(row[seen])
    assert_allclose(network.log_likelihood(X), expected)


def test_likelihood_and_joint_are_those_of_pgmpy():
    network = random_linear_network(5, 7)
    model = network.to_pgmpy()
    assert model.check_model()
    mean, covariance = model.to_joint_gaussian()
    order = [network.node_names.index(name) for name in _topological(model)]
    own_mean, own_covariance = network.joint()
    assert_allclose(mean, own_mean[order], atol=1e-3)
    assert_allclose(covariance, own_covariance[np.ix_(order, order)], atol=1e-3)
    import pandas as pd

    X, _ = network.sample(20, 0)
    frame = pd.DataFrame(X, columns=network.node_names)
    expected = multivariate_normal(mean, covariance).logpdf(X[:, order])
    # pgmpy rounds the joint to three decimals.
    assert_allclose(network.log_likelihood(X), expected, atol=0.2)
    assert_allclose(
        model.log_likelihood(frame), network.log_likelihood(X).sum(), rtol=1e-2
    )


def _topological(model):
    import networkx as nx

    return list(nx.topological_sort(model))


@pytest.mark.parametrize(("link", "noise"), LINKS_AND_NOISES)
def test_samples_have_the_conditional_means(link, noise):
    network = make_gaussian_bn(
        5, n_samples=1, link=link, noise=noise, random_state=0
    ).network
    X, Z = network.sample(40_000, 0)
    assert Z.shape == (40_000, 0)
    residual = X - network.conditional_means(X)
    error = residual.std(axis=0) / np.sqrt(len(X))
    assert (np.abs(residual.mean(axis=0)) < 6 * error).all()
    if noise == "additive":
        assert_allclose(residual.var(axis=0), network.noise_variance, rtol=0.05)


@pytest.mark.parametrize(("link", "noise"), LINKS_AND_NOISES)
def test_density_integrates_to_one(link, noise):
    network = make_gaussian_bn(
        2, n_samples=1, n_parents=0.5, link=link, noise=noise, random_state=3
    ).network
    X, _ = network.sample(2000, 0)
    axes = [
        np.linspace(x.mean() - 9 * x.std(), x.mean() + 9 * x.std(), 1001) for x in X.T
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    if noise == "multiplicative":
        grid = np.maximum(grid, 1e-9)
    density = np.exp(network.log_likelihood(grid)).reshape(1001, 1001)
    area = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
    assert_allclose(density.sum() * area, 1.0, rtol=1e-3)


@pytest.mark.parametrize("n_latents", [0, 1])
def test_leaving_one_out_is_the_conditional_mean(n_latents):
    network = random_linear_network(5, 4, n_latents=n_latents)
    X, _ = network.sample(10, 0)
    if not n_latents:
        exact = leave_one_out(network._joint(), X)
        assert_allclose(expect_each(network, X), exact, atol=1e-6)
    X[0, 1] = np.nan
    predicted = network.leave_one_out(X)
    for node in range(network.n_features):
        hidden = X.copy()
        hidden[:, node] = np.nan
        assert_allclose(predicted[:, node], network.expectation(hidden)[:, node])


def test_leaving_one_out_of_a_sigmoid_uses_parents_and_children():
    data = make_gaussian_bn(
        6, n_samples=3000, link="sigmoid", noise_variance=(0.1, 0.2), random_state=1
    )
    predicted = data.network.leave_one_out(data.X)
    error = np.mean((predicted - data.X) ** 2, axis=0)
    own = np.mean((data.network.conditional_means(data.X) - data.X) ** 2, axis=0)
    # Nobody predicts better than who uses the whole row; leaves gain nothing.
    assert (error < own * 1.02).all()
    has_children = data.network.adjacency.any(axis=1)
    assert (error[has_children] < 0.95 * own[has_children]).any()


def test_number_of_parameters():
    weights = np.triu(np.ones((3, 3)), 1)
    assert network_of(weights).n_parameters == 3 + 6
    sigmoid = network_of(weights, link="sigmoid", link_parameters=np.ones((3, 3)))
    # The two nodes with parents have a scale as well.
    assert sigmoid.n_parameters == 3 + 6 + 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adjacency": [[0, 1], [1, 0]]}, "no directed cycle"),
        ({"noise_variance": [1.0, 0.0]}, "noise_variance must be positive"),
        ({"weights": [[0.0]]}, "weights must have shape"),
        ({"weights": [[0.0, 1.0], [0.5, 0.0]]}, "weights must be 0 where adjacency"),
        ({"weights": [[0.0, 1.0], [0.0]]}, "weights must be an array of numbers"),
        ({"n_latents": 0.5}, "n_latents must be an integer from 0 to 2, got 0.5"),
        ({"node_names": 5}, "node_names must be a list of 2 names, got 5"),
        ({"link": "sigmoid", "link_parameters": [1.0]}, "link_parameters must have"),
        ({"n_latents": 3}, "n_latents must be an integer from 0 to 2, got 3"),
        ({"node_names": ["a"]}, "node_names must hold 2"),
        ({"link": "sigmoid"}, "link_parameters must be given"),
        ({"link": "cubic"}, "link must be one of"),
    ],
)
def test_wrong_networks_are_refused(change, message):
    arguments = {
        "adjacency": [[0, 1], [0, 0]],
        "weights": [[0.0, 1.0], [0.0, 0.0]],
        "intercept": [0.0, 0.0],
        "noise_variance": [1.0, 1.0],
    }
    with pytest.raises(ValueError, match=message):
        GaussianNetwork(**(arguments | change))


def test_a_sigmoid_network_has_no_joint_and_no_pgmpy_model():
    network = make_gaussian_bn(3, n_samples=1, link="sigmoid", random_state=0).network
    with pytest.raises(ValueError, match="Gaussian only with link='linear'"):
        network.joint()
    with pytest.raises(ValueError, match="to_pgmpy needs link='linear'"):
        network.to_pgmpy()
    graph = network.to_networkx()
    child = int(np.flatnonzero(network.adjacency.any(axis=0))[0])
    assert len(graph.nodes[f"x{child}"]["link_parameters"]) == 3


def test_equivalence_class_agrees_with_pgmpy():
    from pgmpy.base import DAG

    rng = np.random.default_rng(0)
    for _ in range(20):
        network = random_linear_network(7, int(rng.integers(10**6)))
        dag = DAG()
        dag.add_nodes_from(range(7))
        dag.add_edges_from(np.argwhere(network.adjacency).tolist())
        pattern = np.zeros((7, 7), dtype=bool)
        pdag = dag.to_pdag()
        for i, j in pdag.directed_edges:
            pattern[i, j] = True
        for i, j in pdag.undirected_edges:
            pattern[i, j] = pattern[j, i] = True
        assert_array_equal(equivalence_class(network.adjacency), pattern)


def test_strength_is_the_standardised_coefficient():
    rng = np.random.RandomState(0)
    cause = rng.normal(scale=3.0, size=5000)
    effect = -0.2 * cause + rng.normal(size=5000)
    slope, *_ = np.polyfit(cause, effect, 1)
    edge = np.array([[0.0, 1.0], [0.0, 0.0]])
    expected = -edge * np.corrcoef(cause, effect)[0, 1]
    for unit in (1.0, 1e3):
        noise = [np.var(unit * cause), np.var(effect - slope * cause)]
        network = network_of(edge * slope / unit, noise)
        assert_allclose(edge_strengths(network), expected, rtol=1e-10)


def test_strength_of_a_bent_link_compares_with_the_strongest_parent():
    weights = np.zeros((3, 3))
    weights[:2, 2] = -4.0, 1.0
    theta = np.tile([0.0, 1.0], (3, 1))
    network = network_of(weights, link="sigmoid", link_parameters=theta)
    assert_allclose(edge_strengths(network), np.abs(weights) / 4.0)


@pytest.mark.parametrize(
    ("weight", "intercept", "variance"),
    [(1e308, 1.0, 1.0), (-1e308, 1e308, 1e308), (1e300, 0.0, 1e-320)],
)
def test_parameters_that_overflow_are_refused_in_use(weight, intercept, variance):
    X = [[1.0, np.nan, 1.0]]
    network = network_of(np.triu(np.full((3, 3), weight), 1), variance, intercept)
    calls = [(network.joint,), (network.sample,)]
    calls += [(network.expectation, X), (network.log_likelihood, X)]
    for method, *arguments in calls:
        with pytest.raises(ValueError, match=f"{method.__name__} overflows"):
            method(*arguments)


def test_a_row_far_from_a_narrow_density_has_no_likelihood():
    network = GaussianNetwork([[0]], [[0.0]], [0.0], [1e-320])
    assert_array_equal(
        network.log_likelihood([[1.0], [0.0]]) > [-np.inf, 300.0], [False, True]
    )


def test_a_network_of_nothing():
    network = GaussianNetwork(np.zeros((0, 0)), np.zeros((0, 0)), [], [])
    mean, covariance = network.joint()
    assert mean.shape == (0,)
    assert covariance.shape == (0, 0)


def test_posterior_is_the_mean_of_the_latents():
    network = random_linear_network(7, 0, n_latents=2)
    X, _ = network.sample(20, 0)
    mean = network.posterior(X)
    assert mean.shape == (20, 2)
    mu, covariance = network.joint()
    gain = np.linalg.solve(covariance[:5, :5], covariance[:5, 5:])
    assert_allclose(mean, mu[5:] + (X - mu[:5]) @ gain)
    assert random_linear_network(5, 0).posterior(X).shape == (20, 0)


def test_equal_networks_stay_equal():
    weights = np.array([[0.0, 2.0], [0.0, 0.0]])
    adjacency = weights != 0
    one = GaussianNetwork(adjacency, weights, [1.0, 0.0], [1.0, 0.5])
    two = GaussianNetwork.from_json(one.to_json())
    assert one == two and hash(one) == hash(two)
    # The caller's array is not the network's, which nobody can change.
    weights[0, 1] = 3.0
    assert one == two
    for array in (one.weights, one.adjacency, one.intercept, one.noise_variance):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    assert one != GaussianNetwork(adjacency, weights, [1.0, 0.0], [1.0, 0.5])
    assert one != 3


def test_exports_take_names():
    network = random_linear_network(4, 0, n_latents=1)
    names = {"feature_names": ["a", "b", "c"], "latent_names": ["u"]}
    graph = network.to_networkx(**names)
    assert list(graph) == ["a", "b", "c", "u"]
    assert graph.nodes["u"]["kind"] == "latent"
    frame = network.to_frame(**names)
    assert set(frame["parent"]) | set(frame["child"]) <= {"a", "b", "c", "u"}
    assert set(network.to_pgmpy(**names).nodes) == {"a", "b", "c", "u"}
    assert list(network.to_networkx(["u"])) == ["x0", "x1", "x2", "u"]
    with pytest.raises(ValueError, match="latent_names must hold 1 names, got 2"):
        network.to_networkx(["u", "v"])
