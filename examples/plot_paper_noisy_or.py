"""
Paper: moments and variational EM
=================================

A small version of Figure 3 of Halpern and Sontag (2013), "Unsupervised Learning of
Noisy-Or Bayesian Networks": error and run time of the method of moments, maximum
likelihood and variational EM. ``benchmarks/figure_3.py`` is the full experiment.
"""

# %%
# The networks
# ------------
# Two latents share two of five features. Priors and failures are uniform in [0.2, 0.8].
# The error is the sum of the absolute errors of all parameters.
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_latent import NoisyOrEM, NoisyOrMoMLearner
from sklearn_latent.datasets import figure_1_structure, make_noisy_or
from sklearn_latent.exceptions import ModelMisfitWarning, PoorDataWarning

structure = figure_1_structure()
learners = {
    "moments, as published": NoisyOrMoMLearner(structure, refine=False),
    "moments, refined": NoisyOrMoMLearner(structure),
    "maximum likelihood": NoisyOrEM(structure=structure, n_init=4, random_state=0),
    "variational EM": NoisyOrEM(
        structure=structure, inference="variational", n_init=2, random_state=0
    ),
}
sizes = [100, 1000, 10_000, 100_000]
n_networks = 12
errors = {name: np.zeros((n_networks, len(sizes))) for name in learners}
seconds = {name: np.zeros((n_networks, len(sizes))) for name in learners}

for seed in range(n_networks):
    data = make_noisy_or(structure, max(sizes), random_state=seed)
    truth = data.network
    for k, n in enumerate(sizes):
        for name, learner in learners.items():
            start = time.perf_counter()
            with warnings.catch_warnings():
                # A hundred rows are few, and some starts of EM converge slowly.
                warnings.simplefilter("ignore", PoorDataWarning)
                warnings.simplefilter("ignore", ConvergenceWarning)
                # Variational EM is biased.
                warnings.simplefilter("ignore", ModelMisfitWarning)
                learner.fit(data.X[:n])
            seconds[name][seed, k] = time.perf_counter() - start
            errors[name][seed, k] = (
                np.abs(learner.prior_ - truth.prior).sum()
                + np.abs(learner.failure_ - truth.failure).sum()
                + np.abs(learner.leak_ - truth.leak).sum()
            )

# %%
# Error and time
# --------------
# The error of the method of moments decreases with the square root of the number of
# rows, with and without refinement. That of variational EM does not: its bound is
# tightest where one parent of a shared feature has no effect.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name in learners:
    axes[0].errorbar(
        sizes,
        errors[name].mean(axis=0),
        errors[name].std(axis=0) / np.sqrt(n_networks),
        marker="o",
        capsize=2,
        label=name,
    )
    axes[1].plot(sizes, np.median(seconds[name], axis=0), "o-", label=name)
for ax in axes:
    ax.set(xscale="log", yscale="log", xlabel="rows")
axes[0].set_ylabel("summed absolute error")
axes[1].set_ylabel("seconds")
axes[0].legend(frameon=False, fontsize=8)
plt.show()
