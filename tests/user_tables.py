"""Tables as people store them, and what each family of estimators should make of them.

A table is made from a plain one, of 0 and 1 or of measurements. An estimator must learn
from it what it learns from the plain table, or raise an error that names the column and
the remedy.
"""

import datetime
import warnings
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.mixed import SEMDBN

__all__ = ["ESTIMATORS", "TABLES", "family_of", "plain", "same_model", "try_table"]

NAMES = [f"item {letter}" for letter in "abcdefgh"]
STRUCTURE = np.kron(np.eye(2, dtype=bool), np.ones((1, 4), dtype=bool))
NETWORK = NoisyOrNetwork([0.4, 0.3], np.where(STRUCTURE, 0.2, 1.0), [0.05] * 8)
N_ROWS = 60
FLAGS = NETWORK.sample(N_ROWS, random_state=0)[0].astype(float)
# The columns that tables change, a feature in two slices, and cells of them that are
# missing in some.
ODD = [2, 6]
FIRST = NAMES[2]
GAPS = [3, 50]

ESTIMATORS = {
    "NoisyOrMoMLearner": NoisyOrMoMLearner(STRUCTURE, refine=False),
    "NoisyOrEM": NoisyOrEM(2, max_iter=10, tol=1e-3, random_state=0),
    "QuartetStructureLearner": QuartetStructureLearner(refine=False, random_state=0),
    "IdealParentGaussianBN": IdealParentGaussianBN(max_parents=1, margins="normal"),
    "LPCC": LPCC(max_iter=3, random_state=0),
    "LGLPCCTemporal": LGLPCCTemporal(2, max_iter=3, random_state=0),
    "SEMDBN": SEMDBN(1, 2, 2, n_init=1, max_rounds=1, max_iter=3, random_state=0),
}
FAMILIES = {
    "binary": ["NoisyOrMoMLearner", "NoisyOrEM", "QuartetStructureLearner"],
    "numbers": ["IdealParentGaussianBN"],
    "labels": ["LPCC", "LGLPCCTemporal", "SEMDBN"],
}


def family_of(estimator: str) -> str:
    return next(family for family, names in FAMILIES.items() if estimator in names)


def _measurements():
    """Measurements that depend on two latents."""
    rng = np.random.default_rng(0)
    latents = rng.normal(size=(N_ROWS, 2))
    return np.repeat(latents, 4, axis=1) + 0.7 * rng.normal(size=(N_ROWS, 8))


def plain(kind: str) -> pd.DataFrame:
    """A plain table of a kind: "flags", "measurements", or either "with gaps"."""
    values = FLAGS if kind.startswith("flags") else _measurements()
    # A copy: pandas 2 would write gaps into the shared values.
    frame = pd.DataFrame(values.copy(), columns=NAMES)
    if kind.endswith("gaps"):
        frame.iloc[GAPS, ODD] = np.nan
    return frame


SAME = "the same model"


@dataclass(frozen=True)
class Table:
    """A table, made from a plain one, and what should come of it.

    make: from the plain table to this one
    kind: of the plain table
    binary, numbers, labels: what each family should do: `SAME`, or a pattern of an
        error message, which must also name the column
    arranged: from the plain table to one of the same columns, and labels in the same
        order, as this one, by family
    """

    name: str
    make: Any
    kind: str = "flags"
    binary: str = SAME
    numbers: str = SAME
    labels: str = SAME
    named: str = f"column '{FIRST}'"
    arranged: Any = field(default_factory=dict)


def words(on, off):
    """Replace 1 and 0 by other values in all columns."""
    return lambda frame: pd.DataFrame(
        {
            name: pd.Series(
                [None if np.isnan(v) else (on if v else off) for v in frame[name]],
                dtype=object if not isinstance(on, str) else None,
            )
            for name in frame
        }
    )


def instead(values):
    """Replace the odd columns by given values, over and over."""

    def make(frame):
        column = [values[i % len(values)] for i in range(len(frame))]
        other = frame.copy()
        for place in ODD:
            other.isetitem(place, pd.Series(column, dtype=object).infer_objects())
        return other

    return make


def cells(function):
    """Change each cell of the odd columns, as Python objects."""

    def make(frame):
        other = frame.astype(object)
        for place in ODD:
            column = [function(value) for value in frame.iloc[:, place]]
            other.isetitem(place, pd.Series(column, dtype=object))
        return other

    return make


def ranked(*ranks):
    """The odd columns as the ranks of their labels, for estimators of labels."""
    return {"labels": instead(ranks)}


def chain(*steps):
    def make(frame):
        for step in steps:
            frame = step(frame)
        return frame

    return make


def polars(frame):
    return pl.DataFrame(
        {
            name: frame[name].astype(object).where(frame[name].notna(), None)
            for name in frame
        }
    )


def gaps_as(marker):
    """Missing values of the odd column as some object."""
    return cells(lambda value: marker if np.isnan(value) else value)


def as_dates(frame):
    return instead(list(pd.date_range("2020-01-01", periods=len(frame))))(frame)


def relabel(columns):
    return lambda frame: frame.set_axis(columns, axis=1)


NO_NUMBERS = "Drop the column, or encode it as numbers"
CATEGORIES = "is one of categories.*astype"
TO_NUMERIC = "pd.to_numeric"
ONE_TYPE = "Make them one type"
LPCC_IT = "Use LPCC, whose features are categories"
YES_NO = {"numbers": NO_NUMBERS, "named": f"column '{NAMES[0]}'"}
ARRAY = {"named": "column 2"}
DATES = "These are dates or times. Drop the column"

YES = [
    tuple(pair.split("/"))
    for pair in [
        "yes/no",
        "Yes/No",
        "Y/N",
        "TRUE/FALSE",
        "t/f",
        "on/off",
        "present/absent",
        "Positive/Negative",
        "pos/neg",
        "+/-",
        " yes/no ",
        "Checked/Unchecked",
    ]
]


def group(tables, **expected):
    """Tables of which the same is expected, each a maker or a maker and a kind."""
    for name, made in tables.items():
        yield Table(name, *(made if isinstance(made, tuple) else (made,)), **expected)


def text(on, off):
    return cells(lambda value: on if value else off)


BINARY_WORDS = words("yes", "no")


def as_lists(frame):
    return frame.to_numpy(dtype=object).tolist()


TUPLES = relabel(pd.MultiIndex.from_product([["x"], NAMES]))
FIRST_COLUMN = f"column '{NAMES[0]}'"
GAPPY, MEASURED, MEASURED_GAPPY = (
    "flags with gaps",
    "measurements",
    "measurements with gaps",
)


def refused(message, **expected):
    """All families refuse the table for the same reason."""
    return dict.fromkeys(FAMILIES, message) | expected


TABLES = [
    *(
        Table(
            f"{on!r} and {off!r}",
            words(on, off),
            # Labels are in alphabetical order.
            arranged={"labels": (lambda X: 1 - X)} if on < off else {},
            **YES_NO,
        )
        for on, off in YES
    ),
    Table("'1' and '0'", words("1", "0"), numbers=TO_NUMERIC, named=FIRST_COLUMN),
    *group(
        {
            "yes and no with gaps": (BINARY_WORDS, GAPPY),
            "string type": (chain(BINARY_WORDS, lambda X: X.astype("string")), GAPPY),
            "yes and no, polars": (chain(BINARY_WORDS, polars), GAPPY),
        },
        **YES_NO,
    ),
    *group(
        {
            "categories yes and no": chain(
                BINARY_WORDS, lambda X: X.astype("category")
            ),
            "yes and no, polars categories": chain(
                BINARY_WORDS, polars, lambda X: X.cast(pl.Categorical)
            ),
            "yes and no, polars enumeration": chain(
                BINARY_WORDS, polars, lambda X: X.cast(pl.Enum(["no", "yes"]))
            ),
            "categories 0 and 1": lambda X: X.astype("category"),
            "categories True and False": lambda X: X.astype(bool).astype("category"),
        },
        numbers=CATEGORIES,
        named=FIRST_COLUMN,
    ),
    *group(
        {
            "yes and no, array of text": chain(
                BINARY_WORDS, lambda X: X.to_numpy(dtype=str)
            ),
            "yes and no, array of objects": (
                chain(BINARY_WORDS, lambda X: X.to_numpy(dtype=object)),
                GAPPY,
            ),
            "yes and no, lists": chain(BINARY_WORDS, as_lists),
        },
        numbers=NO_NUMBERS,
        named="column 0",
    ),
    Table("one feature of yes and no", text("yes", "no"), numbers=NO_NUMBERS),
    Table(
        "one feature of yes and no, lists",
        chain(text("yes", "no"), as_lists),
        numbers=NO_NUMBERS,
        **ARRAY,
    ),
    *group(
        {
            "bool": lambda X: X.astype(bool),
            "bool, polars": chain(lambda X: X.astype(bool), polars),
            "True and False as objects": (words(True, False), GAPPY),
            "nullable boolean": (lambda X: X.astype("boolean"), GAPPY),
            "nullable integers": (lambda X: X.astype("Int64"), GAPPY),
            "nullable floats": (lambda X: X.astype("Float64"), MEASURED_GAPPY),
            "arrow types": (lambda X: X.convert_dtypes(dtype_backend="pyarrow"), GAPPY),
            "bytes of 8 bits": lambda X: X.astype(np.uint8),
            "floats of 16 bits": lambda X: X.astype(np.float16),
            "polars with gaps": (polars, GAPPY),
            "lists": (lambda X: X.to_numpy().tolist(), MEASURED_GAPPY),
            "objects": (lambda X: X.astype(object), MEASURED_GAPPY),
            "objects, array": (lambda X: X.to_numpy(dtype=object), MEASURED),
            "Fortran order": (lambda X: np.asfortranarray(X.to_numpy()), MEASURED),
            "None is missing": (gaps_as(None), MEASURED_GAPPY),
            "pd.NA is missing": (gaps_as(pd.NA), GAPPY),
            "decimals": (cells(lambda v: Decimal(float(v))), MEASURED),
            "fractions": (cells(lambda v: Fraction(float(v))), MEASURED),
            "numbers as names": relabel(range(2010, 2018)),
            "tuples as names": TUPLES,
            "an index of its own": lambda X: X.set_axis(X.index + 900, axis=0),
        }
    ),
    Table(
        "other order",
        lambda X: X.iloc[:, ::-1],
        arranged=dict.fromkeys(FAMILIES, lambda X: X.iloc[:, ::-1]),
    ),
    Table(
        "sparse",
        lambda X: sparse.csr_array(X.to_numpy()),
        numbers="[Ss]parse",
        labels="[Ss]parse",
        named="",
    ),
    Table(
        "codes 1 and 2",
        lambda X: X + 1,
        binary="binarize=1.0",
        named="item a",
        arranged={"numbers": lambda X: X + 1},
    ),
    Table(
        "codes 1 and 2 in one feature",
        text(2, 1),
        binary="pass X == 1",
        named=f"columns {FIRST}",
        arranged={"numbers": text(2, 1)},
    ),
    Table("codes '1' and '2'", text("2", "1"), binary=TO_NUMERIC, numbers=TO_NUMERIC),
    Table(
        "male and female",
        text("male", "female"),
        binary=f"X\\['{FIRST}'\\] == 'female'",
        numbers=NO_NUMBERS,
    ),
    Table(
        "male and female, array",
        chain(text("male", "female"), lambda X: X.to_numpy()),
        binary="X\\[:, 2\\] == 'female'",
        numbers=NO_NUMBERS,
        **ARRAY,
    ),
    # Words in one feature: what a binary one is told, and what numbers are.
    *(
        Table(
            name,
            instead(values),
            binary=binary,
            numbers=numbers,
            arranged=ranked(*ranks),
        )
        for name, values, ranks, binary, numbers in [
            (
                "yes, no and maybe",
                ["yes", "no", "maybe"],
                (2, 1, 0),
                LPCC_IT,
                NO_NUMBERS,
            ),
            (
                "words of two pairs",
                ["yes", "no", "true"],
                (2, 0, 1),
                LPCC_IT,
                NO_NUMBERS,
            ),
            (
                "'NA' beside yes and no",
                ["yes", "no", "NA"],
                (2, 1, 0),
                "'NA' means missing, replace it by None",
                NO_NUMBERS,
            ),
            (
                "'?' beside 0 and 1",
                ["0", "1", "?"],
                (0, 1, 2),
                "means missing, replace it by None",
                TO_NUMERIC,
            ),
            ("'' beside numbers", [1, 0, ""], (1, 0, 2), TO_NUMERIC, TO_NUMERIC),
            ("numbers beside text", [1, 0, "many"], (1, 0, 2), ONE_TYPE, ONE_TYPE),
        ]
    ),
    *group(
        {
            "measurements as text": (cells(lambda v: f"{v:.3f}"), MEASURED),
            "both 1 and '1'": instead([1, "1", 0]),
        },
        **refused(TO_NUMERIC, named=FIRST),
    ),
    *group(
        {
            "dates": as_dates,
            "dates, polars": chain(as_dates, polars),
            "dates as objects": instead([datetime.date(2020, 1, 1)]),
            "times of day": instead([datetime.time(9, 30)]),
            "durations": instead([pd.Timedelta("1D")]),
            "periods": instead([pd.Period("2020Q1"), pd.Period("2020Q2")]),
        },
        **refused(DATES),
    ),
    Table(
        "all dates, array",
        lambda X: X.to_numpy().astype("M8[D]"),
        **refused(DATES, named="column 0"),
    ),
    Table("bytes", instead([b"yes", b"no"]), **refused("Decode")),
    Table("lists in cells", instead([[1], [2]]), **refused("Drop the column")),
    Table("huge integers", text(10**400, 0), **refused("64-bit floats")),
    Table(
        "yes and no under tuples",
        chain(BINARY_WORDS, TUPLES),
        numbers=NO_NUMBERS,
        named=r"column \('x', 'item a'\)",
    ),
    Table(
        "one name twice",
        relabel(["a", "a", *NAMES[2:]]),
        **refused("same name", named="'a'"),
    ),
]


def try_table(table: Table, estimator: str) -> tuple[Any, Any, list]:
    """A model, or the error instead, the table, and the warnings."""
    X = table.make(plain(table.kind))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model: Any = _fitted(estimator, X)
        except (ValueError, TypeError) as error:
            model = error
    expected = LatentWarning | ConvergenceWarning
    assert all(issubclass(w.category, expected) for w in caught), caught
    return model, X, [str(w.message) for w in caught]


def same_model(table: Table, estimator: str, model, X) -> bool:
    """Whether a model is that of the plain table, also for the rows as they are."""
    arranged = table.arranged.get(family_of(estimator), _as_it_is)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, expected = _expected(table.kind, arranged, estimator)
        return np.allclose(
            model.score_samples(X), expected.score_samples(rows), atol=1e-8
        ) and np.allclose(
            np.asarray(model.transform(X), dtype=float),
            np.asarray(expected.transform(rows), dtype=float),
            atol=1e-8,
        )


def _as_it_is(frame):
    return frame


@cache
def _expected(kind, arranged, estimator):
    rows = arranged(plain(kind))
    return rows, _fitted(estimator, rows)


def _fitted(estimator, X):
    return clone(ESTIMATORS[estimator]).fit(X)
