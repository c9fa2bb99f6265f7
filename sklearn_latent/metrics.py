"""Distances between learned and true models, for any order of the latents."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.utils import check_array

from ._core.validation import check_numbers, check_probabilities, within_floats

__all__ = ["edge_f1", "match_latents", "structural_hamming_distance"]

# A latent is recovered if every failure is right up to the factor e, and if its prior
# is large enough for it to be a cause and not an artefact.
LOG_FAILURE_TOLERANCE = 1.0
MIN_PRIOR = 0.02

# log(0) would make every distance infinite.
SMALLEST_FAILURE = 1e-6

# Latents whose relabellings are all tried: 8! = 40,320.
MAX_PERMUTED = 8


def match_latents(
    true_failure: ArrayLike, failure: ArrayLike, prior: ArrayLike | None = None
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Match learned latents with true ones, one to one.

    The distance of two latents is the largest difference of their log failures over
    all features. The matching pairs as many latents as possible within the distance
    that counts as recovered, and among such matchings has the smallest sum of
    distances (Hungarian method).

    Parameters
    ----------
    true_failure : array-like of shape (n_true, n_features)
        Failure probabilities of the true network; 1 = no edge.
    failure : array-like of shape (n_learned, n_features)
        Failure probabilities of the learned network.
    prior : array-like of shape (n_learned,) or None, default=None
        Priors of the learned latents. If None, priors are not considered.

    Returns
    -------
    pairs : ndarray of int of shape (min(n_true, n_learned), 2)
        Index of a true latent and of its learned partner, sorted by the true one.
    recovered : ndarray of bool of shape (n_true,)
        Whether each true latent has a partner at a distance of at most 1 whose prior
        is at least 0.02. ``recovered.sum()`` is the number of latents recovered.

    Examples
    --------
    >>> from sklearn_latent.metrics import match_latents
    >>> true_failure = [[0.1, 0.2, 1.0], [1.0, 0.3, 0.1]]
    >>> pairs, recovered = match_latents(true_failure, [[1.0, 0.1, 0.2]])
    >>> pairs.tolist(), recovered.tolist()
    ([[1, 0]], [False, False])
    >>> pairs, recovered = match_latents(true_failure, [[1.0, 0.25, 0.2]])
    >>> pairs.tolist(), recovered.tolist()
    ([[1, 0]], [False, True])
    """
    log_true = _log_failure(true_failure, "true_failure")
    log_learned = _log_failure(failure, "failure")
    _check_same_width(log_true, log_learned, "true_failure", "failure")
    distance = cdist(log_true, log_learned, "chebyshev")
    close = distance <= LOG_FAILURE_TOLERANCE
    if prior is not None:
        priors = check_numbers("prior", prior)
        if priors.shape != (len(log_learned),):
            raise ValueError(
                "prior must have one value per row of failure, shape "
                f"({len(log_learned)},), got shape {priors.shape}."
            )
        close &= priors >= MIN_PRIOR
    # A miss costs more than all distances together, so that a matching never gives
    # up a recovered latent to reduce the distance of others.
    miss = distance.max(initial=0.0) * min(distance.shape) + 1.0
    true, learned = linear_sum_assignment(distance + miss * ~close)
    recovered = np.zeros(len(log_true), dtype=bool)
    recovered[true] = close[true, learned]
    return np.column_stack([true, learned]), recovered


def edge_f1(true_structure: Any, structure: Any) -> float:
    """F1 score of the edges of a bipartite structure.

    Latents have no order, so the learned rows are first matched with the true ones
    to maximise the number of common edges; the numbers of rows may differ. Edges of
    latents without a partner count as false or as missed edges.

    Parameters
    ----------
    true_structure : {array-like, sparse matrix} of shape (n_true, n_features)
        Nonzero where the true network has an edge.
    structure : {array-like, sparse matrix} of shape (n_learned, n_features)
        Nonzero where the learned network has an edge.

    Returns
    -------
    f1 : float
        Harmonic mean of precision and recall; 1 if neither structure has an edge.

    Examples
    --------
    >>> from sklearn_latent.metrics import edge_f1
    >>> edge_f1([[1, 1, 0], [0, 1, 1]], [[0, 1, 1], [1, 1, 0]])
    1.0
    >>> round(edge_f1([[1, 1, 0], [0, 1, 1]], [[1, 1, 0]]), 3)
    0.667
    """
    true = _check_structure(true_structure, "true_structure")
    learned = _check_structure(structure, "structure")
    _check_same_width(true, learned, "true_structure", "structure")
    n_edges = true.sum() + learned.sum()
    if n_edges == 0:
        return 1.0
    common = true @ learned.T
    return float(2 * common[linear_sum_assignment(-common)].sum() / n_edges)


def structural_hamming_distance(true: Any, learned: Any) -> tuple[int, int]:
    """Count the edges by which two graphs with latents differ.

    A missing, extra or reversed edge, and an edge that is directed in one graph only,
    each count 1. Latents have no order, so the smallest count over all relabellings of
    the latents is taken (Algorithm 2 of [1]_): exactly up to 8 latents, above with the
    assignment that has the fewest differences of edges into features. The numbers of
    latents may differ; edges of a latent without a partner are missing or extra.

    Parameters
    ----------
    true, learned : graph, fitted estimator, tuple of matrices, or adjacency matrix
        A `TemporalGraph` (``graph_``), an estimator that has one, matrices
        ``(structure, intra)`` or ``(structure, intra, inter)`` as in
        `TemporalGraph`, or an adjacency matrix with ``[i, j]`` = i -> j, both =
        undirected, of the features, which have no children, followed by the latents,
        which have. A matrix that is not square is a structure alone.

    Returns
    -------
    shd : int
        Number of differing edges.
    o_shd : int
        Number of differing edges into features. Among relabellings with the smallest
        `shd`, the smallest `o_shd` is taken.

    References
    ----------
    .. [1] Halbersberg, D., Lerner, B. (2020). Local to global learning of a latent
       dynamic Bayesian network. ECAI.

    Examples
    --------
    >>> from sklearn_latent.metrics import structural_hamming_distance
    >>> true = [[1, 1, 0, 0], [0, 0, 1, 1]], [[0, 1], [0, 0]]
    >>> renamed = [[0, 0, 1, 1], [1, 1, 0, 0]], [[0, 0], [1, 0]]
    >>> structural_hamming_distance(true, renamed)
    (0, 0)
    >>> learned = [[0, 0, 1, 1], [1, 0, 0, 0]], [[0, 1], [1, 0]]
    >>> structural_hamming_distance(true, learned)
    (2, 1)
    """
    # In an adjacency matrix a latent without edges looks like a feature, so the number
    # of features is the smaller of the two.
    a, b = _read_graph(true, "true"), _read_graph(learned, "learned")
    n_observed = min(_n_leaves(a), _n_leaves(b))
    a = _graph_matrices(a, "true", n_observed)
    b = _graph_matrices(b, "learned", n_observed)
    _check_same_width(a[0], b[0], "true", "learned")
    n = max(len(a[0]), len(b[0]))
    a, b = _padded(a, n), _padded(b, n)
    into_features = (a[0][:, None] != b[0][None]).sum(axis=2)
    if n <= MAX_PERMUTED:
        orders = np.array(list(permutations(range(n))), dtype=int)
    else:
        orders = linear_sum_assignment(into_features)[1][np.newaxis]
    observed, total = _distances(a, b, into_features, orders)
    # Lexicographic: the paper leaves ties to the order of the permutations.
    best = np.lexsort((observed, total))[0]
    return int(total[best]), int(observed[best])


def _read_graph(graph, name: str) -> list[np.ndarray]:
    """Matrices of whatever was given; one alone may be an adjacency matrix."""
    graph = getattr(graph, "graph_", graph)
    if all(hasattr(graph, part) for part in ("structure", "intra", "inter")):
        graph = graph.structure, graph.intra, graph.inter
    matrices = graph if isinstance(graph, tuple) else (graph,)
    dense = [m.toarray() if sparse.issparse(m) else m for m in matrices]
    edges = [check_numbers(name, matrix) != 0 for matrix in dense]
    if not 1 <= len(edges) <= 3 or any(matrix.ndim != 2 for matrix in edges):
        raise ValueError(
            f"{name} must be a graph, (structure, intra[, inter]) or an adjacency "
            f"matrix, got arrays of shapes {[matrix.shape for matrix in edges]}."
        )
    if isinstance(graph, tuple) and len(edges) == 1:
        # In a tuple it is a structure matrix, even if it is square.
        edges.append(np.zeros((len(edges[0]), len(edges[0])), dtype=bool))
    return edges


def _n_leaves(matrices) -> int:
    """Number of features: of an adjacency matrix, leading nodes without children."""
    first = matrices[0]
    if len(matrices) > 1 or first.shape[0] != first.shape[1]:
        return first.shape[1]
    parents = np.flatnonzero(first.any(axis=1))
    return int(parents[0]) if len(parents) else len(first)


def _graph_matrices(matrices, name: str, n_observed: int):
    """Structure, intra-slice and inter-slice matrices."""
    if len(matrices) == 1:
        matrices = _split_adjacency(matrices[0], name, n_observed)
    n = len(matrices[0])
    zeros = [np.zeros((n, n), dtype=bool)] * 2
    structure, intra, inter = [*matrices, *zeros][:3]
    if intra.shape != (n, n) or inter.shape != (n, n):
        raise ValueError(
            f"{name} must have a structure matrix with one row per latent, and "
            "square matrices of edges between latents, got shapes "
            f"{[matrix.shape for matrix in matrices]}."
        )
    return structure, intra, inter


def _split_adjacency(adjacency, name: str, n_observed: int) -> list:
    """Cut an adjacency matrix of features, then latents, into blocks."""
    if adjacency.shape[0] != adjacency.shape[1]:
        return [adjacency]
    if np.any(adjacency.diagonal()):
        raise ValueError(f"{name} must have no edge from a node to itself, got one.")
    n = min(n_observed, len(adjacency))
    if np.any(adjacency[:, :n][:n]):
        raise ValueError(
            f"{name} must list features, which have no children, before latents."
        )
    return [adjacency[n:, :n], adjacency[n:, n:]]


def _padded(matrices, n: int):
    """The same graph with latents without edges at the end, n in all."""
    after = (0, n - len(matrices[0]))
    return [
        np.pad(m, (after, columns))
        for m, columns in zip(matrices, ((0, 0), after, after), strict=True)
    ]


def _distances(a, b, into_features, orders):
    """Differing edges into features, and in all, for each relabelling of `b`."""
    n = orders.shape[1]
    observed = into_features[np.arange(n), orders].sum(axis=1)
    i, k = np.triu_indices(n, 1)
    kind_a, kind_b = (m[1] + 2 * m[1].T for m in (a, b))
    within = (kind_b[orders[:, i], orders[:, k]] != kind_a[i, k]).sum(axis=1)
    i, k = np.indices((n, n)).reshape(2, -1)
    between = (b[2][orders[:, i], orders[:, k]] != a[2][i, k]).sum(axis=1)
    return observed, observed + within + between


def _log_failure(failure, name: str) -> np.ndarray:
    """Validate failures and take their logarithm."""
    with within_floats(name):
        failure = check_array(
            failure, dtype=np.float64, ensure_min_samples=0, input_name=name
        )
    check_probabilities(name, failure)
    return np.log(np.maximum(failure, SMALLEST_FAILURE))


def _check_structure(structure, name: str) -> np.ndarray:
    """Validate a structure; float, for the products that count common edges."""
    if sparse.issparse(structure):
        structure = structure.toarray()
    with within_floats(name):
        structure = check_array(structure, ensure_min_samples=0, input_name=name)
    return (structure != 0).astype(np.float64)


def _check_same_width(a, b, name_a: str, name_b: str) -> None:
    """Both must be over the same features."""
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"{name_a} and {name_b} must have the same number of columns (features), "
            f"got {a.shape[1]} and {b.shape[1]}."
        )
