"""Which kind of emission each feature has, by BIC."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._core.climb import Ascent
from ..._core.criteria import bic_price
from .._emissions.emission import Emission
from .._emissions.kinds import KINDS, column_of
from .._graph import TemporalGraph
from .._inference.chain_data import ChainData
from .._inference.expectation import expectation
from .._model import LatentDBN
from .._panels.panel import Panel
from .chain_em import EMOptions, first_network, fit_chain, replace_tables
from .fewer import with_fewer_states

# Rounds of choice and EM; a third one seldom changes anything.
MAX_ROUNDS = 4

# A kind must gain this many nats; smaller gains are rounding.
SMALLEST_GAIN = 1e-6

# Kinds differ by more than the last steps of EM gain: between choices, it ends at so
# many times the tolerance. (Work and family life lose where it ends after 40 steps.)
ROUGH = 10.0

# Slices from which on the tolerance of a sequence is that of several.
LONG = 16


def rough(options: EMOptions) -> EMOptions:
    """EM that is good enough to choose kinds of emissions by."""
    return replace(options, tol=ROUGH * options.tol, patient=False)


def choose_emissions(
    panel: Panel, ascent: Ascent, options: EMOptions | None = None
) -> Ascent:
    """Change kinds of emissions where BIC gains until nothing changes, then run EM.

    `ascent` is the result of `fit_chain`, a rough one is enough, and so is what is
    returned. A latent that has taken over the memory of one of its features makes the
    others look as if they had one. So if any memory is found, the way back from memory
    everywhere is tried too.
    """
    panel, options = panel.merged(), options or EMOptions()
    best = _best_kinds(panel, ascent, rough(options)).state
    return fit_chain(panel, best.graph, best.cardinality, best, options)


def fit_with_kinds(
    panel: Panel,
    graph: TemporalGraph,
    cardinality,
    emission,
    options: EMOptions,
    *,
    may_join: bool = False,
) -> Ascent:
    """Fit the tables of a network, with the best kind of emission of each feature.

    Each part of the graph is looked at by itself. Where its joint states are too many,
    kinds are chosen on the chain of each latent: what its neighbours say of it hardly
    matters for the memory of its features. (On HELP this took 4 s instead of 10.)
    `may_join`: whether a latent may lose states that the memory of its features makes
    needless.
    """
    panel = panel.merged()
    # EM of one long series would go on for gains of 1e-4 nats in all.
    options = replace(options, tol=options.tol * max(panel.n_slices / LONG, 1.0))
    quick, most = rough(options), options.max_joint_states
    network = first_network(panel, graph, cardinality, emission, most=most)
    start, transition = list(network.start), list(network.transition)
    emissions, cardinality = list(network.emissions), network.cardinality.copy()
    whole = [latents.tolist() for latents in network.directed_graph.components()]
    for latents in _parts(network):
        features = np.flatnonzero(np.isin(network._parents, latents or [-1]))
        own = panel.of_features(features)
        part = network.directed_graph._part(latents, features)
        first = [emission[f] for f in features]
        ascent = fit_chain(own, part, network.cardinality[latents], first, quick)
        ascent = _best_kinds(own, ascent, quick)
        if may_join and latents in whole:
            ascent = with_fewer_states(own, ascent, quick)
        found = ascent.state
        for f, one in zip(features, found.emissions, strict=True):
            emissions[f] = one
        if latents in whole:
            for place, j in enumerate(latents):
                start[j], transition[j] = found.start[place], found.transition[place]
                cardinality[j] = found.cardinality[place]
    best = LatentDBN(
        graph, cardinality, start, transition, emissions, max_joint_states=most
    )
    return fit_chain(panel, graph, cardinality, best, options)


def _parts(network: LatentDBN) -> list[list[int]]:
    """Latents whose chains are exact together, or by themselves, and no latent."""
    parts: list[list[int]] = [[]] if (network._parents < 0).any() else []
    for latents in network.directed_graph.components():
        exact = network.is_exact(latents)
        parts += [latents.tolist()] if exact else [[j] for j in latents.tolist()]
    return parts


def _best_kinds(panel: Panel, ascent: Ascent, quick: EMOptions) -> Ascent:
    """Change kinds where BIC gains, from the given ones and from memory everywhere."""
    network = ascent.state
    best = _improved(panel, ascent, quick)
    if best is ascent:
        return ascent
    richest = _with_memory(panel)
    first = fit_chain(richest, network.graph, network.cardinality, None, quick)
    backward = _improved(panel, first, quick)
    return max(best, backward, key=lambda found: _score(panel, found))


def _with_memory(panel: Panel) -> Panel:
    """The same panel, all of whose features have a memory if they may."""
    kinds = [panel.kinds_of(f) for f in range(panel.n_observed)]
    chosen = [next((k for k in own if KINDS[k].has_memory), own[0]) for own in kinds]
    return replace(panel, kinds=tuple((kind,) for kind in chosen))


def _improved(panel: Panel, ascent: Ascent, options) -> Ascent:
    """Take turns between choice and EM until nothing changes."""
    for _ in range(MAX_ROUNDS):
        network = ascent.state
        emissions = better_emissions(panel, network)
        if [e.kind for e in emissions] == [e.kind for e in network.emissions]:
            break
        first = replace_tables(network, emission=emissions)
        ascent = fit_chain(panel, network.graph, network.cardinality, first, options)
    return ascent


def better_emissions(panel: Panel, network: LatentDBN) -> list[Emission]:
    """Emission of the best kind of each feature, given the states of the latents."""
    data = ChainData.of(panel.values, network.graph.structure, panel.weights)
    states = expectation(network, data).states
    alone = np.ones((*data.weights.shape, 1))
    weights = data.weights[:, :, None]
    chosen = []
    for f, (j, current) in enumerate(
        zip(network._parents, network.emissions, strict=True)
    ):
        weighted = (states[j] if j >= 0 else alone) * weights
        chosen.append(_best_kind(panel, data, f, current, weighted))
    return chosen


def _best_kind(panel: Panel, data: ChainData, f: int, current: Emission, states):
    """Emission of the kind with the highest expected BIC; the current one if equal.

    The likelihood of the sequences gains at least what the expected one does.
    """
    column, price = column_of(panel, f), _price(panel, f)
    best, highest = current, -np.inf
    for kind in dict.fromkeys([current.kind, *panel.kinds_of(f)]):
        flat = current if kind == current.kind else KINDS[kind].flat(column)
        statistics = data.statistics(f, flat, states)
        emission = flat.fitted(statistics)
        if kind != current.kind and emission.contamination:
            # Now it is known how far numbers are from their states.
            statistics = data.statistics(f, emission, states)
            emission = emission.fitted(statistics)
        value = emission.expected_log_likelihood(statistics) - price * emission.n_free
        if value > highest + SMALLEST_GAIN:
            best, highest = emission, value
    return best


def _score(panel: Panel, ascent: Ascent) -> float:
    """BIC of networks that differ in their emissions alone, higher is better."""
    emissions = ascent.state.emissions
    prices = [_price(panel, f) * e.n_free for f, e in enumerate(emissions)]
    return ascent.statistics.log_likelihood - sum(prices)


def _price(panel: Panel, f: int) -> float:
    """Price of a parameter of a feature: that of as many rows as it has values."""
    return bic_price(panel.weights @ (panel.codes[:, :, f] >= 0).sum(axis=1))
