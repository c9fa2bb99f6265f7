"""Groups of features that share a latent."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_latent._core.climb import is_hopeless
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.mixed import TemporalGraph
from sklearn_latent.mixed._classes.latent_pair import Move, fit_pair
from sklearn_latent.mixed._edges.structure import _Review
from sklearn_latent.mixed._measurement.groups import (
    ChainFit,
    Measurement,
    SearchOptions,
    best_states,
    chain_states,
    lone_states,
    slice_states,
)
from sklearn_latent.mixed._measurement.measurement import (
    MeasurementSearch,
    measurement_search,
)
from sklearn_latent.mixed._panels.panel import Panel

OPTIONS = SearchOptions()


def groups_of(codes, weights=None):
    panel = Panel.of(codes, codes.max(axis=(0, 1)) + 1, weights)
    return measurement_search(panel, OPTIONS).run()


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


def test_a_weak_latent_with_few_sequences():
    reliability = [0.9] * 3 + [0.5] * 3
    data = make_latent_dbn("G2", 500, 4, reliability=reliability, random_state=2)
    search = measurement_search(Panel.of(data.codes, np.full(6, 4)), OPTIONS)
    search.run()
    strong, weak = frozenset(range(3)), frozenset(range(3, 6))
    # The weak features alone show only some of the states, with the others all four.
    assert search.one_class(weak).n_classes < 4
    two, one = search.two_classes(strong, weak), search.one_class(strong | weak)
    assert two.joint.shape == (4, 4)
    assert two.log_likelihood > one.log_likelihood


def test_two_features_per_latent():
    graph = TemporalGraph(
        [[1, 1, 0, 0], [0, 0, 1, 1]], [[0, 1], [0, 0]], [[1, 0], [0, 0]]
    )
    data = make_latent_dbn(graph, 1000, 4, random_state=0)
    assert groups_of(data.codes) == [(0, 1), (2, 3)]
    panel = Panel.of(data.codes[:, :, :2], [4, 4])
    found = Measurement([], [], 2).with_groups([(0, 1)], panel, OPTIONS)
    assert found.with_chain_states(panel, OPTIONS).cardinality == [4]


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
    search = measurement_search(Panel.of(data.codes, np.full(6, 4)), OPTIONS)
    found = search._move([frozenset([0, 1]), frozenset([2, 3, 4, 5])])
    assert found == [frozenset(range(3)), frozenset(range(3, 6))]


@pytest.mark.parametrize(
    ("first", "bics", "best"),
    [
        (3, {2: 1, 3: 2, 4: 3, 5: 2}, 4),  # up, then down
        (4, {2: 1, 3: 3, 4: 2, 5: 1}, 3),  # up loses, so down
        (6, {5: 1, 6: 2}, 6),  # no further than the largest
        (2, {2: 2, 3: 2}, 2),  # equal is no gain; no fewer than two
    ],
)
def test_number_of_states_climbs(first, bics, best):
    rivals = {}

    def fit(n_states, rival):
        rivals[n_states] = rival
        return ChainFit(bics[n_states], n_states, 0.0)

    found = best_states(first, fit, SearchOptions(max_states=6)).emission
    assert found == best
    # All but the first meet the best so far, which has a state more or less.
    assert rivals.pop(first) is None
    assert all(abs(rival.emission - n) == 1 for n, rival in rivals.items())


@pytest.mark.parametrize(
    ("reached", "beat", "hopeless"),
    [
        ([0, 50, 70, 80, 85, 88, 89], (80, 1000), True),  # 9 a cycle, 911 missing
        ([0, 50, 70, 80, 85, 88, 89], (80, 200), False),  # within reach
        ([0, 50, 70, 80, 85, 88, 89], (90, 1000), False),  # on its way to the rival
        ([0, 50, 70, 80, 85, 88], (80, 1000), False),  # in the middle of a cycle
        ([0, 50, 70, 80], (70, 5000), False),  # too early to tell
    ],
)
def test_when_em_gives_up(reached, beat, hopeless):
    passed, target = beat
    assert is_hopeless(reached, target, passed) is hopeless


def test_a_rival_ends_the_ascent_but_not_the_comparison():
    data = make_latent_dbn("G1", 2000, 4, random_state=0)
    panel = Panel.of(data.codes, np.full(3, 4))
    right = chain_states(panel, OPTIONS, 4)
    alone, raced = (chain_states(panel, OPTIONS, 5, r) for r in (None, right))
    assert raced.bic <= alone.bic + 1e-6
    assert max(raced.bic, alone.bic) < right.bic


def test_known_number_of_states():
    data = make_latent_dbn("G1", 300, 3, random_state=0)
    panel = Panel.of(data.codes, [4, 4, 4])
    tables = slice_states(panel, SearchOptions(n_states=3))
    assert [table.shape for table in tables] == [(3, 4)] * 3


def test_lone_feature_with_a_memory():
    graph = TemporalGraph([[1]], [[0]], [[1]])
    data = make_latent_dbn(graph, 2000, 5, cardinality=2, random_state=0)
    assert len(lone_states(Panel.of(data.codes, [2]), OPTIONS)[0]) == 2
    fresh = np.random.default_rng(0).integers(2, size=(500, 5, 1))
    assert lone_states(Panel.of(fresh, [2]), OPTIONS) is None


def test_lone_feature_that_is_a_chain_of_its_own():
    rng = np.random.default_rng(1)
    stays = rng.random((1000, 5, 1)) < 0.8
    codes = rng.integers(3, size=(1000, 5, 1))
    for t in range(1, 5):
        codes[:, t] = np.where(stays[:, t], codes[:, t - 1], codes[:, t])
    panel = Panel.of(codes, [3])
    assert lone_states(panel, OPTIONS) is None
    no_memory = replace(panel, kinds=(("categorical",),))
    assert lone_states(no_memory, OPTIONS) is not None


def test_gain_of_two_is_a_lower_bound_where_it_is_enough():
    data = make_latent_dbn("G2", 200, 3, random_state=0)
    search = measurement_search(Panel.of(data.codes, np.full(6, 4)), OPTIONS)
    search.run()
    first, second = frozenset(range(3)), frozenset(range(3, 6))
    two, one = search.two_classes(first, second), search.one_class(first | second)
    assert 0 < search.gain_of_two(first, second) <= two.bic - one.bic


def test_no_move_leaves_a_group_of_one(monkeypatch):
    """Feature 0 gains most but would leave feature 1 alone; the next one moves."""
    gains = {0: 5.0, 1: -1.0, 2: 3.0, 3: 0.0, 4: -2.0}
    monkeypatch.setattr(
        "sklearn_latent.mixed._measurement.measurement.candidate_moves",
        lambda *_: [Move(gain, [], feature, None) for feature, gain in gains.items()],
    )
    search = SimpleNamespace(
        _pairs={},
        _plain_pair=lambda key: SimpleNamespace(bic=10.0),
        _sides=lambda first, second: (None, None),
        _fit_pair=lambda pair, tables, max_iter: SimpleNamespace(bic=20.0),
    )
    settled = MeasurementSearch._settle(search, frozenset([0, 1]), frozenset([2, 3, 4]))
    assert settled == ({0, 1, 2}, {3, 4})


def test_groups_of_different_latents_are_not_tried_as_one():
    first, second = frozenset(range(3)), frozenset(range(3, 6))

    def may_join(structure, edges):
        none = np.zeros_like(edges)
        graph = TemporalGraph(structure, none, edges)
        data = make_latent_dbn(graph, 1000, 3, random_state=0)
        search = measurement_search(Panel.of(data.codes, np.full(6, 4)), OPTIONS)
        return search._may_join(first, second)

    two = np.repeat(np.eye(2, dtype=int), 3, axis=1)
    assert not may_join(two, np.array([[1, 1], [0, 0]]))
    assert may_join(np.ones((1, 6), dtype=int), np.array([[1]]))


class TestReview:
    """The chain decides where slices alone hardly do."""

    first, second = frozenset([0, 1]), frozenset([2, 3])

    def review(self, one, two, gain):
        search = SimpleNamespace(
            one_class=lambda group: SimpleNamespace(bic=one),
            best_halves=lambda group: [(self.first, self.second, two)],
        )
        review = _Review(None, search, OPTIONS)
        review.gain_of_two = lambda first, second, lead: gain
        return review

    @pytest.mark.parametrize(
        ("margin", "gain", "is_split"),
        [
            (24.0, 25.0, True),
            (24.0, 24.0, False),
            (1000.0, 1001.0, True),
        ],
    )
    def test_split(self, margin, gain, is_split):
        group = self.first | self.second
        parts = self.review(0.0, -margin, gain).split(group)
        assert parts == ([self.first, self.second] if is_split else [group])


def test_a_pair_that_cannot_win_ends_early():
    data = make_latent_dbn("G2", 400, 2, random_state=0)
    search = measurement_search(Panel.of(data.codes, np.full(6, 4)), OPTIONS)
    search.run()
    first, second = frozenset(range(3)), frozenset(range(3, 6))
    model = search.two_classes(first, second)
    tables = [search.models_of(group)[-1].emission for group in (first, second)]
    arguments = search.rows_of(first | second), np.arange(6) < 3, *tables
    ended, whole = (fit_pair(*arguments, rival=rival) for rival in (model, None))
    assert model.bic > whole.bic > ended.bic
    assert ended.log_likelihood > model.log_likelihood
