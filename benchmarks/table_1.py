"""Identifiability of fully connected networks.

Reproduces Table 1 of Halpern and Sontag (2013), "Unsupervised learning of noisy-or
Bayesian networks": for 1 to 7 latents, each a parent of all of 1 to 7 features, the
smallest order of moments that makes the parameters locally identifiable.

    python benchmarks/table_1.py

It takes about a second.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _common import Report, parse_arguments, timed

from sklearn_latent.noisy_or import identifiability_order

PUBLISHED = np.array(
    [
        [-1, -1, 3, 3, 3, 3, 3],
        [-1, -1, -1, 3, 3, 3, 3],
        [-1, -1, -1, -1, 3, 3, 3],
        [-1, -1, -1, -1, 4, 3, 3],
        [-1, -1, -1, -1, -1, 3, 3],
        [-1, -1, -1, -1, -1, 4, 3],
        [-1, -1, -1, -1, -1, 4, 3],
    ]
)


def orders(n_latents, n_features, random_state):
    return np.array(
        [
            [
                identifiability_order(np.ones((i, j)), random_state=random_state)
                for j in range(1, n_features + 1)
            ]
            for i in range(1, n_latents + 1)
        ]
    )


def draw(measured, published):
    figure, ax = plt.subplots(figsize=(5.5, 4.6), layout="constrained")
    ax.imshow(np.where(measured < 0, np.nan, measured), cmap="Blues", vmin=2, vmax=7)
    for (i, j), order in np.ndenumerate(measured):
        same = order == published[i, j]
        text = f"{order}" if same else f"{order} (paper {published[i, j]})"
        ax.text(j, i, text, ha="center", va="center", color="k" if same else "r")
    ax.set_xticks(range(measured.shape[1]), range(1, measured.shape[1] + 1))
    ax.set_yticks(range(measured.shape[0]), range(1, measured.shape[0] + 1))
    ax.set(xlabel="features", ylabel="latents", title="Order of moments that suffices")
    return figure


def main():
    arguments = parse_arguments(__doc__)
    size = 4 if arguments.quick else 7
    report = Report("table_1", "Table 1: identifiability", quick=arguments.quick)
    published = PUBLISHED[:size, :size]
    seconds, measured = timed(orders, size, size, random_state=0)
    report.text("Measured / published; -1 is not identifiable by any order.")
    report.table(
        ["latents \\ features", *range(1, size + 1)],
        [
            [i + 1, *[f"{a} / {b}" for a, b in zip(ours, theirs, strict=True)]]
            for i, (ours, theirs) in enumerate(zip(measured, published, strict=True))
        ],
    )
    agree = int((measured == published).sum())
    report.text(f"{agree} of {measured.size} cells agree; {seconds:.2f} s for all.")
    others = [orders(size, size, random_state=seed) for seed in (1, 2, 3)]
    same = all((other == measured).all() for other in others)
    report.text(f"Three further random points give the same table: {same}.")
    report.figure(draw(measured, published))
    report.close()


if __name__ == "__main__":
    main()
