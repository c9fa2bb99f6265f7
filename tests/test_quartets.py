"""Counts on demand, quartet tests, extension, and depths of structures."""

from itertools import combinations

import numpy as np
import pytest
from exact_moments import ExactMoments
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import seeds, structures

from sklearn_latent import NoisyOrNetwork
from sklearn_latent.datasets import image_sources
from sklearn_latent.noisy_or import _coupled_sets as coupling
from sklearn_latent.noisy_or import _quartets as quartets
from sklearn_latent.noisy_or import quartet_depth
from sklearn_latent.noisy_or._quartets import (
    conditional_prior,
    extend,
    latent_of_quartet,
)
from sklearn_latent.noisy_or._statistics.moments import Residual
from sklearn_latent.noisy_or._statistics.patterns import Patterns
from sklearn_latent.noisy_or._statistics.rows import BlockMoments

SINGLE = NoisyOrNetwork([0.3], [[0.1, 0.2, 0.4, 0.6, 0.5, 1.0]], [0.05] * 6)
DOUBLE = NoisyOrNetwork(
    [0.3, 0.4], [[0.1, 0.2, 0.4, 0.6], [0.3, 0.5, 0.2, 1.0]], [0.05] * 4
)


def whole(source):
    """Nothing subtracted."""
    return Residual(source, np.zeros(0), np.ones((0, source.n_features)))


def moments_of(source, sets):
    residual = whole(source)
    pairs = coupling.pair_moments(source)
    return coupling.subset_moments(
        residual, np.atleast_2d(sets), pairs, quartets.SUBSETS
    )


@settings(max_examples=50, deadline=None)
@given(
    seed=seeds,
    size=st.integers(1, 4),
    missing=st.booleans(),
    weighted=st.sampled_from(["none", "integer", "real"]),
    n_jobs=st.sampled_from([None, 2]),
)
def test_counts_agree_with_plain_means(seed, size, missing, weighted, n_jobs):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (300, 6)).astype(float)
    if missing:
        X[rng.random(X.shape) < 0.3] = np.nan
    weights = {
        "none": np.ones(300),
        "integer": rng.integers(0, 5, 300).astype(float),
        "real": rng.uniform(0.1, 3.0, 300),
    }[weighted]
    sets = np.array(list(combinations(range(6), size)))
    rng.shuffle(sets)
    source = BlockMoments.of_patterns(Patterns.of(X, weights), n_jobs)
    known = ~np.isnan(X[:, sets]).any(axis=2)
    off = (X[:, sets] == 0).all(axis=2)
    np.testing.assert_allclose(source.known_rows(sets), weights @ known, rtol=1e-12)
    # A set that is never off counts as half a row.
    seen = np.where((weights @ off) > 0, weights @ off, 0.5)
    np.testing.assert_allclose(
        source.probability(sets), seen / (weights @ known), rtol=1e-12
    )


def test_subtracting_a_latent_leaves_the_other():
    residual = Residual(ExactMoments(DOUBLE), DOUBLE.prior[:1], DOUBLE.failure[:1])
    other = NoisyOrNetwork(DOUBLE.prior[1:], DOUBLE.failure[1:], DOUBLE.leak)
    sets = np.array(list(combinations(range(4), 3)))
    np.testing.assert_allclose(residual.probability(sets), other.negative_moment(sets))


def test_rank_test_tells_one_latent_from_two():
    _, single = moments_of(ExactMoments(SINGLE), [0, 1, 2, 3])
    _, double = moments_of(ExactMoments(DOUBLE), [0, 1, 2, 3])
    assert quartets.third_singular_value(single)[0] < 1e-15
    assert quartets.third_singular_value(double)[0] > 1e-3


def test_third_singular_value_is_that_of_the_joint_table():
    X, _ = DOUBLE.sample(500, random_state=0)
    table = np.zeros((2, 2, 2, 2))
    np.add.at(table, tuple(X.T), 1 / len(X))
    values = [
        np.linalg.svd(table.transpose(order).reshape(4, 4), compute_uv=False)[2]
        for order in ([0, 1, 2, 3], [0, 2, 1, 3], [0, 3, 1, 2])
    ]
    _, moments = moments_of(BlockMoments.of_patterns(Patterns.of(X)), [0, 1, 2, 3])
    np.testing.assert_allclose(quartets.third_singular_value(moments), max(values))


def test_rank_test_keeps_its_level():
    """Singly coupled quartets are rejected about one time in a hundred."""
    rejected = []
    for seed in range(300):
        X, _ = SINGLE.sample(2000, random_state=seed)
        sets = list(combinations(range(5), 4))
        raw, moments = moments_of(BlockMoments.of_patterns(Patterns.of(X)), sets)
        rejected.append(quartets.rank_test(raw, moments, 2000) > 1)
    assert np.mean(rejected) < 0.025


def test_rank_test_has_power():
    X, _ = DOUBLE.sample(20_000, random_state=0)
    raw, moments = moments_of(BlockMoments.of_patterns(Patterns.of(X)), [0, 1, 2, 3])
    assert quartets.rank_test(raw, moments, 20_000)[0] > 2


def test_coherence_needs_the_reconstruction():
    """Equal failures: all triplets agree, and only Lemma 1 shows the second latent."""
    equal = NoisyOrNetwork([0.3, 0.3], np.full((2, 4), 0.2), [0.0] * 4)
    _, moments = moments_of(ExactMoments(equal), [0, 1, 2, 3])
    variance, error = quartets.coherence_test(moments)
    assert variance[0] < 1e-20
    assert error[0] > 1e-3
    _, moments = moments_of(ExactMoments(SINGLE), [0, 1, 2, 3])
    variance, error = quartets.coherence_test(moments)
    assert variance[0] < 1e-20
    assert error[0] < 1e-12


@pytest.mark.parametrize("threshold", ["auto", 1e-4])
def test_coupled_triplets_share_a_parent(threshold):
    source = ExactMoments(SINGLE)
    pairs = coupling.pair_moments(source)
    found = coupling.coupled_triplets(whole(source), pairs, threshold)
    expected = np.array(list(combinations(range(5), 3)))
    np.testing.assert_array_equal(found.sets, expected)


def test_pretest_is_the_difference_of_mutual_informations():
    source = ExactMoments(DOUBLE)
    pairs = coupling.pair_moments(source)
    _, M = coupling.subset_moments(whole(source), np.array([[0, 1, 2]]), pairs)
    a, b, x, ab, ax, bx, abx = M[0]
    differences = [
        ab / (a * b) - abx * x / (ax * bx),
        ax / (a * x) - abx * b / (ab * bx),
        bx / (b * x) - abx * a / (ab * ax),
    ]
    np.testing.assert_allclose(coupling._least_excess(M), min(differences))


@settings(max_examples=50, deadline=None)
@given(seed=seeds, n_features=st.integers(3, 9), share=st.floats(0.2, 1.0))
def test_join_finds_the_cliques(seed, n_features, share):
    rng = np.random.default_rng(seed)
    sets = np.array(list(combinations(range(n_features), 3)))
    sets = sets[rng.random(len(sets)) < share]
    family = coupling.Triplets(sets, np.ones(len(sets)))
    members = set(map(tuple, sets))
    expected = [
        four
        for four in combinations(range(n_features), 4)
        if all(three in members for three in combinations(four, 3))
    ]
    found = coupling.join_sets(family, n_features, 10**6)
    assert [tuple(row) for row in found] == expected


def test_join_keeps_the_strongest_when_there_are_too_many():
    sets = np.array(list(combinations(range(12), 3)))
    strong = (sets < 5).all(axis=1)
    family = coupling.Triplets(sets, np.where(strong, 9.0, 1.0))
    found = coupling.join_sets(family, 12, 20)
    assert 0 < len(found) <= 20
    assert (found < 5).all()


def test_discovery_threshold_is_benjamini_hochberg():
    rng = np.random.default_rng(0)
    z = np.abs(rng.normal(size=1000))
    assert coupling.discovery_threshold(z, 0.001) == np.inf
    with_signal = np.concatenate([z, np.full(100, 6.0)])
    threshold = coupling.discovery_threshold(with_signal, 0.05)
    assert (with_signal >= threshold).sum() in range(100, 110)
    assert coupling.discovery_threshold(np.zeros(0), 0.05) == np.inf


@settings(max_examples=100, deadline=None)
@given(
    prior=st.floats(0.05, 0.9),
    fa=st.floats(0.05, 0.9),
    fb=st.floats(0.05, 0.9),
    fx=st.floats(0.05, 0.95),
)
def test_one_root_is_the_conditional_prior(prior, fa, fb, fx):
    given_off = prior * fx / (1 - prior + prior * fx)
    ratio = (1 - given_off + given_off * fa * fb) / (
        (1 - given_off + given_off * fa) * (1 - given_off + given_off * fb)
    )
    smaller, larger = conditional_prior(
        np.array([ratio]), np.array([fa]), np.array([fb]), prior
    )
    root = smaller if given_off <= 1 / (1 + np.sqrt(fa * fb)) else larger
    # The two roots meet where the mutual information is largest.
    np.testing.assert_allclose(root, given_off, atol=1e-6)


def test_mixture_and_extend_on_exact_moments():
    source = ExactMoments(SINGLE)
    _, moments = moments_of(source, [0, 1, 2, 3])
    prior, failure, valid = latent_of_quartet(moments[0])
    assert valid
    assert prior == pytest.approx(0.3)
    np.testing.assert_allclose(failure, SINGLE.failure[0, :4])
    pairs = coupling.pair_moments(source)
    row = extend(whole(source), pairs, np.arange(4), prior, failure, "auto")
    np.testing.assert_allclose(row, SINGLE.failure[0], atol=1e-6)
    # Of independent features there is none.
    nothing = NoisyOrNetwork(np.zeros(0), np.ones((0, 4)), [0.1, 0.2, 0.3, 0.4])
    _, moments = moments_of(ExactMoments(nothing), [0, 1, 2, 3])
    assert not latent_of_quartet(moments[0])[2]


def plain_depth(structure):
    """Quartet depth by looking at every quartet."""
    depth = np.full(len(structure), np.inf)
    for number in range(len(structure) + 1):
        left = structure[np.isinf(depth)]
        found = []
        for latent in np.flatnonzero(np.isinf(depth)):
            children = np.flatnonzero(structure[latent])
            found += [
                latent
                for four in combinations(children, 4)
                if (left[:, four].sum(axis=1) >= 2).sum() == 1
            ][:1]
        if not found:
            break
        depth[found] = number
    return depth


@settings(max_examples=100, deadline=None)
@given(structures(max_latents=4, max_features=9))
def test_quartet_depth_agrees_with_enumeration(structure):
    np.testing.assert_array_equal(quartet_depth(structure), plain_depth(structure))


def test_quartet_depth_of_the_images():
    depth = quartet_depth(image_sources())
    # "the first and last of the sources can only be learned after a subtraction step"
    np.testing.assert_array_equal(depth, [1, 0, 0, 0, 0, 0, 0, 1])


def test_quartet_depth_refuses_what_is_no_structure():
    with pytest.raises(ValueError, match="structure must"):
        quartet_depth([[0.5, 1.0]])
    assert quartet_depth(np.zeros((0, 5), dtype=bool)).shape == (0,)
