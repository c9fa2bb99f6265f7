"""Latents over time on problems that are harder than those of the paper.

Each line changes one thing of Halbersberg and Lerner (2020), Section 4.1: fewer
sequences, poorer features, one latent much weaker than the other, features of mixed
quality, two features per latent, many latents, numbers of states from 2 to 6. The
default learner is given only the sequences. SHD counts wrong edges (missing, extra,
reversed or undirected), O-SHD those between latents and features. Structural EM, given
the numbers of latents and states, is run where inference is not exact.

    python benchmarks/temporal_harder.py

Run times are processor seconds of one thread.
"""

from __future__ import annotations

import numpy as np
from _common import Report, clocked, expected, parse_arguments

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.metrics import structural_hamming_distance
from sklearn_latent.mixed import SEMDBN, LGLPCCTemporal, TemporalGraph

N_SLICES = 4


def two_latents(name, per_latent=3):
    """G2 or G3 with another number of features per latent."""
    graph = make_latent_dbn(name, 1, 2).graph
    measurement = np.kron(np.eye(2, dtype=int), np.ones((1, per_latent), dtype=int))
    return TemporalGraph(measurement, graph.intra, graph.inter)


def many_latents(n_latents, per_latent):
    """Every other latent depends on its own past, the others on their neighbour."""
    measurement = np.kron(
        np.eye(n_latents, dtype=int), np.ones((1, per_latent), dtype=int)
    )
    intra = np.zeros((n_latents, n_latents), dtype=int)
    inter = np.zeros((n_latents, n_latents), dtype=int)
    for j in range(n_latents):
        if j % 2:
            intra[j - 1, j] = 1
        else:
            inter[j, j] = 1
    inter[1, 2] = inter[2, 2] = 1
    return TemporalGraph(measurement, intra, inter)


def problems():
    """Name, graph and options of each problem."""
    for name in ("G2", "G3"):
        yield f"{name} as in the paper", name, {}
        yield f"{name}, P(X = v given L) = 0.6", name, {"reliability": 0.6}
        yield (
            f"{name}, first latent weak (0.5 against 0.9)",
            name,
            {"reliability": [0.5] * 3 + [0.9] * 3},
        )
        yield (
            f"{name}, second latent weak (0.5 against 0.9)",
            name,
            {"reliability": [0.9] * 3 + [0.5] * 3},
        )
        yield (
            f"{name}, features of 0.9, 0.6 and 0.4",
            name,
            {"reliability": [0.9, 0.6, 0.4] * 2},
        )
        yield f"{name}, two features per latent", two_latents(name, 2), {}
    yield "six latents, 24 features, 3 states", many_latents(6, 4), {"cardinality": 3}
    yield "six latents, 24 features, 4 states", many_latents(6, 4), {}
    yield (
        "three latents of 2, 4 and 6 states",
        many_latents(3, 3),
        {"cardinality": [2, 4, 6]},
    )
    yield (
        "four latents of 2, 3, 5 and 6 states",
        many_latents(4, 4),
        {"cardinality": [2, 3, 5, 6]},
    )


def measure(graph, options, n_sequences, n_draws):
    """Mean results over draws."""
    results = []
    for draw in range(n_draws):
        data = make_latent_dbn(
            graph, n_sequences, N_SLICES, random_state=draw, **options
        )
        learner = LGLPCCTemporal(N_SLICES, random_state=0)
        with expected(ApproximateInferenceWarning):
            (_, seconds), model = clocked(learner.fit, data.X)
        shd, o_shd = structural_hamming_distance(data.graph, model.graph_)
        right = model.n_latents_ == data.graph.n_latents
        states = right and np.array_equal(
            np.sort(model.cardinality_), np.sort(data.network.cardinality)
        )
        results.append([shd, o_shd, right, states, seconds])
    return np.mean(results, axis=0)


def structural_em(n_sequences, n_slices, n_starts):
    """Single starts of structural EM with 4,096 joint states."""
    data = make_latent_dbn(many_latents(6, 3), n_sequences, n_slices, random_state=0)
    for start in range(n_starts):
        learner = SEMDBN(6, 4, n_slices, n_init=1, random_state=start)
        with expected(ApproximateInferenceWarning):
            (_, seconds), model = clocked(learner.fit, data.X)
        shd, o_shd = structural_hamming_distance(data.graph, model.graph_)
        yield [start, shd, o_shd, f"{model.bic_:.0f}", model.n_iter_, f"{seconds:.1f}"]


def main():
    options = parse_arguments(__doc__, draws=10)
    n_draws = 2 if options.quick else options.draws
    report = Report("temporal_harder", "Latents over time, harder", quick=options.quick)
    for n_sequences in (500, 2000):
        report.text(
            f"{n_sequences} sequences of {N_SLICES} slices, mean of {n_draws} draws."
        )
        rows = []
        for name, graph, settings in problems():
            shd, o_shd, right, states, seconds = measure(
                graph, settings, n_sequences, n_draws
            )
            rows.append(
                [
                    name,
                    f"{shd:.1f}",
                    f"{o_shd:.1f}",
                    f"{100 * right:.0f}%",
                    f"{100 * states:.0f}%",
                    f"{seconds:.1f}",
                ]
            )
            print(rows[-1], flush=True)
        report.table(
            ["problem", "SHD", "O-SHD", "latents right", "states right", "seconds"],
            rows,
        )
    n_starts = 1 if options.quick else 3
    report.text(
        "SEMDBN, six latents of 4 states, 18 features, 500 sequences of 5 slices."
    )
    report.table(
        ["start", "SHD", "O-SHD", "BIC", "rounds", "seconds"],
        structural_em(500, 5, n_starts),
    )
    report.close()


if __name__ == "__main__":
    main()
