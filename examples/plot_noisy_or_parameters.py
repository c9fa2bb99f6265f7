"""
Learning the parameters of a noisy-or network
=============================================

Two latents, A and B, share two of five binary features, and only the features are
observed. B has a triplet of features of which A drives at most one, so that B can be
learned immediately. The only triplet of A contains two features of B. A can be learned
after the influence of B has been subtracted. This is Figure 1 of Halpern and Sontag
(2013).
"""

# %%
# The data
# --------
# Priors and failures are drawn uniformly between 0.2 and 0.8.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_latent import NoisyOrMoMLearner
from sklearn_latent.datasets import figure_1_structure, make_noisy_or, make_qmr_like
from sklearn_latent.noisy_or import find_schedule

structure = figure_1_structure()
data = make_noisy_or(structure, n_samples=100_000, random_state=0)
truth = data.network

# %%
# The order of learning
# ---------------------
# ``depth_`` is the round in which each edge was learned: 0 for B, 1 for A.
learner = NoisyOrMoMLearner(structure).fit(data.X[:10_000])
print(pd.DataFrame(learner.depth_, index=["A", "B"]).to_string(na_rep="-"))

# %%
# The width of an edge shows its strength and its colour the depth; the numbers are the
# priors.
learner.plot(color_by="depth")

# %%
# Error and number of rows
# ------------------------
# The error decreases with the square root of the number of rows. The published
# estimator uses one triplet per edge. The refined one combines several triplets, and
# then maximises the likelihood.
sizes = np.array([1000, 3000, 10_000, 30_000, 100_000])


def mean_error(learner):
    """Mean absolute error of priors and failures."""
    errors = np.concatenate(
        [
            np.abs(learner.prior_ - truth.prior),
            np.abs(learner.failure_ - truth.failure)[structure],
        ]
    )
    return errors.mean()


figure, ax = plt.subplots(layout="constrained")
for refine, label in [(False, "one triplet per edge"), (True, "refined")]:
    errors = [
        mean_error(NoisyOrMoMLearner(structure, refine=refine).fit(data.X[:n]))
        for n in sizes
    ]
    ax.loglog(sizes, errors, "o-", label=label)
ax.loglog(sizes, 2 / np.sqrt(sizes), ":", color="0.6", label="slope -1/2")
ax.set_xlabel("rows")
ax.set_ylabel("mean absolute error")
ax.legend(frameon=False)

# %%
# Standard errors
# ---------------
# Intervals of plus or minus two standard errors should cover about 95 per cent of the
# true values.
learner = NoisyOrMoMLearner(structure).fit(data.X[:10_000])
estimates = np.concatenate([learner.prior_, learner.failure_[structure]])
stderr = np.concatenate([learner.prior_stderr_, learner.failure_stderr_[structure]])
true = np.concatenate([truth.prior, truth.failure[structure]])

figure, ax = plt.subplots(layout="constrained")
ax.errorbar(true, estimates, yerr=2 * stderr, fmt="o", capsize=3)
ax.plot([0, 1], [0, 1], ":", color="0.6")
ax.set_xlabel("true value")
ax.set_ylabel("estimate, with two standard errors")

# %%
# A large network
# ---------------
# The order of learning depends on the structure alone. It is computed in about a second
# for hundreds of diseases and thousands of findings. Most edges are learned in the
# first round.
large = make_qmr_like(random_state=0, n_samples=1).network.structure
depth = find_schedule(large).depth
pd.Series(depth[~np.isnan(depth)]).value_counts().plot.barh(logx=True, xlabel="edges")
plt.show()
# sphinx_gallery_thumbnail_number = 2
