"""
Latent states in a patient panel
=================================

Patients come to visits, at each of which the same questions are asked. What moves from
visit to visit is not the answers but what lies behind them. From the panel alone: how
many latents are there, which questions measure which, how do they drive each other over
time, where is each patient, and what would the answers have been at a visit that was
missed?
"""

# %%
# A long table
# ------------
# One row per patient and visit, as such data usually come. Eight visits, six questions
# with answers in words. In truth there are two latents, and the first drives the
# second.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_latent import LGLPCCTemporal
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.plotting import TrajectoryDisplay
from sklearn_latent.temporal import sequences_from_frame

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

# One visit in twenty was missed, and one answer in ten was not given.
rng = np.random.RandomState(0)
table[QUESTIONS] = table[QUESTIONS].mask(rng.uniform(size=(len(table), 6)) < 0.1)
table = table[rng.uniform(size=len(table)) > 0.05]
print(table.head())

# %%
# :func:`~sklearn_latent.temporal.sequences_from_frame` makes one sequence per patient;
# missed visits become NaN. A data frame keeps names: those of the first visit's columns
# name the questions.
panel = sequences_from_frame(table, sequence="patient", time="visit", columns=QUESTIONS)
n_patients, n_visits, _ = panel.shape
names = [q if t == 0 else f"{q} {t}" for t in range(n_visits) for q in QUESTIONS]
X = pd.DataFrame(panel.reshape(n_patients, -1), columns=names)
print(X.shape, f"{X.isna().to_numpy().mean():.0%} missing")

# %%
# The graph
# ---------
# Nothing is told to the learner but the number of visits. It finds two latents with
# three states each, and the questions that measure them. Percentages are the share of
# pairs of visits that support an edge.
model = LGLPCCTemporal(n_slices=n_visits, random_state=0).fit(X)
print("states:", model.cardinality_)
model.plot()

# %%
# Trajectories
# ------------
# Where four patients were at each visit, as far as their answers tell.
TrajectoryDisplay.from_estimator(
    model, X[:4], sequence_names=[f"patient {i}" for i in range(4)]
)

# %%
# And fifty at a glance; pale is uncertain.
TrajectoryDisplay.from_estimator(model, X[:50])

# %%
# Answers that are missing
# ------------------------
# ``impute`` fills gaps with the most probable answer and changes nothing else. The
# truth is known here; beside it stands what is often done, to carry the last answer
# forward.
truth = ANSWERS[codes].reshape(n_patients, -1)
gaps = X.isna().to_numpy()
carried = panel.copy()
for t in range(1, n_visits):
    carried[:, t] = np.where(pd.isna(carried[:, t]), carried[:, t - 1], carried[:, t])
carried = carried.reshape(n_patients, -1)
known = gaps & ~pd.isna(carried)  # a gap at the first visit cannot be carried

filled = {
    "carry the last\nanswer forward": carried,
    "impute": model.impute(X).to_numpy(),
    "impute,\nhybrid": model.impute(X, strategy="hybrid").to_numpy(),
}
accuracy = [np.mean(values[known] == truth[known]) for values in filled.values()]
figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
bars = ax.bar(list(filled), accuracy, color=["0.6", "#0072B2", "#56B4E9"])
ax.bar_label(bars, fmt="{:.2f}")
ax.axhline(1 / 3, color="0.4", ls=":", label="guessing")
ax.set(ylabel="share of gaps filled rightly", ylim=(0, 1))
ax.legend(frameon=False)
plt.show()
# sphinx_gallery_thumbnail_number = 2
