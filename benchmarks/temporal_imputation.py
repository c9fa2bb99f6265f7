"""Imputation of panels: latent models and common methods.

Reproduces Section 4.3 of Halbersberg and Lerner (2020), "Local to global learning of a
latent dynamic Bayesian network": models learned from complete sequences of G3 impute
sequences from which 5 to 25% of the values were deleted. The alternatives are the naive
rule of the paper (the value of the slice before, else of the slice after, else the most
frequent one), the last known value, scikit-learn's `KNNImputer` and `IterativeImputer`,
and structural EM. Real panels are in `temporal_panels.py`.

All methods get the same categories. Those of G3 have no order, so `KNNImputer` gets
indicator columns, of which the largest imputed one determines the category, and
`IterativeImputer` is also run with trees that predict classes.

    python benchmarks/temporal_imputation.py
"""

from __future__ import annotations

from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
from _common import Report, expected, parse_arguments
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.mixed import SEMDBN, LGLPCCTemporal

RATES = [0.05, 0.10, 0.15, 0.20, 0.25]
MISSING = -1


def most_frequent(codes):
    """Most frequent category of each feature."""
    return np.array(
        [np.bincount(x[x >= 0], minlength=1).argmax() for x in codes.T.swapaxes(1, 2)]
    )


def naive(codes, reference):
    """Impute by the rule of the paper: slice before, slice after, most frequent."""
    before = np.full_like(codes, MISSING)
    before[:, 1:] = codes[:, :-1]
    after = np.full_like(codes, MISSING)
    after[:, :-1] = codes[:, 1:]
    value = np.where(before >= 0, before, after)
    value = np.where(value >= 0, value, most_frequent(reference))
    return np.where(codes < 0, value, codes)


def last_known(codes, reference):
    """Last known value, else the next known one, else the most frequent one."""
    forward, backward = codes.copy(), codes.copy()
    for t in range(1, codes.shape[1]):
        gap = forward[:, t] < 0
        forward[:, t][gap] = forward[:, t - 1][gap]
        gap = backward[:, -t - 1] < 0
        backward[:, -t - 1][gap] = backward[:, -t][gap]
    value = np.where(forward >= 0, forward, backward)
    value = np.where(value >= 0, value, most_frequent(reference))
    return np.where(codes < 0, value, codes)


def with_indicators(imputer, reference, codes, n_categories):
    """Impute indicator columns; the largest one determines the category."""
    both = np.concatenate([reference, codes])
    n, n_slices, n_observed = both.shape
    width = int(max(n_categories))
    table = np.where(both[..., None] < 0, np.nan, both[..., None] == np.arange(width))
    filled = fit_transform(imputer, table.reshape(n, -1))
    best = filled.reshape(n, n_slices, n_observed, width).argmax(axis=3)
    return np.where(codes < 0, best[len(reference) :], codes)


def with_numbers(imputer, codes, n_categories):
    """Impute numbers and round them to the nearest category."""
    table = np.where(codes < 0, np.nan, codes.astype(float))
    table = table.reshape(len(table), -1)
    # The imputers drop columns without any value, and a visit without any value has
    # no neighbours.
    rows, columns = ~np.isnan(table).all(axis=1), ~np.isnan(table).all(axis=0)
    filled = np.zeros(table.shape)
    filled[np.ix_(rows, columns)] = fit_transform(imputer, table[rows][:, columns])
    best = np.rint(filled.reshape(codes.shape)).clip(0, n_categories - 1).astype(int)
    return np.where(codes < 0, best, codes)


def after(reference, codes, imputer):
    """Impute numbers, with complete training sequences in front."""
    both = np.concatenate([reference, codes])
    n_categories = both.max() + 1
    filled = with_numbers(imputer, both, n_categories)
    return filled[len(reference) :]


def fit_transform(imputer, table):
    with expected(ConvergenceWarning, UserWarning):
        return imputer.fit_transform(table)


def neighbours():
    return KNNImputer(weights="distance")


def iterative():
    return IterativeImputer(random_state=0, max_iter=5)


def iterative_trees():
    return IterativeImputer(
        ExtraTreesClassifier(20, min_samples_leaf=5, random_state=0),
        initial_strategy="most_frequent",
        random_state=0,
        max_iter=2,
    )


def fit(model, X):
    with expected(LatentWarning, ConvergenceWarning):
        return model.fit(X)


def fill(model, codes, strategy):
    """Impute codes with a fitted estimator whose categories are the codes."""
    X = np.where(codes < 0, np.nan, codes.astype(float))
    with expected(LatentWarning):
        return model.impute(X, strategy=strategy).astype(int)


def accuracy(filled, codes, hidden):
    return (filled == codes)[hidden].mean()


def synthetic(draws, rates, n_slices, n_train, n_test):
    """Accuracies on G3 by (method, rate)."""
    found = defaultdict(list)
    for seed in range(draws):
        data = make_latent_dbn("G3", n_train + n_test, n_slices, random_state=seed)
        train, test = data.codes[:n_train], data.codes[n_train:]
        models = {
            "LGL-LPCC": LGLPCCTemporal(n_slices=n_slices, random_state=0),
            "structural EM": SEMDBN(2, 4, n_slices, random_state=0),
        }
        for model in models.values():
            fit(model, train)
        rng = np.random.default_rng(seed)
        for rate in rates:
            hidden = rng.random(test.shape) < rate
            codes = np.where(hidden, MISSING, test)
            filled = {
                "LGL-LPCC, posterior": fill(models["LGL-LPCC"], codes, "posterior"),
                "LGL-LPCC, hybrid": fill(models["LGL-LPCC"], codes, "hybrid"),
                "structural EM": fill(models["structural EM"], codes, "posterior"),
                "naive": naive(codes, train),
                "last known": last_known(codes, train),
                "k-nearest": with_indicators(neighbours(), train, codes, [4]),
                "k-nearest, numbers": after(train, codes, neighbours()),
                "iterative": after(train, codes, iterative()),
                "iterative, trees": after(train, codes, iterative_trees()),
                "true model": data.network.impute(codes),
            }
            for method, values in filled.items():
                found[method, rate].append(accuracy(values, test, hidden))
    return found


def rate_rows(found, rates):
    methods = dict.fromkeys(method for method, _ in found)
    for method in methods:
        yield [method, *[f"{np.mean(found[method, rate]):.3f}" for rate in rates]]


def draw(found, rates):
    figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for method in dict.fromkeys(method for method, _ in found):
        values = [np.mean(found[method, rate]) for rate in rates]
        style = "k:" if method == "true model" else "o-"
        ax.plot(100 * np.array(rates), values, style, label=method)
    ax.set(xlabel="missing values (%)", ylabel="accuracy", title="G3")
    ax.legend(frameon=False, fontsize="small")
    return figure


def main():
    arguments = parse_arguments(__doc__, draws=5, slices="4,8")
    quick = arguments.quick
    draws = 1 if quick else arguments.draws
    lengths = [int(length) for length in arguments.slices.split(",") if length]
    report = Report("temporal_imputation", "Imputation", quick=quick)
    report_synthetic(report, lengths[:1] if quick else lengths, draws, quick)
    report.close()


def report_synthetic(report, lengths, draws, quick):
    rates = RATES[1::2] if quick else RATES
    n_train, n_test = (500, 200) if quick else (2000, 1000)
    header = ["method", *[f"{100 * rate:.0f}%" for rate in rates]]
    for n_slices in lengths:
        found = synthetic(draws, rates, n_slices, n_train, n_test)
        report.text(
            f"## G3, {n_slices} slices",
            f"Share of deleted values that come back, mean of {draws} draws; learned "
            f"from {n_train:,} sequences, filled in {n_test:,}.",
        )
        report.table(header, rate_rows(found, rates))
        if n_slices == lengths[0]:
            report.figure(draw(found, rates))


if __name__ == "__main__":
    main()
