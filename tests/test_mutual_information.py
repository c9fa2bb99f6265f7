"""Which latents belong together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_latent import LPCC
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.mixed._mutual_information import cut_hierarchy, latent_hierarchy


def two_traits(n=500, seed=0):
    """States of four latents: the first two follow one trait, the others another."""
    rng = np.random.default_rng(seed)
    traits = rng.integers(3, size=(n, 2)).repeat(2, axis=1)
    noise = rng.integers(3, size=(n, 4))
    return np.where(rng.random((n, 4)) < 0.8, traits, noise)


def test_latents_of_one_trait_share_a_group():
    tree = latent_hierarchy(two_traits(), np.full(4, 3), np.ones(500))
    np.testing.assert_array_equal(cut_hierarchy(tree, None), [0, 0, 1, 1])


def test_independent_latents_stay_apart_and_equal_ones_do_not():
    rng = np.random.default_rng(0)
    states = rng.integers(2, size=(2000, 3))
    states[:, 2] = states[:, 0]
    tree = latent_hierarchy(states, np.full(3, 2), np.ones(2000))
    np.testing.assert_array_equal(cut_hierarchy(tree, None), [0, 1, 0])
    np.testing.assert_allclose(tree[0, 2], 0.0, atol=1e-12)


@given(st.permutations(range(4)), st.integers(1, 4))
def test_order_of_latents_does_not_matter(order, n_groups):
    states, cards = two_traits(), np.full(4, 3)
    weights = np.ones(len(states))
    plain = cut_hierarchy(latent_hierarchy(states, cards, weights), n_groups)
    moved = cut_hierarchy(latent_hierarchy(states[:, order], cards, weights), n_groups)
    assert len(set(plain)) == len(set(moved)) == n_groups
    same, same_moved = (g[:, None] == g for g in (plain, moved))
    np.testing.assert_array_equal(same[np.ix_(order, order)], same_moved)


def test_weights_are_copies():
    states, cards = two_traits(60), np.full(4, 3)
    weights = np.arange(60) % 3
    heavy = latent_hierarchy(states, cards, weights.astype(float))
    copies = states.repeat(weights, axis=0)
    copied = latent_hierarchy(copies, cards, np.ones(len(copies)))
    np.testing.assert_allclose(heavy, copied)


def test_estimator_has_groups_with_and_without_latents():
    data = make_latent_dbn("G2", 500, 1, random_state=0)
    model = LPCC(random_state=0).fit(data.X)
    assert model.hierarchy_.shape == (model.n_latents_ - 1, 4)
    assert model.group_latents(model.n_latents_).tolist() == [0, 1]
    with pytest.raises(ValueError, match="n_groups"):
        model.group_latents(3)
    with pytest.warns(match="No latent found"):
        nothing = LPCC(random_state=0).fit(data.X[:, :1])
    assert nothing.group_latents().shape == (nothing.n_latents_,) == (0,)
