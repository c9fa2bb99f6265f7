"""Latent dynamic Bayesian networks for other libraries."""

from __future__ import annotations

import numpy as np
from scipy.stats import entropy

from .._core.warn import warn
from ..exceptions import LatentWarning
from ..export import node_names
from ._tables import family_of, slice_order


def dbn_to_networkx(network, latent_names=None, feature_names=None, *, support=None):
    """Turn a latent dynamic Bayesian network into a networkx graph.

    It has two slices, or one without time, whose nodes are plain names.
    """
    import networkx as nx

    latents, features = node_names(
        latent_names, network.n_latents, feature_names, network.n_observed
    )
    graph = nx.DiGraph(
        family="temporal",
        edge_attributes="kind directed support strength",
        note=_note(network),
    )
    has_time = network.has_time
    slices = (0, 1) if has_time else (0,)

    def node(name, t):
        return (name, t) if has_time else name

    for t in slices:
        for name, cardinality in zip(latents, network.cardinality, strict=True):
            graph.add_node(
                node(name, t),
                kind="latent",
                slice=t,
                name=name,
                cardinality=int(cardinality),
            )
        for name in features:
            graph.add_node(node(name, t), kind="feature", slice=t, name=name)
    strength = _strengths(network)

    def add_edges(kind, edges, children, times):
        for i, j in zip(*np.nonzero(edges), strict=True):
            graph.add_edge(
                node(latents[i], times[0]),
                node(children[j], times[1]),
                kind=kind,
                directed=kind != "intra" or not network.graph.intra[j, i],
                support=_share(support, kind, i, j),
                strength=strength[kind][i, j],
            )

    for t in slices:
        add_edges("measurement", network.graph.structure, features, (t, t))
        add_edges("intra", network.directed_graph.intra, latents, (t, t))
    add_edges("inter", network.graph.inter, latents, (0, 1))
    return graph


def dbn_to_pgmpy(network, latent_names=None, feature_names=None):
    """Turn a latent dynamic Bayesian network into pgmpy's."""
    # Importing pgmpy takes seconds, so only those who ask for it pay.
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DynamicBayesianNetwork

    latents, features = node_names(
        latent_names, network.n_latents, feature_names, network.n_observed
    )
    graph = network.directed_graph
    model = DynamicBayesianNetwork()
    model.add_nodes_from([*latents, *features])
    tables = []
    for j, name in enumerate(latents):
        for t, table in enumerate((network.start[j], network.transition[j])):
            *parents, _ = family_of(graph, j, later=t > 0)
            nodes = [(latents[i], t if now else 0) for i, now in parents]
            # pgmpy repeats the edges of the first slice in the second.
            edges = [(node, (name, t)) for node in nodes if node[1] == 0]
            model.add_edges_from(edges)
            tables.append(((name, t), table, nodes))
    shares = _pgmpy_shares(network, features)
    for j, name, table in zip(network._parents, features, shares, strict=True):
        if j >= 0:
            model.add_edge((latents[j], 0), (name, 0))
        for t in (0, 1):
            nodes = [(latents[j], t)] if j >= 0 else []
            tables.append(((name, t), table if nodes else table[0], nodes))
    known = set(model.nodes())
    for node, table, nodes in tables:
        if node not in known:  # pgmpy has nodes without edges in the first slice only
            continue
        *widths, n_values = table.shape
        columns = table.reshape(-1, n_values).T
        evidence = (nodes, widths) if nodes else ()
        model.add_cpds(TabularCPD(node, n_values, columns, *evidence))
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


def _share(support, kind, i, j) -> float:
    """Share of local graphs behind an edge, NaN if unknown."""
    name = "structure" if kind == "measurement" else kind
    return float("nan") if support is None else float(getattr(support, name)[i, j])


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
