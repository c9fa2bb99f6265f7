"""
Hidden regulators of gene expression
=====================================

Genes rise and fall together because something that no chip measures drives them. This
example makes expression data as they come from yeast, a few hundred arrays with values
missing, and asks how many regulators there are and which genes each drives. The data
are synthetic, so that the answer can be checked.
"""

# %%
# Arrays and genes
# ----------------
# Five regulators drive 50 genes; ten genes answer to two of them, some are driven down.
# Four values in a hundred are missing.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import FactorAnalysis
from sklearn.impute import SimpleImputer

from sklearn_latent import IdealParentGaussianBN

rng = np.random.RandomState(0)
n_regulators, n_genes, n_arrays = 5, 50, 350
true = np.zeros((n_regulators, n_genes))
for j in range(n_genes):
    parents = rng.choice(n_regulators, 2 if j % 5 == 0 else 1, replace=False)
    true[parents, j] = rng.uniform(0.6, 1.4, len(parents)) * rng.choice([-1, 1])
regulators = rng.normal(size=(n_arrays, n_regulators))
complete = regulators @ true + 0.6 * rng.normal(size=(n_arrays, n_genes))
X = complete.copy()
X[rng.uniform(size=X.shape) < 0.04] = np.nan
genes = [f"gene{j:02d}" for j in range(n_genes)]
train, test = X[:250], X[250:]

# %%
# How many, and which?
# --------------------
# ``bipartite=True``: hidden variables above, genes below. Up to ten are tried; each
# must pay for its parameters.
model = IdealParentGaussianBN(max_latents=10, bipartite=True, random_state=0)
model.fit(pd.DataFrame(train, columns=genes))
print(f"{model.n_latents_} hidden regulators, {model.adjacency_.sum()} edges")
model.plot()

# %%
# Are they the right ones? ``transform`` completes the data: the genes, with their gaps
# filled, and behind them the regulators.
completed = model.transform(pd.DataFrame(X, columns=genes))
hidden = completed[:, n_genes:]
correlation = np.corrcoef(hidden.T, regulators.T)[
    : model.n_latents_, model.n_latents_ :
]

figure, ax = plt.subplots(figsize=(4.6, 3.4), layout="constrained")
image = ax.imshow(correlation, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
ax.set_xticks(range(n_regulators), [f"true {i}" for i in range(n_regulators)])
ax.set_yticks(range(model.n_latents_), model.node_names_[n_genes:])
for i, row in enumerate(correlation):
    for j, value in enumerate(row):
        color = "white" if abs(value) > 0.6 else "black"
        ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=color)
figure.colorbar(image, label="correlation")

# %%
# Gaps
# ----
# A gap is filled with its expectation given all that is known of the array, which is
# closer to the truth than the mean of the gene.
gaps = np.isnan(X)
gaps[:250] = False
by_mean = SimpleImputer().fit(train).transform(X)
for name, filled in (("mean of the gene", by_mean), ("network", completed)):
    error = np.sqrt(np.mean((filled[:, :n_genes] - complete)[gaps] ** 2))
    print(f"{name:>17}: root mean square error {error:.3f}")

# %%
# Beside factor analysis
# ----------------------
# The model is a factor analysis with most loadings at zero. Factor analysis must be
# told the number of factors, cannot take gaps (here it gets the mean), and spends a
# parameter on every gene and factor.
filled = pd.DataFrame(by_mean, columns=genes)
scores = {}
for k in range(1, 11):
    factors = FactorAnalysis(k, random_state=0).fit(filled[:250])
    scores[k] = factors.score(filled[250:])
ours = IdealParentGaussianBN(max_latents=10, bipartite=True, random_state=0)
ours.fit(filled[:250])

figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
ax.plot(list(scores), list(scores.values()), "o-", label="factor analysis")
label = f"this model, {ours.n_latents_} found"
ax.axhline(ours.score(filled[250:]), color="#D55E00", label=label)
ax.set(xlabel="number of factors", ylabel="held-out log-likelihood (nats an array)")
ax.legend(frameon=False)
plt.show()
