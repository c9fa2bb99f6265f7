"""Fewer states, where the memory of features explains what states were for."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from ..._core.climb import Ascent
from ..._core.criteria import bic_price
from .._emissions.emission import SMOOTHING, Emission
from .._model import LatentDBN
from .._panels.panel import Panel
from .._tables import family_of, normalized
from .chain_em import EMOptions, fit_chain


def with_fewer_states(panel: Panel, ascent: Ascent, options: EMOptions) -> Ascent:
    """Join states of latents whose features have a memory, while BIC gains.

    Numbers of states are chosen before kinds of emissions, so that states may stand for
    a memory that features turn out to have themselves.
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
