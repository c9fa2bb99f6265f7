"""Ten million rows on a Dask cluster of two workers, one of which is killed.

The workers draw the rows from a known noisy-or network, block by block; the rows are
never in one place. Both learners are fitted on the cluster, again while a worker is
killed, and on one machine with ``partial_fit``. The table shows the largest difference
between the fitted parameters, and the peak memory of any process.

    python benchmarks/dask_cluster.py [--learner moments|quartets]
"""

from __future__ import annotations

import os
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
import psutil
from _common import Report, expected, parse_arguments, timed
from distributed import Client, LocalCluster

from sklearn_latent import NoisyOrMoMLearner, NoisyOrNetwork, QuartetStructureLearner
from sklearn_latent.exceptions import LatentWarning

N_FEATURES = 256
N_LATENTS = 32
# Neighbours share two features, and every fourth link is left out, so that no more
# than four latents are coupled.
N_CHILDREN = 10


def make_network():
    """Latents over neighbouring features, in chains of four."""
    rng = np.random.RandomState(0)
    failure = np.ones((N_LATENTS, N_FEATURES))
    width = N_FEATURES // N_LATENTS
    for latent in range(N_LATENTS):
        last = latent % 4 == 3
        features = latent * width + np.arange(width if last else N_CHILDREN)
        failure[latent, features] = rng.uniform(0.1, 0.6, len(features))
    return NoisyOrNetwork(
        rng.uniform(0.05, 0.3, N_LATENTS), failure, rng.uniform(0.005, 0.05, N_FEATURES)
    )


def draw_block(network, n_rows, number):
    """Rows of one block, which depend only on the number of the block.

    They are drawn in single precision and in pieces that fit into the cache, which is
    three times as fast as ``network.sample``.
    """
    rng = np.random.default_rng(number)
    log_failure = np.log(network.failure).astype(np.float32)
    stays_off = np.log1p(-network.leak).astype(np.float32)
    rows = np.empty((n_rows, network.n_features), dtype=np.int8)
    for start in range(0, n_rows, 2048):
        piece = rows[start : start + 2048]
        shape = (len(piece), network.n_latents)
        latents = rng.random(shape, dtype=np.float32) < network.prior
        off = np.exp(latents.astype(np.float32) @ log_failure + stays_off)
        piece[:] = rng.random(piece.shape, dtype=np.float32) >= off
    return rows


def make_array(network, n_rows, block_rows):
    """The rows as a Dask array whose blocks are drawn when they are needed."""
    shared = dask.delayed(network)
    draw = dask.delayed(draw_block, pure=True)
    blocks = [
        da.from_delayed(
            draw(shared, block_rows, number), (block_rows, N_FEATURES), np.int8
        )
        for number in range(n_rows // block_rows)
    ]
    return da.concatenate(blocks)


class PeakMemory:
    """Largest resident memory of any process of a cluster and of this one.

    Sampled by a thread, and read from the kernel's own record for this process.
    """

    def __init__(self):
        self.peak = 0
        self.of_client = 0
        self._stop = threading.Event()

    def __enter__(self):
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self):
        own = psutil.Process()
        while not self._stop.wait(0.05):
            self.of_client = max(self.of_client, own.memory_info().rss)
            for process in own.children(recursive=True):
                try:
                    self.peak = max(self.peak, process.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue

    def __exit__(self, *exc):
        self._stop.set()
        self._thread.join()
        return False


def kill_a_worker(client, seconds):
    """Kill one worker process after some seconds; return a list with the time."""
    killed: list[float] = []
    start = time.perf_counter()

    def kill():
        pids = client.run(os.getpid)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        killed.append(time.perf_counter() - start)

    timer = threading.Timer(seconds, kill)
    timer.start()
    return timer, killed


def fit_on_cluster(learner, X, kill_after=None):
    """Fit on a new cluster; seconds, peak memory, and when the worker died."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="2GB",
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
        PeakMemory() as memory,
    ):
        timer, killed = (None, [])
        if kill_after is not None:
            timer, killed = kill_a_worker(client, kill_after)
        seconds, _ = timed(learner.fit, X)
        if timer is not None:
            timer.cancel()
    return seconds, memory, killed


def fit_in_batches(learner, network, n_rows, block_rows):
    """Fit on this machine, batch by batch."""
    n_blocks = n_rows // block_rows
    with PeakMemory() as memory:
        start = time.perf_counter()
        for number in range(n_blocks):
            batch = draw_block(network, block_rows, number)
            learner.partial_fit(batch, update=number == n_blocks - 1)
        seconds = time.perf_counter() - start
    return seconds, memory


def difference(one, two):
    """Largest difference of any parameter; inf if the structures differ."""
    if one.failure_.shape != two.failure_.shape:
        return np.inf
    return max(
        float(np.abs(getattr(one, name) - getattr(two, name)).max(initial=0.0))
        for name in ("prior_", "failure_", "leak_")
    )


def megabytes(memory, *, client):
    return f"{(memory.of_client if client else memory.peak) / 2**20:,.0f}"


def compare(make, network, X, block_rows):
    """Rows of the table for one learner: batches, the cluster, a worker killed."""
    n_rows = X.shape[0]
    rows = []
    name = type(make()).__name__
    with expected(LatentWarning):
        local = make()
        seconds, memory = fit_in_batches(local, network, n_rows, block_rows)
        rows.append(
            [
                name,
                "partial_fit",
                f"{seconds:.0f}",
                "-",
                megabytes(memory, client=True),
                "-",
                f"{np.abs(local.leak_ - network.leak).max():.4f}",
            ]
        )
        print(rows[-1], flush=True)
        whole = None
        for how in ("cluster", "worker killed"):
            kill_after = None if whole is None else 0.3 * whole
            learner = make()
            seconds, memory, killed = fit_on_cluster(learner, X, kill_after)
            whole = seconds
            note = f"{how} after {killed[0]:.0f} s" if killed else how
            rows.append(
                [
                    name,
                    note,
                    f"{seconds:.0f}",
                    megabytes(memory, client=False),
                    megabytes(memory, client=True),
                    f"{difference(local, learner):.1e}",
                    f"{np.abs(learner.leak_ - network.leak).max():.4f}",
                ]
            )
            print(rows[-1], flush=True)
            if how == "worker killed" and not killed:
                raise RuntimeError("The fit ended before the worker was killed.")
    return rows


def main():
    arguments = parse_arguments(
        __doc__, rows=10_000_000, block_rows=100_000, learner="both"
    )
    n_rows, block_rows = arguments.rows, arguments.block_rows
    if arguments.quick:
        n_rows, block_rows = 400_000, 20_000
    report = Report(
        "dask_cluster", "Noisy-or learners on a Dask cluster", quick=arguments.quick
    )
    network = make_network()
    X = make_array(network, n_rows, block_rows)
    report.text(
        f"{n_rows:,} rows of {N_FEATURES} binary features, {len(X.chunks[0])} blocks, "
        f"{N_LATENTS} latents; two workers with one thread each, all on a machine "
        f"with {os.cpu_count()} cores. Drawing the rows is part of all times."
    )
    rows = []
    learners = {
        "moments": lambda: NoisyOrMoMLearner(network.structure),
        "quartets": QuartetStructureLearner,
    }
    if arguments.learner != "both":
        learners = {arguments.learner: learners[arguments.learner]}
    for make in learners.values():
        rows += compare(make, network, X, block_rows)
    report.table(
        [
            "learner",
            "how",
            "seconds",
            "worker, MB",
            "client, MB",
            "difference from partial_fit",
            "largest error of a leak",
        ],
        rows,
    )
    report.close()


if __name__ == "__main__":
    main()
