"""Checks of a latent dynamic Bayesian network on sequences.

Sums over the sequences are compared with those of tables that are drawn from the
network, with the same gaps. So slices of a sequence need not be independent, and
whatever the kinds of the emissions are, the same code checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from ..._diagnosis import Check, count_z, critical_z, shown_lines
from .._emissions.base import as_codes
from .._inference.inference import ChainData
from .sums import Marks, Spread, Sums, draw_like

# Kinds of checks that share the level: rates, pairs, own past, older past, slices,
# steps, tails, likelihood.
N_KINDS = 8
# Tables that are drawn; sequences and values to look at, at most.
N_DRAWN = 40
MOST_SEQUENCES, MOST_VALUES = 2000, 1 << 20
# A latent of which the values tell less than this share is hardly ever certain.
CERTAIN = 0.1


@dataclass(frozen=True)
class Subject:
    """A network and sequences, and what its parts are called.

    values: (n, n_slices, n_observed)
    names, latents, times: of features, latents and slices
    labels: of the categories of each feature
    n_learned: sequences that the network was learned from, so that others may differ
        by what those leave open
    """

    network: Any
    values: np.ndarray
    names: Sequence
    latents: Sequence
    times: Sequence
    labels: Sequence
    n_learned: float = np.inf

    def mark_name(self, marks: Marks, k: int) -> str:
        """Name of a feature and its category."""
        f, label = marks.owner[k], marks.label[k]
        if label < 0:
            return f"{'mean' if label == -1 else 'spread'} of {self.names[f]}"
        return f"{self.names[f]}={self.labels[f][label]}"


def thin_out(values) -> np.ndarray:
    """Some of many sequences, chosen at random but always the same."""
    n, cells = len(values), max(values[:1].size, 1)
    most = max(min(MOST_SEQUENCES, MOST_VALUES // cells), 1)
    if n <= most:
        return values
    chosen = np.random.RandomState(0).choice(n, most, replace=False)
    return values[np.sort(chosen)]


def diagnose_network(subject: Subject) -> list[Check]:
    """All checks of a network."""
    network, values = subject.network, subject.values
    marks = Marks(network.emissions, values)
    rng = np.random.RandomState(0)
    tables = (Sums.of(marks, draw_like(network, values, rng)) for _ in range(N_DRAWN))
    comparison = _Comparison(subject, marks, Spread.of(tables))
    data = network._data(values)
    found = network._expect(data)
    checks = [_check_likelihood(subject, found.log_likelihood), *comparison.rates()]
    checks += comparison.pairs()
    if values.shape[1] > 1:
        checks += comparison.past("own past", "past")
        checks += comparison.past("older past", "older")
        checks += [*comparison.slices(), *comparison.steps()]
    checks += comparison.tails()
    return [*checks, *_check_certainty(subject, data, found.states)]


class _Comparison:
    """Sums of the sequences beside those of drawn tables."""

    def __init__(self, subject: Subject, marks: Marks, drawn: Spread):
        self.subject, self.marks, self.drawn = subject, marks, drawn
        self.seen = Sums.of(marks, subject.values)
        self.possible = Sums.possible(marks, subject.values)
        self.owner = np.array(marks.owner, dtype=int)
        self.counts = np.array(marks.label, dtype=int) >= 0

    def rates(self) -> list[Check]:
        """Rates of categories; means and spreads of numbers."""
        z = self._z("rate", self.counts)
        return self._lines("rate", "rate", z, _Names(self._name))

    def slices(self) -> list[Check]:
        """The same in each slice by itself."""
        z = self._z("slice", self.counts).ravel()
        times, n_marks = self.subject.times, len(self.owner)
        names = _Names(lambda p: f"{self._name(p % n_marks)} at {times[p // n_marks]}")
        return self._lines("slice", "slice", z, names)

    def pairs(self) -> list[Check]:
        """Pairs of features in a slice."""
        z = self._z("pair", self.counts[:, None] & self.counts)
        i, j = np.nonzero(self.owner[:, None] < self.owner)
        names = _Names(lambda p: f"{self._name(i[p])}, {self._name(j[p])}")
        return self._lines("pair", "pair", z[i, j], names, (i, j))

    def past(self, check: str, kind: str) -> list[Check]:
        """How often features repeat a value; products of numbers."""
        z = self._z(kind, ~self._numeric())
        return self._lines(check, kind, z, self.subject.names)

    def steps(self) -> list[Check]:
        """Values of a feature that follow on each other, in each slice by itself."""
        before, now = self.marks.step_pairs
        z = self._z("step", self.counts[before] & self.counts[now]).ravel()
        times = self.subject.times[1:]
        names = _Names(
            lambda p: (
                f"{self._name(before[p % len(now)])} to "
                f"{self._name(now[p % len(now)])} at {times[p // len(now)]}"
            )
        )
        return self._lines("step", "step", z, names)

    def tails(self) -> list[Check]:
        """Fourth powers of numbers."""
        where = np.flatnonzero(self._numeric())
        z = self._z("tail", np.zeros(len(self._numeric()), dtype=bool))
        names = [self.subject.names[f] for f in where.tolist()]
        return self._lines("tails", "tail", z[where], names, (where,))

    def _name(self, k: int) -> str:
        return self.subject.mark_name(self.marks, k)

    def _numeric(self) -> np.ndarray:
        emissions = self.subject.network.emissions
        return np.array([emission.is_numeric for emission in emissions], dtype=bool)

    def _z(self, kind: str, counts) -> np.ndarray:
        """Standard errors between sums; sums of 0 and 1 have binomial tails."""
        seen = getattr(self.seen, kind)
        mean, variance = (
            getattr(s, kind) for s in (self.drawn.mean, self.drawn.variance)
        )
        learned = len(self.subject.values) / self.subject.n_learned
        variance = variance * (1 + 1 / N_DRAWN + learned)
        rough = (seen - mean) / np.sqrt(np.maximum(variance, 1e-12 + 1e-12 * mean**2))
        # The variance is an estimate, too.
        z = np.sign(rough) * stats.norm.isf(stats.t.sf(np.abs(rough), N_DRAWN - 1))
        # What occurred in none of the drawn tables may still be possible.
        mean = np.maximum(mean, 3 / N_DRAWN)
        # Counts of slices that go together are worth less.
        worth = 1 / np.maximum(variance / mean, 1.0)
        exact = count_z(seen * worth, mean * worth, variance * worth**2)
        return np.where(counts, np.where(np.abs(exact) < np.abs(z), exact, z), z)

    def _lines(self, check, kind, z, names, index=None) -> list[Check]:
        """The most surprising lines of a kind of checks."""
        limit = critical_z(len(z), N_KINDS)
        seen, mean, total = (
            np.ravel(getattr(sums, kind))
            if index is None
            else getattr(sums, kind)[index]
            for sums in (self.seen, self.drawn.mean, self.possible)
        )
        total = np.maximum(total, 1.0)
        return [
            Check(
                check,
                str(names[p]),
                seen[p] / total[p],
                mean[p] / total[p],
                z[p],
                bool(abs(z[p]) <= limit),
            )
            for p in shown_lines(z, limit)
        ]


class _Names:
    """Names that are made when they are needed."""

    def __init__(self, name: Callable[[int], str]):
        self.name = name

    def __getitem__(self, p: int) -> str:
        return self.name(int(p))


def _check_likelihood(subject: Subject, log_likelihood) -> Check:
    """Likelihood of sequences against that of independent values, fitted to them.

    Those have the advantage of their fit, half a nat for each parameter.
    """
    alone, n_free = np.zeros(len(subject.values)), 0
    for f, emission in enumerate(subject.network.emissions):
        own, parameters = _independent(emission, subject.values[:, :, f])
        alone += own
        n_free += parameters
    gain = log_likelihood - alone
    n = len(gain)
    with np.errstate(invalid="ignore"):
        mean = gain.mean()
        error = max(gain.std() / np.sqrt(n), 1.0 / n)
        z = (mean + 0.5 * n_free / n) / error
    z = z if np.isfinite(z) else -np.inf  # some sequence is impossible
    ok = bool(z >= -critical_z(1, N_KINDS, two_sided=False))
    what = "against independent values"
    return Check("likelihood", what, log_likelihood.mean(), alone.mean(), z, ok)


def _independent(emission, column) -> tuple[np.ndarray, int]:
    """Log-likelihood of each sequence of a feature by itself, and parameters."""
    if emission.is_numeric:
        known = ~np.isnan(column)
        if not known.any():
            return np.zeros(len(column)), 0
        mean, variance = column[known].mean(), max(column[known].var(), 1e-300)
        logs = stats.norm.logpdf(np.where(known, column, mean), mean, variance**0.5)
        return np.where(known, logs, 0.0).sum(axis=1), 2
    codes = as_codes(column)
    known = codes >= 0
    counts = np.bincount(codes[known], minlength=emission.n_categories)
    logs = special.xlogy(counts > 0, counts / max(counts.sum(), 1))
    return np.where(known, logs[codes], 0.0).sum(axis=1), len(counts) - 1


def _check_certainty(subject: Subject, data: ChainData, states) -> list[Check]:
    """Share of the uncertainty about each latent that the sequences take away."""
    told, inside = [], data.weights > 0
    for state in states:
        own = state[inside]
        whole = special.entr(own.mean(axis=0)).sum() if len(own) else 0.0
        left = special.entr(own).sum(axis=1).mean() if len(own) else 0.0
        told.append(1.0 - left / whole if whole > 1e-12 else 0.0)
    return [
        Check("certainty", subject.latents[k], told[k], 1.0, np.nan, told[k] >= CERTAIN)
        for k in shown_lines(1.0 - np.array(told), 1.0 - CERTAIN)
    ]
