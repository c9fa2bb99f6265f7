"""From groups of features to a graph: counts of latents, edges, and their test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._graphs import slice_equivalence_class
from .._em.em import fit_chain
from .._graph import TemporalGraph
from .._inference.evidence import SlicePatterns
from .._measurement.cardinality import chain_penalty, choose_states
from .edges import AssignedCounts, JointCounts, best_edges, complete_graph

__all__ = ["LearnedGraph", "Measurement", "latent_counts", "learn_graph"]

# Expected counts look more certain than they are, because latents are guessed. An edge
# whose evidence is less than this many penalties is tested on the sequences themselves.
DOUBT = 3.0

# Steps of EM that such a test takes.
TEST_ITER = 60


@dataclass(frozen=True)
class Measurement:
    """Groups of features with the tables of the latent that each measures.

    groups: features of each latent
    tables: P(category | state) of each feature of each group
    n_observed: number of features, also those in no group
    """

    groups: list
    tables: list
    n_observed: int

    @property
    def cardinality(self) -> np.ndarray:
        """Number of states of each latent."""
        return np.array([len(tables[0]) for tables in self.tables], dtype=int)

    @property
    def matrix(self) -> np.ndarray:
        """Groups as a boolean matrix, one row per latent."""
        matrix = np.zeros((len(self.groups), self.n_observed), dtype=bool)
        for row, group in zip(matrix, self.groups, strict=True):
            row[list(group)] = True
        return matrix

    def emission(self, codes, weights, n_categories) -> list[np.ndarray]:
        """Tables of all features; those of no group have a single row."""
        emission: list = [None] * self.n_observed
        for group, tables in zip(self.groups, self.tables, strict=True):
            for feature, table in zip(group, tables, strict=True):
                emission[feature] = table
        for feature, table in enumerate(emission):
            if table is None:
                column = codes[:, :, feature]
                mass = np.broadcast_to(weights[:, None], column.shape)[column >= 0]
                width = int(n_categories[feature])
                count = np.bincount(column[column >= 0], mass, minlength=width)
                smooth = count + 0.1 / width
                emission[feature] = (smooth / smooth.sum())[None]
        return emission

    def with_groups(self, groups, codes, weights, n_categories, **options):
        """Other groups; tables are kept where a group is the same."""
        known = dict(zip(self.groups, self.tables, strict=True))
        tables = [
            known[group]
            if group in known
            else choose_states(
                codes[:, :, list(group)], weights, n_categories[list(group)], **options
            )
            for group in groups
        ]
        return Measurement(list(groups), tables, self.n_observed)


def latent_counts(
    codes,
    weights,
    n_categories,
    measurement: Measurement,
    *,
    max_joint_states=500,
    max_iter=100,
    tol=1e-4,
):
    """Counts of latents in the same and in the next slice, without assuming edges.

    codes (n, n_slices, n_observed), weights (n,), n_categories (n_observed,).
    """
    emission = measurement.emission(codes, weights, n_categories)
    cards = measurement.cardinality
    if np.prod(cards.astype(float)) > max_joint_states:
        return _assigned(codes, weights, measurement), emission
    network, result = fit_chain(
        codes,
        n_categories,
        complete_graph(measurement.matrix),
        cards,
        sample_weight=weights,
        initial=emission,
        max_iter=max_iter,
        tol=tol,
        max_joint_states=max_joint_states,
    )
    if not len(cards):
        return JointCounts(np.zeros(()), 0), list(network.emission)
    joint = (
        result.counts.joint_start if codes.shape[1] == 1 else result.counts.joint_pairs
    )
    return JointCounts(joint[0], len(cards)), list(network.emission)


def _assigned(codes, weights, measurement: Measurement) -> AssignedCounts:
    """States of each slice by itself, and how often they are wrong."""
    states = np.full((*codes.shape[:2], len(measurement.groups)), -1)
    confusions = []
    for j, (group, tables) in enumerate(
        zip(measurement.groups, measurement.tables, strict=True)
    ):
        patterns = SlicePatterns.of(codes[:, :, list(group)])
        mass = np.bincount(
            patterns.index.ravel(),
            np.repeat(weights, codes.shape[1]),
            minlength=len(patterns.codes),
        )
        logs = patterns.log_likelihood(tables)
        likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
        prior = np.full(logs.shape[1], 1.0 / logs.shape[1])
        for _ in range(50):
            posterior = likelihood * prior
            posterior /= posterior.sum(axis=1, keepdims=True)
            prior = mass @ posterior / mass.sum()
        suggested = posterior.argmax(axis=1)
        counts = np.full((len(prior), len(prior)), 1e-3)
        for state in range(len(prior)):
            chosen = suggested == state
            counts[:, state] += mass[chosen] @ posterior[chosen]
        confusions.append(counts / counts.sum(axis=1, keepdims=True))
        known = (patterns.codes >= 0).any(axis=1)
        states[:, :, j] = np.where(known, suggested, -1)[patterns.index]
    return AssignedCounts(states, confusions, weights)


@dataclass(frozen=True)
class LearnedGraph:
    """A graph and what was found on the way.

    graph: the graph
    emission: tables of the features to start EM from
    bic: BIC of the chain with this graph, higher is better; NaN if it was not needed
    """

    graph: TemporalGraph
    emission: list
    bic: float = np.nan


def learn_graph(
    codes,
    weights,
    n_categories,
    measurement: Measurement,
    *,
    max_joint_states=500,
    score=False,
) -> LearnedGraph:
    """Find the edges between latents."""
    data = codes, weights, n_categories
    counts, emission = latent_counts(
        *data, measurement, max_joint_states=max_joint_states
    )
    intra, inter, doubtful = best_edges(counts, DOUBT)
    if codes.shape[1] == 1:
        inter = np.zeros_like(inter)
    cards = measurement.cardinality
    bic = np.nan
    if isinstance(counts, JointCounts) and (doubtful or score):
        bic, emission = _chain_bic(*data, measurement, cards, intra, inter, emission)
        for kind, parent, child in doubtful:
            edges = {"intra": intra.copy(), "inter": inter.copy()}
            edges[kind][parent, child] = False
            trial, tables = _chain_bic(
                *data, measurement, cards, **edges, emission=emission
            )
            if trial > bic:
                bic, emission = trial, tables
                intra, inter = edges["intra"], edges["inter"]
    pattern = slice_equivalence_class(intra, inter)
    graph = TemporalGraph(measurement.matrix, pattern, inter)
    return LearnedGraph(graph, emission, bic)


def _chain_bic(
    codes, weights, n_categories, measurement, cards, intra, inter, emission
):
    """BIC of the chain with given edges, and its emission tables."""
    network, result = fit_chain(
        codes,
        n_categories,
        TemporalGraph(measurement.matrix, intra, inter),
        cards,
        sample_weight=weights,
        initial=emission,
        max_iter=TEST_ITER,
        tied=True,
    )
    penalty = chain_penalty(network, codes, weights)
    return result.log_likelihood - penalty, list(network.emission)
