"""Fitted models for other libraries: networkx graphs, pgmpy networks, pandas tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ._validation import check_names, shown

__all__ = ["edges_to_frame", "noisy_or_to_networkx", "noisy_or_to_pgmpy"]

# The table of a feature with k parents has 2^(k + 1) cells: 1 MB at 16 parents.
MAX_PGMPY_PARENTS = 16

# Edge attributes by model family, so that a graph without edges still makes a table
# with the usual columns.
EDGE_ATTRIBUTES = {
    "noisy-or": ("failure", "strength"),
    "gaussian": ("weight", "strength"),
    "temporal": ("kind", "directed", "support", "strength"),
}


def noisy_or_to_networkx(network, latent_names=None, feature_names=None):
    """Turn a noisy-or network into a networkx graph.

    Parameters
    ----------
    network : NoisyOrNetwork
        The network.

    latent_names : sequence of str or None, default=None
        One name per latent; None stands for latent0, latent1, ... A latent that
        bears the name of a feature gets underscores at its end until the name is
        free.

    feature_names : sequence of str or None, default=None
        One name per feature; None stands for x0, x1, ...

    Returns
    -------
    graph : networkx.DiGraph
        Latents, then features, in order. Latents have the node attributes
        ``kind="latent"`` and ``prior``, features ``kind="feature"`` and ``leak``.
        Each edge has ``failure`` and ``strength = 1 - failure``.

    Examples
    --------
    >>> from sklearn_latent.datasets import make_noisy_or
    >>> from sklearn_latent.export import noisy_or_to_networkx
    >>> network = make_noisy_or(n_samples=1, random_state=0).network
    >>> graph = noisy_or_to_networkx(network, ["flu", "cold"])
    >>> list(graph.successors("flu"))
    ['x0', 'x1', 'x2']
    >>> graph.nodes["x0"]
    {'kind': 'feature', 'leak': 0.01}
    """
    import networkx as nx

    latents, features = _node_names(network, latent_names, feature_names)
    graph = nx.DiGraph(family="noisy-or")
    for name, prior in zip(latents, network.prior.tolist(), strict=True):
        graph.add_node(name, kind="latent", prior=prior)
    for name, leak in zip(features, network.leak.tolist(), strict=True):
        graph.add_node(name, kind="feature", leak=leak)
    rows, columns = np.nonzero(network.structure)
    failures = network.failure[rows, columns].tolist()
    for i, j, failure in zip(rows.tolist(), columns.tolist(), failures, strict=True):
        graph.add_edge(latents[i], features[j], failure=failure, strength=1 - failure)
    return graph


def noisy_or_to_pgmpy(network, latent_names=None, feature_names=None):
    """Turn a noisy-or network into a pgmpy Bayesian network.

    Parameters
    ----------
    network : NoisyOrNetwork
        The network; no feature may have more than 16 parents, because pgmpy stores
        one table column for every configuration of the parents.

    latent_names : sequence of str or None, default=None
        As in `noisy_or_to_networkx`.

    feature_names : sequence of str or None, default=None
        As in `noisy_or_to_networkx`.

    Returns
    -------
    model : pgmpy.models.DiscreteBayesianNetwork
        All variables have the states 0 (off) and 1 (on). The leak is part of a
        feature's table, so there is no extra node for it.

    Examples
    --------
    >>> from sklearn_latent.datasets import make_noisy_or
    >>> from sklearn_latent.export import noisy_or_to_pgmpy
    >>> network = make_noisy_or(n_samples=1, random_state=0).network
    >>> noisy_or_to_pgmpy(network).check_model()
    True
    """
    latents, features = _node_names(network, latent_names, feature_names)
    structure = np.asarray(network.structure)
    n_parents = structure.sum(axis=0)
    if np.any(n_parents > MAX_PGMPY_PARENTS):
        widest = int(np.argmax(n_parents))
        raise ValueError(
            f"network must have at most {MAX_PGMPY_PARENTS} parents per feature to be "
            "written as pgmpy tables, which hold 2^parents columns; "
            f"{features[widest]!r} has {n_parents[widest]} parents."
        )
    # Importing pgmpy takes seconds, so only those who ask for it pay.
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork()
    model.add_nodes_from([*latents, *features])
    for name, prior in zip(latents, network.prior, strict=True):
        model.add_cpds(TabularCPD(name, 2, [[1 - prior], [prior]]))
    for j, name in enumerate(features):
        parents = np.flatnonzero(structure[:, j])
        evidence = [latents[i] for i in parents]
        model.add_edges_from([(parent, name) for parent in evidence])
        off = _off_table(network.failure[parents, j], network.leak[j])
        table = np.stack([off, 1 - off])
        model.add_cpds(
            TabularCPD(name, 2, table, evidence, [2] * len(evidence))
            if evidence
            else TabularCPD(name, 2, table)
        )
    return model


def edges_to_frame(graph):
    """Table of the edges of a graph.

    Parameters
    ----------
    graph : networkx.DiGraph
        A graph as the estimators' ``to_networkx`` returns it.

    Returns
    -------
    frame : pandas.DataFrame
        One row per edge, in the order of the graph: ``parent``, ``child``, the
        parent's ``prior`` where nodes have one, then the attributes of the edge.

    Examples
    --------
    >>> import networkx as nx
    >>> from sklearn_latent.export import edges_to_frame
    >>> graph = nx.DiGraph()
    >>> graph.add_edge("flu", "fever", strength=0.75)
    >>> edges_to_frame(graph)
      parent  child  strength
    0    flu  fever      0.75
    """
    import networkx as nx
    import pandas as pd

    if not isinstance(graph, nx.Graph):
        raise TypeError(f"graph must be a networkx graph, got {shown(graph)}.")
    edges = list(graph.edges(data=True))
    columns = {
        "parent": [parent for parent, _, _ in edges],
        "child": [child for _, child, _ in edges],
    }
    priors = dict(graph.nodes(data="prior"))
    if any(prior is not None for prior in priors.values()):
        columns["prior"] = [priors[parent] for parent, _, _ in edges]
    usual = EDGE_ATTRIBUTES.get(graph.graph.get("family"), ())
    seen = (name for _, _, attributes in edges for name in attributes)
    for name in dict.fromkeys([*usual, *seen]):
        columns[name] = [attributes.get(name) for _, _, attributes in edges]
    return pd.DataFrame(columns)


def _off_table(failure: np.ndarray, leak: float) -> np.ndarray:
    """P(feature off | parents) for all configurations; the last parent runs fastest."""
    off = np.array([1 - leak])
    for factor in failure:
        off = np.multiply.outer(off, [1.0, factor]).ravel()
    return off


def _node_names(network, latent_names, feature_names) -> tuple[list, list]:
    """Names of all nodes, unique in the whole graph."""
    from .noisy_or import NoisyOrNetwork  # which imports this module

    if not isinstance(network, NoisyOrNetwork):
        raise TypeError(f"network must be a NoisyOrNetwork, got {shown(network)}.")
    features = _check_names(feature_names, "feature_names", network.n_features, "x")
    latents = _check_names(latent_names, "latent_names", network.n_latents, "latent")
    # A table that another latent model has transformed has columns named latent0,
    # latent1, ... That is no mistake of the user's, so the latents give way.
    taken = set(features) | set(latents)
    for i, name in enumerate(latents):
        if name in features:
            while name in taken:
                name = f"{name}_"
            taken.add(name)
            latents[i] = name
    return latents, features


def _check_names(names: Sequence | None, argument: str, n: int, prefix: str) -> list:
    """Validate names, or make default ones."""
    if names is None:
        return [f"{prefix}{i}" for i in range(n)]
    names = check_names(argument, names, n)
    if len(set(names)) != n:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{argument} must hold no name twice, got {twice!r} twice.")
    return names
