"""What the summary of a continuous network says."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._answers.summary import Parts, Section, edges_section, latents_section, leading
from .._core.graphs import equivalence_class
from .._core.text import count, label, number
from ._export import edge_strengths
from ._table_margins import bent_columns, estimated

# Nodes beyond which the equivalence class is not computed.
MOST_NODES = 500
# A strength from which tables show 1.
FULL = 0.9995


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
    cautions = _cautions(network) + _suspicious(network, np.abs(strengths))
    return Parts(_found(network), sections, cautions)


def describe_edges(network) -> str:
    """What a network without latents is."""
    n_edges = int(network.adjacency.sum())
    edges = f"{count(n_edges, 'edge')} between the features"
    if network.classes:
        return f"has {count(network.n_classes, 'class', 'classes')} of rows and {edges}"
    return f"has {edges}" if n_edges else "treats the features as independent"


def _meaning(network) -> str:
    if network.is_jointly_gaussian or network.classes:
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
