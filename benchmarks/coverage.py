"""Coverage of 95% intervals.

Not in the paper. The share of intervals, estimate plus or minus 1.96 standard errors,
that cover the true parameter, over many data sets of 10,000 rows from the same
networks:

(a) Figure 1's structure (parameters in [0.2, 0.8], leak 0.01), where the refined
    learner maximises the likelihood;
(b) 30 latents x 120 features with 12 children each (priors in [0.05, 0.3], failures in
    [0.2, 0.8], leak 0.01): one large component, where it uses least squares.

    python benchmarks/coverage.py

It takes about fifteen minutes, mostly for the refined standard errors of (b).
"""

from __future__ import annotations

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from _common import (
    COLORS,
    Report,
    expected,
    parse_arguments,
    per_cent,
    random_structure,
)

from sklearn_latent import NoisyOrMoMLearner
from sklearn_latent.datasets import make_noisy_or
from sklearn_latent.exceptions import PoorDataWarning

N_ROWS = 10_000
METHODS = {"plain moments": False, "refined": True}
TARGET = 0.90, 0.98
BINS = np.linspace(0.8, 1, 41)


class Intervals(NamedTuple):
    """Arrays (network, data set, parameter); parameters are priors, then failures."""

    covered: np.ndarray
    stderr: np.ndarray
    error: np.ndarray
    n_priors: int

    @property
    def shares(self):
        """Coverage of each parameter of each network."""
        known = np.isfinite(self.stderr)
        return (self.covered & known).sum(axis=1) / np.maximum(known.sum(axis=1), 1)


def pack(prior, failure, structure):
    return np.concatenate([prior, failure[structure]])


def one_fit(network, refine, random_state):
    """Errors and standard errors of the estimates."""
    structure = network.structure
    X, _ = network.sample(N_ROWS, random_state=random_state)
    # Plain moments may find no dependence for a weak edge; that is part of the result.
    with expected(PoorDataWarning):
        learner = NoisyOrMoMLearner(structure, refine=refine).fit(X)
    difference = pack(
        learner.prior_ - network.prior, learner.failure_ - network.failure, structure
    )
    return difference, pack(learner.prior_stderr_, learner.failure_stderr_, structure)


def measure(networks, n_data_sets, refine):
    fits = [
        [one_fit(network, refine, random_state=seed) for seed in range(n_data_sets)]
        for network in networks
    ]
    error, stderr = np.moveaxis(np.array(fits), 2, 0)
    with np.errstate(invalid="ignore"):
        covered = np.abs(error) <= 1.96 * stderr
    return Intervals(covered, stderr, error, networks[0].n_latents)


def row_of(label, method, intervals):
    known = np.isfinite(intervals.stderr)
    inside = intervals.covered & known
    n, shares = intervals.n_priors, intervals.shares
    low, high = TARGET
    return [
        label,
        method,
        per_cent(inside.sum() / known.sum()),
        per_cent(inside[..., :n].sum() / known[..., :n].sum()),
        per_cent(inside[..., n:].sum() / known[..., n:].sum()),
        f"{per_cent(shares.min())} to {per_cent(shares.max())}",
        per_cent(((shares >= low) & (shares <= high)).mean()),
        f"{np.nanmedian(intervals.stderr):.4f}",
        f"{np.median(np.abs(intervals.error)):.4f}",
        per_cent(1 - known.mean()),
    ]


def figure_1_networks(n):
    return [make_noisy_or(None, 1, random_state=seed).network for seed in range(n)]


def large_network():
    structure = random_structure(30, 120, 12, random_state=0)
    data = make_noisy_or(structure, 1, prior=(0.05, 0.3), random_state=0)
    return data.network


def draw(results):
    labels = dict.fromkeys(label for label, _ in results)
    figure, axes = plt.subplots(
        1, len(labels), figsize=(10, 4), sharex=True, layout="constrained"
    )
    for ax, label in zip(axes, labels, strict=True):
        for method in METHODS:
            shares = results[label, method].shares.ravel()
            color = COLORS[method]
            ax.hist(shares, bins=BINS, color=color, alpha=0.25)
            ax.hist(
                shares,
                bins=BINS,
                color=color,
                histtype="step",
                linewidth=1.5,
                label=f"{method}, mean {per_cent(shares.mean())}",
            )
        ax.axvspan(*TARGET, color="k", alpha=0.07)
        ax.axvline(0.95, color="k", linestyle=":", linewidth=1)
        ax.set(title=label, xlabel="coverage of a parameter", ylabel="parameters")
        ax.legend(frameon=False, loc="upper left")
    return figure


def main():
    arguments = parse_arguments(__doc__, data_sets=200, networks=10)
    n_data_sets = 20 if arguments.quick else arguments.data_sets
    n_networks = 2 if arguments.quick else arguments.networks
    report = Report("coverage", "Coverage of 95% intervals", quick=arguments.quick)
    report.text(
        f"{N_ROWS:,} rows, {n_data_sets} data sets of each network: {n_networks} "
        "networks of Figure 1's structure, one of 30 x 120. Target: 90 to 98%."
    )
    experiments = {
        "Figure 1": figure_1_networks(n_networks),
        "30 x 120": [large_network()],
    }
    results = {
        (label, method): measure(networks, n_data_sets, refine)
        for label, networks in experiments.items()
        for method, refine in METHODS.items()
    }
    header = ["network", "method", "all", "priors", "failures"]
    header += ["range over parameters", "parameters within target"]
    header += ["median standard error", "median error", "no standard error"]
    report.table(header, [row_of(*key, value) for key, value in results.items()])
    report.figure(draw(results))
    report.close()


if __name__ == "__main__":
    main()
