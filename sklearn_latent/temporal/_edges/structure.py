"""From groups of features to a graph: counts of latents, edges, and their test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._climb import climb
from ..._graphs import slice_equivalence_class
from .._em.em import EMOptions, fit_chain
from .._graph import TemporalGraph, complete_graph
from .._inference.evidence import SlicePatterns
from .._measurement.cardinality import SearchOptions, chain_bic
from .._measurement.groups import Measurement
from .._panels.panel import Panel
from .edges import AssignedCounts, JointCounts, best_edges

# Expected counts look more certain than they are, because latents are guessed. An edge
# whose evidence is less than this many penalties is tested on the sequences themselves.
DOUBT = 3.0

# Steps of EM of the chain in which every latent depends on all others.
COMPLETE_ITER = 100

# Steps of EM for the shares of states, given tables.
SHARES_ITER = 50


def latent_counts(panel: Panel, measurement: Measurement, options: SearchOptions):
    """Counts of latents in the same and in the next slice, without assuming edges.

    Also emission tables of all features.
    """
    emission = measurement.emission(panel)
    cards = measurement.cardinality
    if not len(cards):
        return JointCounts(np.zeros(()), 0), emission
    if np.prod(cards.astype(float)) > options.max_joint_states:
        return _assigned(panel, measurement), emission
    em = EMOptions(
        COMPLETE_ITER, max_joint_states=options.max_joint_states, patient=False
    )
    graph = complete_graph(measurement.structure)
    ascent = fit_chain(panel, graph, cards, emission, em)
    # The family of the last latent is all latents, of both slices.
    counts = ascent.statistics
    joint = (counts.start if panel.n_slices == 1 else counts.transition)[-1]
    return JointCounts(joint, len(cards)), list(ascent.state.emission)


def _assigned(panel: Panel, measurement: Measurement) -> AssignedCounts:
    """States of each slice by itself, and how often they are wrong."""
    states = np.full((*panel.codes.shape[:2], len(measurement.groups)), -1)
    confusions = []
    for j, (group, tables) in enumerate(
        zip(measurement.groups, measurement.tables, strict=True)
    ):
        patterns = SlicePatterns.of(panel.codes[:, :, list(group)])
        mass = np.bincount(
            patterns.index.ravel(),
            np.repeat(panel.weights, panel.n_slices),
            minlength=len(patterns.codes),
        )
        posterior = _shares(patterns.log_likelihood(tables), mass)
        suggested = posterior.argmax(axis=1)
        n_states = posterior.shape[1]
        counts = np.full((n_states, n_states), 1e-3)
        for state in range(n_states):
            chosen = suggested == state
            counts[:, state] += mass[chosen] @ posterior[chosen]
        confusions.append(counts / counts.sum(axis=1, keepdims=True))
        known = (patterns.codes >= 0).any(axis=1)
        states[:, :, j] = np.where(known, suggested, -1)[patterns.index]
    return AssignedCounts(states, confusions, panel.weights)


def _shares(logs, mass) -> np.ndarray:
    """P(state | pattern), with shares of the states by EM; logs of P(pattern | state).

    logs (n_patterns, n_states), mass (n_patterns,).
    """
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    mass = mass / mass.sum()

    def expect(prior):
        joint = likelihood * prior
        total = joint.sum(axis=1, keepdims=True)
        return mass @ np.log(total[:, 0]), joint / total

    start = np.full(logs.shape[1], 1.0 / logs.shape[1])
    return climb(
        expect,
        lambda _, posterior: mass @ posterior,
        start,
        tol=1e-6,
        max_iter=SHARES_ITER,
        patient=False,
    ).statistics


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
    panel: Panel, measurement: Measurement, options: SearchOptions, *, score=False
) -> LearnedGraph:
    """Find the edges between latents."""
    counts, emission = latent_counts(panel, measurement, options)
    intra, inter, doubtful = best_edges(counts, DOUBT)
    if panel.n_slices == 1:
        inter = np.zeros_like(inter)
    structure = measurement.structure
    bic = np.nan
    if isinstance(counts, JointCounts) and (doubtful or score):
        graph = TemporalGraph(structure, intra, inter)
        bic, emission = chain_bic(panel, graph, emission)
        for kind, parent, child in doubtful:
            edges = {"intra": intra.copy(), "inter": inter.copy()}
            edges[kind][parent, child] = False
            trial = chain_bic(panel, TemporalGraph(structure, **edges), emission)
            if trial[0] > bic:
                bic, emission = trial
                intra, inter = edges["intra"], edges["inter"]
    pattern = slice_equivalence_class(intra, inter)
    return LearnedGraph(TemporalGraph(structure, pattern, inter), emission, bic)
