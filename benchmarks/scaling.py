"""Time and memory of every estimator at three sizes.

Each fit runs in its own process. Memory is what the fit adds to the peak memory of the
process, in addition to the data; time is processor time of one core.

    python benchmarks/scaling.py
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import warnings

import numpy as np
from _common import Report, clocked, parse_arguments
from dask_cluster import draw_block, make_network

from sklearn_latent import (
    NoisyOrEM,
    NoisyOrMoMLearner,
    QuartetStructureLearner,
    datasets,
)
from sklearn_latent.gaussian import IdealParentGaussianBN
from sklearn_latent.mixed import LPCC, SEMDBN, LGLPCCTemporal

SIZES = [1_000, 10_000, 100_000]
QUICK_SIZES = [200, 500, 1_000]


def coupled_rows(n):
    return draw_block(make_network(), n, 0)


def noisy_or_rows(n):
    return datasets.make_noisy_or_images(n, random_state=0).X


def gaussian_rows(n, n_features=50):
    return datasets.make_gaussian_bn(
        n_samples=n, n_features=n_features, random_state=0
    ).X


def few_gaussian_rows(n):
    return gaussian_rows(n // 10, 20)


def static_rows(n):
    return datasets.make_latent_dbn("G3", n, 1, random_state=0).X


def panel_rows(n):
    return datasets.make_latent_dbn("G3", n // 10, 10, random_state=0).X


def flat(X):
    """Sequences as rows."""
    return np.asarray(X).reshape(len(X), -1)


# Name: rows, estimator.
CASES = {
    "NoisyOrMoMLearner": (
        coupled_rows,
        lambda: NoisyOrMoMLearner(make_network().structure),
    ),
    "NoisyOrMoMLearner, refine=False": (
        coupled_rows,
        lambda: NoisyOrMoMLearner(make_network().structure, refine=False),
    ),
    "QuartetStructureLearner": (noisy_or_rows, QuartetStructureLearner),
    "QuartetStructureLearner, refine=False": (
        noisy_or_rows,
        lambda: QuartetStructureLearner(refine=False),
    ),
    "NoisyOrEM": (
        noisy_or_rows,
        lambda: NoisyOrEM(8, max_iter=50, random_state=0),
    ),
    "NoisyOrEM, variational": (
        noisy_or_rows,
        lambda: NoisyOrEM(8, inference="variational", max_iter=50, random_state=0),
    ),
    "IdealParentGaussianBN": (gaussian_rows, IdealParentGaussianBN),
    "IdealParentGaussianBN, greedy": (
        gaussian_rows,
        lambda: IdealParentGaussianBN(search="greedy"),
    ),
    "IdealParentGaussianBN, sigmoid": (
        few_gaussian_rows,
        lambda: IdealParentGaussianBN(link="sigmoid"),
    ),
    "IdealParentGaussianBN, max_latents=2": (
        few_gaussian_rows,
        lambda: IdealParentGaussianBN(max_latents=2),
    ),
    "LPCC": (static_rows, LPCC),
    "LGLPCCTemporal": (panel_rows, lambda: LGLPCCTemporal(n_slices=10)),
    "SEMDBN": (
        panel_rows,
        lambda: SEMDBN(
            n_latents=3, cardinality=2, n_slices=10, n_init=1, random_state=0
        ),
    ),
}


def peak_megabytes():
    """Largest resident memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name, n):
    """Fit once; print seconds and memory as JSON."""
    make_rows, make = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = flat(make_rows(n))
        # Compiled parts and imports are loaded by a small fit before.
        make().fit(X[:100])
        before = peak_megabytes()
        seconds, model = clocked(make().fit, X)
    print(
        json.dumps(
            {
                "seconds": float(seconds[1]),
                "added": peak_megabytes() - before,
                "data": X.nbytes / 2**20,
                "shape": X.shape,
                "fitted": bool(model.n_features_in_),
            }
        )
    )


def run(name, n, limit):
    """The same in its own process; None if it takes too long."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--case", name, "--rows", str(n)],
            capture_output=True,
            text=True,
            timeout=limit,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def main():
    arguments = parse_arguments(__doc__, case="", rows=0, limit=300)
    if arguments.case:
        measure(arguments.case, arguments.rows)
        return
    sizes = QUICK_SIZES if arguments.quick else SIZES
    report = Report(
        "scaling", "Time and memory of every estimator", quick=arguments.quick
    )
    report.text(
        "Processor seconds of `fit` on one core, and MB that it adds to the peak of "
        "the process. Panels have 10 slices, so that a tenth of the sequences makes as "
        "many rows; sigmoid links and latents get a tenth of the rows and 20 "
        f"features. '-': more than {arguments.limit} s."
    )
    rows = []
    for name in CASES:
        cells = [name]
        results = [run(name, n, arguments.limit) for n in sizes]
        largest = next(result for result in results[::-1] if result is not None)
        cells.append(str(largest["shape"][1]))
        for result in results:
            if result is None:
                cells += ["-", "-", "-"]
            else:
                cells += [
                    f"{result['shape'][0]:,}",
                    f"{result['seconds']:.2f}",
                    f"{result['added']:.0f}",
                ]
        rows.append(cells)
        print(cells, flush=True)
    report.table(["estimator", "columns", *["rows", "s", "MB"] * len(sizes)], rows)
    report.close()


if __name__ == "__main__":
    main()
