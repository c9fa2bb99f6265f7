"""What the cells of a row tell of the latents of a noisy-or network."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from .._answers.explain import Part, clip_log_odds, clipped_logit
from ._network import NoisyOrNetwork
from ._posterior import infer_network
from ._probabilities import safe_log
from ._statistics.patterns import components, turn

# Log-odds above which a probability has lost digits: 1 - P has an error of 1e-9 here.
BLUNT = 15.0


def evidence_parts(network: NoisyOrNetwork, on, observed, latents) -> Iterator[Part]:
    """Parts of the network that hold some latents, given one row (n_features,)."""
    found = infer_network(network, on[np.newaxis], observed[np.newaxis])
    if np.isneginf(found.log_likelihood[0]):
        # A row that the network cannot produce says nothing.
        cells = np.flatnonzero(observed)
        yield _part(np.arange(network.n_latents), cells, partial(_prior, network))
        return
    fires = turn(on[np.newaxis], observed[np.newaxis], network.polarity)[0] & observed
    coupled = network.n_classes > 1 or found.is_bound[0]
    if coupled:
        groups = [np.arange(network.n_latents)]
    else:
        # Features that are off, or not seen, couple no latents.
        groups = [part.latents for part in components(network.structure & fires)]
    for group in groups:
        if np.isin(group, latents).any():
            cells = np.flatnonzero(observed & network.structure[group].any(axis=0))
            # Bounds depend on what else is inferred, so the network stays whole.
            whole = network if coupled else _restrict(network, group, cells)
            own = (group, cells) if coupled else None
            yield _part(group, cells, partial(_log_odds, whole, on[cells], own))


def _part(latents, cells, target) -> Part:
    return Part(latents, cells, np.ones(len(cells), dtype=bool), target)


def _prior(network, seen, places) -> np.ndarray:
    """Log-odds without any evidence."""
    return np.tile(clipped_logit(network.prior[places]), (len(seen), 1))


def _restrict(network, latents, cells) -> NoisyOrNetwork:
    """The network of some latents and features alone, of a single class."""
    return NoisyOrNetwork(
        network.prior[latents],
        network.failure[np.ix_(latents, cells)],
        network.leak[cells],
        polarity=network.polarity[cells],
    )


def _log_odds(network, on, own, seen, places) -> np.ndarray:
    """Log-odds of latents, given which cells are seen.

    own: latents and features of the cells, if the network has others
    """
    if own is None:
        fires, observed = on & seen, seen
    else:
        fires = np.zeros((len(seen), network.n_features), dtype=bool)
        observed = fires.copy()
        fires[:, own[1]], observed[:, own[1]] = on & seen, seen
    found = infer_network(network, fires, observed)
    log_odds = clipped_logit(found.posterior[:, places])
    for k, place in enumerate(places):
        blunt = (np.abs(log_odds[:, k]) > BLUNT) & ~found.is_bound
        if blunt.any():
            sharp = _sharp_log_odds(network, place, fires[blunt], observed[blunt])
            log_odds[blunt, k] = np.where(np.isnan(sharp), log_odds[blunt, k], sharp)
    return clip_log_odds(log_odds)


def _sharp_log_odds(network, latent, on, observed) -> np.ndarray:
    """Log-odds from the likelihoods given both states; NaN if one is a bound."""
    values = []
    for state in (True, False):
        chance = network.class_prior[:, latent] if state else _off(network, latent)
        weight = network.class_weight * chance
        kept = weight > 0
        if not kept.any():
            values.append(np.full(len(on), -np.inf))
            continue
        prior = network.class_prior[kept].copy()
        prior[:, latent] = state
        given = NoisyOrNetwork(
            prior,
            network.failure,
            network.leak,
            class_weight=weight[kept] / weight.sum(),
            polarity=network.polarity,
        )
        found = infer_network(given, on, observed)
        value = found.log_likelihood + safe_log(weight.sum())
        values.append(np.where(found.is_bound, np.nan, value))
    with np.errstate(invalid="ignore"):
        return values[0] - values[1]


def _off(network, latent):
    """P(latent off | class)."""
    return 1.0 - network.class_prior[:, latent]
