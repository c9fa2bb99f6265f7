"""Laws of ideal parents: bounds for linear families, exact profiles for all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import seeds

from sklearn_latent.gaussian._bent_scores import NonlinearEvaluator
from sklearn_latent.gaussian._families import FamilyFitter
from sklearn_latent.gaussian._ideal_parent import (
    Response,
    TangentScan,
    ideal_profile,
    similarity_c1,
    similarity_c2,
)
from sklearn_latent.gaussian._links import Linear, Sigmoid
from sklearn_latent.gaussian._noise import Additive, Multiplicative


def gain(x, parents, new):
    """Gain in log-likelihood of a linear family, by least squares."""

    def squares(columns):
        table = np.column_stack([np.ones(len(x)), *columns])
        return np.linalg.lstsq(table, x, rcond=None)[0], table

    losses = []
    for columns in (list(parents), [*parents, new]):
        coefficients, table = squares(columns)
        losses.append(((x - table @ coefficients) ** 2).sum())
    return 0.5 * len(x) * np.log(losses[0] / losses[1])


@st.composite
def linear_families(draw):
    """A child, up to three parents, five candidates; correlated and not centred."""
    rng = np.random.default_rng(draw(seeds))
    n_parents = draw(st.integers(0, 3))
    n = draw(st.integers(12, 60))
    table = rng.normal(size=(n_parents + 6, n)) + rng.normal(size=(n_parents + 6, 1))
    table = draw(st.floats(0, 2)) * rng.normal(size=n) + table
    return table[0], table[1 : n_parents + 1], table[n_parents + 1 :]


def linear_profile(x, parents):
    table = np.column_stack([np.ones(len(x)), *parents])
    coefficients = np.linalg.lstsq(table, x, rcond=None)[0]
    theta = np.array([coefficients[0], 1.0, 0.0])
    eta = table[:, 1:] @ coefficients[1:]
    return ideal_profile(x, eta, Response(Linear(), Additive(), theta, 1.0))


@given(linear_families())
def test_c1_c2_and_the_gain_are_ordered(family):
    x, parents, candidates = family
    y = linear_profile(x, parents)
    n = len(x)
    weights = np.full(n, n / (y @ y))
    c1 = similarity_c1(y, candidates, weights)
    c2 = similarity_c2(y, candidates, weights, n)
    gains = np.array([gain(x, parents, z) for z in candidates])
    assert (c1 >= 0).all()
    assert (c1 <= c2 + 1e-9).all()
    assert (c2 <= gains + 1e-7).all()


@given(linear_families())
def test_c2_is_the_gain_of_candidates_orthogonal_to_the_parents(family):
    x, parents, candidates = family
    y = linear_profile(x, parents)
    table = np.column_stack([np.ones(len(x)), *parents])
    basis = np.linalg.qr(table)[0]
    candidates = candidates - candidates @ basis @ basis.T
    c2 = similarity_c2(y, candidates, np.ones(len(x)), len(x))
    gains = [gain(x, parents, z) for z in candidates]
    assert_allclose(c2, gains, atol=1e-7)


@given(linear_families(), st.floats(0.1, 10) | st.floats(-10, -0.1))
def test_the_most_similar_candidate_is_the_ideal_parent(family, factor):
    x, parents, candidates = family
    y = linear_profile(x, parents)
    c1 = similarity_c1(y, np.vstack([factor * y, candidates]), np.ones(len(x)))
    assert (c1[0] >= c1[1:] - 1e-9).all()


@given(seeds, st.sampled_from([Linear(), Sigmoid()]))
def test_profile_reproduces_the_child(seed, link):
    rng = np.random.default_rng(seed)
    theta = np.array([rng.normal(), rng.uniform(0.5, 4.0), rng.normal()])
    eta = rng.normal(size=30)
    x = link.value(rng.uniform(-5, 5, size=30) - theta[2], theta)
    y = ideal_profile(x, eta, Response(link, Additive(), theta, 1.0))
    assert_allclose(link.value(eta + y, theta), x, atol=1e-9)


@given(seeds)
def test_profile_maximises_the_likelihood_of_multiplicative_noise(seed):
    rng = np.random.default_rng(seed)
    theta = np.array([0.5, 4.0, 0.0])
    eta, variance = rng.normal(size=20), rng.uniform(0.01, 0.3)
    noise, link = Multiplicative(), Sigmoid()
    x = link.value(rng.uniform(-1, 2, size=20), theta)
    x = np.maximum(x, 1.0)  # so that the ideal mean is inside of the image
    y = ideal_profile(x, eta, Response(link, noise, theta, variance))
    best = noise.log_density(x, link.value(eta + y, theta), variance)
    for move in (-0.1, 0.1):
        other = noise.log_density(x, link.value(eta + y + move, theta), variance)
        assert (other <= best + 1e-12).all()


@given(linear_families())
def test_tangent_gains_are_exact_for_linear_families(family):
    x, parents, candidates = family
    X = np.vstack([x, parents, candidates]).T
    k = len(parents)
    fitter = FamilyFitter(X, Linear(), Additive(), tol=1e-10)
    order = tuple(range(1, k + 1))
    children, padded = fitter.pad([(0, order)])
    weights, theta, variance, _ = fitter.fit(children, padded)
    scan = TangentScan(fitter).scan(0, order, weights[0], theta[0], variance[0])
    add, replace = scan[0], scan[1:]
    gains = [gain(x, parents, z) for z in candidates]
    assert_allclose(add[k + 1 :], gains, rtol=1e-4, atol=1e-4)
    for place in range(k):
        others = np.delete(parents, place, axis=0)
        lost = -gain(x, others, parents[place])
        swapped = [lost + gain(x, others, z) for z in candidates]
        assert_allclose(replace[place, k + 1 :], swapped, rtol=1e-4, atol=1e-4)


@given(linear_families(), st.sampled_from(["C1", "C2", "C3"]))
def test_pruning_never_invents_a_score(family, similarity):
    """What a pruning evaluator scores, it scores as the exhaustive one."""
    x, parents, candidates = family
    X = np.vstack([x, parents, candidates]).T
    n = X.shape[1]
    allowed = np.ones((1, n), dtype=bool)
    allowed[0, : len(parents) + 1] = False
    families = [(0, tuple(range(1, len(parents) + 1)))]
    exact = NonlinearEvaluator(X, link="linear", n_candidates=None)
    pruned = NonlinearEvaluator(X, link="linear", n_candidates=2, similarity=similarity)
    scores, truth = (
        own.move_scores(families, allowed, np.zeros_like(allowed), [True])[0]
        for own in (pruned, exact)
    )
    found = np.isfinite(scores)
    assert_allclose(scores[found], truth[found], atol=1e-2)
    assert found[:, :-1].sum() <= 2
    assert pruned.n_evaluated <= exact.n_evaluated
    assert pruned.n_considered == exact.n_considered
