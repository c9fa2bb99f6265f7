"""What the cells of a sequence tell of the states of its latents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .._answers.explain import Part, clip_log_odds
from .._core.validation import check_count, shown
from ._panels.panel import MISSING, is_known


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


def evidence_parts(
    network: Any, infer: Callable, codes: np.ndarray, t: int, states, latents
) -> Iterator[Part]:
    """Parts of the network that hold some latents, given the codes of one sequence.

    infer: function of codes (n, n_slices, n_observed), posteriors of all latents;
    t: slice, and states: of each latent in it, whose log-odds are asked for
    """
    known = is_known(codes)
    for group in network.directed_graph.components():
        if np.isin(group, latents).any():
            features = network.graph.structure[group].any(axis=0)
            cells = np.flatnonzero((known & features).ravel())
            near = np.ones(len(cells), dtype=bool)
            target = partial(_log_odds, infer, codes, cells, t, states, group)
            yield Part(group, cells, near, target)


def _log_odds(infer, codes, cells, t, states, group, seen, places) -> np.ndarray:
    """Log-odds of states of latents in a slice, given which cells are seen."""
    gap = np.nan if codes.dtype.kind == "f" else MISSING
    rows = np.full((len(seen), codes.size), gap, dtype=codes.dtype)
    rows[:, cells] = np.where(seen, codes.ravel()[cells], gap)
    posterior = infer(rows.reshape(len(rows), *codes.shape))
    columns = [_odds(posterior[j][:, t], states[j]) for j in group[places]]
    return np.stack(columns, axis=1)


def _odds(probability, state) -> np.ndarray:
    """Log-odds of a state; certainty keeps its digits, those of all other states."""
    others = np.delete(probability, state, axis=1).sum(axis=1)
    with np.errstate(divide="ignore"):
        return clip_log_odds(np.log(probability[:, state]) - np.log(others))
