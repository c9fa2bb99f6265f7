"""What a noisy-or network says of itself: its summary, what cells tell of latents."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._answers.explain import Part, clip_log_odds, clipped_logit
from .._answers.pages import Section
from .._answers.summary import MOST_NAMES, Parts, leading
from .._core.text import LONGEST_NAME, count, label, number
from ._misfit import read_names
from ._noisy_or_network import NoisyOrNetwork
from ._posterior import infer_network
from ._probabilities import safe_log
from ._statistics.patterns import components, turn

# Classes whose latents are listed.
MOST_CLASSES = 8
# Parameters up to which standard errors are shown.
MOST_ERRORS = 1000


def describe(model: Any) -> Parts:
    """What was found, classes above the latents, and cautions."""
    network, names = model.network_, model.latent_names_
    features = read_names(network, model._feature_names())
    errors = _errors(model, names, features)
    switch = "the probability that the latent, when on, switches it on"
    return Parts(
        [*_found(network, features), *_words(model.on_values_)],
        _cautions(model),
        switch + " (± standard error)" * bool(errors),
        ("prior", "P(latent on)"),
        errors,
        _classes(network, names),
    )


def _errors(model, names, features) -> dict:
    """Standard errors, unless there are so many that they would take very long."""
    network = model.network_
    if network.n_parameters > MOST_ERRORS or not hasattr(model, "failure_stderr_"):
        return {}
    errors = {
        (names[k], features[j]): model.failure_stderr_[k, j]
        for k, j in np.argwhere(network.structure).tolist()
    }
    return errors | dict(zip(names, model.prior_stderr_, strict=True))


def _found(network, features) -> list[str]:
    found = [
        f"{count(network.n_latents, 'latent')} with "
        f"{count(int(network.structure.sum()), 'edge')} to "
        f"{count(network.n_features, 'feature')}."
    ]
    alone = np.flatnonzero(~network.structure.any(axis=0))
    if len(alone) and network.n_latents:
        found.append(f"Features without a latent: {_few(features[j] for j in alone)}.")
    if network.n_classes > 1:
        found.append(
            f"Latents depend on each other through {network.n_classes} hidden classes "
            "of rows."
        )
    n_turned = int((network.polarity < 0).sum())
    if n_turned:
        found.append(
            f"{count(n_turned, 'feature')} read the other way round, as 'not ...': "
            "latents switch them off."
        )
    return found


def _words(on_values: dict[str, str]) -> list[str]:
    """Which words count as on."""
    if not on_values:
        return []
    pairs = (f"{label(word)} in {label(name)}" for name, word in on_values.items())
    return [f"Values that count as on: {_few(pairs)}."]


def _few(names) -> str:
    """The first names, and how many more there are."""
    words = [label(name, 2 * LONGEST_NAME) for name in names]
    more = f" and {len(words) - MOST_NAMES} more" if len(words) > MOST_NAMES else ""
    return ", ".join(words[:MOST_NAMES]) + more


def _classes(network, names) -> list[Section]:
    if network.n_classes < 2:
        return []
    order = np.argsort(-network.class_weight, kind="stable")[:MOST_CLASSES]
    rows = [
        (f"class {c}", number(network.class_weight[c]), leading(names, prior, most=4))
        for c, prior in ((c, network.class_prior[c]) for c in order.tolist())
    ]
    left = network.n_classes - len(rows)
    if left:
        rows.append((f"and {left} more", "", ""))
    lines = ["Beside each latent P(latent on | class)."]
    return [Section("Classes", lines, ("class", "share", "leading latents"), rows)]


def _cautions(model) -> list[str]:
    network = model.network_
    cautions = []
    if network.n_latents:
        cautions.append(
            "A latent is what makes features go together. Whether it is a cause in the "
            "world, the rows alone do not say."
        )
    if network.n_classes > 1:
        cautions.append("Classes are groups of rows, not causes.")
    common = np.flatnonzero(network.prior > 0.9)
    if len(common):
        cautions.append(
            f"{', '.join(label(model.latent_names_[k]) for k in common[:6].tolist())}: "
            "on in almost all rows, hardly different from leaks of their features."
        )
    if getattr(model, "n_init", 0) == 1:
        cautions.append(
            "EM finds a local optimum; n_init=10 tries ten starts and keeps the best."
        )
    if not getattr(model, "converged_", True):
        cautions.append("EM stopped before it converged; raise max_iter.")
    return cautions


# What cells tell of latents

# Log-odds above which a probability has lost digits: 1 - P has an error of 1e-9 here.
BLUNT = 15.0


def part_of(network: NoisyOrNetwork, on, observed, latent: int) -> Part:
    """Cells that may matter for a latent, given one row (n_features,)."""
    found = infer_network(network, on[np.newaxis], observed[np.newaxis])
    if np.isneginf(found.log_likelihood[0]):
        # A row that the network cannot produce says nothing.
        prior = clipped_logit(network.prior[latent])
        cells = np.flatnonzero(observed)
        return Part(cells, len(cells), lambda seen: np.full(len(seen), prior))
    fires = turn(on[np.newaxis], observed[np.newaxis], network.polarity)[0] & observed
    group = np.arange(network.n_latents)
    # Bounds depend on what else is inferred, so the network stays whole; and features
    # that are off, or not seen, couple no latents.
    if network.n_classes == 1 and not found.is_bound[0]:
        parts = components(network.structure & fires)
        group = next(part.latents for part in parts if latent in part.latents)
    cells = np.flatnonzero(observed & network.structure[group].any(axis=0))
    return Part(cells, len(cells), partial(_log_odds, network, on, cells, latent))


def _log_odds(network, on, cells, latent: int, seen) -> np.ndarray:
    """Log-odds of a latent, given which cells are seen."""
    observed = np.zeros((len(seen), network.n_features), dtype=bool)
    observed[:, cells] = seen
    fires = on & observed
    found = infer_network(network, fires, observed)
    log_odds = clipped_logit(found.posterior[:, latent])
    blunt = (np.abs(log_odds) > BLUNT) & ~found.is_bound
    if blunt.any():
        sharp = _sharp_log_odds(network, latent, fires[blunt], observed[blunt])
        log_odds[blunt] = np.where(np.isnan(sharp), log_odds[blunt], sharp)
    return clip_log_odds(log_odds)


def _sharp_log_odds(network, latent, on, observed) -> np.ndarray:
    """Log-odds from the likelihoods given both states; NaN if one is a bound."""
    values = []
    for state in (True, False):
        chance = (
            network.class_prior[:, latent]
            if state
            else 1.0 - network.class_prior[:, latent]
        )
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
