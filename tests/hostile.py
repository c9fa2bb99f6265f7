"""Input that no program should trust, and what may come of it.

``FUZZ_EXAMPLES`` multiplies the number of inputs that each test tries: 100 takes hours
where the default takes half a minute. ``FUZZ_COUNT`` names a file to which each process
appends the number of inputs it tried.
"""

import atexit
import copy
import dis
import os
import re
import traceback
import warnings
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from joblib import parallel_config
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sklearn_latent.exceptions import LatentWarning

__all__ = [
    "INPUTS_TRIED",
    "JUNK",
    "arguments",
    "attempt",
    "damaged",
    "drive_common",
    "fitting",
    "fuzz",
    "n_rows_of",
    "numbers",
    "options",
    "probabilities",
    "relabelled",
    "structures",
    "tables",
    "weights",
    "width_of",
]

EXAMPLES = float(os.environ.get("FUZZ_EXAMPLES", "1"))

# Shrinking an example that fails can take minutes: FUZZ_SHRINK=0 shows it as it is.
SKIPPED_PHASES = {"shrink", "explain"} if os.environ.get("FUZZ_SHRINK") == "0" else {}

INPUTS_TRIED: Counter = Counter()


def fuzz(max_examples):
    """Settings of a fuzz test: number of inputs, and how long one may take."""
    return settings(
        max_examples=max(1, int(max_examples * EXAMPLES)),
        # A hang is a fault too; the machine may be busy.
        deadline=timedelta(seconds=60),
        suppress_health_check=list(HealthCheck),
        phases=[phase for phase in Phase if phase.name not in SKIPPED_PHASES],
    )


@atexit.register
def _report():
    if os.environ.get("FUZZ_COUNT") and INPUTS_TRIED:
        with Path(os.environ["FUZZ_COUNT"]).open("a") as file:
            for name, count in sorted(INPUTS_TRIED.items()):
                file.write(f"{name}: {count}\n")


def attempt(name, function, *arguments, **options):
    """Call; what came back, or None after an exception that is documented.

    Wrong values are ValueError or TypeError with a message that somebody raised on
    purpose. Of warnings only our own, that an iteration did not converge, and
    scikit-learn's on names are expected: a RuntimeWarning of NumPy is a fault that
    nobody thought of.
    """
    INPUTS_TRIED[name] += 1
    # Threads, because it takes seconds to start processes for a handful of rows.
    with warnings.catch_warnings(), parallel_config(backend="threading"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", LatentWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "X (has|does not have valid) feature names")
        # scikit-learn turns what it is given into an array, with NumPy's own remarks.
        warnings.filterwarnings("ignore", category=np.exceptions.ComplexWarning)
        warnings.filterwarnings("ignore", ".*encountered in cast", RuntimeWarning)
        # scikit-learn sums to look for infinities.
        warnings.filterwarnings("ignore", "invalid value encountered in reduce")
        warnings.filterwarnings("ignore", "pandas.DataFrame with sparse columns")
        try:
            result = function(*arguments, **options)
        except (ValueError, TypeError) as error:
            assert str(error), "an error without a message"
            if not _is_meant(error):
                raise AssertionError(f"an accident: {error!r}") from error
            return None
    INPUTS_TRIED[f"{name}, accepted"] += 1
    return result


def _is_meant(error) -> bool:
    """Whether somebody raised an error on purpose.

    That is, a ``raise`` of this library or of scikit-learn, or what goes wrong inside
    scikit-learn's validation of arrays.
    """
    last = None
    for last, _ in traceback.walk_tb(error.__traceback__):
        if Path(last.f_code.co_filename).match(VALIDATION):
            return True
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    # The instruction that failed, rather than its line: sources may change meanwhile.
    raised = last.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    if "joblib" in last.f_code.co_filename and error.__cause__ is not None:
        # A worker's error is raised again; where it came from is left as text.
        file, line = WORKER_FRAME.findall(str(error.__cause__))[-1]
        return "sklearn" in file and line.startswith("raise ")
    return raised and "sklearn" in last.f_code.co_filename


VALIDATION = "sklearn/utils/*.py"
WORKER_FRAME = re.compile(r'File "(.*)", line \d+, in .*\n\s*(.*)')


# Values ---------------------------------------------------------------------------

ODD_NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-320, 1e-12, 1e16, 1e308, -1e308]
NOT_NUMBERS = [np.nan, np.inf, -np.inf]
JUNK = [
    None,
    "",
    "a",
    "auto",
    b"x",
    True,
    -1,
    0,
    1,
    3,
    10**30,
    1j,
    np.float64("nan"),
    np.inf,
    (),
    [],
    {},
    [1, 2],
    {"a": 1},
    object,
    np.array([]),
    np.array(["a"]),
    np.ones((2, 2)),
    np.datetime64("2020-01-01"),
    [[1], [1, 2]],
    lambda: None,
]


@st.composite
def arguments(draw, *valid):
    """A valid argument, or sometimes junk."""
    # hypothesis would count a strategy that is named five times as one.
    return draw(st.sampled_from(JUNK if draw(st.integers(0, 5)) == 5 else valid))


@st.composite
def options(draw, **valid):
    """Parameters of an estimator by name, at most one of which is junk."""
    chosen = {name: draw(st.sampled_from(values)) for name, values in valid.items()}
    if draw(st.integers(0, 3)) == 3:
        chosen[draw(st.sampled_from(sorted(valid)))] = draw(st.sampled_from(JUNK))
    return chosen


numbers = st.one_of(
    st.sampled_from(ODD_NUMBERS + NOT_NUMBERS), st.floats(-3, 3), st.floats()
)
probabilities = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5]), numbers)


# Tables ---------------------------------------------------------------------------


@st.composite
def plain_tables(draw, max_rows=12, max_columns=6):
    """Two-dimensional arrays, of ordinary and of extreme values."""
    shape = tuple(
        draw(st.sampled_from([*range(1, most + 1), *range(1, most + 1), 0]))
        for most in (max_rows, max_columns)
    )
    elements = draw(
        st.sampled_from(
            [
                st.sampled_from([0.0, 1.0]),
                st.sampled_from([0.0, 1.0, np.nan]),
                st.floats(-3, 3, width=32),
                st.sampled_from([0.0, 1.0, 2.0, 3.0]),
                st.sampled_from(ODD_NUMBERS),
                st.sampled_from(ODD_NUMBERS + NOT_NUMBERS),
            ]
        )
    )
    X = draw(hnp.arrays(np.float64, shape, elements=elements))
    for change in draw(st.lists(st.sampled_from(list(CHANGES)), max_size=2)):
        X = CHANGES[change](X)
    return X


CHANGES = {
    "duplicate column": lambda X: np.hstack([X, X[:, :1]]),
    "constant column": lambda X: np.hstack([X, np.ones((len(X), 1))]),
    "missing column": lambda X: np.hstack([X, np.full((len(X), 1), np.nan)]),
    "missing row": lambda X: np.vstack([X, np.full((1, X.shape[1]), np.nan)]),
    "many rows": lambda X: np.repeat(X, 7, axis=0),
    "one row": lambda X: X[:1],
    "reversed": lambda X: X[::-1, ::-1],
    "fortran": np.asfortranarray,
}

DTYPES = [
    "float64",
    "float32",
    "float16",
    "int8",
    "uint8",
    "int64",
    "uint64",
    "bool",
    "object",
    "complex128",
    "U5",
    "S3",
    "M8[s]",
    "m8[D]",
]


def _as_type(X, dtype):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        clean = np.nan_to_num(X) if np.dtype(dtype).kind in "iubM" else X
        if np.dtype(dtype).kind == "M":
            clean = clean.astype(np.int64, copy=False)
        return clean.astype(dtype)


def _frame(X):
    return pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])


# What people write instead of 0 and 1, and what should never be in a cell.
WORDS = [
    ("yes", "no"),
    ("Y", "N"),
    ("TRUE", "FALSE"),
    ("1", "0"),
    ("+", "-"),
    ("male", "female"),
    ("", "x"),
    ("NA", "?"),
    (True, False),
    (1, "1"),
    (2, 1),
    (Decimal("1.5"), Fraction(1, 3)),
    (10**400, 0),
    (b"yes", b"no"),
    (pd.Timestamp("2020-01-01"), pd.NaT),
    (pd.Timedelta("1D"), pd.Timedelta("2D")),
    (pd.Period("2020Q1"), None),
    (pd.Interval(0, 1), None),
    (1j, 0),
    ([1], (2,)),
    ({}, None),
    (np.str_("yes"), "no"),
    (Decimal("sNaN"), 1),
    (np.nan, pd.NA),
]


def _words(X, pair, share=1.0):
    """Objects instead of numbers, in all columns or in the first ones."""
    on, off = pair
    other = X.astype(object)
    for j in range(int(np.ceil(X.shape[1] * share))):
        for i in range(len(X)):
            other[i, j] = None if X[i, j] != X[i, j] else (on if X[i, j] > 0 else off)
    return other


# Objects in the containers that people keep them in.
WORD_FORMS = {
    "array": lambda X: X,
    "list": lambda X: X.tolist(),
    "text": lambda X: X.astype(str),
    "pandas": lambda X: _frame(X),
    "pandas, inferred": lambda X: _frame(X).infer_objects(),
    "pandas, strings": lambda X: _frame(X).astype("string"),
    "pandas, nullable": lambda X: _frame(X).convert_dtypes(),
    "pandas, arrow": lambda X: _frame(X).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, categories": lambda X: _frame(X).astype("category"),
    "pandas, tuples as names": lambda X: _frame(X).set_axis(
        pd.MultiIndex.from_product([["x"], range(X.shape[1])]), axis=1
    ),
    "polars": lambda X: pl.DataFrame(dict(_frame(X))),
    "polars, categories": lambda X: pl.DataFrame(dict(_frame(X))).cast(pl.Categorical),
    "three dimensions": lambda X: X[:, :, None],
}

FORMS = {
    "array": lambda X: X,
    "list": lambda X: X.tolist(),
    "pandas": _frame,
    "pandas, numbers as names": pd.DataFrame,
    "pandas, reordered": lambda X: _frame(X).iloc[:, ::-1],
    "pandas, one column less": lambda X: _frame(X).iloc[:, 1:],
    "pandas, names twice": lambda X: pd.DataFrame(X, columns=["f0"] * X.shape[1]),
    "pandas, nullable": lambda X: _frame(X).convert_dtypes(),
    "pandas, categories": lambda X: _frame(X).astype("category"),
    "polars": lambda X: pl.DataFrame(dict(_frame(X))) if X.shape[1] else pl.DataFrame(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "one dimension": np.ravel,
    "three dimensions": lambda X: X[:, :, None],
    "read-only": lambda X: _frozen(X),
    "masked": lambda X: np.ma.masked_invalid(X),
    "ragged": lambda X: [row[: i + 1].tolist() for i, row in enumerate(X)],
}


def _frozen(X):
    X = X.copy()
    X.setflags(write=False)
    return X


@st.composite
def tables(draw, **kwargs):
    """Tables in all forms in which people may pass them, and things that are none."""
    if draw(st.integers(0, 30)) == 30:
        return draw(st.sampled_from(JUNK))
    X = draw(plain_tables(**kwargs))
    # Most are what a user would mean, so that fits are reached.
    kind = draw(st.integers(0, 5))
    if kind == 5 and X.size:
        words = _words(
            X, draw(st.sampled_from(WORDS)), draw(st.sampled_from([1.0, 0.01]))
        )
        form = WORD_FORMS[draw(st.sampled_from(list(WORD_FORMS)))]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return form(words)
        except Exception:
            return words
    if kind == 0:
        X = _as_type(X, draw(st.sampled_from(DTYPES)))
    if kind == 1 or (kind == 0 and draw(st.booleans())):
        name = draw(st.sampled_from(list(FORMS)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return FORMS[name](X)
        except Exception:
            # What pandas or SciPy refuse to make cannot be passed either.
            return X
    return X


EXTREME_WEIGHTS = [0.0, 1.0, 1e-320, 1e-308, 1e-100, 1e-90, 1e90, 1e100, 1e308]
ODD_WEIGHTS = [0.3, 1e-12, 1e16, -1.0, np.nan, np.inf, *EXTREME_WEIGHTS]


NUMBERS_OR_GAPS = st.sampled_from([*ODD_NUMBERS, np.nan])


@st.composite
def fitting(draw, width, elements=NUMBERS_OR_GAPS):
    """Tables of a given width, or sometimes any."""
    if draw(st.integers(0, 3)) == 3:
        return draw(tables(max_columns=max(width, 1)))
    return draw(hnp.arrays(np.float64, (3, width), elements=elements))


@st.composite
def weights(draw, n_rows):
    """Row weights, mostly none or right."""
    kind = draw(st.integers(0, 9))
    if kind <= 4:
        return None
    if kind <= 6:
        return draw(
            hnp.arrays(np.float64, n_rows, elements=st.sampled_from([0.0, 1.0, 2.0]))
        )
    if kind == 7:
        odd = st.sampled_from(ODD_WEIGHTS)
        some = draw(st.sampled_from([odd, odd, st.sampled_from(EXTREME_WEIGHTS)]))
        return draw(hnp.arrays(np.float64, n_rows, elements=some))
    if kind == 8:
        return draw(
            hnp.arrays(np.float64, n_rows + 1, elements=st.sampled_from([0.0, 1.0]))
        )
    return draw(st.sampled_from(JUNK))


RELABELLED = {
    "as it was": lambda frame: frame,
    "reordered": lambda frame: frame.iloc[:, ::-1],
    "one column less": lambda frame: frame.iloc[:, 1:],
    "one column more": lambda frame: frame.assign(other=1.0),
    "other names": lambda frame: frame.add_prefix("g"),
    "one name twice": lambda frame: frame.set_axis(
        [frame.columns[0]] * frame.shape[1], axis=1
    ),
    "numbers as names": lambda frame: frame.set_axis(range(frame.shape[1]), axis=1),
    "no names": lambda frame: frame.to_numpy(),
    "polars": lambda frame: pl.DataFrame(dict(frame)),
    "no rows": lambda frame: frame.iloc[:0],
    "text": lambda frame: frame.astype(str),
    "words": lambda frame: (frame > 0).replace({True: "yes", False: "no"}),
    "categories": lambda frame: frame.astype("category"),
    "nullable": lambda frame: frame.convert_dtypes(),
    "dates": lambda frame: frame.assign(
        **{str(frame.columns[0]): pd.Timestamp("2020-01-01")}
    ),
}


def relabelled(frame):
    """The same table with other names, or with columns in other places."""
    return st.sampled_from(list(RELABELLED)).map(lambda form: RELABELLED[form](frame))


def drive_common(data, name, model, X):
    """Call what every fitted estimator has, with odd arguments."""
    rows, seed = data.draw(arguments(1, 3)), data.draw(arguments(0, None))
    drawn = attempt(f"{name}.sample", model.sample, rows, seed)
    assert drawn is None or len(drawn[0]) == len(drawn[1]) == rows
    for method in (model.score, model.bic, model.aic):
        value = attempt(f"{name}.{method.__name__}", method, X)
        assert value is None or not np.isnan(value)
    names = attempt(
        f"{name}.get_feature_names_out",
        model.get_feature_names_out,
        data.draw(arguments(None)),
    )
    if names is not None:
        width = np.asarray(attempt(f"{name}.transform", model.transform, X)).shape[1]
        assert len(names) == width
    graph = model.to_networkx()
    assert len(model.to_frame()) == graph.number_of_edges()
    drive_words(data, name, model, X)


CHECK_COLUMNS = ["check", "what", "observed", "expected", "z", "ok"]


def drive_words(data, name, model, X):
    """What a person reads of a fitted model: always there, whatever the rows are."""
    assert attempt(f"{name}.summary", model.summary) == model.summary()
    other = data.draw(tables())
    for rows in (X, other):
        checks = attempt(f"{name}.diagnose", model.diagnose, rows)
        assert checks is None or list(checks.columns) == CHECK_COLUMNS
        assert checks is None or checks[["observed", "expected"]].notna().all(axis=None)
    attempt(f"{name}.summary(X)", model.summary, other)
    focus, strength = data.draw(arguments(None)), data.draw(arguments("auto", 0.5))
    for export in (model.to_dot, model.to_mermaid):
        attempt(f"{name}.{export.__name__}", export, min_strength=strength, focus=focus)
    row = X[:1] if hasattr(X, "__getitem__") and n_rows_of(X) else None
    rows = [row, X, other, *data.draw(st.tuples(st.sampled_from(JUNK)))]
    options = {"latents": data.draw(arguments(None, 0))}
    found = attempt(
        f"{name}.explain", model.explain, data.draw(st.sampled_from(rows)), **options
    )
    if found is not None:
        table = found.to_frame()
        for latent, base, total in zip(
            found.latent_names, found.base, found.total, strict=True
        ):
            added = table.contribution[table.latent == latent].sum()
            np.testing.assert_allclose(base + added, total, atol=1e-6)
        assert str(found)


@st.composite
def damaged(draw, stored):
    """Plain form of a model with one of its values replaced by junk."""
    stored = copy.deepcopy(stored)
    place = stored
    while True:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = draw(st.sampled_from(list(keys)))
        if not isinstance(place[key], dict | list) or not place[key]:
            break
        if draw(st.integers(0, 3)) == 3:
            break
        place = place[key]
    place[key] = draw(st.sampled_from(JUNK))
    return stored


def n_rows_of(X):
    """Number of rows, if it has any."""
    try:
        return int(X.shape[0]) if hasattr(X, "shape") else len(X)
    except (TypeError, IndexError):
        return 0


@st.composite
def structures(draw, n_features, max_latents=4):
    """Structures, mostly of the right width."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from(JUNK))
    width = n_features + (kind == 1)
    shape = (draw(st.integers(0, max_latents)), width)
    structure = draw(hnp.arrays(bool, shape))
    if kind == 2:
        return sparse.csr_array(structure)
    if kind == 3:
        return np.where(structure, draw(numbers), 0.0)
    if kind == 4:
        return structure.tolist()
    return structure


def width_of(X):
    """Number of columns, if it has any."""
    try:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
    except ValueError:
        return 1
    return int(shape[1]) if len(shape) > 1 else 1
