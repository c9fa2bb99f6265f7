"""Fewer states, where the memory of features explains what states were for."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from ..._climb import Ascent
from ..._criteria import bic_price
from .._emissions.base import SMOOTHING
from .._model import LatentDBN
from .._panels.panel import Panel
from .._tables import family_of, normalized
from .em import EMOptions, fit_chain


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

    def joined_emissions(a, b):
        """Emissions if two states are one, and their expected log-likelihood."""
        emissions, total = list(network.emissions), 0.0
        for f in own:
            statistics = _joined(counts.emission[f], 0, a, b)
            emissions[f] = network.emissions[f].fitted(statistics, smoothing)
            total += emissions[f].expected_log_likelihood(statistics)
        return total, emissions

    pairs = list(combinations(range(int(network.cardinality[j])), 2))
    found = [joined_emissions(a, b) for a, b in pairs]
    best = int(np.argmax([total for total, _ in found]))

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
        found[best][1],
        max_joint_states=network.max_joint_states,
    )


def _joined(counts: np.ndarray, axis: int, a: int, b: int) -> np.ndarray:
    """Counts of which two places along an axis are one."""
    moved = np.moveaxis(counts, axis, 0)
    joined = np.delete(moved, b, axis=0)
    joined[a] += moved[b]
    return np.moveaxis(joined, 0, axis)
