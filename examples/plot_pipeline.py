"""
Latents as features of a classifier
===================================

Labels are often expensive, while rows without labels are not. A latent model can learn
from all rows. A classifier then needs fewer labels, because it sees a few latents
instead of many noisy columns. Both are scikit-learn estimators and can be combined in a
:class:`~sklearn.pipeline.Pipeline`.
"""

# %%
# Noisy columns and few labels
# ----------------------------
# Eight latents drive 64 binary columns, with failures between 0.4 and 0.7. The label is
# whether exactly one of two latents is on, with 5% noise. There are 5,000 rows without
# labels, and few rows with labels.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_latent import QuartetStructureLearner
from sklearn_latent.datasets import (
    image_sources,
    make_noisy_or,
    make_noisy_or_images,
)

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
