"""What the summary of a continuous network says."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._graphs import equivalence_class
from .._summary import (
    Parts,
    Section,
    count,
    edges_section,
    label,
    latents_section,
    leading,
    number,
)
from ._export import edge_strengths
from ._margins.columns import bent_columns

# Nodes beyond which the equivalence class is not computed.
MOST_NODES = 500


def describe(model: Any) -> Parts:
    """Latents, their leading features, and edges."""
    network, names = model.network_, model.node_names_
    n = network.n_features
    strengths = np.sign(network.weights) * edge_strengths(network)
    latents = model.latent_names_
    edges = [
        (names[i], "->", names[j], strengths[i, j])
        for i, j in np.argwhere(network.adjacency[:, :n]).tolist()
        if i < n
    ]
    upper = [
        (names[i], "->", names[j], strengths[i, j])
        for i, j in np.argwhere(network.adjacency).tolist()
        if j >= n
    ]
    sections = [
        *_latents(network, latents, names, strengths),
        *edges_section("Edges to latents", upper),
        *edges_section("Edges between features", edges, [_meaning(network)]),
    ]
    return Parts(_found(network), sections, _cautions(network))


def _meaning(network) -> str:
    if network.is_jointly_gaussian:
        return (
            "strength: by how many standard deviations the child moves if the parent "
            "moves by one."
        )
    return "strength: weight compared with the largest of the same child."


def _found(network) -> list[str]:
    n = network.n_features
    found = [
        f"{count(network.n_latents, 'latent')}; "
        f"{count(int(network.adjacency[:n, :n].sum()), 'edge')} between "
        f"{count(n, 'feature')}; link {network.link}, noise {network.noise}."
    ]
    alone = ~(network.adjacency.any(axis=0) | network.adjacency.any(axis=1))
    if alone.any():
        found.append(f"{count(int(alone.sum()), 'node')} without any edge.")
    bent = bent_columns(network.margins)
    if bent:
        found.append(
            f"{count(len(bent), 'column')} not normal: the network describes their "
            "normal scores, and so do weights and strengths."
        )
    return found


def _latents(network, latents, names, strengths) -> list[Section]:
    n = network.n_features
    rows = []
    for k, name in enumerate(latents):
        children = np.flatnonzero(network.adjacency[n + k, :n])
        rows.append(
            (
                label(name),
                number(network.noise_variance[n + k]),
                leading(names[children], strengths[n + k, children]),
            )
        )
    lines = [_meaning(network).replace("strength:", "Beside each feature:")]
    return latents_section(("latent", "variance", "leading features"), rows, lines)


def _cautions(network) -> list[str]:
    cautions = []
    adjacency = network.adjacency
    n_edges = int(adjacency.sum())
    n_open = 0
    # Latents make more graphs equivalent than the rules for observed nodes know.
    if network.n_latents == 0 and network.is_jointly_gaussian and n_edges:
        both = (
            equivalence_class(adjacency) if network.n_nodes <= MOST_NODES else adjacency
        )
        n_open = int((both.T & adjacency).sum())
    if n_open:
        cautions.append(
            f"Rows cannot tell the direction of {n_open} of the {n_edges} edges: "
            "graphs with others fit as well."
        )
    if n_edges:
        cautions.append(
            "Edges are estimates: edge_confidence(X) says how sure they are."
        )
    if n_edges:
        cautions.append(
            "Arrows are causes only if no common cause of the features is missing."
        )
    if network.n_latents:
        cautions.append("The sign and the scale of a latent are conventions.")
    return cautions
