"""Laws of inference with missing values, for whatever network and pattern."""

import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import seeds

from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.gaussian import GaussianNetwork
from sklearn_latent.gaussian._bent_inference import infer
from sklearn_latent.gaussian._conditional import (
    IncompleteData,
    Joint,
    condition,
    expected_statistics,
)


@st.composite
def problems(draw, max_nodes=7, max_rows=25):
    """A joint Gaussian, rows with gaps, weights."""
    rng = np.random.RandomState(draw(seeds))
    n_nodes = draw(st.integers(1, max_nodes))
    n_latents = draw(st.integers(0, n_nodes - 1))
    n_rows = draw(st.integers(1, max_rows))
    weights = np.triu(rng.normal(size=(n_nodes, n_nodes)), 1)
    order = rng.permutation(n_nodes)
    weights = weights[np.ix_(order, order)]
    noise = rng.uniform(0.3, 2.0, n_nodes)
    joint = Joint(weights, rng.normal(size=n_nodes), noise)
    X = rng.normal(size=(n_rows, n_nodes - n_latents)) * 2.0
    X[rng.uniform(size=X.shape) < draw(st.floats(0, 1))] = np.nan
    return joint, X, rng


@settings(max_examples=30)
@given(problems())
def test_rows_do_not_depend_on_their_company(problem):
    joint, X, _ = problem
    completed, log_likelihood = condition(joint, X)[:2]
    for row in range(len(X)):
        alone, density = condition(joint, X[[row]])[:2]
        assert_allclose(completed[row], alone[0], atol=1e-7)
        assert_allclose(log_likelihood[row], density[0], atol=1e-7)


@settings(max_examples=60)
@given(problems(), st.integers(0, 10**6))
def test_statistics_of_parts_add_up(problem, cut):
    joint, X, _ = problem
    cut = 1 + cut % max(len(X) - 1, 1)
    whole, total = expected_statistics(joint, IncompleteData.of(X))
    if cut >= len(X):
        return
    first, one = expected_statistics(joint, IncompleteData.of(X[:cut]))
    second, other = expected_statistics(joint, IncompleteData.of(X[cut:]))
    both = first + second
    assert_allclose(both.mean, whole.mean, atol=1e-7)
    assert_allclose(both.scatter, whole.scatter, atol=1e-5, rtol=1e-6)
    assert_allclose(one + other, total, atol=1e-6, rtol=1e-9)


@settings(max_examples=60)
@given(problems())
def test_weights_are_repeated_rows(problem):
    joint, X, rng = problem
    counts = rng.randint(0, 4, len(X))
    counts[0] = 1
    weighted, total = expected_statistics(joint, IncompleteData.of(X, counts))
    repeated, again = expected_statistics(
        joint, IncompleteData.of(np.repeat(X, counts, axis=0))
    )
    assert_allclose(weighted.mean, repeated.mean, atol=1e-7)
    assert_allclose(weighted.scatter, repeated.scatter, atol=1e-5, rtol=1e-6)
    assert_allclose(total, again, atol=1e-6, rtol=1e-9)


@settings(max_examples=60)
@given(problems())
def test_columns_may_be_permuted(problem):
    joint, X, rng = problem
    n_features = X.shape[1]
    order = np.arange(joint.n_nodes)
    order[:n_features] = rng.permutation(n_features)
    both = np.ix_(order, order)
    weights = (np.eye(joint.n_nodes) - joint.innovation)[both]
    intercept = (joint.mean @ joint.innovation)[order]
    permuted = Joint(weights, intercept, joint.noise_variance[order])
    completed, log_likelihood = condition(joint, X)[:2]
    again, density = condition(permuted, X[:, order[:n_features]])[:2]
    assert_allclose(again, completed[:, order], atol=1e-6)
    assert_allclose(density, log_likelihood, atol=1e-6)


@settings(max_examples=40)
@given(problems())
def test_filling_in_the_expectation_leaves_it_a_fixed_point(problem):
    joint, X, _ = problem
    completed, _ = condition(joint, X)[:2]
    n_features = X.shape[1]
    again, _ = condition(joint, completed[:, :n_features])[:2]
    assert_allclose(again, completed, atol=1e-5)


@settings(max_examples=25)
@given(problems(max_nodes=5, max_rows=8))
def test_mean_field_is_exact_for_linear_networks(problem):
    joint, X, _ = problem
    weights = np.eye(joint.n_nodes) - joint.innovation
    weights[np.abs(weights) < 1e-12] = 0.0
    network = GaussianNetwork(
        weights != 0,
        weights,
        joint.mean @ joint.innovation,
        joint.noise_variance,
        n_latents=joint.n_nodes - X.shape[1],
    )
    completed, log_likelihood = condition(joint, X)[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximateInferenceWarning)
        means, bound = infer(network, X)[:2]
    assert_allclose(means, completed, atol=1e-3)
    assert_allclose(bound, log_likelihood, atol=1e-3)
