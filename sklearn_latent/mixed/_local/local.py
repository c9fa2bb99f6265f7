"""Latents and edges of a panel: local graphs of pairs of slices, then a global one."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

import numpy as np
from joblib import Parallel, delayed

from .._edges.edges import learn_edges
from .._edges.states import settle_states
from .._edges.structure import assigned_counts, learn_graph, review_by_chain
from .._graph import TemporalGraph
from .._measurement.groups import Measurement, SearchOptions
from .._measurement.measurement import measurement_search
from .._panels.panel import Panel
from .local_to_global import (
    LocalGraph,
    edges_by_majority,
    global_partners,
    local_partners,
    shared_parents,
)
from .lpcc import lpcc_graph

# Pairs of slices that a local graph is learned from, at the least, and the number of
# local graphs, at the most: more would take time and show the same.
WINDOW_ROWS = 100
MAX_WINDOWS = 20


def learn_latents(
    panel: Panel, local: str, options: SearchOptions, copies, n_jobs=None
) -> tuple[Measurement, list[LocalGraph]]:
    """Groups of features, their tables, and a local graph of every window.

    copies: near-duplicates of features, see `Measurement.with_lone_features`
    """
    pooled = Measurement([], [], panel.n_observed)
    if local == "bic":
        search = measurement_search(panel, options)
        groups = search.run()
        if panel.n_slices > 1:
            groups = review_by_chain(panel, search, groups, options)
        pooled = pooled.with_groups(groups, panel, options)
        pooled = pooled.with_lone_features(panel, options, copies)
    learn = delayed(_bic_graph if local == "bic" else _lpcc_graph)
    graphs = Parallel(n_jobs=n_jobs)(
        learn(window, pooled, options) for window in _windows(panel)
    )
    if local == "lpcc":
        shared = shared_parents(graphs)
        groups = global_partners(local_partners(shared), shared)
        pooled = pooled.with_groups(groups, panel, options)
    return pooled.with_chain_states(panel, options), graphs


def learn_global_graph(
    panel: Panel, local: str, measurement: Measurement, graphs, options: SearchOptions
) -> tuple[TemporalGraph, list[np.ndarray]]:
    """The global graph, and emission tables to start from."""
    if local == "lpcc":
        intra, inter = edges_by_majority(graphs, measurement.structure)
        graph = TemporalGraph(measurement.structure, intra, inter)
        return graph, measurement.emission(panel)
    if options.n_states is None:
        return settle_states(panel, measurement, options)
    return learn_graph(panel, measurement, options)


def _windows(panel: Panel) -> list[Panel]:
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


def _bic_graph(panel: Panel, pooled: Measurement, options) -> LocalGraph:
    """Local graph of the pooled latents, with edges by BIC on expected counts."""
    intra, inter = learn_edges(assigned_counts(panel, pooled))
    has_past = panel.n_slices > 1
    return LocalGraph.of_tables(pooled.structure, intra, inter if has_past else None)


def _lpcc_graph(panel: Panel, pooled, options) -> LocalGraph:
    """Local graph by pairwise cluster comparison."""
    pairs = [panel.of_slices(slice(t, t + 2)) for t in range(panel.n_slices - 1)]
    codes = np.concatenate([pair.codes for pair in pairs or [panel]])
    weights = np.tile(panel.weights, len(pairs) or 1)
    return lpcc_graph(Panel(codes, weights, panel.n_categories)).oriented()
