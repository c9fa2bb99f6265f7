"""Is the past longer than a slice? What values two slices before say beyond the model.

A latent depends on the slice before alone. If features follow what they showed two
slices before more than predictions from the whole past do, it has a longer memory.
"""

from __future__ import annotations

import numpy as np

from ..._core.checks import critical_z
from .._panels.panel import MISSING, Panel
from .changes import N_KINDS, share_below, some_sequences, states_by_feature

LAG = 2

# Share of categories that are repeated beyond what the model expects, and correlation
# of numbers, from which it matters. Latents of second order reach 0.17 to 0.24, and
# 0.24 to 0.48; occupations 0.13, and what lasts in patients, counties and schools 0.16
# to 0.20.
REPEATED, CORRELATED = 0.15, 0.2


def longer_memory(network, panel: Panel) -> np.ndarray:
    """Features that follow their values of two slices before, the most so first."""
    if panel.n_slices <= LAG:
        return np.zeros(0, dtype=int)
    panel = some_sequences(panel)
    excess, z = np.zeros((2, network.n_observed))
    for latents in network.directed_graph.components():
        if network.is_exact(latents):
            for f, _, now in states_by_feature(network, panel, latents):
                excess[f], z[f] = _excess(network.emissions[f], panel, f, now)
    numeric = np.array([one.is_numeric for one in network.emissions], dtype=bool)
    matters = np.where(numeric, CORRELATED, REPEATED)
    odd = (np.abs(z) > critical_z(len(z), N_KINDS)) & (np.abs(excess) > matters)
    found = np.flatnonzero(odd)
    return found[np.argsort(-np.abs(excess[found]), kind="stable")]


def _excess(emission, panel: Panel, f: int, now) -> tuple[float, float]:
    """Mean surprise in the direction of the value before, and its standard errors."""
    codes = panel.codes[:, :, f]
    past = codes[:, :-LAG]
    counts = panel.weights[:, None] * ((codes[:, LAG:] != MISSING) & (past != MISSING))
    if emission.has_memory:
        counts = counts * (codes[:, 1:-1] != MISSING)
    if emission.is_numeric:
        # Places are uniform, with a variance of 1/12.
        place = share_below(emission, panel.values[:, :, f], now) - 0.5
        surprise = 12 * place[:, LAG:] * place[:, :-LAG]
        variance = 12 * place[:, :-LAG] ** 2
    else:
        shares = emission.predicted(now, codes)[:, LAG:]
        again = np.take_along_axis(shares, np.maximum(past, 0)[:, :, None], 2)[:, :, 0]
        surprise = (codes[:, LAG:] == past) - again
        variance = again - again**2
    total = float((counts * surprise).sum())
    error = float(np.sqrt((counts * variance).sum()))
    return total / max(counts.sum(), 1.0), total / error if error else 0.0
