"""Forward-backward and EM on joint chains: run time, and agreement with hmmlearn.

A chain of one latent with one feature is a hidden Markov model with categorical
emissions, so hmmlearn (if it is installed) must reach the same log-likelihood from the
same start in the same number of EM steps. Then the run time of EM for coupled latents
with up to 500 joint states, and of the factored approximation above that.

    python benchmarks/temporal_chain.py
"""

from __future__ import annotations

import numpy as np
from _common import Report, clocked, parse_arguments

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.temporal import LatentDBN, TemporalGraph
from sklearn_latent.temporal._em.em import EMOptions, fit_chain
from sklearn_latent.temporal._panels.panel import Panel


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


def main():
    arguments = parse_arguments(__doc__)
    quick = arguments.quick
    report = Report("temporal_chain", "Chains", quick=quick)
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
    report.text(
        "## Joint states",
        "EM until it converges, 2,000 sequences of 4 slices; processor seconds.",
    )
    cases = [(4, 4), (4, 4, 4), (7, 6, 7), (8, 8, 7), (5, 5, 5, 5)]
    header = ["cardinalities", "joint states", "inference", "EM steps", "seconds"]
    report.table(header, state_rows(cases[:2] if quick else cases, 2000, 4))
    report.close()


if __name__ == "__main__":
    main()
