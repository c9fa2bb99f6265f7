"""Number of features that are on in a row, compared with rows drawn from the network.

A model can have the right rates and pairs, and still too few rows with many features.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from ..._core.checks import Check, count_z, critical_z, shown_lines
from .._statistics.patterns import Patterns
from .counts import N_KINDS

# Rows to draw, in batches; wide ones are fewer.
DRAWN, BATCH, MOST_VALUES = 50_000, 2_000, 1 << 26
# Totals are counted in this many groups of about the same size.
GROUPS = 10
KIND = "row total"
# How much of the sampling error of a distribution of totals a fitted network has. With
# none, 17 of 80 tables of five times as many rows as the network was learned from fail;
# with this 1 does, and 9 of 10 one-factor tables of 5,000 rows are still noticed.
LEARNED_SHARE = 0.2


def check_totals(network, patterns: Patterns, rng, n_learned=np.inf) -> list[Check]:
    """How many rows have few features on, or many; rows as the network reads them."""
    drawn = _drawn_totals(network, rng)
    quantiles = np.quantile(drawn, np.arange(1, GROUPS) / GROUPS)
    ends = np.unique(np.floor(quantiles).astype(np.intp))
    size = np.bincount(np.searchsorted(ends, drawn), minlength=len(ends) + 1)
    share = size / len(drawn)
    group = np.searchsorted(ends, patterns.on.sum(axis=1))
    count = np.bincount(group, patterns.weights, minlength=len(share))
    total = patterns.weights.sum()
    mean = total * share
    # What is expected is a sample, too, from a network that has errors of its own.
    excess = 1.0 + total / len(drawn) + LEARNED_SHARE * total / n_learned
    variance = mean * (1.0 - share) * excess
    z = count_z(count, mean, np.minimum(variance, mean))
    z *= np.sqrt(np.minimum(1.0, mean / np.maximum(variance, 1e-300)))
    # One test of all groups together, and one of each.
    limit = critical_z(len(share), 2 * N_KINDS)
    labels = _labels(ends, patterns.on.shape[1])
    return [
        _compare_all(patterns, drawn, count, mean, excess),
        *(
            Check(KIND, labels[g], count[g] / total, share[g], z[g], abs(z[g]) <= limit)
            for g in shown_lines(z, limit)
        ),
    ]


def _compare_all(patterns: Patterns, drawn, count, mean, excess) -> Check:
    """Pearson's chi-square over all groups; standard deviations show the direction."""
    full = mean > 0
    chi_square = ((count - mean)[full] ** 2 / mean[full]).sum() / excess
    tail = special.chdtrc(max(1, full.sum() - 1), chi_square)
    z = float(-special.ndtri(np.clip(tail, 1e-300, 1.0 - 1e-16)))
    seen = patterns.on.sum(axis=1)
    middle = np.average(seen, weights=patterns.weights)
    spread = np.sqrt(np.average((seen - middle) ** 2, weights=patterns.weights))
    ok = z <= critical_z(1, 2 * N_KINDS, two_sided=False)
    return Check(KIND, "standard deviation", spread, drawn.std(), z, ok)


def _drawn_totals(network, rng) -> np.ndarray:
    """Totals of rows from the network."""
    n_rows = int(np.clip(MOST_VALUES // max(1, network.n_features), BATCH, DRAWN))
    flipped = network.polarity < 0
    parts = []
    for _ in range(0, n_rows, BATCH):
        on = network.sample(BATCH, random_state=rng)[0] != flipped
        parts.append(on.sum(axis=1))
    return np.concatenate(parts)


def _labels(ends, n_features) -> list[str]:
    """Names of the groups, of which each ends with one of these totals."""
    lows, highs = [0, *(ends + 1)], [*ends, n_features]
    return [
        f"{low} features on" if low == high else f"{low} to {high} features on"
        for low, high in zip(lows, highs, strict=True)
    ]
