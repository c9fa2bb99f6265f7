"""Layout of bipartite graphs with few edge crossings."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.isotonic import isotonic_regression

N_SWEEPS = 24  # of heuristics that settle down


def two_layers(graph) -> tuple[list, list]:
    """Latents, and all nodes below them."""
    kinds = list(graph.nodes(data="kind"))
    latents = [node for node, kind in kinds if kind == "latent"]
    return latents, [node for node, kind in kinds if kind not in ("latent", "class")]


def class_edges(graph) -> list[tuple]:
    """Edges from a class to the latents, with their strengths."""
    return [
        edge
        for edge in graph.edges(data="strength", default=1.0)
        if graph.nodes[edge[0]].get("kind") == "class"
        and graph.nodes[edge[1]].get("kind") == "latent"
    ]


def bipartite_matrix(graph):
    """Latents, features and the strengths of edges (n_latents, n_features)."""
    latents, features = two_layers(graph)
    row = {node: i for i, node in enumerate(latents)}
    column = {node: j for j, node in enumerate(features)}
    strength = np.full((len(latents), len(features)), np.nan)
    above = {edge[:2] for edge in class_edges(graph)}
    for parent, child, value in graph.edges(data="strength", default=1.0):
        if (parent, child) in above:
            continue
        if parent not in row or child not in column:
            raise ValueError(
                "graph must have edges from latents to features only, "
                f"got {parent!r} -> {child!r}."
            )
        strength[row[parent], column[child]] = value
    return latents, features, strength


def order_layers(has_edge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order both layers of has_edge (n_upper, n_lower) to reduce crossings.

    Connected parts are placed side by side, in the order of their first upper node;
    nodes without edges come last.
    """
    n_upper = len(has_edge)
    links = sparse.block_array([[None, has_edge], [has_edge.T, None]], format="csr")
    part = connected_components(links, directed=False)[1]
    nothing = np.zeros(0, dtype=np.intp)
    parts, singles = [(nothing, nothing)], []
    for label in dict.fromkeys(part.tolist()):
        upper = np.flatnonzero(part[:n_upper] == label)
        lower = np.flatnonzero(part[n_upper:] == label)
        if len(upper) and len(lower):
            rows, columns = _order_part(has_edge[np.ix_(upper, lower)])
            parts.append((upper[rows], lower[columns]))
        else:
            singles.append((upper, lower))
    uppers, lowers = zip(*parts, *singles, strict=True)
    return np.concatenate(uppers), np.concatenate(lowers)


def place_above(has_edge: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, float]:
    """Place upper nodes over the middle of their children, and return their gap.

    Least squares under a smallest gap, which is an isotonic regression once the gaps
    are subtracted. has_edge (n_upper, n_lower), places (n_lower,).
    """
    n_upper = len(has_edge)
    gap = 0.8 / max(n_upper, 1)
    if n_upper == 0:
        return np.zeros(0), gap
    middle = has_edge @ places / np.maximum(has_edge.sum(axis=1), 1)
    # Those without children come last.
    middle[~has_edge.any(axis=1)] = 1.0
    offset = gap * np.arange(n_upper)
    start = isotonic_regression(
        middle - offset, y_min=gap / 2, y_max=1.0 - gap * (n_upper - 0.5)
    )
    return start + offset, gap


def spread_evenly(n: int) -> tuple[np.ndarray, float]:
    """Places in the middle of n equal parts of the width, and their gap."""
    gap = 1.0 / max(n, 1)
    return gap * (np.arange(n) + 0.5), gap


def _order_part(has_edge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order a connected part by barycentres; the best order seen wins.

    The heuristic of Sugiyama et al. (1981): in turns, each layer is sorted by the mean
    place of the neighbours in the other. It only finds local optima near its start.
    """
    adjacency = has_edge.astype(np.float64)
    rows = _spectral_order(adjacency)
    n_rows, n_columns = adjacency.shape
    best, fewest = (np.arange(n_rows), np.arange(n_columns)), count_crossings(adjacency)
    for _ in range(N_SWEEPS):
        columns = _by_barycentre(adjacency.T, rows)
        rows = _by_barycentre(adjacency, columns)
        crossings = count_crossings(adjacency[np.ix_(rows, columns)])
        if crossings < fewest:
            best, fewest = (rows, columns), crossings
    return best


def _spectral_order(adjacency) -> np.ndarray:
    """Order rows by the second singular vector, the fixed point of mean places."""
    n_rows, n_columns = adjacency.sum(axis=1), adjacency.sum(axis=0)
    scaled = adjacency / np.sqrt(n_rows[:, np.newaxis] * n_columns)
    left = np.linalg.svd(scaled, full_matrices=False)[0]
    vector = left[:, min(1, left.shape[1] - 1)] / np.sqrt(n_rows)
    # The sign is arbitrary; keep the first node on the left.
    return np.argsort(-vector if vector[0] > 0 else vector, kind="stable")


def _by_barycentre(adjacency, order) -> np.ndarray:
    """Order nodes by the mean place of their neighbours."""
    place = np.argsort(order)
    return np.argsort(adjacency @ place / adjacency.sum(axis=1), kind="stable")


def count_crossings(adjacency) -> float:
    """Pairs of edges that cross, all counted at once by cumulative sums."""
    if min(adjacency.shape) < 2:
        return 0.0
    to_the_right = adjacency[:, ::-1].cumsum(axis=1)[:, ::-1]
    earlier_and_right = to_the_right.cumsum(axis=0)[:-1, 1:]
    return float((adjacency[1:, :-1] * earlier_and_right).sum())
