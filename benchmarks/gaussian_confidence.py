"""How many edges are true, of those that some share of bootstrap fits has?

Random networks of 8 columns, of three densities and three ranges of weights. All edges
with a confidence in an interval are taken together: the share of true ones among them
is compared with their mean confidence. Pairs, whatever the direction, and directed
edges.

    OMP_NUM_THREADS=1 python benchmarks/gaussian_confidence.py
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from _common import Report, parse_arguments
from gaussian_graphs import draw_rows, random_graph

from sklearn_latent.gaussian import IdealParentGaussianBN

LIMITS = np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.975, 1.0])
N_BOOTSTRAPS, N_FEATURES, ROWS = 40, 8, (60, 250)


def draw_case(seed, n_rows):
    """Confidence and the true graph."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["degree 2", "degree 4", "scale-free"]))
    graph = random_graph(kind, N_FEATURES, rng)
    noise = str(rng.choice(["normal", "normal", "exponential"]))
    X = draw_rows(graph, noise, n_rows, rng, scale=rng.choice([0.35, 0.6, 1.0]))
    model = IdealParentGaussianBN(margins="normal").fit(X)
    return model.edge_confidence(X, N_BOOTSTRAPS, random_state=seed), graph


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
    n_seeds = 3 if quick else arguments.seeds
    rows = []
    for n_rows in ROWS:
        cases = [draw_case(10_000 + seed, n_rows) for seed in range(n_seeds)]
        confidence, graph = map(np.stack, zip(*cases, strict=True))
        apart = ~np.eye(N_FEATURES, dtype=bool)
        above = np.triu(apart)
        turned = (part.swapaxes(1, 2) for part in (confidence, graph))
        either = confidence + next(turned), graph | next(turned)
        for what, chosen, found, true in (
            ("pairs", above, *either),
            ("directed edges", apart, confidence, graph),
        ):
            cells = reliability(found[:, chosen], true[:, chosen])
            rows.append([f"{n_rows} rows, {what}", *cells])
    report.text(
        f"{n_seeds} networks each, {N_BOOTSTRAPS} fits each. Mean confidence / share "
        "of true edges (number of edges) by confidence, and Brier score."
    )
    header = [f"{low:g} to {high:g}" for low, high in pairwise(LIMITS)]
    report.table(["confidence", *header, "Brier"], rows)
    report.close()


if __name__ == "__main__":
    main()
