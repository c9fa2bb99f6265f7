"""Where to put the nodes of a two-layer picture, such that few edges cross."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.isotonic import isotonic_regression

__all__ = [
    "bipartite_matrix",
    "count_crossings",
    "order_layers",
    "place_above",
    "spread_evenly",
]

N_SWEEPS = 24


def bipartite_matrix(graph):
    """Read the two layers of a graph.

    Returns strength (n_latents, n_features).
    """
    kinds = graph.nodes(data="kind", default="feature")
    latents = [node for node, kind in kinds if kind == "latent"]
    features = [node for node, kind in kinds if kind != "latent"]
    row = {node: i for i, node in enumerate(latents)}
    column = {node: j for j, node in enumerate(features)}
    strength = np.full((len(latents), len(features)), np.nan)
    for parent, child, value in graph.edges(data="strength", default=1.0):
        if parent not in row or child not in column:
            raise ValueError(
                "graph must have edges from latents to features only, "
                f"got {parent!r} -> {child!r}."
            )
        strength[row[parent], column[child]] = value
    return latents, features, strength


def order_layers(has_edge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order two layers such that few edges cross.

    Connected parts stand side by side, in the order of their first upper node; nodes
    without edges come last.

    has_edge (n_upper, n_lower).
    """
    n_upper = len(has_edge)
    links = sparse.block_array([[None, has_edge], [has_edge.T, None]], format="csr")
    part = connected_components(links, directed=False)[1]
    uppers, lowers, singles = [], [], []
    for label in dict.fromkeys(part.tolist()):
        upper = np.flatnonzero(part[:n_upper] == label)
        lower = np.flatnonzero(part[n_upper:] == label)
        if len(upper) and len(lower):
            rows, columns = _order_part(has_edge[np.ix_(upper, lower)])
            upper, lower = upper[rows], lower[columns]
            uppers.append(upper)
            lowers.append(lower)
        else:
            singles.append((upper, lower))
    nothing = np.zeros(0, dtype=np.intp)
    return (
        np.concatenate([nothing, *uppers, *(upper for upper, _ in singles)]),
        np.concatenate([nothing, *lowers, *(lower for _, lower in singles)]),
    )


def place_above(has_edge: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, float]:
    """Place the upper nodes over the middle of their children, but not too close.

    Least squares under a smallest gap, which is an isotonic regression once the gaps
    are taken off.

    has_edge (n_upper, n_lower), places (n_lower,) -> upper (n_upper,).
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
    """Place `n` nodes in the middle of `n` equal parts of the width.

    Returns places (n,).
    """
    gap = 1.0 / max(n, 1)
    return gap * (np.arange(n) + 0.5), gap


def _order_part(has_edge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order a connected part by barycentres; the best order seen wins.

    The heuristic of Sugiyama et al. (1981): in turns, each layer is sorted by the mean
    place of the neighbours in the other. It gets stuck, so it starts twice.
    """
    adjacency = has_edge.astype(np.float64)
    rows, columns = (np.arange(n) for n in adjacency.shape)
    best, fewest = (rows, columns), count_crossings(adjacency)
    for start in (rows, _spectral_order(adjacency)):
        rows = start
        for _ in range(N_SWEEPS):
            columns = _by_barycentre(adjacency.T, rows)
            rows = _by_barycentre(adjacency, columns)
            crossings = count_crossings(adjacency[np.ix_(rows, columns)])
            if crossings < fewest:
                best, fewest = (rows, columns), crossings
    return best


def _spectral_order(adjacency) -> np.ndarray:
    """Order rows by the second singular vector, the fixed point of mean places."""
    n_rows, n_columns = np.maximum(adjacency.sum(1), 1), np.maximum(adjacency.sum(0), 1)
    scaled = adjacency / np.sqrt(n_rows[:, np.newaxis] * n_columns)
    left = np.linalg.svd(scaled, full_matrices=False)[0]
    vector = left[:, min(1, left.shape[1] - 1)] / np.sqrt(n_rows)
    # The sign is arbitrary; keep the first node on the left.
    return np.argsort(-vector if vector[0] > 0 else vector, kind="stable")


def _by_barycentre(adjacency, order) -> np.ndarray:
    """Order nodes by the mean place of their neighbours; those without any go last."""
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    degree = adjacency.sum(axis=1)
    mean = np.where(degree > 0, adjacency @ place / np.maximum(degree, 1), np.inf)
    return np.argsort(mean, kind="stable")


def count_crossings(adjacency) -> float:
    """Pairs of edges that cross, all counted at once by cumulative sums."""
    if min(adjacency.shape) < 2:
        return 0.0
    to_the_right = adjacency[:, ::-1].cumsum(axis=1)[:, ::-1]
    earlier_and_right = to_the_right.cumsum(axis=0)[:-1, 1:]
    return float((adjacency[1:, :-1] * earlier_and_right).sum())
