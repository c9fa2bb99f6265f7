"""Learn latents twice: hidden images, and diseases without a diagnosis.

In the first part, each row is a mixture of hidden images. The number of images and the
images themselves are learned from the mixtures alone.

In the second part, the rows are patients of a simulated clinic, and the columns their
symptoms. A textbook says which disease can cause which symptom. How common the diseases
are, and how often they cause each symptom, is learned from the symptoms alone, without
any diagnosis. Run with ``make demo``.
"""

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd

from sklearn_latent import NoisyOrMoMLearner, QuartetStructureLearner
from sklearn_latent.datasets import make_noisy_or, make_noisy_or_images
from sklearn_latent.metrics import match_latents
from sklearn_latent.plotting import LatentGraphDisplay

# Influenza and the common cold have no three symptoms of their own. They can only be
# learned after the influence of other diseases has been subtracted, and the common cold
# only after influenza.
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
N_PATIENTS = 10_000
PICTURE = Path("demo_noisy_or.png")
N_MIXTURES = 2_000
IMAGES = Path("demo_images.png")


def read_textbook():
    """Names of diseases and symptoms, and the structure."""
    symptoms = {disease: text.split(", ") for disease, text in TEXTBOOK.items()}
    names = list(dict.fromkeys(name for row in symptoms.values() for name in row))
    structure = np.array([[name in row for name in names] for row in symptoms.values()])
    return list(TEXTBOOK), names, structure


def print_diseases(diseases, learner, truth):
    print(f"{'disease':<18}{'true prior':>10}   {'learned (± std. error)':<24}depth")
    for i, disease in enumerate(diseases):
        learned = f"{learner.prior_[i]:.3f} ± {learner.prior_stderr_[i]:.3f}"
        first = np.nanmin(learner.depth_[i])
        print(f"{disease:<18}{truth.prior[i]:>10.3f}   {learned:<24}{first:>5.0f}")


def print_failures(learner, truth):
    error = np.abs(learner.failure_ - truth.failure)
    print(f"\n{'depth':<18}{'edges':>10}   mean error of failures")
    for depth in np.unique(learner.depth_[truth.structure]):
        edges = learner.depth_ == depth
        print(f"{depth:<18.0f}{edges.sum():>10}   {error[edges].mean():.3f}")


def print_patient(diseases, learner, patients, truly_ill):
    """Diagnose the first patient who has three diseases."""
    row = int((truly_ill.sum(axis=1) == 3).argmax())
    patient = patients.iloc[[row]]
    print(f"\npatient {row} has: {', '.join(patient.columns[patient.iloc[0] == 1])}")
    posterior = learner.transform(patient)[0]
    for i in np.argsort(-posterior):
        bar = "#" * round(20 * posterior[i])
        truth = "  <- has it" if truly_ill[row, i] else ""
        print(f"  {diseases[i]:<17}{posterior[i]:>6.3f}  {bar:<20}{truth}".rstrip())


def discover_images():
    """Learn the number of images and the images."""
    mixtures = make_noisy_or_images(N_MIXTURES, random_state=0)
    start = time.perf_counter()
    learner = QuartetStructureLearner().fit(mixtures.X)
    seconds = time.perf_counter() - start
    truth = mixtures.network
    _, recovered = match_latents(truth.failure, learner.failure_, learner.prior_)
    print(
        f"{N_MIXTURES:,} mixtures of {truth.n_latents} images, number not given; "
        f"found {learner.n_latents_}, of which {recovered.sum()} are right"
    )
    print(learner.latents_frame()[["prior", "prior_stderr", "n_children"]].round(3))
    learner.plot_images((8, 8)).figure_.savefig(IMAGES, dpi=150)
    print(f"\nlearned in {seconds:.2f} s; plot saved to {IMAGES}\n")


def learn_diseases():
    """Learn how common diseases are and how often they cause symptoms."""
    diseases, symptoms, structure = read_textbook()
    clinic = make_noisy_or(
        structure,
        N_PATIENTS,
        prior=PREVALENCE,
        failure=(0.1, 0.7),
        leak=0.01,
        random_state=7,
    )
    patients = pd.DataFrame(clinic.X, columns=symptoms)
    print(
        f"{N_PATIENTS:,} patients, {len(symptoms)} symptoms; {len(diseases)} "
        f"unobserved diseases, {structure.sum()} edges\n"
    )

    start = time.perf_counter()
    learner = NoisyOrMoMLearner(structure).fit(patients)
    seconds = time.perf_counter() - start

    print_diseases(diseases, learner, clinic.network)
    print_failures(learner, clinic.network)
    print_patient(diseases, learner, patients, clinic.Z)

    display = LatentGraphDisplay.from_network(
        learner.network_, latent_names=diseases, feature_names=symptoms
    )
    display.figure_.savefig(PICTURE, dpi=150)
    print(f"\nlearned in {seconds:.2f} s; plot saved to {PICTURE}")


if __name__ == "__main__":
    discover_images()
    learn_diseases()
