"""
Learning from batches
=====================

The method of moments only counts how often columns are off together, and counts of
batches add up. ``partial_fit`` therefore gives the same result as one fit to all rows,
and its memory does not grow with the number of rows.
"""

# %%
# A stream of batches
# -------------------
# The rows arrive in batches of 2,000. The model is updated after each batch, and the
# standard errors decrease with the square root of the number of rows.
import matplotlib.pyplot as plt
import numpy as np

from sklearn_latent import NoisyOrMoMLearner
from sklearn_latent.datasets import make_noisy_or

structure = np.zeros((3, 12), dtype=bool)
for i in range(3):
    structure[i, 3 * i : 3 * i + 6] = True
network = make_noisy_or(structure, 1, prior=[0.3, 0.2, 0.1], random_state=0).network

learner = NoisyOrMoMLearner(structure)
priors, errors, n_rows = [], [], []
for batch in range(25):
    X, _ = network.sample(2000, random_state=batch)
    learner.partial_fit(X)
    priors.append(learner.prior_)
    errors.append(learner.prior_stderr_)
    n_rows.append(2000 * (batch + 1))
priors, errors = np.array(priors), np.array(errors)

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for i in range(3):
    (line,) = ax.plot(n_rows, priors[:, i], label=f"latent{i}")
    ax.fill_between(
        n_rows,
        priors[:, i] - 2 * errors[:, i],
        priors[:, i] + 2 * errors[:, i],
        color=line.get_color(),
        alpha=0.2,
    )
    ax.axhline(network.prior[i], color=line.get_color(), ls=":")
ax.set(xlabel="rows seen", ylabel="prior, with two standard errors")
ax.set_ylim(0.05, 0.38)
ax.legend(frameon=False, loc="upper right", ncols=3)

# %%
# The same result as one fit
# --------------------------
everything = np.concatenate(
    [network.sample(2000, random_state=batch)[0] for batch in range(25)]
)
at_once = NoisyOrMoMLearner(structure).fit(everything)
print("largest difference:", np.abs(at_once.failure_ - learner.failure_).max())

# %%
# Counting without solving
# ------------------------
# With ``update=False``, ``partial_fit`` only counts, which is faster. The last call
# solves for the parameters.
fast = NoisyOrMoMLearner(structure)
for batch in range(25):
    X, _ = network.sample(2000, random_state=batch)
    fast.partial_fit(X, update=batch == 24)
print("largest difference:", np.abs(fast.failure_ - learner.failure_).max())
plt.show()
