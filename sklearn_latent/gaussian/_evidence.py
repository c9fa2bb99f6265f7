"""What the cells of a row tell of the latents of a Gaussian network."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.sparse.csgraph import connected_components

from .._answers.explain import Part
from ._bent_inference import expect
from ._network import GaussianNetwork
from ._table_margins import to_scores


def evidence_parts(network: GaussianNetwork, row, latents) -> Iterator[Part]:
    """Parts of the network that hold some latents, given one row (n_features,).

    Nodes that are not seen depend on each other through edges, and through children
    that they share, of the moral graph; cells next to them tell of all of them.
    """
    n_features = network.n_features
    seen = np.zeros(network.n_nodes, dtype=bool)
    seen[:n_features] = ~np.isnan(row)
    moral = _moral_graph(network.adjacency)
    regions = connected_components(moral, directed=False)[1]
    unseen = moral & ~seen & ~seen[:, np.newaxis]
    groups = connected_components(unseen, directed=False)[1]
    for label in np.unique(groups[n_features:][latents]):
        group = groups == label
        own = np.flatnonzero(group[n_features:])
        cells = np.flatnonzero(seen & np.isin(regions, regions[group]))
        near = np.ones(len(cells), dtype=bool)
        if network.is_jointly_gaussian:
            # Approximations may depend on the others as well.
            near = moral[group].any(axis=0)[cells]
        yield Part(own, cells, near, partial(_means, network, row, cells, own))


def _moral_graph(adjacency) -> np.ndarray:
    """Nodes that are joined by an edge or have a child together."""
    edges = np.asarray(adjacency, dtype=float)
    return (edges + edges.T + edges @ edges.T) > 0


def _means(network, row, cells, own, seen, places) -> np.ndarray:
    """Means of latents, given which cells are seen."""
    rows = np.full((len(seen), network.n_features), np.nan)
    rows[:, cells] = np.where(seen, row[cells], np.nan)
    if network.is_jointly_gaussian:
        return network.posterior(rows)[:, own[places]]
    values = expect(network, to_scores(network.margins, rows)[0])
    return values[:, network.n_features + own[places]]
