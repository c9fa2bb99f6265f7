"""One network per epoch by EM, sharing what does not change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._climb import Ascent, climb
from ..._criteria import bic_price
from .._epochs import EpochDBN
from .._inference.inference import ChainCounts, ChainData, expectation
from .._model import LatentDBN
from .._panels.panel import Panel
from .._tables import family_score, log_prior, normalized
from .em import EMOptions, replace_tables


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
    found = _fit(data, [network] * (len(points) + 1), np.asarray(points), options)
    while prune and len(found.state.change_points):
        fewer = [
            _fit(data, *_without(found.state, place), options)
            for place in range(len(found.state.change_points))
        ]
        best = min(fewer, key=lambda one: _bic(one, data))
        if _bic(best, data) > _bic(found, data):
            break
        found = best
    return found


def _without(network: EpochDBN, place: int) -> tuple[list, np.ndarray]:
    """Networks and change points, less one."""
    networks = [one for e, one in enumerate(network.networks) if e != place + 1]
    return networks, np.delete(network.change_points, place)


def _fit(data: ChainData, networks: list, points, options: EMOptions) -> Ascent:
    """EM with tables of each epoch, then with those shared that gain nothing."""
    n_latents, n_observed = networks[0].graph.structure.shape
    nothing = Sharing(np.zeros(n_latents, bool), np.zeros(n_observed, bool))
    first = _climb(data, EpochDBN(networks, points), nothing, options)
    sharing = _choose_sharing(first.state, first.statistics, data)
    shared = _maximize(first.state, first.statistics, sharing, options.smoothing)
    return _climb(data, shared, sharing, options)


def _climb(data: ChainData, network: EpochDBN, sharing: Sharing, options) -> Ascent:
    """EM from given networks."""

    def expect(network):
        counts = expectation(network, data).epochs
        prior = log_prior(network.start, options.smoothing)
        for one in network.networks:
            prior += log_prior(one.transition, options.smoothing)
            prior += sum(e.log_prior(options.smoothing) for e in one.emissions)
        return counts.log_likelihood + prior, counts

    return climb(
        expect,
        lambda network, counts: _maximize(network, counts, sharing, options.smoothing),
        network,
        tol=options.tol * data.total,
        max_iter=options.max_iter,
        patient=options.patient,
    )


def _maximize(
    network: EpochDBN, counts: ChainCounts, sharing: Sharing, smoothing: float
) -> EpochDBN:
    """M-step: tables of each epoch, or of all together."""
    start = [normalized(count, smoothing) for count in counts.start]
    transition = _pooled(counts.transition, sharing.transition)
    emission = _pooled(counts.emission, sharing.emission)
    networks = [
        replace_tables(
            one,
            start=start,
            transition=[normalized(count, smoothing) for count in transition[e]],
            emission=[
                kind.fitted(statistics, smoothing)
                for kind, statistics in zip(one.emissions, emission[e], strict=True)
            ],
        )
        for e, one in enumerate(network.networks)
    ]
    return EpochDBN(networks, network.change_points)


def _pooled(counts: list, shared) -> list:
    """Counts of each epoch; their sum over epochs where a table is shared."""
    totals = [sum(tables) for tables in zip(*counts, strict=True)]
    return [
        [
            total if together else own
            for own, total, together in zip(tables, totals, shared, strict=True)
        ]
        for tables in counts
    ]


def _choose_sharing(network: EpochDBN, counts: ChainCounts, data: ChainData) -> Sharing:
    """Share what tables of their own do not improve by BIC, given expected counts."""
    price = bic_price(data.weights.sum())
    transition = []
    for tables in zip(*counts.transition, strict=True):
        *single, (together, n_free) = map(family_score, (*tables, sum(tables)))
        gain = sum(value for value, _ in single) - together
        transition.append(gain <= price * (len(tables) - 1) * n_free)
    emission = []
    parts = zip(*counts.emission, strict=True)
    for kind, statistics in zip(network.emissions, parts, strict=True):
        together = sum(statistics)
        gain = sum(_fit_value(kind, one) for one in statistics)
        gain -= _fit_value(kind, together)
        emission.append(gain <= price * (len(statistics) - 1) * kind.n_free)
    return Sharing(np.array(transition, bool), np.array(emission, bool))


def _fit_value(kind, statistics) -> float:
    """Expected log-likelihood of an emission that is fitted to its statistics."""
    return kind.fitted(statistics).expected_log_likelihood(statistics)


def _bic(found: Ascent, data: ChainData) -> float:
    """BIC with as many rows as there are recorded slices; lower is better."""
    price = bic_price(data.weights.sum())
    return price * found.state.n_parameters - found.statistics.log_likelihood
