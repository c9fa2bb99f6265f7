"""A network learned from data, sampled and learned again, with few or all candidates.

Reproduces Figure 5 of Elidan, Nachman and Friedman (2007), "Ideal parent" structure
learning for continuous variable Bayesian networks: a network over 44 variables is
learned from real data, rows are drawn from it, and networks are learned from growing
numbers of rows by greedy search that scores all candidates, or only the 2 or 5 per
family that are most similar to the ideal parent. Linear networks are also learned by
order search.

    OMP_NUM_THREADS=1 python benchmarks/gaussian_figure_5.py --data folder

The folder contains yeast_metabolism_complete.csv (genes are columns). The paper's
choice of genes is not public, so that its numbers are not directly comparable. Without
the folder a random network of the same size replaces the real data. It takes about ten
minutes.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from _common import Report, clocked, parse_arguments

from sklearn_latent._core.graphs import equivalence_class
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.gaussian import IdealParentGaussianBN

SIZES = {"linear": [50, 100, 200, 500, 1000, 2000], "sigmoid": [50, 100, 200, 500]}
N_TEST = 1000
STYLES = {
    "greedy": (":", "#777777"),
    "K = 5": ("-", "#d55e00"),
    "K = 2": ("--", "#0072b2"),
    "order": ("-.", "#009e73"),
    "auto": ("-", "#cc79a7"),
}
MEASURES = [
    "train, nats per row and variable",
    "test, nats per row and variable",
    "true edges found",
    "edges learned / true edges",
]


def real_rows(folder, n_genes):
    """Rows of the real data, each gene with mean 0 and variance 1."""
    path = Path(folder) / "yeast_metabolism_complete.csv"
    if folder and path.exists():
        import pandas as pd

        X = pd.read_csv(path).select_dtypes("number").to_numpy()[:, :n_genes]
        return (X - X.mean(axis=0)) / X.std(axis=0), f"{n_genes} yeast genes"
    X = make_gaussian_bn(n_genes, n_samples=173, random_state=0).X
    return (X - X.mean(axis=0)) / X.std(axis=0), f"{n_genes} simulated variables"


def learners(link):
    common = {"link": link, "search": "greedy", "random_state": 0}
    methods = {
        "greedy": IdealParentGaussianBN(**common, n_candidates=None),
        "K = 5": IdealParentGaussianBN(**common, n_candidates=5),
        "K = 2": IdealParentGaussianBN(**common, n_candidates=2),
    }
    if link == "linear":
        methods["order"] = IdealParentGaussianBN(search="order", random_state=0)
        methods["auto"] = IdealParentGaussianBN(random_state=0)
    return methods


def judge(model, network, X, test):
    """The four measures of the figure, and edges found in either direction."""
    true, found = network.adjacency, model.adjacency_
    directions = equivalence_class(found) if network.link == "linear" else found
    joined = found | found.T
    return [
        model.score(X) / len(true),
        model.score(test) / len(true),
        (true & directions).sum() / true.sum(),
        found.sum() / true.sum(),
        (true & joined).sum() / true.sum(),
        model.n_evaluated_ / model.n_considered_,
    ]


def measure(report, link, network, sizes, n_draws):
    test, _ = network.sample(N_TEST, random_state=10_000)
    results = {}
    for n in sizes:
        for draw in range(n_draws):
            X, _ = network.sample(n, random_state=draw)
            for name, model in learners(link).items():
                seconds, fitted = clocked(model.fit, X)
                values = [*judge(fitted, network, X, test), seconds[1]]
                results.setdefault((name, n), []).append(values)
    means = {key: np.mean(values, axis=0) for key, values in results.items()}
    report.table(
        [
            "rows",
            "search",
            "train",
            "test",
            "true edges",
            "in either direction",
            "edges / true",
            "evaluated",
            "processor s",
        ],
        [
            [
                n,
                name,
                f"{row[0]:.3f}",
                f"{row[1]:.3f}",
                f"{row[2]:.2f}",
                f"{row[4]:.2f}",
                f"{row[3]:.2f}",
                f"{row[5]:.3f}",
                f"{row[6]:.2f}",
            ]
            for (name, n), row in means.items()
        ],
    )
    return means


def draw_link(axes, link, means):
    for row, (ax, title) in enumerate(zip(axes, MEASURES, strict=True)):
        for name in learners(link):
            line, color = STYLES[name]
            sizes = sorted(n for method, n in means if method == name)
            values = [means[name, n][row] for n in sizes]
            ax.plot(sizes, values, line, color=color, label=name)
        ax.set(xscale="log", xlabel="rows", title=f"{link}: {title}")
    axes[0].legend(frameon=False)


def main():
    arguments = parse_arguments(__doc__, data="", draws=3)
    quick = arguments.quick
    n_genes = 15 if quick else 44
    n_draws = 1 if quick else arguments.draws
    report = Report(
        "gaussian_figure_5", "Figure 5: a learned network sampled back", quick=quick
    )
    X, name = real_rows(arguments.data, n_genes)
    figure, axes = plt.subplots(4, 2, figsize=(10, 14), layout="constrained")
    for column, (link, sizes) in enumerate(SIZES.items()):
        sizes = sizes[:3] if quick else sizes
        start = IdealParentGaussianBN(link=link, search="greedy").fit(X)
        network = start.network_
        report.text(
            f"## {link}",
            f"Learned from {name} x {len(X)} rows by greedy search with 5 candidates: "
            f"{int(network.adjacency.sum())} edges. Means over {n_draws} draws; test "
            f"rows {N_TEST}. A true edge of a linear network counts as found if some "
            "graph of the equivalence class learned has it.",
        )
        means = measure(report, link, network, sizes, n_draws)
        draw_link(axes[:, column], link, means)
    report.figure(figure)
    report.close()


if __name__ == "__main__":
    main()
