"""Missing values drawn from the network, given what their sequences show.

If the network is right and values are missing at random, completed sequences follow it.
So checks need not know which values were missing, nor what that depends on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from .._panels.panel import Panel, is_known
from .._tables import draw_categories
from .chain_data import ChainData
from .expectation import Part
from .factored import MeanField

# Values that others follow are drawn again so often, in turn with the states.
ROUNDS = 10


def complete(network, panel: Panel) -> Panel:
    """Sequences with a draw for each missing value, the same in every order of them."""
    values = panel.values
    missing = ~is_known(values)
    rows = np.flatnonzero(missing.any(axis=(1, 2)))
    if not len(rows):
        return panel
    rows = rows[np.lexsort(values[rows].reshape(len(rows), -1).T)]
    drawn = values.copy()
    drawn[rows] = _draw(network, values[rows], np.random.RandomState(0))
    numeric = panel.is_numeric
    codes = np.where(missing & ~numeric, drawn, np.where(missing, 0, panel.codes))
    codes = codes.astype(panel.codes.dtype)
    if panel.numbers is None:
        return replace(panel, codes=codes)
    return replace(panel, codes=codes, numbers=np.where(numeric, drawn, np.nan))


def _draw(network, values, rng) -> np.ndarray:
    """Complete sequences."""
    missing = ~is_known(values)
    values = values.copy()
    memory = np.array([e.has_memory for e in network.emissions], dtype=bool)
    for _ in range(ROUNDS if memory.any() else 1):
        states = _draw_states(network, values, rng)
        for own, span in network._spans(values.shape[1]):
            for f in np.flatnonzero(missing.any(axis=(0, 1))):
                emission, behind = own.emissions[f], states[:, :, own._parents[f]]
                if memory[f]:
                    for t in range(span.start, span.stop):
                        part = values[:, :, f], missing[:, t, f]
                        _draw_after(emission, behind, t, *part, rng)
                else:
                    cells = np.zeros_like(missing[:, :, f])
                    cells[:, span] = missing[:, span, f]
                    values[:, :, f][cells] = emission.draw(behind, rng)[cells]
    return values


def _draw_states(network, values, rng) -> np.ndarray:
    """States of all latents, and a last one of features that measure none."""
    data = ChainData.of(values, network.graph.structure)
    n, n_slices, _ = values.shape
    states = np.zeros((n, n_slices, network.n_latents + 1), dtype=np.intp)
    for tree in network._trees():
        if network.is_exact(list(tree.cards)):
            for j, own in Part(network, data, tree).drawn(rng).items():
                states[:, :, j] = own.T
            continue
        for j, own in MeanField(network, data, tree).fit().states.items():
            flat = own.reshape(n * n_slices, -1)
            states[:, :, j] = draw_categories(flat, rng).reshape(n, n_slices)
    return states


def _draw_after(emission, states, t, column, missing, rng) -> None:
    """Draw the missing values of a slice, which the next ones may follow, in place.

    A Metropolis step: the value before proposes, the value after decides.
    """
    rows = np.flatnonzero(missing)
    old, new = column[rows].copy(), column[rows].copy()
    found = _given_past(emission, states[rows], t, new)
    if emission.is_numeric:
        new[:, t] = rng.normal(found[:, 0], found[:, 1])
    else:
        new[:, t] = draw_categories(found, rng)
    first = ~is_known(old[:, t])
    change = np.zeros(len(rows))
    if t + 1 < column.shape[1]:
        after, before = (_log_next(emission, states[rows], t, v) for v in (new, old))
        change = np.where(is_known(old[:, t + 1]) & ~first, after - before, 0.0)
    taken = first | (np.log1p(-rng.random_sample(len(rows))) < change)
    column[rows[taken], t] = new[taken, t]


def _given_past(emission, states, t, values) -> np.ndarray:
    """Chances of the categories of a slice, or mean and standard deviation."""
    window = slice(max(t - 1, 0), t + 1)
    indicator = np.eye(emission.n_states)[states[:, window]]
    return emission.predicted(indicator, values[:, window])[:, -1]


def _log_next(emission, states, t, values) -> np.ndarray:
    """Log-density of the values of the next slice."""
    found, now = _given_past(emission, states, t + 1, values), values[:, t + 1]
    if emission.is_numeric:
        return stats.norm.logpdf(now, found[:, 0], found[:, 1])
    place = np.maximum(np.nan_to_num(now, nan=0.0), 0).astype(np.intp)
    return np.log(np.maximum(found[np.arange(len(found)), place], 1e-300))
