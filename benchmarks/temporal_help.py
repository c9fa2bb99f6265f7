"""Latents of a clinical panel against the published scales of its items.

The HELP study asked 470 people up to five times 20 questions on depression (CES-D) and
36 on health (SF-36), each of which belongs to a published scale. Groups of items that
share a latent are compared with the scales by the adjusted Rand index; an item in no
group counts as a group of its own. k-means and hierarchical clustering of correlations
are given the number of scales, the learner is not.

    python benchmarks/temporal_help.py --data <folder with help_panel.csv>
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from _common import Report, clocked, expected, parse_arguments
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.temporal import LGLPCCTemporal, sequences_from_frame


def labels_of(measurement):
    """Group of each item; items in no group differ from all others."""
    n_latents, n_items = measurement.shape
    labels = n_latents + np.arange(n_items)
    for latent, features in enumerate(measurement):
        labels[features] = latent
    return labels


def baselines(X, n_groups):
    """Labels of the items by method, from correlations over all visits."""
    flat = pd.DataFrame(X.reshape(-1, X.shape[2]))
    correlation = flat.corr().abs().to_numpy()
    yield (
        "k-means of correlations, mean of 20 seeds",
        [
            KMeans(n_groups, n_init=10, random_state=seed).fit_predict(correlation)
            for seed in range(20)
        ],
    )
    for linkage in ("single", "average", "complete"):
        model = AgglomerativeClustering(n_groups, metric="precomputed", linkage=linkage)
        yield f"hierarchical, {linkage} linkage", [model.fit_predict(1 - correlation)]
    model = AgglomerativeClustering(n_groups, linkage="ward")
    yield "hierarchical, Ward, of correlations", [model.fit_predict(correlation)]


def main():
    options = parse_arguments(__doc__, data="../shared/data")
    report = Report("temporal_help", "HELP: latents and scales", quick=options.quick)
    folder = Path(options.data)
    key = pd.read_csv(folder / "help_panel_key.csv")
    panel = pd.read_csv(folder / "help_panel.csv")
    if options.quick:
        panel = panel[panel["TIME"] < 12]
    items = key["item"].tolist()
    X = sequences_from_frame(panel, sequence="ID", time="TIME", columns=items)
    learner = LGLPCCTemporal(random_state=0)
    with expected(LatentWarning, ConvergenceWarning):
        (_, seconds), model = clocked(learner.fit, X)
    scales = key["factor"]
    found = labels_of(model.structure_)
    rows = [
        [
            "LGLPCCTemporal",
            len(np.unique(found)),
            f"{adjusted_rand_score(scales, found):.3f}",
        ]
    ]
    for name, groups in baselines(X, scales.nunique()):
        scores = [adjusted_rand_score(scales, labels) for labels in groups]
        rows.append([name, scales.nunique(), f"{np.mean(scores):.3f}"])
    report.text(
        f"{len(X)} people, {X.shape[1]} visits, {len(items)} items, "
        f"{100 * np.isnan(X).mean():.0f}% missing. The fit took {seconds:.0f} "
        "processor seconds."
    )
    report.table(["method", "groups", "adjusted Rand index"], rows)
    report.text("Items and scales of each latent:")
    names = np.array([f"{i} ({s})" for i, s in zip(items, scales, strict=True)])
    report.table(
        ["latent", "states", "items"],
        [
            [latent, model.cardinality_[latent], ", ".join(names[features])]
            for latent, features in enumerate(model.structure_)
        ],
    )
    report.close()


if __name__ == "__main__":
    main()
