"""What latents behind columns of any kind say of themselves: summary and evidence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._answers.explain import Part, clip_log_odds
from .._answers.summary import Parts
from .._core.text import count
from .._core.validation import check_count, shown
from ._panels.panel import MISSING, is_known


def describe(model: Any) -> Parts:
    """What was found, and cautions."""
    has_time = model.n_features_in_ > model.network_.n_observed
    return Parts(
        _found(model, has_time),
        _cautions(model),
        "the share of the information about one node that the other has, from 0 to 1",
        ("cardinality", "states"),
        unit="sequence" if has_time else "row",
    )


def _found(model, has_time: bool) -> list[str]:
    network = model.network_
    states = ", ".join(map(str, np.unique(network.cardinality).tolist()))
    slices = f" in {model.n_slices_} slices" if has_time else ""
    found = [
        f"{count(network.n_latents, 'latent')} behind "
        f"{count(int(model.structure_.any(axis=0).sum()), 'feature')} of "
        f"{network.n_observed}{slices}."
    ]
    if network.n_latents:
        found.append(f"Numbers of states: {states}.")
    epochs = getattr(model, "epochs_", ())
    if has_time and len(epochs) > 1:
        starts = ", ".join(map(str, np.asarray(epochs).tolist()))
        found.append(f"The process changes; its parts start at slices {starts}.")
    return found


def _cautions(model) -> list[str]:
    cautions = []
    if model.n_latents_:
        cautions.append(
            "States of a latent have no order and no names: state 1 is not more than "
            "state 0."
        )
    if bool((model.intra_ & model.intra_.T).any()):
        cautions.append("Edges '--' have a direction that rows cannot tell.")
    if model.inter_.any() or model.intra_.any():
        cautions.append(
            "Edges are causes only if no common cause of the latents is missing."
        )
    if not model.converged_:
        cautions.append("EM stopped before it converged; raise max_iter.")
    return cautions


# What cells tell of latents


def choose_slice(given: Any, names: list[str], known: np.ndarray) -> int:
    """Number of a slice that is given by its name or number; None is the last known.

    known: which cells are, (n_slices, n_observed)
    """
    if given is None:
        recorded = np.flatnonzero(known.any(axis=1))
        return int(recorded[-1]) if len(recorded) else len(known) - 1
    if isinstance(given, str):
        if given not in names:
            raise ValueError(
                f"slice must be one of {shown(names)}, got {shown(given)}."
            )
        return names.index(given)
    return check_count("slice", given, 0, len(known) - 1)


def part_of(
    network: Any, infer: Callable, codes: np.ndarray, t: int, states, latent: int
) -> Part:
    """Cells that may matter for a latent, given the codes of one sequence.

    infer: function of codes (n, n_slices, n_observed), posteriors of all latents;
    t: slice, and states: of each latent in it, whose log-odds are asked for
    """
    parts = network.directed_graph.components()
    group = next(part for part in parts if latent in part)
    features = network.graph.structure[group].any(axis=0)
    cells = np.flatnonzero((is_known(codes) & features).ravel())
    target = partial(_log_odds, infer, codes, cells, t, latent, states[latent])
    return Part(cells, len(cells), target)


def _log_odds(infer, codes, cells, t, latent, state, seen) -> np.ndarray:
    """Log-odds of a state of a latent in a slice, given which cells are seen."""
    gap = np.nan if codes.dtype.kind == "f" else MISSING
    rows = np.full((len(seen), codes.size), gap, dtype=codes.dtype)
    rows[:, cells] = np.where(seen, codes.ravel()[cells], gap)
    chance = infer(rows.reshape(len(rows), *codes.shape))[latent][:, t]
    # Certainty keeps its digits, those of all other states.
    others = np.delete(chance, state, axis=1).sum(axis=1)
    with np.errstate(divide="ignore"):
        return clip_log_odds(np.log(chance[:, state]) - np.log(others))
