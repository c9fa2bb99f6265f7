"""What the summary of a noisy-or network says."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._answers.summary import (
    MOST_NAMES,
    Parts,
    Section,
    latents_section,
    leading,
    with_error,
)
from .._core.text import LONGEST_NAME, count, label, number
from ._misfit import read_names

# Classes whose latents are listed.
MOST_CLASSES = 8
# Parameters up to which standard errors are shown.
MOST_ERRORS = 1000


def describe(model: Any) -> Parts:
    """Latents, their leading features, and classes above them."""
    network, names = model.network_, model.latent_names_
    features = read_names(network, model._feature_names())
    sections = [*_latents(model, names, features), *_classes(network, names)]
    found = [*_found(network, features), *_words(model.on_values_)]
    return Parts(found, sections, _cautions(model))


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


def _latents(model, names, features) -> list[Section]:
    network = model.network_
    prior_errors = errors = None
    # Errors of very many parameters would take longer than the fit.
    if network.n_parameters <= MOST_ERRORS:
        prior_errors = getattr(model, "prior_stderr_", None)
        errors = getattr(model, "failure_stderr_", None)
    rows = []
    for k, edges in enumerate(network.structure):
        places = np.flatnonzero(edges)
        own = None if errors is None else errors[k, places]
        strengths = 1.0 - network.failure[k, places]
        rows.append(
            (
                label(names[k]),
                with_error(
                    network.prior[k], None if prior_errors is None else prior_errors[k]
                ),
                leading([features[j] for j in places], strengths, own),
            )
        )
    error = "" if errors is None else " (± standard error)"
    line = (
        "prior: P(latent on). Beside each feature the probability that the latent, "
        f"when on, switches it on{error}."
    )
    return latents_section(("latent", "prior", "leading features"), rows, [line])


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
