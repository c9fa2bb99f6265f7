"""Edges between latents from exact and from sampled counts."""

from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import seeds

from sklearn_latent._core.graphs import slice_equivalence_class
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.mixed._edges.edges import (
    AssignedCounts,
    JointCounts,
    _deblur,
    learn_edges,
)

# networkx before 3.3 has it under another name.
is_d_separator = getattr(nx, "is_d_separator", None) or nx.d_separated


def exact_counts(data, n_rows=20_000):
    """Expected counts of two slices under the true network, in its long run."""
    start, transition = data.network.joint_tables()
    shape = start.shape
    matrix = transition.reshape(start.size, start.size)
    state = start.ravel()
    for _ in range(200):
        state = state @ matrix
    joint = (state[:, None] * matrix).reshape(shape + shape)
    return JointCounts(n_rows * joint, len(shape))


@pytest.mark.parametrize("name", ["G1", "G2", "G3"])
@pytest.mark.parametrize("seed", range(3))
def test_exact_counts_give_the_true_edges(name, seed):
    data = make_latent_dbn(name, 1, 2, random_state=seed)
    intra, inter = learn_edges(exact_counts(data))
    assert np.array_equal(intra, data.graph.intra)
    assert np.array_equal(inter, data.graph.inter)


def test_one_slice_leaves_an_edge_undirected():
    joint = np.array([[400.0, 100.0], [100.0, 400.0]])
    intra, inter = learn_edges(JointCounts(joint, 2))
    assert intra[0, 1] and intra[1, 0]
    assert not inter.any()


def test_independent_latents_have_no_edges():
    joint = np.full((2, 2, 2, 2), 100.0)
    intra, inter = learn_edges(JointCounts(joint, 2))
    assert not intra.any() and not inter.any()


@pytest.mark.parametrize("child", range(3))
def test_a_collider_is_directed_whatever_its_number(child):
    # P(1) of the child given two independent parents.
    share = np.array([[0.1, 0.5], [0.5, 0.9]])
    joint = 2000 * np.stack([1 - share, share], axis=-1)
    intra, _ = learn_edges(JointCounts(np.moveaxis(joint, -1, child), 3))
    expected = np.zeros((3, 3), bool)
    expected[[i for i in range(3) if i != child], child] = True
    np.testing.assert_array_equal(intra, expected)


def test_no_latents():
    intra, inter = learn_edges(JointCounts(np.zeros(()), 0))
    assert intra.shape == inter.shape == (0, 0)


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
    counts = AssignedCounts(guessed, [confusion] * 2, np.ones(len(guessed)))
    intra, inter = learn_edges(counts)
    assert np.array_equal(intra, data.graph.intra)
    assert np.array_equal(inter, data.graph.inter)
