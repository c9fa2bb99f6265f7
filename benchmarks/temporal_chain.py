"""Forward-backward and EM on joint chains: run time, and agreement with hmmlearn.

A chain of one latent with one feature is a hidden Markov model with categorical
emissions, so hmmlearn (if it is installed) must reach the same log-likelihood from the
same start in the same number of EM steps. Then the run time of EM for coupled latents
with up to 500 joint states, and of the factored approximation above that.

Then whether the default ends in a poor optimum: random networks of `temporal_shapes.py`
with up to four latents, 300 sequences of 5 slices. The log-likelihood of the default is
compared with the best of 20 runs of EM from random emissions, with the graph, numbers
of states and kinds of emissions that the default found.

    python benchmarks/temporal_chain.py
    python benchmarks/temporal_chain.py --parts optima --draws 20 --first 0
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count, islice

import numpy as np
from _common import Report, clocked, expected, parse_arguments
from sklearn.exceptions import ConvergenceWarning
from temporal_shapes import random_panel

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.mixed import LatentDBN, LGLPCCTemporal, TemporalGraph
from sklearn_latent.mixed._em.chain_em import EMOptions, fit_chain
from sklearn_latent.mixed._panels.panel import Panel

PARTS = ("hmmlearn", "states", "optima")


def random_start(n_states, n_categories, seed):
    """A hidden Markov model with random tables."""
    rng = np.random.default_rng(seed)
    graph = TemporalGraph([[1]], [[0]], [[1]])
    return LatentDBN(
        graph,
        [n_states],
        [rng.dirichlet(np.ones(n_states))],
        [rng.dirichlet(np.ones(n_states), n_states)],
        [rng.dirichlet(np.ones(n_categories), n_states)],
    )


def fit_hmmlearn(codes, start, n_steps):
    """Log-likelihood after as many steps of hmmlearn's EM."""
    from hmmlearn.hmm import CategoricalHMM

    n, n_slices, _ = codes.shape
    model = CategoricalHMM(
        len(start.start[0]), n_iter=n_steps, tol=-np.inf, init_params=""
    )
    model.startprob_ = start.start[0]
    model.transmat_ = start.transition[0]
    model.emissionprob_ = start.emission[0]
    stacked, lengths = codes.reshape(-1, 1), [n_slices] * n
    model.fit(stacked, lengths)
    return model.score(stacked, lengths)


def fit_ours(codes, start, n_steps):
    """Log-likelihood after the same number of our iterations."""
    options = EMOptions(n_steps, tol=0.0, smoothing=0.0)
    panel = Panel.of(codes, start.n_categories)
    ascent = fit_chain(panel, start.graph, start.cardinality, start, options)
    return ascent.objective


def peer_rows(sizes, n_steps):
    for n, n_slices, n_states in sizes:
        true = random_start(n_states, 2 * n_states, seed=0)
        codes, _ = true.sample(n, n_slices, random_state=0)
        start = random_start(n_states, 2 * n_states, seed=1)
        (_, ours), found = clocked(fit_ours, codes, start, n_steps)
        (_, peer), reached = clocked(fit_hmmlearn, codes, start, n_steps)
        yield [
            f"{n:,} x {n_slices}, {n_states} states",
            f"{found:.6f}",
            f"{reached:.6f}",
            f"{ours:.2f}",
            f"{peer:.2f}",
            f"{peer / ours:.1f}",
        ]


def coupled(cardinality):
    """Latents in a row, each with three features and its own past."""
    n = len(cardinality)
    return TemporalGraph(np.kron(np.eye(n), np.ones((1, 3))), np.eye(n, k=1), np.eye(n))


def state_rows(cases, n_sequences, n_slices):
    for cardinality in cases:
        graph = coupled(cardinality)
        data = make_latent_dbn(
            graph, n_sequences, n_slices, cardinality=cardinality, random_state=0
        )
        panel = Panel.of(data.codes, data.network.n_categories)
        seconds, ascent = clocked(fit_chain, panel, graph, cardinality, random_state=0)
        yield [
            " x ".join(map(str, cardinality)),
            int(np.prod(cardinality)),
            "exact" if ascent.state.is_exact() else "factored",
            ascent.n_iter,
            f"{seconds[1]:.1f}",
        ]


def small_panels(first, most=4):
    """Seeds and panels of random networks of few latents."""
    for seed in count(first):
        data = random_panel(seed, 300, 5)
        if data.graph.n_latents <= most:
            yield seed, data


def restarted(data, network, seed):
    """Log-likelihood of EM from random emissions, with all else as in a network."""
    rng = np.random.default_rng(seed)
    kinds = tuple((emission.kind,) for emission in network.emissions)
    panel = replace(Panel.of(data.codes, data.network.n_categories), kinds=kinds)
    tables = [
        rng.dirichlet(np.ones(width), emission.n_states)
        for width, emission in zip(panel.n_categories, network.emissions, strict=True)
    ]
    ascent = fit_chain(panel, network.graph, network.cardinality, tables)
    return ascent.statistics.log_likelihood


def optimum_rows(draws, first, n_starts):
    """Log-likelihoods of the default, less those of random starts, in nats."""
    near = 0
    for number, (seed, data) in enumerate(islice(small_panels(first), draws), 1):
        with expected(LatentWarning, ConvergenceWarning):
            model = LGLPCCTemporal(5, random_state=0).fit(data.X)
        found = [restarted(data, model.network_, k) for k in range(n_starts)]
        gaps = model.log_likelihood_ - np.array(found)
        near += gaps.min() > -1
        yield [
            seed,
            " ".join(map(str, model.cardinality_)),
            f"{gaps.min():.2f}",
            f"{np.median(gaps):.2f}",
            f"{near} of {number}",
        ]


def main():
    options = parse_arguments(
        __doc__,
        quick={"draws": 2, "starts": 3},
        parts=PARTS,
        draws=20,
        first=0,
        starts=20,
    )
    report = Report("temporal_chain", "Chains", quick=options.partial)
    if "hmmlearn" in options.parts:
        report_peer(report, options.quick)
    if "states" in options.parts:
        report_states(report, options.quick)
    if "optima" in options.parts:
        report.text(
            "## Optima",
            f"Log-likelihood of the default less that of {options.starts} random "
            "starts, and fits within 1 nat of the best so far.",
        )
        header = ["draw", "states", "less the best", "less the median", "within 1"]
        report.begin(header, [6, 8, 14, 16, 9])
        for row in optimum_rows(options.draws, options.first, options.starts):
            report.row(row)
    report.close()


def report_peer(report, quick):
    """Against hmmlearn."""
    try:
        import hmmlearn
    except ImportError:
        report.text("hmmlearn is not installed.")
    else:
        report.text(
            f"## Against hmmlearn {hmmlearn.__version__}",
            "Log-likelihood after 20 EM steps from the same start, processor seconds, "
            "and their ratio.",
        )
        sizes = (
            [(200, 10, 3)] if quick else [(2000, 4, 4), (2000, 15, 4), (500, 50, 12)]
        )
        header = ["sequences x slices", "ours", "hmmlearn", "ours, s", "hmmlearn, s"]
        report.table([*header, "ratio"], peer_rows(sizes, 20))


def report_states(report, quick):
    """Run time by number of joint states."""
    report.text(
        "## Joint states",
        "EM until it converges, 2,000 sequences of 4 slices; processor seconds.",
    )
    cases = [(4, 4), (4, 4, 4), (7, 6, 7), (8, 8, 7), (5, 5, 5, 5)]
    header = ["cardinalities", "joint states", "inference", "EM steps", "seconds"]
    report.table(header, state_rows(cases[:2] if quick else cases, 2000, 4))


if __name__ == "__main__":
    main()
