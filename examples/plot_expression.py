"""
Latent regulators of gene expression
====================================

Genes are correlated because they share regulators, which the arrays do not measure.
This example learns how many regulators there are and which genes each one drives. The
data are simulated, so that the result can be checked, but resemble those of yeast: a
few hundred arrays with missing values.
"""

# %%
# Arrays and genes
# ----------------
# Five regulators drive 50 genes. Ten genes have two regulators, and some effects are
# negative. Four per cent of the values are missing.
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
# Learning the regulators
# -----------------------
# With ``bipartite=True`` genes depend on latents only. At most ten latents are added,
# as long as each improves the score.
model = IdealParentGaussianBN(max_latents=10, bipartite=True)
model.fit(pd.DataFrame(train, columns=genes))
print(f"{model.n_latents_} latents, {model.adjacency_.sum()} edges")
model.plot()

# %%
# ``transform`` returns the genes, with missing values filled in, followed by the
# expected values of the latents. Each latent corresponds to one true regulator; the
# sign of a latent is arbitrary.
completed = model.transform(pd.DataFrame(X, columns=genes))
latents = completed[:, n_genes:]
correlation = np.corrcoef(latents.T, regulators.T)[
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
# Missing values
# --------------
# A missing value is replaced by its expectation given all other values of the array.
# This is closer to the truth than the mean of the gene.
missing = np.isnan(X)
missing[:250] = False
by_mean = SimpleImputer().fit(train).transform(X)
for name, filled in (("mean of the gene", by_mean), ("network", completed)):
    error = np.sqrt(np.mean((filled[:, :n_genes] - complete)[missing] ** 2))
    print(f"{name:>17}: root mean square error {error:.3f}")

# %%
# Comparison with factor analysis
# -------------------------------
# The model is a factor analysis in which most loadings are zero. Factor analysis must
# be given the number of factors, has a parameter for every gene and factor, and does
# not accept missing values. Here both models get the mean of the gene instead.
filled = pd.DataFrame(by_mean, columns=genes)
scores = {}
for k in range(1, 11):
    factors = FactorAnalysis(k, random_state=0).fit(filled[:250])
    scores[k] = factors.score(filled[250:])
ours = IdealParentGaussianBN(max_latents=10, bipartite=True)
ours.fit(filled[:250])

figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
ax.plot(list(scores), list(scores.values()), "o-", label="factor analysis")
label = f"IdealParentGaussianBN, {ours.n_latents_} latents"
ax.axhline(ours.score(filled[250:]), color="#D55E00", label=label)
ax.set(xlabel="number of factors", ylabel="held-out log-likelihood per array")
ax.legend(frameon=False)
plt.show()
