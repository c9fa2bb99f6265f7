"""Layered layout of graphs: layers found or given, few crossings, no overlaps.

The steps of Sugiyama, Tagawa and Toda (1981): layers by the longest path, invisible
nodes where an edge passes a layer, orders by barycentres, then places that pull
neighbours together.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from sklearn.isotonic import isotonic_regression

# Orders and places have settled after about ten sweeps of graphs of 100 nodes.
N_SWEEPS = 24
# Larger parts start in the order of the nodes; the eigenvectors would take seconds.
MOST_SPECTRAL = 1000


class Layout(NamedTuple):
    """Places of nodes across layers, nodes on the way of long edges included.

    n_nodes: how many are not on the way of an edge; they come first
    layers: nodes of each layer in order
    place, room: of each node
    ways: by edge ``(parent, child)`` the nodes on its way, both ends included
    """

    n_nodes: int
    layers: list[np.ndarray]
    place: np.ndarray
    room: np.ndarray
    ways: dict

    @property
    def span(self) -> float:
        """Size of the layers in which all nodes have these places."""
        ends = self.place + self.room / 2, self.place - self.room / 2
        return float(ends[0].max(initial=0.0) - ends[1].min(initial=0.0))

    def within(self, size: float) -> Layout:
        """Stretch or squeeze places into layers of a size."""
        if not self.n_nodes:
            return self
        middle = (self.place + self.room / 2).max() - self.span / 2
        # Small graphs in wide axes would be torn apart.
        place = size / 2 + min(1.8, size / self.span) * (self.place - middle)
        for nodes in self.layers:
            room = self.room[nodes]
            if room.sum() > size:
                room = np.where(nodes < self.n_nodes, room, 0.0)
            room = room * min(1.0, size / max(room.sum(), 1e-9))
            place[nodes] = _apart(place[nodes], room, size=size)
        return self._replace(place=place)


def find_layers(adjacency: np.ndarray) -> np.ndarray:
    """Layer of each node by the longest path, with short edges where possible."""
    n = len(adjacency)
    layer = np.zeros(n, dtype=np.intp)
    for _ in range(n):
        # The longest path ends after as many rounds as it has edges.
        above = np.where(adjacency, layer[:, np.newaxis] + 1, 0).max(axis=0)
        if np.array_equal(above, layer):
            break
        layer = above
    else:
        if n:
            raise ValueError("graph must have no directed cycle, got one.")
    n_parents, n_children = adjacency.sum(axis=0), adjacency.sum(axis=1)
    for node in np.argsort(-layer, kind="stable"):
        # Lower is shorter for a node with more children than parents.
        if n_children[node] > n_parents[node]:
            layer[node] = layer[adjacency[node]].min() - 1
    alone = n_parents + n_children == 0
    layer[alone] = layer[~alone].max(initial=-1) + 1
    return np.unique(layer, return_inverse=True)[1].ravel()


def layered_layout(adjacency, layer, room) -> Layout:
    """Place nodes that need some room within layers.

    adjacency (n_nodes, n_nodes) bool, layer (n_nodes,), room (n_nodes,). Edges within a
    layer do not count and have no way.
    """
    n = len(layer)
    if not n:
        return Layout(0, [], np.zeros(0), np.zeros(0), {})
    ways, layer = _ways(adjacency, layer)
    steps = [step for way in ways.values() for step in pairwise(way)]
    graph = _Layers.of(np.array(steps, dtype=int).reshape(-1, 2), layer)
    # Nodes on the way of long edges need little room.
    room = np.append(room, np.full(len(layer) - n, min(0.25 * room.min(), 5.0)))
    # Long edges are easier to follow if they run straight.
    pull = np.where(np.arange(len(layer)) < n, 1.0, 4.0)
    return Layout(n, graph.layers, _places(graph, room, pull), room, ways)


def _ways(adjacency, layer) -> tuple[dict, np.ndarray]:
    """Nodes on the way of each edge, with new ones in the layers that it passes."""
    ways: dict = {}
    new: list[int] = []
    for parent, child in np.argwhere(adjacency).tolist():
        step = int(np.sign(layer[child] - layer[parent]))
        if step:
            first = len(layer) + len(new)
            new += range(layer[parent] + step, layer[child], step)
            ways[parent, child] = [parent, *range(first, len(layer) + len(new)), child]
    return ways, np.append(layer, np.array(new, dtype=int))


class _Layers(NamedTuple):
    """Nodes of each layer in order, and the links between neighbouring layers.

    links: by layer, (n_nodes of it, n_nodes of the next), in this order
    """

    layers: list[np.ndarray]
    links: list[np.ndarray]

    @classmethod
    def of(cls, steps, layer) -> _Layers:
        """Order the nodes of all layers so that few links cross."""
        n = len(layer)
        between = sparse.csr_array((np.ones(len(steps)), steps.T), shape=(n, n))
        between = between + between.T
        part = _parts(between)
        layers = [np.flatnonzero(layer == k) for k in range(layer.max() + 1)]
        layers = [nodes[np.argsort(part[nodes], kind="stable")] for nodes in layers]
        orders = [layers]
        # This start halves the crossings of random graphs. The last layer follows.
        sizes = [len(nodes) > 1 for nodes in layers[:-1]]
        first = sizes.index(True) if any(sizes) else 0
        nodes, value = layers[first], _spectral(between, part)
        layers = layers.copy()
        layers[first] = nodes[np.lexsort((value[nodes], part[nodes]))]
        for sweep in sweeps(len(layers)):
            for k, fixed in sweep:
                layers = layers.copy()
                layers[k] = _sorted(between, layers[k], layers[fixed], part)
            orders.append(layers)
        candidates = [cls(order, _links(between, order)) for order in orders]
        return min(candidates, key=lambda one: sum(map(count_crossings, one.links)))


def _links(between, layers) -> list[np.ndarray]:
    return [between[a][:, b].toarray() for a, b in pairwise(layers)]


def sweeps(n_layers: int) -> list[list[tuple[int, int]]]:
    """Layers to move and their fixed neighbours; down and up in turns."""
    down = [(k, k - 1) for k in range(1, n_layers)]
    up = [(k, k + 1) for k in range(n_layers - 2, -1, -1)]
    return [up if sweep % 2 else down for sweep in range(N_SWEEPS)]


def _parts(between) -> np.ndarray:
    """Number of the connected part of each node; nodes without edges come last."""
    part = connected_components(between, directed=False)[1]
    alone = np.bincount(part)[part] == 1
    return np.where(alone, part.max() + 1, part)


def _spectral(between, part) -> np.ndarray:
    """Places on a line at which nodes of a part are near their neighbours."""
    value = np.arange(len(part), dtype=float)
    for number in range(part.max() + 1):
        nodes = np.flatnonzero(part == number)
        degree = np.asarray(between.sum(axis=1))[nodes]
        if not 2 < len(nodes) <= MOST_SPECTRAL or not degree.all():
            continue
        scaled = between[nodes][:, nodes].toarray() / np.sqrt(np.outer(degree, degree))
        place = eigh(scaled, subset_by_index=[len(nodes) - 2] * 2)[1][:, 0]
        # The sign is arbitrary; keep the first node on the left.
        value[nodes] = -np.sign(place[0] or 1.0) * place / np.sqrt(degree)
    return value


def _sorted(between, nodes, fixed, part) -> np.ndarray:
    """Nodes by the mean place of their neighbours; those without keep their place."""
    matrix = between[nodes][:, fixed]
    degree = np.asarray(matrix.sum(axis=1))
    mean = matrix @ _shares(len(fixed)) / np.maximum(degree, 1.0)
    mean = np.where(degree > 0, mean, _shares(len(nodes)))
    # Connected parts stay side by side. Sums of the same places may be rounded.
    return nodes[np.lexsort((mean.round(9), part[nodes]))]


def _shares(n: int) -> np.ndarray:
    return (np.arange(n) + 0.5) / max(n, 1)


def count_crossings(links: np.ndarray) -> float:
    """Pairs of links that cross, all counted at once by cumulative sums."""
    if min(links.shape) < 2:
        return 0.0
    to_the_right = links[:, ::-1].cumsum(axis=1)[:, ::-1]
    earlier_and_right = to_the_right.cumsum(axis=0)[:-1, 1:]
    return float((links[1:, :-1] * earlier_and_right).sum())


def _places(graph: _Layers, room, pull) -> np.ndarray:
    """Pull every node to the mean of its neighbours, layer by layer, in order."""
    place = np.empty(len(room))
    for nodes in graph.layers:
        place[nodes] = np.cumsum(room[nodes]) - (room[nodes] + room[nodes].sum()) / 2
    for sweep in sweeps(len(graph.layers)):
        for k, fixed in sweep:
            nodes, others = graph.layers[k], graph.layers[fixed]
            links = graph.links[fixed].T if fixed < k else graph.links[k]
            weights = links * pull[others]
            total = weights.sum(axis=1)
            mean = weights @ place[others] / np.maximum(total, 1.0)
            wanted = np.where(total > 0, mean, place[nodes])
            weight = pull[nodes] * np.maximum(total, 0.1)
            place[nodes] = _apart(wanted, room[nodes], weight)
    return place


def _apart(wanted, room, weight=None, size: float | None = None) -> np.ndarray:
    """Least squares under smallest gaps: isotonic once the gaps are subtracted."""
    if not len(room):
        return wanted
    offset = np.cumsum(room) - room / 2
    limits = {} if size is None else {"y_min": 0.0, "y_max": max(size - room.sum(), 0)}
    return isotonic_regression(wanted - offset, sample_weight=weight, **limits) + offset
