"""The structure learner on other networks than the images, and its thresholds.

Networks with few or many children per latent, uneven parameters, many latents, latents
with three children, priors above one half, and no latent at all. Then a grid search of
the published thresholds by held-out likelihood.

    python benchmarks/quartet_shapes.py
"""

from __future__ import annotations

import numpy as np
from _common import Report, expected, parse_arguments, random_structure, timed
from sklearn.model_selection import GridSearchCV

from sklearn_latent import QuartetStructureLearner
from sklearn_latent.datasets import image_sources, make_noisy_or, make_noisy_or_images
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.metrics import edge_f1, match_latents

EVEN = {"prior": 0.125, "failure": 0.1, "leak": 0.001}
UNEVEN = {"prior": (0.1, 0.2), "failure": (0.05, 0.5), "leak": 0.001}


def with_small_latents(draw):
    """Six latents with ten children each, two with three."""
    return np.vstack(
        [random_structure(6, 64, 10, draw), random_structure(2, 64, 3, 1000 + draw)]
    )


def shapes():
    """Name, structure by draw, parameters."""
    return [
        ("8 latents, 8 of 64 children", lambda d: random_structure(8, 64, 8, d), EVEN),
        (
            "8 latents, 24 of 64 children",
            lambda d: random_structure(8, 64, 24, d),
            EVEN,
        ),
        ("uneven, 12 of 64", lambda d: random_structure(8, 64, 12, d), UNEVEN),
        ("uneven, the images", lambda d: image_sources(), UNEVEN),
        ("12 latents, 12 of 100", lambda d: random_structure(12, 100, 12, d), EVEN),
        ("two of eight have 3 children", with_small_latents, EVEN),
        (
            "priors 0.4 to 0.7, failures 0.2 to 0.5",
            lambda d: random_structure(5, 40, 8, d),
            {"prior": (0.4, 0.7), "failure": (0.2, 0.5), "leak": 0.01},
        ),
        (
            "priors 0.02 to 0.3, failures 0.2 to 0.8",
            lambda d: random_structure(6, 40, 8, d),
            {"prior": (0.02, 0.3), "failure": (0.2, 0.8), "leak": (0.01, 0.1)},
        ),
        ("32 latents, 8 of 256", lambda d: random_structure(32, 256, 8, d), EVEN),
    ]


def found_by(options, structure, parameters, n_samples, draw):
    data = make_noisy_or(structure, n_samples, **parameters, random_state=draw)
    with expected(PoorDataWarning):
        seconds, model = timed(QuartetStructureLearner(**options).fit, data.X)
    recovered = match_latents(data.network.failure, model.failure_, model.prior_)[1]
    edges = edge_f1(data.network.structure, model.structure_)
    return recovered.mean(), model.n_latents_ - len(recovered), edges, seconds


def shape_table(report, n_samples, n_draws):
    report.text(
        f"{n_samples:,} rows, {n_draws} draws. Share of latents found (smallest over "
        "draws in brackets), latents too many or too few, F1 score of edges, seconds."
    )
    rows = []
    for name, structure, parameters in shapes():
        for label, options in [("default", {}), ("quartets alone", {"refine": False})]:
            results = np.array(
                [
                    found_by(options, structure(draw), parameters, n_samples, draw)
                    for draw in range(n_draws)
                ]
            )
            share, extra, edges, seconds = results.T
            rows.append(
                [
                    name,
                    label,
                    f"{share.mean():.2f} ({share.min():.2f})",
                    f"{extra.min():+.0f} to {extra.max():+.0f}",
                    f"{edges.mean():.3f}",
                    f"{np.median(seconds):.1f}",
                ]
            )
    report.table(["network", "learner", "found", "surplus", "F1", "seconds"], rows)


def independence_table(report, n_draws):
    report.text("Independent features: draws in which any latent was found.")
    rows = []
    for n_samples in (50, 100, 1_000, 10_000):
        counts = []
        for low, high in [(0.01, 0.1), (0.02, 0.5), (0.3, 0.9)]:
            n_wrong = 0
            for draw in range(n_draws):
                rng = np.random.RandomState(draw)
                X = rng.uniform(size=(n_samples, 64)) < rng.uniform(low, high, 64)
                with expected(PoorDataWarning):
                    n_wrong += QuartetStructureLearner().fit(X).n_latents_ > 0
            counts.append(f"{n_wrong} of {n_draws}")
        rows.append([f"{n_samples:,} rows", *counts])
    header = ["", *(f"rates {r}" for r in ("0.01-0.1", "0.02-0.5", "0.3-0.9"))]
    report.table(header, rows)


def grid_table(report, n_draws):
    report.text(
        "Grid search of the thresholds of quartets alone by held-out likelihood, three "
        "folds, images: F1 score of edges with the thresholds it picks, with the "
        "paper's, and with the default."
    )
    grid = {
        "quartet_threshold": [0.001, 0.003, 0.01, 0.03, "auto"],
        "extend_threshold": [0.05, 0.1, 0.15, "auto"],
    }
    rows = []
    for n_samples in (500, 2_000, 10_000):
        scores = []
        for draw in range(n_draws):
            data = make_noisy_or_images(n_samples, random_state=draw)
            truth = data.network.structure
            plain = QuartetStructureLearner(refine=False)
            paper = QuartetStructureLearner(
                refine=False, quartet_threshold=0.01, extend_threshold=0.1
            )
            with expected(PoorDataWarning):
                search = GridSearchCV(plain, grid, cv=3, n_jobs=2).fit(data.X)
                models = [search.best_estimator_, paper.fit(data.X), plain.fit(data.X)]
                models.append(QuartetStructureLearner().fit(data.X))
            scores.append([edge_f1(truth, model.structure_) for model in models])
        rows.append([f"{n_samples:,} rows", *(f"{s:.3f}" for s in np.mean(scores, 0))])
    header = ["", "grid search", "paper's", "auto, alone", "default, refined"]
    report.table(header, rows)


def main():
    arguments = parse_arguments(__doc__, draws=10, rows=10_000)
    n_draws = 1 if arguments.quick else arguments.draws
    n_samples = 2_000 if arguments.quick else arguments.rows
    report = Report("quartet_shapes", "Other networks", quick=arguments.quick)
    shape_table(report, n_samples, n_draws)
    independence_table(report, 2 * n_draws)
    grid_table(report, max(1, n_draws // 3))
    report.close()


if __name__ == "__main__":
    main()
