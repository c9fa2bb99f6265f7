"""
Paper: hidden images and number of rows
=======================================

A small version of the experiment of Jernite, Halpern and Sontag (2013), "Discovering
Hidden Variables in Noisy-Or Networks using Quartet Tests": how many rows does it take
to find the eight 8 x 8 images behind mixtures of them?
``benchmarks/quartet_figure_3.py`` is the full experiment, with more draws and more
methods.
"""

# %%
# The learned images
# ------------------
# We compare the published algorithm and its thresholds with the default, which uses
# quartets as the start of a search by likelihood.
import matplotlib.pyplot as plt
import numpy as np

from sklearn_latent import QuartetStructureLearner
from sklearn_latent.datasets import image_sources, make_noisy_or_images
from sklearn_latent.metrics import match_latents

learners = {
    "as published": QuartetStructureLearner(
        quartet_threshold=0.01, extend_threshold=0.1, refine=False
    ),
    "default": QuartetStructureLearner(),
}
sizes = [100, 500, 2000, 10_000]
sources = image_sources().reshape(-1, 8, 8)
found = {}
for n in sizes:
    data = make_noisy_or_images(n, random_state=1)
    for name, learner in learners.items():
        learner.fit(data.X)
        pairs, recovered = match_latents(
            data.network.failure, learner.failure_, learner.prior_
        )
        images = np.zeros((8, 8, 8))
        for true, latent in np.asarray(pairs):
            images[true] = 1 - learner.failure_[latent].reshape(8, 8)
        found[name, n] = images, recovered

# %%
# Each line shows the images learned from one number of rows. Recovered images have a
# green frame.
for name in learners:
    figure, axes = plt.subplots(
        len(sizes) + 1, 8, figsize=(7.2, 4.9), layout="constrained"
    )
    for i, n in enumerate([0, *sizes]):
        images, recovered = found[name, n] if n else (sources, np.zeros(8, bool))
        for j, ax in enumerate(axes[i]):
            ax.imshow(images[j], cmap="gray", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_color("#009E73" if recovered[j] else "0.7")
            ax.spines[:].set_linewidth(2.5 if recovered[j] else 0.8)
        axes[i, 0].set_ylabel(
            f"{n:,} rows" if n else "truth", rotation=0, ha="right", va="center"
        )
    figure.suptitle(f"{name}: best match of each source")

# %%
# Number of recovered images
# --------------------------
figure, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
for name in learners:
    counts = [found[name, n][1].sum() for n in sizes]
    ax.semilogx(sizes, counts, "o-", label=name)
ax.set(xlabel="rows", ylabel="sources recovered, of 8", ylim=(-0.3, 8.5))
ax.legend(frameon=False)
plt.show()
