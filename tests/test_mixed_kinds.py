"""Kinds of emissions of the columns of a table, from values or by request."""

import numpy as np
import pandas as pd
import pytest

from sklearn_latent import LPCC, LGLPCCTemporal
from sklearn_latent.mixed import SEMDBN, sequences_from_frame

N_SLICES = 4
LEVELS = ["low", "middle", "high", "top"]


def states(rng, n, n_states, stay=0.8):
    """Paths of a latent that mostly stays where it is."""
    path = rng.randint(n_states, size=(n, N_SLICES))
    for t in range(1, N_SLICES):
        path[:, t] = np.where(rng.rand(n) < stay, path[:, t - 1], path[:, t])
    return path


def columns(n=250, seed=0):
    """Features of a slice by name: two latents, a chain of its own, and noise."""
    rng = np.random.RandomState(seed)
    first, second = states(rng, n, 3), states(rng, n, 2)
    flip = rng.rand(2, n, N_SLICES) < 0.15
    chain = np.cumsum(rng.normal(size=(n, N_SLICES)), axis=1)
    return {
        "weight": 60 + 20 * first + 5 * rng.normal(size=first.shape),
        "pressure": 1e-3 * (rng.normal(size=first.shape) - 4 * first),
        "grade": np.clip(np.round(first + 0.5 * rng.normal(size=first.shape)), 0, 3),
        "smokes": np.where(flip[0], 1 - second, second),
        "coughs": np.where(flip[1], 1 - second, second),
        "tired": np.where(rng.rand(*second.shape) < 0.2, 1 - second, second),
        "walk": chain,
        "noise": rng.normal(size=chain.shape),
    }


def wide(parts):
    """A row per sequence, slice by slice, with types that people use."""
    frame = {}
    for t in range(N_SLICES):
        for name, values in parts.items():
            column = values[:, t]
            if name == "grade":
                column = pd.Categorical.from_codes(column.astype(int), LEVELS, True)
            if name == "smokes":
                column = np.array(["no", "yes"], dtype=object)[column]
            frame[f"{name}_t{t}"] = column
    return pd.DataFrame(frame)


def kinds_of(model):
    return [emission.kind for emission in model.network_.emissions]


@pytest.fixture(scope="module")
def frame():
    return wide(columns())


@pytest.fixture(scope="module")
def model(frame):
    return LGLPCCTemporal(N_SLICES, random_state=0).fit(frame)


def test_a_mixed_frame_needs_nothing_said(model):
    assert model.structure_.astype(int).tolist() == [
        [1, 1, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 1, 1, 0, 0],
    ]
    assert model.cardinality_.tolist() == [3, 2]
    found = dict(zip(model.observed_names_, kinds_of(model), strict=True))
    assert found == {
        "weight": "gaussian",
        "pressure": "gaussian",
        "grade": "ordinal",
        "smokes": "categorical",
        "coughs": "categorical",
        "tired": "categorical",
        "walk": "gaussian memory",
        "noise": "gaussian",
    }
    means = np.sort(model.emission_[0].mean)
    np.testing.assert_allclose(means, [60, 80, 100], atol=2)
    assert model.emission_[3].shape == (2, 2)
    assert model.categories_[2].tolist() == LEVELS
    assert len(model.categories_[0]) == 0


@pytest.mark.parametrize("name", ["noise", "noise_t0"])
def test_features_have_names_with_and_without_time(frame, name):
    emissions = dict.fromkeys([name, *range(7)], "auto") | {name: "memory"}
    model = LGLPCCTemporal(N_SLICES, emissions=emissions, random_state=0)
    assert kinds_of(model.fit(frame.iloc[:100]))[7] == "memory"


def test_score_is_a_density_in_units_of_the_columns(model, frame):
    numbers = frame.copy()
    for t in range(N_SLICES):
        numbers[f"weight_t{t}"] *= 1000
    other = LGLPCCTemporal(N_SLICES, random_state=0).fit(numbers)
    change = N_SLICES * np.log(1000)
    assert other.score(numbers) == pytest.approx(model.score(frame) - change, abs=1e-2)


def test_samples_look_like_the_data(model, frame):
    drawn, _ = model.sample(2000, random_state=0)
    drawn = pd.DataFrame(drawn, columns=frame.columns)
    for name in ("weight_t2", "pressure_t0", "walk_t0"):
        numbers = drawn[name].astype(float)
        assert numbers.mean() == pytest.approx(
            frame[name].mean(), abs=0.2 * frame[name].std()
        )
        assert numbers.std() == pytest.approx(frame[name].std(), rel=0.15)
    assert set(drawn["grade_t1"]) <= set(LEVELS)
    assert set(drawn["smokes_t1"]) == {"no", "yes"}


@pytest.mark.parametrize("strategy", ["posterior", "hybrid"])
def test_gaps_of_all_kinds_are_filled(model, frame, strategy):
    hidden = np.random.RandomState(0).rand(*frame.shape) < 0.2
    gaps = frame.mask(hidden)
    filled = model.impute(gaps, strategy)
    assert not filled.isna().any(axis=None)
    assert (filled.dtypes == gaps.dtypes).all()
    shown = ~hidden
    assert (filled.to_numpy()[shown] == frame.to_numpy()[shown]).all()
    for name in ("weight", "pressure", "walk"):
        own = [f"{name}_t{t}" for t in range(N_SLICES)]
        there = hidden[:, [frame.columns.get_loc(column) for column in own]]
        error = (filled[own] - frame[own]).to_numpy()[there]
        assert np.sqrt((error**2).mean()) < 0.75 * frame[own].to_numpy().std()


def test_neighbours_help_numbers_that_walk(model, frame):
    hidden = np.random.RandomState(1).rand(*frame.shape) < 0.2
    gaps = frame.mask(hidden)
    own = [f"walk_t{t}" for t in range(N_SLICES)]
    there = hidden[:, [frame.columns.get_loc(column) for column in own]]
    errors = [
        ((model.impute(gaps, strategy)[own] - frame[own]).to_numpy()[there] ** 2).mean()
        for strategy in ("posterior", "hybrid")
    ]
    assert errors[1] < errors[0]


def test_forecasts_of_all_kinds(model, frame):
    found = model.forecast(frame, 2).to_frame()
    assert {"weight", "std(weight)", "P(grade)"} <= set(found.columns)
    assert set(found["grade"]) <= set(LEVELS)
    assert found["weight"].between(40, 120).all()


@pytest.mark.filterwarnings("ignore:X looks suspicious")
def test_a_weight_of_two_is_a_row_twice(frame):
    some = frame.iloc[:80]
    weights = np.random.RandomState(0).randint(0, 3, len(some))
    weighted = LGLPCCTemporal(N_SLICES, random_state=0).fit(some, sample_weight=weights)
    repeated = LGLPCCTemporal(N_SLICES, random_state=0).fit(
        some.iloc[np.repeat(np.arange(len(some)), weights)]
    )
    assert kinds_of(weighted) == kinds_of(repeated)
    np.testing.assert_allclose(
        weighted.score_samples(some), repeated.score_samples(some), atol=1e-6
    )


def test_long_tables_bring_their_types():
    parts = columns(120)
    frame = pd.DataFrame({name: values.ravel() for name, values in parts.items()})
    frame["grade"] = pd.Categorical.from_codes(frame["grade"].astype(int), LEVELS, True)
    frame["person"] = np.repeat(np.arange(120), N_SLICES)
    frame["visit"] = np.tile(np.arange(N_SLICES), 120)
    X = sequences_from_frame(frame, sequence="person", time="visit")
    model = LGLPCCTemporal(N_SLICES, random_state=0, emissions={"noise": "memory"})
    model.fit(X)
    assert kinds_of(model)[2] in ("ordinal", "ordinal memory")
    assert kinds_of(model)[7] == "memory"
    assert model.categories_[2].tolist() == LEVELS


def test_lists_and_dictionaries(frame):
    rows = frame.iloc[:100, :8]

    def fit(emissions, rows=rows):
        return LPCC(emissions=emissions, random_state=0).fit(rows)

    found = fit({"grade_t0": "categorical", 0: "ordinal"})
    assert kinds_of(found)[0] == "ordinal"
    assert kinds_of(found)[2] == "categorical"
    assert len(found.categories_[0]) == 4
    listed = ["auto"] * 6 + ["categorical", "gaussian"]
    assert kinds_of(fit(listed))[6:] == listed[6:]
    numbers = rows.drop(columns=["grade_t0", "smokes_t0"])
    assert kinds_of(fit("gaussian", numbers)) == ["gaussian"] * 6


@pytest.mark.parametrize(
    ("emissions", "message"),
    [
        (
            "normal",
            "emissions must name kinds, 'auto' or one of categorical, .*'normal'",
        ),
        (["auto"], r"one kind per feature of a slice \(8\), got \['auto'\]"),
        (3, "emissions must be a kind, a dictionary, or a list"),
        ({"height": "gaussian"}, "by names .* or numbers from 0 to 7, got 'height'"),
        ({9: "gaussian"}, "numbers from 0 to 7, got 9"),
        ({0: 1}, "emissions must name kinds"),
        (
            {"smokes_t0": "gaussian"},
            "features of numbers alone, got.*'smokes_t0'",
        ),
    ],
)
def test_wrong_requests(frame, emissions, message):
    with pytest.raises(ValueError, match=message):
        LPCC(emissions=emissions).fit(frame.iloc[:, :8])


@pytest.mark.filterwarnings("ignore:Features that never change")
def test_published_graphs_have_no_memory():
    rng = np.random.RandomState(0)
    latent = states(rng, 300, 2, stay=0.9)
    flip = rng.rand(3, *latent.shape) < 0.1
    codes = np.stack([np.where(f, 1 - latent, latent) for f in flip], axis=2)
    codes[:, 1:, 0] = codes[:, :1, 0]  # follows its own past alone
    found = [
        LGLPCCTemporal(N_SLICES, local=local, random_state=0).fit(codes)
        for local in ("bic", "lpcc")
    ]
    assert any(emission.has_memory for emission in found[0].network_.emissions)
    assert not any(emission.has_memory for emission in found[1].network_.emissions)


def test_labels_among_numbers_of_later_tables_count_as_missing(model, frame):
    other = frame.iloc[:5].astype(object)
    other.iloc[0, 0] = "heavy"
    with pytest.warns(UserWarning, match="count as missing"):
        found = model.score_samples(other)
    missing = frame.iloc[:5].copy()
    missing.iloc[0, 0] = np.nan
    np.testing.assert_allclose(found, model.score_samples(missing))


def test_structural_em_has_categories_alone():
    numbers = np.random.RandomState(0).normal(size=(60, 6))
    model = SEMDBN(n_latents=1, n_slices=2, n_init=1, random_state=0).fit(numbers)
    assert kinds_of(model) == ["categorical"] * 3
    assert [len(labels) for labels in model.categories_] == [4] * 3


@pytest.mark.filterwarnings("ignore:No latent found")
def test_bins_of_numbers_are_values_of_the_column():
    numbers = np.random.RandomState(0).normal(size=(60, 3))
    model = LPCC(emissions="categorical", n_bins=3).fit(numbers)
    drawn, _ = model.sample(5, random_state=0)
    for j, labels in enumerate(model.categories_):
        assert len(labels) == 3
        assert set(labels) <= set(numbers[:, j])
        assert set(drawn[:, j]) <= set(labels)
