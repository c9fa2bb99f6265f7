"""Exports say the same as the network they come from."""

from math import prod

import networkx as nx
import numpy as np
import pytest
from brute_force import joint, random_network, states
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_latent import NoisyOrNetwork
from sklearn_latent.export import edges_to_frame

networks = st.builds(
    random_network,
    seed=st.integers(0, 2**32 - 1),
    n_latents=st.integers(0, 3),
    n_features=st.integers(1, 4),
)


@settings(max_examples=25, deadline=None)
@given(network=networks)
def test_pgmpy_joint_is_the_joint_of_the_network(network):
    model = network.to_pgmpy()
    assert model.check_model()
    names = [f"latent{i}" for i in range(network.n_latents)]
    names += [f"x{j}" for j in range(network.n_features)]
    factors = [cpd.to_factor() for cpd in model.get_cpds()]
    found = prod(factors[1:], start=factors[0])
    table = np.transpose(found.values, [found.variables.index(name) for name in names])
    expected, _ = joint(network, states(network.n_features))
    np.testing.assert_allclose(table.ravel(), expected.T.ravel(), atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(network=networks)
def test_graph_and_frame_round_trip(network):
    graph = network.to_networkx()
    frame = edges_to_frame(graph)
    latents = [n for n, kind in graph.nodes(data="kind") if kind == "latent"]
    features = [n for n, kind in graph.nodes(data="kind") if kind == "feature"]
    failure = np.ones((len(latents), len(features)))
    for row in frame.itertuples():
        failure[latents.index(row.parent), features.index(row.child)] = row.failure
        assert row.strength == 1 - row.failure
        assert row.prior == network.prior[latents.index(row.parent)]
    again = NoisyOrNetwork(
        [graph.nodes[n]["prior"] for n in latents],
        failure.reshape(network.failure.shape),
        [graph.nodes[n]["leak"] for n in features],
    )
    assert again == network
    assert len(frame) == network.structure.sum()


def test_frame_has_the_same_columns_without_edges():
    columns = ["parent", "child", "prior", "failure", "strength"]
    for density in (0.0, 1.0):
        network = random_network(0, 2, 3, density=density)
        frame = edges_to_frame(network.to_networkx())
        assert list(frame.columns) == columns


def test_graph_can_be_saved_as_graphml(tmp_path):
    graph = random_network(0, 2, 3).to_networkx()
    nx.write_graphml(graph, tmp_path / "graph.graphml")
    again = nx.read_graphml(tmp_path / "graph.graphml")
    assert dict(again.nodes(data=True)) == dict(graph.nodes(data=True))
    assert sorted(again.edges(data="failure")) == sorted(graph.edges(data="failure"))


def test_given_names_are_kept():
    network = random_network(0, 2, 3, density=1.0)
    names = np.array(["cough", "fever", "rash"], dtype=object)
    graph = network.to_networkx(["flu", "measles"], names)
    assert list(graph) == ["flu", "measles", "cough", "fever", "rash"]
    assert list(graph.successors("flu")) == ["cough", "fever", "rash"]
    assert sorted(network.to_pgmpy(None, names).nodes) == sorted(
        ["latent0", "latent1", *names]
    )


def test_latents_give_way_to_features_of_the_same_name():
    network = random_network(0, 2, 3, density=1.0)
    names = ["latent1", "latent1_", "x"]
    graph = network.to_networkx(feature_names=names)
    assert list(graph) == ["latent0", "latent1__", *names]
    assert network.to_pgmpy(feature_names=names).check_model()


@pytest.mark.parametrize("to", [NoisyOrNetwork.to_networkx, NoisyOrNetwork.to_pgmpy])
@pytest.mark.parametrize("argument", ["latent_names", "feature_names"])
def test_wrong_names_are_refused(to, argument):
    network = random_network(0, 3, 3)
    with pytest.raises(ValueError, match=f"{argument} must hold 3 names, got 2"):
        to(network, **{argument: ["a", "b"]})
    with pytest.raises(ValueError, match=f"{argument} must hold no name twice.*'a'"):
        to(network, **{argument: ["a", "b", "a"]})


def test_sixteen_parents_are_the_most_for_pgmpy():
    assert random_network(0, 16, 1, density=1.0).to_pgmpy().check_model()
    failure = np.full((17, 2), 0.5)
    failure[0, 0] = 1.0
    network = NoisyOrNetwork(np.full(17, 0.1), failure, [0.1, 0.1])
    with pytest.raises(ValueError, match=r"at most 16 parents.*'fever' has 17 parents"):
        network.to_pgmpy(feature_names=["cough", "fever"])


def test_what_is_no_graph_or_name_is_refused():
    with pytest.raises(TypeError, match="graph must be a networkx graph, got None"):
        edges_to_frame(None)
    network = random_network(0, 2, 3)
    for names in (5, [["a"], ["b"]]):
        with pytest.raises(ValueError, match="latent_names must"):
            network.to_networkx(names)
