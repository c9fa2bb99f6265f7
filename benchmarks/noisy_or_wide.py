"""Wide, sparse tables: time, memory, and what is found among 20,000 columns.

Networks of rare causes, each of 8 to 15 columns, whose failures are .2 to .5; leaks
make about a thousandth of the table on. Causes of their own columns ("separate"), of
random columns, so that some share children ("random"), so many that most columns have a
parent and nearly all are connected ("crowded"), and few among columns of noise
("noise"). Each fit has a process of its own, whose peak memory counts the table, the
fit, and posteriors and likelihoods of 10,000 rows.

    python benchmarks/noisy_or_wide.py
    python benchmarks/noisy_or_wide.py --case noise --rows 20000
"""

from __future__ import annotations

import multiprocessing
import resource
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from _common import Report, parse_arguments
from scipy import sparse

from sklearn_latent import QuartetStructureLearner
from sklearn_latent.metrics import edge_f1, match_latents

# Latents for 20,000 columns, and whether they share no child.
CASES = {
    "separate": (300, True),
    "random": (300, False),
    "crowded": (1500, False),
    "noise": (20, False),
}
COLUMNS = 20_000
CHILDREN, FAILURE, PRIOR, LEAK = (8, 15), (0.2, 0.5), (0.002, 0.01), (0.0, 0.002)
BLOCK_ROWS, SCORED_ROWS = 10_000, 10_000


def plant(case, n_columns):
    """Priors, failures (1 without an edge) and leaks."""
    rng = np.random.RandomState(0)
    n_latents, separate = CASES[case]
    n_latents = max(2, n_latents * n_columns // COLUMNS)
    failure = np.ones((n_latents, n_columns))
    free = rng.permutation(n_columns)
    for row in failure:
        size = rng.randint(CHILDREN[0], CHILDREN[1] + 1)
        children = free[:size]
        free = free[size:] if separate else rng.permutation(n_columns)
        row[children] = rng.uniform(*FAILURE, size)
    return rng.uniform(*PRIOR, n_latents), failure, rng.uniform(*LEAK, n_columns)


def draw_block(prior, failure, leak, n_rows, rng):
    """Rows of a network, without a dense table of them."""
    latent, feature = np.nonzero(failure < 1.0)
    rows, columns = [], []
    for j in range(len(leak)):
        rows.append(rng.randint(n_rows, size=rng.binomial(n_rows, leak[j])))
        columns.append(np.full(len(rows[-1]), j))
    for i in range(len(prior)):
        present = np.flatnonzero(rng.uniform(size=n_rows) < prior[i])
        children = feature[latent == i]
        fires = rng.uniform(size=(len(present), len(children))) > failure[i, children]
        place = np.nonzero(fires)
        rows.append(present[place[0]])
        columns.append(children[place[1]])
    at = np.concatenate(rows), np.concatenate(columns)
    values = np.ones(len(at[0]), dtype=np.int8)
    table = sparse.csr_array((values, at), shape=(n_rows, len(leak)))
    table.sum_duplicates()
    table.data[:] = 1
    return table


def draw(network, n_rows):
    """The table, block by block."""
    rng = np.random.RandomState(1)
    sizes = [min(BLOCK_ROWS, n_rows - first) for first in range(0, n_rows, BLOCK_ROWS)]
    return sparse.vstack([draw_block(*network, size, rng) for size in sizes], "csr")


def peak():
    """Largest memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(case, n_rows, n_columns):
    """A row of the table, in a process of its own."""
    warnings.simplefilter("ignore")
    prior, failure, leak = plant(case, n_columns)
    X = draw((prior, failure, leak), n_rows)
    density = X.nnz / (X.shape[0] * X.shape[1])
    drawn, start = peak(), time.perf_counter()
    model = QuartetStructureLearner(random_state=0).fit(X)
    seconds, fitted = time.perf_counter() - start, peak()
    start = time.perf_counter()
    some = X[:SCORED_ROWS]
    model.transform(some)
    model.score(some)
    per_row = 1000.0 * (time.perf_counter() - start) / some.shape[0]
    pairs, _ = match_latents(failure, model.failure_, model.prior_)
    edges, learned = failure < 1.0, model.structure_
    common = [
        (edges[one] & learned[two]).sum() / (edges[one] | learned[two]).sum()
        for one, two in pairs
    ]
    return [
        f"{n_rows:,}",
        f"{n_columns:,}",
        f"{density:.2%}",
        len(prior),
        model.n_latents_,
        int(np.greater(common, 0.5).sum()),
        f"{edge_f1(edges, learned):.3f}",
        f"{seconds:.0f}",
        f"{per_row:.2f}",
        f"{drawn:.2f}",
        f"{fitted:.2f}",
        f"{peak():.2f}",
    ]


def main():
    arguments = parse_arguments(
        __doc__,
        quick={"case": ("random", "noise"), "rows": 10_000, "columns": 4_000},
        case=tuple(CASES),
        rows=100_000,
        columns=COLUMNS,
    )
    report = Report("noisy_or_wide", "Wide, sparse tables", quick=arguments.partial)
    report.text(
        "Share of the table that is on; latents, latents learned, and those that share "
        "more than half of their children with the latent they match; F1 of edges; "
        "seconds of the fit, milliseconds a row of `transform` and `score`; peak "
        "memory in GB with the table, after the fit, and after these."
    )
    header = ["network", "rows", "columns", "on", "latents", "learned", "found", "F1"]
    header += ["fit", "ms a row", "table", "fit GB", "all GB"]
    report.begin(header, [8, 7, 7, 5, 7, 7, 5, 5, 4, 8, 5, 6, 6])
    context = multiprocessing.get_context("spawn")
    for case in arguments.case:
        # Peaks do not fall: a new process each.
        with ProcessPoolExecutor(1, mp_context=context) as process:
            work = partial(measure, case, arguments.rows, arguments.columns)
            report.row([case, *process.submit(work).result()])
    report.close()


if __name__ == "__main__":
    main()
