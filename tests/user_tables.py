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
YES_NO = {"numbers": NO_NUMBERS, "named": f"column '{NAMES[0]}'"}
ARRAY = {"named": "column 2"}
DATES = "These are dates or times. Drop the column"
DATED = {"binary": DATES, "numbers": DATES, "labels": DATES}

YES = [
    ("yes", "no"),
    ("Yes", "No"),
    ("Y", "N"),
    ("TRUE", "FALSE"),
    ("t", "f"),
    ("on", "off"),
    ("present", "absent"),
    ("Positive", "Negative"),
    ("pos", "neg"),
    ("+", "-"),
    (" yes", "no "),
    ("Checked", "Unchecked"),
]
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
    Table(
        "'1' and '0'", words("1", "0"), numbers=TO_NUMERIC, named=f"column '{NAMES[0]}'"
    ),
    Table("yes and no with gaps", words("yes", "no"), "flags with gaps", **YES_NO),
    Table(
        "categories yes and no",
        chain(words("yes", "no"), lambda X: X.astype("category")),
        **(YES_NO | {"numbers": CATEGORIES}),
    ),
    Table(
        "string type",
        chain(words("yes", "no"), lambda X: X.astype("string")),
        "flags with gaps",
        **YES_NO,
    ),
    Table(
        "yes and no, polars",
        chain(words("yes", "no"), polars),
        "flags with gaps",
        **YES_NO,
    ),
    Table(
        "yes and no, polars categories",
        chain(words("yes", "no"), polars, lambda X: X.cast(pl.Categorical)),
        **(YES_NO | {"numbers": CATEGORIES}),
    ),
    Table(
        "yes and no, polars enumeration",
        chain(words("yes", "no"), polars, lambda X: X.cast(pl.Enum(["no", "yes"]))),
        **(YES_NO | {"numbers": CATEGORIES}),
    ),
    Table(
        "yes and no, array of text",
        chain(words("yes", "no"), lambda X: X.to_numpy(dtype=str)),
        **(YES_NO | {"named": "column 0"}),
    ),
    Table(
        "yes and no, array of objects",
        chain(words("yes", "no"), lambda X: X.to_numpy(dtype=object)),
        "flags with gaps",
        **(YES_NO | {"named": "column 0"}),
    ),
    Table(
        "yes and no, lists",
        chain(words("yes", "no"), lambda X: X.to_numpy(dtype=object).tolist()),
        **(YES_NO | {"named": "column 0"}),
    ),
    Table(
        "one feature of yes and no",
        cells(lambda v: "yes" if v else "no"),
        numbers=NO_NUMBERS,
    ),
    Table(
        "one feature of yes and no, lists",
        chain(cells(lambda v: "yes" if v else "no"), lambda X: X.to_numpy().tolist()),
        numbers=NO_NUMBERS,
        **ARRAY,
    ),
    Table("bool", lambda X: X.astype(bool)),
    Table("bool, polars", chain(lambda X: X.astype(bool), polars)),
    Table("True and False as objects", words(True, False), "flags with gaps"),
    Table("nullable boolean", lambda X: X.astype("boolean"), "flags with gaps"),
    Table("nullable integers", lambda X: X.astype("Int64"), "flags with gaps"),
    Table("nullable floats", lambda X: X.astype("Float64"), "measurements with gaps"),
    Table(
        "arrow types",
        lambda X: X.convert_dtypes(dtype_backend="pyarrow"),
        "flags with gaps",
    ),
    Table("bytes of 8 bits", lambda X: X.astype(np.uint8)),
    Table("floats of 16 bits", lambda X: X.astype(np.float16)),
    Table("polars with gaps", polars, "flags with gaps"),
    Table("lists", lambda X: X.to_numpy().tolist(), "measurements with gaps"),
    Table("objects", lambda X: X.astype(object), "measurements with gaps"),
    Table("objects, array", lambda X: X.to_numpy(dtype=object), "measurements"),
    Table("Fortran order", lambda X: np.asfortranarray(X.to_numpy()), "measurements"),
    Table("None is missing", gaps_as(None), "measurements with gaps"),
    Table("pd.NA is missing", gaps_as(pd.NA), "flags with gaps"),
    Table("decimals", cells(lambda v: Decimal(float(v))), "measurements"),
    Table("fractions", cells(lambda v: Fraction(float(v))), "measurements"),
    Table(
        "categories 0 and 1",
        lambda X: X.astype("category"),
        numbers=CATEGORIES,
        named=f"column '{NAMES[0]}'",
    ),
    Table(
        "categories True and False",
        lambda X: X.astype(bool).astype("category"),
        numbers=CATEGORIES,
        named=f"column '{NAMES[0]}'",
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
        cells(lambda v: int(v) + 1),
        binary="pass X == 1",
        named=f"columns {FIRST}",
        arranged={"numbers": cells(lambda v: int(v) + 1)},
    ),
    Table(
        "codes '1' and '2'",
        cells(lambda v: "2" if v else "1"),
        binary=TO_NUMERIC,
        numbers=TO_NUMERIC,
    ),
    Table(
        "male and female",
        cells(lambda v: "male" if v else "female"),
        binary=f"X\\['{FIRST}'\\] == 'female'",
        numbers=NO_NUMBERS,
    ),
    Table(
        "male and female, array",
        chain(cells(lambda v: "male" if v else "female"), lambda X: X.to_numpy()),
        binary="X\\[:, 2\\] == 'female'",
        numbers=NO_NUMBERS,
        **ARRAY,
    ),
    Table(
        "yes, no and maybe",
        instead(["yes", "no", "maybe"]),
        binary="Use LPCC, whose features are categories",
        numbers=NO_NUMBERS,
        arranged=ranked(2, 1, 0),
    ),
    Table(
        "words of two pairs",
        instead(["yes", "no", "true"]),
        binary="Use LPCC, whose features are categories",
        numbers=NO_NUMBERS,
        arranged=ranked(2, 0, 1),
    ),
    Table(
        "'NA' beside yes and no",
        instead(["yes", "no", "NA"]),
        binary="'NA' means missing, replace it by None",
        numbers=NO_NUMBERS,
        arranged=ranked(2, 1, 0),
    ),
    Table(
        "'?' beside 0 and 1",
        instead(["0", "1", "?"]),
        binary="means missing, replace it by None",
        numbers=TO_NUMERIC,
        arranged=ranked(0, 1, 2),
    ),
    Table(
        "'' beside numbers",
        instead([1, 0, ""]),
        binary=TO_NUMERIC,
        numbers=TO_NUMERIC,
        arranged=ranked(1, 0, 2),
    ),
    Table(
        "measurements as text",
        cells(lambda v: f"{v:.3f}"),
        "measurements",
        binary=TO_NUMERIC,
        numbers=TO_NUMERIC,
        labels=TO_NUMERIC,
        named=FIRST,
    ),
    Table(
        "both 1 and '1'",
        instead([1, "1", 0]),
        binary=TO_NUMERIC,
        numbers=TO_NUMERIC,
        labels=TO_NUMERIC,
        named=FIRST,
    ),
    Table(
        "numbers beside text",
        instead([1, 0, "many"]),
        binary="Make them one type",
        numbers="Make them one type",
        arranged=ranked(1, 0, 2),
    ),
    Table("dates", as_dates, **DATED),
    Table("dates, polars", chain(as_dates, polars), **DATED),
    Table("dates as objects", instead([datetime.date(2020, 1, 1)]), **DATED),
    Table("times of day", instead([datetime.time(9, 30)]), **DATED),
    Table("durations", instead([pd.Timedelta("1D")]), **DATED),
    Table("periods", instead([pd.Period("2020Q1"), pd.Period("2020Q2")]), **DATED),
    Table(
        "all dates, array",
        lambda X: X.to_numpy().astype("M8[D]"),
        **(DATED | {"named": "column 0"}),
    ),
    Table(
        "bytes",
        instead([b"yes", b"no"]),
        binary="Decode",
        numbers="Decode",
        labels="Decode",
    ),
    Table(
        "lists in cells",
        instead([[1], [2]]),
        binary="Drop the column",
        numbers="Drop the column",
        labels="Drop the column",
    ),
    Table(
        "huge integers",
        cells(lambda value: 10**400 if value else 0),
        binary="64-bit floats",
        numbers="64-bit floats",
        labels="64-bit floats",
    ),
    Table("numbers as names", relabel(range(2010, 2018))),
    Table("tuples as names", relabel(pd.MultiIndex.from_product([["x"], NAMES]))),
    Table(
        "yes and no under tuples",
        chain(words("yes", "no"), relabel(pd.MultiIndex.from_product([["x"], NAMES]))),
        **(YES_NO | {"named": r"column \('x', 'item a'\)"}),
    ),
    Table(
        "one name twice",
        relabel(["a", "a", *NAMES[2:]]),
        binary="same name",
        numbers="same name",
        labels="same name",
        named="'a'",
    ),
    Table(
        "other order",
        lambda X: X.iloc[:, ::-1],
        arranged=dict.fromkeys(FAMILIES, lambda X: X.iloc[:, ::-1]),
    ),
    Table("an index of its own", lambda X: X.set_axis(X.index + 900, axis=0)),
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
