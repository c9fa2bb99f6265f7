"""
Rows that arrive in batches
============================

The method of moments looks at rows once: it counts which columns are off together, and
counts add up. So ``partial_fit`` gives what one fit on all rows would give, in constant
memory.
"""

# %%
# A stream
# --------
# Batches of 2,000 rows. After each, the model is up to date; the standard errors shrink
# with the square root of the number of rows seen.
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
# The same as all at once
# -----------------------
everything = np.concatenate(
    [network.sample(2000, random_state=batch)[0] for batch in range(25)]
)
at_once = NoisyOrMoMLearner(structure).fit(everything)
print("largest difference:", np.abs(at_once.failure_ - learner.failure_).max())

# %%
# Only count, solve later
# -----------------------
# If batches come fast, ``update=False`` counts without solving; the last call solves.
fast = NoisyOrMoMLearner(structure)
for batch in range(25):
    X, _ = network.sample(2000, random_state=batch)
    fast.partial_fit(X, update=batch == 24)
print("largest difference:", np.abs(fast.failure_ - learner.failure_).max())
plt.show()
