"""Which search and which penalty: the choice by held-out rows."""

import numpy as np
import pytest
from gaussian_strategies import free_options

from sklearn_latent.gaussian import IdealParentGaussianBN
from sklearn_latent.gaussian._learn import choose_among
from sklearn_latent.gaussian._statistics.rows import DistinctRows, hold_out


def test_held_out_rows():
    X = np.random.default_rng(0).normal(size=(4000, 3))
    X[0] = [np.nan, 0.0, -0.0]
    held_out = hold_out(X)
    np.testing.assert_allclose(held_out.mean(), 0.25, atol=0.03)
    order = np.random.default_rng(1).permutation(4000)
    np.testing.assert_array_equal(hold_out(X[order]), held_out[order])
    np.testing.assert_array_equal(hold_out(X[:, [2, 0, 1]]), held_out)
    np.testing.assert_array_equal(
        hold_out(np.array([[0.0, 1.0]])), hold_out(np.array([[-0.0, 1.0]]))
    )


@pytest.mark.parametrize(
    ("scores", "expected", "n_tried"),
    [
        ({("greedy", "ebic"): 3.0}, ("greedy", "ebic"), 3),
        ({("order", "ebic"): 3.0}, ("order", "ebic"), 3),
        ({("greedy", 1.0): 3.0}, ("greedy", 1.0), 4),
        ({("greedy", 1.0): 1.0, ("order", 1.0): 3.0}, ("order", 1.0), 4),
        ({}, ("order", "ebic"), 3),
    ],
)
def test_choice_of_search_and_penalty(scores, expected, n_tried):
    tried = []

    def score(options):
        assert options.n_candidates is None
        tried.append((options.search, options.penalty))
        return scores.get(tried[-1], 0.0)

    options = free_options(5, search="auto", penalty="auto")
    chosen = choose_among(options, score)
    assert (chosen.search, chosen.penalty) == expected
    assert len(tried) == n_tried


def test_counting_different_rows():
    X = np.random.default_rng(0).normal(size=(30, 15))
    X[::4, 1] = np.nan
    assert len(DistinctRows.of(X)) == 30
    assert len(DistinctRows.of(X.repeat(3, axis=0))) == 30
    assert len(DistinctRows.of(X[:20]) + DistinctRows.of(X[10:])) == 30
    # More than can matter are not counted.
    assert len(DistinctRows.of(X[:, :3])) == 8
    cube = np.stack(np.meshgrid([0, 1.0], [0, 1.0], [0, 1.0]), -1).reshape(-1, 3)
    assert len(DistinctRows.of(cube)) == 8
    # Repeating rows does not make room for more parents.
    model = IdealParentGaussianBN(search="greedy", penalty=0.0)
    model.fit(np.random.default_rng(1).normal(size=(8, 10)).repeat(20, axis=0))
    assert model.adjacency_.sum(axis=0).max() <= 3
