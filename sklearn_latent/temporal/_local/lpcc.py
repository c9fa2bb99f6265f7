"""Both stages of learning by pairwise cluster comparison (Asbeh and Lerner, 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from .._classes.latent_class import Rows
from .._panels.panel import Panel
from .local_to_global import LocalGraph

# Rows that differ from a more frequent one in no more features than this are noise
# around it: a change of a latent shows in at least three features.
NOISE_RADIUS = 2

# Clusters that are kept, the largest ones; pairs of them are compared.
MAX_CLUSTERS = 400

# Passes of the first stage.
MAX_PASSES = 9

# Features from which on a latent may hide another.
MIN_CHILDREN_TO_SPLIT = 4


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
    """Pairwise cluster comparison (PCC), (n_pairs, n_features)."""
    n_clusters, n_features = centers.shape
    if n_clusters < 2:
        return np.zeros((0, n_features), dtype=bool)
    first, second = np.array(list(combinations(range(n_clusters), 2))).T
    return centers[first] != centers[second]


def maximal_sets(changes) -> list[tuple[int, ...]]:
    """Maximal sets of observed variables (MSO), which always change together."""
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


def learn_by_comparison(rows: Rows) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Both stages of LPCC on a table: groups of features, and edges between them."""
    clusters = cluster_rows(rows)
    sets, majors, parents = _first_stage(clusters)
    pieces = [split_latent(features, clusters, majors) for features in sets]
    sizes = np.array([len(part) for part, _ in pieces], dtype=int)
    first = np.concatenate([[0], np.cumsum(sizes)])
    adjacency = np.zeros((first[-1], first[-1]), dtype=bool)
    for place, (part, within) in enumerate(pieces):
        own = slice(first[place], first[place] + len(part))
        adjacency[own, own] = within
    # Edges of the first stage join the first pieces, which stand for the original.
    for child, sources in parents.items():
        for parent in sources:
            adjacency[first[parent], first[child]] = True
    return [group for part, _ in pieces for group in part], adjacency


def _first_stage(clusters: Clusters):
    """Exogenous latents and latent colliders.

    Returns the sets, the major clusters behind them, and the parents of colliders.
    """
    majors = clusters.subset(clusters.is_major)
    sets: list[tuple[int, ...]] = []
    parents: dict[int, list[int]] = {}
    for _ in range(MAX_PASSES):
        changes = compare_pairs(majors.centers)
        found = maximal_sets(changes)
        parents = find_colliders(changes, found)
        if found == sets:
            break
        sets = found
        exogenous = [s for place, s in enumerate(sets) if place not in parents]
        if not exogenous:
            break
        majors = major_per_configuration(clusters, exogenous, majors)
    return sets, majors, parents


def find_colliders(changes, sets) -> dict[int, list[int]]:
    """Latents that change only together with others, now with one, now with another."""
    if not sets:
        return {}
    moves = np.column_stack([changes[:, features[0]] for features in sets])
    n_moving = moves.sum(axis=1)
    colliders = {}
    for j in range(len(sets)):
        if (moves[:, j] & (n_moving == 1)).any():
            continue
        both = moves[moves[:, j] & (n_moving == 2)]
        companions = [i for i in range(len(sets)) if i != j and both[:, i].any()]
        if len(companions) >= 2:
            colliders[j] = companions
    # A parent that is itself such a collider would close a cycle.
    return {
        j: kept
        for j, companions in colliders.items()
        if len(kept := [i for i in companions if i not in colliders]) >= 2
    }


def split_latent(features, clusters: Clusters, majors: Clusters):
    """Second stage: split latents that are no colliders from the one they follow.

    A minor cluster that agrees with a major one on all other features shows a latent
    that did not follow its parent. Features that always change together in such
    comparisons measure the same latent.
    """
    alone = [features], np.zeros((1, 1), dtype=bool)
    own = np.array(features)
    if len(own) < MIN_CHILDREN_TO_SPLIT or not len(majors):
        return alone
    others = np.setdiff1d(np.arange(clusters.centers.shape[1]), own)
    changes = []
    is_major = (clusters.centers[:, None] == majors.centers[None]).all(axis=2)
    for center in clusters.centers[~is_major.any(axis=1)]:
        near = (majors.centers[:, others] == center[others]).all(axis=1)
        changes.append(majors.centers[near][:, own] != center[own])
    table = np.concatenate(changes) if changes else np.zeros((0, len(own)), bool)
    table = table[table.any(axis=1) & ~table.all(axis=1)]
    sets = maximal_sets(table)
    covered = [i for group in sets for i in group]
    sets += [(i,) for i in range(len(own)) if i not in covered]
    large = [group for group in sets if len(group) > 1]
    if len(large) < 2:
        return alone
    columns = np.column_stack([table[:, group[0]] for group in large]).astype(float)
    for group in sets:
        if len(group) == 1:
            apart = np.abs(columns - table[:, group].astype(float)).sum(axis=0)
            place = int(np.argmin(apart))
            large[place] = tuple(sorted((*large[place], *group)))
    return [tuple(own[list(group)].tolist()) for group in large], _paths(columns)


def _paths(columns) -> np.ndarray:
    """Join sets that change together most often; direct the edges if there are many."""
    n = columns.shape[1]
    # Distances must not be zero, which stands for no edge.
    apart = 1.0 + np.abs(columns[:, :, None] - columns[:, None]).sum(axis=0)
    tree = minimum_spanning_tree(np.triu(apart, 1)).toarray() > 0
    joined = tree | tree.T
    if n - 1 <= 2:
        return joined
    source = int(np.argmax(joined.sum(axis=0)))
    directed = np.zeros_like(joined)
    seen, front = {source}, [source]
    while front:
        node = front.pop()
        for child in np.flatnonzero(joined[node]):
            if int(child) not in seen:
                directed[node, child] = True
                seen.add(int(child))
                front.append(int(child))
    return directed


def lpcc_graph(panel: Panel) -> LocalGraph:
    """Local graph of one or two slices by LPCC."""
    n, n_slices, n_observed = panel.codes.shape
    rows = Rows.of(
        panel.codes.reshape(n, n_slices * n_observed),
        panel.weights,
        np.tile(panel.n_categories, n_slices),
    )
    sets, edges = learn_by_comparison(rows)
    members, slices, origin = [], [], []
    for place, features in enumerate(sets):
        for t in range(n_slices):
            row = np.zeros(n_observed, dtype=bool)
            row[[f - t * n_observed for f in features if f // n_observed == t]] = True
            if row.any():
                members.append(row)
                slices.append(t)
                origin.append(place)
    count = len(members)
    adjacency = np.zeros((count, count), dtype=bool)
    for a in range(count):
        for b in range(count):
            if origin[a] == origin[b]:
                adjacency[a, b] = slices[a] < slices[b]
            elif edges[origin[a], origin[b]]:
                shared = {slices[i] for i in range(count) if origin[i] == origin[a]} & {
                    slices[i] for i in range(count) if origin[i] == origin[b]
                }
                adjacency[a, b] = slices[a] == slices[b] if shared else True
    structure = np.array(members, dtype=bool).reshape(count, n_observed)
    return LocalGraph(structure, np.array(slices, dtype=int), adjacency)
