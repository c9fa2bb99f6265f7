"""Does the process change, or remember more? What slices show beyond what is expected.

Each value is compared with its distribution given the past. If the model holds, the
differences have mean zero whatever came before, so their sums over sequences and slices
have a known variance, and no start of the process matters. A model that is wrong in the
same way at all times is no change: slices are compared with each other.

A latent depends on the slice before alone. If features follow what they showed two
slices before more than predictions from the whole past do, it has a longer memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._core.checks import N_KINDS, count_z, critical_z
from ..._core.criteria import bic_price
from .._panels.panel import MISSING, Panel
from .chain_data import ChainData
from .expectation import Part, sequence_log_likelihood

# Sequences that are looked at; a change that takes more to be seen matters little.
MAX_SEQUENCES = 2000

# Values of a window of slices. Sums of fewer differences are not normal enough.
MIN_VALUES = 100

# Variance from which a sum says something of its own.
MIN_VARIANCE = 2.0

# More epochs are a trend rather than changes.
MAX_EPOCHS = 10

# Fewer slices are a bad day rather than an epoch.
MIN_LENGTH = 2


# Slices that `longer_memory` looks back.
LAG = 2

# Share of categories that are repeated beyond what the model expects, and correlation
# of numbers, from which it matters. Latents of second order reach 0.17 to 0.24, and
# 0.24 to 0.48; occupations 0.13, and what lasts in patients, counties and schools 0.16
# to 0.20.
REPEATED, CORRELATED = 0.15, 0.2


@dataclass(frozen=True)
class Surprise:
    """What was observed and what was expected, summed by window of slices.

    A cell is a category of a feature, given the state of its latent in the slice
    before; its sums are weighted by the probability of that state. A number has a cell
    for its place in its distribution given the past (0 to 1) and each state before, and
    one for how far from the middle that is.

    observed, expected, variance: (n_windows, n_cells)
    unit: typical weight of a value, (n_windows, n_cells)
    feature: number of the feature of each cell, (n_cells,)
    first: first slice of each window, (n_windows,)
    last: last slice
    """

    observed: np.ndarray
    expected: np.ndarray
    variance: np.ndarray
    unit: np.ndarray
    feature: np.ndarray
    first: np.ndarray
    last: int

    @property
    def z(self) -> np.ndarray:
        """Standard errors between a window and all others, 0 if too little is known."""
        difference, spread = self.observed - self.expected, self.variance.sum(axis=0)
        rest = spread - self.variance
        enough = (self.variance >= MIN_VARIANCE) & (rest >= MIN_VARIANCE)
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = self.variance * (difference.sum(axis=0) / spread)
            mean = np.maximum(self.expected + shift, self.variance / self.unit)
            variance = self.variance * rest / spread
            # Counts of rare categories are skewed, which binomial tails are, too.
            z = count_z(
                self.observed / self.unit, mean / self.unit, variance / self.unit**2
            )
        return np.where(enough, z, 0.0)

    @property
    def is_odd(self) -> np.ndarray:
        """Where a window differs from the others by more than chance."""
        z = np.abs(self.z)
        return z > critical_z(int((z > 0).sum()), N_KINDS)

    def change_points(self, n_epochs: int | None = None) -> np.ndarray:
        """First slices of later epochs: segments of windows of the highest BIC."""
        difference = self.observed - self.expected
        cuts = _segments(difference, self.variance, self.feature, n_epochs)
        return self.first[cuts]

    def changed_features(self) -> np.ndarray:
        """Features that differ by more than chance, the most surprising first."""
        odd = np.flatnonzero(self.is_odd.any(axis=0))
        strength = np.abs(self.z[:, odd]).max(axis=0, initial=0.0)
        order = odd[np.argsort(-strength, kind="stable")]
        return np.array(list(dict.fromkeys(self.feature[order])), dtype=int)


def surprise(network, panel: Panel) -> Surprise:
    """Compare the slices after the first with predictions from the past."""
    panel = some_sequences(panel)
    windows, copies = _windows(panel), _copies(network, panel)
    firsts = np.unique(windows, return_index=True)[1]
    sums, features = [np.zeros((4, len(firsts), 0))], [np.zeros(0, dtype=int)]
    for f, before, now in states_by_feature(network, panel):
        found = _sums(network.emissions[f], panel, f, before, now, copies)
        sums.append(np.add.reduceat(found, firsts, axis=1))
        features.append(np.full(found.shape[2], f))
    observed, expected, square, variance = np.concatenate(sums, axis=2)
    unit = np.divide(square, expected, out=np.ones_like(square), where=expected > 0)
    return Surprise(
        observed,
        expected,
        variance,
        unit,
        np.concatenate(features),
        1 + firsts,
        panel.n_slices - 1,
    )


def some_sequences(panel: Panel) -> Panel:
    """Distinct sequences, at most as many as are looked at."""
    panel = panel.merged()
    if len(panel.codes) <= MAX_SEQUENCES:
        return panel
    chosen = np.linspace(0, len(panel.codes) - 1, MAX_SEQUENCES)
    return panel.of_sequences(chosen.astype(int))


def _windows(panel: Panel) -> np.ndarray:
    """Window of each slice after the first, (n_slices - 1,)."""
    recorded = (panel.codes[:, 1:] != MISSING).any(axis=2)
    known = np.cumsum(panel.weights @ recorded)
    n_windows = int(np.clip(known[-1:].sum() // MIN_VALUES, 1, len(known) or 1))
    if n_windows == len(known):
        return np.arange(len(known))
    # The same number of values in each.
    place = np.minimum(known / max(known[-1], 1) * n_windows - 1e-9, n_windows - 1)
    return np.unique(place.astype(int), return_inverse=True)[1]


def states_by_feature(network, panel: Panel):
    """Each feature of a latent, and states of its latent: before, and predicted."""
    data = ChainData.of(panel.values, network.graph.structure)
    for tree in network._trees():
        if not network.is_exact(list(tree.cards)):
            continue
        part = Part(network, data, tree)
        found, filtered, predicted = part.filtered(slice(0, part.n))
        before = part.beliefs(found.shares, filtered)[1]
        shares = part.unseen(network.transition)
        for j, own in before.items():
            now = (predicted @ shares[j]).swapaxes(0, 1)
            for f in network.graph.features_of(j):
                yield f, own[:, :-1], now


def _copies(network, panel: Panel) -> np.ndarray:
    """How often each sequence is likely to be one that was repeated, (n,).

    Weights, or rows drawn twice, are no new evidence. Sequences that are so likely
    that they occur again are.
    """
    data = ChainData.of(panel.values, network.graph.structure)
    usual = np.zeros(len(panel.codes))
    if panel.numbers is None:
        usual = panel.weights.sum() * np.exp(sequence_log_likelihood(network, data))
    return np.maximum(panel.weights / (1.0 + usual), 1.0)


def _sums(emission, panel: Panel, f: int, before, now, copies) -> np.ndarray:
    """Observed and expected sums of a feature, and of squares and variances.

    The result has shape (4, n_slices - 1, n_cells).
    """
    codes = panel.codes[:, :, f]
    counts = (codes[:, 1:] != MISSING) * panel.weights[:, None]
    if emission.has_memory:
        counts = counts * (codes[:, :-1] != MISSING)
    if not emission.is_numeric:
        shares = emission.predicted(now, codes)[:, 1:]
        seen = np.eye(shares.shape[2] + 1, shares.shape[2])[codes[:, 1:]]
        return _weighted(before, counts, copies, seen, shares, shares - shares**2)
    place = share_below(emission, panel.values[:, :, f], now)[:, 1:, None]
    one = np.ones_like(place)
    # Moments of a uniform number and of its squared distance from the middle. Spreads
    # of all states go together, which shows smaller changes.
    parts = (
        (before, counts, copies, place, one / 2, one / 12),
        (one, counts, copies, (2 * place - 1) ** 2, one / 3, one * 4 / 45),
    )
    return np.concatenate([_weighted(*part) for part in parts], axis=2)


def _weighted(before, counts, copies, seen, mean, variance) -> np.ndarray:
    """Sums of what was seen, its mean, and their squares and variances, by state."""
    weight = before * counts[:, :, None]
    square = weight * before * copies[:, None, None]
    pairs = [(weight, seen), (weight, mean), (square, mean), (square, variance)]
    sums = np.stack([np.einsum("nts,ntc->tsc", *pair) for pair in pairs])
    return sums.reshape(4, counts.shape[1], -1)


def share_below(emission, numbers, now) -> np.ndarray:
    """Share of its distribution given the past that is below each number.

    The distribution is a mixture over the states of its latent; 0 of no number.
    """
    # Of huge numbers there may be no distribution: their place is 0.
    with np.errstate(all="ignore"):
        return np.nan_to_num((now * emission.below(numbers)).sum(axis=2))


def _segments(difference, variance, feature, n_segments=None) -> np.ndarray:
    """Where to cut windows into segments that are alike, by dynamic programming.

    A segment gains what shifts of the cells of its features would add to the
    log-likelihood, to second order. It pays for them, feature by feature: one that
    does not change is left alone. None: the best number of segments.
    """
    n, n_cells = difference.shape
    d = np.vstack([np.zeros(n_cells), difference.cumsum(axis=0)])
    v = np.vstack([np.zeros(n_cells), variance.cumsum(axis=0)])
    prices = bic_price(v[-1].sum()) * np.bincount(feature)

    def gain(low, high):
        spread = v[high] - v[low]
        square = (d[high] - d[low]) ** 2 / np.where(spread > 0, spread, np.inf)
        gains = np.bincount(feature, square * (spread >= MIN_VARIANCE)) / 2
        return np.maximum(gains - prices, 0.0).sum()

    most = min(n_segments or MAX_EPOCHS, max(n // MIN_LENGTH, 1))
    best = np.full((most + 1, n + 1), -np.inf)
    cut = np.zeros((most + 1, n + 1), dtype=int)
    best[0, 0] = 0.0
    for high in range(1, n + 1):
        for low in range(max(high - MIN_LENGTH + 1, 1)):
            value = best[:-1, low] + gain(low, high)
            better = np.flatnonzero(value > best[1:, high]) + 1
            best[better, high], cut[better, high] = value[better - 1], low
    k = most if n_segments else int(best[:, n].argmax())
    points: list[int] = []
    while k > 1:
        n = cut[k, n]
        points.append(n)
        k -= 1
    return np.array(points[::-1], dtype=int)


def longer_memory(network, panel: Panel) -> np.ndarray:
    """Features that follow their values of two slices before, the most so first."""
    if panel.n_slices <= LAG:
        return np.zeros(0, dtype=int)
    panel = some_sequences(panel)
    excess, z = np.zeros((2, network.n_observed))
    for f, _, now in states_by_feature(network, panel):
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
