"""Rules of directed graphs against enumeration of all small graphs."""

from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_latent._core.graphs import (
    equivalence_class,
    is_acyclic,
    parents_of,
    reaches,
    slice_equivalence_class,
    topological_order,
)


@cache
def all_dags(n):
    """All acyclic graphs of n nodes, found without the code under test."""
    pairs = list(combinations(range(n), 2))
    dags = []
    for choice in product((0, 1, 2), repeat=len(pairs)):
        matrix = np.zeros((n, n), dtype=bool)
        for (i, j), kind in zip(pairs, choice, strict=True):
            matrix[i, j], matrix[j, i] = kind == 1, kind == 2
        # Acyclic: no walk is as long as the number of nodes.
        if not np.linalg.matrix_power(matrix.astype(int), n).any():
            dags.append(matrix)
    return dags


def signature(dag, given=0):
    """Skeleton, open colliders and edges that the given nodes direct."""
    n = len(dag)
    joined = dag | dag.T
    colliders = frozenset(
        (i, k, j)
        for k in range(n)
        for i, j in combinations(np.flatnonzero(dag[:, k]).tolist(), 2)
        if not joined[i, j] and not (i < given and j < given)
    )
    directed = dag[:given].tobytes(), dag[:, :given].tobytes()
    return joined.tobytes(), colliders, directed


@cache
def classes(n, given=0):
    """Union of the edges of each class of graphs, by signature."""
    union: dict = {}
    for dag in all_dags(n):
        key = signature(dag, given)
        union[key] = union.get(key, False) | dag
    return union


@st.composite
def dags(draw, max_nodes=7):
    n = draw(st.integers(0, max_nodes))
    order = draw(st.permutations(range(n)))
    matrix = np.zeros((n, n), dtype=bool)
    for i, j in combinations(order, 2):
        matrix[i, j] = draw(st.booleans())
    return matrix


class TestEquivalenceClass:
    @pytest.mark.parametrize(("n", "n_classes"), [(1, 1), (2, 2), (3, 11), (4, 185)])
    def test_all_small_graphs(self, n, n_classes):
        union = classes(n)
        assert len(union) == n_classes
        for dag in all_dags(n):
            np.testing.assert_array_equal(
                equivalence_class(dag), union[signature(dag)], err_msg=str(dag)
            )

    @pytest.mark.parametrize(("given_nodes", "n_graphs"), [(1, 200), (2, 48), (3, 8)])
    def test_given_nodes_direct_their_edges(self, given_nodes, n_graphs):
        """Given nodes come first and have no parents among the others."""
        union = classes(4, given_nodes)
        n_tried = 0
        for dag in all_dags(4):
            if dag[given_nodes:, :given_nodes].any():
                continue
            if dag[:given_nodes, :given_nodes].any():
                continue
            n_tried += 1
            expected = union[signature(dag, given_nodes)]
            np.testing.assert_array_equal(
                equivalence_class(dag, given=given_nodes), expected, err_msg=str(dag)
            )
        assert n_tried == n_graphs

    @given(dags(), st.randoms())
    def test_names_do_not_matter(self, dag, random):
        order = list(range(len(dag)))
        random.shuffle(order)
        there = np.ix_(order, order)
        np.testing.assert_array_equal(
            equivalence_class(dag[there]), equivalence_class(dag)[there]
        )

    @given(dags())
    def test_contains_the_graph_and_no_new_edge(self, dag):
        union = equivalence_class(dag)
        assert (union | ~dag).all()
        np.testing.assert_array_equal(union | union.T, dag | dag.T)

    @given(dags())
    def test_an_edge_that_can_be_turned_stays_in_the_class(self, dag):
        """Covered edges, whose ends have the same other parents, can be turned."""
        union = equivalence_class(dag)
        for i, j in np.argwhere(dag):
            others = dag.copy()
            others[i, j] = False
            if np.array_equal(others[:, i], others[:, j]):
                assert union[j, i]
                others[j, i] = True
                np.testing.assert_array_equal(equivalence_class(others), union)


class TestSlices:
    def test_all_models_of_two_latents(self):
        """Edges from the slice before are as if the slice before were given."""
        for intra in all_dags(2):
            for cells in product((False, True), repeat=4):
                inter = np.array(cells).reshape(2, 2)
                whole = np.zeros((4, 4), dtype=bool)
                whole[:2, 2:], whole[2:, 2:] = inter, intra
                expected = classes(4, 2)[signature(whole, 2)][2:, 2:]
                np.testing.assert_array_equal(
                    slice_equivalence_class(intra, inter), expected
                )

    @given(dags(4))
    def test_without_time_it_is_the_static_class(self, dag):
        nothing = np.zeros_like(dag)
        np.testing.assert_array_equal(
            slice_equivalence_class(dag, nothing), equivalence_class(dag)
        )

    def test_time_directs_an_edge(self):
        """0 and 1 both depend on the past of 0 alone: turning 0 -> 1 is possible.

        If only 0 does, the past of 0 -> 0 - 1 would make a collider of 1 -> 0.
        """
        edge = np.array([[0, 1], [0, 0]], dtype=bool)
        only_zero = np.array([[1, 0], [0, 0]], dtype=bool)
        both = np.array([[1, 1], [0, 0]], dtype=bool)
        np.testing.assert_array_equal(slice_equivalence_class(edge, only_zero), edge)
        np.testing.assert_array_equal(
            slice_equivalence_class(edge, both), edge | edge.T
        )


class TestOrder:
    @given(dags())
    def test_parents_come_first(self, dag):
        order = topological_order(dag)
        assert sorted(order.tolist()) == list(range(len(dag)))
        place = np.argsort(order)
        assert all(place[i] < place[j] for i, j in np.argwhere(dag))
        assert is_acyclic(dag)

    def test_first_of_several(self):
        """Without edges, nodes keep their order."""
        assert topological_order(np.zeros((4, 4))).tolist() == [0, 1, 2, 3]

    @given(dags(), st.data())
    def test_a_cycle_is_refused(self, dag, data):
        n = len(dag)
        if n == 0:
            return
        length = data.draw(st.integers(1, n))
        nodes = data.draw(st.permutations(range(n)))[:length]
        cyclic = dag.copy()
        for i, j in pairwise([*nodes, nodes[0]]):
            cyclic[i, j] = True
        assert not is_acyclic(cyclic)
        with pytest.raises(ValueError, match="adjacency must have no directed cycle"):
            topological_order(cyclic)

    def test_the_nodes_of_the_cycle_are_named(self):
        cyclic = np.zeros((4, 4), dtype=bool)
        cyclic[0, 1] = cyclic[1, 2] = cyclic[2, 1] = True
        with pytest.raises(ValueError, match=r"nodes \[1, 2\]"):
            topological_order(cyclic)

    @given(dags())
    def test_reaches_is_the_transitive_closure(self, dag):
        closure = np.linalg.matrix_power(
            dag.astype(int) + np.eye(len(dag), dtype=int), max(len(dag), 1)
        )
        np.testing.assert_array_equal(reaches(dag), closure > 0)

    @given(dags(), st.data())
    def test_parents(self, dag, data):
        if len(dag):
            node = data.draw(st.integers(0, len(dag) - 1))
            parents = parents_of(dag, node)
            assert parents == tuple(i for i in range(len(dag)) if dag[i, node])


def test_enumeration_knows_the_numbers_of_dags():
    assert [len(all_dags(n)) for n in (1, 2, 3, 4)] == [1, 3, 25, 543]
