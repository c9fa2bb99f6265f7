"""Checks of arguments that every family shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from os import PathLike
from reprlib import Repr
from typing import Any

import numpy as np
from sklearn.utils import check_random_state as _check_random_state

from ..exceptions import PoorDataWarning
from .warn import warn

# Larger tables are refused as mistakes. The product in bytes still fits NumPy's sizes,
# so that a table that is merely too large ends in a MemoryError.
MOST_ROWS = 1 << 36
MOST_COLUMNS = 1 << 23

# Larger than any cluster.
MOST_JOBS = 1 << 20

# Weights are summed, multiplied with squared data and divided by. Outside of these
# limits the results could overflow.
LIGHTEST, HEAVIEST = 1e-100, 1e100

# Copies of a row, on average, that are no surprise.
MOST_COPIES = 10


def check_count(
    name: str, value, low: int = 1, high: int | None = None, *, optional=False
) -> Any:
    """Validate a whole number."""
    if value is None and optional:
        return None
    # bool is a subclass of int, but not a count.
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or not low <= int(value) <= (np.inf if high is None else high):
        limits = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(
            f"{name} must be an integer {limits}{' or None' if optional else ''}, got "
            f"{shown(value)}."
        )
    return int(value)


def check_running(estimator) -> None:
    """Validate the parameters that say how a fit runs: `n_jobs` and `verbose`."""
    check_jobs(getattr(estimator, "n_jobs", None))
    verbose = getattr(estimator, "verbose", 0)
    if not isinstance(verbose, Integral | np.bool_):
        raise ValueError(f"verbose must be an integer or a bool, got {shown(verbose)}.")


def check_jobs(n_jobs) -> None:
    """Validate a number of workers, as joblib takes it."""
    if n_jobs is not None and (
        not isinstance(n_jobs, Integral)
        or isinstance(n_jobs, bool)
        or not 0 < abs(int(n_jobs)) <= MOST_JOBS
    ):
        raise ValueError(
            f"n_jobs must be None or an integer from -{MOST_JOBS} to {MOST_JOBS} other "
            f"than 0, got {shown(n_jobs)}."
        )


def check_choice(name: str, value, choices) -> None:
    """Refuse what is not one of a few strings, or None if that is a choice, too."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {shown(value)}.")


def check_random_state(random_state) -> Any:
    """Turn a seed into a source of random numbers; an error names `random_state`."""
    try:
        return _check_random_state(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be None, a RandomState instance or an integer from 0 to "
            f"{2**32 - 1}, got {shown(random_state)}."
        ) from None


def check_tol(tol) -> None:
    """Refuse a tolerance that is not a number of at least 0."""
    if not isinstance(tol, Real) or not float(tol) >= 0:
        raise ValueError(f"tol must be a number of at least 0, got {shown(tol)}.")


def check_flag(name: str, value) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {shown(value)}.")


def check_numbers(name: str, values, dtype=np.float64) -> np.ndarray:
    """Turn an argument into an array of numbers."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0, dtype=object)
    # An entry that is None is missing; None alone is not an array.
    if array.dtype.kind not in "biuf" or values is None:
        raise ValueError(f"{name} must be an array of numbers, got {shown(values)}.")
    return array if dtype is None else array.astype(dtype, copy=False)


def check_probabilities(name: str, array: np.ndarray) -> None:
    """Refuse numbers outside of [0, 1]."""
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        raise ValueError(
            f"{name} must hold probabilities in [0, 1], got values from "
            f"{array.min():g} to {array.max():g}."
        )


def check_counts(name: str, values) -> np.ndarray:
    """Turn an argument into an array of whole numbers of at least 1."""
    counts = check_numbers(name, values)
    if not (
        (counts >= 1) & (counts <= MOST_COLUMNS) & (counts == np.floor(counts))
    ).all():
        raise ValueError(
            f"{name} must hold whole numbers from 1 to {MOST_COLUMNS}, got "
            f"{shown(values)}."
        )
    return counts.astype(int)


def check_names(name: str, values, n: int) -> list:
    """Turn an argument into a list of n names."""
    names = values.tolist() if isinstance(values, np.ndarray) else values
    # A string is one name, not a list of letters.
    if not isinstance(names, Iterable) or isinstance(names, str | bytes):
        raise ValueError(f"{name} must be a list of {n} names, got {shown(values)}.")
    names = list(names)
    if not all(isinstance(label, Hashable) for label in names):
        raise ValueError(f"{name} must hold names, got {shown(values)}.")
    if len(names) != n:
        raise ValueError(f"{name} must hold {n} names, got {len(names)}.")
    return names


def check_distinct(name: str, names: list) -> None:
    """Refuse names of which two are the same."""
    if len(set(names)) < len(names):
        twice = next(one for one, count in Counter(names).items() if count > 1)
        raise ValueError(
            f"{name} must hold names that differ, got {shown(twice)} twice."
        )


def check_columns(name: str, table) -> None:
    """Refuse a data frame in which two columns have the same name."""
    columns: Any = getattr(table, "columns", None)
    # scikit-learn refuses them from 1.9 on.
    if not getattr(columns, "is_unique", True):
        raise ValueError(
            f"{name} must have no two columns of the same name, got "
            f"{columns[columns.duplicated()][0]!r} twice."
        )


def check_table(name: str, table) -> None:
    """Refuse what is no table, with what to pass instead, and columns of one name."""
    records = isinstance(table, list) and isinstance(next(iter(table), None), Mapping)
    remedy = ""
    if isinstance(table, Mapping) or records:
        remedy = f"; pass pd.DataFrame({name})"
    elif isinstance(table, str | bytes | PathLike):
        remedy = f"; read the file first, for example with pd.read_csv({name})"
    elif getattr(table, "ndim", 2) == 1 and hasattr(table, "to_frame"):
        remedy = f"; pass {name}.to_frame() if it is a single column"
    elif any(hasattr(table, a) for a in ("__len__", "__array__", "shape")):
        # scikit-learn says what is wrong with other arrays.
        check_columns(name, table)
        return
    raise TypeError(
        f"{name} must be a table of rows and columns, an array or a data frame, got "
        f"{shown(table)}{remedy}."
    )


@contextmanager
def within_floats(name: str) -> Iterator[None]:
    """Name the argument whose numbers are too large to be converted."""
    try:
        yield
    except ArithmeticError as error:  # also of decimals
        raise ValueError(
            f"{name} must hold numbers that fit into 64-bit floats, got others: "
            f"{error}."
        ) from None


def check_sample_weight(sample_weight, n_samples: int) -> np.ndarray | None:
    """Validate row weights (n_samples,); a number is the weight of every row."""
    if sample_weight is None:
        return None
    weights = check_numbers("sample_weight", sample_weight)
    if weights.ndim == 0:
        weights = np.full(n_samples, weights)
    low, high = weights.min(initial=np.inf), weights.max(initial=0.0)
    problem = ""
    if weights.shape != (n_samples,):
        problem = (
            f"have one value per row, shape ({n_samples},), got shape {weights.shape}"
        )
    elif np.isnan(weights).any():
        problem = "hold numbers, got NaN"
    elif low < 0:
        problem = f"be non-negative, got a minimum of {low:g}"
    elif high > HEAVIEST:
        problem = (
            f"be at most {HEAVIEST:g}, so that weights can be summed, got a maximum of "
            f"{high:g}"
        )
    elif high < LIGHTEST:
        problem = f"not be all zero, or below {LIGHTEST:g}, got a maximum of {high:g}"
    if problem:
        raise ValueError(f"sample_weight must {problem}.")
    return np.where(weights < LIGHTEST, 0.0, weights)


def is_whole(weights: np.ndarray) -> bool:
    """Whether all weights are counts."""
    return bool((weights == np.floor(weights)).all())


def effective_weights(weights: np.ndarray | None) -> np.ndarray | None:
    """Weights whose sum is the number of rows that the data are worth.

    Whole numbers are counts. Others are sampling weights, whose scale says nothing and
    whose effective number of rows is (sum w)^2 / sum w^2 (Kish, 1965).
    """
    if weights is None or is_whole(weights):
        return weights
    # Equal weights become exactly 1, and squares stay positive.
    shares = weights / weights.max()
    shares[shares < LIGHTEST] = 0.0
    return shares * (shares.sum() / (shares @ shares))


def check_training_weight(sample_weight, n_samples: int) -> np.ndarray | None:
    """Validate the row weights of a fit, and turn them into effective numbers of rows.

    sample_weight (n_samples,) -> weights (n_samples,).
    """
    weights = check_sample_weight(sample_weight, n_samples)
    effective = effective_weights(weights)
    if weights is not None and weights is effective:
        n_rows = np.count_nonzero(weights)
        if weights.sum() > MOST_COPIES * n_rows:
            warn(
                "sample_weight holds whole numbers, which are taken as counts: "
                f"{n_rows} rows stand for {weights.sum():.6g}. If they are sampling "
                "weights, pass sample_weight / sample_weight.mean().",
                PoorDataWarning,
            )
    return effective


_REPR = Repr()
_REPR.maxother = _REPR.maxstring = _REPR.maxlong = 80


def shown(value) -> str:
    """Short text of a value for an error message, on one line."""
    if type(value).__module__.partition(".")[0] == "polars":
        # Its text panics where dates are out of range.
        return f"a polars {type(value).__name__}"
    return " ".join(_REPR.repr(value).split())
