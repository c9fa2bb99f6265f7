"""Edges between latents from exact and from sampled counts."""

from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import seeds

from sklearn_latent._core.graphs import slice_equivalence_class
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.mixed import _latent_edges as edges
from sklearn_latent.mixed._latent_edges import GuessedStates, _deblur, best_edges

# networkx before 3.3 has it under another name.
is_d_separator = getattr(nx, "is_d_separator", None) or nx.d_separated


def known(states, cardinality, weights=None):
    """Counts of states that are known for certain."""
    confusions = [np.eye(n) for n in cardinality]
    weights = np.ones(len(states)) if weights is None else weights
    return GuessedStates(states, confusions, weights)


def learn_edges(counts):
    """Edges, in all directions that the data cannot tell apart."""
    intra, inter = best_edges(counts)
    return slice_equivalence_class(intra, inter), inter


def cells(joint):
    """Rows of one slice whose counts are these."""
    states = np.stack(np.indices(joint.shape), axis=-1).reshape(-1, 1, joint.ndim)
    return known(states, joint.shape, joint.ravel())


@pytest.mark.parametrize("name", ["G1", "G2", "G3"])
@pytest.mark.parametrize("seed", range(3))
def test_known_states_give_the_true_edges(name, seed):
    data = make_latent_dbn(name, 2000, 8, random_state=seed)
    intra, inter = learn_edges(known(data.Z, data.network.cardinality))
    assert np.array_equal(intra, data.graph.intra)
    assert np.array_equal(inter, data.graph.inter)


def test_one_slice_leaves_an_edge_undirected():
    intra, inter = learn_edges(cells(np.array([[400.0, 100.0], [100.0, 400.0]])))
    assert intra[0, 1] and intra[1, 0]
    assert not inter.any()


def test_independent_latents_have_no_edges():
    states = np.random.default_rng(0).integers(2, size=(200, 4, 2))
    intra, inter = learn_edges(known(states, [2, 2]))
    assert not intra.any() and not inter.any()


@pytest.mark.parametrize("child", range(3))
def test_a_collider_is_directed_whatever_its_number(child):
    # P(1) of the child given two independent parents.
    share = np.array([[0.1, 0.5], [0.5, 0.9]])
    joint = 2000 * np.stack([1 - share, share], axis=-1)
    intra, _ = learn_edges(cells(np.moveaxis(joint, -1, child)))
    expected = np.zeros((3, 3), bool)
    expected[[i for i in range(3) if i != child], child] = True
    np.testing.assert_array_equal(intra, expected)


def test_no_latents():
    intra, inter = learn_edges(known(np.zeros((3, 2, 0), dtype=int), []))
    assert intra.shape == inter.shape == (0, 0)


def test_many_latents_are_ordered_greedily(monkeypatch):
    data = make_latent_dbn("G3", 2000, 8, random_state=0)
    monkeypatch.setattr(edges, "MAX_EXACT_LATENTS", 1)
    intra, inter = learn_edges(known(data.Z, data.network.cardinality))
    assert np.array_equal(intra, data.graph.intra)
    assert np.array_equal(inter, data.graph.inter)


def test_states_some_slices_later():
    states = known(np.arange(4).reshape(1, 4, 1), [4])
    assert states.shifted(0, 1).tolist() == [[1, 2, 3, -1]]
    assert states.shifted(0, 0).tolist() == [[0, 1, 2, 3]]
    assert states.shifted(0, -1).tolist() == [[-1, 0, 1, 2]]


def implied_independences(intra, inter):
    """Separations of all pairs of nodes of the second slice, by brute force."""

    n = len(intra)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(2 * n))
    # The first slice is given, so its latents are joined in some order.
    graph.add_edges_from((i, j) for i in range(n) for j in range(i + 1, n))
    graph.add_edges_from((i, n + j) for i, j in np.argwhere(inter))
    graph.add_edges_from((n + i, n + j) for i, j in np.argwhere(intra))
    found = set()
    for a, b in product(range(2 * n), range(n, 2 * n)):
        if a == b:
            continue
        others = [c for c in range(2 * n) if c not in (a, b)]
        for mask in range(1 << len(others)):
            given_nodes = {c for k, c in enumerate(others) if mask >> k & 1}
            if is_d_separator(graph, {a}, {b}, given_nodes):
                found.add((a, b, frozenset(given_nodes)))
    return found


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_turned_edges_keep_all_independences(seed):
    rng = np.random.default_rng(seed)
    n = 3
    order = rng.permutation(n)
    intra = np.zeros((n, n), dtype=bool)
    upper = np.triu(rng.random((n, n)) < 0.6, 1)
    intra[np.ix_(order, order)] = upper
    inter = rng.random((n, n)) < 0.3
    pattern = slice_equivalence_class(intra, inter)
    assert np.array_equal(pattern | pattern.T, intra | intra.T)
    truth = implied_independences(intra, inter)
    turned_somewhere = np.zeros((n, n), dtype=bool)
    edges = np.argwhere(intra)
    for turns in product([False, True], repeat=len(edges)):
        other = np.zeros((n, n), dtype=bool)
        for (i, j), turn in zip(edges, turns, strict=True):
            other[(j, i) if turn else (i, j)] = True
        if np.linalg.matrix_power(other.astype(int), n).any():
            continue  # a cycle
        if implied_independences(other, inter) == truth:
            turned_somewhere |= other & intra.T
    # Undirected are those edges that some equivalent graph has the other way round.
    assert np.array_equal(pattern & pattern.T & intra, turned_somewhere.T)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_deblurring_recovers_the_table(seed):
    rng = np.random.default_rng(seed)
    sharp = rng.dirichlet(np.ones(6)).reshape(2, 3)
    confusions = [np.full((k, k), 0.1 / (k - 1)) for k in (2, 3)]
    for matrix in confusions:
        np.fill_diagonal(matrix, 0.9)
    blurred = confusions[0].T @ sharp @ confusions[1]
    # Two tables side by side, each blurred by its own matrices.
    tables = 1000 * np.array([blurred.ravel(), sharp.ravel()])
    matrices = [np.array([matrix, np.eye(len(matrix))]) for matrix in confusions]
    for found in _deblur(tables, matrices, 1e-12, 5000):
        assert np.allclose(found, 1000 * sharp.ravel(), atol=5)


def test_states_guessed_with_errors_give_the_true_edges():
    data = make_latent_dbn("G3", 4000, 4, random_state=0)
    rng = np.random.default_rng(0)
    wrong = rng.random(data.Z.shape) < 0.15
    guessed = np.where(wrong, (data.Z + rng.integers(1, 4, data.Z.shape)) % 4, data.Z)
    confusion = np.full((4, 4), 0.05)
    np.fill_diagonal(confusion, 0.85)
    counts = GuessedStates(guessed, [confusion] * 2, np.ones(len(guessed)))
    intra, inter = learn_edges(counts)
    assert np.array_equal(intra, data.graph.intra)
    assert np.array_equal(inter, data.graph.inter)
