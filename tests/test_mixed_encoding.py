"""Values to codes and back; long tables to sequences."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from dbn_strategies import seeds
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.mixed import sequences_from_frame
from sklearn_latent.mixed._panels.encoding import PanelEncoder

few = settings(max_examples=50, deadline=None)

labels = st.one_of(
    st.integers(-3, 3), st.sampled_from(["a", "b", "long label"]), st.none()
)


@few
@given(st.lists(labels, min_size=2, max_size=24))
def test_labels_of_any_type_come_back(values):
    panel = np.array(values[: len(values) // 2 * 2], dtype=object).reshape(-1, 2, 1)
    # Text in one slice and numbers in the other are refused: hardly the same feature.
    kinds = [{type(v) for v in part if v is not None} for part in panel[:, :, 0].T]
    assume(sorted(map(str, kinds)) != sorted(map(str, [{int}, {str}])))
    encoder = PanelEncoder().fit(panel)
    codes = encoder.encode(panel)
    missing = np.equal(panel, None)
    np.testing.assert_array_equal(codes == -1, missing)
    back = encoder.decode(codes)
    assert (back[~missing] == panel[~missing]).all()
    assert codes.max() < encoder.n_categories[0]


@few
@given(seeds, st.integers(2, 6))
def test_bins_are_ordered_and_balanced(seed, n_bins):
    rng = np.random.default_rng(seed)
    panel = rng.normal(size=(60, 3, 2))
    panel[rng.random(panel.shape) < 0.1] = np.nan
    encoder = PanelEncoder(n_bins, requested=["categorical"] * 2).fit(panel)
    codes = encoder.encode(panel)
    for f in range(2):
        known = codes[:, :, f] >= 0
        np.testing.assert_array_equal(known, ~np.isnan(panel[:, :, f]))
        x, c = panel[:, :, f][known], codes[:, :, f][known]
        assert (np.diff(c[np.argsort(x)]) >= 0).all()
        counts = np.bincount(c, minlength=n_bins)
        assert np.ptp(counts) <= 2
        # The value that stands for a bin lies in it.
        middle = encoder.decode(codes)[:, :, f][known]
        np.testing.assert_array_equal(
            encoder.encode(np.tile(middle[:, None, None], (1, 1, 2)))[:, 0, f], c
        )


@few
@given(seeds)
def test_weight_two_is_a_sequence_twice(seed):
    rng = np.random.default_rng(seed)
    panel = rng.normal(size=(20, 2, 2))
    weights = rng.integers(0, 3, 20).astype(float)
    weights[0] = 1.0
    weighted = PanelEncoder().fit(panel, weights)
    repeated = PanelEncoder().fit(np.repeat(panel, weights.astype(int), axis=0))
    for a, b in zip(weighted.features_, repeated.features_, strict=True):
        np.testing.assert_array_equal(a.edges, b.edges)
        np.testing.assert_array_equal(a.labels, b.labels)


def test_few_integers_are_categories_and_other_numbers_bins():
    rng = np.random.default_rng(0)
    panel = np.stack(
        [
            rng.integers(0, 10, 200),  # ten integers
            rng.integers(0, 50, 200),  # too many
            rng.choice([0.0, 0.5, 1.0], 200),  # as few as bins
            rng.normal(size=200),
            np.full(200, 7.25),
        ],
        axis=1,
    )[:, None, :]
    encoder = PanelEncoder().fit(panel)
    np.testing.assert_array_equal(encoder.n_categories, [10, 4, 3, 4, 1])
    assert [feature.edges is None for feature in encoder.features_] == [
        True,
        False,
        True,
        False,
        True,
    ]


def test_numbers_outside_the_range_fall_into_the_outer_bins():
    panel = np.linspace(0, 1, 101)[:, None, None]
    encoder = PanelEncoder().fit(panel)
    codes = encoder.encode(np.array([-5.0, 5.0])[:, None, None])
    np.testing.assert_array_equal(codes.ravel(), [0, 3])


def test_unseen_categories_are_missing_with_a_warning():
    encoder = PanelEncoder().fit(np.array([[[0, 1]], [[1, 0]]]))
    with pytest.warns(PoorDataWarning, match=r"feature 1 \(7\)"):
        codes = encoder.encode(np.array([[[1, 7]]]))
    np.testing.assert_array_equal(codes, [[[1, -1]]])
    words = PanelEncoder().fit(np.array([[["a"]], [["b"]]], dtype=object))
    with pytest.warns(PoorDataWarning, match="'c'"):
        assert words.encode(np.array([[["c"]]], dtype=object)).item() == -1
    with pytest.warns(PoorDataWarning, match="'c'"):
        assert encoder.encode(np.array([[["c", 1]]], dtype=object))[0, 0, 0] == -1


def test_a_feature_that_is_always_missing_has_one_category():
    panel = np.array([[[np.nan, 1.0]], [[np.nan, 0.0]]])
    encoder = PanelEncoder().fit(panel)
    np.testing.assert_array_equal(encoder.n_categories, [1, 2])
    assert (encoder.encode(panel)[:, :, 0] == -1).all()


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused(value):
    encoder = PanelEncoder()
    with pytest.raises(ValueError, match="infinity"):
        encoder.fit(np.array([[[0.0]], [[value]]]))
    encoder.fit(np.array([[[0.0]], [[1.0]]]))
    with pytest.raises(ValueError, match="infinity"):
        encoder.encode(np.array([[[value]]]))


def test_labels_that_cannot_be_compared_are_refused():
    panel = np.empty((2, 1, 1), dtype=object)
    panel[:, 0, 0] = [{}, {}]
    with pytest.raises(TypeError, match="must be a string or a number"):
        PanelEncoder().fit(panel)


def test_other_width_than_in_fit():
    encoder = PanelEncoder().fit(np.zeros((2, 1, 3)))
    with pytest.raises(ValueError, match="3 features per slice, as in fit, got 2"):
        encoder.encode(np.zeros((2, 1, 2)))


LONG = {
    "id": ["b", "a", "b", "a"],
    "month": [6, 0, 0, 12],
    "mood": [3, 1, 2, None],
    "word": ["x", None, "y", "z"],
}


@pytest.mark.parametrize("frame", [pd.DataFrame(LONG), pl.DataFrame(LONG)])
def test_sequences_from_frame(frame):
    X = sequences_from_frame(frame, sequence="id", time="month", columns=["mood"])
    assert X.dtype == float
    nan = np.nan
    np.testing.assert_array_equal(X[:, :, 0], [[1, nan, nan], [2, 3, nan]])
    assert X.sequence_labels.tolist() == ["a", "b"]
    assert X.times.tolist() == [0, 6, 12]
    both = sequences_from_frame(frame, sequence="id", time="month")
    assert both.dtype == object
    assert both.shape == (2, 3, 2)
    assert both[1, :2, 1].tolist() == ["y", "x"]
    assert both[0, 2, 1] == "z"
    encoder = PanelEncoder().fit(both)
    np.testing.assert_array_equal(
        encoder.encode(both)[:, :, 1], [[-1, -1, 2], [1, 0, -1]]
    )


@few
@given(seeds)
def test_order_of_rows_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        [
            {"id": i, "t": t, "x": rng.normal()}
            for i in range(5)
            for t in range(4)
            if rng.random() < 0.7
        ],
        columns=["id", "t", "x"],
    )
    shuffled = frame.sample(frac=1, random_state=seed)
    np.testing.assert_array_equal(
        sequences_from_frame(frame, sequence="id", time="t"),
        sequences_from_frame(shuffled, sequence="id", time="t"),
    )


TABLE = pd.DataFrame({"id": [1, 1], "t": [0, 1], "x": [1, 2]})
TWICE = pd.DataFrame([[1, 0, 1]], columns=["id", "t", "t"])


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (TABLE.assign(t=0), {}, r"got more for sequence .*1.* at time .*0"),
        (TABLE, {"columns": ["nope"]}, "columns must name columns of frame"),
        (TABLE, {"columns": [[1]]}, "columns must name columns of frame"),
        (TABLE, {"columns": 3}, "columns must name columns of frame, got 3"),
        (TABLE, {"columns": ["x", "x"]}, "columns must hold no name twice"),
        (TABLE, {"sequence": "nope"}, "sequence must name"),
        (TABLE.assign(id=[1, None]), {}, "without missing values"),
        (TABLE.assign(id=[1, "a"]), {}, "sequence must name a column of labels that"),
        (TWICE, {}, "no two columns of the same name, got 't'"),
        ([[1, 2]], {}, "pandas or polars"),
    ],
)
def test_wrong_tables(frame, options, message):
    error = TypeError if isinstance(frame, list) else ValueError
    with pytest.raises(error, match=message):
        sequences_from_frame(frame, **{"sequence": "id", "time": "t", **options})
