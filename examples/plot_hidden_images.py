"""
Discovering hidden images, and their number
============================================

Eight images of 8 x 8 pixels are mixed at random: each is present one time in four, and
each of its pixels fails to show one time in ten. Only the mixtures are seen. How many
images are there, and which?
"""

# %%
# The data
# --------
# 500 mixtures; these are the first sixteen.
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
# The hidden images
# -----------------
# Nothing has to be chosen: the number of images is found, and with each image its prior
# and the strength of every pixel. Depth 1 means that an image came to light only after
# others had been subtracted.
learner = QuartetStructureLearner().fit(data.X)
learner.plot_images((8, 8))

# %%
# All eight are found, with the probabilities they were drawn by.
_, recovered = match_latents(data.network.failure, learner.failure_, learner.prior_)
print(f"{learner.n_latents_} latents, {recovered.sum()} of 8 recovered")
print(learner.latents_frame().drop(columns=["children", "quartet"]).round(3))

# %%
# The published algorithm
# -----------------------
# Without the refinement, quartets alone have to do. At 500 rows they find some images
# and distort others.
plain = QuartetStructureLearner(
    quartet_threshold=0.01, extend_threshold=0.1, refine=False
).fit(data.X)
plain.plot_images((8, 8))

# %%
# Guessing the number
# -------------------
# Matrix factorisation must be told how many components there are. Eight are fine; with
# twelve it breaks the images up.
parts = NMF(12, max_iter=2000, random_state=0).fit(data.X).components_
LatentImagesDisplay(parts / parts.max(axis=1, keepdims=True), (8, 8)).plot()

# %%
# Which images does a mixture hold?
# ---------------------------------
# ``transform`` answers for each row, with probabilities.
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
