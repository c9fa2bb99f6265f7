"""Near-duplicate features, and features that never change."""

import numpy as np
import pytest

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.mixed import LPCC, LGLPCCTemporal
from sklearn_latent.mixed._panels.panel import Panel
from sklearn_latent.mixed._redundant import (
    Redundant,
    near_duplicates,
    never_change,
)


def panel_of(codes):
    return Panel.of(codes, codes.max(axis=(0, 1)) + 1)


@pytest.fixture(scope="module")
def codes():
    return make_latent_dbn("G2", 400, 5, random_state=0).codes


def with_copies(codes, share, seed=0):
    """Copies of two features under other labels, some of whose values are redrawn."""
    rng = np.random.default_rng(seed)
    extra = codes[:, :, [0, 4]]
    redrawn = rng.integers(4, size=extra.shape)
    extra = np.where(rng.random(extra.shape) < share, redrawn, 3 - extra)
    return np.dstack([codes, extra])


def test_near_duplicates_are_found(codes):
    assert near_duplicates(panel_of(codes)).tolist() == list(range(6))
    found = near_duplicates(panel_of(with_copies(codes, 0.03)))
    assert found.tolist() == [0, 1, 2, 3, 4, 5, 0, 4]
    noisy = near_duplicates(panel_of(with_copies(codes, 0.2)))
    assert noisy.tolist() == list(range(8))


def test_rare_categories_agree_by_chance_alone():
    rng = np.random.default_rng(0)
    rare = (rng.random((500, 4, 3)) < 0.01).astype(int)
    assert near_duplicates(panel_of(rare)).tolist() == [0, 1, 2]
    few = np.zeros((4, 1, 2), dtype=int)
    few[:2] = 1
    assert near_duplicates(panel_of(few)).tolist() == [0, 1]


def test_one_that_tells_more_is_no_duplicate():
    rng = np.random.default_rng(0)
    fine = rng.integers(4, size=(300, 3, 1))
    assert near_duplicates(panel_of(np.dstack([fine, fine // 2]))).tolist() == [0, 1]


def test_gaps_and_weights(codes):
    gaps = with_copies(codes, 0.0)
    gaps[np.random.default_rng(0).random(gaps.shape) < 0.5] = -1
    panel = panel_of(gaps)
    assert near_duplicates(panel)[6:].tolist() == [0, 4]
    other = with_copies(codes, 1.0)
    both = np.concatenate([with_copies(codes, 0.0), other])
    weights = np.repeat([1.0, 0.0], len(codes))
    weighted = Panel.of(both, panel.n_categories, weights)
    assert near_duplicates(weighted)[6:].tolist() == [0, 4]


def test_features_that_never_change():
    rng = np.random.default_rng(0)
    own = rng.integers(3, size=(40, 1, 1)).repeat(4, axis=1)
    codes = np.dstack(
        [own, rng.integers(3, size=(40, 4, 1)), np.zeros((40, 4, 1), int)]
    )
    assert never_change(panel_of(codes)).tolist() == [True, False, False]
    codes[rng.random(codes.shape) < 0.3] = -1
    panel = Panel.of(codes, [3, 3, 1])
    assert never_change(panel).tolist() == [True, False, False]
    assert not never_change(Panel.of(codes[:, :1], [3, 3, 1])).any()
    assert not never_change(Panel.of(codes[:15], [3, 3, 1])).any()


@pytest.mark.filterwarnings("ignore:No latent found:Warning")
def test_numbers_that_stay_in_their_bin_change():
    rng = np.random.default_rng(0)
    level = 10.0 * np.arange(40).reshape(-1, 1, 1)
    other = rng.permutation(level).repeat(4, axis=1)
    X = np.dstack([level + rng.normal(size=(40, 4, 1)), other])
    with pytest.warns(PoorDataWarning, match="never change .*: feature 1"):
        model = LGLPCCTemporal(random_state=0).fit(X)
    assert model.constant_features_.tolist() == [1]


def test_duplicates_share_the_latent_of_the_original(codes):
    X = with_copies(codes, 0.03)
    with pytest.warns(PoorDataWarning, match="nearly the same") as caught:
        model = LGLPCCTemporal(random_state=0).fit(X)
    texts = [str(one.message) for one in caught]
    assert any("feature 0, feature 6. They share a latent" in text for text in texts)
    groups = [np.flatnonzero(row).tolist() for row in model.structure_]
    assert groups == [[0, 1, 2, 6], [3, 4, 5, 7]]
    assert model.duplicates_ == [[0, 6], [4, 7]]
    assert model.cardinality_.tolist() == [4, 4]
    assert model.support_.structure.shape == (2, 8)
    assert model.local_graphs_[0].structure.shape[1] == 8
    assert (
        model.emission_[6].argmax(axis=1).tolist()
        == (3 - model.emission_[0].argmax(axis=1)).tolist()
    )


def test_two_duplicates_and_nothing_else_share_a_latent():
    rng = np.random.default_rng(0)
    one = rng.integers(3, size=(400, 1))
    X = np.hstack([one, (one + 1) % 3, rng.integers(3, size=(400, 2))])
    with pytest.warns(PoorDataWarning, match="nearly the same"):
        model = LPCC(random_state=0).fit(X)
    assert model.structure_.tolist() == [[True, True, False, False]]


def test_features_that_never_change_measure_no_latent(codes):
    rng = np.random.default_rng(0)
    own = rng.integers(3, size=(len(codes), 1, 2)).repeat(codes.shape[1], axis=1)
    with pytest.warns(PoorDataWarning, match="never change .*: feature 6, feature 7"):
        model = LGLPCCTemporal(random_state=0).fit(np.dstack([codes, own]))
    assert model.n_latents_ == 2
    assert not model.structure_[:, 6:].any()
    assert model.constant_features_.tolist() == [6, 7]
    X = np.dstack([codes[:5], own[:5]]).astype(float)
    X[:, 2, 6:] = np.nan
    np.testing.assert_array_equal(model.impute(X)[:, 2, 6:], own[:5, 2])
    np.testing.assert_array_equal(model.forecast(X).values[:, 0, 6:], own[:5, 2])


@pytest.mark.filterwarnings("ignore:No latent found:Warning")
def test_nothing_ever_changes():
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(60, 1, 2)).repeat(4, axis=1)
    with pytest.warns(PoorDataWarning, match="never change .*: feature 0, feature 1"):
        model = LGLPCCTemporal(random_state=0).fit(X)
    assert model.n_latents_ == 0
    assert model.local_graphs_ == []
    # The first value is one of three; all others follow from it.
    assert model.score(X) == pytest.approx(2 * np.log(1 / 3), abs=0.2)
    np.testing.assert_array_equal(model.forecast(X).values[:, 0], X[:, 0])


def test_cluster_comparison_sees_all_features(codes):
    with pytest.warns(PoorDataWarning):
        model = LGLPCCTemporal(random_state=0, local="lpcc").fit(
            with_copies(codes, 0.0)
        )
    assert model.duplicates_ == [[0, 6], [4, 7]]


def test_what_is_learned_from_some_is_spread_over_all():
    found = Redundant(np.array([0, 0, 2, 3]), np.array([False, False, True, False]))
    assert found.kept.tolist() == [0, 3]
    assert found.groups == [[0, 1]]
    wide = found.with_copies(np.array([[True, False, False, False]]))
    assert wide.astype(int).tolist() == [[1, 1, 0, 0]]
    assert Redundant.none(2).kept.tolist() == [0, 1]
