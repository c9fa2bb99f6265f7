"""Row numbers, codes for missing values and chains of rows are noticed."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import datasets

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    NoisyOrEM,
    QuartetStructureLearner,
)
from sklearn_latent._tables.suspects import warn_of_suspects
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.mixed import SEMDBN, sequences_from_frame

N = 400


def said(X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_suspects(X, np.asarray(X))
    return " ".join(str(one.message) for one in caught)


def rows(seed, n=N, d=6, kind="normal"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    if kind == "ratings":
        return np.clip(np.round(X + 3.0), 1, 5)
    return X if kind == "normal" else (X > 1.0).astype(float)


def chain(seed, correlation, n=500, d=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    for t in range(1, n):
        X[t] = correlation * X[t - 1] + np.sqrt(1 - correlation**2) * X[t]
    return X


@pytest.mark.parametrize("kind", ["normal", "ratings", "binary"])
@pytest.mark.parametrize("seed", range(5))
def test_rows_drawn_one_by_one_are_not_suspicious_in_any_order(seed, kind):
    X = rows(seed, kind=kind)
    assert not said(X)
    if kind != "normal":
        assert not said(X[np.argsort(X[:, 0], kind="stable")])
    near = X[:, 0] + np.random.default_rng(seed).normal(size=N)
    assert not said(X[np.argsort(near)])


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "diabetes"])
def test_tables_that_come_sorted_by_class_are_not(name):
    assert not said(getattr(datasets, f"load_{name}")().data)


@pytest.mark.parametrize(
    "column",
    [np.arange(N), 1e6 + 3.0 * np.arange(N), np.random.default_rng(0).permutation(N)],
    ids=["rows", "times", "people"],
)
def test_columns_that_number_rows_are_named(column):
    X = pd.DataFrame(rows(0), columns=list("abcdef")).assign(id=column)
    assert "id: numbers that rise with the rows" in said(X)
    assert "column 6: numbers" in said(X.to_numpy())
    assert not said(X[:25])
    # Prices are whole, too, and may all be different.
    assert not said(X.assign(id=10_000 * column[::-1] % 999_983))


@pytest.mark.parametrize(("low", "high", "code"), [(1, 5, -9), (0, 40, 999)])
def test_codes_for_missing_values_stand_apart(low, high, code):
    X = rows(1)
    X[:, 2] = np.random.default_rng(1).integers(low, high + 1, size=N)
    X[::30, 2] = code
    assert f"{code} in 14 rows of column 2" in said(X)
    assert f"{code} in" in said(X.reshape(N // 2, 2, 6))  # sequences
    X[::7, 2] = 2 * code  # a wide column
    assert not said(X)


@pytest.mark.parametrize("correlation", [0.62, 0.9, 0.99])
def test_rows_that_follow_each_other(correlation):
    X = chain(3, correlation)
    assert "Rows resemble their neighbours" in said(X)
    assert not said(np.random.default_rng(0).permutation(X))


def test_what_is_no_table_in_memory_is_not_looked_at():
    X = sparse.csr_array(np.arange(40.0)[:, None])
    warn_of_suspects(X, X)


@pytest.mark.filterwarnings("ignore::sklearn_latent.exceptions.LatentWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        IdealParentGaussianBN(),
        LPCC(random_state=0),
        SEMDBN(1, n_init=1, max_rounds=1, max_iter=3, random_state=0),
        QuartetStructureLearner(refine=False),
        NoisyOrEM(1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_learner_says_so_once(estimator):
    frame = pd.DataFrame(rows(4, 60, 4, "binary"), columns=list("abcd"))
    frame = frame.assign(id=np.arange(60), age=[*range(30, 88), -99, -99])
    with pytest.warns(PoorDataWarning, match="suspicious") as caught:
        estimator.fit(frame)
    texts = [str(one.message) for one in caught if "suspicious" in str(one.message)]
    assert len(texts) == 1
    assert "id: numbers" in texts[0]
    assert "-99 in 2 rows of age" in texts[0]


def test_times_of_sequences_are_no_suspects():
    frame = pd.DataFrame(rows(5, 200, 3), columns=list("abc"))
    frame = frame.assign(id=np.repeat(np.arange(50), 4), t=np.tile(np.arange(4), 50))
    assert not said(sequences_from_frame(frame, "id", "t"))
