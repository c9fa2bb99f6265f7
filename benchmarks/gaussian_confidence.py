"""Is the confidence in edges their probability?

Random networks of other numbers of rows and features than those by which shares of
bootstrap fits are calibrated. All edges with a confidence in an interval are taken
together: the share of true ones among them should be their mean confidence. Pairs,
whatever the direction, and directed edges.

    OMP_NUM_THREADS=1 python benchmarks/gaussian_confidence.py
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from _common import Report, parse_arguments
from gaussian_graphs import draw_rows, random_graph

from sklearn_latent.gaussian import IdealParentGaussianBN

LIMITS = np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.975, 1.0])
N_BOOTSTRAPS = 40


def draw_case(seed):
    """Confidence, shares of fits, and the true graph."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["degree 2", "degree 4", "scale-free"]))
    graph = random_graph(kind, int(rng.choice([10, 14, 20])), rng)
    noise = str(rng.choice(["normal", "normal", "exponential"]))
    # Weak effects, of which only some are found.
    X = draw_rows(graph, noise, int(rng.choice([100, 250, 600])), rng, scale=0.35)
    model = IdealParentGaussianBN().fit(X)
    results = [
        model.edge_confidence(X, N_BOOTSTRAPS, calibrate=calibrate, random_state=seed)
        for calibrate in (True, False)
    ]
    return *results, graph


def reliability(confidence, true):
    """One cell per interval: mean confidence, share of true edges, number."""
    cells = []
    for low, high in pairwise(LIMITS):
        chosen = (confidence > low) & (confidence <= high)
        if not chosen.any():
            cells.append("-")
            continue
        mean, share = confidence[chosen].mean(), true[chosen].mean()
        cells.append(f"{mean:.2f} / {share:.2f} ({chosen.sum()})")
    return [*cells, f"{np.mean((confidence - true) ** 2):.4f}"]


def main():
    arguments = parse_arguments(__doc__, seeds=60)
    quick = arguments.quick
    report = Report("gaussian_confidence", "Confidence in edges", quick=quick)
    cases = [
        draw_case(10_000 + seed) for seed in range(3 if quick else arguments.seeds)
    ]
    rows = []
    for place, name in enumerate(("calibrated", "share of fits")):
        pairs, joined, edges, true = [], [], [], []
        for case in cases:
            confidence, graph = case[place], case[2]
            above = np.triu_indices(len(graph), 1)
            pairs.append((confidence + confidence.T)[above])
            joined.append((graph | graph.T)[above])
            apart = ~np.eye(len(graph), dtype=bool)
            edges.append(confidence[apart])
            true.append(graph[apart])
        for what, found, truth in (
            ("pairs", pairs, joined),
            ("directed edges", edges, true),
        ):
            cells = reliability(np.concatenate(found), np.concatenate(truth))
            rows.append([f"{name}, {what}", *cells])
    report.text(
        f"{len(cases)} networks, {N_BOOTSTRAPS} fits each. Mean confidence / share of "
        "true edges (number of edges) by confidence, and Brier score."
    )
    header = [f"{low:g} to {high:g}" for low, high in pairwise(LIMITS)]
    report.table(["confidence", *header, "Brier"], rows)
    report.close()


if __name__ == "__main__":
    main()
