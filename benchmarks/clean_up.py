"""Edges that no schedule reaches, learned by the clean-up procedure.

Two latents have 61 children each, 60 of them shared. Halpern and Sontag (2013, section
4.2) report that triplets and pairs do not reach this part of QMR-DT, and that it is
learned by the clean-up of their section 3.3. They give no results for it.

Ten networks with failures in [0.2, 0.8], priors in [0.1, 0.5] and leak 0.01.

    python benchmarks/clean_up.py

It takes about a minute.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _common import COLORS, Report, absolute_errors, expected, parse_arguments, timed

from sklearn_latent import NoisyOrMoMLearner
from sklearn_latent.datasets import make_noisy_or
from sklearn_latent.exceptions import UnidentifiableWarning

METHODS = {"plain moments": False, "refined": True}
TARGET = 0.05


def two_parents(n_shared=60):
    structure = np.zeros((2, n_shared + 2), dtype=bool)
    structure[0, :-1] = True
    structure[1, 1:] = True
    return structure


def learn(data, refine):
    """Mean failure error, mean prior error, seconds."""
    learner = NoisyOrMoMLearner(data.network.structure, refine=refine)
    # Edges out of reach of the schedule are what this experiment is about.
    with expected(UnidentifiableWarning):
        seconds, _ = timed(learner.fit, data.X)
    errors = absolute_errors(learner, data.network)
    return errors["failure"].mean(), errors["prior"].mean(), seconds


def measure(sizes, n_networks):
    """Array (size, network, method, quantity)."""
    results = np.empty((len(sizes), n_networks, len(METHODS), 3))
    for seed in range(n_networks):
        for i, n in enumerate(sizes):
            data = make_noisy_or(two_parents(), n, prior=(0.1, 0.5), random_state=seed)
            for k, refine in enumerate(METHODS.values()):
                results[i, seed, k] = learn(data, refine)
    return results


def rows_of(sizes, results):
    for i, n in enumerate(sizes):
        for k, method in enumerate(METHODS):
            failure, prior, seconds = results[i, :, k].T
            yield [
                f"{n:,}",
                method,
                f"{failure.mean():.4f}",
                f"{failure.max():.4f}",
                f"{prior.mean():.4f}",
                f"{seconds.mean():.2f}",
            ]


def draw(sizes, results):
    figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
    for k, method in enumerate(METHODS):
        failure = results[:, :, k, 0]
        color = COLORS[method]
        ax.loglog(sizes, failure.mean(axis=1), "o-", color=color, label=method)
        ax.loglog(sizes, failure, ".", color=color, alpha=0.25, markersize=4)
    ax.axhline(TARGET, color="k", linestyle=":", linewidth=1)
    ax.text(sizes[0], TARGET * 0.95, "target", va="top")
    ax.set(
        xlabel="rows",
        ylabel="mean absolute error of failures",
        title="Two latents, 60 of 61 children shared; dots are networks",
    )
    ax.legend(frameon=False)
    return figure


def main():
    arguments = parse_arguments(__doc__, networks=10)
    n_networks = 2 if arguments.quick else arguments.networks
    sizes = [10_000, 100_000] + [1_000_000] * (not arguments.quick)
    report = Report("clean_up", "Learning by clean-up", quick=arguments.quick)
    results = measure(sizes, n_networks)
    report.text(
        f"{n_networks} networks; errors are means over edges (or latents), then mean "
        "or worst over networks. Target: mean failure error below "
        f"{TARGET} from 100,000 rows."
    )
    header = ["rows", "method", "failure error", "worst", "prior error", "seconds"]
    report.table(header, rows_of(sizes, results))
    report.figure(draw(sizes, results))
    report.close()


if __name__ == "__main__":
    main()
