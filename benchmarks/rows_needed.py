"""Does `rows_needed` name the right number of rows?

For three small networks of each family, the number of rows at which the latents are
recovered with probability 0.9 is compared with a fresh simulation: other seeds, fixed
sizes around the answer, and no curve. Its answer is where the shares, made monotone,
cross the probability.
"""

import time

import numpy as np
from _common import Report, parse_arguments
from sklearn.isotonic import isotonic_regression

from sklearn_latent import rows_needed
from sklearn_latent.datasets import make_gaussian_bn, make_latent_dbn, make_noisy_or

PROBABILITY = 0.9
FACTORS = (0.7, 0.85, 1.0, 1.2, 1.4)
FRESH_SEED = 12345


def blocks(n_latents, n_children):
    return np.kron(np.eye(n_latents), np.ones((1, n_children)))


def noisy_or(structure, **options):
    return make_noisy_or(structure, 1, random_state=0, **options).network


def gaussian(n_features, n_latents, seed, **options):
    return make_gaussian_bn(
        n_features,
        n_latents,
        1,
        bipartite=True,
        n_parents=1.0,
        random_state=seed,
        **options,
    ).network


def temporal(graph, **options):
    return make_latent_dbn(
        graph, 1, 4, cardinality=2, random_state=0, **options
    ).network


# Networks, and the number of slices of those that have time.
NETWORKS = {
    "noisy-or, 2 latents": (
        lambda: noisy_or(blocks(2, 4), prior=0.3, failure=0.4, leak=0.05),
        None,
    ),
    "noisy-or, 2 rare latents": (
        lambda: noisy_or(blocks(2, 5), prior=0.1, failure=0.3, leak=0.02),
        None,
    ),
    "noisy-or, overlapping": (
        lambda: noisy_or(
            [[1, 1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]],
            prior=0.25,
            failure=0.3,
            leak=0.05,
        ),
        None,
    ),
    "continuous, 1 latent": (
        lambda: gaussian(5, 1, 0, weight=(0.5, 0.8)),
        None,
    ),
    "continuous, 2 latents": (
        lambda: gaussian(8, 2, 0, weight=(0.6, 1.0)),
        None,
    ),
    "continuous, 3 latents": (lambda: gaussian(12, 3, 1), None),
    "temporal, G1": (lambda: temporal("G1", reliability=0.7), 4),
    "temporal, G2": (lambda: temporal("G2"), 3),
    "temporal, G3": (lambda: temporal("G3"), 3),
}


def crossing(sizes, shares):
    """Where monotone shares, joined by lines over log rows, reach the probability."""
    rising = isotonic_regression(shares)
    above = int(np.argmax(rising >= PROBABILITY))
    if rising[above] < PROBABILITY or above == 0:
        return np.nan
    low, high = rising[above - 1], rising[above]
    part = (PROBABILITY - low) / (high - low)
    ends = np.log(np.asarray(sizes)[[above - 1, above]])
    return float(np.exp(ends[0] + part * (ends[1] - ends[0])))


def main():
    arguments = parse_arguments(
        __doc__,
        quick={"repeats": 10, "networks": ("continuous, 1 latent",)},
        repeats=100,
        networks=tuple(NETWORKS),
    )
    report = Report(
        "rows_needed", "Rows needed to recover latents", quick=arguments.partial
    )
    report.begin(
        ["network", "rows", "95% interval", "fits", "time (s)", "fresh", "ratio"],
        [26, 6, 14, 5, 8, 6, 5],
    )
    for name in arguments.networks:
        make, n_slices = NETWORKS[name]
        network, start = make(), time.process_time()
        found = rows_needed(network, probability=PROBABILITY, n_slices=n_slices)
        seconds = time.process_time() - start
        if np.isinf(found.n_rows):
            report.row(
                [name, "never", "", found.n_fits.sum(), f"{seconds:.0f}", "", ""]
            )
            continue
        sizes = [round(factor * found.n_rows) for factor in FACTORS]
        fresh = rows_needed(
            network,
            n_slices=n_slices,
            sizes=sizes,
            n_repeats=arguments.repeats,
            random_state=FRESH_SEED,
        )
        rows = crossing(fresh.sizes, fresh.n_recovered / fresh.n_fits)
        low, high = found.interval
        report.row(
            [
                name,
                found.n_rows,
                f"{low:.0f} to {high:.0f}",
                found.n_fits.sum(),
                f"{seconds:.0f}",
                f"{rows:.0f}",
                f"{found.n_rows / rows:.2f}",
            ]
        )
    report.text(
        f"Fresh: {arguments.repeats} tables of each of {len(FACTORS)} sizes, from "
        f"{FACTORS[0]} to {FACTORS[-1]} times the answer."
    )
    report.close()


if __name__ == "__main__":
    main()
