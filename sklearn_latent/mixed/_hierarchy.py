"""Which latents belong together: a hierarchy by their dependence."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform

from ._classes.dependence import mutual_information, pair_counts


def latent_hierarchy(states, cardinality, weights) -> np.ndarray:
    """Complete linkage of latents by one less their normalised mutual information.

    states (n, n_latents), the most probable ones; weights (n,) -> (n_latents - 1, 4).
    """
    shown = [np.eye(n)[own] for n, own in zip(cardinality, states.T, strict=True)]
    counts = pair_counts(np.concatenate(shown, axis=1), weights)
    distance = 1.0 - mutual_information(counts, cardinality)[1]
    np.fill_diagonal(distance, 0.0)
    return linkage(squareform(distance, checks=False), "complete")


def cut_hierarchy(tree, n_groups: int | None) -> np.ndarray:
    """Group of each latent, numbered in order of appearance.

    None: as many groups as are left before the longest step between two unions.
    """
    if not len(tree):
        return np.zeros(1, dtype=int)
    if n_groups is None:
        # The last height is that of latents that are independent.
        steps = np.diff(np.append(tree[:, 2], 1.0))
        n_groups = len(tree) - int(np.argmax(steps))
    # Not fcluster, which SciPy 1.13 does not cut into one group.
    labels = cut_tree(tree, n_groups).ravel()
    _, first, index = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[index]
