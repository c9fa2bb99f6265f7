"""
Latents as features of a classifier
===================================

Labels are often expensive, while rows without labels are not. A latent model can learn
from all rows. A classifier then needs fewer labels, because it sees a few latents
instead of many noisy columns. This is not so of all data: the second part shows tables
on which latents help, and others on which they do not. Both are scikit-learn estimators
and can be combined in a :class:`~sklearn.pipeline.Pipeline`.
"""

# %%
# Noisy columns and few labels
# ----------------------------
# Eight latents drive 64 binary columns, with failures between 0.4 and 0.7. The label is
# whether exactly one of two latents is on, with 5% noise. There are 5,000 rows without
# labels, and few rows with labels.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sklearn_latent import IdealParentGaussianBN, NoisyOrEM, QuartetStructureLearner
from sklearn_latent.datasets import (
    image_sources,
    make_noisy_or,
    make_noisy_or_images,
)
from sklearn_latent.exceptions import ModelMisfitWarning

data = make_noisy_or(
    image_sources(), 7000, prior=0.25, failure=(0.4, 0.7), leak=0.02, random_state=0
)
X, Z = data.X, data.Z.astype(bool)
rng = np.random.RandomState(0)
y = (Z[:, 1] ^ Z[:, 2]) ^ (rng.uniform(size=len(X)) < 0.05)
unlabelled, rest = np.split(np.arange(len(X)), [5000])
test = rest[1000:]

# %%
# A model fitted to rows without labels
# -------------------------------------
# The latent model is fitted once. In the pipelines it only transforms.
learner = QuartetStructureLearner().fit(X[unlabelled])
print(f"{learner.n_latents_} latents found")

to_latents = FunctionTransformer(learner.transform)
models = {
    "64 columns, forest": RandomForestClassifier(random_state=0),
    "64 columns, logistic": LogisticRegression(max_iter=1000),
    "8 latents, forest": make_pipeline(
        to_latents, RandomForestClassifier(random_state=0)
    ),
    "both, forest": make_pipeline(
        FeatureUnion([("columns", "passthrough"), ("latents", to_latents)]),
        RandomForestClassifier(random_state=0),
    ),
}
sizes = [20, 50, 100, 200, 500]
accuracy = {name: [] for name in models}
for n in sizes:
    train = rest[:n]
    for name, model in models.items():
        accuracy[name].append(model.fit(X[train], y[train]).score(X[test], y[test]))

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, values in accuracy.items():
    ax.semilogx(sizes, values, "o-", label=name)
ax.axhline(0.95, color="0.6", ls=":", label="upper limit: 5% of labels are noise")
ax.set(xlabel="rows with a label", ylabel="accuracy on 1,000 other rows")
ax.set_xticks(sizes, [str(n) for n in sizes], minor=False)
ax.minorticks_off()
ax.legend(frameon=False, fontsize=8)


# %%
# Real data
# ---------
# Do latents help on tables that nobody has made for them? Three tables of scikit-learn:
# digits (pixels that are on or off), wine (13 measurements) and breast cancer (30
# measurements). Half of the rows train, half test. The latent model learns from all
# training rows without labels, the classifier from 5 labelled rows per class, or from
# all.
def factors(n_latents):
    return IdealParentGaussianBN(
        max_latents=n_latents, bipartite=True, output="latents"
    )


pixels, digit = load_digits(return_X_y=True)
ink = pixels > 7
ink = ink[:, ink.mean(axis=0) > 0.01]  # corners are never on
tables = {
    "digits": (ink, digit, NoisyOrEM(10, tol=1e-3)),
    "wine": (*load_wine(return_X_y=True), factors(4)),
    "cancer": (*load_breast_cancer(return_X_y=True), factors(5)),
}


def accuracies(X, y, latent_model):
    """Accuracy by labels and features, for each of several splits."""
    splits = StratifiedShuffleSplit(4, test_size=0.5, random_state=0)
    for train, test in splits.split(X, y):
        with warnings.catch_warnings():
            # "Rows form groups": so they do, those of the labels.
            warnings.simplefilter("ignore", ModelMisfitWarning)
            latent_model.set_params(random_state=0).fit(X[train])
        latents = latent_model.transform(X)
        kinds = {
            "columns": X,
            "latents": latents,
            "both": np.hstack([X, latents]),
        }
        few = np.concatenate([train[y[train] == k][:5] for k in np.unique(y)])
        for labels, rows in {"5 per class": few, "all": train}.items():
            for features, table in kinds.items():
                model = make_pipeline(
                    StandardScaler(), LogisticRegression(max_iter=1000)
                ).fit(table[rows], y[rows])
                yield labels, features, model.score(table[test], y[test])


names = ["labels", "features", "accuracy"]
results = pd.concat(
    {
        name: pd.DataFrame(accuracies(*table), columns=names)
        for name, table in tables.items()
    },
    names=["data", "fit"],
)
cases = ["data", "labels", "features"]
print(results.groupby(cases)["accuracy"].mean().unstack().round(3))

# %%
# Latents alone lose what the columns have besides. The fair question is whether a
# classifier gets better if it sees the latents *as well*. Differences are paired by
# split, and call for two standard errors.
results["split"] = results.groupby(cases).cumcount()
paired = results.pivot_table("accuracy", ["data", "labels", "split"], "features")
for features in ("latents", "both"):
    gains = (paired[features] - paired["columns"]).groupby(["data", "labels"])
    for case, gain in gains.agg(["mean", "sem"]).iterrows():
        verdict = "no difference"
        if abs(gain["mean"]) > 2 * gain["sem"]:
            verdict = "better" if gain["mean"] > 0 else "worse"
        print(
            f"{features:>7} against columns, {case[0]}, labels: {case[1]}: {verdict} "
            f"({gain['mean']:+.3f} ± {gain['sem']:.3f})"
        )

# %%
# As further features, latents helped on digits, most where labels are few. On wine they
# made no difference, on breast cancer none or a slightly worse one. As the only
# features they were nowhere better than the columns. So latents pay where single
# columns are noisy and say little, as pixels do, and not where a linear classifier can
# read off the answer from good measurements.

# %%
# A model fitted inside each fold
# -------------------------------
# If all rows have labels, the latent model can be fitted within each fold like any
# other step, and its parameters can be tuned together with those of the classifier.
images = make_noisy_or_images(1000, random_state=0)
label = images.Z[:, 1] != images.Z[:, 2]
pipeline = make_pipeline(
    QuartetStructureLearner(), RandomForestClassifier(random_state=0)
)
scores = cross_val_score(pipeline, images.X, label, cv=3)
print(f"accuracy {scores.mean():.3f} ± {scores.std():.3f}")
pipeline.fit(images.X, label)

# %%
# After ``set_output``, ``transform`` returns a data frame with the names of the
# latents.
print(learner.set_output(transform="pandas").transform(X[:3]).round(2))
plt.show()
