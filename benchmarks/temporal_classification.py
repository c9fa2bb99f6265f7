"""Latents as features of a random forest.

Reproduces Section 4.2 of Halbersberg and Lerner (2020), "Local to global learning of a
latent dynamic Bayesian network": each of the six features of the last slice of G3 is
predicted by a random forest from all other values of the sequence, with and without the
posteriors of the latents (`FeatureUnion`) given the same values. 70% of the sequences
are for training. The upper limit is the accuracy of the posterior of the true model.

    python benchmarks/temporal_classification.py

Values are categories without order, so the forests get indicator columns.
"""

from __future__ import annotations

from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
from _common import Report, expected, parse_arguments
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.mixed import SEMDBN, LGLPCCTemporal

FOREST = RandomForestClassifier(n_estimators=100, random_state=0)


def hide(codes, feature):
    """Sequences as a table, without the feature of the last slice."""
    X = codes.astype(float)
    X[:, -1, feature] = np.nan
    return X.reshape(len(X), -1)


def forest(model=None):
    """A random forest on values and, with a fitted model, on its posteriors."""
    values = ("values", OneHotEncoder(handle_unknown="ignore", sparse_output=False))
    if model is None:
        return make_pipeline(values[1], FOREST)
    return make_pipeline(
        FeatureUnion([values, ("latents", FrozenEstimator(model))]), FOREST
    )


def measure(n_sequences, n_slices, seed):
    """Accuracy and macro F1 of each method, mean over the six targets."""
    data = make_latent_dbn("G3", n_sequences, n_slices, random_state=seed)
    train, test = train_test_split(data.codes, train_size=0.7, random_state=seed)
    with expected(LatentWarning, ConvergenceWarning):
        learned = LGLPCCTemporal(n_slices=n_slices, random_state=0).fit(train)
        baseline = SEMDBN(2, 4, n_slices, random_state=0).fit(train)
    methods = {
        "values alone": forest(),
        "values and LGL-LPCC": forest(learned),
        "values and structural EM": forest(baseline),
    }
    scores = defaultdict(list)
    for feature in range(data.codes.shape[2]):
        target, truth = train[:, -1, feature], test[:, -1, feature]
        guesses = {
            name: method.fit(hide(train, feature), target).predict(hide(test, feature))
            for name, method in methods.items()
        }
        gap = test.copy()
        gap[:, -1, feature] = -1
        guesses["LGL-LPCC alone"] = learned.impute(hide(test, feature)).reshape(
            gap.shape
        )[:, -1, feature]
        guesses["ceiling: true model"] = data.network.impute(gap)[:, -1, feature]
        for name, guess in guesses.items():
            scores[name].append(
                [np.mean(guess == truth), f1_score(truth, guess, average="macro")]
            )
    return {name: np.mean(values, axis=0) for name, values in scores.items()}


def draw(means, sizes, n_slices):
    figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for method in dict.fromkeys(key[0] for key in means):
        values = [means[method, n_slices, n][0] for n in sizes]
        ax.plot(sizes, values, "k:" if "ceiling" in method else "o-", label=method)
    ax.set(xscale="log", xlabel="sequences", ylabel="accuracy")
    ax.set_title(f"G3, {n_slices} slices: features of the last slice")
    ax.legend(frameon=False)
    return figure


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    arguments = parse_arguments(
        __doc__, draws=3, sequences="500,2000,5000", slices="4,10"
    )
    quick = arguments.quick
    draws = 1 if quick else arguments.draws
    sizes = [300, 600] if quick else numbers(arguments.sequences)
    lengths = [4] if quick else numbers(arguments.slices)
    report = Report("temporal_classification", "Classification", quick=quick)
    means = {}
    for n_slices in lengths:
        report.text(
            f"## {n_slices} slices",
            f"Accuracy / macro F1, mean over six targets and {draws} draws.",
        )
        for n in sizes:
            runs = [measure(n, n_slices, seed) for seed in range(draws)]
            for method in runs[0]:
                means[method, n_slices, n] = np.mean([r[method] for r in runs], axis=0)
        methods = dict.fromkeys(
            method for method, length, _ in means if length == n_slices
        )
        rows = [
            [m, *["{:.3f} / {:.3f}".format(*means[m, n_slices, n]) for n in sizes]]
            for m in methods
        ]
        report.table(["method", *[f"{n:,} sequences" for n in sizes]], rows)
    report.figure(draw(means, sizes, lengths[0]))
    report.close()


if __name__ == "__main__":
    main()
