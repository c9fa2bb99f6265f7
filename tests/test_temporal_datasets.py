"""Panels drawn from known networks."""

import numpy as np
import pytest
from dbn_strategies import graphs, seeds
from hypothesis import given, settings

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.mixed import TemporalGraph


@pytest.mark.parametrize(
    ("name", "intra", "inter"),
    [
        ("G1", [[0]], [[1]]),
        ("G2", [[0, 1], [0, 0]], [[1, 0], [0, 0]]),
        ("G3", [[0, 1], [0, 0]], [[0, 0], [0, 1]]),
    ],
)
def test_graphs_of_the_paper(name, intra, inter):
    data = make_latent_dbn(name, n_sequences=50, n_slices=5, random_state=0)
    n_latents = len(intra)
    np.testing.assert_array_equal(data.graph.intra, intra)
    np.testing.assert_array_equal(data.graph.inter, inter)
    assert data.X.shape == (50, 5 * 3 * n_latents)
    assert data.Z.shape == (50, 5, n_latents)
    np.testing.assert_array_equal(data.X.reshape(50, 5, -1), data.codes)
    assert set(np.unique(data.X)) <= set(range(4))
    for table in data.network.emission:
        np.testing.assert_allclose(np.sort(table, axis=1)[:, -1], 0.8)
        np.testing.assert_allclose(np.sort(table, axis=1)[:, :-1], 0.2 / 3)


def test_values_are_renamed_per_feature():
    renamed = make_latent_dbn("G1", n_sequences=10, random_state=1).network
    peaks = np.stack([table.argmax(axis=1) for table in renamed.emission])
    assert len(np.unique(peaks, axis=0)) > 1
    assert (np.sort(peaks, axis=1) == np.arange(4)).all()
    plain = make_latent_dbn("G1", n_sequences=10, relabel=False, random_state=1).network
    for table in plain.emission:
        np.testing.assert_array_equal(table.argmax(axis=1), np.arange(4))


def test_each_parent_of_a_collider_matters():
    for seed in range(5):
        table = make_latent_dbn("G3", n_sequences=1, random_state=seed).network
        table = table.transition[1]
        # Averaged over the other parent, the child still depends on each.
        assert np.ptp(table.mean(axis=0), axis=0).max() > 0.1
        assert np.ptp(table.mean(axis=1), axis=0).max() > 0.1


@settings(max_examples=30, deadline=None)
@given(graphs(), seeds)
def test_any_graph(graph, seed):
    rng = np.random.default_rng(seed)
    cardinality = rng.integers(2, 5, graph.n_latents)
    reliability = rng.uniform(0.4, 0.9, graph.n_observed)
    options = {"cardinality": cardinality, "reliability": reliability}
    options |= {"persistence": 0.9, "random_state": seed % 1000}
    data = make_latent_dbn(graph, 20, 3, **options)
    assert data.graph == graph
    np.testing.assert_array_equal(data.network.cardinality, cardinality)
    assert (data.Z.max(axis=(0, 1), initial=0) < cardinality).all()
    for f, table in enumerate(data.network.emission):
        if graph.structure[:, f].any():
            np.testing.assert_allclose(table.max(axis=1), reliability[f], atol=0.3)
    np.testing.assert_array_equal(make_latent_dbn(graph, 20, 3, **options).X, data.X)


def test_number_of_values_of_features():
    data = make_latent_dbn("G1", 5, 2, n_categories=[2, 4, 6], random_state=0)
    np.testing.assert_array_equal(data.network.n_categories, [2, 4, 6])


def test_weak_latents():
    graph = TemporalGraph(
        np.kron(np.eye(2), np.ones((1, 2))), np.zeros((2, 2)), np.eye(2)
    )
    data = make_latent_dbn(graph, 5, 2, persistence=[0.9, 0.3], random_state=0)
    assert data.network.transition[0].max() == pytest.approx(0.9)
    assert data.network.transition[1].max() == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"graph": "G4"}, "graph must be one of"),
        ({"cardinality": [4, 4, 4]}, r"cardinality must be a number or one per latent"),
        ({"cardinality": 0}, "cardinality must hold whole numbers from 1"),
        ({"cardinality": 2.5}, "cardinality must hold whole numbers from 1"),
        ({"n_categories": np.inf}, "n_categories must hold whole numbers from 1"),
        ({"n_sequences": 10**30}, "n_sequences must be an integer from 1 to"),
        ({"n_slices": 0}, "n_slices must be an integer from 1 to"),
        ({"relabel": np.ones(2)}, "relabel must be True or False"),
        ({"reliability": "a"}, "reliability must be an array of numbers"),
        ({"reliability": np.nan}, r"reliability must be in \[0, 1\]"),
        ({"reliability": 1.5}, r"reliability must be in \[0, 1\]"),
        ({"persistence": [0.5]}, "persistence must be a number or one per latent"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_latent_dbn(**{"graph": "G3", "n_sequences": 2, **arguments})
