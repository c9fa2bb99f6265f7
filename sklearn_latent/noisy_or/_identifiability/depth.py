"""Which latents of a known structure quartet tests would discover, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .schedule import check_structure, open_pairs


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
