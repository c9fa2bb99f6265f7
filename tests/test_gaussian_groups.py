"""Rows in groups: a fit says so, and only then."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, load_wine
from sklearn.mixture import GaussianMixture

from sklearn_latent import IdealParentGaussianBN
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.exceptions import ModelMisfitWarning
from sklearn_latent.gaussian._groups import best_mixture, completed_bic


def misfits(X, sample_weight=None, **parameters):
    """Warnings of a misfit in a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        IdealParentGaussianBN(**parameters).fit(X, sample_weight=sample_weight)
    return [entry for entry in caught if entry.category is ModelMisfitWarning]


@pytest.fixture(scope="module")
def groups():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(100, 3)) + 5.0 * k for k in (0, 1, 3)])


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_real_groups(load):
    (entry,) = misfits(load().data)
    assert "mixture of" in str(entry.message)
    assert entry.filename == __file__


def test_planted_groups_are_counted(groups):
    with pytest.warns(ModelMisfitWarning, match="mixture of 3 normal"):
        IdealParentGaussianBN().fit(groups)
    assert best_mixture(groups)[0] == 3


@pytest.mark.parametrize("seed", range(20))
def test_none_in_rows_of_a_network(seed):
    n_features, n_rows = (4, 8, 15)[seed % 3], (100, 400)[seed % 2]
    X = make_gaussian_bn(n_features, n_samples=n_rows, random_state=seed).X
    assert not misfits(X)


@pytest.mark.parametrize("factor", [10.0, 1000.0, -0.3])
def test_the_warning_does_not_depend_on_units_or_order(factor):
    X = load_wine().data
    rng = np.random.default_rng(1)
    (first,) = misfits(X)
    other = X[rng.permutation(len(X))][:, rng.permutation(13)] * factor
    (second,) = misfits(other)
    assert str(first.message) == str(second.message)


def test_units_do_not_matter(groups):
    n_groups, criterion = best_mixture(groups)
    scale = np.array([1e3, 1e-2, 1.0])
    scaled = best_mixture(groups * scale + 7.0)
    assert scaled[0] == n_groups
    assert_allclose(scaled[1], criterion + 2.0 * len(groups) * np.log(scale).sum())


def test_single_component_has_the_plain_bic(groups):
    mixture = GaussianMixture(1).fit(groups)
    assert_allclose(completed_bic(mixture, groups), mixture.bic(groups))


def test_heavy_tails_are_no_groups():
    X = np.random.default_rng(0).standard_t(3, size=(400, 4))
    mixture = GaussianMixture(2, random_state=0).fit(X)
    assert mixture.bic(X) < GaussianMixture(1).fit(X).bic(X)
    assert completed_bic(mixture, X) > mixture.bic(X)
    assert not misfits(X)


@pytest.mark.parametrize("max_latents", [0, 1])
def test_whether_groups_are_sought(groups, max_latents):
    gaps = groups.copy()
    gaps[0, 0] = np.nan
    same = {"max_latents": max_latents}
    assert misfits(groups, **same)
    assert misfits(groups, np.full(300, 2.0), **same)
    assert not misfits(gaps, **same)
    assert not misfits(groups[::10], **same)
    assert not misfits(np.round(groups), **same)
    assert not misfits(groups, np.arange(1.0, 301.0), **same)
    assert not misfits(np.column_stack([groups, np.ones(300)]), **same)
    assert not misfits(groups, margins="normal", **same)


def test_a_network_that_must_not_have_edges_is_no_sign_of_groups():
    X = make_gaussian_bn(6, n_samples=500, random_state=0).X
    assert not misfits(X, max_parents=0)


def test_ends_of_a_sigmoid_are_no_groups():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    X = np.column_stack([x, np.tanh(2.0 * x) + 0.1 * rng.normal(size=300)])
    assert not misfits(X, link="sigmoid")
