"""What infinite data would tell: parameters of a known structure, and structures."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.validation import check_count, check_random_state
from ._schedule import check_structure, open_pairs

# Arithmetic modulo a prime: products of two residues fit 64 bits, and the rank of a
# matrix of polynomials at a random point is exact, with no tolerance to choose. It is
# too small only with a probability of about degree / prime, below 1e-6 here.
PRIME = 2**31 - 1


def _inverse(values):
    """Inverse modulo the prime, by Fermat's little theorem."""
    result = np.ones_like(values)
    power, exponent = values % PRIME, PRIME - 2
    while exponent:
        if exponent & 1:
            result = result * power % PRIME
        power = power * power % PRIME
        exponent >>= 1
    return result


def _moment_gradients(prior, failure, edges, sets):
    """Gradients of the logarithms of negative moments, modulo the prime.

    Rows are sets of one size; columns are priors, edges, then leaks. The logarithm
    has the same rank as the moment, whose value is not zero at a random point.
    """
    members = failure[:, sets]  # latents x sets x size
    product = np.ones(members.shape[:2], dtype=np.int64)
    for member in np.moveaxis(members, 2, 0):
        product = product * member % PRIME
    inverse = _inverse((1 - prior[:, None] + prior[:, None] * product) % PRIME)
    d_prior = (product - 1) * inverse % PRIME

    shared = prior[:, None] * product % PRIME * inverse % PRIME
    d_failure = np.zeros((len(sets), *failure.shape), dtype=np.int64)
    inverse_failure = _inverse(failure)
    d_leak = np.zeros((len(sets), failure.shape[1]), dtype=np.int64)
    rows = np.arange(len(sets))
    for column in sets.T:
        d_failure[rows, :, column] = (shared * inverse_failure[:, column] % PRIME).T
        d_leak[rows, column] = 1  # d log(1 - leak) is a parameter as good as the leak
    return np.concatenate([d_prior.T, d_failure[:, edges], d_leak], axis=1)


class _RowSpace:
    """Row space of a growing matrix modulo the prime, in echelon form."""

    def __init__(self, n_columns):
        self.rows = np.zeros((0, n_columns), dtype=np.int64)
        self.pivots: list[int] = []

    def add(self, matrix):
        """Reduce new rows by the old ones, then eliminate among themselves."""
        matrix = matrix % PRIME
        for row, pivot in zip(self.rows, self.pivots, strict=True):
            matrix = (matrix - matrix[:, pivot, None] * row) % PRIME
        new = []
        while len(matrix := matrix[matrix.any(axis=1)]):
            pivot = int(np.flatnonzero(matrix[0])[0])
            row = matrix[0] * _inverse(matrix[0, pivot]) % PRIME
            matrix = (matrix[1:] - matrix[1:, pivot, None] * row) % PRIME
            new.append(row)
            self.pivots.append(pivot)
        self.rows = np.concatenate([self.rows, *[row[None] for row in new]])


def identifiability_order(
    structure: Any, *, max_order: int | None = None, random_state: Any = None
) -> int:
    """Smallest order of moments that makes the parameters locally identifiable.

    The moments up to an order determine the parameters locally, at almost every
    parameter value, if their Jacobian has full rank at a random one ([1]_, section
    3.3, after [2]_). The rank is computed exactly, in the integers modulo a prime.

    Parameters
    ----------
    structure : array-like or sparse matrix of shape (n_latents, n_features)
        True where a latent is a parent of a feature.
    max_order : int or None, default=None
        Largest order to try; None: the number of features. The number of moments grows
        as ``n_features ** max_order``.
    random_state : int, RandomState instance or None, default=None
        Where the random parameter value comes from.

    Returns
    -------
    order : int
        The order, or -1 if none up to `max_order` suffices.

    References
    ----------
    .. [1] Halpern, Y. and Sontag, D. (2013). Unsupervised learning of noisy-or
       Bayesian networks. UAI.

    .. [2] Hsu, D., Kakade, S. M. and Liang, P. (2012). Identifiability and unmixing of
       latent parse trees. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.noisy_or import identifiability_order
    >>> identifiability_order(np.ones((1, 3)), random_state=0)
    3
    >>> identifiability_order(np.ones((2, 3)), random_state=0)
    -1
    """
    structure = check_structure(structure)
    n_latents, n_features = structure.shape
    check_count("max_order", max_order, optional=True)
    if max_order is None:
        max_order = n_features
    rng = check_random_state(random_state)
    prior = rng.randint(2, PRIME, size=n_latents, dtype=np.int64)
    failure = rng.randint(2, PRIME, size=structure.shape, dtype=np.int64)
    failure[~structure] = 1
    n_parameters = n_latents + int(structure.sum()) + n_features
    space = _RowSpace(n_parameters)
    for order in range(1, min(max_order, n_features) + 1):
        sets = np.array(list(combinations(range(n_features), order)))
        for start in range(0, len(sets), 2048):
            part = sets[start : start + 2048]
            space.add(_moment_gradients(prior, failure, structure, part))
            if len(space.pivots) == n_parameters:
                return order
    return -1


def quartet_depth(structure: Any) -> NDArray[np.float64]:
    """Round in which quartet tests discover each latent, given infinite data.

    A latent is discovered once four of its children are pairwise coupled by no other
    latent that is still undiscovered [1]_: the depths of Table 1 there.

    Parameters
    ----------
    structure : array-like or sparse matrix of shape (n_latents, n_features)
        True where a latent is a parent of a feature.

    Returns
    -------
    depth : ndarray of shape (n_latents,)
        0 for latents with a singly coupled quartet, 1 for those that have one once the
        former are subtracted, and so on; inf for latents never discovered.

    See Also
    --------
    find_schedule : The same question for parameters, if the structure is known.

    References
    ----------
    .. [1] Jernite, Y., Halpern, Y. and Sontag, D. (2013). Discovering hidden variables
       in noisy-or networks using quartet tests. NIPS.

    Examples
    --------
    Both latents have four children, but the second has only two to itself.

    >>> from sklearn_latent.noisy_or import quartet_depth
    >>> quartet_depth([[1, 1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]])
    array([0., 1.])
    """
    structure = check_structure(structure)
    # Single precision counts exactly and multiplies fast.
    edges = structure.astype(np.float32)
    known = np.zeros_like(edges)
    depth = np.full(len(structure), np.inf)
    number = 0
    while True:
        found = [
            latent
            for latent in np.flatnonzero(np.isinf(depth))
            if _has_clique(edges, known, latent)
        ]
        if not found:
            return depth
        # Within a round nothing is subtracted yet.
        depth[found] = number
        known[found] = edges[found]
        number += 1


def _has_clique(edges, known, latent) -> bool:
    """Whether four children are pairwise coupled by no other unknown latent."""
    children = np.flatnonzero(edges[latent])
    if len(children) < 4:
        return False
    graph, _ = open_pairs(edges, known, latent, children)
    degree = graph.sum(axis=1)
    # Children with many open pairs most likely have a clique: look there first.
    for child in np.argsort(-degree, kind="stable"):
        if degree[child] < 3:
            return False
        around = np.flatnonzero(graph[child])
        near = graph[np.ix_(around, around)].astype(np.float32)
        if (near * (near @ near)).any():
            return True
    return False
