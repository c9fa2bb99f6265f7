"""Forbidden and required edges, from names or numbers to matrices."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from .._graphs import topological_order


def parse_constraints(forbidden, required, names, *, max_parents=None):
    """Turn lists of edges into matrices."""
    absent = _parse(forbidden, "forbidden", names)
    present = _parse(required, "required", names)
    loops = np.flatnonzero(present.diagonal())
    if len(loops):
        raise ValueError(
            f"required must not join a feature with itself, got {names[loops[0]]!r}."
        )
    both = np.argwhere(absent & present)
    if len(both):
        i, j = both[0]
        raise ValueError(
            "forbidden and required must have no edge in common, got "
            f"{names[i]!r} -> {names[j]!r} in both."
        )
    try:
        topological_order(present)
    except ValueError:
        raise ValueError(
            "required must have no directed cycle, got "
            + " -> ".join(repr(names[node]) for node in find_cycle(present))
            + "."
        ) from None
    if max_parents is not None and present.sum(axis=0).max(initial=0) > max_parents:
        child = int(present.sum(axis=0).argmax())
        raise ValueError(
            f"required must not give a feature more than max_parents={max_parents} "
            f"parents, got {present[:, child].sum()} for {names[child]!r}."
        )
    np.fill_diagonal(absent, True)
    return absent, present


def find_cycle(adjacency) -> list[int]:
    """Nodes of a directed cycle, the first also at the end."""
    # A node that is left after leaves are peeled off has a way back to such a node.
    alive = np.ones(len(adjacency), dtype=bool)
    while True:
        leaves = alive & ~(adjacency & alive).any(axis=1)
        if not leaves.any():
            break
        alive &= ~leaves
    path = [int(np.flatnonzero(alive)[0])]
    while True:
        after = int(np.flatnonzero(adjacency[path[-1]] & alive)[0])
        if after in path:
            return [*path[path.index(after) :], after]
        path.append(after)


def _parse(edges, argument, names) -> np.ndarray:
    """Matrix of a list of edges."""
    n = len(names)
    if edges is None:
        return np.zeros((n, n), dtype=bool)
    if isinstance(edges, np.ndarray) and edges.dtype == bool:
        if edges.shape != (n, n):
            raise ValueError(
                f"{argument} must have shape ({n}, {n}) as a matrix, got {edges.shape}."
            )
        return edges.copy()
    if isinstance(edges, str | bytes) or not np.iterable(edges):
        raise TypeError(
            f"{argument} must be a list of (parent, child) pairs, got {edges!r}."
        )
    places = {name: place for place, name in enumerate(names)}
    matrix = np.zeros((n, n), dtype=bool)
    for edge in edges:
        pair = () if isinstance(edge, str | bytes) else edge
        if not np.iterable(pair) or len(list(pair)) != 2:
            raise ValueError(
                f"{argument} must hold (parent, child) pairs, got {edge!r}."
            )
        matrix[tuple(_place(node, argument, places, n) for node in pair)] = True
    return matrix


def _place(node, argument, places, n) -> int:
    """Number of a feature given by name or number."""
    if isinstance(node, str):
        if node not in places:
            raise ValueError(
                f"{argument} must name features of X, got {node!r}; there are "
                f"{', '.join(list(places)[:5])}{', ...' if n > 5 else ''}."
            )
        return places[node]
    if isinstance(node, Integral) and not isinstance(node, bool | np.bool_):
        if not -n <= node < n:
            raise ValueError(
                f"{argument} must hold numbers of features from 0 to {n - 1}, got "
                f"{node}."
            )
        return int(node) % n
    raise TypeError(f"{argument} must hold names or numbers of features, got {node!r}.")
