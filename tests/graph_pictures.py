"""Graphs of every kind and size, to be drawn and exported."""

import networkx as nx
import numpy as np

from sklearn_latent import NoisyOrNetwork
from sklearn_latent.gaussian import GaussianNetwork

SIZES = (8, 30, 80, 300)


def names_of(n, long, prefix="x"):
    """Short names, or long ones that differ at their ends."""
    if not long:
        return [f"{prefix}{j}" for j in range(n)]
    return [f"{prefix} with a long and winding description, no. {j}" for j in range(n)]


def noisy_or(n, long=False, n_latents=None, n_classes=1):
    """Features with one to three parents among many latents."""
    rng = np.random.RandomState(n)
    n_latents = max(2, min(60, n // 5)) if n_latents is None else n_latents
    structure = np.zeros((n_latents, n), dtype=bool)
    structure[np.arange(n) * n_latents // n, np.arange(n)] = True
    structure |= rng.uniform(size=structure.shape) < 1.0 / n_latents
    failure = np.where(structure, rng.uniform(0.05, 0.95, size=structure.shape), 1.0)
    classes = {}
    prior = rng.uniform(0.001, 0.5, size=n_latents)
    if n_classes > 1:
        prior = rng.uniform(0.001, 0.5, size=(n_classes, n_latents))
        polarity = np.where(rng.uniform(size=n) < 0.2, -1, 1)
        weight = np.full(n_classes, 1.0 / n_classes)
        classes = {"class_weight": weight, "polarity": polarity}
    network = NoisyOrNetwork(prior, failure, np.full(n, 0.01), **classes)
    latents = names_of(n_latents, long, "latent")
    return network.to_networkx(latents, names_of(n, long))


def with_classes(n, long=False):
    """Noisy-or network with three classes above its latents."""
    return noisy_or(n, long, n_classes=3)


def gaussian(n, long=False, *, bipartite=False):
    """Latents, one of them above two others, and edges between features."""
    rng = np.random.RandomState(n)
    n_latents = max(3, n // 12)
    adjacency = np.zeros((n + n_latents, n + n_latents), dtype=bool)
    adjacency[n + np.arange(n) % n_latents, np.arange(n)] = rng.uniform(size=n) < 0.7
    if not bipartite:
        adjacency[n, n + 1 : n + 3] = True
        for child in range(1, n):
            parents = rng.randint(max(0, child - 12), child, size=rng.randint(0, 3))
            adjacency[parents, child] = True
    weights = np.where(adjacency, rng.normal(size=adjacency.shape), 0.0)
    zeros, ones = np.zeros(len(weights)), np.ones(len(weights))
    network = GaussianNetwork(
        adjacency=adjacency,
        weights=weights,
        intercept=zeros,
        noise_variance=ones,
        n_latents=n_latents,
    )
    return network.to_networkx(names_of(n_latents, long, "latent"), names_of(n, long))


def factors(n, long=False):
    """Latents above features alone."""
    return gaussian(n, long, bipartite=True)


def temporal(n, long=False, *, n_latents=None, time=True, directed=True):
    """Two slices of latents with edges within and between them."""
    rng = np.random.RandomState(n)
    n_latents = max(2, min(12, n // 4)) if n_latents is None else n_latents
    latents, features = names_of(n_latents, long, "latent"), names_of(n, long)
    graph = nx.DiGraph(family="temporal", note="last of 2 epochs, since slice 4")
    for t in (0, 1) if time else (0,):
        for name in latents:
            graph.add_node((name, t), kind="latent", slice=t, name=name, cardinality=3)
        for name in features:
            graph.add_node((name, t), kind="feature", slice=t, name=name)

    def add(parent, child, kind, times, strength, **data):
        ends = zip((parent, child), times, strict=True)
        data |= {"kind": kind, "strength": strength, "support": rng.uniform()}
        graph.add_edge(*ends, **data)

    slices = (0, 1) if time else (0,)
    for j, name in enumerate(features):
        strength = rng.uniform()
        for t in slices:
            parent = latents[j * n_latents // n]
            add(parent, name, "measurement", (t, t), strength, directed=True)
    for i, name in enumerate(latents[1:]):
        strength = 0.1 * rng.uniform()
        for t in slices:
            parent = latents[rng.randint(i + 1)] if t == 0 else parent
            add(parent, name, "intra", (t, t), strength, directed=directed)
    for name in latents if time else ():
        for parent in {name, latents[rng.randint(n_latents)]}:
            add(parent, name, "inter", (0, 1), 0.3 * rng.uniform(), directed=True)
    return graph


KINDS = {
    "noisy_or": noisy_or,
    "with_classes": with_classes,
    "gaussian": gaussian,
    "factors": factors,
    "temporal": temporal,
}
