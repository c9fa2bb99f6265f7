"""Do rows follow a network? They are compared with tables that are drawn from it.

Tables of as many rows are drawn, and treated in the same way as the data: columns,
pairs, and what the model forbids. So one engine serves all families: whatever a network
is, how much a statistic varies is seen in its tables (posterior-predictive checks).

References
----------
.. [1] Gelman, A., Meng, X.-L., Stern, H. (1996). Posterior predictive assessment of
   model fitness via realized discrepancies. Statistica Sinica, 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from .._core.checks import (
    N_KINDS,
    Check,
    Comparison,
    checks_to_frame,
    count_z,
    critical_z,
    note_duplicates,
    table_z,
)
from .statistics import NUMBER, SIZE, Mark, Statistics, Sums

if TYPE_CHECKING:
    import pandas as pd

# Tables that are drawn: with 40, Student's t asks for 5 standard errors where a normal
# distribution would ask for 4.4.
N_DRAWN = 40
# Totals of rows are counted in this many groups of about the same size.
TOTAL_GROUPS = 10
# How much of the sampling error of a distribution of totals a fitted network has. With
# none, 17 of 80 tables of five times as many rows as the network was learned from fail;
# with this 1 does, and 9 of 10 one-factor tables of 5,000 rows are still noticed.
LEARNED_SHARE = 0.2
# Rows in which a value must occur before two columns may be called the same.
VARYING_ROWS = 50


@dataclass
class Subject:
    """Rows and a network, as the family prepares them; missing values are drawn.

    values: codes of categories, and numbers in the scale of the network, (n, n_slices,
        n_columns)
    draw: so many rows of the network in the same form
    marks: what of the values is compared
    names: of columns; times: of slices
    likelihood: of the rows, against independent columns
    n_learned: rows that the network was learned from: others may differ by what those
        left open
    scale: means and standard deviations of the columns, where they are known
    bent: columns whose scale was estimated, so that their ranks alone tell
    noise: what the columns before leave of each, standard normal: a function of rows;
        None: the sizes of numbers are compared instead
    before: ``[i, j]``, whether column i must say nothing about the noise of j
    same: correlation from which two columns are the same
    causes: whether columns are the effects, on or off, of causes
    others: checks of the family; latents: those about latents, which come later
    """

    values: np.ndarray
    draw: Callable[[int, np.random.RandomState], np.ndarray]
    marks: Sequence[Mark]
    names: Sequence[str]
    likelihood: Check
    times: Sequence[str] = ("",)
    n_learned: float = np.inf
    scale: tuple[np.ndarray, np.ndarray] | None = None
    bent: Sequence[int] = ()
    noise: Callable[[np.ndarray], np.ndarray] | None = None
    before: np.ndarray | None = None
    same: float = np.inf
    causes: bool = False
    others: list[Check] = field(default_factory=list)


def diagnose(subject: Subject) -> pd.DataFrame:
    """All checks as a table, of each kind the worst."""
    compared = _Compared(subject)
    kinds = [*compared.columns(), compared.pairs()]
    if subject.causes:
        kinds.append(compared.negative())
    if subject.values.shape[1] > 1:
        kinds += [compared.past("own past", 1), compared.past("older past", 2)]
        kinds.append(compared.slices())
    kinds += compared.shapes()
    totals = compared.totals() if subject.causes else []
    lines = [line for kind in kinds for line in kind.lines()]
    last = compared.duplicates()
    return checks_to_frame(
        [subject.likelihood, *lines, *totals, *subject.others, *last]
    )


def compare(subject: Subject) -> list[Comparison]:
    """All columns and pairs, columns in standard deviations of the model."""
    compared = _Compared(subject)
    return [*compared.columns(in_units=False), compared.pairs()]


class _Compared:
    """Statistics of the data beside those of drawn tables."""

    def __init__(self, subject: Subject):
        rng = np.random.RandomState(0)
        self.subject, n = subject, len(subject.values)
        self.of = Statistics(subject, rng)
        self.seen = self.of(subject.values)
        tables = (self.of(subject.draw(n, rng)) for _ in range(N_DRAWN))
        self.mean, self.variance = _moments(tables)
        self.n, self.n_slices = subject.values.shape[:2]
        codes = np.array([mark.code for mark in subject.marks], dtype=int)
        self.codes, self.is_count = codes, codes >= 0
        self._settle_known()

    def _settle_known(self) -> None:
        """Expect of columns what is known of them, rather than what was drawn."""
        if self.subject.scale is None:
            return
        for k, mark in enumerate(self.subject.marks):
            if mark.code >= 0:
                self.mean["column"][k] = self.subject.scale[0][mark.column]
            elif mark.column not in self.subject.bent:
                self.mean["column"][k] = float(mark.code == SIZE)

    def _excess(self, learned: float = 1.0) -> float:
        """Variance of a difference, in that of the rows alone.

        What is expected is estimated from drawn tables, of a network that has errors of
        its own; `learned` is the share of these that matters.
        """
        return 1.0 + 1.0 / N_DRAWN + learned * self.n / self.subject.n_learned

    def _z(self, kind: str, learned: float = 1.0, least: float = 0.0) -> np.ndarray:
        """Standard errors between the data and drawn tables."""
        seen, mean, variance = (
            sums[kind] for sums in (self.seen, self.mean, self.variance)
        )
        # Rounding errors are no differences.
        variance = np.maximum(variance, least + 1e-12 + 1e-12 * mean**2)
        rough = (seen - mean) / np.sqrt(variance * self._excess(learned))
        # The variance is an estimate, too.
        return np.sign(rough) * stats.norm.isf(
            stats.t.sf(np.abs(rough), N_DRAWN - 1).clip(1e-300)
        )

    def _count_z(self, kind: str, n: int, chosen) -> np.ndarray:
        """The same of shares; of rare values by binomial tails."""
        z = self._z(kind)
        # What occurred in none of the drawn tables may still be possible.
        mean = np.clip(n * self.mean[kind], 3.0 / N_DRAWN, n)
        binomial = np.maximum(mean * (1.0 - mean / n), 1e-300)
        # Values of slices that go together are worth less.
        worth = 1.0 / np.maximum(n * n * self.variance[kind] / binomial, 1.0)
        worth = worth if self.n_slices > 1 else 1.0
        seen = n * self.seen[kind] * worth
        exact = count_z(seen, mean * worth, binomial * worth)
        exact /= np.sqrt(self._excess())
        return np.where(chosen & (np.abs(exact) < np.abs(z)), exact, z)

    def columns(self, *, in_units: bool = True) -> list[Comparison]:
        """Rates of categories; means and spreads of numbers."""
        marks = self.subject.marks
        z = self._count_z("column", self.n * self.n_slices, self.is_count)
        z[~self.of.tells] = 0.0
        limit = critical_z(len(z), N_KINDS)
        seen, mean = self._sizes(self.seen), self._sizes(self.mean)
        if in_units:
            seen, mean = self.of.in_units(seen, mean)
        kinds = []
        for kind, chosen in (
            ("rate", self.is_count),
            ("mean", self.codes == NUMBER),
            ("spread", self.codes == SIZE),
        ):
            own = np.flatnonzero(chosen)
            if len(own):
                name = _nth([marks[k].name for k in own.tolist()])
                part = seen[own], mean[own], z[own]
                kinds.append(Comparison(kind, name, *part, limit))
        return kinds

    def _sizes(self, sums: Sums) -> np.ndarray:
        """Statistics of columns; of spreads as multiples of that of the model."""
        sizes, found = self.codes == SIZE, sums["column"].copy()
        # Cube roots of variances.
        found[sizes] = (found[sizes] / self.mean["column"][sizes]) ** 1.5
        return found

    def pairs(self) -> Comparison:
        """Correlations, given rates, means and spreads."""
        first, second = self.of.first, self.of.second
        z = self._z("pair")
        counts = self.is_count[first] & self.is_count[second]
        exact = self._pair_z(np.tanh(self.mean["pair"])) / np.sqrt(self._excess())
        z = np.where(counts & (np.abs(exact) < np.abs(z)), exact, z)
        z[~(self.of.tells[first] & self.of.tells[second])] = 0.0
        return self._pairs("pair", self.mean["pair"], z, critical_z(len(z), N_KINDS))

    def negative(self) -> Comparison:
        """Columns less often on together than independent ones.

        Independent causes cannot do this. With classes, what the model implies counts.
        """
        least = np.minimum(self.mean["pair"], 0.0)
        z = np.minimum(self._pair_z(np.tanh(least)), 0.0)
        limit = critical_z(len(z), N_KINDS, two_sided=False)
        return self._pairs("negative dependence", least, z, limit)

    def _pair_z(self, correlation) -> np.ndarray:
        """Standard errors of tables of two values, given their rates."""
        rate = np.clip(self.seen["column"], 0.0, 1.0)
        one, two = rate[self.of.first], rate[self.of.second]
        n = self.n * self.n_slices
        return table_z(np.tanh(self.seen["pair"]), correlation, one, two, n)

    def _pairs(self, check, expected, z, limit) -> Comparison:
        first, second = self.of.first, self.of.second
        labels = [
            f"size of {mark.name}" if mark.code == SIZE else mark.name
            for mark in self.subject.marks
        ]

        def name(p):
            return f"{labels[first[p]]}, {labels[second[p]]}"

        seen, expected = np.tanh(self.seen["pair"]), np.tanh(expected)
        return Comparison(check, name, seen, expected, z, limit)

    def duplicates(self) -> list[Check]:
        """Pairs of columns that are almost the same, or almost the opposite."""
        rate = np.where(self.is_count, self.seen["column"], 0.5)
        varying = np.minimum(rate, 1.0 - rate) * self.n * np.where(self.is_count, 1, 2)
        enough = (varying >= VARYING_ROWS) & (self.codes != SIZE)
        pairs = self.pairs()
        both = enough[self.of.first] & enough[self.of.second]
        pairs = pairs._replace(observed=np.where(both, pairs.observed, 0.0))
        return note_duplicates(pairs, self.subject.same)

    def slices(self) -> Comparison:
        """Columns in each slice by itself."""
        marks, times = self.subject.marks, self.subject.times
        counts = np.tile(self.is_count, self.n_slices)
        z = self._count_z("slice", self.n, counts)

        def name(p):
            return f"{marks[p % len(marks)].name} at {times[p // len(marks)]}"

        seen, mean = self.seen["slice"], self.mean["slice"]
        return Comparison("slice", name, seen, mean, z, critical_z(len(z), N_KINDS))

    def past(self, check: str, lag: int) -> Comparison:
        """How often columns repeat a value; products of numbers."""
        n = max(self.n * (self.n_slices - lag), 1)
        z = self._count_z(check, n, ~self.of.is_number)
        name, limit = _nth(self.subject.names), critical_z(len(z), N_KINDS)
        return Comparison(check, name, self.seen[check], self.mean[check], z, limit)

    def shapes(self) -> list[Comparison]:
        """Tails of numbers; shapes of their noise, and how it depends on others."""
        return [
            self._shape(kind, name) for kind, name in self.of.shapes if len(name) > 0
        ]

    def _shape(self, kind: str, names: Sequence[str]) -> Comparison:
        # The shape of a scale that was estimated has errors, too.
        learned = float(len(self.subject.bent) > 0)
        # Ranks by themselves have a shape that hardly varies, but for ties: they count
        # as a normal sample, which has these variances.
        normal = {"skewed noise": 6.0, "tails": 24.0 / 9.0}.get(kind, 0.1)
        z = self._z(kind, learned, least=normal / self.n)
        seen, mean = self.seen[kind], self.mean[kind]
        if kind == "tails":
            # Excess kurtosis.
            seen, mean = np.exp(seen) - 3.0, np.exp(mean) - 3.0
        limit = critical_z(len(z), N_KINDS)
        return Comparison(kind, _nth(names), seen, mean, z, limit)

    def totals(self) -> list[Check]:
        """How many rows have few columns on, or many.

        A model can have the right rates and pairs, and still too few rows with many.
        """
        kind = "row total"
        ends = np.searchsorted(
            self.mean[kind].cumsum(), np.arange(1, TOTAL_GROUPS) / TOTAL_GROUPS
        )
        starts = np.unique([0, *(ends + 1).clip(max=len(self.mean[kind]) - 1)])
        seen, share = (
            np.add.reduceat(sums[kind], starts) for sums in (self.seen, self.mean)
        )
        excess = self._excess(LEARNED_SHARE)
        count, mean = self.n * seen, self.n * share
        z = count_z(count, mean, mean * (1.0 - share)) / np.sqrt(excess)
        # One test of all groups together, and one of each.
        limit = critical_z(len(share), 2 * N_KINDS)
        lasts = [*(starts[1:] - 1), len(self.mean[kind]) - 1]

        def name(g):
            low, high = starts[g], lasts[g]
            span = str(low) if low == high else f"{low} to {high}"
            return f"{span} features on"

        groups = Comparison(kind, name, seen, share, z, limit)
        return [self._all_totals(count, mean, excess), *groups.lines()]

    def _all_totals(self, count, mean, excess) -> Check:
        """Pearson's chi-square over all groups; spreads show the direction."""
        full = mean > 0
        chi_square = ((count - mean)[full] ** 2 / mean[full]).sum() / excess
        tail = special.chdtrc(max(1, full.sum() - 1), chi_square)
        z = float(-special.ndtri(np.clip(tail, 1e-300, 1.0 - 1e-16)))
        ok = z <= critical_z(1, 2 * N_KINDS, two_sided=False)
        seen, expected = (_spread(sums["row total"]) for sums in (self.seen, self.mean))
        return Check("row total", "standard deviation", seen, expected, z, ok)


def _spread(share) -> float:
    """Standard deviation of totals 0, 1, ... that have these shares."""
    total = np.arange(len(share))
    return float(np.sqrt(max(share @ total**2 - (share @ total) ** 2, 0.0)))


def _nth(names: Sequence[str]) -> Callable[[int], str]:
    """Names by number."""
    return lambda i: names[i]


def _moments(tables) -> tuple[Sums, Sums]:
    """Means and variances of the statistics of several tables."""
    found = list(tables)
    each = {kind: np.array([table[kind] for table in found]) for kind in found[0]}
    mean = {kind: values.mean(axis=0) for kind, values in each.items()}
    variance = {kind: values.var(axis=0, ddof=1) for kind, values in each.items()}
    return mean, variance


# Latents


class Posteriors(NamedTuple):
    """What rows tell of latents: means, and variances that are left, (n, n_latents)."""

    mean: NDArray[np.float64]
    left: NDArray[np.float64]

    @property
    def told(self) -> np.ndarray:
        """Share of the variance of each latent that the rows tell."""
        seen, left = self.mean.var(axis=0), self.left.mean(axis=0)
        whole = seen + left
        return np.divide(seen, whole, out=np.zeros_like(seen), where=whole > 1e-12)


def compare_latents(
    rows: Posteriors, drawn: Posteriors, names, n_learned: float = np.inf
) -> Comparison:
    """Pairs of latents whose posteriors go together more, or less, than in drawn rows.

    Posteriors of rows that follow the network are not independent where latents share
    columns, and approximate ones may be off: so they are of the drawn rows.

    n_learned: rows from which it was learned how latents depend on each other
    """
    i, j = np.triu_indices(rows.mean.shape[1], 1)
    (seen, spread, r), (expected, null, rho) = (
        [part[i, j] for part in _covariances(own.mean)] for own in (rows, drawn)
    )
    # The larger variance: a latent that is on in no row does not vary at all.
    variance = np.maximum(spread, null) / len(rows.mean)
    variance += null * (1.0 / len(drawn.mean) + 1.0 / n_learned)
    z = (seen - expected) / np.sqrt(np.maximum(variance, 1e-300))
    z[variance <= 1e-30] = 0.0

    def name(p):
        return f"{names[i[p]]}, {names[j[p]]}"

    limit = critical_z(len(z), N_KINDS)
    return Comparison("dependent latents", name, r, rho, z, limit)


def _covariances(values):
    """Covariances, variances of the products behind them, and correlations."""
    centred = values - values.mean(axis=0)
    squared = centred**2
    covariance = centred.T @ centred / len(values)
    fourth = squared.T @ squared / len(values)
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.multiply.outer(spread, spread)
    zeros = np.zeros_like(covariance)
    r = np.divide(covariance, scale, out=zeros, where=scale > 1e-30)
    return covariance, np.maximum(fourth - covariance**2, 0.0), r
