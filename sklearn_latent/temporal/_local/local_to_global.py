"""From local graphs of two slices each to one global graph (Algorithm 1 of [1]_).

References
----------
.. [1] Halbersberg, D., Lerner, B. (2020). Local to global learning of a latent dynamic
   Bayesian network. ECAI.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._graph import TemporalGraph, topological_order

__all__ = [
    "LocalGraph",
    "Support",
    "co_occurrences",
    "edges_by_vote",
    "global_partners",
    "local_partners",
    "measure_support",
    "shared_parents",
]


@dataclass(frozen=True)
class LocalGraph:
    """A graph learned from two consecutive slices.

    Attributes
    ----------
    measurement : ndarray of bool of shape (n_latents, n_observed)
        Features of each local latent.

    slices : ndarray of int of shape (n_latents,)
        0 for a latent of the earlier slice, 1 for one of the later slice.

    adjacency : ndarray of bool of shape (n_latents, n_latents)
        ``[i, j]`` and not ``[j, i]`` is i -> j, both are an undirected edge.
    """

    measurement: np.ndarray
    slices: np.ndarray
    adjacency: np.ndarray

    @property
    def n_latents(self) -> int:
        """Number of latents in both slices."""
        return len(self.measurement)

    @classmethod
    def of_tables(cls, measurement, intra, inter=None) -> LocalGraph:
        """The local graph whose two slices are alike.

        Parameters
        ----------
        measurement : ndarray of bool of shape (n, n_observed)
            Features of each latent.

        intra, inter : ndarray of bool of shape (n, n)
            As in `TemporalGraph`; without `inter` there is one slice.

        Returns
        -------
        graph : LocalGraph
            With 2 n latents, or n if there is one slice.
        """
        n = len(measurement)
        if inter is None:
            return cls(measurement, np.zeros(n, dtype=int), intra)
        adjacency = np.block([[intra, inter], [np.zeros((n, n), dtype=bool), intra]])
        slices = np.repeat([0, 1], n)
        return cls(np.concatenate([measurement] * 2), slices, adjacency)

    def oriented(self) -> LocalGraph:
        """Apply the two rules that precede Algorithm 1.

        An edge between slices points forward in time. Where the later slice has a
        collider of latents, an undirected edge of the earlier slice between latents
        that measure the same is directed as in the collider.

        Returns
        -------
        graph : LocalGraph
            With more edges directed.
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
        return LocalGraph(self.measurement, self.slices, adjacency)

    def _twin(self, latent):
        """The latent of the earlier slice that shares most features, if any."""
        shared = (self.measurement & self.measurement[latent]).sum(axis=1)
        shared = np.where(self.slices == 0, shared, 0)
        return int(np.argmax(shared)) if shared.any() else None


@dataclass(frozen=True)
class Support:
    """Share of the local graphs behind each possible edge of the global graph.

    Attributes
    ----------
    measurement : ndarray of shape (n_latents, n_observed)
        Local graphs in which the feature belongs to the latent, in both slices.

    intra, inter : ndarray of shape (n_latents, n_latents)
        Local graphs with the edge; an undirected one counts in both directions.
    """

    measurement: np.ndarray
    intra: np.ndarray
    inter: np.ndarray


def shared_parents(graphs: Sequence[LocalGraph]) -> np.ndarray:
    """Matrix S: how often two features have the same parent (lines 1-7).

    Parameters
    ----------
    graphs : sequence of LocalGraph
        Local graphs.

    Returns
    -------
    counts : ndarray of shape (n_observed, n_observed)
        Sums over graphs, with zeros on the diagonal. Both slices of a graph have a
        vote, worth a half.
    """
    n_observed = graphs[0].measurement.shape[1]
    counts = np.zeros((n_observed, n_observed))
    for graph in graphs:
        members = graph.measurement.astype(float)
        n_slices = len(np.unique(graph.slices)) or 1
        counts += members.T @ members / n_slices
    np.fill_diagonal(counts, 0.0)
    return counts


def local_partners(shared) -> list[np.ndarray]:
    """Lists LP: the features that most often share a feature's parent (lines 8-11).

    Parameters
    ----------
    shared : ndarray of shape (n_observed, n_observed)
        Matrix S.

    Returns
    -------
    partners : list of ndarray of int
        As printed, the algorithm takes all features where a row of S is zero
        throughout; such a feature has no partner here.
    """
    return [
        np.flatnonzero(row == row.max()) if row.any() else np.zeros(0, dtype=int)
        for row in shared
    ]


def global_partners(partners, shared) -> list[tuple[int, ...]]:
    """Lists GP: the features of each global latent (lines 12-20).

    Parameters
    ----------
    partners : list of ndarray of int
        Local partners.

    shared : ndarray of shape (n_observed, n_observed)
        Matrix S, which decides where a feature has equally good partners in two
        groups. As printed, such a feature would be in both.

    Returns
    -------
    groups : list of tuple of int
        Disjoint groups of at least two features, ordered by their first feature.
    """
    group = np.arange(len(partners))
    # Strong bonds first, so that a feature between two groups comes last.
    strength = [row.max(initial=0.0) for row in shared]
    for i in sorted(range(len(partners)), key=lambda i: (-strength[i], i)):
        if not len(partners[i]):
            continue
        choices = np.unique(group[partners[i]]).tolist()
        if group[i] in choices and len(choices) > 1:
            # Already with one of its best partners: others of the same strength join
            # only if they are not a group of their own yet.
            choices = [c for c in choices if c == group[i] or (group == c).sum() == 1]
        elif len(choices) > 1 and max((group == c).sum() for c in choices) > 1:
            # The mean over the group tells which of them is the closest.
            means = [shared[i, group == c].mean() for c in choices]
            choices = [choices[int(np.argmax(means))]]
        for choice in choices:
            group[group == choice] = group[i]
    found = [
        tuple(np.flatnonzero(group == label).tolist()) for label in np.unique(group)
    ]
    return sorted(members for members in found if len(members) > 1)


def co_occurrences(graphs: Sequence[LocalGraph], measurement):
    """Matrix CO: how many local graphs have each edge between latents (lines 23-28).

    Parameters
    ----------
    graphs : sequence of LocalGraph
        Local graphs.

    measurement : ndarray of bool of shape (n_latents, n_observed)
        Features of each global latent.

    Returns
    -------
    intra, inter : ndarray of shape (n_latents, n_latents)
        Numbers of local graphs. A local latent stands for the global one with which it
        shares most features. An undirected edge counts in both directions; a graph
        counts once, however many of its latents stand for the same global one.
    """
    n = len(measurement)
    intra, inter = np.zeros((n, n)), np.zeros((n, n))
    for graph in graphs:
        stands_for = _matches(graph, measurement)
        seen_intra, seen_inter = np.zeros((n, n), bool), np.zeros((n, n), bool)
        for tail, head in zip(*np.nonzero(graph.adjacency), strict=True):
            i, j = stands_for[tail], stands_for[head]
            if i < 0 or j < 0:
                continue
            if graph.slices[tail] != graph.slices[head]:
                seen_inter[i, j] = True
            elif i != j:
                seen_intra[i, j] = True
        intra += seen_intra
        inter += seen_inter
    return intra, inter


def _matches(graph: LocalGraph, measurement) -> np.ndarray:
    """Global latent that each local one stands for, -1 for none."""
    if not len(measurement):
        return np.full(graph.n_latents, -1)
    shared = graph.measurement.astype(int) @ measurement.T.astype(int)
    return np.where(shared.any(axis=1), shared.argmax(axis=1), -1)


def edges_by_vote(intra_votes, inter_votes, n_graphs, *, min_support=0.0):
    """Add edges from the most frequent to the rarest (lines 29-32).

    Parameters
    ----------
    intra_votes, inter_votes : ndarray of shape (n_latents, n_latents)
        Matrix CO within a slice and between slices.

    n_graphs : int
        Number of local graphs.

    min_support : float, default=0.0
        Share of the local graphs that an edge needs, in either direction. As printed,
        one graph is enough.

    Returns
    -------
    intra, inter : ndarray of bool of shape (n_latents, n_latents)
        Edges. One with as many votes for either direction is undirected; one that
        would close a directed cycle is left out.
    """
    n = len(intra_votes)
    needed = max(min_support * n_graphs, 1e-9)
    inter = inter_votes >= needed
    intra = np.zeros((n, n), dtype=bool)
    ranked = sorted(
        (-max(intra_votes[i, j], intra_votes[j, i]), i, j)
        for i in range(n)
        for j in range(i + 1, n)
    )
    for negative, i, j in ranked:
        if -negative < needed:
            break
        tail, head = (i, j) if intra_votes[i, j] >= intra_votes[j, i] else (j, i)
        trial = intra.copy()
        trial[tail, head] = True
        if intra_votes[i, j] == intra_votes[j, i]:
            trial[head, tail] = True
        if topological_order(trial & ~trial.T) is not None:
            intra = trial
    return intra, inter


def measure_support(graphs: Sequence[LocalGraph], graph: TemporalGraph) -> Support:
    """Share of the local graphs behind each edge.

    Parameters
    ----------
    graphs : sequence of LocalGraph
        Local graphs.

    graph : TemporalGraph
        The global graph.

    Returns
    -------
    support : Support
        The score of an edge in Section 3.1.
    """
    n_graphs = max(len(graphs), 1)
    intra, inter = co_occurrences(graphs, graph.measurement)
    members = np.zeros(graph.measurement.shape)
    for local in graphs:
        stands_for = _matches(local, graph.measurement)
        n_slices = len(np.unique(local.slices)) or 1
        for latent, features in zip(stands_for, local.measurement, strict=True):
            if latent >= 0:
                members[latent] += features / n_slices
    return Support(members / n_graphs, intra / n_graphs, inter / n_graphs)
