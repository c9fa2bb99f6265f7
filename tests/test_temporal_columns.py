"""Names of wide tables: features and times."""

import warnings

import numpy as np
import pandas as pd
import pytest

from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.mixed import LPCC, SEMDBN, LGLPCCTemporal
from sklearn_latent.mixed._panels.wide_names import wide_layout


@pytest.mark.parametrize(
    "pattern",
    ["{x}_t{t}", "{x}_{t}", "{x}.visit{t}", "{x} v{t}", "t{t}_{x}", "Wave {t}: {x}"],
)
def test_features_and_times_are_read_from_names(pattern):
    names = [pattern.format(x=x, t=t) for t in range(1, 4) for x in ("mood", "item1")]
    layout = wide_layout(names)
    assert (layout.stems, layout.n_times) == (["mood", "item1"], 3)
    assert layout.by_slice
    assert not wide_layout([*names[::2], *names[1::2]]).by_slice


@pytest.mark.parametrize(
    "names",
    [
        [f"x{j}" for j in range(6)],
        [f"x_{j}" for j in range(6)],  # the items of one scale, for all we know
        [f"{trait}{j}" for trait in "AC" for j in range(3)],
        ["mood_t0", "mood_t1", "sleep_t0"],  # a time is missing
        ["mood_t0", "sleep_t0"],  # one time
        ["mood_t0", "mood_t1", "age"],
        ["mood_t0", "mood_v0", "mood_t1", "mood_v1"],
        ["t0_", "t1_"],
        ["_1", "_2"],
        [0, 1],
    ],
)
def test_other_names_say_nothing(names):
    assert wide_layout(names) is None


def test_one_feature_whose_numbers_are_called_times():
    assert wide_layout(["mood_t0", "mood_t1", "mood_t2"]).n_times == 3


def table(names):
    codes = np.random.RandomState(0).randint(2, size=(30, len(names)))
    return pd.DataFrame(codes, columns=names)


def messages(model, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    return [str(one.message) for one in caught if one.category is PoorDataWarning]


def test_a_wide_panel_fitted_as_one_slice_gets_a_hint():
    X = table([f"{x}_t{t}" for t in range(3) for x in ("mood", "sleep")])
    found = messages(LGLPCCTemporal(random_state=0), X)
    assert any("look like 2 features at 3 times" in text for text in found)
    assert any("set n_slices=3" in text for text in found)
    for model in (LGLPCCTemporal(3, random_state=0), LPCC(random_state=0)):
        assert not any("look like" in text for text in messages(model, X))


def test_one_feature_or_columns_without_time_beside_it():
    X = table(["mood_1", "mood_2", "mood_3", "age"])
    text = " ".join(messages(LGLPCCTemporal(random_state=0), X))
    assert "look like 1 features at 3 times" in text
    assert "n_slices=3, with the columns of X[['mood_1', 'mood_2', 'mood_3']]" in text


def test_a_long_table_gets_the_call_that_makes_sequences():
    X = table(["mood", "sleep"])
    X = X.assign(person=np.repeat(list("abcde"), 6), Visit=np.tile(range(6), 5))
    call = "sequences_from_frame(X, sequence='person', time='Visit')"
    for model in (LGLPCCTemporal(random_state=0), SEMDBN(1, random_state=0)):
        assert any(call in text for text in messages(model, X))
    twice = X.assign(Visit=1)
    for model, other in ((LGLPCCTemporal(), twice), (LPCC(), X)):
        assert not any("long table" in text for text in messages(model, other))


def test_columns_feature_after_feature_get_a_hint():
    X = table([f"{x}_t{t}" for x in ("mood", "sleep") for t in range(3)])
    found = messages(LGLPCCTemporal(3, random_state=0), X)
    assert any("look like feature after feature" in text for text in found)


def test_a_width_that_the_number_of_slices_does_not_divide():
    with pytest.raises(ValueError, match=r"n_slices divides.*7 columns and n_slices=3"):
        LGLPCCTemporal(3).fit(np.zeros((4, 7)))
