"""Clusters of rows and their pairwise comparison, the raw material of LPCC."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .._classes.latent_class import Rows

# Rows that differ from a more frequent one in no more features than this are noise
# around it: a change of a latent shows in at least three features.
NOISE_RADIUS = 2

# Clusters that are kept, the largest ones; pairs of them are compared.
MAX_CLUSTERS = 400


@dataclass(frozen=True)
class Clusters:
    """Groups of similar rows.

    centers: the category of each feature that stands for the cluster. Categories have
        no order, so this is the most frequent row and not a rounded mean, (n_clusters,
        n_features)
    sizes: weight of the rows of each cluster, the largest first, (n_clusters,)
    """

    centers: np.ndarray
    sizes: np.ndarray

    def __len__(self):
        return len(self.sizes)

    @property
    def is_major(self) -> np.ndarray:
        """Clusters larger than the mean."""
        if not len(self):
            return np.zeros(0, dtype=bool)
        return self.sizes >= self.sizes.mean()

    def subset(self, chosen) -> Clusters:
        """Some of the clusters."""
        return Clusters(self.centers[chosen], self.sizes[chosen])


def cluster_rows(rows: Rows) -> Clusters:
    """Group rows around the most frequent ones."""
    complete = (rows.codes >= 0).all(axis=1)
    codes, weights = rows.codes[complete], rows.weights[complete]
    n_features = codes.shape[1]
    if not len(codes) or not n_features:
        return Clusters(np.zeros((0, n_features), dtype=int), np.zeros(0))
    order = np.lexsort((*codes.T[::-1], -weights))
    codes, weights = codes[order], weights[order]
    radius = min(NOISE_RADIUS, (n_features - 1) // 2)
    centers: list[int] = []
    # Among many rows those that occur once are noise; few can all be looked at.
    few = len(codes) <= MAX_CLUSTERS
    for i in range(len(codes)) if few else np.flatnonzero(weights > weights.min()):
        if len(centers) == MAX_CLUSTERS:
            break
        if not centers or (codes[centers] != codes[i]).sum(axis=1).min() > radius:
            centers.append(int(i))
    if not centers:
        centers = [0]
    chosen = codes[centers]
    nearest = np.concatenate(
        [
            (part[:, None] != chosen[None]).sum(axis=2).argmin(axis=1)
            for part in np.array_split(codes, max(1, len(codes) // 2000))
        ]
    )
    sizes = np.bincount(nearest, weights, minlength=len(chosen))
    order = np.argsort(-sizes, kind="stable")
    return Clusters(chosen[order], sizes[order])


def compare_pairs(centers) -> np.ndarray:
    """Pairwise cluster comparison (PCC).

    centers (n_clusters, n_features) -> changes (n_pairs, n_features).
    """
    n_clusters, n_features = centers.shape
    if n_clusters < 2:
        return np.zeros((0, n_features), dtype=bool)
    first, second = np.array(list(combinations(range(n_clusters), 2))).T
    return centers[first] != centers[second]


def maximal_sets(changes) -> list[tuple[int, ...]]:
    """Maximal sets of observed variables (MSO): features that always change together.

    changes (n_pairs, n_features).
    """
    groups: dict[bytes, list[int]] = {}
    for feature, column in enumerate(changes.T):
        if column.any():
            groups.setdefault(np.packbits(column).tobytes(), []).append(feature)
    return sorted(tuple(group) for group in groups.values())


def major_per_configuration(clusters: Clusters, sets, majors: Clusters) -> Clusters:
    """Choose the largest cluster for every joint configuration of some latents."""
    keys = np.zeros((len(clusters), len(sets)), dtype=int)
    for place, features in enumerate(sets):
        states = np.unique(majors.centers[:, features], axis=0)
        same = (clusters.centers[:, None, list(features)] == states[None]).all(axis=2)
        keys[:, place] = np.where(same.any(axis=1), same.argmax(axis=1), -1)
    chosen: dict[tuple, int] = {}
    # Clusters come largest first, so the first of a configuration is the largest.
    for cluster, key in enumerate(map(tuple, keys)):
        if -1 not in key:
            chosen.setdefault(key, cluster)
    return clusters.subset(sorted(chosen.values()))
