"""
Paper: the ideal parent
=======================

Small versions of Figures 2 and 5 of Elidan, Nachman and Friedman (2007), '"Ideal
Parent" Structure Learning for Continuous Variable Bayesian Networks'. The idea is to
compute the profile of a parent that would explain a node perfectly, and to fit only
candidates that are similar to it.
"""

# %%
# Figure 2: similarity against true gain
# --------------------------------------
# In a linear network the ideal parent of a node is its residual. The similarity C1
# adapts only the weight of the new parent; C2 also adapts the variance. Both are lower
# bounds of the gain in log-likelihood, and C2 is much tighter.
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_latent import IdealParentGaussianBN
from sklearn_latent.gaussian import GaussianNetwork


def random_network(n_nodes, link, seed):
    """About 1.5 parents per node, with positive and negative weights."""
    rng = np.random.RandomState(seed)
    adjacency = np.triu(rng.uniform(size=(n_nodes, n_nodes)) < 3 / n_nodes, k=1)
    weights = rng.uniform(0.5, 1.2, adjacency.shape)
    weights *= rng.choice([-1, 1], adjacency.shape)
    theta = np.tile([-1.5, 3.0, 0.0], (n_nodes, 1))  # offset, scale, bias
    return GaussianNetwork(
        adjacency,
        np.where(adjacency, weights * (1.5 if link == "sigmoid" else 1.0), 0.0),
        np.zeros(n_nodes),
        np.where(adjacency.any(axis=0), 0.15, 1.0),
        link=link,
        link_parameters=None if link == "linear" else theta,
    )


truth = random_network(30, "linear", seed=0)
X, _ = truth.sample(200, random_state=0)
X = (X - X.mean(axis=0)) / X.std(axis=0)
n_rows, n_nodes = X.shape
rng = np.random.RandomState(1)

gain, c1, c2 = [], [], []
for _ in range(150):
    child, *parents = rng.choice(n_nodes, rng.randint(1, 4), replace=False)
    U = X[:, parents]
    ideal = X[:, child] - U @ np.linalg.lstsq(U, X[:, child], rcond=None)[0]
    variance = np.mean(ideal**2)
    for z in np.setdiff1d(np.arange(n_nodes), [child, *parents]):
        candidate = X[:, z]
        explained = (candidate @ ideal) ** 2 / (candidate @ candidate)
        c1.append(explained / (2 * variance))
        c2.append(-n_rows / 2 * np.log1p(-explained / (ideal @ ideal)))
        with_z = X[:, [*parents, z]]
        left = (
            X[:, child] - with_z @ np.linalg.lstsq(with_z, X[:, child], rcond=None)[0]
        )
        gain.append(-n_rows / 2 * np.log(np.mean(left**2) / variance))
gain = np.array(gain)

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
for ax, values, name in ((axes[0], c1, "C1"), (axes[1], c2, "C2")):
    ax.scatter(gain, values, s=6, alpha=0.4)
    ax.plot([0, gain.max()], [0, gain.max()], ":", color="0.5")
    ax.set(xlabel="true gain (nats)", title=f"{name}, {len(gain):,} moves")
axes[0].set_ylabel("similarity (nats)")
print(
    "C1 <= C2 <= gain:",
    bool(np.all(c1 <= np.add(c2, 1e-9)) & np.all(c2 <= gain + 1e-9)),
)

# %%
# Figure 5: results without fitting every candidate
# -------------------------------------------------
# The data come from four networks with sigmoid responses, for which fitting a candidate
# is expensive. K is the number of candidates per node that are fitted. An edge counts
# as found in either direction.
n_nodes, n_networks = 20, 4
rows = []
for seed in range(n_networks):
    truth = random_network(n_nodes, "sigmoid", seed)
    skeleton = truth.adjacency | truth.adjacency.T
    X_all, _ = truth.sample(400, random_state=seed)
    X_test, _ = truth.sample(1000, random_state=100 + seed)
    for n in (50, 100, 200, 400):
        for k in (2, 5, None):
            model = IdealParentGaussianBN(
                link="sigmoid", search="greedy", n_candidates=k
            )
            start = time.perf_counter()
            model.fit(X_all[:n])
            seconds = time.perf_counter() - start
            found = model.adjacency_ | model.adjacency_.T
            rows.append(
                {
                    "rows": n,
                    "K": "all" if k is None else str(k),
                    "test log-likelihood": model.score(X_test) / n_nodes,
                    "true edges found": (found & skeleton).sum() / skeleton.sum(),
                    "edges / true edges": found.sum() / skeleton.sum(),
                    "families fitted": model.n_evaluated_,
                    "seconds": seconds,
                }
            )
table = pd.DataFrame(rows).groupby(["rows", "K"], sort=False).mean().reset_index()
print(table.round(2).to_string(index=False))

# %%
figure, axes = plt.subplots(1, 4, figsize=(11, 3.0), layout="constrained")
for ax, column in zip(axes, table.columns[2:6], strict=True):
    for k, part in table.groupby("K", sort=False):
        ax.plot(part["rows"], part[column], "o-", label=f"K = {k}")
    ax.set(xlabel="rows", title=column, xscale="log")
    ax.set_xticks([50, 100, 200, 400], ["50", "100", "200", "400"])
    ax.minorticks_off()
axes[3].set_yscale("log")
axes[0].legend(frameon=False, fontsize=8)
plt.show()
