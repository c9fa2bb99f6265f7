"""Rows in blocks, on one machine or many: the same model."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.base import clone

from sklearn_latent import (
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent._tables.blocks import LocalBlocks
from sklearn_latent.exceptions import LatentWarning, PoorDataWarning
from sklearn_latent.noisy_or._statistics import rows as _rows
from sklearn_latent.noisy_or._statistics.packed import PackedRows
from sklearn_latent.noisy_or._statistics.patterns import Patterns
from sklearn_latent.noisy_or._statistics.rows import BlockMoments, append_blocks

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

STRUCTURE = np.kron(np.eye(3, dtype=bool), np.ones((1, 5), dtype=bool))
STRUCTURE[0, 5] = STRUCTURE[1, 10] = True


def make_rows(n_rows=3000, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    failure = np.where(STRUCTURE, rng.uniform(0.1, 0.4, STRUCTURE.shape), 1.0)
    network = NoisyOrNetwork([0.3, 0.25, 0.35], failure, np.full(15, 0.05))
    X = network.sample(n_rows, random_state=seed)[0].astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def learners():
    return [
        NoisyOrMoMLearner(STRUCTURE),
        QuartetStructureLearner(),
        QuartetStructureLearner(refine=False),
    ]


def name_of(learner):
    return f"{type(learner).__name__}-{learner.refine}"


def assert_identical(one, two):
    # Counts are the same to the last bit; products of matrices may round differently,
    # since where an array starts in memory decides how it is summed.
    np.testing.assert_array_equal(one.network_.structure, two.network_.structure)
    for name in ("prior_", "failure_", "leak_", "prior_stderr_", "failure_stderr_"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(two, name), rtol=0, atol=1e-10
        )


@pytest.fixture(params=learners(), ids=name_of)
def learner(request):
    return clone(request.param)


@pytest.fixture(params=["all distinct rows", "a sample of rows"])
def few_or_many_rows(request, monkeypatch):
    """The search sees all rows, or only 500 of them."""
    if request.param == "a sample of rows":
        monkeypatch.setattr(_rows, "KEPT_ROWS", (500, 500))
    return request.param


@pytest.mark.usefixtures("few_or_many_rows")
@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_blocks_batches_and_memory_agree(learner, missing):
    X = make_rows(missing=missing)
    whole = clone(learner).fit(X)
    in_blocks = clone(learner)
    in_blocks.fit(da.from_array(X, chunks=(700, 4)))
    assert_identical(whole, in_blocks)
    assert_identical(whole, clone(learner).fit(iter(np.array_split(X, 7))))
    for start in range(0, len(X), 900):
        batch = X[start : start + 900]
        learner.partial_fit(batch, update=start + 900 >= len(X))
    assert_identical(whole, learner)


@pytest.mark.usefixtures("few_or_many_rows")
def test_weights(learner):
    X = make_rows()
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    other = clone(learner)
    learner.fit(X, sample_weight=weights)
    blocks = da.from_array(X, chunks=(512, 15))
    for given_weights in (weights, da.from_array(weights, chunks=100)):
        assert_identical(learner, other.fit(blocks, sample_weight=given_weights))
    repeated = np.repeat(X, weights, axis=0)
    assert_identical(learner, other.fit(da.from_array(repeated, chunks=(999, 15))))


def test_frames_with_empty_partitions(learner):
    frame = pd.DataFrame(make_rows(), columns=[f"f{i}" for i in range(15)])
    frame["key"] = np.arange(len(frame))
    # The filter leaves the first partition and the last one empty.
    blocks = dd.from_pandas(frame, npartitions=6)
    blocks = blocks[(blocks["key"] >= 600) & (blocks["key"] < 2500)].drop(columns="key")
    learner.fit(blocks)
    assert learner.feature_names_in_.tolist() == [f"f{i}" for i in range(15)]
    other = clone(learner)
    assert_identical(learner, other.fit(frame.iloc[600:2500].drop(columns="key")))
    with pytest.raises(ValueError, match="sample_weight must be None"):
        learner.fit(blocks, sample_weight=np.ones(len(frame)))
    with pytest.raises(ValueError, match="at least one row"):
        learner.fit(blocks[blocks["f0"] > 7])


def test_sparse_blocks_and_unknown_sizes(learner):
    X = make_rows()
    other = clone(learner)
    learner.fit(X)
    blocks = da.from_array(X, chunks=(1000, 15))
    assert_identical(learner, other.fit(blocks.map_blocks(sparse.csr_matrix)))
    unknown = blocks[blocks[:, 0] >= 0]
    assert np.isnan(unknown.shape[0])
    assert_identical(learner, other.fit(unknown))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        other.fit(unknown, sample_weight=np.ones(len(X)))
    with pytest.raises(ValueError, match="two dimensions"):
        other.fit(da.zeros(10))


def test_values_are_checked_on_the_workers():
    X = make_rows(100)
    X[70, 3] = 2.0
    blocks = da.from_array(X, chunks=(30, 15))
    for learner in (NoisyOrMoMLearner(binarize=None), QuartetStructureLearner()):
        learner.set_params(binarize=None)
        with pytest.raises(ValueError, match="only 0 and 1"):
            learner.fit(blocks)
        assert not hasattr(learner, "network_")


def test_batches_after_fit():
    X = make_rows()
    whole = QuartetStructureLearner(refine=False).fit(X)
    learner = QuartetStructureLearner(refine=False)
    for rows in (X, da.from_array(X, chunks=(1000, 15))):
        learner.fit(rows)
        assert len(pickle.dumps(learner)) < X.size / 8
        with pytest.warns(PoorDataWarning, match="begins anew"):
            learner.partial_fit(X)
        assert_identical(whole, learner)
    with pytest.raises(TypeError, match="must be in memory"):
        QuartetStructureLearner().partial_fit(da.zeros((5, 4)))


def test_many_small_batches_become_few_blocks():
    X = make_rows(1000)
    learner = QuartetStructureLearner(refine=False)
    for row in np.split(X, 250):
        learner.partial_fit(row, update=False)
    assert len(learner._blocks) <= 10
    learner.partial_fit(X[:4])
    whole = QuartetStructureLearner(refine=False).fit(np.vstack([X, X[:4]]))
    assert_identical(whole, learner)


@pytest.mark.parametrize("inference", ["exact", "variational"])
def test_em_of_blocks_and_batches(inference):
    X = make_rows(1000, missing=0.02)
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    model = NoisyOrEM(structure=STRUCTURE, inference=inference, random_state=0)
    whole = clone(model).fit(X)
    for data in (iter(np.array_split(X, 7)), da.from_array(X, chunks=(300, 4))):
        other = clone(model).fit(data)
        np.testing.assert_allclose(other.failure_, whole.failure_, atol=1e-10)
        assert other.bic_ == pytest.approx(whole.bic_)
    weighted = clone(model).fit(X, sample_weight=weights)
    blocks = da.from_array(X, chunks=(300, 15))
    model.fit(blocks, sample_weight=weights)
    np.testing.assert_allclose(model.failure_, weighted.failure_, atol=1e-10)
    with pytest.raises(ValueError, match="at least one row"):
        model.fit(da.zeros((0, 15)))


@pytest.mark.parametrize(
    "learner", [*learners(), NoisyOrEM(structure=STRUCTURE)], ids=str
)
def test_iterators(learner):
    X = make_rows(500)
    with pytest.raises(ValueError, match="at least one batch"):
        learner.fit(iter([]))
    with pytest.raises(ValueError, match="sample_weight must be None"):
        learner.fit(iter([X]), sample_weight=np.ones(500))
    with pytest.raises(ValueError, match="15 features"):
        learner.fit(iter([X, X[:, :4]]))
    assert not hasattr(learner, "n_features_in_")


def test_a_sample_of_rows_estimates_the_likelihood(monkeypatch):
    X = make_rows(3000)
    whole = QuartetStructureLearner().fit(X)
    assert whole.is_exact_
    monkeypatch.setattr(_rows, "KEPT_ROWS", (500, 500))
    few = QuartetStructureLearner().fit(X)
    assert not few.is_exact_
    assert few.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=0.05)
    assert few.log_likelihood_ != whole.log_likelihood_


rows_and_cuts = hnp.arrays(
    float,
    st.tuples(st.integers(1, 200), st.integers(1, 5)),
    elements=st.sampled_from([0.0, 1.0, np.nan]),
).flatmap(
    lambda rows: st.tuples(
        st.just(rows), st.lists(st.integers(0, len(rows)), max_size=3).map(sorted)
    )
)


@settings(deadline=None, max_examples=50)
@given(rows_and_cuts, st.integers(1, 3), st.booleans())
def test_counts_do_not_depend_on_blocks(rows_and_cuts, size, weighted):
    rows, cuts = rows_and_cuts
    weights = np.arange(len(rows)) % 3 + 1.0 if weighted else None
    pieces = [piece for piece in np.split(np.arange(len(rows)), cuts) if len(piece)]
    blocks = LocalBlocks(
        [
            PackedRows.of(
                rows[piece], weights=None if weights is None else weights[piece]
            )
            for piece in pieces
        ]
    )
    sets = np.sort(np.random.default_rng(0).integers(0, rows.shape[1], (7, size)))
    whole = BlockMoments.of_patterns(Patterns.of(rows, weights))
    split = BlockMoments(blocks)
    np.testing.assert_array_equal(whole.probability(sets), split.probability(sets))
    np.testing.assert_array_equal(whole.known_rows(sets), split.known_rows(sets))
    joined = append_blocks([], blocks.parts)
    assert len(joined) <= len(blocks.parts)
    np.testing.assert_array_equal(
        split.probability(sets), BlockMoments(LocalBlocks(joined)).probability(sets)
    )


@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.LatentWarning")
def test_last_steps_see_all_rows(monkeypatch):
    """A search on a sample ends with steps over all blocks, however they are cut."""
    from sklearn_latent.noisy_or import _refine_causes as _refine_structure

    monkeypatch.setattr(_rows, "KEPT_ROWS", (400, 400))
    monkeypatch.setattr(_rows, "KEPT_VALUES", 0)
    monkeypatch.setattr(_refine_structure, "MOST_ROWS", 200)
    X = make_rows()
    few = QuartetStructureLearner(random_state=0).fit(X)
    collection = da.from_array(X, chunks=(800, 15))
    blocks = QuartetStructureLearner(random_state=0).fit(collection)
    np.testing.assert_array_equal(few.structure_, blocks.structure_)
    np.testing.assert_allclose(few.failure_, blocks.failure_, atol=1e-9)
    monkeypatch.setattr(_refine_structure, "POLISHING_STEPS", 0)
    sample = QuartetStructureLearner(random_state=0).fit(X)
    assert few.score(X) > sample.score(X)


def test_latent_warning_is_for_users():
    with (
        pytest.warns(LatentWarning, match="No latent"),
        pytest.warns(LatentWarning, match="columns x0, x1, x2, x3, x4 are never on"),
    ):
        QuartetStructureLearner().fit(da.zeros((50, 5), chunks=(20, 5)))
