"""
Is the latent model worth it?
=============================

Any model fits its training rows. What counts is how well it predicts others, compared
with simpler models, and whether there are enough rows to trust the latents.
"""

# %%
# Comparison with simpler models
# ------------------------------
# Two latents drive ten binary columns. :func:`~sklearn_latent.compare` fits each model
# to the same folds. ``log_likelihood`` is that of held-out rows, in nats per row;
# ``difference`` is paired by row, so that its standard error is small.
import matplotlib.pyplot as plt

from sklearn_latent import QuartetStructureLearner, compare, rows_needed
from sklearn_latent.datasets import make_noisy_or

structure = [[1, 1, 1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]]
data = make_noisy_or(
    structure, 1000, prior=0.3, failure=(0.2, 0.5), leak=0.05, random_state=0
)
models = {
    "noisy-or network": QuartetStructureLearner(random_state=0),
    "mixture of Bernoullis": "mixture",
    "independent columns": "independence",
}
table = compare(models, data.X)
print(table.round(3).to_string())

# %%
# Both find the dependence of the columns, and predict equally well. But the mixture
# needs a class for each combination of the latents, and more parameters: four classes
# here, and sixteen if there were four latents.
figure, ax = plt.subplots(figsize=(6.0, 2.0), layout="constrained")
ax.errorbar(
    table["difference"], table.index, xerr=2 * table["difference_stderr"], fmt="o"
)
ax.axvline(0.0, color="0.7", lw=0.8)
ax.set(xlabel="difference to the best, nats per row (± 2 standard errors)")
ax.invert_yaxis()

# %%
# How many rows are needed?
# -------------------------
# :func:`~sklearn_latent.rows_needed` draws tables of different sizes from a network,
# and counts how often the latents are recovered. Here the sizes are given; without them
# they double until the share reaches 0.9.
result = rows_needed(data.network, sizes=[25, 50, 100, 200, 400], n_repeats=12)
print(result)
table = result.to_frame()
print(table.round(2).to_string())
figure, ax = plt.subplots(layout="constrained")
ends = abs(table[["low", "high"]].sub(table["share"], axis=0)).T
ax.errorbar(table["n_rows"], table["share"], ends, fmt="o")
ax.axvline(result.n_rows, color="0.6", ls="--")
ax.set(xscale="log", xlabel="rows", ylabel="latents recovered")
plt.show()
