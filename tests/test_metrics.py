"""Metrics do not see the order of latents, and see everything else."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sklearn_latent.metrics import edge_f1, match_latents

seeds = st.integers(0, 2**32 - 1)
few = st.integers(0, 4)


def random_failure(rng, n_latents, n_features=6):
    failure = rng.uniform(size=(n_latents, n_features))
    return np.where(rng.uniform(size=failure.shape) < 0.4, failure, 1.0)


@settings(max_examples=50, deadline=None)
@given(seed=seeds, n=st.integers(1, 6))
def test_matching_finds_a_permutation(seed, n):
    rng = np.random.RandomState(seed)
    failure = rng.uniform(size=(n, 6))
    order = rng.permutation(n)
    pairs, recovered = match_latents(failure, failure[order])
    np.testing.assert_array_equal(order[pairs[:, 1]], pairs[:, 0])
    assert recovered.all()


@settings(max_examples=50, deadline=None)
@given(seed=seeds, n_true=few, n_learned=few)
def test_number_recovered_is_the_best_of_all_matchings(seed, n_true, n_learned):
    rng = np.random.RandomState(seed)
    true, learned = random_failure(rng, n_true), random_failure(rng, n_learned)
    # Near copies make some recoveries possible.
    for i in range(min(n_true, n_learned)):
        if rng.uniform() < 0.7:
            learned[i] = np.clip(true[i] * rng.uniform(0.3, 2.0, size=6), 0.0, 1.0)
    pairs, recovered = match_latents(true, learned)
    assert pairs.shape == (min(n_true, n_learned), 2)
    assert recovered.shape == (n_true,)
    assert len(set(pairs[:, 0])) == len(set(pairs[:, 1])) == len(pairs)

    def log(f):
        return np.log(np.maximum(f, 1e-6))

    close = [[np.abs(log(a) - log(b)).max() <= 1 for b in learned] for a in true]
    most = 0
    if min(n_true, n_learned):
        wide = np.array(close) if n_true <= n_learned else np.array(close).T
        most = max(
            sum(row[j] for row, j in zip(wide, order, strict=False))
            for order in permutations(range(wide.shape[1]))
        )
    assert recovered.sum() == most


@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_matching_ignores_the_order_of_features(seed):
    rng = np.random.RandomState(seed)
    true, learned = random_failure(rng, 3), random_failure(rng, 4)
    columns = rng.permutation(6)
    np.testing.assert_array_equal(
        match_latents(true, learned)[1],
        match_latents(true[:, columns], learned[:, columns])[1],
    )


def test_tolerance_is_a_factor_of_e_for_every_failure():
    true = np.array([[0.1, 0.5, 1.0]])
    assert match_latents(true, true * [np.exp(0.99), 1, 1])[1].all()
    assert not match_latents(true, true * [np.exp(1.01), 1, 1])[1].any()


def test_a_rare_latent_is_not_recovered():
    failure = np.array([[0.1, 0.1], [0.1, 1.0]])
    pairs, recovered = match_latents(failure, failure, prior=[0.02, 0.019])
    assert pairs.tolist() == [[0, 0], [1, 1]]
    assert recovered.tolist() == [True, False]


def test_failures_of_zero_are_finite():
    zero = np.zeros((1, 3))
    assert match_latents(zero, zero)[1].all()
    assert not match_latents(zero, zero + 0.5)[1].any()


@settings(max_examples=50, deadline=None)
@given(seed=seeds, n_true=few, n_learned=few)
def test_edge_f1_is_symmetric_and_blind_to_order(seed, n_true, n_learned):
    rng = np.random.RandomState(seed)
    true = rng.uniform(size=(n_true, 5)) < 0.5
    learned = rng.uniform(size=(n_learned, 5)) < 0.5
    f1 = edge_f1(true, learned)
    assert 0 <= f1 <= 1
    assert edge_f1(learned, true) == f1
    assert edge_f1(true, learned[rng.permutation(n_learned)]) == pytest.approx(f1)
    assert edge_f1(true, true[::-1]) == 1


def test_edge_f1_counts_edges():
    true = np.array([[1, 1, 1, 0], [0, 0, 1, 1]])
    learned = true.copy()
    learned[0, 0] = 0  # one of five edges missed: precision 1, recall 4/5
    assert edge_f1(true, sparse.csr_array(learned)) == pytest.approx(8 / 9)
    assert edge_f1(true, np.vstack([true, [1, 0, 0, 0]])) == pytest.approx(10 / 11)
    assert edge_f1(true, np.zeros((3, 4))) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: match_latents([[0.1]], [[0.1, 0.2]]), "true_failure and failure.*1 a"),
        (lambda: match_latents([[1.5]], [[0.1]]), r"true_failure.*in \[0, 1\].*1.5"),
        (lambda: match_latents([[0.5]], [[0.5]], [0.1, 0.1]), "prior must have one"),
        (lambda: match_latents([[0.5]], [[0.5]], "a"), "prior must be an array of num"),
        (lambda: edge_f1([[1]], [[1, 0]]), "true_structure and structure.*1 and 2"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
