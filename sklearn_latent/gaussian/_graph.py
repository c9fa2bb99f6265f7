"""Small facts about directed graphs given as boolean matrices."""

from __future__ import annotations

import numpy as np

__all__ = ["equivalence_class", "parents_of", "reaches", "topological_order"]


def topological_order(adjacency) -> np.ndarray:
    """Nodes, parents before children; ties by number.

    adjacency (n_nodes, n_nodes) -> order (n_nodes,).
    """
    adjacency = np.asarray(adjacency, dtype=bool)
    n_left = adjacency.sum(axis=0)
    ready = list(np.flatnonzero(n_left == 0)[::-1])
    order = []
    while ready:
        node = ready.pop()
        order.append(node)
        children = np.flatnonzero(adjacency[node])
        n_left[children] -= 1
        ready.extend(children[n_left[children] == 0][::-1])
    if len(order) < len(adjacency):
        left = sorted(set(range(len(adjacency))) - set(map(int, order)))
        raise ValueError(
            f"adjacency must have no directed cycle, got one among nodes {left}."
        )
    return np.array(order, dtype=int)


def reaches(adjacency) -> np.ndarray:
    """Which node reaches which along directed edges; each node reaches itself.

    adjacency (n_nodes, n_nodes) -> reach (n_nodes, n_nodes).
    """
    reach = np.eye(len(adjacency), dtype=bool)
    for node in topological_order(adjacency)[::-1]:
        children = np.flatnonzero(adjacency[node])
        if len(children):
            reach[node] |= reach[children].any(axis=0)
    return reach


def parents_of(adjacency, node: int) -> tuple[int, ...]:
    """Parents of a node in ascending order."""
    return tuple(np.flatnonzero(adjacency[:, node]).tolist())


def equivalence_class(adjacency) -> np.ndarray:
    """Which edges of a graph the data can direct.

    Graphs with the same skeleton and the same colliders whose parents are not joined
    describe the same distributions. An edge that has one direction in all of them keeps
    it; of others both directions are returned.

    adjacency (n_nodes, n_nodes) -> pattern (n_nodes, n_nodes).

    References
    ----------
    .. [1] Meek, C. (1995). Causal inference and causal explanation with background
       knowledge. UAI.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.gaussian._graph import equivalence_class
    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> equivalence_class(chain).astype(int)
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]])
    """
    adjacency = np.asarray(adjacency, dtype=bool)
    joined = adjacency | adjacency.T
    apart = ~joined
    np.fill_diagonal(apart, False)
    # i -> j is part of a collider if another parent of j is not joined with i.
    directed = adjacency & (_count(apart, adjacency) > 0)
    while True:
        open_edges = joined & ~directed & ~directed.T
        # Rules 1 to 3 of [1]_: no new collider, no cycle, neither of both.
        new = (_count(directed.T, apart) > 0) | (_count(directed, directed) > 0)
        new &= open_edges
        for a, b in np.argwhere(open_edges & ~new):
            between = np.flatnonzero(open_edges[a] & directed[:, b])
            new[a, b] = apart[np.ix_(between, between)].any()
        if not new.any():
            return directed | open_edges
        directed |= new


def _count(left, right) -> np.ndarray:
    """Number of nodes in between, for boolean matrices."""
    return left.astype(np.float32) @ right.astype(np.float32)
