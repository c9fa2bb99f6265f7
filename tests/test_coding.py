"""Words of binary columns: the same coding everywhere, and the words come back."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent._tables.words import (
    PAIR_OF,
    PAIRS,
    coding_of,
    decode,
    find_levels,
    learn_coding,
    merge_levels,
)
from sklearn_latent.mixed import SEMDBN

dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")

NAMES = list("abcdef")
STRUCTURE = np.kron(np.eye(2, dtype=bool), np.ones((1, 3), dtype=bool))
NETWORK = NoisyOrNetwork([0.4, 0.3], np.where(STRUCTURE, 0.2, 1.0), [0.05] * 6)
FLAGS = pd.DataFrame(
    NETWORK.sample(200, random_state=0)[0].astype(float), columns=NAMES
)
NOISY_OR = [
    NoisyOrMoMLearner(STRUCTURE, refine=False),
    NoisyOrEM(2, max_iter=10, tol=1e-3, random_state=0),
    QuartetStructureLearner(refine=False, random_state=0),
]
OTHERS = [
    IdealParentGaussianBN(margins="normal", max_parents=1),
    LPCC(max_iter=3, random_state=0),
    LGLPCCTemporal(2, max_iter=3, random_state=0),
    SEMDBN(1, 2, 2, n_init=1, max_rounds=1, max_iter=3, random_state=0),
]
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.LatentWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


def name_of(estimator):
    return type(estimator).__name__


EACH = pytest.mark.parametrize("model", NOISY_OR, ids=name_of)


def words(frame=FLAGS, on="yes", off="no"):
    text = frame.astype(object).where(frame != 1, on).where(frame != 0, off)
    return text.where(frame.notna(), None)


def gappy():
    gaps = np.random.default_rng(1).random(FLAGS.shape) < 0.1
    return FLAGS.mask(gaps)


def same(one, two):
    np.testing.assert_allclose(one.failure_, two.failure_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.prior_, two.prior_, rtol=0, atol=1e-10)


def partitions(frames):
    """A Dask data frame of given partitions."""
    delayed = [dd.from_pandas(frame, 1).to_delayed()[0] for frame in frames]
    return dd.from_delayed(delayed, meta=frames[0], verify_meta=False)


def test_a_word_is_in_one_pair():
    assert len(PAIR_OF) == 2 * len(PAIRS)


@EACH
class TestEstimators:
    def test_on_values(self, model):
        with pytest.raises(NotFittedError):
            _ = clone(model).on_values_
        X = FLAGS.assign(b=words(on="Present", off="Absent")["b"], d=words()["d"])
        fitted = clone(model).fit(X)
        assert fitted.on_values_ == {"b": "Present", "d": "yes"}
        assert clone(model).fit(FLAGS).on_values_ == {}
        assert clone(model).fit(words().to_numpy()).on_values_ == {
            f"x{j}": "yes" for j in range(6)
        }
        same(fitted, clone(model).fit(FLAGS))
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
        # Another fit forgets the words, one that fails does not.
        with pytest.raises(ValueError, match="column 'a'"):
            fitted.fit(words(on="male", off="female"))
        assert fitted.on_values_ == {"b": "Present", "d": "yes"}
        assert fitted.fit(FLAGS).on_values_ == {}

    def test_later_rows_have_the_same_words(self, model):
        fitted = clone(model).fit(words())
        expected = clone(model).fit(FLAGS).transform(FLAGS)
        for X in (words(on="YES ", off="No"), words().astype("category"), FLAGS):
            np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-10)
        drawn = fitted.sample(5, random_state=0)[0]
        fitted.score(pd.DataFrame(drawn, columns=NAMES))
        message = r"'yes' or 'no' in column 'a', as in fit, got 'false'\."
        with pytest.raises(ValueError, match=message):
            fitted.transform(words(on="true", off="false"))
        reversed_, three = words().iloc[:, ::-1], words().iloc[:, :3]
        for other in (reversed_, three, FLAGS.iloc[:, :3], FLAGS.assign(g=1.0)):
            with pytest.raises(ValueError, match="feature names"):
                fitted.transform(other)
        nameless = clone(model).fit(words().to_numpy())
        with pytest.raises(ValueError, match="3 features"):
            nameless.transform(three.to_numpy())
        with pytest.raises(ValueError, match="'yes' or 'no', or 1 or 0, in column 'a'"):
            fitted.transform(FLAGS * 2)
        with pytest.raises(
            ValueError, match="numbers in column 'a', as in fit, got 'no'"
        ):
            clone(model).fit(FLAGS).transform(words())

    def test_blocks_and_batches(self, model):
        # The first block has neither all words nor all columns in order.
        first = words().iloc[:3]
        parts = [first, words().iloc[3:90], words().iloc[90:]]
        expected = clone(model).fit(FLAGS)
        frames = [first, parts[1].iloc[:, ::-1], parts[2]]
        for X in (iter(parts), partitions(frames), dd.from_pandas(words(), 3)):
            fitted = clone(model).fit(X)
            same(fitted, expected)
            assert fitted.on_values_ == dict.fromkeys(NAMES, "yes")
        blocks = da.from_array(words().to_numpy(dtype=object), chunks=(70, 6))
        same(clone(model).fit(blocks), expected)
        strange = [*parts[:2], parts[2].assign(c="true")]
        with pytest.raises(ValueError, match=r"got .*'true' in column 'c'"):
            clone(model).fit(iter(strange))
        with pytest.raises(ValueError, match=r"got .*'true'.* in column 'c'"):
            clone(model).fit(partitions(strange))

    def test_thresholds_do_not_concern_words(self, model):
        X = (FLAGS + 1).assign(a=words()["a"], b=FLAGS["b"] > 0, c=words()["c"])
        expected = clone(model).fit(FLAGS)
        fitted = clone(model).set_params(binarize=1.0).fit(X)
        same(fitted, expected)
        X = X.astype(object).where(gappy().notna(), None)
        filled = fitted.impute(X)
        assert set(filled["a"]) == {"yes", "no"}
        assert set(filled["b"]) == {True, False}
        assert set(filled["d"]) == {1, 2}

    @pytest.mark.parametrize(
        "store",
        [
            lambda X: X,
            lambda X: X.astype("string"),
            lambda X: X.astype("category"),
            lambda X: X.convert_dtypes(dtype_backend="pyarrow"),
            lambda X: X.to_numpy(dtype=object),
            lambda X: pl.DataFrame(dict(X)),
            lambda X: pl.DataFrame(dict(X)).cast(pl.Enum(["Yes", "No"])),
            lambda X: pl.DataFrame(dict(X)).cast(pl.Categorical),
        ],
    )
    def test_gaps_are_filled_with_words(self, model, store):
        given = gappy()
        X = store(words(given, "Yes", "No"))
        expected = clone(model).fit(given).impute(given)
        filled = clone(model).fit(X).impute(X)
        assert type(filled) is type(X)
        if hasattr(X, "dtypes"):
            assert list(filled.dtypes) == list(X.dtypes)
        np.testing.assert_array_equal(
            np.asarray(filled, dtype=object), words(expected, "Yes", "No").to_numpy()
        )

    @pytest.mark.parametrize("dtype", ["boolean", "Int64", "category", object])
    def test_gaps_of_flags(self, model, dtype):
        given = gappy()
        flags = given.astype("boolean")
        X = flags.astype(object).where(flags.notna(), None).astype(dtype)
        filled = clone(model).fit(X).impute(X)
        assert list(filled.dtypes) == list(X.dtypes)
        expected = clone(model).fit(given).impute(given)
        np.testing.assert_array_equal(filled.astype(float), expected)


class TestPartialFit:
    def test_words_of_batches(self):
        model = NoisyOrMoMLearner(STRUCTURE, refine=False)
        X = words(on="Yes", off="No")
        X.iloc[:50, 0] = "No"
        for start in range(0, 200, 50):
            model.partial_fit(X.iloc[start : start + 50], update=start == 150)
        assert model.on_values_["a"] == "Yes"
        with pytest.raises(ValueError, match="column 'a'"):
            model.partial_fit(words(on="true", off="false"))
        before = copy.deepcopy(model.on_values_)
        model.partial_fit(dd.from_pandas(words(), 2))
        assert model.on_values_.keys() == before.keys()


levels = st.sampled_from(["yes", "no", "Yes", " NO", None, "true", "maybe", "NA", ""])


@settings(max_examples=150, deadline=None)
@given(st.lists(levels, min_size=1, max_size=8), st.integers(0, 8))
def test_coding_does_not_depend_on_blocks(values, cut):
    X = np.array(values, dtype=object)[:, np.newaxis]
    parts = [part for part in (X[:cut], X[cut:]) if len(part)]

    def outcome(function):
        try:
            return function()
        except ValueError:
            return "refused"

    def in_batches():
        coding = {}
        for part in parts:
            coding = learn_coding(part, coding)
        return coding

    whole = outcome(lambda: learn_coding(X, {}))
    assert outcome(in_batches) == whole
    assert (
        outcome(lambda: coding_of(merge_levels(map(find_levels, parts)), {})) == whole
    )
    known = [value for value in values if value is not None]
    understood = {value.strip().lower() for value in known} <= {"yes", "no"}
    assert (whole != "refused") == (understood or set(known) <= {"true"})
    if understood and known:
        expected = [np.nan if v is None else "yes" in v.lower() for v in values]
        np.testing.assert_array_equal(
            decode(X, whole, 0.0)[:, 0], np.array(expected, dtype=float)
        )


@pytest.mark.parametrize("model", [*NOISY_OR, *OTHERS], ids=name_of)
class TestDaskColumns:
    def test_partitions_are_aligned_by_name(self, model):
        parts = [FLAGS.iloc[:80], FLAGS.iloc[80:]]
        expected = clone(model).fit(partitions(parts)).score_samples(FLAGS)
        mixed = partitions([parts[0], parts[1].iloc[:, [3, 1, 0, 5, 2, 4]]])
        found = clone(model).fit(mixed).score_samples(FLAGS)
        np.testing.assert_allclose(found, expected, atol=1e-8)

    def test_other_columns_are_refused(self, model):
        one, two = FLAGS.iloc[:80], FLAGS.iloc[80:]
        for other in (
            two.drop(columns="c"),
            two.assign(g=1.0),
            two.rename(columns={"c": "g"}),
            two.rename(columns={"c": "a"}),
        ):
            with pytest.raises(ValueError, match="same columns in all blocks"):
                clone(model).fit(partitions([one, other]))

    @pytest.mark.parametrize("width", [5, 7])
    def test_blocks_of_another_width_are_refused(self, model, width):
        blocks = da.from_array(FLAGS.to_numpy(), chunks=(100, 6)).map_blocks(
            np.resize, (100, width), dtype=float, meta=np.empty((0, 0))
        )
        with pytest.raises(ValueError, match=f"6 columns in all .*100, {width}"):
            clone(model).fit(blocks)
