"""Noisy-or networks for networkx and pgmpy, and tables of their latents."""

from __future__ import annotations

import numpy as np

from .._answers.protocol import GraphParts, by_class, class_name, tabular_cpd

# The table of a feature with k parents has 2^(k + 1) cells: 1 MB at 16 parents.
MAX_PGMPY_PARENTS = 16


def graph_of(network, latents, features) -> GraphParts:
    """Nodes and edges; classes are above the latents."""
    signs = network.polarity.tolist()
    has_classes = network.n_classes > 1
    nodes = [
        (name, {"kind": "latent", **by_class("prior", own * has_classes), "prior": p})
        for name, p, own in zip(
            latents, network.prior.tolist(), network.class_prior.T.tolist(), strict=True
        )
    ]
    for name, leak, sign in zip(features, network.leak.tolist(), signs, strict=True):
        turned = {"polarity": sign} if sign < 0 else {}
        nodes.append((name, {"kind": "feature", "leak": leak, **turned}))
    edges = []
    for i, j in np.argwhere(network.structure).tolist():
        failure = float(network.failure[i, j])
        turned = {"polarity": signs[j]} if min(signs) < 0 else {}
        attributes = {"failure": failure, "strength": 1 - failure, **turned}
        edges.append((latents[i], features[j], attributes))
    classes = None
    if has_classes:
        spread = np.ptp(network.class_prior, axis=0)
        classes = network.class_weight, dict(zip(latents, spread, strict=True))
    return GraphParts("noisy-or", "failure strength", nodes, edges, classes)


def pgmpy_of(network, latents, features):
    """Bayesian network of tables; the class, if there are several, is a node too."""
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
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork()
    model.add_nodes_from([*latents, *features])
    above = []
    if network.n_classes > 1:
        top = class_name([*latents, *features])
        above.append(top)
        model.add_node(top)
        model.add_edges_from([(top, name) for name in latents])
        model.add_cpds(tabular_cpd(top, network.class_weight, []))
    for name, prior in zip(latents, network.class_prior.T, strict=True):
        table = np.stack([1 - prior, prior], axis=-1)
        model.add_cpds(tabular_cpd(name, table if above else table[0], above))
    for j, name in enumerate(features):
        places = np.flatnonzero(structure[:, j])
        parents = [latents[i] for i in places]
        model.add_edges_from([(parent, name) for parent in parents])
        off = np.array(1 - network.leak[j])
        for failure in network.failure[places, j]:
            off = np.multiply.outer(off, [1.0, failure])
        table = np.stack([off, 1 - off], axis=-1)[..., :: network.polarity[j]]
        model.add_cpds(tabular_cpd(name, table, parents))
    return model


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
