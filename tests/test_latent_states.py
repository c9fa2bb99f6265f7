"""Numbers of states: of a latent alone, and beside its neighbours."""

import numpy as np

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.mixed import TemporalGraph
from sklearn_latent.mixed._column_groups import SearchOptions
from sklearn_latent.mixed._latent_states import (
    _context,
    alone,
    guess_states,
    learn_latents,
)
from sklearn_latent.mixed._panels.panel import Panel

OPTIONS = SearchOptions()
GROUPS = [(0, 1, 2), (3, 4, 5)]


def panel_of(data):
    return Panel.of(data.codes, data.network.n_categories)


def test_neighbours_show_the_states_of_a_weak_latent():
    reliability = [0.5] * 3 + [0.9] * 3
    data = make_latent_dbn("G3", 500, 4, reliability=reliability, random_state=102)
    panel = panel_of(data)
    assert len(alone(panel, GROUPS[0], OPTIONS).shares) < 4
    found = learn_latents(panel, GROUPS, OPTIONS)
    assert found.cardinality == [4, 4]
    assert found.inter[1, 1] and found.intra.any()


def test_numbers_of_states_that_are_given_stay():
    data = make_latent_dbn("G2", 300, 3, random_state=0)
    found = learn_latents(panel_of(data), GROUPS, SearchOptions(n_states=3))
    assert found.cardinality == [3, 3]
    for latent in found.latents:
        assert [table.shape for table in latent.tables] == [(3, 4)] * 3


def test_two_features_and_their_past_show_all_states():
    graph = TemporalGraph([[1, 1]], [[0]], [[1]])
    data = make_latent_dbn(graph, 1000, 4, random_state=0)
    (latent,) = learn_latents(panel_of(data), [(0, 1)], OPTIONS).latents
    assert len(latent.shares) == 4
    # Shares and tables are probabilities, of the features in their order.
    np.testing.assert_allclose(latent.shares.sum(), 1.0)
    for table in latent.tables:
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
    truth = data.network.emission[0].argmax(axis=1)
    assert sorted(latent.tables[0].argmax(axis=1)) == sorted(truth)


def test_numbers_show_more_states_than_their_bins():
    rng = np.random.default_rng(0)
    centers = 10.0 * rng.integers(5, size=(1000, 1))
    numbers = (centers + rng.normal(size=(1000, 3)))[:, None]
    codes = np.digitize(numbers, [5, 15, 30])
    kinds = (("gaussian",),) * 3
    panel = Panel(codes, np.ones(1000), np.full(3, 4), kinds, numbers)
    assert len(alone(panel, (0, 1, 2), OPTIONS).shares) > 4
    assert len(alone(Panel.of(codes, [4] * 3), (0, 1, 2), OPTIONS).shares) == 4


def test_guesses_are_the_true_states_up_to_confusion():
    data = make_latent_dbn("G2", 1000, 3, random_state=0)
    codes = data.codes.copy()
    codes[:5, 0, :3] = -1
    panel = Panel.of(codes, [4] * 6)
    guessed = guess_states(panel, [alone(panel, g, OPTIONS) for g in GROUPS])
    assert (guessed.states[:5, 0, 0] == -1).all()
    assert (guessed.states[:, 1:] >= 0).all()
    for j, confusion in enumerate(guessed.confusions):
        np.testing.assert_allclose(confusion.sum(axis=1), 1.0)
        assert confusion.diagonal().min() > 0.5
        same = np.zeros((4, 4))
        np.add.at(same, (data.Z[5:, :, j].ravel(), guessed.states[5:, :, j].ravel()), 1)
        assert same.max(axis=1).sum() > 0.8 * same.sum()


def test_the_context_is_children_and_one_parent():
    none = np.zeros((4, 4), dtype=bool)
    assert _context(0, none, none) == []
    intra, inter = none.copy(), none.copy()
    intra[0, [1, 2]] = inter[0, 0] = True
    assert _context(0, intra, inter) == [(0, 1), (1, 0), (0, -1)]
    assert _context(1, intra, inter) == [(0, 0)]
    inter[3, 1] = inter[1, 1] = True
    assert _context(1, intra, inter) == [(1, 1), (1, -1)]
