"""Groups of features that share a latent."""

import numpy as np
import pytest

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.mixed import TemporalGraph
from sklearn_latent.mixed import _column_groups as groups
from sklearn_latent.mixed._column_groups import GroupSearch, SearchOptions
from sklearn_latent.mixed._hidden_classes import Rows
from sklearn_latent.mixed._latent_search import review
from sklearn_latent.mixed._latent_states import learn_latents
from sklearn_latent.mixed._mutual_information import design_effect
from sklearn_latent.mixed._panels.panel import Panel

OPTIONS = SearchOptions()


def search_of(codes, weights=None):
    panel = Panel.of(codes, codes.max(axis=(0, 1)) + 1, weights)
    effect = design_effect(panel.codes, panel.weights)
    return GroupSearch(Rows.pooled(panel), effect, OPTIONS)


def groups_of(codes, weights=None):
    return search_of(codes, weights).run()


@pytest.mark.parametrize("name", ["G1", "G2", "G3"])
def test_groups_of_the_paper(name):
    data = make_latent_dbn(name, 1000, 4, random_state=0)
    truth = [tuple(np.flatnonzero(row).tolist()) for row in data.graph.structure]
    assert groups_of(data.codes) == truth


@pytest.mark.parametrize(
    "reliability",
    [[0.6] * 6, [0.9, 0.6, 0.4] * 2, [0.5] * 3 + [0.9] * 3, [0.9] * 3 + [0.5] * 3],
    ids=["poor", "mixed", "first weak", "second weak"],
)
def test_poor_features(reliability):
    data = make_latent_dbn("G3", 2000, 4, reliability=reliability, random_state=1)
    assert groups_of(data.codes) == [(0, 1, 2), (3, 4, 5)]


def test_two_features_per_latent():
    graph = TemporalGraph(
        [[1, 1, 0, 0], [0, 0, 1, 1]], [[0, 1], [0, 0]], [[1, 0], [0, 0]]
    )
    data = make_latent_dbn(graph, 1000, 4, random_state=0)
    assert groups_of(data.codes) == [(0, 1), (2, 3)]
    panel = Panel.of(data.codes[:, :, :2], [4, 4])
    assert learn_latents(panel, [(0, 1)], OPTIONS).cardinality == [4]


def test_one_latent_is_not_split():
    graph = TemporalGraph([[1] * 6], [[0]], [[1]])
    data = make_latent_dbn(graph, 1000, 3, cardinality=3, random_state=0)
    assert groups_of(data.codes) == [tuple(range(6))]


def test_independent_features_are_in_no_group():
    data = make_latent_dbn("G1", 1000, 3, random_state=0)
    rng = np.random.default_rng(0)
    noise = rng.integers(3, size=(1000, 3, 2))
    # A feature that never changes within a sequence looks dependent on others if its
    # slices are taken for separate rows.
    noise[:, :, 1] = noise[:, :1, 1]
    assert groups_of(np.concatenate([noise, data.codes], axis=2)) == [(2, 3, 4)]


def test_missing_values():
    data = make_latent_dbn("G2", 2000, 4, random_state=0)
    codes = data.codes.copy()
    codes[np.random.default_rng(0).random(codes.shape) < 0.3] = -1
    assert groups_of(codes) == [(0, 1, 2), (3, 4, 5)]


def test_order_of_features_does_not_matter():
    data = make_latent_dbn("G3", 1000, 4, random_state=2)
    order = np.array([3, 0, 5, 1, 4, 2])
    assert groups_of(data.codes[:, :, order]) == [(0, 2, 4), (1, 3, 5)]


def test_weights_are_repeated_sequences():
    data = make_latent_dbn("G2", 600, 3, random_state=3)
    weights = np.random.default_rng(0).integers(1, 4, 600)
    repeated = np.repeat(data.codes, weights, axis=0)
    assert groups_of(data.codes, weights.astype(float)) == groups_of(repeated)


def test_features_move_from_wrong_groups():
    data = make_latent_dbn("G3", 1000, 2, random_state=0)
    search = search_of(data.codes)
    found = search._move([frozenset([0, 1]), frozenset([2, 3, 4, 5])])
    assert found == [frozenset(range(3)), frozenset(range(3, 6))]


def test_gain_of_two_is_a_lower_bound_where_it_is_enough():
    data = make_latent_dbn("G2", 200, 3, random_state=0)
    search = search_of(data.codes)
    search.run()
    first, second = frozenset(range(3)), frozenset(range(3, 6))
    two, one = search.two_classes(first, second), search.one_class(first | second)
    assert 0 < search.gain_of_two(first, second) <= two.bic - one.bic


def test_groups_of_different_latents_are_not_tried_as_one():
    first, second = frozenset(range(3)), frozenset(range(3, 6))

    def may_join(structure, edges):
        none = np.zeros_like(edges)
        graph = TemporalGraph(structure, none, edges)
        data = make_latent_dbn(graph, 1000, 3, random_state=0)
        search = search_of(data.codes)
        return search._may_join(first, second)

    two = np.repeat(np.eye(2, dtype=int), 3, axis=1)
    assert not may_join(two, np.array([[1, 1], [0, 0]]))
    assert may_join(np.ones((1, 6), dtype=int), np.array([[1]]))


def test_no_move_leaves_a_group_of_one(monkeypatch):
    """Feature 0 gains most but would leave feature 1 alone; the next one moves."""
    gains = {0: 5.0, 1: -1.0, 2: 3.0, 3: 0.0, 4: -2.0}
    better = lambda *_: groups.Classes(np.ones((1, 1)), [], 0.0, np.inf, [])  # noqa: E731
    monkeypatch.setattr(groups, "fit_pair", better)
    monkeypatch.setattr(
        groups, "candidate_moves", lambda *_: [(gain, []) for gain in gains.values()]
    )
    search = search_of(np.random.default_rng(0).integers(2, size=(50, 1, 5)))
    settled = search._settle(frozenset([0, 1]), frozenset([2, 3, 4]))
    assert settled == ({0, 1}, {2, 3, 4})


@pytest.mark.parametrize("two_move", [True, False])
def test_halves_that_move_differently_are_split(two_move):
    structure = np.repeat(np.eye(2, dtype=int), 2, axis=1)
    if not two_move:
        structure = np.ones((1, 4), dtype=int)
    n = len(structure)
    graph = TemporalGraph(structure, np.zeros((n, n)), np.eye(n))
    data = make_latent_dbn(graph, 300, 5, cardinality=2, random_state=0)
    panel = Panel.of(data.codes, data.network.n_categories)
    parts = review(panel, search_of(data.codes), (0, 1, 2, 3), OPTIONS)
    assert parts == ([(0, 1), (2, 3)] if two_move else [(0, 1, 2, 3)])


def test_few_features_are_not_reviewed():
    data = make_latent_dbn("G1", 50, 3, random_state=0)
    panel = Panel.of(data.codes, [4] * 3)
    assert review(panel, search_of(data.codes), (0, 1, 2), OPTIONS) == [(0, 1, 2)]
