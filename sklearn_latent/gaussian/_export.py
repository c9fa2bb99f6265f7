"""Gaussian networks for networkx and pgmpy."""

from __future__ import annotations

import numpy as np

from .._core.warn import warn
from ..exceptions import LatentWarning


def to_networkx(network, names):
    """Network as a networkx graph whose nodes have these names."""
    import networkx as nx

    graph = nx.DiGraph(family="gaussian", edge_attributes="weight strength")
    has_parents = network.adjacency.any(axis=0)
    for node, name in enumerate(names):
        attributes = {
            "kind": "feature" if node < network.n_features else "latent",
            "intercept": float(network.intercept[node]),
            "noise_variance": float(network.noise_variance[node]),
        }
        if network.margins is not None and node < network.n_features:
            attributes["margin"] = network.margins[node].name
        if network.link_parameters is not None and has_parents[node]:
            attributes["link_parameters"] = network.link_parameters[node].tolist()
        for number, own in enumerate(network.classes):
            attributes[f"intercept{number}"] = float(own.intercept[node])
            attributes[f"noise_variance{number}"] = float(own.noise_variance[node])
        graph.add_node(name, **attributes)
    strengths = edge_strengths(network)
    for parent, child in np.argwhere(network.adjacency).tolist():
        graph.add_edge(
            names[parent],
            names[child],
            weight=float(network.weights[parent, child]),
            strength=float(strengths[parent, child]),
            **{
                f"weight{number}": float(own.weights[parent, child])
                for number, own in enumerate(network.classes)
            },
        )
    if network.classes:
        _add_class(graph, network, names)
    return graph


def _add_class(graph, network, names) -> None:
    """Add the class above all nodes; its strength is the share that it explains."""
    top = "class"
    while top in names:
        top += "_"
    weights = {f"weight{c}": w for c, w in enumerate(network.class_weight.tolist())}
    graph.add_node(top, kind="class", n_classes=network.n_classes, **weights)
    moments = [own.joint() for own in network.classes]
    means = np.array([mean for mean, _ in moments])
    within = network.class_weight @ [spread.diagonal() for _, spread in moments]
    between = network.class_weight @ (means - network.class_weight @ means) ** 2
    for name, share in zip(names, between / (within + between), strict=True):
        graph.add_edge(top, name, strength=float(np.sqrt(share)))


def edge_strengths(network) -> np.ndarray:
    """How strong edges are, whatever the units of their nodes.

    In a linear network the strength is the size of the standardised coefficient: by
    how many standard deviations the child moves if the parent moves by one. Other
    networks have no such number in closed form; there it is the size of the weight
    compared with the largest of the same child. Of classes it is the mean.
    """
    if network.classes:
        each = [edge_strengths(own) for own in network.classes]
        return np.tensordot(network.class_weight, each, 1)
    size = np.abs(network.weights)
    if network.is_jointly_gaussian:
        deviation = np.sqrt(np.maximum(network.joint()[1].diagonal(), 1e-300))
        return np.minimum(size * deviation[:, np.newaxis] / deviation, 1.0)
    return size / np.maximum(size.max(axis=0, initial=0.0), 1e-300)


def to_pgmpy(network, names):
    """Linear network as pgmpy's, whose nodes have these names."""
    if network.classes:
        raise ValueError(
            "to_pgmpy needs one class, because pgmpy mixes no continuous networks, got "
            f"{network.n_classes}; export network.classes one by one, or fit with "
            "n_classes=1."
        )
    if not network.is_jointly_gaussian:
        raise ValueError(
            "to_pgmpy needs link='linear' and noise='additive', because pgmpy has no "
            f"other continuous network; got link={network.link!r} and "
            f"noise={network.noise!r}."
        )
    if network.margins is not None:
        warn(
            "pgmpy has no margins: the exported network describes the normal scores of "
            "the columns, not their values; network_.margins has what is lost.",
            LatentWarning,
        )
    # Importing pgmpy takes seconds, so only those who ask for it pay.
    from pgmpy.factors.continuous import LinearGaussianCPD
    from pgmpy.models import LinearGaussianBayesianNetwork

    model = LinearGaussianBayesianNetwork()
    model.add_nodes_from(names)
    model.latents = set(names[network.n_features :])
    model.add_edges_from(
        [(names[i], names[j]) for i, j in np.argwhere(network.adjacency).tolist()]
    )
    for node in range(network.n_nodes):
        parents = np.flatnonzero(network.adjacency[:, node]).tolist()
        model.add_cpds(
            LinearGaussianCPD(
                names[node],
                [network.intercept[node], *network.weights[parents, node]],
                float(np.sqrt(network.noise_variance[node])),
                [names[parent] for parent in parents],
            )
        )
    return model
