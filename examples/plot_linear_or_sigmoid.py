"""
Linear or sigmoid?
==================

Many responses saturate: twice the regulator is not twice the protein. A sigmoid network
models saturation, but it has more parameters, and they have no closed-form estimate.
This example chooses between the links by the likelihood of held-out rows.
"""

# %%
# Two data sets
# -------------
# Both come from the same graph, one with saturating and one with linear responses.
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_latent import IdealParentGaussianBN

rng = np.random.RandomState(0)
edges = [(0, 2), (1, 2), (1, 3), (2, 4), (3, 5), (0, 6), (4, 6), (5, 7)]
n_nodes = 8


def draw(n_rows, saturates, seed):
    """Rows of the network; parents come before their children."""
    noise = np.random.RandomState(seed)
    X = np.zeros((n_rows, n_nodes))
    for child in range(n_nodes):
        parents = [i for i, j in edges if j == child]
        eta = sum((1.6 * X[:, i] for i in parents), start=np.zeros(n_rows))
        mean = 4 / (1 + np.exp(-2 * eta)) - 2 if saturates else eta / 2
        X[:, child] = mean + (0.4 if parents else 1.0) * noise.normal(size=n_rows)
    return X


# %%
# Four fits
# ---------
# We fit both links to both data sets. The sigmoid is clearly better where responses
# saturate. Where they are linear it is no better, and takes longer.
rows = []
models = {}
for responses, saturates in (("saturating", True), ("linear", False)):
    train, test = draw(400, saturates, seed=1), draw(2000, saturates, seed=2)
    for link in ("linear", "sigmoid"):
        model = IdealParentGaussianBN(link=link, search="greedy")
        start = time.perf_counter()
        model.fit(train)
        seconds = time.perf_counter() - start
        models[responses, link] = model
        rows.append(
            (responses, link, model.score(test), model.adjacency_.sum(), seconds)
        )
columns = ["responses", "link", "held-out log-likelihood", "edges", "seconds"]
print(pd.DataFrame(rows, columns=columns).round(2).to_string(index=False))

# %%
# The fitted curves
# -----------------
# A child against its only parent, with the curves that both models fit to these two
# columns. ``required`` fixes the direction of the edge.
parent, child = 3, 5
X = draw(400, True, seed=1)[:, [parent, child]]
grid = np.zeros((200, 2))
grid[:, 0] = np.linspace(X[:, 0].min(), X[:, 0].max(), 200)
figure, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
ax.scatter(*X.T, s=8, color="0.7", label="rows")
for link, color in (("linear", "#0072B2"), ("sigmoid", "#D55E00")):
    model = IdealParentGaussianBN(link=link, search="greedy", required=[(0, 1)]).fit(X)
    curve = model.network_.conditional_means(grid)[:, 1]
    ax.plot(grid[:, 0], curve, color=color, lw=2, label=link)
ax.set(xlabel=f"x{parent}", ylabel=f"x{child}")
ax.legend(frameon=False)

# %%
# The graph learned by the sigmoid model:
models["saturating", "sigmoid"].plot()
plt.show()
