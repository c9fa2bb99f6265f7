"""Numbers of states once more, when it is known which features have a memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._climb import Ascent
from .._classes.latent_class import Rows, fit_classes
from .._em.choice import choose_emissions, improve_emissions, with_memory
from .._em.em import EMOptions, fit_chain
from .._graph import complete_graph
from .._panels.panel import Panel
from .groups import (
    COMPARED,
    SearchOptions,
    chain_penalty,
    compared_chain,
    one_latent_bic,
)

# Rounds of states and memory; a third one changed nothing on real panels.
MAX_ROUNDS = 2


def revise_states(
    panel: Panel, ascent: Ascent, options: SearchOptions, em: EMOptions
) -> Ascent:
    """Take fewer states where memory explains what states did.

    Before memory is known, states stand in for it: people who stay where they are look
    like people of another kind. `ascent` is the result of `choose_emissions`, and so
    is what is returned; it has changed where BIC gains.
    """
    panel = panel.merged()
    for _ in range(MAX_ROUNDS):
        emissions = _revised(panel, ascent.state, options)
        network = ascent.state
        cardinality = [len(emissions[f.argmax()]) for f in network.graph.structure]
        if cardinality == network.cardinality.tolist():
            break
        trial = fit_chain(panel, network.graph, cardinality, emissions, em)
        trial = choose_emissions(panel, trial, em)
        if _score(panel, trial) <= _score(panel, ascent):
            break
        ascent = trial
    return ascent


def _revised(panel: Panel, network, options: SearchOptions) -> list:
    """Emissions with the best number of states of each latent's own chain."""
    revised = list(network.emissions)
    for j in range(network.n_latents):
        features = network.graph.features_of(j)
        found = _own_states(
            panel.of_features(features), network.emissions_of(j), options
        )
        for f, emission in zip(features, found, strict=True):
            revised[f] = emission
    return revised


def _own_states(panel: Panel, current: list, options: SearchOptions) -> list:
    """Emissions of a latent as they are, or with memory and fewer states."""
    as_now = replace(panel, kinds=tuple((emission.kind,) for emission in current))
    best, emissions = one_latent_bic(as_now, current)
    n_states = len(current[0])
    found = _chain_with_memory(panel, n_states, options)
    while n_states > 2:
        n_states -= 1
        fewer = _chain_with_memory(panel, n_states, options)
        if fewer[0] <= found[0]:
            break
        found = fewer
    return found[1] if found[0] > best else emissions


def _chain_with_memory(panel: Panel, n_states: int, options) -> tuple[float, list]:
    """BIC and emissions of a chain that begins with memory everywhere."""
    rows = Rows.pooled(panel)
    tables = fit_classes(rows, n_states, random_state=options.seed).tables(rows)
    graph = complete_graph(np.ones((1, panel.n_observed)))
    _, ascent = compared_chain(with_memory(panel), graph, tables)
    ascent = improve_emissions(panel, ascent, COMPARED)
    return _score(panel, ascent), ascent.state.emissions


def _score(panel: Panel, ascent: Ascent) -> float:
    """BIC, higher is better."""
    return ascent.statistics.log_likelihood - chain_penalty(ascent.state, panel)
