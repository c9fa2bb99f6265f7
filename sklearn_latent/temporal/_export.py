"""Latent dynamic Bayesian networks for other libraries."""

from __future__ import annotations

import numpy as np

from ..export import node_names
from ._tables import slice_order


def dbn_to_networkx(network, latent_names=None, feature_names=None, *, support=None):
    """Turn a latent dynamic Bayesian network into a two-slice networkx graph."""
    import networkx as nx

    latents, features = node_names(
        latent_names, network.n_latents, feature_names, network.n_observed
    )
    graph = nx.DiGraph(
        family="temporal",
        edge_attributes="kind directed support strength",
    )
    for t in (0, 1):
        for name, cardinality in zip(latents, network.cardinality, strict=True):
            graph.add_node(
                (name, t),
                kind="latent",
                slice=t,
                name=name,
                cardinality=int(cardinality),
            )
        for name in features:
            graph.add_node((name, t), kind="feature", slice=t, name=name)
    strength = _strengths(network)

    def add_edges(kind, edges, children, slices, *, undirected=None):
        for i, j in zip(*np.nonzero(edges), strict=True):
            graph.add_edge(
                (latents[i], slices[0]),
                (children[j], slices[1]),
                kind=kind,
                directed=undirected is None or not undirected[j, i],
                support=_share(support, kind, i, j),
                strength=strength[kind][i, j],
            )

    for t in (0, 1):
        add_edges("measurement", network.graph.structure, features, (t, t))
        add_edges(
            "intra",
            network.directed_graph.intra,
            latents,
            (t, t),
            undirected=network.graph.intra,
        )
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
    graph, cards = network.directed_graph, network.cardinality
    model = DynamicBayesianNetwork()
    model.add_nodes_from([*latents, *features])
    tables = []
    for j, name in enumerate(latents):
        within = [(latents[i], 0) for i in graph.parents_within(j)]
        later = [(latents[i], 0) for i in graph.parents_before(j)]
        later += [(latents[i], 1) for i in graph.parents_within(j)]
        model.add_edges_from([(parent, (name, 0)) for parent in within])
        model.add_edges_from(
            [((latents[i], 0), (name, 1)) for i in graph.parents_before(j)]
        )
        widths = [int(cards[i]) for i in graph.parents_within(j)]
        tables.append(((name, 0), network.start[j], within, widths))
        widths = [int(cards[i]) for i in graph.parents_before(j)] + widths
        tables.append(((name, 1), network.transition[j], later, widths))
    for f, (j, name) in enumerate(zip(network._parents, features, strict=True)):
        for t in (0, 1):
            table = network.emission[f]
            if j < 0:
                tables.append(((name, t), table[0], [], []))
                continue
            parent = (latents[j], t)
            if t == 0:
                model.add_edge(parent, (name, 0))
            tables.append(((name, t), table, [parent], [int(cards[j])]))
    known = set(model.nodes())
    for node, table, parents, widths in tables:
        if node not in known:  # pgmpy has nodes without edges in the first slice only
            continue
        n_values = table.shape[-1]
        columns = table.reshape(-1, n_values).T
        evidence = (parents, widths) if parents else ()
        model.add_cpds(TabularCPD(node, n_values, columns, *evidence))
    return model


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
            joint = marginal[j][:, None] * network.emission[f]
            strength["measurement"][j, f] = _normalized_information(joint)
    for j in range(network.n_latents):
        parents = [("inter", i) for i in graph.parents_before(j)]
        parents += [("intra", i) for i in graph.parents_within(j)]
        joint = network.transition[j]
        for axis, (_, i) in enumerate(parents):
            shape = [1] * joint.ndim
            shape[axis] = -1
            joint = joint * marginal[i].reshape(shape)
        for axis, (kind, i) in enumerate(parents):
            others = tuple(a for a in range(len(parents)) if a != axis)
            strength[kind][i, j] = _normalized_information(joint.sum(axis=others))
    return strength


def _settled_marginals(network, n_steps: int = 50) -> list[np.ndarray]:
    """Distribution of each latent some slices after the start."""
    graph = network.directed_graph
    marginal: list = [None] * network.n_latents
    for t in range(n_steps):
        before = list(marginal)
        for j in slice_order(graph):
            table = network.transition[j] if t else network.start[j]
            parents = [before[i] for i in graph.parents_before(j)] if t else []
            parents += [marginal[i] for i in graph.parents_within(j)]
            for distribution in parents:
                table = np.tensordot(distribution, table, axes=(0, 0))
            # Rounding errors of several parents would multiply from step to step.
            marginal[j] = table / table.sum()
    return marginal


def _normalized_information(joint: np.ndarray) -> float:
    """Mutual information over the smaller entropy, in [0, 1]."""
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    expected = np.outer(rows, columns)
    known = joint > 0
    information = (joint[known] * np.log(joint[known] / expected[known])).sum()
    entropy = min(_entropy(rows), _entropy(columns))
    return float(np.clip(information / entropy, 0.0, 1.0)) if entropy > 1e-9 else 0.0


def _entropy(distribution: np.ndarray) -> float:
    known = distribution[distribution > 0]
    return float(-(known * np.log(known)).sum())
