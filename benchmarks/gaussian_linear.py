"""Linear networks, complete data: speed and quality against other libraries.

Random networks with two parents per variable, weights of absolute value 0.5 to 1.5.
Compared with PyBNesian's hill climbing and causal-learn's BOSS, both with the same
score, the BIC; BOSS also with its own default, a fourfold penalty.

    pip install pybnesian causal-learn pandas
    OMP_NUM_THREADS=1 python benchmarks/gaussian_linear.py

Times are processor seconds of one thread, all methods in one run. The score is the
log-likelihood minus the BIC penalty, in nats, minus that of the true graph, computed by
the same code for all; it is minus half the BIC, so that higher is better. SHD is the
number of pairs of variables in which the equivalence classes differ. Libraries that are
not installed are left out. It takes about ten minutes on an idle machine, mostly for
BOSS.
"""

from __future__ import annotations

import numpy as np
from _common import Report, clocked, parse_arguments

from sklearn_latent._core.graphs import equivalence_class, topological_order
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.gaussian import IdealParentGaussianBN
from sklearn_latent.gaussian._gaussian_network import GaussianNetwork
from sklearn_latent.gaussian._linear_scores import LinearEvaluator, fit_linear
from sklearn_latent.gaussian._statistics import GaussianStatistics

SHAPES = [(20, 1000), (50, 1000), (100, 1000), (100, 5000), (200, 1000), (200, 5000)]
BOSS_LIMIT = 100, 1000  # variables and rows; beyond, it takes many minutes


def ours(**parameters):
    def run(X):
        return IdealParentGaussianBN(random_state=0, **parameters).fit(X).adjacency_

    return run


def pybnesian_hill_climbing(X):
    import pandas as pd
    import pybnesian

    names = [f"x{i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    model = pybnesian.hc(frame, bn_type=pybnesian.GaussianNetworkType(), score="bic")
    adjacency = np.zeros((X.shape[1], X.shape[1]), dtype=bool)
    for parent, child in model.arcs():
        adjacency[names.index(parent), names.index(child)] = True
    return adjacency


def causal_learn_boss(lambda_value):
    def run(X):
        import random

        from causallearn.search.PermutationBased.BOSS import boss

        random.seed(0)
        graph = boss(X, parameters={"lambda_value": lambda_value}, verbose=False).graph
        # [i, j] = -1 is a tail at i: i -> j, or i - j.
        return directed_graph((graph == -1).astype(bool))

    return run


def directed_graph(pattern):
    """A graph of an equivalence class, by Dor and Tarsi's algorithm."""
    left = pattern.copy()
    alive = np.ones(len(left), dtype=bool)
    graph = pattern & ~pattern.T
    while alive.any():
        for node in np.flatnonzero(alive):
            outgoing = left[node] & ~left[:, node]
            open_edges = left[node] & left[:, node]
            joined = left[node] | left[:, node]
            around = left | left.T | np.eye(len(left), dtype=bool)
            if not outgoing.any() and all(
                around[other][joined].all() for other in np.flatnonzero(open_edges)
            ):
                graph[open_edges, node] = True
                left[node] = left[:, node] = False
                alive[node] = False
                break
        else:
            raise ValueError("the pattern has no directed extension")
    topological_order(graph)
    return graph


def make_methods():
    methods = {
        "greedy, all candidates": ours(search="greedy", n_candidates=None),
        "greedy, 5 candidates": ours(search="greedy"),
        "order": ours(search="order"),
        "auto": ours(),
    }
    try:
        import pybnesian  # noqa: F401

        methods["PyBNesian hc"] = pybnesian_hill_climbing
    except ImportError:
        print("PyBNesian is not installed and is left out.")
    try:
        import causallearn  # noqa: F401

        methods["BOSS, same BIC"] = causal_learn_boss(0.5)
        methods["BOSS, its default"] = causal_learn_boss(2)
    except ImportError:
        print("causal-learn is not installed and is left out.")
    return methods


def hamming_distance(true, found):
    """Pairs of nodes in which two equivalence classes differ."""
    differ = equivalence_class(true) != equivalence_class(found)
    return int(np.triu(differ | differ.T, 1).sum())


class Judge:
    """Scores of graphs on one data set."""

    def __init__(self, data, test):
        self.statistics = GaussianStatistics.of(data.X)
        self.evaluator = LinearEvaluator(self.statistics)
        self.true = data.network.adjacency
        self.test = test
        self.true_bic = self.bic(self.true)

    def bic(self, graph):
        """Minus half the BIC of a graph; higher is better."""
        return sum(
            self.evaluator.family_score(child, tuple(np.flatnonzero(column).tolist()))
            for child, column in enumerate(graph.T)
        )

    def held_out(self, graph):
        """Log-likelihood of new rows per row and variable."""
        network = GaussianNetwork(graph, *fit_linear(self.statistics, graph))
        return network.log_likelihood(self.test).mean() / len(graph)


def compare(n_features, n_samples, methods, seeds):
    """Mean (seconds, score, SHD, edges, held-out likelihood) by method."""
    results = {name: [] for name in ["true graph", *methods]}
    bics = []
    for seed in seeds:
        data = make_gaussian_bn(n_features, n_samples=n_samples, random_state=seed)
        test = data.network.sample(2000, random_state=seed + 1)[0]
        judge = Judge(data, test)
        bics.append(judge.true_bic)
        true = judge.true
        results["true graph"].append([np.nan, 0, 0, true.sum(), judge.held_out(true)])
        for name, method in methods.items():
            if name.startswith("BOSS") and (
                n_features > BOSS_LIMIT[0] or n_samples > BOSS_LIMIT[1]
            ):
                continue
            seconds, graph = clocked(method, data.X)
            results[name].append(
                [
                    seconds[1],
                    judge.bic(graph) - judge.true_bic,
                    hamming_distance(true, graph),
                    graph.sum(),
                    judge.held_out(graph),
                ]
            )
            print(f"  {n_features} x {n_samples}, {name}: {results[name][-1]}")
    means = {name: np.mean(rows, axis=0) for name, rows in results.items() if rows}
    return means, np.mean(bics)


def report_shape(report, n_features, n_samples, methods, seeds):
    means, bic = compare(n_features, n_samples, methods, seeds)
    report.text(
        f"## {n_features} variables x {n_samples:,} rows",
        f"Means over {len(seeds)} networks; score of the true graph {bic:,.0f}.",
    )
    header = ["method", "seconds", "score", "SHD", "edges", "held-out nats / variable"]
    report.table(
        header,
        [
            [
                name,
                "" if np.isnan(row[0]) else f"{row[0]:.3f}",
                f"{row[1]:+.1f}",
                f"{row[2]:.1f}",
                f"{row[3]:.0f}",
                f"{row[4]:.4f}",
            ]
            for name, row in means.items()
        ],
    )
    for ours_name, theirs in (
        ("greedy, all candidates", "PyBNesian hc"),
        ("order", "BOSS, same BIC"),
        ("order", "BOSS, its default"),
    ):
        if theirs in means:
            report.text(
                f"{ours_name} against {theirs}: "
                f"{means[theirs][0] / means[ours_name][0]:.1f} times as fast, score "
                f"{means[ours_name][1] - means[theirs][1]:+.1f} nats "
                f"({100 * (means[ours_name][1] - means[theirs][1]) / abs(bic):+.4f}%)."
            )


def report_large(report, n_features, n_samples):
    data = make_gaussian_bn(n_features, n_samples=n_samples, random_state=0)
    test = data.network.sample(1000, random_state=1)[0]
    judge = Judge(data, test)
    rows = []
    for name, method in (
        ("greedy, all candidates", ours(search="greedy", n_candidates=None)),
        ("order", ours(search="order")),
        ("auto", ours()),
    ):
        seconds, graph = clocked(method, data.X)
        rows.append(
            [
                name,
                f"{seconds[0]:.1f}",
                f"{seconds[1]:.1f}",
                f"{judge.bic(graph) - judge.true_bic:+.0f}",
                hamming_distance(judge.true, graph),
                int(graph.sum()),
                f"{judge.held_out(graph):.4f}",
            ]
        )
    report.text(
        f"## {n_features:,} variables x {n_samples:,} rows",
        f"One network of {int(judge.true.sum())} edges; held-out likelihood of "
        f"the true graph {judge.held_out(judge.true):.4f}.",
    )
    header = ["search", "wall s", "processor s", "score", "SHD", "edges", "held-out"]
    report.table(header, rows)


def main():
    arguments = parse_arguments(__doc__, seeds=3)
    quick = arguments.quick
    seeds = range(1 if quick else arguments.seeds)
    report = Report(
        "gaussian_linear", "Linear networks against other libraries", quick=quick
    )
    methods = make_methods()
    for n_features, n_samples in SHAPES[:2] if quick else SHAPES:
        report_shape(report, n_features, n_samples, methods, seeds)
    report_large(report, 200 if quick else 1000, 1000)
    report.close()


if __name__ == "__main__":
    main()
