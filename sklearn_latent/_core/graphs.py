"""Rules of directed graphs, given as boolean matrices with ``[i, j]`` = i -> j."""

from __future__ import annotations

import numpy as np


def topological_order(adjacency) -> np.ndarray:
    """Nodes with parents before children; a directed cycle is a ValueError."""
    order = _sorted_nodes(adjacency)
    if len(order) < len(adjacency):
        left = sorted(set(range(len(adjacency))) - set(order))
        raise ValueError(
            f"adjacency must have no directed cycle, got one among nodes {left}."
        )
    return np.array(order, dtype=int)


def is_acyclic(adjacency) -> bool:
    """Whether there is no directed cycle."""
    return len(_sorted_nodes(adjacency)) == len(adjacency)


def _sorted_nodes(adjacency) -> list[int]:
    """As many nodes as can be listed after all of their parents."""
    adjacency = np.asarray(adjacency, dtype=bool)
    n_left = adjacency.sum(axis=0).tolist()
    children: list[list[int]] = [[] for _ in n_left]
    # Lists, because a call of NumPy per node takes ten times as long.
    for parent, child in np.argwhere(adjacency)[::-1].tolist():
        children[parent].append(child)
    ready = [node for node, count in enumerate(n_left) if not count][::-1]
    order = []
    while ready:
        node = ready.pop()
        order.append(node)
        for child in children[node]:
            n_left[child] -= 1
            if not n_left[child]:
                ready.append(child)
    return order


def reaches(adjacency) -> np.ndarray:
    """Which node of an acyclic graph reaches which; each node reaches itself."""
    reach = np.eye(len(adjacency), dtype=bool)
    for node in topological_order(adjacency)[::-1]:
        children = np.flatnonzero(adjacency[node])
        if len(children):
            reach[node] |= reach[children].any(axis=0)
    return reach


def parents_of(adjacency, node: int) -> tuple[int, ...]:
    """Parents of a node in ascending order."""
    return tuple(np.flatnonzero(adjacency[:, node]).tolist())


def equivalence_class(adjacency, *, given=0) -> np.ndarray:
    """Every direction that an edge has in some graph of the same equivalence class.

    Graphs with the same skeleton and the same colliders whose parents are not joined
    describe the same distributions [1]_. The first `given` nodes are conditioned on:
    they count as joined with each other, and their edges to other nodes are directed.

    References
    ----------
    .. [1] Meek, C. (1995). Causal inference and causal explanation with background
       knowledge. UAI.
    """
    adjacency = np.asarray(adjacency, dtype=bool)
    joined = adjacency | adjacency.T
    joined[:given, :given] = True
    apart = ~joined
    np.fill_diagonal(apart, False)
    # i -> j is part of a collider if another parent of j is not joined with i.
    directed = adjacency & (_count(apart, adjacency) > 0)
    directed[:given] = adjacency[:given]
    directed = _compelled(joined, apart, directed)
    return directed | (adjacency | adjacency.T) & ~directed.T


def slice_equivalence_class(intra, inter) -> np.ndarray:
    """Edges within a slice, in every direction that the model cannot tell apart.

    Time directs the edges `inter` from the slice before, whose nodes are given.
    """
    n = len(intra)
    arrows = np.zeros((2 * n, 2 * n), dtype=bool)
    arrows[:n, n:] = inter
    arrows[n:, n:] = intra
    return equivalence_class(arrows, given=n)[n:, n:]


def _compelled(joined, apart, directed) -> np.ndarray:
    """Directed edges, and those that they direct by rules 1 to 3 of Meek."""
    while True:
        open_edges = joined & ~directed & ~directed.T
        # No new collider, no cycle, neither of both.
        new = (_count(directed.T, apart) > 0) | (_count(directed, directed) > 0)
        new &= open_edges
        for a, b in np.argwhere((_count(open_edges, directed) > 1) & open_edges & ~new):
            between = np.flatnonzero(open_edges[a] & directed[:, b])
            new[a, b] = apart[np.ix_(between, between)].any()
        if not new.any():
            return directed
        directed = directed | new


def _count(left, right) -> np.ndarray:
    """Number of nodes in between, for boolean matrices."""
    return left.astype(np.float32) @ right.astype(np.float32)
