"""One network per epoch by EM, sharing what does not change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..._core.climb import Ascent
from ..._core.criteria import bic_price
from ..._tables.blocks import LocalBlocks
from .._epochs import EpochDBN
from .._inference.expectation import ChainCounts
from .._inference.patterns import ChainData
from .._model import LatentDBN
from .._panels.panel import Panel
from .._tables import family_score
from .em import EMOptions, climb_chain, maximized


@dataclass(frozen=True)
class Sharing:
    """Which tables all epochs share.

    transition: by latent; emission: by feature
    """

    transition: np.ndarray
    emission: np.ndarray


def fit_epochs(
    panel: Panel, network: LatentDBN, points, options: EMOptions, *, prune: bool
) -> Ascent:
    """Fit one network per epoch, from a network of some slices; the state is all.

    With `prune`, change points that do not improve the BIC are dropped.
    """
    panel = panel.merged()
    data = ChainData.of(panel.values, network.graph.structure, panel.weights)
    price = bic_price(data.weights.sum())

    def fit(networks, points):
        return _fit(panel, EpochDBN(networks, points), price, options)

    found = fit([network] * (len(points) + 1), np.asarray(points))
    while prune and len(found.state.change_points):
        fewer = [
            fit(*_without(found.state, place))
            for place in range(len(found.state.change_points))
        ]
        best = min(fewer, key=lambda one: _bic(one, price))
        if _bic(best, price) > _bic(found, price):
            break
        found = best
    return found


def _without(network: EpochDBN, place: int) -> tuple[list, np.ndarray]:
    """Networks and change points, less one."""
    networks = [one for e, one in enumerate(network.networks) if e != place + 1]
    return networks, np.delete(network.change_points, place)


def _fit(panel: Panel, network: EpochDBN, price: float, options: EMOptions) -> Ascent:
    """EM with tables of each epoch, then with those shared that gain nothing."""
    blocks = LocalBlocks([panel])
    first = climb_chain(network, blocks, options)
    sharing = _choose_sharing(first.state, first.statistics, price)
    pool = partial(_pooled, sharing=sharing)
    shared = maximized(first.state, pool(first.statistics), options.smoothing)
    return climb_chain(shared, blocks, options, pool=pool)


def _pooled(counts: ChainCounts, sharing: Sharing) -> ChainCounts:
    """Counts of each epoch; their sum over epochs where a table is shared."""

    def pooled(tables, shared):
        n = len(shared)
        return [
            sum(tables[k % n :: n]) if shared[k % n] else table
            for k, table in enumerate(tables)
        ]

    return replace(
        counts,
        transition=pooled(counts.transition, sharing.transition),
        emission=pooled(counts.emission, sharing.emission),
    )


def _choose_sharing(network: EpochDBN, counts: ChainCounts, price: float) -> Sharing:
    """Share what tables of their own do not improve by BIC, given expected counts."""
    transition, emission = [], []
    for j in range(network.n_latents):
        tables = counts.transition[j :: network.n_latents]
        *single, (together, n_free) = map(family_score, (*tables, sum(tables)))
        gain = sum(value for value, _ in single) - together
        transition.append(gain <= price * (len(tables) - 1) * n_free)
    for f, kind in enumerate(network.emissions):
        parts = counts.emission[f :: network.n_observed]
        gain = sum(_fit_value(kind, one) for one in parts)
        gain -= _fit_value(kind, sum(parts))
        emission.append(gain <= price * (len(parts) - 1) * kind.n_free)
    return Sharing(np.array(transition, bool), np.array(emission, bool))


def _fit_value(kind, statistics) -> float:
    """Expected log-likelihood of an emission that is fitted to its statistics."""
    return kind.fitted(statistics).expected_log_likelihood(statistics)


def _bic(found: Ascent, price: float) -> float:
    """BIC with as many rows as there are recorded slices; lower is better."""
    return price * found.state.n_parameters - found.statistics.log_likelihood
