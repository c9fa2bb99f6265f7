"""
Paper: from local to global graphs
==================================

A small version of Figure 4 of Halbersberg and Lerner (2020), "Local to Global Learning
of a Latent Dynamic Bayesian Network": the structural Hamming distance (SHD) to the true
graph against the number of time slices, for the graphs G1, G2 and G3 of the paper. SHD
counts wrong edges; O-SHD counts only those between latents and features.
"""

# %%
# Error and number of slices
# --------------------------
# G1 has one latent. G2 has two: the first depends on its own past and drives the
# second. In G3 the second also depends on its own past. Each latent has three features
# with four values, of which a fifth are noise. ``local="lpcc"`` learns local graphs by
# pairwise cluster comparison, as published; the default compares models by BIC. The
# number of latents is not given to either.
import time

import matplotlib.pyplot as plt

from sklearn_latent import LGLPCCTemporal
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.metrics import structural_hamming_distance

GRAPHS = ("G1", "G2", "G3")
slices = [4, 6, 9, 12]
results, learned = {}, {}
for name in GRAPHS:
    for local in ("lpcc", "bic"):
        for n_slices in slices:
            data = make_latent_dbn(name, 2000, n_slices, random_state=1)
            start = time.perf_counter()
            model = LGLPCCTemporal(n_slices, local=local, random_state=0).fit(data.X)
            seconds = time.perf_counter() - start
            distances = structural_hamming_distance(data.graph, model.graph_)
            results[name, local, n_slices] = (*distances, seconds)
            learned[name, local, n_slices] = model

figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained", sharey=True)
for ax, name in zip(axes, GRAPHS, strict=True):
    for local, color in (("lpcc", "#D55E00"), ("bic", "#0072B2")):
        shd, observed, _ = zip(*(results[name, local, t] for t in slices), strict=True)
        ax.plot(slices, shd, "o--", color=color, label=f'SHD, local="{local}"')
        ax.plot(slices, observed, "s:", color=color, label="O-SHD", alpha=0.6)
    ax.set(title=name, xlabel="slices", xticks=slices)
axes[0].set_ylabel("wrong edges")
axes[0].legend(frameon=False, fontsize=8)

# %%
# Seconds per fit:
for local in ("lpcc", "bic"):
    times = [results[name, local, t][2] for name in GRAPHS for t in slices]
    print(f"{local:>5}: {min(times):.1f} to {max(times):.1f}")

# %%
# The learned graphs
# ------------------
# The default learns the true graphs from twelve slices:
figure, axes = plt.subplots(1, 3, figsize=(13, 4.0))
figure.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=0.92, wspace=0.05)
for ax, name in zip(axes, GRAPHS, strict=True):
    learned[name, "bic", 12].plot(ax=ax, legend=name == "G2")
    ax.set_title(name)
plt.show()
