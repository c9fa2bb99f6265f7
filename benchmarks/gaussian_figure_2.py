"""Similarities of candidates and the true gains of moves.

Reproduces Figure 2 of Elidan, Nachman and Friedman (2007), "Ideal Parent" structure
learning for continuous variable Bayesian networks: C1 and C2 against the true gain in
log-likelihood, over all additions and replacements of the families that a greedy search
on yeast gene expression visits. For linear families both are lower bounds, C2 the
tighter one. The lower row is the same for sigmoid families, where they are
approximations. It also shows C3, which linearises at the current fit and adapts all
parameters.

    python benchmarks/gaussian_figure_2.py --data ../shared/data

It takes about two minutes.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _common import Report, parse_arguments, per_cent
from gaussian_sigmoid import yeast
from scipy.stats import spearmanr

from sklearn_latent._core.graphs import parents_of
from sklearn_latent.gaussian._bent_scores import NonlinearEvaluator
from sklearn_latent.gaussian._greedy import greedy_search
from sklearn_latent.gaussian._ideal_parent import IdealScan, TangentScan

SIMILARITIES = ("C1", "C2", "C3")


class Recorder(NonlinearEvaluator):
    """Fits every candidate and records the visited families."""

    def __init__(self, X, **options):
        super().__init__(X, n_candidates=None, tol=1e-6, **options)
        self.visited = {}

    def move_scores(self, families, allowed, children, room):
        """Scores of families after each of their moves."""
        self.visited.update(dict.fromkeys(families))
        return super().move_scores(families, allowed, children, room)


def scanners(evaluator):
    fitter = evaluator.fitter
    return {
        "C1": IdealScan(fitter, "C1"),
        "C2": IdealScan(fitter, "C2"),
        "C3": TangentScan(fitter),
    }


def moves(evaluator, kind):
    """True gains, and those predicted by each similarity, per visited family.

    Gains are those of the log-likelihood, without a penalty.
    """
    tools = scanners(evaluator)
    for family in list(evaluator.visited):
        child, parents = family
        allowed = np.ones((1, evaluator.n_nodes), dtype=bool)
        allowed[0, [child, *parents]] = False
        fit = evaluator._fit_of(family)
        order = [0, *(1 + fit.order.index(parent) for parent in parents)]
        found = {name: tool.scan(child, *fit[1:]) for name, tool in tools.items()}
        scores = evaluator.move_scores([family], allowed, ~allowed, [True])[0]
        gains = scores[:, :-1] + evaluator._cost(len(parents)) - fit.log_likelihood
        gains[0] += evaluator._cost(len(parents) + 1) - evaluator._cost(len(parents))
        rows = slice(0, 1) if kind == "additions" else slice(1, None)
        true = gains[rows][:, allowed[0]].ravel()
        expected = {
            name: scan[order][rows][:, allowed[0]].ravel()
            for name, scan in found.items()
        }
        if len(true):
            yield true, expected


def missed(true, expected, size):
    """Gain of the best move, less that of the best among the most promising ones."""
    top = np.argsort(-expected)[:size]
    return true.max() - true[top].max()


def summary_rows(link, kind, found):
    gains = np.concatenate([true for true, _ in found])
    for name in SIMILARITIES:
        expected = np.concatenate([similar[name] for _, similar in found])
        pairs = [(true, similar[name]) for true, similar in found]
        ranks = [spearmanr(*pair).statistic for pair in pairs if len(pair[0]) > 2]
        yield [
            f"{link}, {kind}, {name}",
            f"{len(gains):,}",
            per_cent(np.mean(expected <= gains + 1e-3)),
            f"{np.corrcoef(expected, gains)[0, 1]:.3f}",
            f"{np.nanmean(ranks):.3f}",
            f"{np.mean(np.abs(expected - gains)):.2f}",
            *[f"{np.mean([missed(*p, size) for p in pairs]):.2f}" for size in (2, 5)],
        ]


def draw(axes, link, found):
    gains = np.concatenate([true for true, _ in found])
    limit = np.quantile(gains, 0.999)
    for ax, name in zip(axes, SIMILARITIES, strict=True):
        expected = np.concatenate([similar[name] for _, similar in found])
        ax.plot(gains, expected, ".", markersize=1, color="#0072b2", rasterized=True)
        ax.plot([0, limit], [0, limit], color="#777777", linewidth=0.8)
        ax.set(xlim=(0, limit), ylim=(-0.25 * limit, 1.25 * limit))
        ax.set(xlabel="gain in log-likelihood", ylabel=name, title=f"{link}: {name}")


def main():
    arguments = parse_arguments(__doc__, data="../shared/data", variables=44)
    quick = arguments.quick
    report = Report("gaussian_figure_2", "Figure 2: similarity and gain", quick=quick)
    X = yeast(arguments.data, 12 if quick else arguments.variables)
    figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
    rows = []
    for link, line in zip(("linear", "sigmoid"), axes, strict=True):
        evaluator = Recorder(X, link=link)
        result = greedy_search(evaluator)
        for child in range(X.shape[1]):
            evaluator.visited[child, parents_of(result.adjacency, child)] = None
        for kind in ("additions", "replacements"):
            found = list(moves(evaluator, kind))
            rows += summary_rows(link, kind, found)
            if kind == "additions":
                draw(line, link, found)
    report.text(
        f"{X.shape[1]} genes, {len(X)} conditions; all moves of the families that a "
        "greedy search visits. Below: share of moves whose gain is at least the "
        "predicted one. Correlation over all moves; mean rank correlation within "
        "families. Error: mean absolute difference in nats. Missed: gain of the best "
        "move minus that of the best of the 2 or 5 most similar candidates, on average "
        "over families.",
    )
    report.table(
        [
            "moves",
            "number",
            "below",
            "correlation",
            "rank correlation",
            "error",
            "missed by 2",
            "missed by 5",
        ],
        rows,
    )
    report.figure(figure)
    report.close()


if __name__ == "__main__":
    main()
