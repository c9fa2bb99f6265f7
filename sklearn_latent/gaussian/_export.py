"""Gaussian networks for networkx and pgmpy."""

from __future__ import annotations

import numpy as np

__all__ = ["edge_strengths", "gaussian_to_networkx", "gaussian_to_pgmpy"]


def gaussian_to_networkx(network):
    """Turn a Gaussian network into a networkx graph.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.gaussian import GaussianNetwork
    >>> from sklearn_latent.gaussian._export import gaussian_to_networkx
    >>> weights = np.array([[0.0, 2.0], [0.0, 0.0]])
    >>> network = GaussianNetwork(weights != 0, weights, [1.0, 0.0], [1.0, 0.5])
    >>> gaussian_to_networkx(network).edges["x0", "x1"]  # doctest: +ELLIPSIS
    {'weight': 2.0, 'strength': 0.94...}
    """
    import networkx as nx

    graph = nx.DiGraph(family="gaussian", edge_attributes="weight strength")
    has_parents = network.adjacency.any(axis=0)
    for node, name in enumerate(network.node_names):
        attributes = {
            "kind": "feature" if node < network.n_features else "latent",
            "intercept": float(network.intercept[node]),
            "noise_variance": float(network.noise_variance[node]),
        }
        if network.link_parameters is not None and has_parents[node]:
            attributes["link_parameters"] = network.link_parameters[node].tolist()
        graph.add_node(name, **attributes)
    strengths = edge_strengths(network)
    for parent, child in np.argwhere(network.adjacency).tolist():
        graph.add_edge(
            network.node_names[parent],
            network.node_names[child],
            weight=float(network.weights[parent, child]),
            strength=float(strengths[parent, child]),
        )
    return graph


def edge_strengths(network) -> np.ndarray:
    """How strong edges are, whatever the units of their nodes.

    In a linear network the strength is the size of the standardised coefficient: by
    how many standard deviations the child moves if the parent moves by one. Other
    networks have no such number in closed form; there it is the size of the weight
    compared with the largest of the same child.

    Returns strengths (n_nodes, n_nodes).
    """
    size = np.abs(network.weights)
    if network.is_jointly_gaussian:
        deviation = np.sqrt(np.maximum(network.joint()[1].diagonal(), 1e-300))
        return np.minimum(size * deviation[:, np.newaxis] / deviation, 1.0)
    return size / np.maximum(size.max(axis=0, initial=0.0), 1e-300)


def gaussian_to_pgmpy(network):
    """Turn a linear Gaussian network into pgmpy's."""
    if not network.is_jointly_gaussian:
        raise ValueError(
            "to_pgmpy needs link='linear' and noise='additive', because pgmpy has no "
            f"other continuous network; got link={network.link!r} and "
            f"noise={network.noise!r}."
        )
    # Importing pgmpy takes seconds, so only those who ask for it pay.
    from pgmpy.factors.continuous import LinearGaussianCPD
    from pgmpy.models import LinearGaussianBayesianNetwork

    names = network.node_names
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
