"""Checks of whether a model fits its data, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

if TYPE_CHECKING:
    import pandas as pd

# Of tables that follow the model, at most this share has a check that fails, of kinds
# of checks that share the level equally: the family with most has so many.
LEVEL, N_KINDS = 0.05, 8
# How many lines of one kind are shown: of those that fail, and of others.
MOST_FAILING, MOST_PASSING = 10, 3
# A latent of which the rows tell less than this share is hardly ever certain.
CERTAIN = 0.1
# Larger correlations are not told apart.
FARTHEST_CORRELATION = 1.0 - 1e-6


class Check(NamedTuple):
    """One line of a diagnosis: what was expected of what, and what was observed.

    z: difference in standard errors; NaN if the check is no test
    """

    check: str
    what: str
    observed: float
    expected: float
    z: float
    ok: bool


class Comparison(NamedTuple):
    """All checks of one kind, of which a diagnosis shows the worst.

    name: what the check of an index is about
    observed, expected, z: (n_checks,)
    limit: largest size of z that passes
    """

    check: str
    name: Callable[[int], str]
    observed: np.ndarray
    expected: np.ndarray
    z: np.ndarray
    limit: float

    @property
    def ok(self) -> np.ndarray:
        """Which checks pass."""
        return ~(np.abs(self.z) > self.limit)

    def lines(self) -> list[Check]:
        """The checks to show, the worst first."""
        return self.take(shown_lines(self.z, self.limit))

    def worst(self, where) -> list[Check]:
        """Some of the checks that fail, among those of `where`."""
        failing = np.flatnonzero(where & ~self.ok)
        order = np.argsort(-np.abs(self.z[failing]).round(6), kind="stable")
        return self.take(failing[order[:MOST_FAILING]])

    def take(self, chosen: Iterable[int]) -> list[Check]:
        """Some of the checks."""
        ok = self.ok
        return [
            Check(
                self.check,
                str(self.name(int(i))),
                self.observed[i],
                self.expected[i],
                self.z[i],
                bool(ok[i]),
            )
            for i in chosen
        ]


def checks_to_frame(checks: Iterable[Check]) -> pd.DataFrame:
    """Table of checks, one row each."""
    import pandas as pd

    frame = pd.DataFrame(list(checks), columns=list(Check._fields))
    types = dict.fromkeys(("observed", "expected", "z"), "float64") | {"ok": "bool"}
    return frame.astype(types)


def comparisons_to_frame(comparisons: Iterable[Comparison], most: int) -> pd.DataFrame:
    """All checks as a table; of a kind with more than `most` the worst, and others."""
    checks: list[Check] = []
    for comparison in comparisons:
        order = np.argsort(-np.nan_to_num(np.abs(comparison.z)), kind="stable")
        worst, others = np.split(order, [most // 2])
        step = -(-len(others) // max(most - most // 2, 1)) or 1
        checks += comparison.take([*worst, *others[::step]])
    return checks_to_frame(checks)


def critical_z(n_tests: int, n_kinds: int, *, two_sided: bool = True) -> float:
    """Largest z that chance explains, in one of several kinds of checks.

    Bonferroni's bound over all tests of a kind and over all kinds.
    """
    level = LEVEL / n_kinds / max(1, n_tests) / (1 + two_sided)
    return float(-special.ndtri(level))


def shown_lines(z, limit) -> np.ndarray:
    """Indices of the lines to show, the most extreme first."""
    # What differs by rounding alone, as means of the rows of a fit do, is in order.
    size = np.nan_to_num(np.abs(z), nan=-1.0).round(6)
    order = np.argsort(-size, kind="stable")
    failing = int((size > limit).sum())
    return order[: min(failing, MOST_FAILING) if failing else MOST_PASSING]


def note_duplicates(pairs: Comparison, limit: float) -> list[Check]:
    """Pairs that correlate more than a limit; no misfit, but it hurts reading."""
    # Rounding, which depends on the processor, does not order exact copies.
    size = np.abs(pairs.observed).round(12)
    found = np.flatnonzero(size > limit)
    order = found[np.argsort(-size[found], kind="stable")]
    return [
        line._replace(check="near-duplicates", z=np.nan, ok=False)
        for line in pairs.take(order[:MOST_FAILING])
    ]


def note_certainty(names, told, expected=None) -> list[Check]:
    """How much of each latent rows tell, the least first: no misfit, if it is little.

    Latents of which they tell less than `CERTAIN` are shown before others.
    """
    expected = np.ones(len(told)) if expected is None else expected
    return [
        Check("certainty", str(names[k]), told[k], expected[k], np.nan, ok=True)
        for k in shown_lines(1.0 - np.asarray(told), 1.0 - CERTAIN)
    ]


def compare_likelihoods(
    log_likelihood, alone, n_free: float, what: str = "columns", weights=None
) -> Check:
    """Log-likelihoods of rows against those of independent columns, fitted to them.

    The columns have the advantage of their fit, half a nat for each of `n_free`
    parameters. Differences of about a nat in all rows together say nothing, even if all
    rows differ by the same.
    """
    weights = np.ones(len(alone)) if weights is None else weights
    total = weights.sum()
    gain = log_likelihood - alone
    with np.errstate(invalid="ignore"):
        mean = weights @ gain / total
        variance = weights @ (gain - mean) ** 2 / total**2
        z = (mean + 0.5 * n_free / total) / np.sqrt(max(variance, 1.0 / total**2))
    z = z if np.isfinite(z) else -np.inf  # some row is impossible
    if abs(mean) < 1e-12:
        z = 0.0
    ok = bool(z >= -critical_z(1, N_KINDS, two_sided=False))
    observed, expected = (weights @ rows / total for rows in (log_likelihood, alone))
    what = f"against independent {what}"
    return Check("likelihood", what, observed, expected, z, ok)


def count_z(count, mean, variance) -> NDArray[np.float64]:
    """Standard errors between counts and their means, with binomial tails.

    The normal approximation calls every rare event a surprise. A binomial of the same
    mean and variance (at most the mean) is skewed as counts are.
    """
    count, mean, variance = np.broadcast_arrays(
        *(np.asarray(values, dtype=np.float64) for values in (count, mean, variance))
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        chance = np.clip(1.0 - variance / mean, 1e-9, 1.0)
        trials = mean / chance
        above = special.betainc(count, np.maximum(trials - count + 1.0, 1e-9), chance)
        below = special.betainc(
            np.maximum(trials - count, 1e-9), count + 1.0, 1.0 - chance
        )
        # Counts that are beyond all trials, or cannot be.
        above = np.where(count > trials + 1e-6, 0.0, np.where(count <= 0, 1.0, above))
        below = np.where(count >= trials - 1e-6, 1.0, below)
        rough = (count - mean) / np.sqrt(np.maximum(variance, 1e-300))
        low, high = -special.ndtri(above), special.ndtri(below)
    z = np.where(count > mean, np.maximum(low, 0.0), np.minimum(high, 0.0))
    # Tails beyond floating point; counts that should be 0 or all.
    z = np.where(np.isfinite(z), z, np.clip(rough, -1e6, 1e6))
    return np.where(np.abs(count - mean) <= 1e-9 * (1.0 + mean), 0.0, z)


def table_z(correlation, expected, one, two, n) -> np.ndarray:
    """Standard errors between correlations of values of 0 and 1, given their rates.

    correlation, expected, and the rates: (n_pairs,); n: number of rows
    """
    one, two = np.clip(one, 0.0, 1.0), np.clip(two, 0.0, 1.0)
    scale = np.sqrt(one * (1.0 - one) * two * (1.0 - two))
    least, most = np.maximum(one + two - 1.0, 0.0), np.minimum(one, two)
    both, mean = (
        n * np.clip(one * two + r * scale, least, most) for r in (correlation, expected)
    )
    seen, cells = (
        np.stack([b, n * one - b, n * two - b, n * (1.0 - one - two) + b])
        for b in (both, mean)
    )
    cells = np.maximum(cells, 1e-12)
    variance = 1.0 / (1.0 / cells).sum(axis=0)
    # The rarest of the four cells is the count that is tested: it is the most skewed,
    # and given the rates it determines the others.
    rarest = np.argmin(cells, axis=0)
    place = rarest, np.arange(len(rarest))
    count, mean = np.maximum(seen[place], 0.0), cells[place]
    # A count near its maximum has more trials than the variance says: 2 of 2 rows are
    # no 7 standard errors.
    largest = n * np.stack([most, one - least, two - least, 1.0 - one - two + most])
    beyond = count * (mean - variance) > mean**2 * (1.0 - 1e-9)
    wide = mean * (1.0 - mean / np.maximum(largest[place], mean))
    z = count_z(count, mean, np.where(beyond, wide, variance))
    # One is on and the other off in the two cells in the middle.
    return np.where((rarest == 1) | (rarest == 2), -z, z)
