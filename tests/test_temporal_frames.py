"""Long tables: slices, names, and the way back."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_score

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.mixed import LGLPCCTemporal, Sequences, sequences_from_frame
from sklearn_latent.mixed._panels.frames import read_like
from sklearn_latent.plotting import TrajectoryDisplay

few = settings(max_examples=25, deadline=None)


def read(frame, **options):
    return sequences_from_frame(frame, sequence="id", time="t", **options)


def visits_on_days(n=30, n_visits=5, seed=0):
    """People who come on days of their own."""
    rng = np.random.RandomState(seed)
    return pd.DataFrame(
        {
            "id": np.repeat([f"p{i:02d}" for i in range(n)], n_visits),
            "t": rng.permutation(5000)[: n * n_visits],
            "x": rng.randint(3, size=n * n_visits),
        }
    )


# Slices


@pytest.mark.parametrize("kind", ["days", "ages", "dates"])
def test_times_that_are_no_visit_numbers_are_an_error_that_offers_the_choices(kind):
    frame = visits_on_days()
    if kind == "ages":
        frame["t"] = 40 + frame["t"] / 365
    if kind == "dates":
        frame["t"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(frame["t"], unit="D")
    with pytest.raises(ValueError, match="150 different times") as caught:
        read(frame)
    text = str(caught.value)
    for choice in ('time_bins="visit"', "a width, such as time_bins=", '"exact"'):
        assert choice in text
    assert ('"90D"' in text) == (kind == "dates")
    assert read(frame, time_bins="exact").shape == (30, 150, 1)
    assert read(frame, time_bins="visit").shape == (30, 5, 1)


def test_few_sequences_with_dates_of_their_own():
    dates = pd.to_datetime(["2020-01-03", "2020-03-09", "2020-02-11", "2020-04-02"])
    frame = pd.DataFrame({"id": [1, 1, 2, 2], "t": dates, "x": 1})
    with pytest.raises(ValueError, match="4 different times"):
        read(frame)
    shared = frame.assign(t=dates[[0, 1, 0, 1]])
    assert read(shared).shape == (2, 2, 1)


def test_one_long_series_and_a_wide_grid_are_fine():
    long = pd.DataFrame({"id": 0, "t": np.arange(2000), "x": 1})
    assert read(long).shape == (1, 2000, 1)
    frame = pd.DataFrame(
        [(i, t, 1) for i in range(20) for t in range(100)], columns=["id", "t", "x"]
    )
    assert read(frame[frame.index % 3 > 0]).shape == (20, 100, 1)
    thin = frame[frame.index % 3 == 0]
    with pytest.raises(ValueError, match="100 different times"):
        read(thin)


def test_visit_numbers_go_by_time():
    frame = pd.DataFrame({"id": [1, 2, 1, 1], "t": [90, 5, -3, 7], "x": [3, 9, 1, 2]})
    X = read(frame, time_bins="visit")
    np.testing.assert_array_equal(X[:, :, 0], [[1, 2, 3], [9, np.nan, np.nan]])
    assert X.times.tolist() == [0, 1, 2]
    assert X.to_frame()["t"].tolist() == [-3, 7, 90, 5]
    missed = X.to_frame(missed=True)
    assert missed["t"].isna().tolist() == [False] * 4 + [True] * 2


@few
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=20, unique=True))
@pytest.mark.parametrize("width", [1, 7, 0.1, 2.5])
def test_intervals_hold_their_times(width, multiples):
    times = np.sort(np.array(multiples) * (0.1 if width == 0.1 else 1.0))
    frame = pd.DataFrame({"id": 1, "t": times, "x": np.arange(len(times))})
    if np.ptp(times) / width > 40:
        frame = frame[:1]
    X = read(frame, time_bins=width, repeated="last")
    rows = np.flatnonzero(~np.isnan(X[0, :, 0]))
    kept = frame["t"].to_numpy()[X[0, rows, 0].astype(int)]
    assert (X.times[rows] <= kept + 1e-6).all()
    assert (kept < X.times[rows] + width - 1e-9).all()
    assert len(rows) == len(np.unique(np.floor(frame["t"] / width + 1e-9)))
    np.testing.assert_allclose(np.diff(X.times), width)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_intervals_of_dates_do_not_depend_on_the_table(zone):
    days = pd.date_range("2020-01-01", periods=8, freq="45D", tz=zone)
    frame = pd.DataFrame({"id": 1, "t": days, "x": np.arange(8)})
    whole = read(frame, time_bins="90D", repeated="first")
    later = read(frame[3:], time_bins="90D", repeated="first")
    assert set(later.times) <= set(whole.times)
    lengths = frame.assign(t=pd.to_timedelta(45 * np.arange(8), unit="D"))
    bins = read(lengths, time_bins=pd.Timedelta("90D"), repeated="last")
    np.testing.assert_array_equal(bins[0, :, 0], [1, 3, 5, 7])


@pytest.mark.parametrize(
    ("times", "bins", "match"),
    [
        ([1, 2], "90D", "a number above 0, because the times are numbers, got '90D'"),
        ([1, 2], 0, "a number above 0"),
        ([1, 2], True, "a number above 0"),
        ([1.0, 1e300], 1e-300, "a width that makes less than"),
        (["a", "b"], 3, "because the times are labels, got 3"),
        (
            pd.to_datetime(["2020-01-01", "2021-01-01"]),
            3,
            "because the times are dates",
        ),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "x", "a length such as"),
        (np.arange(2) * 1000, 1, "makes 1001 slices"),
    ],
)
def test_wrong_widths(times, bins, match):
    frame = pd.DataFrame({"id": [1, 1], "t": times, "x": 1})
    with pytest.raises(ValueError, match=match):
        read(frame, time_bins=bins)


@pytest.mark.parametrize("bins", ["exact", "visit", 10, None])
def test_repeated_visits_are_named_with_the_remedy(bins):
    frame = pd.DataFrame({"id": list("aabb"), "t": [0, 5, 7, 7], "x": [1, 2, 3, 4]})
    who = "'a' at times 0 and 5" if bins == 10 else "'b' at time 7"
    if bins == 10:
        frame = frame[:3]
    with pytest.raises(ValueError, match=f"sequence {who}.*repeated="):
        read(frame, time_bins=bins)
    for which in ("first", "last"):
        X = read(frame, time_bins=bins, repeated=which)
        low, high = ("a", {1, 2}) if bins == 10 else ("b", {3, 4})
        row = X.sequence_labels.tolist().index(low)
        values = X[row, :, 0]
        expected = (min if which == "first" else max)(high)
        assert values[~np.isnan(values)].tolist() == [expected]
    with pytest.raises(ValueError, match="repeated must be one of"):
        read(frame, repeated="all")


def test_words_come_in_the_order_of_the_alphabet():
    """Not in the order of time, which nobody could tell from the result."""
    times = ["baseline", "month 3", "end"]
    frame = pd.DataFrame({"id": 0, "t": times, "x": range(len(times))})
    with pytest.warns(PoorDataWarning, match=r"'t' are text.*order: 'baseline', 'end'"):
        assert read(frame).times.tolist() == sorted(times)
    # An order that is said, and those that are clear.
    frame["t"] = pd.Categorical(times, times, ordered=True)
    assert read(frame).times.tolist() == times


@pytest.mark.parametrize(
    "times",
    [
        ["1", "2", "10"],
        ["v1", "v2", "v10"],
        ["2024-2", "2024-10", "2025-1"],
        ["9:00", "10:00"],
        ["-1", "-0.5", "10"],
        ["wave 2", "wave 10"],
    ],
)
def test_numbers_in_text_are_in_order(times):
    frame = pd.DataFrame({"id": 0, "t": times[::-1], "x": range(len(times))})
    with pytest.warns(PoorDataWarning, match=f"order: {times[0]!r}, {times[1]!r}"):
        X = read(frame)
    assert X.times.tolist() == times
    assert X[0, :, 0].tolist() == list(range(len(times)))[::-1]


def test_dates_whose_year_comes_last_are_in_doubt():
    frame = pd.DataFrame({"id": 0, "t": ["01/12/2023", "02/01/2022"], "x": [1, 2]})
    with pytest.warns(PoorDataWarning, match="are text"):
        read(frame)


def test_a_further_table_may_have_times_in_between():
    frame = pd.DataFrame({"id": np.repeat(range(9), 3), "x": np.arange(27) % 2})
    with pytest.warns(PoorDataWarning, match="are text"):
        X = read(frame.assign(t=["v1", "v2", "v10"] * 9))
    other = read_like(frame.assign(t=["v1", "v3", "v10"] * 9), X.labels)
    assert other.times.tolist() == ["v1", "v2", "v3", "v10"]


@pytest.mark.parametrize("times", [["wave 1", "wave 2"], ["2024-09", "2024-11"]])
def test_numbered_words_are_in_order(times):
    frame = pd.DataFrame({"id": 0, "t": times, "x": range(len(times))})
    assert read(frame).times.tolist() == times


def test_columns_may_be_told_by_position_or_forgotten():
    frame = pd.DataFrame({"id": [1, 1], "day": [0, 1], "x": [1, 2], "y": [3, 4]})
    X = sequences_from_frame(frame, "id", "day", ["y"])
    assert X.feature_names == ["y"]
    for keys in ((), ("id",), ("id", "month")):
        with pytest.raises(ValueError, match=r"name columns of frame.*'id', 'day'"):
            sequences_from_frame(frame, *keys)


def test_ordered_categories_keep_their_order():
    waves = pd.CategoricalDtype(["start", "middle", "end"], ordered=True)
    frame = pd.DataFrame({"id": [1, 1], "t": ["end", "start"], "x": [2, 1]})
    X = read(frame.astype({"t": waves}))
    assert X.times.tolist() == ["start", "end"]
    assert X[0, :, 0].tolist() == [1, 2]


# The array


@pytest.fixture(scope="module")
def X():
    frame = visits_on_days(6, 3).assign(y=list("ab") * 9)
    return read(frame, time_bins="visit")


def test_names_follow_rows_slices_and_features(X):
    assert isinstance(X[2:4], Sequences)
    assert X[[3, 1]].sequence_labels.tolist() == ["p03", "p01"]
    assert X[np.arange(6) < 2].sequence_labels.tolist() == ["p00", "p01"]
    assert X[[1, 2], ...].sequence_labels.tolist() == ["p01", "p02"]
    assert X[:, 1:].times.tolist() == [1, 2]
    assert X[..., :].feature_names == ["x", "y"]
    part = X[..., 1:]
    assert part.feature_names == X[:, :, [1]].feature_names == ["y"]
    assert part.to_frame().columns.tolist() == ["id", "t", "y"]
    assert len(X[4:, :2].to_frame()) == 4


@pytest.mark.parametrize(
    "select",
    [
        lambda X: X[0],
        lambda X: X[:, 0],
        lambda X: X[..., 0],
        lambda X: X[0, 0, 0],
        lambda X: X[[0, 1], :, [0, 1]],
        lambda X: X[[0, 1]][:, None],
        lambda X: X == X,
        lambda X: X.reshape(6, -1),
        lambda X: np.take(X, [1, 0], axis=0),
    ],
)
def test_other_results_claim_no_names(X, select):
    found = select(X)
    if isinstance(found, Sequences):
        with pytest.raises(AttributeError, match="no labels"):
            found.sequence_labels  # noqa: B018


def test_copies_and_pickles_keep_names(X):
    for other in (X.copy(), copy.deepcopy(X), pickle.loads(pickle.dumps(X))):
        assert other.sequence_labels.tolist() == X.sequence_labels.tolist()
        pd.testing.assert_frame_equal(other.to_frame(), X.to_frame())
    assert not np.shares_memory(X.copy(), X)


COLUMNS = {
    "int": [1, 2, 3],
    "float": [0.5, np.nan, 1.0],
    "bool": [True, False, True],
    "word": ["a", None, "b"],
    "nullable": pd.array([1, None, 2], dtype="Int64"),
    "flag": pd.array([True, None, False], dtype="boolean"),
    "category": pd.Categorical(["u", None, "v"], categories=["v", "u"], ordered=True),
    "number": pd.Categorical([3, 1, None]),
}


@pytest.mark.parametrize("names", [list(COLUMNS), ["int", "bool", "nullable"]])
def test_there_and_back(names):
    frame = pd.DataFrame({"id": [2, 1, 2], "t": [6, 0, 0]} | COLUMNS)
    frame = frame[["id", "t", *names]]
    back = read(frame).to_frame()
    expected = frame.sort_values(["id", "t"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(back, expected)
    missed = read(frame).to_frame(missed=True)
    assert missed[["id", "t"]].to_numpy().tolist() == [[1, 0], [1, 6], [2, 0], [2, 6]]
    assert missed["int"].dtype == "Int64" and missed["bool"].dtype == "boolean"
    with pytest.raises(ValueError, match="missed must be True or False"):
        read(frame).to_frame(missed="yes")


def test_new_categories_are_added():
    frame = pd.DataFrame({"id": [1, 2], "t": 0, "x": pd.Categorical(["a", None])})
    X = read(frame)
    filled = X.like(np.array([[["a"]], [["b"]]], dtype=object))
    assert filled.to_frame()["x"].tolist() == ["a", "b"]


# Models


WORDS = np.array(["low", "middle", "high"])


def panel_frame(n=250, seed=0):
    """Three integer and three word columns, with gaps and missed visits."""
    codes = make_latent_dbn("G3", n, 4, cardinality=3, random_state=seed).codes
    who, when = np.indices(codes.shape[:2])
    frame = pd.DataFrame(codes.reshape(-1, 6), columns=list("abcdef")).astype("Int64")
    for name in "def":
        frame[name] = WORDS[frame[name].astype(int)]
    rng = np.random.RandomState(seed)
    frame = frame.mask(rng.uniform(size=frame.shape) < 0.1)
    frame.insert(0, "who", [f"p{i:03d}" for i in who.ravel()])
    frame.insert(1, "month", 6 * when.ravel())
    frame["note"] = "kept"
    return frame[rng.uniform(size=len(frame)) > 0.1].sample(frac=1, random_state=seed)


def panel(frame):
    return sequences_from_frame(
        frame, sequence="who", time="month", columns=list("abcdef")
    )


@pytest.fixture(scope="module")
def model():
    return LGLPCCTemporal(random_state=0).fit(panel(panel_frame()))


def test_models_know_the_names(model):
    assert model.observed_names_.tolist() == list("abcdef")
    assert model.get_feature_names_out()[[0, -1]].tolist() == [
        "t0_latent0_state0",
        "t18_latent1_state2",
    ]
    assert ("a", 0) in set(model.to_frame()["child"])
    assert pickle.loads(pickle.dumps(model)).observed_names_.tolist() == list("abcdef")


def test_cross_validation_takes_sequences():
    X = panel(panel_frame(60))
    named = cross_val_score(LGLPCCTemporal(random_state=0), X, cv=2)
    plain = cross_val_score(LGLPCCTemporal(random_state=0), np.asarray(X), cv=2)
    np.testing.assert_array_equal(named, plain)


def test_filled_sequences_keep_names_and_types(model):
    frame = panel_frame()
    X = panel(frame)
    filled = model.impute(X)
    assert isinstance(filled, Sequences)
    table = filled.to_frame()
    assert not table.isna().to_numpy().any()
    dtypes = frame.drop(columns="note").dtypes
    assert table.dtypes.equals(dtypes)
    assert len(table) == len(frame)
    assert len(filled.to_frame(missed=True)) == X.shape[0] * X.shape[1]
    plain = model.impute(np.asarray(X))
    assert not isinstance(plain, Sequences)
    np.testing.assert_array_equal(plain, filled)


def polars_frame(frame):
    return pl.DataFrame(
        {
            name: frame[name].astype(object).where(frame[name].notna(), None).tolist()
            for name in frame.columns
        }
    )


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_long_table_in_long_table_out(model, kind):
    frame = panel_frame()
    X = panel(frame)
    table = polars_frame(frame) if kind == "polars" else frame
    filled = model.impute(table)
    assert type(filled) is type(table)
    if kind == "polars":
        assert filled.schema == table.schema
        filled = filled.to_pandas()
    else:
        pd.testing.assert_index_equal(filled.index, frame.index)
        assert filled.dtypes.equals(frame.dtypes)
    assert filled["note"].tolist() == frame["note"].tolist()
    assert not filled.isna().to_numpy().any()
    expected = model.impute(X).to_frame()
    filled = filled.sort_values(["who", "month"])
    assert filled[list("abcdef")].astype(str).to_numpy().tolist() == (
        expected[list("abcdef")].astype(str).to_numpy().tolist()
    )
    states = model.transform(table)
    assert len(states) == len(frame)
    there = X.labels.visits >= 0
    cube = model.transform(X).reshape(*X.shape[:2], -1)
    np.testing.assert_array_equal(states.iloc[:, 2:], cube[there])
    paths = model.predict(table)
    assert paths.columns.tolist() == ["who", "month", "latent0", "latent1"]
    np.testing.assert_array_equal(paths.iloc[:, 2:], model.predict(X)[there])
    np.testing.assert_array_equal(model.score_samples(table), model.score_samples(X))


def test_a_further_table_has_the_slices_of_the_first(model):
    frame = panel_frame()
    rest = frame[frame["month"] != 6]
    X = panel(frame).copy()
    X[:, 1] = np.nan
    known = [who in set(rest["who"]) for who in X.sequence_labels]
    np.testing.assert_allclose(
        model.score_samples(rest), model.score_samples(X[np.array(known)])
    )
    later = frame.assign(month=frame["month"].replace(18, 24))
    # A slice in between that nobody has.
    states = model.transform(later)
    assert sorted(states["month"].unique()) == [0, 6, 12, 24]


def test_further_tables_of_visits_and_of_ordered_categories():
    frame = panel_frame(60)
    X = sequences_from_frame(
        frame, sequence="who", time="month", columns=["a", "b"], time_bins="visit"
    )
    model = LGLPCCTemporal(random_state=0, cardinality=2).fit(X)
    np.testing.assert_array_equal(model.score_samples(frame), model.score_samples(X))
    names = pd.CategoricalDtype(["start", "half", "year", "end"], ordered=True)
    words = dict(zip([0, 6, 12, 18], names.categories, strict=True))
    waves = frame.assign(month=frame["month"].map(words).astype(names))
    X = sequences_from_frame(waves, sequence="who", time="month", columns=["a", "b"])
    model = LGLPCCTemporal(random_state=0, cardinality=2).fit(X)
    part = waves[waves["month"] != "half"]
    assert model.transform(part)["month"].dtype == names
    assert model.score_samples(waves).shape == (60,)
    extra = waves.assign(month=waves["month"].cat.rename_categories({"end": "later"}))
    assert len(model.transform(extra)) == len(extra)


def test_trajectories_are_named(model):
    X = panel(panel_frame())
    display = TrajectoryDisplay.from_estimator(model, X[[5, 2]])
    assert [ax.get_ylabel() for ax in display.axes_[:, 0]] == ["p005", "p002"]
    ticks = [tick.get_text() for tick in display.axes_[-1, 0].get_xticklabels()]
    assert ticks == ["0", "6", "12", "18"]
    frame = panel_frame()
    two = frame[frame["who"].isin(["p001", "p004"])]
    display = TrajectoryDisplay.from_estimator(model, two)
    assert [ax.get_ylabel() for ax in display.axes_[:, 0]] == ["p001", "p004"]


def test_dates_are_short():
    days = pd.to_datetime(["2020-01-01", "2021-01-01"])
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "id": np.repeat(range(40), 2),
            "t": list(days) * 40,
            "x": rng.randint(2, size=80),
        }
    )
    model = LGLPCCTemporal(random_state=0, cardinality=2)
    with pytest.warns(PoorDataWarning, match="No latent"):
        model.fit(read(frame))
    assert model._slice_names() == ["2020-01-01", "2021-01-01"]
    hours = frame.assign(t=frame["t"] + pd.Timedelta("1h"))
    with pytest.warns(PoorDataWarning, match="No latent"):
        model.fit(read(hours))
    assert model._slice_names()[0] == "2020-01-01T01:00:00"


def test_warnings_name_the_features(model):
    frame = panel_frame(20).assign(b=7)
    with pytest.warns(PoorDataWarning, match=r"not seen in fit.*: 'b' \(7"):
        model.score_samples(frame)
    X = panel(frame)
    with pytest.warns(PoorDataWarning) as caught:
        LGLPCCTemporal(random_state=0, cardinality=2).fit(X)
    assert any("measure no latent: 'b'." in str(one.message) for one in caught)
    endless = panel(panel_frame(20)).copy()
    endless[0, 0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity, got one in 'a'"):
        model.score_samples(endless)


def test_features_of_wide_tables_are_called_by_their_stems():
    codes = make_latent_dbn("G1", 100, 3, random_state=0).X
    names = [f"{name}_t{t}" for t in range(3) for name in ("mood", "sleep", "pain")]
    wide = pd.DataFrame(codes, columns=names)
    model = LGLPCCTemporal(3, random_state=0).fit(wide)
    assert model.observed_names_.tolist() == ["mood", "sleep", "pain"]
    other = wide.set_axis([f"q{j}" for j in range(9)], axis=1)
    model = LGLPCCTemporal(3, random_state=0).fit(other)
    assert model.observed_names_.tolist() == ["q0", "q1", "q2"]
    model = LGLPCCTemporal(3, random_state=0).fit(codes)
    assert model.observed_names_.tolist() == ["x0", "x1", "x2"]
