"""Which kind of emission each feature has, by BIC."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._climb import Ascent
from ..._criteria import bic_price
from .._emissions.base import Emission
from .._emissions.kinds import KINDS, column_of
from .._inference.inference import ChainData, expectation
from .._model import LatentDBN
from .._panels.panel import Panel
from .em import EMOptions, fit_chain, replace_tables

# Rounds of choice and EM; a third one seldom changes anything.
MAX_ROUNDS = 4

# A kind must gain this many nats; smaller gains are rounding.
SMALLEST_GAIN = 1e-6

# Kinds differ by more than the last steps of EM gain: between choices, it ends at so
# many times the tolerance. (Work and family life lose where it ends after 40 steps.)
ROUGH = 10.0


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
    network, quick = ascent.state, rough(options)
    best = _improved(panel, ascent, quick)
    if best is not ascent:
        richest = _with_memory(panel)
        first = fit_chain(richest, network.graph, network.cardinality, None, quick)
        backward = _improved(panel, first, quick)
        best = max(best, backward, key=lambda found: _score(panel, found))
    return fit_chain(panel, network.graph, network.cardinality, best.state, options)


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
