"""Time of the structure learner by rows and features; depths at the size of QMR-DT.

The images with 1,000 to 1,000,000 rows, and random networks of 32 to 500 features with
one latent of eight children per eight features; then Table 1 of Jernite, Halpern and
Sontag (2013) for a random network of the size of QMR-DT.

    python benchmarks/quartet_scaling.py
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _common import Report, expected, parse_arguments, random_structure, timed

from sklearn_latent import QuartetStructureLearner
from sklearn_latent.datasets import make_noisy_or, make_noisy_or_images, make_qmr_like
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.metrics import match_latents
from sklearn_latent.noisy_or import find_schedule, quartet_depth

# Table 1 of the paper: diseases discovered and edges learned by depth.
PUBLISHED = {
    0: (469, 39_522),
    1: (82, 4_875),
    2: (13, 789),
    3: (2, 86),
    np.inf: (4, 198),
}


def measure(data):
    """Seconds and share of latents found, quartets alone and refined."""
    results = []
    for refine in (False, True):
        with expected(PoorDataWarning):
            seconds, model = timed(
                QuartetStructureLearner(refine=refine, n_jobs=2).fit, data.X
            )
        failure = data.network.failure
        found = match_latents(failure, model.failure_, model.prior_)[1].mean()
        results.append((seconds, found))
    return results


def growth(report, title, label, cases):
    report.text(title)
    sizes, results = [], []
    for size, data in cases:
        sizes.append(size)
        results.append(measure(data))
    report.table(
        [label, "quartets alone, s", "found", "refined, s", "found"],
        [
            [f"{size:,}", f"{a:.2f}", f"{x:.2f}", f"{b:.2f}", f"{y:.2f}"]
            for size, ((a, x), (b, y)) in zip(sizes, results, strict=True)
        ],
    )
    return sizes, np.array(results)[:, :, 0]


def picture(curves):
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for ax, (label, (sizes, seconds)) in zip(axes, curves.items(), strict=True):
        ax.loglog(sizes, seconds[:, 0], "s-", color="#0072b2", label="quartets alone")
        ax.loglog(sizes, seconds[:, 1], "o-", color="#d55e00", label="refined")
        ax.set(xlabel=label, ylabel="seconds")
    axes[0].legend(frameon=False)
    return figure


def depth_table(report, quick):
    size = (57, 407, 4_547) if quick else (570, 4075, 45470)
    structure = make_qmr_like(*size, n_samples=1, random_state=0).network.structure
    seconds, depth = timed(quartet_depth, structure)
    edge_depth = find_schedule(structure).depth
    report.text(
        f"Depths of a random network of {size[0]} latents, {size[1]:,} features and "
        f"{size[2]:,} edges, in {seconds:.2f} s. The published network is another one."
    )
    rows = []
    for value in [*range(int(depth[np.isfinite(depth)].max()) + 1), np.inf]:
        latents, edges = PUBLISHED.get(value, (0, 0))
        rows.append(
            [
                f"{value:.0f}",
                f"{int((depth == value).sum()):,}",
                f"{int(structure[depth == value].sum()):,}",
                f"{int((edge_depth == value).sum()):,}",
                f"{latents:,}",
                f"{edges:,}",
            ]
        )
    header = ["depth", "latents", "their edges", "edges, known structure"]
    report.table([*header, "published: latents", "edges"], rows)


def main():
    arguments = parse_arguments(__doc__)
    quick = arguments.quick
    report = Report("quartet_scaling", "Growth and depths", quick=quick)
    rows = [1_000, 10_000] if quick else [1_000, 10_000, 100_000, 1_000_000]
    features = [32, 64] if quick else [32, 64, 128, 256, 500]
    even = {"prior": 0.125, "failure": 0.1, "leak": 0.001, "random_state": 0}
    curves = {
        "rows": growth(
            report,
            "The images.",
            "rows",
            ((n, make_noisy_or_images(n, random_state=0)) for n in rows),
        ),
        "features": growth(
            report,
            "10,000 rows, one latent of eight children per eight features.",
            "features",
            (
                (m, make_noisy_or(random_structure(m // 8, m, 8, m), 10_000, **even))
                for m in features
            ),
        ),
    }
    depth_table(report, quick)
    report.figure(picture(curves))
    report.close()


if __name__ == "__main__":
    main()
