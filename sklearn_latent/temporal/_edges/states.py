"""Numbers of states, judged together with the latents around."""

from __future__ import annotations

from functools import partial

import numpy as np

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
from .structure import assigned_counts

# Neighbours of a latent that are looked at with it, and joint states of all of them.
MAX_NEIGHBOURS = 2
MAX_NEAR_STATES = 150

# Nats of a sample by which a number of states must win.
CLEAR = 10.0

# Passes over latents whose neighbours have changed.
MAX_PASSES = 2


def settle_states(
    panel: Panel, measurement: Measurement, options: SearchOptions
) -> Measurement:
    """Choose the numbers of states by BIC of each latent with its neighbours.

    A latent with a hidden parent is no chain by itself: states of the parent show in it
    as states of its own. And a latent that few features measure shows all of its states
    only through the latents that depend on it.
    """
    # Latents of few features first, which depend the most on others.
    order = sorted(
        range(len(measurement.groups)), key=lambda j: len(measurement.groups[j])
    )
    again = np.ones(len(order), dtype=bool)
    for _ in range(MAX_PASSES):
        before = measurement.cardinality
        # States of slices by themselves show neighbours well enough.
        intra, inter, _ = best_edges(assigned_counts(panel, measurement))
        # Without its own past, a latent that has one would show it as further states.
        inter |= np.eye(len(inter), dtype=bool) & (panel.n_slices > 1)
        graph = TemporalGraph(measurement.structure, intra, inter)
        joined = (intra | inter | intra.T | inter.T) & ~np.eye(len(intra), dtype=bool)
        for j in order:
            near = _near(j, np.flatnonzero(joined[j]), measurement.cardinality)
            if again[j] and len(near) > 1:
                tables = _settled(panel, measurement, graph, near, j, options)
                measurement = measurement.with_tables(j, tables)
        again = joined[measurement.cardinality != before].any(axis=0)
        if not again.any():
            break
    return measurement


def _near(j: int, neighbours, cardinality) -> list[int]:
    """A latent and those of its neighbours that have the fewest states."""
    chosen = [int(j)]
    for i in sorted(neighbours, key=lambda i: (cardinality[i], i))[:MAX_NEIGHBOURS]:
        if np.prod(cardinality[[*chosen, i]]) <= MAX_NEAR_STATES:
            chosen.append(int(i))
    return sorted(chosen)


def _settled(panel, measurement: Measurement, graph, latents, j, options) -> list:
    """Tables of a latent with the best number of states, given some neighbours."""
    features = [f for i in latents for f in measurement.groups[i]]
    part = graph._part(latents, features)
    within = panel.of_features(features)
    first = int(measurement.cardinality[j])
    found: dict[int, ChainFit] = {}

    def fit(sequences, n_states, rival):
        tables = measurement.tables[j]
        if n_states != first:
            tables = measurement.chain(j, panel, options, n_states).emission
        trial = measurement.with_tables(j, tables)
        start = [table for i in latents for table in trial.tables[i]]
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
