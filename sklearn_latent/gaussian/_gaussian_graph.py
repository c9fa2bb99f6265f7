"""Gaussian networks for networkx and pgmpy."""

from __future__ import annotations

import numpy as np

from .._answers.protocol import GraphParts, by_class
from .._core.warn import warn
from ..exceptions import LatentWarning


def graph_of(network, latents, features) -> GraphParts:
    """Nodes and edges; classes are above all nodes."""
    names, strengths = [*features, *latents], edge_strengths(network)
    edges = [
        (
            names[i],
            names[j],
            {
                "weight": float(network.weights[i, j]),
                "strength": float(strengths[i, j]),
                **by_class("weight", [own.weights[i, j] for own in network.classes]),
            },
        )
        for i, j in np.argwhere(network.adjacency).tolist()
    ]
    nodes = [(name, _attributes(network, node)) for node, name in enumerate(names)]
    classes = (network.class_weight, _shares(network, names))
    above = classes if network.classes else None
    return GraphParts("gaussian", "weight strength", nodes, edges, above)


def _attributes(network, node: int) -> dict:
    """Parameters of a node."""
    is_feature = node < network.n_features
    attributes: dict = {"kind": "feature" if is_feature else "latent"}
    for name in ("intercept", "noise_variance"):
        attributes[name] = float(getattr(network, name)[node])
        own = [getattr(each, name)[node] for each in network.classes]
        attributes |= by_class(name, own)
    if network.margins is not None and is_feature:
        attributes["margin"] = network.margins[node].name
    if network.link_parameters is not None and network.adjacency[:, node].any():
        attributes["link_parameters"] = network.link_parameters[node].tolist()
    return attributes


def _shares(network, names) -> dict:
    """Shares of the variances of nodes that the class explains, as correlations."""
    if not network.classes:
        return {}
    moments = [own.joint() for own in network.classes]
    means = np.array([mean for mean, _ in moments])
    within = network.class_weight @ [spread.diagonal() for _, spread in moments]
    between = network.class_weight @ (means - network.class_weight @ means) ** 2
    return dict(zip(names, np.sqrt(between / (within + between)), strict=True))


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


def pgmpy_of(network, latents, features):
    """Linear network as pgmpy's."""
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

    names = [*features, *latents]
    model = LinearGaussianBayesianNetwork()
    model.add_nodes_from(names)
    model.latents = set(latents)
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
