"""Latent dynamic Bayesian networks for other libraries."""

from __future__ import annotations

import numpy as np
from scipy.stats import entropy

from .._answers.protocol import GraphParts, tabular_cpd
from .._core.warn import warn
from ..exceptions import LatentWarning
from ._tables import family_of, slice_order


def graph_of(network, latents, features, *, support=None) -> GraphParts:
    """Two slices, or one without time, whose nodes are plain names.

    support: shares of local graphs behind edges, if known
    """
    slices = (0, 1) if network.has_time else (0,)

    def node(name, t):
        return (name, t) if network.has_time else name

    nodes = []
    for t in slices:
        for name, size in zip(latents, network.cardinality.tolist(), strict=True):
            own = {"kind": "latent", "slice": t, "name": name, "cardinality": size}
            nodes.append((node(name, t), own))
        for name in features:
            nodes.append((node(name, t), {"kind": "feature", "slice": t, "name": name}))
    graph, strength = network.directed_graph, _strengths(network)
    undirected = network.graph.intra & network.graph.intra.T
    steps = [
        step
        for t in slices
        for step in (
            ("measurement", "structure", graph.structure, features, (t, t)),
            ("intra", "intra", graph.intra, latents, (t, t)),
        )
    ]
    steps.append(("inter", "inter", graph.inter, latents, (0, 1)))
    edges = []
    for kind, matrix, found, children, (before, after) in steps:
        shares = getattr(support, matrix, np.full(found.shape, np.nan))
        for i, j in np.argwhere(found).tolist():
            attributes = {
                "kind": kind,
                "directed": kind != "intra" or not undirected[i, j],
                "support": float(shares[i, j]),
                "strength": strength[kind][i, j],
            }
            ends = node(latents[i], before), node(children[j], after)
            edges.append((*ends, attributes))
    columns = "kind directed support strength"
    return GraphParts("temporal", columns, nodes, edges, note=_note(network))


def pgmpy_of(network, latents, features):
    """Two slices; undirected edges are oriented as in `directed_graph`."""
    # Importing pgmpy takes seconds, so only those who ask for it pay.
    from pgmpy.models import DynamicBayesianNetwork

    graph = network.directed_graph
    model = DynamicBayesianNetwork()
    model.add_nodes_from([*latents, *features])
    tables = []
    for j, name in enumerate(latents):
        for t, table in enumerate((network.start[j], network.transition[j])):
            *parents, _ = family_of(graph, j, later=t > 0)
            nodes = [(latents[i], t if now else 0) for i, now in parents]
            # pgmpy repeats the edges of the first slice in the second.
            model.add_edges_from([(n, (name, t)) for n in nodes if n[1] == 0])
            tables.append(((name, t), table, nodes))
    shares = _pgmpy_shares(network, features)
    for j, name, table in zip(network._parents, features, shares, strict=True):
        if j >= 0:
            model.add_edge((latents[j], 0), (name, 0))
        for t in (0, 1):
            nodes = [(latents[j], t)] if j >= 0 else []
            tables.append(((name, t), table if nodes else table[0], nodes))
    known = set(model.nodes())
    # pgmpy has nodes without edges in the first slice only.
    model.add_cpds(*(tabular_cpd(*own) for own in tables if own[0] in known))
    return model


def _pgmpy_shares(network, features) -> list[np.ndarray]:
    """P(category | state) of each feature, as far as pgmpy's networks can say it."""
    kinds = list(zip(features, network.emissions, strict=True))
    numeric = [name for name, emission in kinds if emission.is_numeric]
    if numeric:
        raise ValueError(
            "A discrete network of pgmpy holds features of categories alone, got "
            f"numbers in {', '.join(numeric)}."
        )
    memory = [name for name, emission in kinds if emission.has_memory]
    if memory:
        warn(
            "The exported network leaves out that features depend on their own "
            f"previous values: {', '.join(memory)}. Their tables are those of a "
            "typical slice.",
            LatentWarning,
        )
    return [emission.typical for emission in network.emissions]


def _note(network) -> str:
    """What to say of epochs, of which the last is exported."""
    points = network.change_points.tolist()
    if not points:
        return ""
    return f"last of {len(points) + 1} epochs, since slice {points[-1]}"


def _strengths(network) -> dict:
    """Normalised mutual information of the two ends of every edge.

    Distributions of single latents are those of a slice long after the start, with
    parents taken as independent.
    """
    graph = network.directed_graph
    marginal = _settled_marginals(network)
    strength = {
        "measurement": np.zeros(graph.structure.shape),
        "intra": np.zeros(graph.intra.shape),
        "inter": np.zeros(graph.inter.shape),
    }
    for f, j in enumerate(network._parents):
        if j >= 0:
            joint = marginal[j][:, None] * network.emissions[f].typical
            strength["measurement"][j, f] = _normalized_information(joint)
    for j in range(network.n_latents):
        *parents, _ = family_of(graph, j, later=True)
        joint = network.transition[j]
        for axis, (i, _) in enumerate(parents):
            shape = [1] * joint.ndim
            shape[axis] = -1
            joint = joint * marginal[i].reshape(shape)
        for axis, (i, now) in enumerate(parents):
            others = tuple(a for a in range(len(parents)) if a != axis)
            information = _normalized_information(joint.sum(axis=others))
            strength["intra" if now else "inter"][i, j] = information
    return strength


def _settled_marginals(network) -> list[np.ndarray]:
    """Distribution of each latent 50 slices after the start."""
    graph = network.directed_graph
    marginal: list = [None] * network.n_latents
    for t in range(50):
        before = list(marginal)
        for j in slice_order(graph):
            table = network.transition[j] if t else network.start[j]
            *parents, _ = family_of(graph, j, later=t > 0)
            for i, now in parents:
                own = marginal[i] if now else before[i]
                table = np.tensordot(own, table, axes=(0, 0))
            # Rounding errors of several parents would multiply from step to step.
            marginal[j] = table / table.sum()
    return marginal


def _normalized_information(joint: np.ndarray) -> float:
    """Mutual information over the smaller entropy, in [0, 1]."""
    rows, columns = entropy(joint.sum(axis=1)), entropy(joint.sum(axis=0))
    information = rows + columns - entropy(joint, axis=None)
    smaller = min(rows, columns)
    return float(np.clip(information / smaller, 0.0, 1.0)) if smaller > 1e-9 else 0.0
