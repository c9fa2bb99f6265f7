"""
Latent states in a patient panel
================================

Patients answer the same questions at several visits. The answers are measurements of
latent states, which change from visit to visit. This example learns from the panel
alone how many latents there are, which questions measure each one, and how they
influence each other over time. It then infers the states of each patient, predicts the
next visit, and imputes missing answers.
"""

# %%
# A long table
# ------------
# Panel data usually have one row per patient and visit. Here there are eight visits and
# six questions with three possible answers. The data are simulated with two latents, of
# which the first drives the second.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_latent import LGLPCCTemporal
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.mixed import sequences_from_frame
from sklearn_latent.plotting import TrajectoryDisplay

QUESTIONS = ["sleep", "energy", "appetite", "pain", "walking", "stairs"]
ANSWERS = np.array(["good", "fair", "poor"])
data = make_latent_dbn(
    "G3", 600, 8, cardinality=3, reliability=0.75, relabel=False, random_state=0
)
codes = data.codes
patients, visits = np.indices(codes.shape[:2])
table = pd.DataFrame(ANSWERS[codes].reshape(-1, 6), columns=QUESTIONS)
table.insert(0, "patient", patients.ravel())
table.insert(1, "visit", visits.ravel())

# Five per cent of the visits and ten per cent of the answers are missing.
rng = np.random.RandomState(0)
table[QUESTIONS] = table[QUESTIONS].mask(rng.uniform(size=(len(table), 6)) < 0.1)
table = table[rng.uniform(size=len(table)) > 0.05]
print(table.head())

# %%
# :func:`~sklearn_latent.mixed.sequences_from_frame` converts the table to one
# sequence per patient, with NaN for missed visits. The names of questions, patients and
# visits stay with the array.
X = sequences_from_frame(table, sequence="patient", time="visit", columns=QUESTIONS)
print(X.shape, X.feature_names, f"{pd.isna(X).mean():.0%} missing")

# %%
# The graph
# ---------
# The learner is given nothing but the sequences. It finds two latents with three states
# each, and the questions that measure them. ``plot(color_by="support")`` colours edges
# by the share of pairs of consecutive visits in which they were found.
model = LGLPCCTemporal(random_state=0).fit(X)
print("states:", model.cardinality_)
model.plot()

# %%
# Trajectories
# ------------
# The probabilities of the states of four patients at each visit:
TrajectoryDisplay.from_estimator(model, X[:4])

# %%
# The most probable states of fifty patients; pale colours are uncertain.
TrajectoryDisplay.from_estimator(model, X[:50])

# %%
# The same as a table. A model that was fitted to a long table accepts long tables, and
# returns them.
print(model.predict(table).head())

# %%
# The next visit
# --------------
# ``forecast`` predicts the answers at the visits after the last recorded one of each
# patient, with their probabilities. The latent behind these two questions depends on
# its past.
forecast = model.forecast(X[:5], n_steps=2).to_frame()
print(forecast[["sequence", "step", "pain", "P(pain)", "walking", "P(walking)"]])

# %%
# Missing answers
# ---------------
# ``impute`` replaces missing answers by the most probable ones and changes nothing
# else. We compare it with a common rule, carrying the last answer forward. The true
# answers are known here.
truth = ANSWERS[codes]
missing = pd.isna(X)
carried = np.array(X)
for t in range(1, X.shape[1]):
    carried[:, t] = np.where(pd.isna(carried[:, t]), carried[:, t - 1], carried[:, t])
known = missing & ~pd.isna(carried)  # nothing can be carried to the first visit

filled = {
    "carry the last\nanswer forward": carried,
    "latents\nalone": model.impute(X, strategy="posterior"),
    "impute": model.impute(X),
}
accuracy = [
    np.mean(np.asarray(values)[known] == truth[known]) for values in filled.values()
]
figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
bars = ax.bar(list(filled), accuracy, color=["0.6", "#56B4E9", "#0072B2"])
ax.bar_label(bars, fmt="{:.2f}")
ax.axhline(1 / 3, color="0.4", ls=":", label="guessing")
ax.set(ylabel="share imputed correctly", ylim=(0, 1))
ax.legend(frameon=False)
plt.show()
# sphinx_gallery_thumbnail_number = 2
