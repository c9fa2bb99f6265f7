"""Missing values: structural EM, or imputation before learning.

Values of random linear networks are deleted at random (MCAR), or more often where a
column that is always observed is high (MAR). Structure, likelihood of new
rows and imputation error are compared with those of complete data, of the complete rows
alone, and of the same search after imputation by column means or by scikit-learn's
IterativeImputer. (If
nearly every row has missing values, iterative imputation can make columns collinear,
which gives a useless likelihood.) Then the same on yeast genes with missing values.

    OMP_NUM_THREADS=1 python benchmarks/gaussian_missing.py --data FOLDER

The folder, which is optional, contains yeast_amino_acid_missing.csv: conditions in
rows, genes in columns.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from _common import Report, clocked, expected, parse_arguments, per_cent
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.model_selection import KFold

from sklearn_latent._core.graphs import equivalence_class
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.gaussian import IdealParentGaussianBN

N_FEATURES = 30
# Fewer complete rows than these are not tried.
MIN_ROWS = 20


def hamming_distance(true, found):
    """Pairs of nodes in which two equivalence classes differ."""
    differ = equivalence_class(true) != equivalence_class(found)
    return int(np.triu(differ | differ.T, 1).sum())


class Filled:
    """Impute first, then learn from the table as if it were complete."""

    def __init__(self, imputer, model):
        self.imputer, self.model = imputer, model

    def fit(self, X):
        """Impute and fit."""
        with expected(ConvergenceWarning):
            self.model.fit(self.imputer.fit_transform(X))
        return self

    def transform(self, X):
        """Imputed rows."""
        return self.imputer.transform(X)

    def score(self, X):
        """Score of the model, which accepts missing values."""
        return self.model.score(X)


class Complete:
    """Learn from the rows without missing values."""

    def __init__(self, model):
        self.model = model

    def fit(self, X):
        """Drop rows and fit."""
        self.model.fit(X[~np.isnan(X).any(axis=1)])
        return self

    def transform(self, X):
        """Expected values, which the model computes."""
        return self.model.transform(X)

    def score(self, X):
        """Score of the model."""
        return self.model.score(X)


def learners(search, **more):
    """Methods to compare, with the same structure search."""

    def model():
        return IdealParentGaussianBN(
            search=search, n_candidates=None, random_state=0, **more
        )

    few = {"n_nearest_features": 30} if more else {}
    return {
        "structural EM": model,
        "complete rows": lambda: Complete(model()),
        "means first": lambda: Filled(SimpleImputer(), model()),
        "IterativeImputer first": lambda: Filled(
            IterativeImputer(max_iter=10, random_state=0, **few), model()
        ),
    }


def deleted(X, share, seed, kind="MCAR"):
    """A copy in which a share of the values is missing.

    MAR: in two thirds of the columns, with a probability that is proportional to the
    rank of the row in a column of the first third, which is complete.
    """
    rng = np.random.RandomState(seed)
    chance = np.full(X.shape, share)
    if kind == "MAR":
        n_seen = X.shape[1] // 3
        rank = X[:, :n_seen].argsort(axis=0).argsort(axis=0) / (len(X) - 1)
        cause = rng.randint(n_seen, size=X.shape[1])
        chance = 2.0 * share * rank[:, cause]
        chance[:, :n_seen] = 0.0
    gaps = rng.uniform(size=X.shape) < chance
    return np.where(gaps, np.nan, X), gaps


def planted(report, search, n_samples, shares, seeds, kind="MCAR"):
    results: dict[tuple, list] = {}
    for seed in seeds:
        data = make_gaussian_bn(N_FEATURES, 0, n_samples, random_state=seed)
        truth, X = data.network, data.X
        test = truth.sample(2000, random_state=1000 + seed)[0]
        reference = truth.log_likelihood(test).mean()

        def measure(key, fit, X, gaps, true=X, test=test, truth=truth, at=reference):
            times, model = clocked(fit().fit, X)
            inner = getattr(model, "model", model)
            error = np.nan
            if gaps.any():
                filled = model.transform(X)[:, :N_FEATURES]
                error = np.sqrt(
                    (((filled - true) / true.std(axis=0))[gaps] ** 2).mean()
                )
            results.setdefault(key, []).append(
                [
                    hamming_distance(truth.adjacency, inner.adjacency_),
                    model.score(test) - at,
                    error,
                    times[1],
                ]
            )

        fits = learners(search)
        nothing = np.zeros(X.shape, dtype=bool)
        measure((0.0, "complete data"), fits["structural EM"], X, nothing)
        for share in shares:
            incomplete, gaps = deleted(X, share, seed, kind)
            n_complete = (~gaps.any(axis=1)).sum()
            for label, fit in fits.items():
                if label == "complete rows" and n_complete < MIN_ROWS:
                    continue
                measure((share, label), fit, incomplete, gaps)
    rows = []
    for (share, label), values in results.items():
        shd, _, error, seconds = np.mean(values, axis=0)
        # Collinear columns, which imputers make, can ruin the mean of all networks.
        gap = np.median([value[1] for value in values])
        rows.append(
            [
                per_cent(share),
                label,
                f"{shd:.1f}",
                f"{gap:+.3f}",
                "-" if np.isnan(error) else f"{error:.3f}",
                f"{seconds:.2f}",
            ]
        )
    report.text(
        f'{N_FEATURES} variables, {n_samples} rows, {kind}, search="{search}", '
        f"{len(seeds)} networks. SHD of equivalence classes; log-likelihood of a new "
        "row minus that of the true network, median; error of imputed values in "
        "standard deviations; processor seconds with the imputer's."
    )
    report.table(["missing", "method", "SHD", "held out", "error", "CPU s"], rows)


def yeast(report, path, n_genes, n_folds):
    frame = pd.read_csv(path).select_dtypes("number")
    X = frame.to_numpy()[:, :n_genes]
    missing = np.isnan(X).mean()
    report.text(
        f"{X.shape[1]} genes, {len(X)} conditions, {per_cent(missing)} of the values "
        f"missing and 5% more deleted. {n_folds} folds; log-likelihood per observed "
        "value, error of the deleted ones in standard deviations."
    )
    rows = []
    for search, more in (
        ("greedy", {"penalty": "ebic"}),
        ("greedy", {"penalty": 1.0, "max_parents": 5}),
        ("order", {"penalty": "ebic"}),
    ):
        for label, fit in learners(search, **more).items():
            if label == "complete rows" or (
                search == "order" and label != "structural EM"
            ):
                continue
            values = []
            folds = KFold(n_folds, shuffle=True, random_state=0)
            for train, test in folds.split(X):
                observed, gaps = deleted(X[train], 0.05, 0)
                gaps &= ~np.isnan(X[train])
                times, model = clocked(fit().fit, observed)
                n_values = (~np.isnan(X[test])).sum(axis=1)
                score = model.score(X[test]) * len(test) / n_values.sum()
                filled = model.transform(observed)[:, : X.shape[1]]
                wrong = (filled - X[train]) / np.nanstd(X, axis=0)
                inner = getattr(model, "model", model)
                values.append(
                    [
                        score,
                        np.sqrt((wrong[gaps] ** 2).mean()),
                        inner.adjacency_.sum(),
                        times[1],
                    ]
                )
            score, error, edges, seconds = np.mean(values, axis=0)
            name = ", ".join(f"{key}={value}" for key, value in more.items())
            rows.append(
                [
                    f"{label}, {search}, {name}",
                    f"{edges:.0f}",
                    f"{score:.3f}",
                    f"{error:.3f}",
                    f"{seconds:.1f}",
                ]
            )
    report.table(["method", "edges", "test", "error", "CPU s"], rows)


def main():
    arguments = parse_arguments(__doc__, data="", first_seed=0, draws=5)
    quick = arguments.quick
    report = Report("gaussian_missing", "Missing values", quick=quick)
    first = arguments.first_seed
    seeds = range(first, first + (1 if quick else arguments.draws))
    for kind in ("MCAR", "MAR"):
        planted(report, "auto", 1000, (0.1,) if quick else (0.1, 0.3, 0.5), seeds, kind)
    shares = (0.1, 0.3) if quick else (0.05, 0.1, 0.2, 0.3)
    for search in ("order", "greedy"):
        planted(report, search, 1000, shares, seeds)
    path = Path(arguments.data) / "yeast_amino_acid_missing.csv"
    if path.is_file():
        yeast(report, path, 60 if quick else 231, 2 if quick else 5)
    else:
        report.text("No yeast_amino_acid_missing.csv; name its folder with --data.")
    report.close()


if __name__ == "__main__":
    main()
