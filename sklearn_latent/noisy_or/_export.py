"""Noisy-or networks for networkx and pgmpy, and tables of their latents."""

from __future__ import annotations

import numpy as np

from ..export import node_names

# The table of a feature with k parents has 2^(k + 1) cells: 1 MB at 16 parents.
MAX_PGMPY_PARENTS = 16


def noisy_or_to_networkx(network, latent_names=None, feature_names=None):
    """Turn a noisy-or network into a networkx graph."""
    import networkx as nx

    latents, features = node_names(
        latent_names, network.n_latents, feature_names, network.n_features
    )
    graph = nx.DiGraph(family="noisy-or", edge_attributes="failure strength")
    if network.n_classes > 1:
        _add_class(graph, network, latents, features)
    for name, prior in zip(latents, network.prior.tolist(), strict=True):
        graph.add_node(name, kind="latent", prior=prior)
    signs = network.polarity.tolist()
    for name, leak, sign in zip(features, network.leak.tolist(), signs, strict=True):
        graph.add_node(name, kind="feature", leak=leak)
        if sign < 0:
            graph.nodes[name]["polarity"] = sign
    rows, columns = np.nonzero(network.structure)
    failures = network.failure[rows, columns].tolist()
    for i, j, failure in zip(rows.tolist(), columns.tolist(), failures, strict=True):
        graph.add_edge(latents[i], features[j], failure=failure, strength=1 - failure)
        if min(signs) < 0:
            graph.edges[latents[i], features[j]]["polarity"] = signs[j]
    return graph


def _add_class(graph, network, latents, features) -> None:
    """Add the class above the latents; attributes are numbers, as GraphML needs."""
    top = _class_name(latents, features)
    weights = {f"weight{c}": w for c, w in enumerate(network.class_weight.tolist())}
    graph.add_node(top, kind="class", n_classes=network.n_classes, **weights)
    for name, priors in zip(latents, network.class_prior.T.tolist(), strict=True):
        graph.add_node(name, **{f"prior{c}": p for c, p in enumerate(priors)})
        graph.add_edge(top, name, strength=max(priors) - min(priors))


def _class_name(latents, features) -> str:
    """Name of the node of the class, unless another node has it."""
    name, taken = "class", {*latents, *features}
    while name in taken:
        name += "_"
    return name


def noisy_or_to_pgmpy(network, latent_names=None, feature_names=None):
    """Turn a noisy-or network into a pgmpy Bayesian network."""
    latents, features = node_names(
        latent_names, network.n_latents, feature_names, network.n_features
    )
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
    n_classes, given = network.n_classes, {}
    if n_classes > 1:
        top = _class_name(latents, features)
        model.add_node(top)
        model.add_edges_from([(top, name) for name in latents])
        model.add_cpds(TabularCPD(top, n_classes, network.class_weight[:, np.newaxis]))
        given = {"evidence": [top], "evidence_card": [n_classes]}
    for name, prior in zip(latents, network.class_prior.T, strict=True):
        model.add_cpds(TabularCPD(name, 2, np.stack([1 - prior, prior]), **given))
    for j, name in enumerate(features):
        parents = np.flatnonzero(structure[:, j])
        evidence = [latents[i] for i in parents]
        model.add_edges_from([(parent, name) for parent in evidence])
        off = _off_table(network.failure[parents, j], network.leak[j])
        table = np.stack([off, 1 - off])[:: network.polarity[j]]
        model.add_cpds(
            TabularCPD(name, 2, table, evidence, [2] * len(evidence))
            if evidence
            else TabularCPD(name, 2, table)
        )
    return model


def _off_table(failure: np.ndarray, leak: float) -> np.ndarray:
    """P(feature off | parents) for all configurations; the last parent runs fastest."""
    off = np.array([1 - leak])
    for factor in failure:
        off = np.multiply.outer(off, [1.0, factor]).ravel()
    return off


def latents_to_frame(learner, feature_names):
    """Table of the latents that a `QuartetStructureLearner` found."""
    import pandas as pd

    pairs = list(zip(learner.failure_, learner.structure_, strict=True))
    quartets = [quartet[quartet >= 0] for quartet in learner.quartets_]
    return pd.DataFrame(
        {
            "prior": learner.prior_,
            "prior_stderr": learner.prior_stderr_,
            "n_children": learner.structure_.sum(axis=1),
            "mean_failure": [float(failure[edges].mean()) for failure, edges in pairs],
            "depth": learner.depth_,
            "quartet": [tuple(feature_names[places]) for places in quartets],
            "children": [tuple(feature_names[edges]) for _, edges in pairs],
        },
        index=pd.Index(learner.get_feature_names_out(), name="latent"),
    )
