"""Hidden variables: are they found, and do they help?

Two-layer networks are planted, of the sizes of Section 9.2 of Elidan, Nachman and
Friedman (2007), 7 hidden variables over 141 features, and of 3 over 36 with many shared
children. How many hidden variables are found, how well do their values correlate with
the true ones, which edges are right, and how likely are new rows? Compared with the
paper's procedure (search="greedy"), networks without hidden variables, and
FactorAnalysis of scikit-learn with the number of components that predicts best in
five-fold cross-validation.

    OMP_NUM_THREADS=1 python benchmarks/gaussian_hidden.py --data FOLDER

The folder, which can be left out, holds yeast_metabolism_complete.csv: conditions in
rows, genes in columns.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from _common import Report, clocked, expected, parse_arguments
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold

from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.gaussian import GaussianNetwork, IdealParentGaussianBN

SHAPES = {
    "7 over 141, few shared children": (141, 7, 1.3),
    "7 over 141, many": (141, 7, 1.8),
    "3 over 36, some": (36, 3, 1.5),
    "3 over 36, many": (36, 3, 2.0),
}


def factor_analysis(X, largest):
    """Factor analysis with the number of components that predicts best."""
    grid = GridSearchCV(
        FactorAnalysis(max_iter=2000), {"n_components": range(1, largest + 1)}, cv=5
    )
    return grid.fit(X).best_estimator_


def models(n_latents):
    """What is compared; more hidden variables are allowed than there are."""
    two_layers = {"max_latents": 2 * n_latents + 2, "bipartite": True}
    learn = IdealParentGaussianBN
    return {
        "two layers": lambda X: learn(**two_layers).fit(X),
        "two layers, the paper's search": lambda X: learn(
            **two_layers, search="greedy"
        ).fit(X),
        "no hidden, greedy": lambda X: learn(search="greedy", n_candidates=None).fit(X),
        "no hidden, by order": lambda X: learn(search="order").fit(X),
        "FactorAnalysis": lambda X: factor_analysis(X, n_latents + 3),
    }


def recovery(truth, X, Z, model):
    """Hidden variables found, smallest correlation of matched ones, F1 of edges."""
    n = X.shape[1]
    if not model.n_latents_:
        return 0, 0.0, 0.0
    found = model.transform(X)[:, n:]
    n_true = truth.n_latents
    correlation = np.abs(np.corrcoef(Z.T, found.T)[:n_true, n_true:])
    rows, columns = linear_sum_assignment(-correlation)
    true, learned = truth.adjacency[n:, :n], model.adjacency_[n:, :n]
    hits = (true[rows] & learned[columns]).sum()
    f1 = 2.0 * hits / (true.sum() + learned.sum())
    # A hidden variable that has no match is not found at all.
    worst = correlation[rows, columns].min() if len(rows) == n_true else 0.0
    return model.n_latents_, worst, f1


def draw(shape, n_samples, seed):
    """A planted network, rows to learn from, and new ones."""
    n_features, n_latents, n_parents = shape
    data = make_gaussian_bn(
        n_features,
        n_latents,
        n_samples,
        n_parents=n_parents,
        bipartite=True,
        random_state=seed,
    )
    return data, data.network.sample(2000, random_state=1000 + seed)[0]


def two_layers(report, name, shape, n_samples, seeds):
    results: dict[str, list] = {}
    reference = []
    for seed in seeds:
        data, test = draw(shape, n_samples, seed)
        reference.append(data.network.log_likelihood(test).mean() / shape[0])
        for label, fit in models(shape[1]).items():
            with expected(ConvergenceWarning):
                times, model = clocked(fit, data.X)
            found = (np.nan,) * 3
            if hasattr(model, "n_latents_"):
                found = recovery(data.network, data.X, data.Z, model)
            else:
                found = (model.n_components, np.nan, np.nan)
            results.setdefault(label, []).append(
                [*found, model.score(test) / shape[0], times[1]]
            )
    rows = []
    for label, values in results.items():
        table = np.array(values)
        held_out = table[:, 3] - reference
        rows.append(
            [
                label,
                f"{table[:, 0].min():.0f} to {table[:, 0].max():.0f}",
                _range(table[:, 1]),
                _range(table[:, 2]),
                f"{held_out.mean():+.4f}",
                f"{table[:, 4].mean():.1f}",
            ]
        )
    report.text(f"{name}, {n_samples} rows, {len(seeds)} networks.")
    report.table(
        ["model", "hidden", "correlation", "edge F1", "held out", "CPU s"], rows
    )


def _range(values):
    """Mean and smallest of the draws."""
    if np.isnan(values).all() or not values.any():
        return "-"
    return f"{values.mean():.3f} (≥ {values.min():.3f})"


def mixed_network(seed):
    """Hidden variables with a chain among them, and edges between features."""
    rng = np.random.RandomState(seed)
    base = make_gaussian_bn(
        30, 3, 10, n_parents=1.2, bipartite=True, random_state=seed
    ).network
    weights = base.weights.copy()
    order = rng.permutation(30)
    for parent, child in zip(order[:10], order[10:20], strict=True):
        weights[parent, child] = rng.choice([-1, 1]) * rng.uniform(0.7, 1.3)
    weights[30, 31] = 0.8
    return GaussianNetwork(
        weights != 0, weights, base.intercept, base.noise_variance, n_latents=3
    )


def free_placement(report, n_samples, seeds):
    learn = IdealParentGaussianBN
    fits = {
        "free placement": lambda X: learn(max_latents=6).fit(X),
        "free placement, the paper's search": lambda X: learn(
            max_latents=6, search="greedy", n_candidates=None
        ).fit(X),
        "no hidden, by order": lambda X: learn(search="order").fit(X),
    }
    rows = []
    for label, fit in fits.items():
        values = []
        for seed in seeds:
            truth = mixed_network(seed)
            X, Z = truth.sample(n_samples, random_state=seed)
            test = truth.sample(2000, random_state=1000 + seed)[0]
            times, model = clocked(fit, X)
            found = recovery(truth, X, Z, model)
            true, learned = truth.adjacency[:30, :30], model.adjacency_[:30, :30]
            joined = learned | learned.T
            hits = (joined & true).sum()
            f1 = 2.0 * hits / max(true.sum() + np.triu(joined).sum(), 1)
            gap = model.score(test) - truth.log_likelihood(test).mean()
            values.append([found[0], found[1], f1, gap / 30, times[1]])
        table = np.array(values)
        rows.append(
            [
                label,
                f"{table[:, 0].min():.0f} to {table[:, 0].max():.0f}",
                _range(table[:, 1]),
                _range(table[:, 2]),
                f"{table[:, 3].mean():+.4f}",
                f"{table[:, 4].mean():.1f}",
            ]
        )
    report.text(
        "3 hidden over 30 features, one hidden the parent of another, 10 edges "
        f"between features; {n_samples} rows, {len(seeds)} networks. F1 of edges "
        "between features, directions ignored."
    )
    report.table(
        ["model", "hidden", "correlation", "F1 of features", "held out", "CPU s"], rows
    )


def yeast(report, path, n_genes, n_folds):
    frame = pd.read_csv(path).select_dtypes("number")
    names = frame.var().sort_values(ascending=False).index[:n_genes]
    X = frame[names].to_numpy()
    learn = IdealParentGaussianBN
    fits = {
        "two layers, up to 15 hidden": lambda X: learn(
            max_latents=15, bipartite=True
        ).fit(X),
        "the same, up to 2 parents": lambda X: learn(
            max_latents=15, bipartite=True, max_parents=2
        ).fit(X),
        "the paper's search, up to 2 parents": lambda X: learn(
            max_latents=15,
            bipartite=True,
            max_parents=2,
            search="greedy",
        ).fit(X),
        "free placement, up to 5 hidden": lambda X: learn(max_latents=5).fit(X),
        "no hidden, greedy": lambda X: learn(search="greedy", n_candidates=None).fit(X),
        "no hidden, default": lambda X: learn().fit(X),
        "FactorAnalysis": lambda X: factor_analysis(X, 15),
    }
    rows = []
    folds = KFold(n_folds, shuffle=True, random_state=0)
    for label, fit in fits.items():
        values = []
        for train, test in folds.split(X):
            with expected(ConvergenceWarning, ApproximateInferenceWarning):
                times, model = clocked(fit, X[train])
            size = getattr(model, "n_latents_", None)
            size = model.n_components if size is None else size
            values.append(
                [
                    model.score(X[train]) / n_genes,
                    model.score(X[test]) / n_genes,
                    size,
                    times[1],
                ]
            )
        table = np.array(values)
        rows.append(
            [
                label,
                f"{table[:, 2].min():.0f} to {table[:, 2].max():.0f}",
                f"{table[:, 0].mean():.3f}",
                f"{table[:, 1].mean():.3f}",
                f"{table[:, 3].mean():.1f}",
            ]
        )
    report.text(
        f"The {n_genes} genes of highest variance over {len(X)} conditions, {n_folds} "
        "folds; log-likelihood per condition and gene."
    )
    report.table(["model", "hidden", "train", "test", "CPU s"], rows)


def main():
    arguments = parse_arguments(__doc__, data="")
    quick = arguments.quick
    report = Report("gaussian_hidden", "Hidden variables", quick=quick)
    report.text(
        "Hidden variables found; correlation of expected and true values of the worst "
        "of them, mean over networks and (smallest); F1 of the edges; log-likelihood "
        "of 2,000 new rows per row and feature, minus that of the true network."
    )
    seeds = range(1 if quick else 5)
    for name, shape in SHAPES.items():
        if quick and shape[0] > 100:
            continue
        # Large networks take most of the time, and differ little from each other.
        two_layers(report, name, shape, 500, seeds[:3] if shape[0] > 100 else seeds)
    for n_samples in () if quick else (100, 200, 2000):
        name = "3 over 36, some"
        two_layers(report, name, SHAPES[name], n_samples, seeds[:3])
    free_placement(report, 1000, seeds[:3])
    path = Path(arguments.data) / "yeast_metabolism_complete.csv"
    if path.is_file():
        yeast(report, path, 20 if quick else 44, 2 if quick else 5)
    else:
        report.text("No yeast_metabolism_complete.csv; name its folder with --data.")
    report.close()


if __name__ == "__main__":
    main()
