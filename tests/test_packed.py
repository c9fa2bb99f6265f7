import numpy as np
import pytest
from brute_force import FIGURE_1
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from strategies import seeds

from sklearn_latent import NoisyOrEM, NoisyOrMoMLearner, QuartetStructureLearner
from sklearn_latent.datasets import make_noisy_or
from sklearn_latent.noisy_or._statistics import packed as _packed
from sklearn_latent.noisy_or._statistics.packed import (
    PackedRows,
    binarize_rows,
    pack_columns,
)
from sklearn_latent.noisy_or._statistics.patterns import Patterns

SHAPES = st.tuples(st.integers(1, 200), st.integers(0, 20) | st.integers(60, 70))


def sparse_rows(seed, shape):
    """Dense rows of a few values, and the same with explicit zeros."""
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, 0.0, 0.0, 0.4, 1.0, 3.0, -1.0], size=shape)
    thin = sparse.csr_array(X)
    thin.data[thin.data == -1.0] = 0.0
    return np.maximum(X, 0.0), thin


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 200), st.integers(0, 5))
def test_packing_keeps_every_bit(n_rows, n_columns):
    rows = np.random.default_rng(n_rows).random((n_rows, n_columns)) < 0.5
    words = pack_columns(rows)
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    np.testing.assert_array_equal(bits[:, :n_rows], rows.T)
    assert not bits[:, n_rows:].any()


def assert_equal(one, two):
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=40, deadline=None)
@given(seeds, SHAPES, st.sampled_from([0.0, 0.5, 2.0]))
def test_sparse_rows_are_the_same_bits(seed, shape, threshold):
    X, thin = sparse_rows(seed, shape)
    rows = binarize_rows(thin, threshold)
    assert sparse.issparse(rows)
    assert rows.data.all()
    np.testing.assert_array_equal(rows.toarray(), threshold < X)
    for weights in (None, np.random.default_rng(seed).integers(0, 3, shape[0]) * 0.5):
        assert_equal(
            PackedRows.of(thin, threshold, weights),
            PackedRows.of(X, threshold, weights),
        )


@settings(max_examples=60, deadline=None)
@given(seeds, SHAPES, st.booleans(), st.booleans())
def test_packed_rows_come_back_joined_chosen_and_as_patterns(
    seed, shape, missing, weighted
):
    rng = np.random.default_rng(seed)
    rows = (rng.random(shape) < 0.3).astype(float)
    if missing:
        rows[rng.random(shape) < 0.2] = np.nan
    weights = rng.integers(0, 3, len(rows)) * 0.5 if weighted else None
    some = rng.permutation(shape[1])[: shape[1] // 2]
    packed = PackedRows.of(rows, weights=weights)
    assert_equal(packed.patterns(), Patterns.of(rows, weights))
    assert_equal(packed.patterns(some), Patterns.of(rows[:, some], weights))
    if weighted:
        weights = rng.integers(1, 3, len(rows)) * 0.5
        packed = PackedRows.of(rows, weights=weights)
    every = np.ones(len(rows)) if weights is None else weights
    for chosen in (None, rng.permutation(len(rows))[:3]):
        found, of = packed.unpack(chosen), slice(None) if chosen is None else chosen
        np.testing.assert_array_equal(found.on, rows[of] == 1)
        np.testing.assert_array_equal(found.known, ~np.isnan(rows[of]))
        np.testing.assert_array_equal(found.weights, every[of])
    if len(rows) > 1:
        cut = rng.integers(1, len(rows))
        one, two = (
            PackedRows.of(
                rows[part], weights=None if weights is None else weights[part]
            )
            for part in (slice(0, cut), slice(cut, None))
        )
        assert_equal(one.join(two), packed)


def test_many_rows_are_packed_in_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((3_000, 70))
    X[1_000:1_100][rng.random((100, 70)) < 0.5] = np.nan
    whole = PackedRows.of(binarize_rows(X, 0.5))
    monkeypatch.setattr(_packed, "VALUES_AT_A_TIME", 1)
    assert_equal(PackedRows.of(X, 0.5), whole)
    monkeypatch.setattr(_packed, "VALUES_AT_A_TIME", 2**30)
    assert_equal(PackedRows.of(X, 0.5), whole)


def test_missing_values_may_be_stored():
    X = np.array([[0.0, np.nan, 2.0], [0.0, 0.0, 0.0]])
    rows = binarize_rows(sparse.csr_array(X), 0.0)
    np.testing.assert_array_equal(rows, [[0.0, np.nan, 1.0], [0.0, 0.0, 0.0]])


def test_values_stored_twice_add_up_and_stay():
    X = make_noisy_or(FIGURE_1, 500, random_state=0).X.astype(float)
    thin = sparse.csr_array(X)
    # Twice 0.3 is above the threshold, once is not.
    parts = np.full(2 * thin.nnz, 0.3), np.repeat(thin.indices, 2), 2 * thin.indptr
    twice = sparse.csr_array(parts, X.shape)
    one, two = (NoisyOrMoMLearner(FIGURE_1, binarize=0.5).fit(A) for A in (twice, X))
    np.testing.assert_array_equal(one.failure_, two.failure_)
    np.testing.assert_array_equal(twice.data, 0.3)
    assert twice.nnz == 2 * thin.nnz


LEARNERS = [
    NoisyOrMoMLearner(FIGURE_1),
    NoisyOrMoMLearner(FIGURE_1, refine=False),
    QuartetStructureLearner(),
    NoisyOrEM(structure=FIGURE_1, random_state=0),
]


@pytest.mark.parametrize(
    "learner", LEARNERS, ids=lambda learner: type(learner).__name__
)
def test_learning_never_makes_sparse_rows_dense(learner, monkeypatch):
    X = make_noisy_or(FIGURE_1, 3_000, random_state=0).X
    weights = np.arange(len(X)) % 3.0
    dense = learner.fit(X, sample_weight=weights).network_
    thin = sparse.csr_array(X, dtype=float)

    def refuse(*args, **kwargs):
        raise AssertionError("the rows were made dense")

    for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array):
        monkeypatch.setattr(kind, "toarray", refuse)
    again = learner.fit(thin, sample_weight=weights).network_
    np.testing.assert_array_equal(again.failure, dense.failure)
    np.testing.assert_array_equal(again.prior, dense.prior)
    # Rows without weight must be valid, too.
    X = np.eye(5)[:4]
    X[3] = 3.0
    model = clone(learner).set_params(binarize=None)
    with pytest.raises(ValueError, match="X must hold only 0 and 1"):
        model.fit(X, sample_weight=[1.0, 1.0, 1.0, 0.0])
