"""Noisy-or networks and latent classes on sixteen items of an ability test.

1,525 people answered four items each of four kinds (reason, letter, matrix, rotate),
right or wrong; 5% of the answers are missing. Which latents are found, how are they
related to the kinds, and how well do they predict held-out people? The alternatives are
latent class analysis (stepmix, which must be installed; number of classes by BIC),
NoisyOrEM from random starts, and independence.

    python benchmarks/ability_items.py --data FOLDER

The folder contains ability_items.csv: one row per person, columns named kind.number.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from _common import Report, expected, parse_arguments
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from sklearn_latent import NoisyOrEM, QuartetStructureLearner
from sklearn_latent.exceptions import ModelMisfitWarning, PoorDataWarning

CLASSES = "latent classes (stepmix)"


def latent_classes(X):
    """Latent class model; the number of classes is chosen by BIC."""
    from stepmix.stepmix import StepMix

    models = [
        StepMix(
            k,
            measurement="binary_nan",
            n_init=5,
            random_state=0,
            verbose=0,
            progress_bar=0,
        ).fit(X)
        for k in range(1, 7)
    ]
    return min(models, key=lambda model: model.bic(X))


class Flipped:
    """A learner for which a feature is on if the answer is wrong."""

    def __init__(self, model):
        self.model = model

    def fit(self, X):
        """Fit to the mistakes."""
        self.model.fit(1 - X)
        return self

    def score(self, X):
        """Score the mistakes."""
        return self.model.score(1 - X)


def methods():
    learn = QuartetStructureLearner
    return {
        "default, right answers on": lambda X: learn().fit(X),
        "default, wrong answers on": lambda X: Flipped(learn()).fit(X),
        "quartets alone, right answers on": lambda X: learn(refine=False).fit(X),
        "EM, 4 latents, best of 5 starts": lambda X: NoisyOrEM(
            4, n_init=5, random_state=0
        ).fit(X),
        CLASSES: latent_classes,
        "independence": lambda X: NoisyOrEM(0).fit(X),
    }


def fold_scores(fit, X, n_repeats):
    """Score and number of latents of each fold."""
    scores, sizes = [], []
    for repeat in range(n_repeats):
        folds = KFold(5, shuffle=True, random_state=repeat)
        for train, test in folds.split(X):
            with expected(
                ConvergenceWarning, ModelMisfitWarning, PoorDataWarning, FutureWarning
            ):
                model = fit(X[train])
            scores.append(model.score(X[test]))
            inner = getattr(model, "model", model)
            size = getattr(inner, "n_components", None)
            sizes.append(size or len(getattr(inner, "prior_", [])))
    return np.array(scores), sizes


def held_out(report, items, n_repeats):
    results = {}
    for name, fit in methods().items():
        try:
            results[name] = fold_scores(fit, items.to_numpy(dtype=float), n_repeats)
        except ImportError:
            report.text(f"Left out because it is not installed: {name}.")
    # Folds differ more than models, so the models are compared fold by fold.
    reference, _ = results.get(CLASSES, results["independence"])
    rows = []
    for name, (scores, sizes) in results.items():
        gain = scores - reference
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        rows.append(
            [
                name,
                f"{scores.mean():.3f}",
                f"{gain.mean():+.3f} ± {error:.3f}",
                f"{min(sizes)} to {max(sizes)}",
            ]
        )
    report.text(
        f"Mean held-out log-likelihood per person; five folds, {n_repeats} times; "
        "difference from latent classes, with its standard error over folds; number "
        "of latents or classes."
    )
    report.table(["model", "log-likelihood", "difference", "latents"], rows)


def kinds_table(report, items, title):
    """Mean strength of the edges of each latent to the items of each kind."""
    kinds = pd.Index([name.split(".")[0] for name in items.columns])
    model = QuartetStructureLearner().fit(items)
    report.text(title)
    report.table(
        ["latent", "prior", *kinds.unique()],
        [
            [f"{number}", f"{prior:.2f}"]
            + [f"{(1 - row[kinds == kind]).mean():.2f}" for kind in kinds.unique()]
            for number, (prior, row) in enumerate(
                zip(model.prior_, model.failure_, strict=True)
            )
        ],
    )


def main():
    arguments = parse_arguments(__doc__, data="")
    path = Path(arguments.data) / "ability_items.csv"
    if not path.is_file():
        print("Nothing to do: no ability_items.csv; name its folder with --data.")
        return
    items = pd.read_csv(path)
    report = Report("ability_items", "Ability items", quick=arguments.quick)
    kinds_table(
        report, items, "Strength of each latent by kind of item, right answers on."
    )
    kinds_table(report, 1 - items, "The same, wrong answers on.")
    held_out(report, items, 1 if arguments.quick else 3)
    report.close()


if __name__ == "__main__":
    main()
