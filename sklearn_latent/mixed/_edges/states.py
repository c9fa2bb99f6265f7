"""Numbers of states, judged together with the latents around."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._em.choice import with_joined_states
from .._graph import TemporalGraph
from .._measurement.groups import (
    ChainFit,
    Measurement,
    SearchOptions,
    best_states,
    chain_bic,
    thinned,
)
from .._panels.panel import Panel
from .edges import best_edges
from .structure import assigned_counts, better_graph, is_small, learn_graph, pattern

# Neighbours of a latent that are looked at with it, and joint states of all of them.
MAX_NEIGHBOURS = 2
MAX_NEAR_STATES = 150

# Nats of a sample by which a number of states must win.
CLEAR = 10.0


def settle_states(
    panel: Panel, measurement: Measurement, options: SearchOptions
) -> tuple[TemporalGraph, list]:
    """Edges, and numbers of states by BIC of each latent with its neighbours.

    A latent with a hidden parent is no chain by itself: states of the parent show in it
    as states of its own. And a latent that few features measure shows all of its states
    only through the latents that depend on it. States are settled twice: with the edges
    that slices show, and where sequences show others, or neighbours have changed, once
    more. The graph is the better of the two; emission tables are those of its chain.
    """
    intra, inter, _ = best_edges(assigned_counts(panel, measurement))
    slices = TemporalGraph(measurement.structure, intra, inter)
    joined = _joined(slices)
    chosen = np.ones(len(joined), dtype=bool)
    measurement, changed = _pass(panel, measurement, slices, chosen, options)
    graph, emission = learn_graph(panel, measurement, options)
    chosen = (joined != _joined(graph)).any(axis=0) | joined[changed].any(axis=0)
    measurement, changed = _pass(panel, measurement, graph, chosen, options)
    if changed.any():
        graph, emission = learn_graph(panel, measurement, options)
    if not is_small(panel, measurement, options):
        return with_own_past(panel, measurement, graph), emission
    return better_graph(panel, measurement, graph, emission, slices)


def with_own_past(
    panel: Panel, measurement: Measurement, graph: TemporalGraph
) -> TemporalGraph:
    """Latents follow their own past where the chain of a few neighbours says so.

    Guessed states of single slices hide a past that parents partly explain. (HELP, held
    out: -1.012 instead of -1.020 nats a cell.)
    """
    if panel.n_slices == 1:
        return graph
    graph = graph.directed()
    for j in np.flatnonzero(~graph.inter.diagonal()).tolist():
        near = _near(j, graph.intra | graph.inter, measurement.cardinality)
        features = [f for i in near for f in measurement.groups[i]]
        tables = [table for i in near for table in measurement.tables[i]]
        own = np.zeros(2 * (len(near),), dtype=bool)
        own[near.index(j), near.index(j)] = True
        part, within = _part(graph, near, features), panel.of_features(features)
        alone = replace(part, inter=part.inter & ~own)
        follows = replace(part, inter=part.inter | own)
        without = chain_bic(within, alone, tables)
        if chain_bic(within, follows, without.emission, without).bic > without.bic:
            inter = graph.inter.copy()
            inter[j, j] = True
            graph = replace(graph, inter=inter)
    return pattern(graph)


def _joined(graph: TemporalGraph) -> np.ndarray:
    """Latents that an edge joins, in either direction."""
    edges = graph.intra | graph.inter
    return edges | edges.T


def _pass(panel, measurement: Measurement, graph: TemporalGraph, chosen, options):
    """Settle the states of chosen latents; also which numbers changed."""
    before, edges = measurement.cardinality, graph.intra | graph.inter
    # Latents of few features first, which depend the most on others.
    order = np.flatnonzero(chosen).tolist()
    for j in sorted(order, key=lambda j: len(measurement.groups[j])):
        near = _near(j, edges, measurement.cardinality)
        if len(near) > 1:
            tables = _settled(panel, measurement, graph, near, j, options)
            measurement = measurement.with_tables(j, tables)
    return measurement, measurement.cardinality != before


def _near(j: int, edges, cardinality) -> list[int]:
    """A latent and some of its neighbours, parents and few states first.

    Without a child, the others depend on each other as before; not without a parent.
    """
    parents, children = edges[:, j], edges[j]
    chosen = [j]
    neighbours = np.setdiff1d(np.flatnonzero(parents | children), j)
    order = sorted(neighbours, key=lambda i: (not parents[i], cardinality[i], i))
    for i in order[:MAX_NEIGHBOURS]:
        if np.prod(cardinality[[*chosen, i]]) <= MAX_NEAR_STATES:
            chosen.append(int(i))
    return sorted(chosen)


def _part(graph: TemporalGraph, latents, features) -> TemporalGraph:
    """Some of the latents; those with a parent among the others follow their own past.

    Without it, what such a parent keeps of the past would show as further states.
    """
    part = graph._part(latents, features)
    parents = graph.intra | graph.inter
    alone = np.delete(parents, latents, axis=0).any(axis=0)[latents]
    return TemporalGraph(part.structure, part.intra, part.inter | np.diag(alone))


def _settled(panel, measurement: Measurement, graph, latents, j, options) -> list:
    """Tables of a latent with the best number of states, given some neighbours."""
    features = [f for i in latents for f in measurement.groups[i]]
    part = _part(graph.directed(), latents, features)
    within = panel.of_features(features)
    first = int(measurement.cardinality[j])
    found: dict[int, ChainFit] = {}

    def fit(sequences, n_states, rival):
        tables = measurement.tables[j]
        if n_states > first:
            tables = measurement.chain(j, panel, options, n_states).emission
        trial = measurement.with_tables(j, tables)
        start: Any = [table for i in latents for table in trial.tables[i]]
        if n_states < first:
            # EM from states of slices is slow at first, and seems hopeless.
            start = with_joined_states(rival.ascent, latents.index(j))
        found[n_states] = chain_bic(sequences, part, start, rival)
        return found[n_states]

    some = thinned(within)
    best = best_states(first, partial(fit, some), options)
    # A sample that weighs as much as all sequences tells what they will say, but for
    # its noise, which weighs as much, too.
    if len(some.codes) < len(within.codes):
        gaps = [best.bic - other.bic for other in found.values() if other is not best]
        if min(gaps, default=np.inf) < CLEAR * len(within.codes) / len(some.codes):
            best = best_states(first, partial(fit, within), options)
    return [best.emission[features.index(f)] for f in measurement.groups[j]]
