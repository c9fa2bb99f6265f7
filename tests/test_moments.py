from itertools import combinations

import numpy as np
import pytest
from exact_moments import every_set
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks, seeds

from sklearn_latent.noisy_or._statistics.moments import NegativeMoments, canonical_sets
from sklearn_latent.noisy_or._statistics.packed import PackedRows
from sklearn_latent.noisy_or._statistics.subsets import (
    MEMBERS,
    all_subsets,
    subset_variance,
)


def count(rows, sets, weights=None):
    return NegativeMoments.of(PackedRows.of(rows, weights=weights), sets)


def slow_count(rows, sets, weights=None):
    weights = np.ones(len(rows)) if weights is None else weights
    off = [((rows[:, s[s >= 0]] == 0).all(axis=1) * weights).sum() for s in sets]
    total = [
        ((~np.isnan(rows[:, s[s >= 0]].astype(float))).all(axis=1) * weights).sum()
        for s in sets
    ]
    return np.array(off), np.array(total)


def random_rows(seed, n_rows, n_features, missing=0.0):
    rng = np.random.default_rng(seed)
    rows = rng.random((n_rows, n_features)) < 0.3
    if missing:
        rows = np.where(rng.random(rows.shape) < missing, np.nan, rows)
    return rows


WEIGHTS = {
    "none": lambda rng, n: np.ones(n),
    "integers": lambda rng, n: rng.integers(0, 5, n) + 0.0,
    "halves": lambda rng, n: rng.integers(0, 5, n) / 2,
    "reals": lambda rng, n: rng.exponential(size=n),
    "thirds": lambda rng, n: np.full(n, 1 / 3),
}


@settings(max_examples=60, deadline=None)
@given(
    seeds,
    st.integers(2, 300),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from(list(WEIGHTS)),
)
def test_counts_are_those_of_loops(seed, n_rows, n_features, missing, kind):
    rng = np.random.default_rng(seed)
    rows = random_rows(seed, n_rows, n_features, missing)
    weights = WEIGHTS[kind](rng, n_rows)
    weights[[0, -1]] = 1.0
    sets = every_set(n_features, 4)
    moments = count(rows, sets, None if kind == "none" else weights)
    expected = slow_count(rows, sets, weights)
    cut = rng.integers(1, n_rows)
    halves = (slice(0, cut), slice(cut, None))
    parts = [count(rows[half], sets, weights[half]) for half in halves]
    for found in (moments, parts[0] + parts[1]):
        tolerance = 1e-12 if kind in ("reals", "thirds") else 0.0
        for one, two in zip((found.off, found.total), expected, strict=True):
            np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance)


def test_many_words_and_a_weight_of_two_is_a_row_twice():
    rows, sets = random_rows(1, 9_000, 12), every_set(12, 3)
    weights = np.random.default_rng(0).integers(1, 4, len(rows))
    weighted = count(rows, sets, weights.astype(float))
    repeated = np.repeat(rows, weights, axis=0)
    np.testing.assert_array_equal(weighted.off, slow_count(repeated, sets)[0])
    np.testing.assert_array_equal(weighted.off, count(repeated, sets).off)


def test_lookup_ignores_order_and_knows_what_is_missing():
    moments = count(random_rows(0, 30, 4), every_set(4, 2))
    np.testing.assert_array_equal(
        moments.index([[3, 1], [0, -1]]), moments.index([[1, 3], [-1, 0]])
    )
    np.testing.assert_array_equal(moments.sets[moments.index([[3, 1]])], [[1, 3]])
    few = count(random_rows(0, 30, 4), canonical_sets([[0, 1]], 4))
    with pytest.raises(ValueError, match="not counted"):
        few.index([[0, 2]])
    with pytest.raises(ValueError, match="same sets"):
        moments + few


def test_restriction_keeps_the_moments():
    moments = count(random_rows(0, 200, 6), every_set(6, 3))
    part = moments.restrict(np.array([1, 4, 5]))
    np.testing.assert_array_equal(part.sets, every_set(3, 3))
    assert part.off[part.index([[0, 1, 2]])] == moments.off[moments.index([[1, 4, 5]])]


def test_ratios_stay_finite():
    rows = np.array([[True, False], [True, False]])
    probability = count(rows, every_set(2, 2)).probability
    assert (probability > 0).all()
    assert (probability <= 1).all()
    unseen = count(np.full((2, 2), np.nan), every_set(2, 2))
    np.testing.assert_array_equal(unseen.probability, 0.5)


def test_too_many_features_for_the_order_are_refused():
    with pytest.raises(ValueError, match="fewer columns"):
        canonical_sets(np.zeros((1, 4), dtype=int), 10**5)


@settings(max_examples=20, deadline=None)
@given(networks(max_latents=3, max_features=5), seeds)
def test_subset_variance_is_the_variance_of_the_linear_combination(network, seed):
    """By definition, over the eight states of three features."""
    rng = np.random.default_rng(seed)
    sets = all_subsets(np.array([[0, 1, 2]]))[0]
    M = np.array([network.negative_moment(list(s[s >= 0])) for s in sets])
    gradient = rng.normal(size=(1, 2, 7))
    # P(exactly these off) by inclusion and exclusion over the rest.
    value = dict(zip([frozenset(np.flatnonzero(m)) for m in MEMBERS], M, strict=True))
    value[frozenset()] = 1.0
    expected = []
    for g in gradient[0]:
        mean = square = 0.0
        for off in value:
            rest = [f for f in range(3) if f not in off]
            chance = sum(
                (-1) ** size * value[off | frozenset(more)]
                for size in range(len(rest) + 1)
                for more in combinations(rest, size)
            )
            h = sum(
                g[k] for k, m in enumerate(MEMBERS) if set(np.flatnonzero(m)) <= off
            )
            mean += chance * h
            square += chance * h**2
        expected.append(square - mean**2)
    np.testing.assert_allclose(
        subset_variance(M[None], gradient)[0], expected, rtol=1e-9, atol=1e-12
    )
