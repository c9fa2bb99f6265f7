import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import seeds

from sklearn_latent.noisy_or._statistics.subsets import MEMBERS
from sklearn_latent.noisy_or._triplets import (
    solve_pairs,
    solve_triplets,
    triplet_gradient,
)


def random_triplets(seed, n=20):
    """Parameters and moments of triplets with one latent."""
    rng = np.random.default_rng(seed)
    prior = rng.uniform(0.1, 0.9, n)
    failure = rng.uniform(0.1, 0.9, (n, 3))
    if_off = rng.uniform(0.2, 1.0, (n, 3))
    return prior, failure, moments_of(prior, failure, if_off)


def moments_of(prior, failure, if_off):
    base = np.where(MEMBERS, if_off[:, None], 1.0).prod(axis=2)
    fails = np.where(MEMBERS, failure[:, None], 1.0).prod(axis=2)
    return base * (1 - prior[:, None] + prior[:, None] * fails)


def joint_table(M):
    """Joint distribution T[a, b, c] from the seven negative moments."""
    a, b, c, ab, ac, bc, abc = M
    T = np.empty((2, 2, 2))
    T[0, 0, 0] = abc
    T[0, 0, 1], T[0, 1, 0], T[1, 0, 0] = ab - abc, ac - abc, bc - abc
    T[0, 1, 1] = a - ab - ac + abc
    T[1, 0, 1] = b - ab - bc + abc
    T[1, 1, 0] = c - ac - bc + abc
    T[1, 1, 1] = 1 - a - b - c + ab + ac + bc - abc
    return T


def tensor_decomposition(T):
    """Algorithm 2 of Halpern and Sontag, step by step, for one triplet.

    Returns the prior and the three failures, with the states labelled so that the
    latent switches features on (the comparison in the printed algorithm is reversed).
    """
    X1, X2 = T[0], T[1]
    Y2 = X2 @ np.linalg.inv(X1)
    l1, l2 = np.roots([1.0, -np.trace(Y2), np.linalg.det(Y2)])
    parts = []
    for mine, other in ((l1, l2), (l2, l1)):
        outer = (X2 - other * X1) / (mine - other)
        v, u = outer[0], np.array([1.0, outer[1, 1] / outer[0, 1]])
        parts.append(np.einsum("i,j,k->ijk", [1.0, mine], u, v))
    off, on = sorted(parts, key=lambda part: -(part[0, 0, 0] / part.sum()))
    margins = [(1, 2), (0, 2), (0, 1)]
    ratio = [
        (on.sum(axis=m)[0] / on.sum()) / (off.sum(axis=m)[0] / off.sum())
        for m in margins
    ]
    return np.array([on.sum(), *ratio])


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_triplets_give_back_their_parameters(seed):
    prior, failure, M = random_triplets(seed)
    parameters, valid = solve_triplets(M)
    assert valid.all()
    np.testing.assert_allclose(parameters[:, 0], prior, atol=1e-7)
    np.testing.assert_allclose(parameters[:, 1:], failure, atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_agrees_with_the_published_decomposition(seed):
    """Also on noisy moments, where the solution is not the truth."""
    _, _, M = random_triplets(seed)
    M = M * np.random.default_rng(seed).normal(1.0, 1e-4, M.shape)
    for row, parameters in zip(M, solve_triplets(M)[0], strict=True):
        expected = tensor_decomposition(joint_table(row))
        # Where the two roots nearly coincide neither has many digits.
        if np.isrealobj(expected) and np.abs(expected).max() < 2:
            np.testing.assert_allclose(parameters, expected, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_gradient_of_triplets(seed):
    """Small changes of the moments change the parameters as the gradient says."""
    _, _, M = random_triplets(seed, n=5)
    change = 1e-7 * np.random.default_rng(seed).standard_normal(M.shape)
    gradient = triplet_gradient(M)
    # Triplets on the verge of no solution have no usable difference quotient.
    calm = np.abs(gradient).max((1, 2)) < 100
    expected = np.einsum("nps,ns->np", gradient, change)
    found = solve_triplets(M * np.exp(change))[0] - solve_triplets(M)[0]
    np.testing.assert_allclose(found[calm], expected[calm], rtol=1e-2, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(seeds, st.permutations(range(3)))
def test_order_of_features_does_not_matter(seed, order):
    prior, failure, _ = random_triplets(seed)
    if_off = np.random.default_rng(seed + 1).uniform(0.2, 1.0, failure.shape)
    one, _ = solve_triplets(moments_of(prior, failure, if_off))
    two, _ = solve_triplets(moments_of(prior, failure[:, order], if_off[:, order]))
    np.testing.assert_allclose(one[:, 0], two[:, 0], atol=1e-7)
    np.testing.assert_allclose(one[:, 1:][:, order], two[:, 1:], atol=1e-7)


def test_independent_or_constant_features_have_no_solution():
    if_off = np.array([[0.5, 0.5, 0.5], [1.0, 1.0, 1.0]])
    nothing = np.ones((2, 3))
    parameters, valid = solve_triplets(moments_of(np.full(2, 0.3), nothing, if_off))
    assert not valid.any()
    np.testing.assert_array_equal(parameters, [[0.5, 1, 1, 1]] * 2)


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_pairs_give_back_the_other_failure(seed):
    prior, failure, M = random_triplets(seed)
    log_lift = np.log(M[:, 3] / (M[:, 0] * M[:, 1]))
    found, valid = solve_pairs(log_lift, prior, failure[:, 1])
    assert valid.all()
    np.testing.assert_allclose(found, failure[:, 0], atol=1e-9)


def test_a_pair_without_information_has_no_effect():
    found, valid = solve_pairs(
        np.zeros(2), np.array([0.5, 1e-16]), np.array([1.0, 0.5])
    )
    assert not valid.any()
    np.testing.assert_array_equal(found, 1.0)
