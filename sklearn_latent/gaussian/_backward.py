"""Deletions over equivalence classes: the backward phase of greedy equivalence search.

A graph that has all edges it needs, and then some, may offer no deletion that pays
while another graph of the same class does. Deletions are therefore tried in all graphs
of the class; with unlimited data this ends in the class of the true graph (Chickering,
2002, JMLR 3).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._core.graphs import equivalence_class
from ._linear_scores import LinearEvaluator, partial_out
from ._rules import TIE, SearchResult

# Neighbours of both ends of an edge, all of whose cliques are looked at.
MAX_COMMON = 6


def extend(pattern, first=()) -> np.ndarray:
    """A graph of an equivalence class."""
    graph = pattern & ~pattern.T
    open_edges = pattern & pattern.T
    waiting = open_edges.any(axis=1)
    count = np.zeros(len(pattern), dtype=int)
    seeds = [node for node in first if waiting[node]]
    while waiting.any():
        most = int(np.where(waiting, count, -1).argmax())
        node = seeds.pop(0) if seeds else most
        waiting[node] = False
        ahead = open_edges[node] & waiting
        graph[node, ahead] = True
        count[ahead] += 1
    return graph


def _cliques(joined, nodes) -> Iterator[tuple[int, ...]]:
    """All sets of nodes that are joined with each other, the empty one too."""
    yield ()
    for place, node in enumerate(nodes):
        rest = [other for other in nodes[place + 1 :] if joined[node, other]]
        for clique in _cliques(joined, rest):
            yield (node, *clique)


def _deletions(evaluator: LinearEvaluator, pattern) -> Iterator[tuple]:
    """Deletions of the class as (gain, parent, child, clique of open neighbours)."""
    joined = pattern | pattern.T
    open_edges = pattern & pattern.T
    directed = pattern & ~pattern.T
    regressions: dict = {}
    for x, y in np.argwhere(pattern).tolist():
        common = (open_edges[y] & joined[x]).nonzero()[0].tolist()[:MAX_COMMON]
        fixed = directed[:, y].nonzero()[0].tolist()
        for clique in _cliques(joined, common):
            parents = tuple(sorted({x, *fixed, *clique}))
            known = regressions.get((y, parents))
            if known is None:
                partial = partial_out(evaluator.correlation, y, parents)
                known = partial.unexplained(y)
                regressions[y, parents] = known
            unexplained, without = known
            after = without[parents.index(x)]
            gain = evaluator.score(y, len(parents) - 1, after)
            gain -= evaluator.score(y, len(parents), unexplained)
            yield gain, x, y, clique


def backward_search(
    evaluator: LinearEvaluator, start: SearchResult, *, tol=1e-6
) -> SearchResult:
    """Delete edges as long as a graph of the class improves by it."""
    adjacency, history = start.adjacency, list(start.history)
    while adjacency.any():
        pattern = equivalence_class(adjacency)
        deletions = list(_deletions(evaluator, pattern))
        most = max(gain for gain, *_ in deletions)
        if most <= tol:
            break
        gain, x, y, clique = next(d for d in deletions if d[0] > most - TIE)
        adjacency = extend(pattern, [*clique, x, y])
        adjacency[x, y] = False
        history.append((("delete", x, y), gain))
    if adjacency is start.adjacency:
        return start
    return SearchResult(adjacency, evaluator.graph_score(adjacency), history)
