"""Tables of each epoch by EM, sharing what does not change."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ..._core.climb import Ascent
from ..._core.criteria import bic_price
from ..._tables.blocks import LocalBlocks
from .._inference.chain_data import ChainData
from .._inference.expectation import ChainCounts
from .._latent_dbn import LatentDBN
from .._panels.panel import Panel
from .._tables import family_score
from .chain_em import EMOptions, climb_chain, maximized


def fit_epochs(
    panel: Panel, network: LatentDBN, points, options: EMOptions, *, prune: bool
) -> Ascent:
    """Fit tables of each epoch, from a network of some slices.

    With `prune`, change points that do not improve the BIC are dropped.
    """
    panel = panel.merged()
    data = ChainData.of(panel.values, network.graph.structure, panel.weights)
    price = bic_price(data.weights.sum())

    def fit(networks, points):
        several = networks[-1].with_earlier(networks[:-1], points)
        return _fit(panel, several, price, options)

    def cost(found):
        """BIC with as many rows as there are recorded slices; lower is better."""
        return price * found.state.n_parameters - found.statistics.log_likelihood

    found = fit([network] * (len(points) + 1), np.asarray(points))
    while prune and len(found.state.change_points):
        networks, points = found.state._epochs, found.state.change_points
        fewer = [
            fit(
                [one for e, one in enumerate(networks) if e != place + 1],
                np.delete(points, place),
            )
            for place in range(len(points))
        ]
        best = min(fewer, key=cost)
        if cost(best) > cost(found):
            break
        found = best
    return found


def _fit(panel: Panel, network: LatentDBN, price: float, options: EMOptions) -> Ascent:
    """EM with tables of each epoch, then with those shared that gain nothing."""
    blocks = LocalBlocks([panel])
    first = climb_chain(network, blocks, options)
    counts, emissions = first.statistics, network.emissions
    steps = _shared(counts.transition, [family_score] * network.n_latents, price)
    values = [partial(_fit_value, kind) for kind in emissions]
    pool = partial(_pooled, steps=steps, shown=_shared(counts.emission, values, price))
    shared = maximized(first.state, pool(counts), options.smoothing)
    return climb_chain(shared, blocks, options, pool=pool)


def _pooled(counts: ChainCounts, steps, shown) -> ChainCounts:
    """Counts of each epoch; their sum over epochs where a table is shared."""

    def pooled(tables, shared):
        n = len(shared)
        return [
            sum(tables[k % n :: n]) if shared[k % n] else table
            for k, table in enumerate(tables)
        ]

    return replace(
        counts,
        transition=pooled(counts.transition, steps),
        emission=pooled(counts.emission, shown),
    )


def _shared(tables, values, price: float) -> list[bool]:
    """Which tables epochs share: those of their own do not improve the BIC.

    ``values[k](counts)`` is the log-likelihood of a table, and its free parameters.
    """
    found = []
    for k, value in enumerate(values):
        parts = tables[k :: len(values)]
        together, n_free = value(sum(parts))
        gain = sum(value(one)[0] for one in parts) - together
        found.append(bool(gain <= price * (len(parts) - 1) * n_free))
    return found


def _fit_value(kind, statistics) -> tuple[float, int]:
    """Expected log-likelihood of a fitted emission, and its free parameters."""
    value = kind.fitted(statistics).expected_log_likelihood(statistics)
    return value, kind.n_free
