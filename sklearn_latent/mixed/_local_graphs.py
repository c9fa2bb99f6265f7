"""Graphs of windows of slices, and from these local graphs to one global graph.

Lines refer to Algorithm 1 of Halbersberg and Lerner (2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

import numpy as np

from .._core.graphs import is_acyclic
from ._graph import TemporalGraph
from ._panels.panel import Panel

# Pairs of slices that a local graph is learned from, at the least, and the number of
# local graphs, at the most: more would take time and show the same.
WINDOW_ROWS, MAX_WINDOWS = 100, 20


def windows(panel: Panel) -> list[Panel]:
    """Pairs of consecutive slices, or several of them where sequences are few."""
    n_pairs = panel.n_slices - 1
    if not n_pairs:
        return [panel]
    n_rows = max(float(panel.weights.sum()), 1.0)
    width = max(ceil(WINDOW_ROWS / n_rows), ceil(n_pairs / MAX_WINDOWS))
    n_windows = max(n_pairs // width, 1)
    ends = np.linspace(0, n_pairs, n_windows + 1).astype(int)
    return [
        panel.of_slices(slice(first, last + 1))
        for first, last in pairwise(ends.tolist())
    ]


@dataclass(frozen=True)
class LocalGraph:
    """A graph learned from two consecutive slices.

    structure: features of each local latent, (n_latents, n_observed)
    slices: 0 for a latent of the earlier slice, 1 for one of the later slice,
        (n_latents,)
    adjacency: ``[i, j]`` and not ``[j, i]`` is i -> j, both are an undirected edge,
        (n_latents, n_latents)
    """

    structure: np.ndarray
    slices: np.ndarray
    adjacency: np.ndarray

    @property
    def n_latents(self) -> int:
        """Number of latents in both slices."""
        return len(self.structure)

    @classmethod
    def of_tables(cls, structure, intra, inter=None) -> LocalGraph:
        """The local graph whose two slices are alike."""
        n = len(structure)
        if inter is None:
            return cls(structure, np.zeros(n, dtype=int), intra)
        adjacency = np.block([[intra, inter], [np.zeros((n, n), dtype=bool), intra]])
        slices = np.repeat([0, 1], n)
        return cls(np.concatenate([structure] * 2), slices, adjacency)

    def oriented(self) -> LocalGraph:
        """Apply the two rules that precede Algorithm 1.

        An edge between slices points forward in time. Where the later slice has a
        collider of latents, an undirected edge of the earlier slice between latents
        that measure the same is directed as in the collider.
        """
        adjacency = self.adjacency.copy()
        late = self.slices == 1
        # Forward in time: an edge from the later slice into the earlier one is turned.
        backward = adjacency & late[:, None] & ~late[None, :]
        adjacency |= backward.T
        adjacency &= ~backward
        directed = adjacency & ~adjacency.T
        for child in np.flatnonzero(late):
            parents = np.flatnonzero(directed[:, child])
            if len(parents) < 2:
                continue
            twin = self._twin(child)
            for parent in parents:
                other = self._twin(parent) if late[parent] else None
                if twin is None or other is None:
                    continue
                if adjacency[other, twin] and adjacency[twin, other]:
                    adjacency[twin, other] = False
        return LocalGraph(self.structure, self.slices, adjacency)

    def _twin(self, latent):
        """The latent of the earlier slice that shares most features, if any."""
        shared = (self.structure & self.structure[latent]).sum(axis=1)
        shared = np.where(self.slices == 0, shared, 0)
        return int(np.argmax(shared)) if shared.any() else None


@dataclass(frozen=True)
class Support:
    """Share of the local graphs behind each possible edge of the global graph.

    structure: local graphs in which the feature belongs to the latent, in both
        slices, (n_latents, n_observed)
    intra, inter: local graphs with the edge; an undirected one counts in both
        directions, (n_latents, n_latents)
    """

    structure: np.ndarray
    intra: np.ndarray
    inter: np.ndarray


def shared_parents(graphs: Sequence[LocalGraph]) -> np.ndarray:
    """Matrix S: how often two features have the same parent (lines 1-7)."""
    n_observed = graphs[0].structure.shape[1]
    counts = np.zeros((n_observed, n_observed))
    for graph in graphs:
        members = graph.structure.astype(float)
        n_slices = len(np.unique(graph.slices)) or 1
        counts += members.T @ members / n_slices
    np.fill_diagonal(counts, 0.0)
    return counts


def local_partners(shared) -> list[np.ndarray]:
    """Lists LP: the features that most often share a feature's parent (lines 8-11)."""
    return [
        np.flatnonzero(row == row.max()) if row.any() else np.zeros(0, dtype=int)
        for row in shared
    ]


def global_partners(partners, shared) -> list[tuple[int, ...]]:
    """Lists GP: the features of each global latent (lines 12-20)."""
    group = np.arange(len(partners))
    # Strong bonds first, so that a feature between two groups comes last.
    strength = [row.max(initial=0.0) for row in shared]
    for i in sorted(range(len(partners)), key=lambda i: (-strength[i], i)):
        if not len(partners[i]):
            continue
        choices = np.unique(group[partners[i]]).tolist()
        if len(choices) > 1 and max((group == c).sum() for c in choices) > 1:
            # The mean over the group tells which of them is the closest.
            means = [shared[i, group == c].mean() for c in choices]
            choices = [choices[int(np.argmax(means))]]
        for choice in choices:
            group[group == choice] = group[i]
    found = [
        tuple(np.flatnonzero(group == label).tolist()) for label in np.unique(group)
    ]
    return sorted(members for members in found if len(members) > 1)


def co_occurrences(graphs: Sequence[LocalGraph], structure):
    """Matrix CO: how often each edge between latents occurs (lines 23-28).

    Those within a slice, and those into the next slice.
    """
    n = len(structure)
    votes = np.zeros((2, n, n))
    for graph in graphs:
        stands_for = _matches(graph, structure)
        tails, heads = np.nonzero(graph.adjacency)
        later = (graph.slices[tails] != graph.slices[heads]).astype(int)
        i, j = stands_for[tails], stands_for[heads]
        known = (i >= 0) & (j >= 0) & ((i != j) | (later == 1))
        np.add.at(votes, (later[known], i[known], j[known]), 1.0)
    return votes[0], votes[1]


def graphs_with_edge(graphs: Sequence[LocalGraph], structure):
    """Number of local graphs that have each edge, in either slice."""
    found = np.zeros((2, len(structure), len(structure)))
    for graph in graphs:
        found += np.array(co_occurrences([graph], structure)) > 0
    return found[0], found[1]


def _matches(graph: LocalGraph, structure) -> np.ndarray:
    """Global latent that each local one stands for, -1 for none."""
    if not len(structure):
        return np.full(graph.n_latents, -1)
    shared = graph.structure.astype(int) @ structure.T.astype(int)
    return np.where(shared.any(axis=1), shared.argmax(axis=1), -1)


def edges_by_majority(graphs: Sequence[LocalGraph], structure):
    """Edges that most local graphs have in some direction, in the one of most votes.

    Algorithm 1 as printed adds every edge that a single local graph has; its text
    speaks of a majority vote (section 3.2). Only local graphs count that have both
    latents.
    """
    n = len(structure)
    intra, inter = graphs_with_edge(
        [replace(g, adjacency=g.adjacency | g.adjacency.T) for g in graphs], structure
    )
    both = np.zeros((n, n))
    for graph in graphs:
        seen = np.isin(np.arange(n), _matches(graph, structure))
        both += seen[:, None] & seen
    votes_intra, votes_inter = co_occurrences(graphs, structure)
    return edges_by_vote(
        np.where(2 * intra >= both, votes_intra, 0.0),
        np.where(2 * inter >= both, votes_inter, 0.0),
    )


def edges_by_vote(intra_votes, inter_votes):
    """Add edges from the most frequent to the rarest (lines 29-32)."""
    n = len(intra_votes)
    inter = inter_votes > 0
    intra = np.zeros((n, n), dtype=bool)
    ranked = sorted(
        (-max(intra_votes[i, j], intra_votes[j, i]), i, j)
        for i in range(n)
        for j in range(i + 1, n)
    )
    for negative, i, j in ranked:
        if not negative:
            break
        tail, head = (i, j) if intra_votes[i, j] >= intra_votes[j, i] else (j, i)
        trial = intra.copy()
        trial[tail, head] = True
        if intra_votes[i, j] == intra_votes[j, i]:
            trial[head, tail] = True
        if is_acyclic(trial & ~trial.T):
            intra = trial
    return intra, inter


def measure_support(graphs: Sequence[LocalGraph], graph: TemporalGraph) -> Support:
    """Share of the local graphs behind each edge."""
    n_graphs = max(len(graphs), 1)
    intra, inter = graphs_with_edge(graphs, graph.structure)
    members = np.zeros(graph.structure.shape)
    for local in graphs:
        stands_for = _matches(local, graph.structure)
        n_slices = len(np.unique(local.slices)) or 1
        for latent, features in zip(stands_for, local.structure, strict=True):
            if latent >= 0:
                members[latent] += features / n_slices
    return Support(members / n_graphs, intra / n_graphs, inter / n_graphs)
