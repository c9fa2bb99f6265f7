"""What a Gaussian network says of itself: its summary, what cells tell of latents."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from .._answers.explain import Part
from .._answers.summary import Parts
from .._core.graphs import equivalence_class
from .._core.text import count
from ._bent_inference import expect
from ._gaussian_graph import edge_strengths
from ._gaussian_network import GaussianNetwork
from ._table_margins import bent_columns, estimated, to_scores

# Nodes beyond which the equivalence class is not computed.
MOST_NODES = 500
# A strength from which tables show 1.
FULL = 0.9995


def describe(model: Any) -> Parts:
    """What was found, and cautions."""
    network = model.network_
    cautions = _cautions(network) + _suspicious(network, edge_strengths(network))
    size = "noise_variance", "variance"
    return Parts(_found(network), cautions, _measure(network), size)


def describe_edges(network) -> str:
    """What a network without latents is."""
    n_edges = int(network.adjacency.sum())
    edges = f"{count(n_edges, 'edge')} between the features"
    if network.classes:
        return f"has {count(network.n_classes, 'class', 'classes')} of rows and {edges}"
    return f"has {edges}" if n_edges else "treats the features as independent"


def _measure(network) -> str:
    if network.is_jointly_gaussian or network.classes:
        return (
            "by how many standard deviations the child moves if the parent moves by one"
        )
    return "weight compared with the largest of the same child"


def _found(network) -> list[str]:
    n = network.n_features
    found = [
        f"{count(network.n_latents, 'latent')}; "
        f"{count(int(network.adjacency[:n, :n].sum()), 'edge')} between "
        f"{count(n, 'feature')}; link {network.link}, noise {network.noise}."
    ]
    if network.classes:
        weights = ", ".join(f"{weight:.2f}" for weight in network.class_weight)
        found.append(
            f"{network.n_classes} classes of rows, of weights {weights}; weights and "
            "strengths are means over them."
        )
    alone = ~(network.adjacency.any(axis=0) | network.adjacency.any(axis=1))
    if alone.any():
        found.append(f"{count(int(alone.sum()), 'node')} without any edge.")
    bent = bent_columns(estimated(network.margins))
    if bent:
        found.append(
            f"{count(len(bent), 'column')} not normal: the network describes their "
            "normal scores, and so do weights and strengths."
        )
    return found


def _suspicious(network, strengths) -> list[str]:
    """Graphs that say little: with all edges, or with edges that are identities."""
    found = []
    n = network.n_features
    n_edges = int(network.adjacency[:n, :n].sum())
    if n > 2 and n_edges == n * (n - 1) // 2:
        found.append(
            f"The graph has all {n_edges} edges that it can have, so that it says "
            "nothing of which features are independent of which."
        )
    n_full = int((strengths >= FULL).sum())
    if n_full and (network.is_jointly_gaussian or network.classes):
        found.append(
            f"{count(n_full, 'edge has', 'edges have')} a strength of 1, the most: the "
            "child is almost a copy of the parent, or its parents say almost the same."
        )
    return found


def _cautions(network) -> list[str]:
    cautions = []
    adjacency = network.adjacency
    n_edges = int(adjacency.sum())
    n_open = 0
    # Latents make more graphs equivalent than the rules for observed nodes know.
    linear = network.is_jointly_gaussian or network.classes
    if network.n_latents == 0 and linear and n_edges:
        both = (
            equivalence_class(adjacency) if network.n_nodes <= MOST_NODES else adjacency
        )
        n_open = int((both.T & adjacency).sum())
    if n_open:
        cautions.append(
            f"Rows cannot tell the direction of {n_open} of the {n_edges} edges: "
            "graphs with others fit as well."
        )
    if n_edges > n_open:
        shapes = "" if linear else ", and on the shapes of responses and noise"
        cautions.append(
            f"{count(n_edges - n_open, 'direction rests', 'directions rest')} on which "
            f"nodes are independent given others{shapes}, in these rows: no experiment "
            "stands behind them."
        )
    if n_edges:
        cautions += [
            "Edges and directions are estimates: edge_confidence(X) says in which "
            "share of resamples each is found.",
            "Arrows are causes only if no common cause of the features is missing.",
        ]
    if network.n_latents:
        cautions.append("The sign and the scale of a latent are conventions.")
    return cautions


# What cells tell of latents


def part_of(network: GaussianNetwork, row, latent: int) -> Part:
    """Cells that may matter for a latent, given one row (n_features,).

    Nodes that are not seen depend on each other through edges, and through children
    that they share, of the moral graph; cells next to them tell of all of them.
    """
    node = network.n_features + latent
    seen = np.pad(~np.isnan(row), (0, network.n_latents))
    edges = np.asarray(network.adjacency, dtype=float)
    moral = (edges + edges.T + edges @ edges.T) > 0
    region, group = (
        connected_components(joined, directed=False)[1]
        for joined in (moral, moral & ~seen & ~seen[:, np.newaxis])
    )
    cells = np.flatnonzero(seen & (region == region[node]))
    near = np.ones(len(cells), dtype=bool)
    if network.is_jointly_gaussian:
        # Approximations may depend on the others as well.
        near = moral[group == group[node]].any(axis=0)[cells]
    cells = np.concatenate([cells[near], cells[~near]])
    return Part(cells, int(near.sum()), partial(_means, network, row, cells, latent))


def _means(network, row, cells, latent: int, seen) -> np.ndarray:
    """Means of a latent, given which cells are seen."""
    rows = np.full((len(seen), network.n_features), np.nan)
    rows[:, cells] = np.where(seen, row[cells], np.nan)
    if network.is_jointly_gaussian:
        return network.posterior(rows)[:, latent]
    scores = to_scores(network.margins, rows)[0]
    return expect(network, scores)[:, network.n_features + latent]
