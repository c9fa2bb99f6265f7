"""However rows come, the same rows make the same network."""

import numpy as np
import pytest
from gaussian_strategies import random_linear_network
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import seeds

from sklearn_latent.gaussian import IdealParentGaussianBN
from sklearn_latent.gaussian._rows import Rows, RowSums
from sklearn_latent.gaussian._statistics import GaussianStatistics

da = pytest.importorskip("dask.array")


def same(one, two):
    np.testing.assert_array_equal(one.adjacency_, two.adjacency_)
    assert (one.search_, one.penalty_) == (two.search_, two.penalty_)
    np.testing.assert_allclose(one.bic_, two.bic_, rtol=1e-9)
    np.testing.assert_allclose(one.log_likelihood_, two.log_likelihood_, rtol=1e-9)
    np.testing.assert_allclose(one.weights_, two.weights_, rtol=1e-6, atol=1e-8)


@st.composite
def repeated_rows(draw):
    """A few different rows, and how often each of them is there."""
    n_features = draw(st.integers(2, 6))
    # Few different rows limit the number of parents, many do not.
    n_distinct = draw(st.sampled_from([4, 7, 12, 60, 150]))
    seed = draw(seeds)
    network = random_linear_network(n_features, seed)
    shift = draw(st.sampled_from([0.0, 1e5]))
    counts = np.random.default_rng(seed).integers(1, 4, n_distinct)
    return network.sample(n_distinct, seed)[0] + shift, counts


@pytest.mark.filterwarnings("ignore:X looks suspicious")
@settings(max_examples=25, deadline=None)
@given(
    repeated_rows(),
    st.sampled_from(["auto", "order", "greedy"]),
    st.sampled_from(["auto", 0.2]),
    st.lists(st.integers(1, 400), max_size=4),
    seeds,
)
def test_one_path(drawn, search, penalty, cuts, seed):
    rows, counts = drawn
    X = np.random.default_rng(seed).permutation(rows.repeat(counts, axis=0))
    parts = np.split(X, sorted({cut for cut in cuts if cut < len(X)}))

    def learner():
        return IdealParentGaussianBN(search=search, penalty=penalty)

    whole = learner().fit(X)
    np.testing.assert_allclose(whole.bic_, whole.bic(X), rtol=1e-7)
    same(whole, learner().fit(rows, sample_weight=counts))
    same(whole, learner().fit(iter(parts)))
    batches = learner()
    for part in parts:
        batches.partial_fit(part, update=part is parts[-1])
    same(whole, batches)
    sizes = tuple(len(part) for part in parts)
    blocks = da.from_array(X, chunks=(sizes, X.shape[1]))
    same(whole, learner().fit(blocks))
    # Half of the different rows are left for the noise, however they came.
    limit = max(len(rows) // 2 - 1, 0)
    assert whole.adjacency_.sum(axis=0).max() <= limit


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 40), seeds)
def test_different_rows_add_up(n_distinct, n_features, cut, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_distinct, n_features))
    X = rows[rng.permutation(np.append(np.arange(n_distinct), np.arange(n_distinct)))]
    cut = 1 + cut % (len(X) - 1)
    both = RowSums.of(Rows(X[:cut])) + RowSums.of(Rows(X[cut:]))
    assert both.n_distinct == min(n_distinct, 2 * n_features + 2)
    assert Rows(X).n_distinct == RowSums.of(Rows(X)).n_distinct == both.n_distinct


@settings(deadline=None)
@given(st.integers(1, 29), st.sampled_from([0.0, 1e6, -1e8, 1e13]), seeds)
def test_sums_of_shifted_rows_keep_their_digits(cut, shift, seed):
    """What is far from zero must not cancel what varies around it."""
    X = np.random.default_rng(seed).normal(size=(30, 3))
    both = GaussianStatistics.of(X[:cut] + shift) + GaussianStatistics.of(
        X[cut:] + shift
    )
    expected = GaussianStatistics.of(X)
    # The rows themselves lose digits when they are shifted.
    lost = 1e-12 + 100 * np.finfo(float).eps * abs(shift)
    np.testing.assert_allclose(
        both.scatter, expected.scatter, rtol=1e-9, atol=30 * lost
    )
    np.testing.assert_allclose(both.mean, expected.mean + shift, rtol=1e-12, atol=lost)
