"""Checks that need counts alone: rates, pairs, near-duplicates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._core.checks import Check, Comparison, count_z, critical_z, note_duplicates
from .pairs import Pairs, modelled_off

# Kinds of checks that share the level: rates, pairs, negative dependence, dependent
# latents, likelihood, totals of rows.
N_KINDS = 6
# Features that correlate more than this say the same, if both vary in enough rows.
DUPLICATE = 0.95
VARYING_ROWS = 50


def compare_rates(network, known_rates, names, n_learned=np.inf) -> Comparison:
    """Rates of the features, in the coding of the user.

    known_rates: of features as the network reads them, see `rates`
    n_learned: rows that the network was learned from; its own errors count, too
    """
    rate, known = known_rates
    expected = 1.0 - modelled_off(network)
    z = count_z(rate * known, expected * known, expected * (1.0 - expected) * known)
    flipped = network.polarity < 0
    rate, expected = (np.where(flipped, 1.0 - r, r) for r in (rate, expected))
    z = np.where(flipped, -z, z) / np.sqrt(1.0 + known / n_learned)
    z[known == 0] = 0.0
    limit = critical_z(len(z), N_KINDS)
    return Comparison("rate", lambda j: names[j], rate, expected, z, limit)


def read_names(network, names) -> list[str]:
    """Names of features as the network reads them."""
    pairs = zip(names, network.polarity, strict=True)
    return [f"not {name}" if sign < 0 else str(name) for name, sign in pairs]


def compare_pairs(network, pairs: Pairs, names, n_learned=np.inf) -> Comparison:
    """Dependence of pairs of features, given their rates; see `compare_rates`."""
    z = pairs.z(pairs.odds) / np.sqrt(1.0 + pairs.total / n_learned)
    limit = critical_z(len(z), N_KINDS)
    label = _pair_labels(pairs, read_names(network, names))
    observed, expected = pairs.both / pairs.total, pairs.expected(pairs.odds)
    return Comparison("pair", label, observed, expected, z, limit)


def check_negative(network, pairs: Pairs, names) -> list[Check]:
    """Pairs less often on together than independent ones.

    Independent latents cannot cause this. With classes, what the model implies counts.
    """
    odds = np.minimum(pairs.odds, 1.0)
    z = np.minimum(pairs.z(odds), 0.0)
    limit = critical_z(len(z), N_KINDS, two_sided=False)
    label = _pair_labels(pairs, read_names(network, names))
    least = pairs.expected_correlation(odds)
    kind = "negative dependence"
    return Comparison(kind, label, pairs.correlation, least, z, limit).lines()


def find_duplicates(pairs: Pairs, names) -> list[Check]:
    """Pairs of features that are almost the same, or almost the opposite."""
    rarest = np.minimum(
        np.minimum(pairs.one, pairs.two), pairs.total - np.maximum(pairs.one, pairs.two)
    )
    varied = pairs.take(rarest >= VARYING_ROWS)
    expected, seen = varied.expected_correlation(varied.odds), varied.correlation
    label, z = _pair_labels(varied, names), np.zeros(len(seen))
    comparison = Comparison("near-duplicates", label, seen, expected, z, np.inf)
    return note_duplicates(comparison, DUPLICATE)


def _pair_labels(pairs: Pairs, names) -> Callable[[int], str]:
    def label(i):
        return f"{names[pairs.first[i]]}, {names[pairs.second[i]]}"

    return label
