"""Latent class models, alone and in pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import seeds

from sklearn_latent.mixed._hidden_classes import (
    Rows,
    fit_classes,
    fit_pair,
    grow_classes,
)
from sklearn_latent.mixed._mutual_information import (
    design_effect,
    mutual_information,
    pair_counts,
)


def draw_classes(n, n_features, n_classes, seed, reliability=0.8):
    rng = np.random.default_rng(seed)
    z = rng.integers(n_classes, size=n)
    noise = rng.integers(n_classes, size=(n, n_features))
    keep = rng.random((n, n_features)) < reliability
    return np.where(keep, z[:, None], noise), z


def rows_of(codes, n_categories, weights=None):
    weights = np.ones(len(codes)) if weights is None else weights
    return Rows.of(codes, weights, np.full(codes.shape[1], n_categories))


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_rows_merge_duplicates(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 3, size=(30, 4))
    weights = rng.integers(1, 4, size=30).astype(float)
    merged = rows_of(codes, 3, weights)
    repeated = rows_of(np.repeat(codes, weights.astype(int), axis=0), 3)
    assert np.array_equal(merged.codes, repeated.codes)
    assert np.allclose(merged.weights, repeated.weights)
    assert len(np.unique(merged.codes, axis=0)) == len(merged.codes)


def test_log_likelihood_is_that_of_the_mixture():
    codes, _ = draw_classes(400, 3, 3, 0)
    codes[::7, 1] = -1
    rows = rows_of(codes, 3)
    model = fit_classes(rows, 2, random_state=np.random.RandomState(0))
    total = 0.0
    tables = model.tables()
    for row in codes:
        likelihood = model.joint.copy()
        for value, table in zip(row, tables, strict=True):
            if value >= 0:
                likelihood = likelihood * table[:, value]
        total += np.log(likelihood.sum())
    assert model.log_likelihood == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_bic_finds_the_number_of_classes(n_classes):
    codes, _ = draw_classes(3000, 4, n_classes, 1)
    rows = rows_of(codes, n_classes)
    found = grow_classes(rows, 6, random_state=np.random.RandomState(0))
    best = found.best
    assert best.n_classes == n_classes
    # One fall of BIC is enough, once several classes beat one.
    assert len(found.fits) == n_classes + 1
    for table in best.tables():
        assert np.allclose(table.sum(axis=1), 1.0)


def test_pair_beats_one_class_for_two_latents_only():
    first, _ = draw_classes(2000, 3, 3, 2)
    second, _ = draw_classes(2000, 3, 3, 3)
    rows = rows_of(np.hstack([first, second]), 3)
    in_first = np.arange(6) < 3
    state = np.random.RandomState(0)
    tables = [
        fit_classes(rows.of_features(range(3)), 3, random_state=state).emission[0],
        fit_classes(rows.of_features(range(3, 6)), 3, random_state=state).emission[0],
    ]
    pair = fit_pair(rows, in_first, *tables)
    one = grow_classes(rows, 6, random_state=state).best
    assert pair.bic > one.bic
    assert np.allclose(pair.joint, 1 / 9, atol=0.05)
    codes, _ = draw_classes(2000, 6, 3, 4)
    rows = rows_of(codes, 3)
    pair = fit_pair(rows, in_first, *tables)
    one = grow_classes(rows, 6, random_state=state).best
    assert one.bic > pair.bic


@given(seeds, st.integers(2, 4))
@settings(max_examples=20, deadline=None)
def test_mutual_information_of_one_table(seed, width):
    rng = np.random.default_rng(seed)
    codes = rng.integers(width, size=(50, 2))
    rows = rows_of(codes, width)
    counts = pair_counts(rows.one_hot, rows.weights)
    information, normalized, totals = mutual_information(counts, rows.n_categories)
    joint = np.zeros((width, width))
    np.add.at(joint, tuple(codes.T), 1 / 50)
    outer = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    seen = joint > 0
    expected = (joint[seen] * np.log(joint[seen] / outer[seen])).sum()
    assert information[0, 1] == pytest.approx(max(expected, 0), abs=1e-9)
    assert 0 <= normalized[0, 1] <= 1
    assert totals[0, 1] == 50


def test_counts_add_up():
    codes, _ = draw_classes(100, 3, 3, 5)
    halves = [rows_of(codes[:40], 3), rows_of(codes[40:], 3)]
    whole = rows_of(codes, 3)
    parts = sum(pair_counts(h.one_hot, h.weights) for h in halves)
    assert np.allclose(parts, pair_counts(whole.one_hot, whole.weights))


def test_design_effect_of_constant_and_fresh_features():
    rng = np.random.default_rng(0)
    constant = np.repeat(rng.integers(2, size=(500, 1, 2)), 5, axis=1)
    fresh = rng.integers(2, size=(500, 5, 2))
    assert np.allclose(design_effect(constant, np.ones(500)), 5.0, atol=1e-6)
    assert np.all(design_effect(fresh, np.ones(500)) < 1.05)


def test_features_of_which_nothing_is_known():
    codes = np.array([[0, -1, 1], [1, -1, 0], [1, -1, -1]])
    rows = Rows.of(codes, np.ones(3), np.array([2, 1, 2]))
    for random_state in (None, 0):
        model = fit_classes(rows, 2, random_state=random_state)
        assert np.isfinite(model.log_likelihood)
    nothing = Rows.of(np.full((3, 2), -1), np.ones(3), np.array([2, 3]))
    model = fit_classes(nothing, 2)
    assert model.log_likelihood == 0
    assert np.allclose(model.emission[0].sum(axis=1), 2)


def test_a_sample_of_rows_is_representative():
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=(5000, 4))
    rows = Rows.of(codes, np.ones(5000), [3] * 4)
    thin = rows.thinned(600)
    assert thin.total == 600
    np.testing.assert_allclose(thin.marginals, rows.marginals, atol=0.05)
    # Weights are rows, and rows that are few enough stay as they are.
    twice = Rows.of(codes, np.full(5000, 2.0), [3] * 4).thinned(600)
    np.testing.assert_array_equal(twice.weights, thin.weights)
    assert rows.thinned(5000) is rows
