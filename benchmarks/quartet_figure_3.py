"""Hidden images: sources found against the number of rows, their number unknown.

Reproduces Figure 3 of Jernite, Halpern and Sontag (2013), "Discovering hidden variables
in noisy-or networks using quartet tests": eight sources of 8 x 8 pixels, prior 0.25,
failure 0.1, leak 0.001. A source counts as found if a latent matches it by
`match_latents`, one to one. Methods without failures (NMF, LDA, Boltzmann machines) are
judged more generously: a component counts if it has exactly the pixels of a source, at
the threshold that works best for the draw, from 0.2 to 0.5 of its largest weight.

    python benchmarks/quartet_figure_3.py
"""

from __future__ import annotations

from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
from _common import Report, component_supports, expected, parse_arguments, timed
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM

from sklearn_latent import NoisyOrEM, QuartetStructureLearner
from sklearn_latent.datasets import make_noisy_or_images
from sklearn_latent.exceptions import ModelMisfitWarning, PoorDataWarning
from sklearn_latent.metrics import edge_f1, match_latents
from sklearn_latent.noisy_or._maximum_likelihood import maximize_likelihood
from sklearn_latent.noisy_or._statistics.patterns import Patterns

SIZES = [100, 500, 1_000, 2_000, 10_000]
PAPER = {"quartet_threshold": 0.01, "extend_threshold": 0.1, "refine": False}


def learner(**options):
    def fit(data):
        model = QuartetStructureLearner(**options).fit(data.X)
        return model.failure_, model.prior_

    return fit


def likelihood_from_the_truth(data):
    """Maximum likelihood started at the true parameters."""
    fit = maximize_likelihood(data.network, Patterns.of(data.X == 1))
    return fit.network.failure, fit.network.prior


def random_starts(data):
    model = NoisyOrEM(8, n_init=4, max_iter=300, random_state=0).fit(data.X)
    return model.failure_, model.prior_


def supports(make):
    def fit(data):
        components = make().fit(data.X.astype(float)).components_
        choices = [np.where(s, 0.1, 1.0) for s in component_supports(components)]
        truth = data.network.failure
        return max(choices, key=lambda f: match_latents(truth, f)[1].sum()), None

    return fit


def methods():
    nmf = {
        f"NMF, {k} components": supports(
            lambda k=k: NMF(k, max_iter=1000, random_state=0)
        )
        for k in (8, 9, 10, 12)
    }
    return {
        "default": learner(),
        "quartets alone, paper's thresholds": learner(**PAPER),
        "quartets alone, auto": learner(refine=False),
        "quartets alone, coherence test, auto": learner(test="coherence", refine=False),
        "likelihood, from true parameters": likelihood_from_the_truth,
        "EM, best of 4 random starts, 8 latents": random_starts,
        **nmf,
        "LDA, 8 topics": supports(lambda: LatentDirichletAllocation(8, random_state=0)),
        "Boltzmann machine, 8 units": supports(
            lambda: BernoulliRBM(8, n_iter=50, random_state=0)
        ),
    }


def run(sizes, n_draws):
    results = defaultdict(list)
    for n_samples in sizes:
        for draw in range(n_draws):
            data = make_noisy_or_images(n_samples, random_state=draw)
            truth = data.network
            for name, fit in methods().items():
                with expected(ConvergenceWarning, ModelMisfitWarning, PoorDataWarning):
                    seconds, (failure, prior) = timed(fit, data)
                found = match_latents(truth.failure, failure, prior)[1].sum()
                edges = edge_f1(truth.structure, failure < 1.0)
                results[name, n_samples].append((found, len(failure), edges, seconds))
    return {key: np.array(rows) for key, rows in results.items()}


def tables(report, results, sizes):
    names = list(methods())
    report.text("Sources found of 8: mean over draws, and the smallest in brackets.")
    report.table(
        ["method", *(f"{n:,} rows" for n in sizes)],
        [
            [name]
            + [
                f"{found.mean():.1f} ({found.min():.0f})"
                for found in (results[name, n][:, 0] for n in sizes)
            ]
            for name in names
        ],
    )
    chosen = names[:4]
    for title, column, text in [
        ("Latents proposed: smallest to largest over draws.", 1, None),
        ("F1 score of the edges: mean over draws.", 2, "{:.3f}"),
        ("Seconds: median over draws.", 3, "{:.2f}"),
    ]:
        report.text(title)
        rows = []
        for name in chosen if column < 3 else names:
            values = [results[name, n][:, column] for n in sizes]
            if text is None:
                rows.append(
                    [name] + [f"{v.min():.0f} to {v.max():.0f}" for v in values]
                )
            else:
                middle = np.mean if column == 2 else np.median
                rows.append([name] + [text.format(middle(v)) for v in values])
        report.table(["method", *(f"{n:,} rows" for n in sizes)], rows)


def picture(results, sizes):
    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    shown = [
        ("default", "o-", "#d55e00"),
        ("likelihood, from true parameters", ":", "black"),
        ("quartets alone, paper's thresholds", "s-", "#0072b2"),
        ("NMF, 8 components", "^--", "#009e73"),
        ("NMF, 12 components", "v--", "#56b4e9"),
        ("EM, best of 4 random starts, 8 latents", "x-", "#cc79a7"),
    ]
    for name, style, color in shown:
        means = [results[name, n][:, 0].mean() for n in sizes]
        ax.semilogx(sizes, means, style, color=color, label=name)
    ax.set(xlabel="rows", ylabel="sources found of 8", ylim=(-0.2, 8.4))
    ax.legend(fontsize=8, frameon=False)
    return figure


def main():
    arguments = parse_arguments(__doc__, draws=10)
    sizes = SIZES[1:3] if arguments.quick else SIZES
    n_draws = 2 if arguments.quick else arguments.draws
    report = Report("quartet_figure_3", "Hidden images", quick=arguments.quick)
    results = run(sizes, n_draws)
    tables(report, results, sizes)
    report.figure(picture(results, sizes))
    report.close()


if __name__ == "__main__":
    main()
