"""Which part of a graph pictures and diagrams show: weak edges folded, or a focus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from .._core.text import count
from .._core.validation import shown

# More edges than these cannot be told apart. The features of two slices are lists, and
# longer lists would make the picture higher than a page.
BUDGETS = {"class": 60, "measurement": 80, "other": 120}
# Every latent keeps its strongest edges before any latent keeps more.
EDGES_PER_LATENT = 2
# Nodes without edges stay in pictures of at most this many of their kind: if edges were
# left out, and if not.
ROOM = {"latent": (60, 120), "feature": (40, 80)}


class Selection(NamedTuple):
    """Part of a graph, and in words what was left out."""

    graph: Any
    note: str


class _Edge(NamedTuple):
    """An edge, once for all slices: its ends in each slice, strength and budget."""

    pairs: list
    strength: float
    pool: str


def select(graph: Any, min_strength: Any = "auto", focus: Any = None) -> Selection:
    """Part of a graph to show.

    An edge is the stronger the larger the absolute value of its strength. "auto" keeps
    the strongest edges up to a budget, a number those of at least this strength. The
    focus is a node or a list of nodes, which are shown with their neighbours.
    """
    check_graph(graph)
    threshold = _check_strength(min_strength)
    whole = _distinct(graph)
    names = _focus_names(whole, focus)
    part = whole if names is None else _neighbourhood(whole, names)
    edges = _edges_by_names(part)
    if threshold is None:
        kept = _strongest(part, edges, names or set())
    else:
        kept = {key for key, edge in edges.items() if edge.strength >= threshold}
    part = _copy(part, part, {pair for key in kept for pair in edges[key].pairs})
    folded = [edge.strength for key, edge in edges.items() if key not in kept]
    nodes = list(part)
    if names is not None or threshold is None or threshold > 0:
        nodes = _nodes_with_room(part, names, bool(folded))
    note = _note(names, folded, threshold, part, nodes)
    return Selection(_copy(part, nodes, set(part.edges)), note)


def check_graph(graph: Any) -> None:
    """Refuse what is not a graph, or has edges whose strength is not a number."""
    import networkx as nx

    if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
        raise TypeError(f"graph must be a networkx.DiGraph, got {shown(graph)}.")
    slices = dict(graph.nodes(data="slice"))
    timed = [isinstance(t, Integral) and int(t) in (0, 1) for t in slices.values()]
    if not all(timed) and any(place is not None for place in slices.values()):
        raise ValueError(
            "graph must have a slice of 0 or 1 for every node, or for none, got "
            f"{shown(slices)}."
        )
    for parent, child, strength in graph.edges(data="strength", default=1.0):
        if not isinstance(strength, Real) or not np.isfinite(float(strength)):
            raise ValueError(
                "graph must have edges whose strength is a finite number, got "
                f"{shown(strength)} from {parent!r} to {child!r}."
            )


def name_of(graph: Any, node: Any) -> Any:
    """Name of a node without its slice."""
    return graph.nodes[node].get("name", node)


def _check_strength(min_strength: Any) -> float | None:
    """The smallest strength that is shown; None for a budget of edges."""
    if isinstance(min_strength, str) and min_strength == "auto":
        return None
    if not isinstance(min_strength, Real) or np.isnan(float(min_strength)):
        raise ValueError(
            f"min_strength must be a number or 'auto', got {shown(min_strength)}."
        )
    return float(min_strength)


def _copy(graph, nodes, edges: set):
    """Graph of these nodes and edges, both in the order of `graph`."""
    import networkx as nx

    nodes = set(nodes)
    copy = nx.DiGraph(**graph.graph)
    copy.add_nodes_from((n, data) for n, data in graph.nodes(data=True) if n in nodes)
    copy.add_edges_from(
        (parent, child, data)
        for parent, child, data in graph.edges(data=True)
        if (parent, child) in edges and parent in nodes and child in nodes
    )
    return copy


def _distinct(graph):
    """Leave out a second slice that nothing leads to, and edges in both directions."""
    between = any(kind == "inter" for *_, kind in graph.edges(data="kind"))
    nodes = [node for node, when in graph.nodes(data="slice") if between or not when]
    edges: set = set()
    for parent, child, directed in graph.edges(data="directed", default=True):
        if directed or (child, parent) not in edges:
            edges.add((parent, child))
    return _copy(graph, nodes, edges)


def _focus_names(graph, focus: Any) -> set | None:
    """Names of the nodes in focus; None without a focus."""
    if focus is None:
        return None
    nodes = {name_of(graph, node): name_of(graph, node) for node in graph}
    nodes |= {node: name_of(graph, node) for node in graph}
    several = isinstance(focus, list | tuple | set | np.ndarray)
    wanted = list(focus) if several and not _is_key(nodes, focus) else [focus]
    for name in wanted:
        if not _is_key(nodes, name):
            raise ValueError(
                "focus must be the name of a node of the graph, or a list of names, "
                f"such as {shown(list(nodes)[:3])}; got {shown(name)}."
            )
    return {nodes[name] for name in wanted}


def _is_key(nodes: dict, name: Any) -> bool:
    # A tuple may be hashable and yet hold what is not.
    try:
        return isinstance(name, Hashable) and name in nodes
    except TypeError:
        return False


def _neighbourhood(graph, names: set):
    """Nodes in focus, their parents and children and, in noisy-ors, co-parents.

    Latents that share features compete to explain them, so that one cannot be read
    without the others.
    """
    near = set(names)
    centre = [node for node in graph if name_of(graph, node) in names]
    for node in centre:
        for child in graph.successors(node):
            near.add(name_of(graph, child))
            if graph.graph.get("family") == "noisy-or" and _is_latent(graph, node):
                near |= {name_of(graph, other) for other in graph.predecessors(child)}
        near |= {name_of(graph, parent) for parent in graph.predecessors(node)}
    nodes = [node for node in graph if name_of(graph, node) in near]
    return _copy(graph, nodes, set(graph.edges))


def _is_latent(graph, node) -> bool:
    return graph.nodes[node].get("kind") == "latent"


def _edges_by_names(graph) -> dict[tuple, _Edge]:
    """Edges by the names of their ends; those of two slices are one."""
    edges: dict[tuple, _Edge] = {}
    for parent, child, data in graph.edges(data=True):
        size = abs(float(data.get("strength", 1.0)))
        when = [graph.nodes[node].get("slice") for node in (parent, child)]
        names = name_of(graph, parent), name_of(graph, child)
        key = (*names, when[0] != when[1])
        known = edges.get(key, _Edge([], 0.0, _pool(graph, parent, child)))
        pairs = [*known.pairs, (parent, child)]
        edges[key] = known._replace(pairs=pairs, strength=max(known.strength, size))
    return edges


def _pool(graph, parent, child) -> str:
    """Which edges share a budget: strengths of others are of another kind."""
    if graph.nodes[parent].get("kind") == "class":
        return "class"
    timed = graph.nodes[parent].get("slice") is not None
    return "measurement" if timed and not _is_latent(graph, child) else "other"


def _strongest(graph, edges: dict[tuple, _Edge], focus: set) -> set:
    """Edges within the budgets: those in focus, some of every latent, the strongest."""
    latents = {name_of(graph, node) for node in graph if _is_latent(graph, node)}
    budgets = dict(BUDGETS)
    n_of_latent: Counter = Counter()
    ranked = []
    for key in sorted(edges, key=lambda key: -edges[key].strength):
        parent, child = key[:2]
        group = parent, edges[key].pool
        n_of_latent[group] += 1
        is_spare = parent not in latents or n_of_latent[group] > EDGES_PER_LATENT
        ranked.append((not {parent, child} & focus, is_spare, key))
    kept = set()
    for _, _, key in sorted(ranked, key=lambda entry: entry[:2]):
        if budgets[edges[key].pool]:
            budgets[edges[key].pool] -= 1
            kept.add(key)
    return kept


def _nodes_with_room(graph, focus: set | None, is_folded: bool) -> list:
    """Nodes to show; those without edges only if there is room for all of them."""
    names = _names_by_kind(graph, graph)

    def has_place(node) -> bool:
        if graph.degree(node) or focus is not None:
            return bool(graph.degree(node)) or name_of(graph, node) in (focus or ())
        kind = _kind(graph, node)
        return len(names[kind]) <= ROOM[kind][0 if is_folded else 1]

    return [node for node in graph if has_place(node)]


def _kind(graph, node) -> str:
    """Whether a node is counted among the latents or the features."""
    is_above = graph.nodes[node].get("kind") in ("latent", "class")
    return "latent" if is_above else "feature"


def _names_by_kind(graph, nodes) -> dict[str, set]:
    """Names of latents and of features among the nodes."""
    names: dict[str, set] = {kind: set() for kind in ROOM}
    for node in nodes:
        names[_kind(graph, node)].add(name_of(graph, node))
    return names


def _note(focus, folded: list[float], threshold, graph, nodes) -> str:
    """What a picture shows, and what it does not."""
    lost = []
    if folded and threshold is not None:
        lost.append(f"{count(len(folded), 'edge')} below {threshold:.3g}")
    elif folded:
        most = _rounded_up(max(folded))
        lost.append(f"{count(len(folded), 'edge')} of strength {most:.2g} or less")
    before, after = _names_by_kind(graph, graph), _names_by_kind(graph, nodes)
    n_lost = {kind: len(before[kind] - after[kind]) for kind in ROOM}
    lost += [count(n, kind) for kind, n in n_lost.items() if n]
    words = [f"{_listed(lost)} not shown"] if lost else []
    if focus is not None:
        names = sorted(map(str, focus))
        more = [f"{len(names) - 3} more"] if len(names) > 3 else []
        words.insert(0, f"neighbours of {_listed(names[:3] + more)}")
    return "; ".join(words)


def _rounded_up(value: float) -> float:
    """The next number of two digits."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (np.floor(np.log10(value)) - 1)
    # Without the small number, 0.3 / 0.01 would be rounded up to 31.
    return float(np.ceil(value / unit - 1e-9) * unit)


def _listed(words: list[str]) -> str:
    """Words with commas and an 'and'."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
