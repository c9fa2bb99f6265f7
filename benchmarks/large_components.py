"""Effect of refinement where the exact likelihood is too expensive.

Not in the paper. All latents are connected, and there are too many to sum over their
states: ``refine=True`` combines several triplets per edge and then fits all
interactions of siblings by least squares. Priors in [0.05, 0.3], failures in [0.2,
0.8], leak 0.01, 10,000 rows, five draws of structure and parameters.

    python benchmarks/large_components.py

It takes about four minutes, nearly all of them for variational EM (one random start, at
most 200 iterations, the first two draws). It is left out at 40 x 200, where 25
iterations take about a minute.
"""

from __future__ import annotations

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from _common import (
    COLORS,
    Report,
    absolute_errors,
    expected,
    parse_arguments,
    random_structure,
    timed,
)
from sklearn.exceptions import ConvergenceWarning

from sklearn_latent import NoisyOrEM, NoisyOrMoMLearner
from sklearn_latent.datasets import make_noisy_or
from sklearn_latent.exceptions import (
    ModelMisfitWarning,
    PoorDataWarning,
    UnidentifiableWarning,
)

N_ROWS = 10_000


class Size(NamedTuple):
    """Shape of a network, and whether variational EM is run."""

    n_latents: int
    n_features: int
    n_children: int
    variational: bool

    def __str__(self):
        return f"{self.n_latents} x {self.n_features}, {self.n_children} children"


SIZES = [
    Size(30, 120, 12, True),
    Size(30, 60, 12, True),
    Size(40, 200, 30, False),
]


def make_data(size, seed):
    structure = random_structure(*size[:3], random_state=seed)
    return make_noisy_or(structure, N_ROWS, prior=(0.05, 0.3), random_state=seed)


def make_learners(structure, max_iter, variational):
    learners = {
        "plain moments": NoisyOrMoMLearner(structure, refine=False),
        "refined": NoisyOrMoMLearner(structure),
    }
    if variational:
        learners["variational EM"] = NoisyOrEM(
            structure=structure,
            inference="variational",
            max_iter=max_iter,
            random_state=0,
        )
    return learners


def measure(size, seed, max_iter, variational):
    """Failure error, prior error, seconds and convergence, by method."""
    data = make_data(size, seed)
    results = {}
    for method, learner in make_learners(
        data.network.structure, max_iter, variational
    ).items():
        # Dense structures leave plain moments little to work with, and EM is cut off.
        with expected(
            PoorDataWarning,
            UnidentifiableWarning,
            ConvergenceWarning,
            ModelMisfitWarning,
        ):
            seconds, _ = timed(learner.fit, data.X)
        errors = absolute_errors(learner, data.network)
        converged = getattr(learner, "converged_", np.nan)
        results[method] = (
            errors["failure"].mean(),
            errors["prior"].mean(),
            seconds,
            converged,
        )
    return results


def rows_of(results):
    for (size, method), draws in results.items():
        failure, prior, seconds, converged = np.array(draws).T
        plain = np.mean([draw[2] for draw in results[size, "plain moments"]])
        yield [
            size,
            method,
            len(draws),
            f"{failure.mean():.4f}",
            f"{failure.max():.4f}",
            f"{prior.mean():.4f}",
            f"{seconds.mean():.2f}",
            f"{seconds.mean() / plain:.0f}",
            "" if np.isnan(converged).all() else f"{converged.sum():.0f}",
        ]


def draw(results):
    sizes = list(dict.fromkeys(size for size, _ in results))
    methods = list(dict.fromkeys(method for _, method in results))
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for ax, quantity, name in zip(axes, (0, 1), ("failures", "priors"), strict=True):
        for k, method in enumerate(methods):
            for i, size in enumerate(sizes):
                if (size, method) not in results:
                    continue
                values = [draw[quantity] for draw in results[size, method]]
                where = i + 0.25 * (k - 1)
                color = COLORS[method]
                ax.bar(where, np.mean(values), 0.22, color=color, alpha=0.6)
                ax.plot([where] * len(values), values, ".", color="k", markersize=4)
        ax.set_xticks(range(len(sizes)), [size.replace(", ", "\n") for size in sizes])
        ax.set(ylabel=f"mean absolute error of {name}", ylim=(0, None))
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLORS[m], alpha=0.6) for m in methods]
    axes[0].legend(handles, methods, frameon=False)
    axes[0].set_title("10,000 rows; dots are draws")
    return figure


def main():
    arguments = parse_arguments(
        __doc__, draws=5, variational_draws=2, variational_iterations=200
    )
    quick = arguments.quick
    n_draws = 2 if quick else arguments.draws
    n_variational = 0 if quick else arguments.variational_draws
    max_iter = arguments.variational_iterations
    report = Report("large_components", "Large components", quick=quick)
    results: dict = {}
    for size in SIZES:
        for seed in range(n_draws):
            variational = size.variational and seed < n_variational
            measured = measure(size, seed, max_iter, variational)
            for method, values in measured.items():
                results.setdefault((str(size), method), []).append(values)
    report.text(
        f"{N_ROWS:,} rows. Errors are means over edges (or latents), then mean or "
        "worst over draws. Variational EM: one random start, at most "
        f"{max_iter} iterations, not run at 40 x 200, where 25 of them take about a "
        "minute."
    )
    header = ["network", "method", "draws", "failure error", "worst", "prior error"]
    header += ["seconds", "time / plain", "EM runs that converged"]
    report.table(header, rows_of(results))
    report.figure(draw(results))
    report.close()


if __name__ == "__main__":
    main()
