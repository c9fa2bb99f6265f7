"""
Standard errors and bootstrap
=============================

The noisy-or learners compute standard errors of priors and failures. This example
compares them with the bootstrap and with the true errors.
"""

# %%
# Standard errors of a fit
# ------------------------
# They are larger, relative to the prior, for rare latents.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from sklearn_latent import NoisyOrMoMLearner, QuartetStructureLearner
from sklearn_latent.datasets import make_noisy_or, make_noisy_or_images
from sklearn_latent.exceptions import ModelMisfitWarning

structure = np.zeros((4, 14), dtype=bool)
for i in range(4):
    structure[i, 3 * i : 3 * i + 5] = True
data = make_noisy_or(
    structure, 5000, prior=[0.3, 0.15, 0.05, 0.02], failure=(0.2, 0.6), random_state=0
)
learner = NoisyOrMoMLearner(structure).fit(data.X)
for i in range(4):
    interval = learner.prior_[i] + np.array([-2, 2]) * learner.prior_stderr_[i]
    print(
        f"latent{i}: true prior {data.network.prior[i]:.3f}, "
        f"learned {learner.prior_[i]:.3f}, interval {interval.round(3)}"
    )

# %%
# Comparison with the bootstrap
# -----------------------------
# A weight is a number of copies of a row, so that a bootstrap sample is a vector of
# weights.
rng = np.random.RandomState(0)
replicates = []
for _ in range(50):
    weights = rng.multinomial(len(data.X), np.full(len(data.X), 1 / len(data.X)))
    replicate = clone(learner).fit(data.X, sample_weight=weights)
    replicates.append(replicate.failure_[structure])
bootstrap = np.std(replicates, axis=0)

figure, ax = plt.subplots(figsize=(4.8, 4.2), layout="constrained")
latent = np.nonzero(structure)[0]
for i in range(4):
    edges = latent == i
    ax.loglog(
        learner.failure_stderr_[structure][edges],
        bootstrap[edges],
        "o",
        label=f"latent{i}, prior {data.network.prior[i]:.2f}",
    )
ends = np.array([bootstrap.min(), bootstrap.max()])
ax.loglog(ends, ends, ":", color="0.6")
ax.set(xlabel="standard error of the fit", ylabel="standard deviation of 50 bootstraps")
ax.legend(frameon=False, fontsize=8)

# %%
# Coverage
# --------
# In thirty other samples from the same network, how many intervals of plus or minus two
# standard errors cover the true failure?
covered, total = 0, 0
for seed in range(30):
    sample, _ = data.network.sample(5000, random_state=seed)
    fit = clone(learner).fit(sample)
    error = np.abs(fit.failure_ - data.network.failure)[structure]
    covered += np.sum(error <= 2 * fit.failure_stderr_[structure])
    total += error.size
print(f"{covered / total:.1%} of {total:,} intervals cover the true failure")

# %%
# Stability of the structure
# --------------------------
# There is no formula for the uncertainty of the structure. We refit bootstrap samples
# and count how often each pair of columns shares a latent. With only a hundred rows,
# the support of some latents is low, and models of some samples contradict their rows.
images = make_noisy_or_images(100, random_state=0)
found = QuartetStructureLearner().fit(images.X)
together = np.zeros((64, 64))
n_bootstraps = 10
for _ in range(n_bootstraps):
    weights = rng.multinomial(len(images.X), np.full(len(images.X), 1 / len(images.X)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelMisfitWarning)
        fit = clone(found).fit(images.X, sample_weight=weights)
    together += (fit.structure_.T.astype(int) @ fit.structure_.astype(int)) > 0
together /= n_bootstraps

support = [
    together[np.ix_(edges, edges)][~np.eye(edges.sum(), dtype=bool)].mean()
    for edges in found.structure_
]
display = found.plot_images((8, 8))
for ax, name, share in zip(
    display.axes_, found.get_feature_names_out(), support, strict=True
):
    ax.set_title(f"{name}\nsupport {share:.0%}", fontsize=8)
plt.show()
