"""Where EM starts: first guesses of all tables and emissions."""

from __future__ import annotations

import numpy as np

from .._emissions.base import SMOOTHING, Emission
from .._emissions.kinds import KINDS, as_emission, column_of, marginal_tables
from .._hidden_classes import Rows, fit_classes
from .._inference.patterns import ChainData, Patterns
from .._model import LatentDBN
from .._panels.panel import Panel
from .._tables import family_of, normalized, weighted_products


def first_tables(panel: Panel, graph, cardinality, initial, random_state) -> tuple:
    """Start and transition tables and emissions, as far as known from `initial`."""
    if initial is None:
        initial = _class_tables(panel, graph, cardinality, random_state)
    elif isinstance(initial, LatentDBN):
        same = np.array_equal(initial.cardinality, cardinality)
        if same and initial.directed_graph == graph.directed():
            return initial.start, initial.transition, initial.emissions
        initial = initial.emissions
    return _from_emission(panel, graph, cardinality, list(initial))


def slice_patterns(panel: Panel, features, tables):
    """Patterns of some features and their emissions; tables are those of codes."""
    values = panel.values[:, :, list(features)]
    for place, (f, table) in enumerate(zip(features, tables, strict=True)):
        if not isinstance(table, Emission) and panel.numbers is not None:
            codes = panel.codes[:, :, f]
            values[:, :, place] = np.where(codes < 0, np.nan, codes)
    emissions = [as_emission(table) for table in tables]
    return Patterns(values, emissions), emissions


def _class_tables(panel: Panel, graph, cardinality, random_state) -> list:
    """Emission tables of each latent, as if slices and latents were independent."""
    emission = marginal_tables(panel)
    for j in range(graph.n_latents):
        features = graph.features_of(j)
        if len(features):
            rows = Rows.pooled(panel.of_features(features))
            model = fit_classes(rows, int(cardinality[j]), random_state=random_state)
            for f, table in zip(features, model.tables(), strict=True):
                emission[f] = table
    return emission


def _from_emission(panel: Panel, graph, cardinality, emission: list):
    """All tables; the others follow from what each slice says by itself.

    So do emissions that are None, from the other features of the latent.
    """
    data = ChainData.of(panel.values, graph.structure, panel.weights)
    directed = graph.directed()
    states = []
    for j in range(graph.n_latents):
        features = [f for f in graph.features_of(j) if emission[f] is not None]
        own = [emission[f] for f in features]
        states.append(_slice_states(panel, features, own, int(cardinality[j])))
    start: list = []
    transition: list = []
    for j in range(graph.n_latents):
        for later, tables in ((False, start), (True, transition)):
            now = slice(1, None) if later else slice(0, 1)
            own = [
                states[i][:, now if same else slice(None, -1)]
                for i, same in family_of(directed, j, later=later)
            ]
            count = weighted_products(own, data.weights[:, now])
            tables.append(normalized(count, 1.0 + SMOOTHING))
    # The last row stands for features of no latent, which have one state.
    states.append(np.ones((*data.weights.shape, 1)))
    parents = np.vstack([graph.structure, np.ones(graph.n_observed, bool)])
    emissions = [
        _of_wanted_kind(panel, data, f, emission[f], states[j])
        for f, j in enumerate(parents.argmax(axis=0))
    ]
    return start, transition, emissions


def _slice_states(panel: Panel, features, tables, n_states: int) -> np.ndarray:
    """States of a latent that each slice suggests by itself."""
    if not tables:
        return np.full((*panel.codes.shape[:2], n_states), 1.0 / n_states)
    patterns, emissions = slice_patterns(panel, features, tables)
    log = patterns.log_likelihood(emissions)
    state = np.exp(log - log.max(axis=1, keepdims=True))
    return (state / state.sum(axis=1, keepdims=True))[patterns.index]


def _of_wanted_kind(panel: Panel, data: ChainData, f: int, table, states) -> Emission:
    """The emission itself; another table, or None, becomes one of the first kind."""
    kind = panel.kinds_of(f)[0]
    if isinstance(table, Emission) or (table is not None and kind == "categorical"):
        return as_emission(table)
    flat = KINDS[kind].flat(column_of(panel, f))
    weighted = states * data.weights[:, :, None]
    return flat.fitted(data.statistics(f, flat, weighted))
