"""Which search and which penalty, and what limits the number of parents."""

from dataclasses import replace

import numpy as np
import pytest
from gaussian_strategies import free_options

from sklearn_latent.gaussian import IdealParentGaussianBN
from sklearn_latent.gaussian._learn import choose_search
from sklearn_latent.gaussian._rows import Rows, RowSums


@pytest.mark.parametrize("link", ["linear", "sigmoid"])
@pytest.mark.parametrize("max_latents", [0, 2])
def test_what_auto_stands_for(link, max_latents):
    options = free_options(
        5, search="auto", penalty="auto", link=link, max_latents=max_latents
    )
    chosen = choose_search(options)
    assert chosen.search == ("order" if link == "linear" else "greedy")
    assert chosen.similarity == ("C2" if link == "linear" else "C3")
    assert chosen.penalty == "ebic"
    assert choose_search(replace(options, penalty=2.0)).penalty == 2.0
    for search in ("greedy", "order"):
        given = replace(options, search=search, published=search == "greedy")
        chosen = choose_search(given)
        assert (chosen.search, chosen.similarity) == (search, "C2")
        extended = search == "order" and max_latents > 0
        assert chosen.penalty == ("ebic" if extended else 1.0)


def test_counting_different_rows():
    X = np.random.default_rng(0).normal(size=(30, 15))
    X[::4, 1] = np.nan
    assert Rows(X).n_distinct == Rows(X.repeat(3, axis=0)).n_distinct == 30
    X = np.nan_to_num(X)
    assert (RowSums.of(Rows(X[:20])) + RowSums.of(Rows(X[10:]))).n_distinct == 30
    # More than can matter are not counted.
    assert Rows(X[:, :3]).n_distinct == 8
    cube = np.stack(np.meshgrid([0, 1.0], [0, 1.0], [0, 1.0]), -1).reshape(-1, 3)
    assert Rows(cube).n_distinct == 8
    # Repeating rows does not make room for more parents.
    model = IdealParentGaussianBN(search="greedy", penalty=0.0)
    model.fit(np.random.default_rng(1).normal(size=(8, 10)).repeat(20, axis=0))
    assert model.adjacency_.sum(axis=0).max() <= 3


def test_numbers_beyond_floats_are_refused_by_name():
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(object)
    model = IdealParentGaussianBN().fit(X)
    X[3, 1] = 10**400
    for method in (IdealParentGaussianBN().fit, model.score_samples, model.impute):
        with pytest.raises(ValueError, match="X must hold numbers that fit into"):
            method(X)
    with pytest.raises(ValueError, match="X must hold numbers that fit into"):
        model.network_.log_likelihood(X)
    with pytest.raises(ValueError, match="X must hold numbers that fit into"):
        IdealParentGaussianBN().partial_fit(iter([X]))


def test_few_rows_of_noise_have_no_edges():
    found = [
        IdealParentGaussianBN(link="sigmoid")
        .fit(np.random.default_rng(seed).normal(size=(12, 30)))
        .adjacency_.any()
        for seed in range(5)
    ]
    assert sum(found) <= 1
