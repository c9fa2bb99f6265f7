"""Both stages of learning by pairwise cluster comparison (Asbeh and Lerner, 2016)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.spatial.distance import squareform

from ._hidden_classes import Rows
from ._local_graphs import LocalGraph
from ._panels.panel import Panel

# Rows that differ from a more frequent one in no more features than this are noise
# around it: a change of a latent shows in at least three features.
NOISE_RADIUS = 2

# Clusters that are kept, the largest ones; pairs of them are compared.
MAX_CLUSTERS = 400

# Comparisons of a row with another that a step of the search for clusters may make, and
# steps: the search starts from all of few rows and from the most frequent of many.
MAX_COMPARISONS, MIN_STARTS = 2e7, 200
MAX_STEPS = 10

# Passes of the first stage.
MAX_PASSES = 9

# Share of comparisons that count as errors: those in which just one of two features of
# a latent changes (2 to 14% in G2 from 2,000 sequences on, 25% or more for features of
# two latents), and those in which a latent that is no parent seems to change a collider
# (up to 19% in G3; parents 41% or more).
ERRORS = 0.2

# How often a collider changes alone, as a share of its changes with one companion (up
# to 8% in G3; other latents 11% or more).
ALONE = 0.1


@dataclass(frozen=True)
class Clusters:
    """Groups of similar rows.

    centers: the most frequent category of each feature in the cluster. Categories have
        no order, so this takes the place of a rounded mean, (n_clusters, n_features)
    sizes: weight of the rows of each cluster, the largest first, (n_clusters,)
    """

    centers: np.ndarray
    sizes: np.ndarray

    def __len__(self):
        return len(self.sizes)

    @property
    def is_major(self) -> np.ndarray:
        """Clusters before the steepest drop in size.

        There is one of them for each configuration of the exogenous latents; in others
        a latent did not follow its parents. The mean size does not tell them apart: the
        more rows, the more of the others are larger than the mean.
        """
        above = self.sizes >= self.sizes.sum() / max(len(self), 1)
        size, after = self.sizes[above], np.append(self.sizes[1:], 1.0)[above]
        # Drops within two standard deviations are chance.
        drops = np.where(size - after > 2.0 * np.sqrt(size + after), size / after, 0.0)
        if not drops[1:].any():
            return above
        return np.arange(len(self)) <= drops[1:].argmax() + 1

    def minors(self, majors: Clusters) -> Clusters:
        """Those that are not major; not noise either, which makes the smaller ones."""
        same = (self.centers[:, None] == majors.centers[None]).all(axis=2)
        rest = self.subset(~same.any(axis=1))
        return rest.subset(rest.sizes >= rest.sizes.sum() / max(len(rest), 1))

    def subset(self, chosen) -> Clusters:
        """Some of the clusters."""
        return Clusters(self.centers[chosen], self.sizes[chosen])


def cluster_rows(rows: Rows) -> Clusters:
    """Group rows around those that many others resemble."""
    complete = (rows.codes >= 0).all(axis=1)
    codes, weights = rows.codes[complete], rows.weights[complete]
    n_features = codes.shape[1]
    if not len(codes) or not n_features:
        return Clusters(np.zeros((0, n_features), dtype=int), np.zeros(0))
    order = np.lexsort((*codes.T[::-1], -weights))
    search = _CenterSearch(Rows(codes[order], weights[order], rows.n_categories))
    return search.clusters(search.peaks())


class _CenterSearch:
    """Search for the centers of the clusters of rows, the most frequent row first."""

    def __init__(self, rows: Rows):
        self.rows = rows
        self.radius = min(NOISE_RADIUS, (rows.codes.shape[1] - 1) // 2)
        self._cells = self._one_hot(rows.codes)

    def peaks(self) -> np.ndarray:
        """Rows at which the number of similar rows is largest, the largest first.

        Each start moves to the most frequent categories of the rows around it, until
        it rests.
        """
        n = len(self.rows.codes)
        centers = self.rows.codes[: int(max(MIN_STARTS, MAX_COMPARISONS // n))]
        for _ in range(MAX_STEPS):
            moved = np.unique(self._step(centers)[0], axis=0)
            if np.array_equal(moved, centers):
                break
            centers = moved
        near = self._step(centers)[1]
        # Among many rows those without others around them are noise.
        crowded = near > self.rows.weights.min()
        if n > MAX_CLUSTERS and crowded.any():
            centers, near = centers[crowded], near[crowded]
        centers = centers[np.argsort(-near, kind="stable")]
        kept: list[int] = []
        for i, center in enumerate(centers):
            if len(kept) == MAX_CLUSTERS:
                break
            if not kept or (centers[kept] != center).sum(axis=1).min() > self.radius:
                kept.append(i)
        return centers[kept]

    def clusters(self, centers) -> Clusters:
        """Rows with the center that they are nearest to."""
        nearest = (self._cells @ self._one_hot(centers).T).argmax(axis=1)
        sizes = np.bincount(nearest, self.rows.weights, minlength=len(centers))
        order = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        return Clusters(centers[order], sizes[order])

    def _step(self, centers):
        """Most frequent categories around each center, and the weight of rows there."""
        limit = self.rows.codes.shape[1] - self.radius
        modes, near = [], []
        for part in np.array_split(centers, len(centers) // 500 + 1):
            members = (self._one_hot(part) @ self._cells.T >= limit) * self.rows.weights
            modes.append(self._modes(members))
            near.append(members.sum(axis=1))
        return np.concatenate(modes), np.concatenate(near)

    def _modes(self, members) -> np.ndarray:
        """Most frequent categories of rows with weights (n_sets, n_rows)."""
        tables = self.rows.layout.split(members @ self._cells)
        return np.column_stack([table.argmax(axis=1) for table in tables])

    def _one_hot(self, codes) -> np.ndarray:
        """Zeros and ones; single precision is exact for counts of features."""
        return self.rows.layout.indicators(codes).toarray().astype(np.float32)


def compare_pairs(clusters: Clusters) -> tuple[np.ndarray, np.ndarray]:
    """Pairwise cluster comparison (PCC), (n_pairs, n_features), and its weights.

    A comparison is worth as much as the smaller of its clusters.
    """
    first, second = np.triu_indices(len(clusters), 1)
    changes = clusters.centers[first] != clusters.centers[second]
    return changes, np.minimum(clusters.sizes[first], clusters.sizes[second])


def maximal_sets(changes, weights) -> list[tuple[int, ...]]:
    """Maximal sets of observed variables (MSO), which change together."""
    moving = np.flatnonzero(changes.any(axis=0))
    if len(moving) < 2:
        return [(int(feature),) for feature in moving]
    apart = _apart(changes[:, moving], weights)
    tree = linkage(squareform(apart, checks=False), "average")
    labels = fcluster(tree, ERRORS, "distance")
    return sorted(
        tuple(moving[labels == label].tolist()) for label in np.unique(labels)
    )


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
    minors = clusters.minors(majors)
    pieces = [split_latent(features, minors, majors) for features in sets]
    sizes = np.array([len(part) for part, _ in pieces], dtype=int)
    first = np.concatenate([[0], np.cumsum(sizes)])
    adjacency = np.zeros((first[-1], first[-1]), dtype=bool)
    for place, (part, within) in enumerate(pieces):
        own = slice(first[place], first[place] + len(part))
        adjacency[own, own] = within
    for child, sources in parents.items():
        for parent in sources:
            rest = [f for other in sources if other != parent for f in sets[other]]
            follows = [
                _weight_of_followers(sets[child], [*piece, *rest], minors, majors)
                for piece in pieces[parent][0]
            ]
            tail = first[parent] + int(np.argmax(follows))
            adjacency[tail, first[child]] = True
    return [group for part, _ in pieces for group in part], adjacency


def _weight_of_followers(child, parents, minors: Clusters, majors: Clusters) -> float:
    """Weight of the minor clusters whose collider is as its parents would have it.

    Where a latent did not follow its own parent, a collider shows which of the two it
    depends on.
    """
    features = [*child, *parents]
    same = minors.centers[:, None, features] == majors.centers[None, :, features]
    return float(minors.sizes @ same.all(axis=2).any(axis=1))


def _first_stage(clusters: Clusters):
    """Exogenous latents and latent colliders.

    Returns the sets, the major clusters behind them, and the parents of colliders.
    """
    majors = clusters.subset(clusters.is_major)
    sets: list[tuple[int, ...]] = []
    parents: dict[int, list[int]] = {}
    for _ in range(MAX_PASSES):
        changes, weights = compare_pairs(majors)
        found = maximal_sets(changes, weights)
        parents = find_colliders(changes, found, weights)
        if found == sets:
            break
        sets = found
        exogenous = [s for place, s in enumerate(sets) if place not in parents]
        if not exogenous:
            break
        majors = major_per_configuration(clusters, exogenous, majors)
    return sets, majors, parents


def find_colliders(changes, sets, weights) -> dict[int, list[int]]:
    """Latents that change only together with others, now with one, now with another."""
    if not sets:
        return {}
    # A set changes where most of its features do.
    moves = np.column_stack(
        [changes[:, features].mean(axis=1) > 0.5 for features in sets]
    )
    colliders = {}
    for j in range(len(sets)):
        n_others = moves.sum(axis=1) - moves[:, j]
        alone = weights @ (moves[:, j] & (n_others == 0))
        one = weights[n_others == 1] @ moves[n_others == 1]
        both = weights[n_others == 1] @ (moves & moves[:, [j]])[n_others == 1]
        both[j] = 0.0
        if alone > ALONE * both.sum():
            continue
        companions = np.flatnonzero(both > ERRORS * one).tolist()
        if len(companions) >= 2:
            colliders[j] = companions
    # A parent that is itself such a collider would close a cycle.
    return {
        j: kept
        for j, companions in colliders.items()
        if len(kept := [i for i in companions if i not in colliders]) >= 2
    }


def split_latent(features, minors: Clusters, majors: Clusters):
    """Second stage: split latents that are no colliders from the one they follow.

    A minor cluster that agrees with a major one on all other features shows a latent
    that did not follow its parent. Features that change together in such comparisons
    measure the same latent.
    """
    alone = [features], np.zeros((1, 1), dtype=bool)
    own = np.array(features)
    changes, weights = _minor_changes(own, minors, majors)
    sets = [list(s) for s in maximal_sets(changes, weights)]
    found = [feature for group in sets for feature in group]
    sets += [[feature] for feature in range(len(own)) if feature not in found]
    apart = _apart(changes, weights)
    large = [group for group in sets if len(group) > 1]
    if len(large) < 2:
        return alone
    for (single,) in (group for group in sets if len(group) == 1):
        place = int(np.argmin([apart[single, group].mean() for group in large]))
        large[place] = [*large[place], single]
    large = sorted(large, key=min)
    between = np.array([[apart[np.ix_(a, b)].mean() for b in large] for a in large])
    return [tuple(np.sort(own[group]).tolist()) for group in large], _paths(between)


def _minor_changes(own, minors: Clusters, majors: Clusters):
    """Which features change between a minor cluster and a major one, and its size."""
    others = np.setdiff1d(np.arange(minors.centers.shape[1]), own)
    minor, major = np.nonzero(
        (minors.centers[:, None, others] == majors.centers[None, :, others]).all(axis=2)
    )
    changes = minors.centers[minor][:, own] != majors.centers[major][:, own]
    tell = changes.any(axis=1) & ~changes.all(axis=1)
    return changes[tell], minors.sizes[minor][tell]


def _apart(changes, weights) -> np.ndarray:
    """Share of comparisons in which just one of two features changes."""
    moves = changes.astype(float)
    one = (weights[:, None] * moves).T @ (1.0 - moves)
    return (one + one.T) / max(weights.sum(), 1.0)


def _paths(apart) -> np.ndarray:
    """Join sets that change together most often; direct the edges if there are many."""
    n = len(apart)
    # Distances must not be zero, which stands for no edge.
    tree = minimum_spanning_tree(np.triu(1.0 + apart, 1)).toarray() > 0
    joined = tree | tree.T
    if n - 1 <= 2:
        return joined
    source = int(np.argmax(joined.sum(axis=0)))
    order, before = breadth_first_order(joined, source)
    directed = np.zeros_like(joined)
    directed[before[order[1:]], order[1:]] = True
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
    members = np.zeros((len(sets), n_slices, n_observed), dtype=bool)
    for own, features in zip(members, sets, strict=True):
        own.flat[list(features)] = True
    present = members.any(axis=2)
    origin, slices = np.nonzero(present)
    pairs = np.ix_(origin, origin)
    same = origin[:, None] == origin
    # An edge is one within slices, unless the two latents share none.
    overlap = present.astype(int) @ present.T
    edges = edges[pairs] & ((slices[:, None] == slices) | (overlap[pairs] == 0))
    adjacency = np.where(same, slices[:, None] < slices, edges)
    return LocalGraph(members[present], slices, adjacency)
