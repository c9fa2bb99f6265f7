"""Kinds of emissions, and numbers of states that memories make needless, by BIC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from ..._core.climb import Ascent
from ..._core.criteria import bic_price
from .._emissions.emission import SMOOTHING, Emission
from .._emissions.kinds import KINDS, column_of
from .._graph import TemporalGraph
from .._inference.chain_data import ChainData
from .._inference.expectation import expectation
from .._latent_dbn import LatentDBN
from .._panels.panel import Panel
from .._tables import family_of, normalized
from .chain_em import EMOptions, first_network, fit_chain, replace_tables

# Kinds differ by more than the last steps of EM gain: between choices, it ends at so
# many times the tolerance. (Work and family life lose where it ends after 40 steps.)
ROUGH = 10.0

# Rounds of choice and EM; a third one seldom changes anything.
MAX_ROUNDS = 4

# Slices from which on the tolerance of a sequence is that of several: EM of one long
# series would go on for gains of 1e-4 nats in all.
LONG = 16


def rough(options: EMOptions) -> EMOptions:
    """EM that is good enough to choose kinds of emissions by."""
    return replace(options, tol=ROUGH * options.tol, patient=False)


def choose_emissions(
    panel: Panel, ascent: Ascent, options: EMOptions | None = None
) -> Ascent:
    """Change kinds of emissions where BIC gains until nothing changes, then run EM.

    `ascent` is the result of `fit_chain`, a rough one is enough, and so is what is
    returned.
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
    options = replace(options, tol=options.tol * max(panel.n_slices / LONG, 1.0))
    quick, most = rough(options), options.max_joint_states
    network = first_network(panel, graph, cardinality, emission, most=most)
    start, transition = list(network.start), list(network.transition)
    emissions, cardinality = list(network.emissions), network.cardinality.copy()
    for latents, is_whole in _parts(network):
        features = np.flatnonzero(np.isin(network._parents, latents or [-1]))
        own = panel.of_features(features)
        part = network.directed_graph._part(latents, features)
        first = [emission[f] for f in features]
        ascent = fit_chain(own, part, network.cardinality[latents], first, quick)
        ascent = _best_kinds(own, ascent, quick)
        if may_join and is_whole:
            ascent = with_fewer_states(own, ascent, quick)
        found = ascent.state
        for f, one in zip(features, found.emissions, strict=True):
            emissions[f] = one
        for place, j in enumerate(latents if is_whole else ()):
            start[j], transition[j] = found.start[place], found.transition[place]
            cardinality[j] = found.cardinality[place]
    best = LatentDBN(
        graph, cardinality, start, transition, emissions, max_joint_states=most
    )
    return fit_chain(panel, graph, cardinality, best, options)


def _parts(network: LatentDBN) -> Iterator[tuple[list[int], bool]]:
    """Latents that are looked at together, and whether they are a whole part."""
    if (network._parents < 0).any():
        yield [], True
    for latents in network.directed_graph.components():
        if network.is_exact(latents):
            yield latents.tolist(), True
        else:
            yield from (([j], False) for j in latents.tolist())


def _best_kinds(panel: Panel, ascent: Ascent, quick: EMOptions) -> Ascent:
    """Change kinds where BIC gains, from the given ones and from memory everywhere.

    A latent that has taken over the memory of one of its features makes the others look
    as if they had one. So if any memory is found, the way back from memory everywhere
    is tried too. (Without, the BIC of seven panels was 16 to 734 worse.)
    """
    best = _improved(panel, ascent, quick)
    if best is ascent:
        return ascent
    kinds = [panel.kinds_of(f) for f in range(panel.n_observed)]
    most = [next((k for k in own if KINDS[k].has_memory), own[0]) for own in kinds]
    richest = replace(panel, kinds=tuple((kind,) for kind in most))
    network = ascent.state
    first = fit_chain(richest, network.graph, network.cardinality, None, quick)
    backward = _improved(panel, first, quick)

    def bic(found):
        """BIC of networks that differ in their emissions alone, higher is better."""
        emissions = enumerate(found.state.emissions)
        price = sum(_price(panel, f) * e.n_free for f, e in emissions)
        return found.statistics.log_likelihood - price

    return max(best, backward, key=bic)


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
    states = [*expectation(network, data).states, np.ones((*data.weights.shape, 1))]
    weighted = [state * data.weights[:, :, None] for state in states]
    each = enumerate(zip(network._parents, network.emissions, strict=True))
    return [_best_kind(panel, data, f, own, weighted[j]) for f, (j, own) in each]


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
        # Smaller gains are rounding.
        if value > highest + 1e-6:
            best, highest = emission, value
    return best


def _price(panel: Panel, f: int) -> float:
    """Price of a parameter of a feature: that of as many rows as it has values."""
    return bic_price(panel.weights @ (panel.codes[:, :, f] >= 0).sum(axis=1))


def with_fewer_states(panel: Panel, ascent: Ascent, options: EMOptions) -> Ascent:
    """Join states of latents whose features have a memory, while BIC gains.

    Numbers of states are chosen before kinds of emissions, so that states may stand for
    a memory that features turn out to have themselves. (Without, the BIC of five of
    seven panels was 15 to 293 worse.)
    """
    price = bic_price(panel.weights.sum())
    for j in range(ascent.state.graph.n_latents):
        own = ascent.state.graph.features_of(j)
        if not any(ascent.state.emissions[f].has_memory for f in own):
            continue
        while ascent.state.cardinality[j] > 2:
            first = with_joined_states(ascent, j, options.smoothing)
            saved = price * (ascent.state.n_parameters - first.n_parameters)
            target = ascent.statistics.log_likelihood - saved
            race = replace(options, beat=(-np.inf, target))
            trial = fit_chain(panel, first.graph, first.cardinality, first, race)
            if trial.statistics.log_likelihood <= target:
                break
            ascent = trial
    return ascent


def with_joined_states(
    ascent: Ascent, j: int, smoothing: float = SMOOTHING
) -> LatentDBN:
    """The network with one state of a latent less: two that are most alike are one."""
    network, counts = ascent.state, ascent.statistics
    own = network.graph.features_of(j)
    pairs = list(combinations(range(int(network.cardinality[j])), 2))
    found = [
        [_joined_emission(ascent, f, *pair, smoothing) for f in own] for pair in pairs
    ]
    best = int(np.argmin([sum(loss for _, loss in parts) for parts in found]))
    emissions = list(network.emissions)
    for f, (emission, _) in zip(own, found[best], strict=True):
        emissions[f] = emission

    def joined_tables(tables, later):
        """Tables of latents if the best two states are one."""
        for i, table in enumerate(tables):
            family = family_of(network.directed_graph, i, later=later)
            for axis, (latent, _) in enumerate(family):
                if latent == j:
                    table = _joined(table, axis, *pairs[best])
            yield normalized(table, smoothing)

    cardinality = network.cardinality.copy()
    cardinality[j] -= 1
    return LatentDBN(
        network.graph,
        cardinality,
        list(joined_tables(counts.start, later=False)),
        list(joined_tables(counts.transition, later=True)),
        emissions,
        max_joint_states=network.max_joint_states,
    )


def told_by_one_feature(ascent: Ascent, panel: Panel) -> np.ndarray:
    """Features in which alone two states of their latent differ.

    If a feature depends on a further latent as well, states of its own latent are split
    by what it shows of the other, and no other feature tells the parts apart.
    """
    network = ascent.state
    price = bic_price(panel.weights @ (panel.codes >= 0).any(axis=2).sum(axis=1))
    found = set()
    for j in range(network.graph.n_latents):
        own = network.graph.features_of(j)
        for pair in combinations(range(int(network.cardinality[j])), 2):
            losses = []
            for f in own:
                emission, loss = _joined_emission(ascent, f, *pair)
                saved = network.emissions[f].n_free - emission.n_free
                losses.append(loss - price * saved)
            tells = np.flatnonzero(np.array(losses) > 0)
            if len(own) > 2 and len(tells) == 1:
                found.add(int(own[tells[0]]))
    return np.array(sorted(found), dtype=int)


def _joined_emission(
    ascent: Ascent, f: int, a: int, b: int, smoothing: float = SMOOTHING
) -> tuple[Emission, float]:
    """Emission of a feature if two states are one, and what it loses, in nats."""
    emission, statistics = ascent.state.emissions[f], ascent.statistics.emission[f]
    together = _joined(statistics, 0, a, b)
    joined = emission.fitted(together, smoothing)
    loss = emission.expected_log_likelihood(statistics)
    return joined, loss - joined.expected_log_likelihood(together)


def _joined(counts: np.ndarray, axis: int, a: int, b: int) -> np.ndarray:
    """Counts of which two places along an axis are one."""
    moved = np.moveaxis(counts, axis, 0)
    joined = np.delete(moved, b, axis=0)
    joined[a] += moved[b]
    return np.moveaxis(joined, 0, axis)
