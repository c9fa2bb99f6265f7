"""Four kinds of tables and the latents behind them, in less than a minute.

1. Mixtures of hidden images: how many images are there, and which?
2. Patients and their symptoms, without a diagnosis: how common are the diseases, and
   which ones does a patient have?
3. Genes with hidden regulators: which regulator drives which gene?
4. Patients who answer questions at several visits: which states are behind the answers?

All data are simulated, so that the results can be compared with the truth. Pictures are
saved in one file, and a report on the four models in another. Run with ``make demo``.
"""

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_latent import (
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrMoMLearner,
    QuartetStructureLearner,
    report,
    sequences_from_frame,
)
from sklearn_latent.datasets import (
    make_latent_dbn,
    make_noisy_or,
    make_noisy_or_images,
)
from sklearn_latent.metrics import match_latents
from sklearn_latent.plotting import TrajectoryDisplay

PICTURE = Path("demo.png")
REPORT = Path("demo_report.html")

# Influenza and the common cold have no three symptoms of their own. They can only be
# learned after the influence of other diseases has been subtracted.
TEXTBOOK = {
    "influenza": "fever, cough, headache, fatigue, chills, muscle ache, sore throat, "
    "runny nose",
    "common cold": "cough, headache, fatigue, sore throat, runny nose, sneezing",
    "pneumonia": "fever, cough, fatigue, chills, chest pain, short breath, sweating",
    "gastroenteritis": "fever, nausea, vomiting, diarrhoea, belly pain, thirst",
    "meningitis": "fever, headache, chills, muscle ache, vomiting, stiff neck, "
    "light hurts, confusion, rash",
    "hay fever": "runny nose, sneezing, fatigue, itching, red eyes, wheeze",
}
PREVALENCE = [0.15, 0.25, 0.10, 0.12, 0.08, 0.20]
QUESTIONS = ["sleep", "energy", "appetite", "pain", "walking", "stairs"]


def fit(estimator, X):
    """Fit, and the time that it took in words."""
    start = time.perf_counter()
    estimator.fit(X)
    return estimator, f"learned in {time.perf_counter() - start:.1f} s"


def find_images(ax):
    """Learn the number of images and the images."""
    data = make_noisy_or_images(2000, random_state=0)
    pixels = pd.DataFrame(data.X, columns=[f"pixel{j}" for j in range(64)])
    model, seconds = fit(QuartetStructureLearner(random_state=0), pixels)
    truth = data.network
    _, right = match_latents(truth.failure, model.failure_, model.prior_)
    print("1. Hidden images")
    print(f"   {len(data.X):,} mixtures of {truth.n_latents} images, number not given")
    print(f"   found {model.n_latents_}, of which {right.sum()} are right; {seconds}\n")

    def strip(rows):
        """Eight images side by side, in frames."""
        images = np.pad(rows.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
        images[:, [0, -1]] = images[:, :, [0, -1]] = 0.3
        return np.hstack(list(images))

    mixed = data.X[data.Z.sum(axis=1) == 3].astype(float)
    rows = [strip(mixed[:8]), strip(mixed[8:16]), strip(1 - model.failure_[:8])]
    ax.imshow(np.vstack(rows), cmap="Purples")
    ax.set_xticks([])
    ax.set_yticks([9.5, 24.5], ["mixtures", "found"], fontsize=8)
    return model, pixels


def diagnose_patients(ax):
    """Learn how common diseases are, and diagnose a patient."""
    symptoms = {disease: text.split(", ") for disease, text in TEXTBOOK.items()}
    names = list(dict.fromkeys(name for row in symptoms.values() for name in row))
    structure = pd.DataFrame(
        [[name in row for name in names] for row in symptoms.values()],
        index=list(symptoms),
        columns=names,
    )
    clinic = make_noisy_or(
        structure.to_numpy(),
        10_000,
        prior=PREVALENCE,
        failure=(0.1, 0.7),
        leak=0.01,
        random_state=7,
    )
    patients = pd.DataFrame(clinic.X, columns=names)
    model, seconds = fit(NoisyOrMoMLearner(structure), patients)
    print("2. Diagnosis of patients")
    print(
        f"   {len(patients):,} patients, {len(names)} symptoms, no diagnosis; {seconds}"
    )
    print(f"   {'disease':<16} {'true share':>10}   learned (± standard error)")
    for disease, true, prior, error in zip(
        structure.index,
        clinic.network.prior,
        model.prior_,
        model.prior_stderr_,
        strict=True,
    ):
        print(f"   {disease:<16} {true:>10.3f}   {prior:.3f} ± {error:.3f}")

    row = int((clinic.Z.sum(axis=1) == 3).argmax())
    has = ", ".join(patients.columns[patients.iloc[row] == 1])
    posterior = pd.Series(model.transform(patients.iloc[[row]])[0], structure.index)
    ill = clinic.Z[row].astype(bool)
    print(f"   patient {row} has {has}")
    print(f"   most probable: {', '.join(posterior.nlargest(3).index)}")
    print(f"   the truth:     {', '.join(structure.index[ill])}\n")
    explanation = model.explain(patients.iloc[row], latents="common cold")
    explanation.plot(ax=ax, max_cells=6)
    return model, patients


def find_regulators(ax):
    """Learn which hidden regulator drives which gene."""
    rng = np.random.RandomState(0)
    regulators = rng.normal(size=(300, 3))
    effects = np.zeros((3, 18))
    for gene in range(18):
        own = [gene % 3] if gene % 6 else [gene % 3, 1]
        effects[own, gene] = rng.uniform(0.6, 1.4) * rng.choice([-1, 1])
    values = regulators @ effects + 0.6 * rng.normal(size=(300, 18))
    genes = pd.DataFrame(values, columns=[f"gene{j}" for j in range(18)])
    model, seconds = fit(IdealParentGaussianBN(max_latents=6, bipartite=True), genes)
    found = model.transform(genes)[:, 18:]
    match = np.abs(np.corrcoef(found.T, regulators.T)[: len(found.T), len(found.T) :])
    print("3. Gene expression with hidden regulators")
    print(
        "   300 arrays, 18 genes, 3 regulators that were not measured, number not given"
    )
    print(f"   found {model.n_latents_}; {seconds}")
    values = ", ".join(f"{r:.2f}" for r in match.max(axis=1))
    print(f"   correlation with the true ones: {values}\n")
    model.plot(ax=ax)
    return model, genes


def follow_patients(ax):
    """Learn the states behind answers at several visits."""
    data = make_latent_dbn(
        "G3", 500, 6, cardinality=3, reliability=0.8, relabel=False, random_state=0
    )
    patients, visits = np.indices(data.codes.shape[:2])
    answers = np.array(["good", "fair", "poor"])[data.codes].reshape(-1, 6)
    table = pd.DataFrame(answers, columns=QUESTIONS).assign(
        patient=patients.ravel(), visit=visits.ravel()
    )
    panel = sequences_from_frame(
        table, sequence="patient", time="visit", columns=QUESTIONS
    )
    model, seconds = fit(LGLPCCTemporal(random_state=0), panel)
    print("4. A panel of patients")
    print(f"   500 patients, 6 visits, {len(QUESTIONS)} questions; {seconds}")
    for latent, states, own in zip(
        model.latent_names_, model.cardinality_, model.structure_, strict=True
    ):
        asked = ", ".join(np.array(QUESTIONS)[own])
        print(f"   {latent}: {states} states behind {asked}")
    states = model.predict(panel[:40]).reshape(40, -1)
    order = np.lexsort(states.T)
    TrajectoryDisplay.from_estimator(model, panel[order], ax=ax)
    return model, panel


PARTS = {
    "2,000 mixtures: eight images are behind them": find_images,
    "10,000 patients: has this one a common cold?": diagnose_patients,
    "300 arrays: which regulator drives which gene?": find_regulators,
    "500 patients: their states from visit to visit": follow_patients,
}


def main():
    """Learn, print, draw and report."""
    figure = plt.figure(figsize=(10, 6.6), layout="constrained")
    models = {}
    for (title, part), panel in zip(
        PARTS.items(), figure.subfigures(2, 2).flat, strict=True
    ):
        panel.suptitle(title, fontsize=11)
        models[title] = part(panel.subplots())
    figure.savefig(PICTURE, dpi=90)
    print(f"\npictures saved to {PICTURE}")
    report(models, REPORT)
    print(f"report, for a browser: {REPORT.resolve()}")


if __name__ == "__main__":
    main()
