"""Layout of acyclic graphs in layers, with few edge crossings.

The steps of Sugiyama, Tagawa and Toda (1981): layers by the longest path, invisible
nodes where an edge passes a layer, orders by barycentres, then places that pull
neighbours together without overlap.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from sklearn.isotonic import isotonic_regression

from ._layout import N_SWEEPS, count_crossings


class LayeredLayout(NamedTuple):
    """Places of the nodes of an acyclic graph.

    layer: 0 is the top; every edge runs downwards, (n_nodes,)
    x: places, in the unit of the widths, (n_nodes,)
    routes: by edge ``(parent, child)`` the points ``(x, layer)`` of its route
    """

    layer: np.ndarray
    x: np.ndarray
    routes: dict


def layered_layout(adjacency: np.ndarray, width: np.ndarray) -> LayeredLayout:
    """Place nodes in layers; adjacency (n_nodes, n_nodes), width (n_nodes,)."""
    n = len(adjacency)
    layer = assign_layers(adjacency)
    if n == 0:
        return LayeredLayout(layer, width, {})
    edges = [tuple(edge) for edge in np.argwhere(adjacency).tolist()]
    # Nodes on the way of long edges get numbers from n on, and little room.
    layers = [np.flatnonzero(layer == k).tolist() for k in range(layer.max() + 1)]
    ways: dict = {}
    n_all = n
    for parent, child in edges:
        way = [parent]
        for k in range(layer[parent] + 1, layer[child]):
            layers[k].append(n_all)
            way.append(n_all)
            n_all += 1
        ways[parent, child] = [*way, child]
    steps = [step for way in ways.values() for step in pairwise(way)]
    links = _links(steps, layers, n_all)
    orders = _order(links, layers)
    room = np.full(n_all, 0.25 * width.min())
    room[:n] = width
    pull = np.ones(n_all)
    pull[n:] = 4.0  # long edges are easier to follow if they run straight
    x = _place(links, layers, orders, room, pull)
    routes = {
        edge: np.column_stack([x[way], layer[edge[0]] + np.arange(len(way))])
        for edge, way in ways.items()
    }
    return LayeredLayout(layer, x[:n], routes)


def assign_layers(adjacency: np.ndarray) -> np.ndarray:
    """Layer of each node by the longest path, with short edges where possible."""
    n = len(adjacency)
    layer = np.zeros(n, dtype=np.intp)
    if n == 0:
        return layer
    for _ in range(n):
        # The longest path ends after as many rounds as it has edges.
        above = np.where(adjacency, layer[:, np.newaxis] + 1, 0).max(axis=0)
        if np.array_equal(above, layer):
            break
        layer = above
    else:
        raise ValueError("graph must have no directed cycle, got one.")
    n_parents, n_children = adjacency.sum(axis=0), adjacency.sum(axis=1)
    for node in np.argsort(-layer, kind="stable"):
        # Lower is shorter for a node with more children than parents.
        if n_children[node] > n_parents[node]:
            layer[node] = layer[adjacency[node]].min() - 1
    alone = n_parents + n_children == 0
    if alone.all():
        return np.zeros(n, dtype=np.intp)
    if alone.any():
        layer[alone] = layer[~alone].max() + 1
    return np.unique(layer, return_inverse=True)[1].ravel()


def _links(steps, layers, n_all):
    """Edges between neighbouring layers as matrices, in the first order of nodes."""
    rank = np.empty(n_all, dtype=np.intp)
    depth = np.empty(n_all, dtype=np.intp)
    for k, nodes in enumerate(layers):
        rank[nodes] = np.arange(len(nodes))
        depth[nodes] = k
    links = [np.zeros((len(upper), len(lower))) for upper, lower in pairwise(layers)]
    for upper, lower in steps:
        links[depth[upper]][rank[upper], rank[lower]] = 1.0
    return links


def _sweeps(links):
    """Layers to move, their fixed neighbours and the links; down and up in turns."""
    n = len(links)
    down = [(k, k - 1, links[k - 1].T) for k in range(1, n + 1)]
    up = [(k, k + 1, links[k]) for k in range(n - 1, -1, -1)]
    return [up if sweep % 2 else down for sweep in range(N_SWEEPS)]


def _order(links, layers):
    """Order every layer by the barycentres of its neighbours; the best order wins."""
    orders = [np.arange(len(nodes)) for nodes in layers]
    best, fewest = orders.copy(), _crossings(links, orders)
    for sweep in _sweeps(links):
        for k, fixed, matrix in sweep:
            orders[k] = _sorted_by_neighbours(matrix, orders[fixed], orders[k])
        crossings = _crossings(links, orders)
        if crossings < fewest:
            best, fewest = orders.copy(), crossings
    return best


def _sorted_by_neighbours(matrix, fixed, order):
    """Sort one layer; nodes without neighbours there keep their place."""
    place, own = ((np.argsort(o) + 0.5) / len(o) for o in (fixed, order))
    degree = matrix.sum(axis=1)
    mean = np.where(degree > 0, matrix @ place / np.maximum(degree, 1.0), own)
    return order[np.argsort(mean[order], kind="stable")]


def _crossings(links, orders) -> float:
    """Crossings between all neighbouring layers."""
    return sum(
        count_crossings(matrix[np.ix_(orders[k], orders[k + 1])])
        for k, matrix in enumerate(links)
    )


def _place(links, layers, orders, room, pull):
    """Pull every node to the mean of its neighbours, layer by layer, in order."""
    x = np.empty(len(room))
    ordered = [
        np.asarray(nodes)[order] for nodes, order in zip(layers, orders, strict=True)
    ]
    for nodes in ordered:
        ends = np.cumsum(room[nodes])
        x[nodes] = ends - room[nodes] / 2 - ends[-1] / 2
    for sweep in _sweeps(links):
        for k, fixed, matrix in sweep:
            weights = matrix[orders[k]] * pull[layers[fixed]]
            total = weights.sum(axis=1)
            nodes = ordered[k]
            mean = weights @ x[layers[fixed]] / np.maximum(total, 1.0)
            wanted = np.where(total > 0, mean, x[nodes])
            x[nodes] = _apart(wanted, room[nodes], pull[nodes] * np.maximum(total, 0.1))
    return x


def _apart(wanted, room, weight):
    """Least squares under smallest gaps: isotonic once the gaps are subtracted."""
    offset = np.concatenate([[0.0], np.cumsum((room[1:] + room[:-1]) / 2)])
    return isotonic_regression(wanted - offset, sample_weight=weight) + offset
