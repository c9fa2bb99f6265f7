"""Time from rows to statistics, compared with the bare kernels, by number of rows.

The pass of a learner over the rows validates, thresholds, packs and counts. The bare
kernels start from boolean rows. They pack the columns into 64-bit words and count the
sets of the plan; for refined moments, they also collapse the rows of each component.

    python benchmarks/throughput.py
"""

from __future__ import annotations

import os

import matplotlib.pyplot as plt
import numpy as np
from _common import COLORS, Report, clocked, expected, parse_arguments
from dask_cluster import N_FEATURES, draw_block, make_network

from sklearn_latent import NoisyOrMoMLearner, QuartetStructureLearner
from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.noisy_or._statistics.moments import NegativeMoments
from sklearn_latent.noisy_or._statistics.packed import PackedRows

BATCH_ROWS = 100_000
REPEATS = 7
# Half a decade between points.
SIZES = [10_000, 31_600, 100_000, 316_000, 1_000_000, 3_160_000, 10_000_000]
CLUSTER_ROWS = 1e10
CLUSTER_WORKERS = 100


def best_seconds(function, repeats=REPEATS):
    """Minimum processor time of several calls."""
    return min(clocked(function)[0][1] for _ in range(repeats))


def bare_moments(rows, plan):
    """Pack and count."""
    return NegativeMoments.of(PackedRows.of(rows), plan.sets)


def bare_refined(rows, plan):
    """Pack and count, and collapse the rows of each component."""
    packed = PackedRows.of(rows)
    tables = [packed.patterns(part.features) for part in plan.parts]
    return NegativeMoments.of(packed, plan.sets), tables


def bare_packing(rows):
    """Pack."""
    return PackedRows.of(rows)


def compare_with_kernels(network, X, report):
    """The passes of the learners and the bare kernels on one batch."""
    on = X == 1
    table = []
    speeds = {}
    for name, learner, bare in (
        (
            "NoisyOrMoMLearner, refine=False",
            NoisyOrMoMLearner(network.structure, refine=False),
            bare_moments,
        ),
        ("NoisyOrMoMLearner", NoisyOrMoMLearner(network.structure), bare_refined),
        ("QuartetStructureLearner", QuartetStructureLearner(), bare_packing),
    ):
        if isinstance(learner, NoisyOrMoMLearner):
            learner.partial_fit(X, update=False)  # the plan is made once
            plan = learner._plan
            n_sets = len(plan.sets)
            kernel = best_seconds(lambda: bare(on, plan))  # noqa: B023
            # The pass over a batch, without the merging of its tables into those of
            # all batches before, which is a matter of their number.
            whole = best_seconds(lambda: learner._read(X, None, reset=False))  # noqa: B023
        else:
            n_sets = 0
            kernel = best_seconds(lambda: bare(on))  # noqa: B023
            whole = best_seconds(
                lambda: QuartetStructureLearner().partial_fit(X, update=False)
            )
        speeds[name] = len(X) / whole
        table.append(
            [
                name,
                f"{n_sets:,}",
                f"{1e6 * whole / len(X):.2f}",
                f"{1e6 * kernel / len(X):.2f}",
                f"{whole / kernel:.2f}",
                f"{len(X) / whole:,.0f}",
            ]
        )
    report.text(
        f"One batch of {len(X):,} rows of {N_FEATURES} features (int8), one core, best "
        f"of {REPEATS}, processor time."
    )
    report.table(
        [
            "statistics pass",
            "sets",
            "µs a row",
            "bare kernel, µs a row",
            "ratio",
            "rows a second",
        ],
        table,
    )
    return speeds


def growth(network, sizes, report):
    """Processor time of partial_fit over all batches, without drawing them."""
    results = {}
    for name, make in (
        ("moments", lambda: NoisyOrMoMLearner(network.structure, refine=False)),
        ("moments, refined", lambda: NoisyOrMoMLearner(network.structure)),
        ("quartets, packing", QuartetStructureLearner),
    ):
        seconds, learner, done, times = 0.0, make(), 0, []
        for size in sizes:
            while done < size:
                n = min(BATCH_ROWS, size - done)
                X = draw_block(network, n, done)
                elapsed, _ = clocked(learner.partial_fit, X, update=False)
                seconds += elapsed[1]
                done += n
            times.append(seconds)
        slope = np.polyfit(np.log10(sizes), np.log10(times), 1)[0]
        results[name] = times, slope
    report.text(
        f"Growth with rows, in batches of at most {BATCH_ROWS:,}: processor seconds. "
        "The slope is that of the logarithms; 1 is linear."
    )
    report.table(
        ["statistics pass", *(f"{size:,}" for size in sizes), "slope"],
        [
            [name, *(f"{t:.2f}" for t in times), f"{slope:.2f}"]
            for name, (times, slope) in results.items()
        ],
    )
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    colors = [
        COLORS[name] for name in ("plain moments", "refined", "maximum likelihood")
    ]
    for color, (name, (times, slope)) in zip(colors, results.items(), strict=True):
        ax.loglog(sizes, times, "o-", color=color, label=f"{name}, slope {slope:.2f}")
    last = results["moments"][0][-1]
    ax.loglog(
        sizes, last * np.array(sizes) / sizes[-1], ":", color="#777777", label="linear"
    )
    ax.set(
        xlabel=f"rows of {N_FEATURES} features",
        ylabel="processor seconds, one core",
        title="Statistics are linear in the rows",
    )
    ax.legend()
    report.figure(figure)


def on_paper(speeds, report):
    """Computed time on a cluster."""
    lines = []
    for name, speed in speeds.items():
        minutes = CLUSTER_ROWS / CLUSTER_WORKERS / speed / 60
        lines.append([name, f"{speed:,.0f}", f"{minutes:.1f}"])
    gigabytes = CLUSTER_ROWS * N_FEATURES / 8 / CLUSTER_WORKERS / 1e9
    report.text(
        f"On paper: {CLUSTER_ROWS:.0e} rows on {CLUSTER_WORKERS} workers of one core "
        "each, at the speed above, reading not counted. Partial sums are added in "
        f"{int(np.ceil(np.log2(CLUSTER_ROWS / BATCH_ROWS)))} rounds, most of them "
        "within a worker. QuartetStructureLearner leaves "
        f"{gigabytes:.1f} GB of packed rows with each worker."
    )
    report.table(["statistics pass", "rows a second and core", "minutes"], lines)


def main():
    arguments = parse_arguments(__doc__)
    report = Report(
        "throughput", "Throughput of the statistics pass", quick=arguments.quick
    )
    report.text(f"{os.cpu_count()} cores, of which one is used.")
    network = make_network()
    with expected(LatentWarning):
        X = draw_block(network, BATCH_ROWS, 0)
        speeds = compare_with_kernels(network, X, report)
        growth(network, SIZES[:4] if arguments.quick else SIZES, report)
    on_paper(speeds, report)
    report.close()


if __name__ == "__main__":
    main()
