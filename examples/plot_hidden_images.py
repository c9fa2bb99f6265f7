"""
Hidden images
=============

Eight images of 8 x 8 pixels are mixed at random: each image is present with probability
1/4, and each of its pixels is then on with probability 9/10. Only the mixtures are
observed. This example learns how many images there are, and how they look.
"""

# %%
# The data
# --------
# There are 500 mixtures. These are the first sixteen:
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import NMF

from sklearn_latent import QuartetStructureLearner
from sklearn_latent.datasets import make_noisy_or_images
from sklearn_latent.metrics import match_latents
from sklearn_latent.plotting import LatentImagesDisplay

data = make_noisy_or_images(500, random_state=0)
LatentImagesDisplay(data.X[:16], (8, 8)).plot()

# %%
# The learned images
# ------------------
# No parameter has to be chosen. Each latent is an image, with its prior and the
# strength of every pixel. Depth 1 means that it was found after other latents were
# subtracted.
learner = QuartetStructureLearner().fit(data.X)
learner.plot_images((8, 8))

# %%
# All eight images are found:
_, recovered = match_latents(data.network.failure, learner.failure_, learner.prior_)
print(f"{learner.n_latents_} latents, {recovered.sum()} of 8 recovered")
print(learner.latents_frame().drop(columns=["children", "quartet"]).round(3))

# %%
# The published algorithm
# -----------------------
# Without the refinement by likelihood, the algorithm finds some images from 500 rows
# and distorts others.
plain = QuartetStructureLearner(
    quartet_threshold=0.01, extend_threshold=0.1, refine=False
).fit(data.X)
plain.plot_images((8, 8))

# %%
# Comparison with matrix factorisation
# ------------------------------------
# Non-negative matrix factorisation (NMF) must be given the number of components. With
# twelve instead of eight, it splits the images.
parts = NMF(12, max_iter=2000, random_state=0).fit(data.X).components_
LatentImagesDisplay(parts / parts.max(axis=1, keepdims=True), (8, 8)).plot()

# %%
# Which images are in a mixture?
# ------------------------------
# ``transform`` returns the probability of each latent, for each row.
row = 3
posterior = learner.transform(data.X[[row]])[0]
figure, axes = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
axes[0].imshow(data.X[row].reshape(8, 8), cmap="gray")
axes[0].set_axis_off()
axes[0].set_title(f"mixture {row}")
axes[1].bar(np.arange(learner.n_latents_), posterior)
axes[1].set_xlabel("latent")
axes[1].set_ylabel("P(present | mixture)")
axes[1].set_ylim(0, 1)
plt.show()
# sphinx_gallery_thumbnail_number = 2
