"""Checks of a latent dynamic Bayesian network on sequences.

Sums over the sequences are compared with those of tables that are drawn from the
network. So slices of a sequence need not be independent, and whatever the kinds of the
emissions are, the same code checks them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special, stats

from ..._core.checks import (
    Check,
    Comparison,
    compare_likelihoods,
    count_z,
    critical_z,
    note_certainty,
)
from .._emissions.base import as_codes
from .._emissions.gaussian import mean_and_spread
from .._inference.completion import complete
from .._inference.patterns import ChainData
from .._inference.surprise import N_KINDS, surprise
from .._panels.panel import Panel
from .sums import Marks, spread

# N_KINDS checks share the level: rates, pairs, own past, older past, slices, steps,
# tails, likelihood.

# Tables that are drawn; sequences and values to look at, at most.
N_DRAWN = 40
MOST_SEQUENCES, MOST_VALUES = 2000, 1 << 20


@dataclass(frozen=True)
class Subject:
    """A network and sequences, and what its parts are called.

    panel: the sequences
    names, latents, times: of features, latents and slices
    labels: of the categories of each feature
    n_learned: sequences that the network was learned from, so that others may differ
        by what those leave open
    """

    network: Any
    panel: Panel
    names: Sequence
    latents: Sequence
    times: Sequence
    labels: Sequence
    n_learned: float = np.inf

    @property
    def values(self) -> np.ndarray:
        """Codes and numbers, (n, n_slices, n_observed)."""
        return self.panel.values


def thin_out(panel: Panel) -> Panel:
    """Some of many sequences, chosen at random but always the same."""
    n, cells = len(panel.codes), max(panel.codes[:1].size, 1)
    most = max(min(MOST_SEQUENCES, MOST_VALUES // cells), 1)
    if n <= most:
        return panel
    chosen = np.random.RandomState(0).choice(n, most, replace=False)
    return panel.of_sequences(np.sort(chosen))


def diagnose_network(subject: Subject) -> list[Check]:
    """All checks of a network."""
    network = subject.network
    data = network._data(subject.values)
    found = network._expect(data)
    whole = replace(subject, panel=complete(network, subject.panel))
    comparison = _Comparison(whole)
    kinds = [comparison.rates(), comparison.pairs()]
    if subject.panel.n_slices > 1:
        kinds.append(comparison.past("own past", "past"))
        kinds.append(comparison.past("older past", "older"))
        kinds += [comparison.slices(), *_steps(whole)]
    kinds.append(comparison.tails())
    return [
        _check_likelihood(subject, found.log_likelihood),
        *(line for kind in kinds for line in kind.lines()),
        *_check_certainty(subject, data, found.states),
    ]


def compare_sums(subject: Subject) -> list[Comparison]:
    """All rates and pairs."""
    panel = complete(subject.network, subject.panel)
    comparison = _Comparison(replace(subject, panel=panel))
    return [comparison.rates(), comparison.pairs()]


def _steps(subject: Subject) -> list[Comparison]:
    """Values given the latents in the slice before, in each window of slices.

    What `fit` warns of. There is nothing to compare in two slices, and
    networks of several epochs have learned the changes.
    """
    if subject.panel.n_slices < 3 or hasattr(subject.network, "change_points"):
        return []
    found = surprise(subject.network, subject.panel)
    ends = np.append(found.first[1:] - 1, found.last)
    total = np.maximum(found.unit, 1e-300)
    n_cells = len(found.feature)

    def name(p):
        window, cell = divmod(p, n_cells)
        first, last = (subject.times[places[window]] for places in (found.first, ends))
        when = f"at {first}" if first == last else f"from {first} to {last}"
        return f"{subject.names[found.feature[cell]]} {when}"

    z = found.z.ravel()
    limit = critical_z(int((z != 0).sum()), N_KINDS)
    observed, expected = (
        (part / total).ravel() for part in (found.observed, found.expected)
    )
    return [Comparison("step", name, observed, expected, z, limit)]


class _Comparison:
    """Sums of complete sequences beside those of drawn tables."""

    def __init__(self, subject: Subject):
        network, values = subject.network, subject.values
        marks = Marks(network.emissions, values)
        rng = np.random.RandomState(0)
        self.subject, self.marks = subject, marks
        self.seen, self.possible = marks.sums(values), marks.possible(values)
        self.mean, self.variance = spread(
            marks.sums(network.sample(*values.shape[:2], random_state=rng)[0])
            for _ in range(N_DRAWN)
        )
        self.counts = np.array(marks.label, dtype=int) >= 0
        self.numeric = np.array([e.is_numeric for e in network.emissions], dtype=bool)

    def rates(self) -> Comparison:
        """Rates of categories; means and spreads of numbers."""
        return self._compare("rate", "rate", self.counts, self._name)

    def slices(self) -> Comparison:
        """The same in each slice by itself."""
        times, n_marks = self.subject.times, len(self.marks.owner)

        def name(p):
            return f"{self._name(p % n_marks)} at {times[p // n_marks]}"

        return self._compare("slice", "slice", self.counts, name)

    def pairs(self) -> Comparison:
        """Pairs of features in a slice."""
        owner = np.array(self.marks.owner, dtype=int)
        i, j = np.nonzero(owner[:, None] < owner)

        def name(p):
            return f"{self._name(i[p])}, {self._name(j[p])}"

        both = self.counts[:, None] & self.counts
        return self._compare("pair", "pair", both, name, (i, j))

    def past(self, check: str, kind: str) -> Comparison:
        """How often features repeat a value; products of numbers."""
        names = self.subject.names
        return self._compare(check, kind, ~self.numeric, lambda f: names[f])

    def tails(self) -> Comparison:
        """Fourth powers of numbers."""
        names, where = self.subject.names, np.flatnonzero(self.numeric)

        def name(p):
            return names[int(where[p])]

        return self._compare("tails", "tail", False, name, where)

    def _name(self, k: int) -> str:
        """Name of a feature and its category."""
        f, label = self.marks.owner[k], self.marks.label[k]
        name = self.subject.names[f]
        if label < 0:
            return f"{'mean' if label == -1 else 'spread'} of {name}"
        return f"{name}={self.subject.labels[f][label]}"

    def _compare(self, check, kind, counts, name, chosen=...) -> Comparison:
        """Chosen sums of a kind; those of 0 and 1 are `counts`."""
        z = self._z(kind, counts)[chosen].ravel()
        seen, mean, total = (
            sums[kind][chosen].ravel() for sums in (self.seen, self.mean, self.possible)
        )
        total = np.maximum(total, 1.0)
        limit = critical_z(len(z), N_KINDS)
        return Comparison(check, name, seen / total, mean / total, z, limit)

    def _z(self, kind: str, counts) -> np.ndarray:
        """Standard errors between sums; sums of 0 and 1 have binomial tails."""
        seen, mean, variance = self.seen[kind], self.mean[kind], self.variance[kind]
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
        return np.where(counts & (np.abs(exact) < np.abs(z)), exact, z)


def _check_likelihood(subject: Subject, log_likelihood) -> Check:
    """Likelihood of sequences against that of independent values."""
    alone, n_free = np.zeros(len(subject.values)), 0
    for f, emission in enumerate(subject.network.emissions):
        own, parameters = _independent(emission, subject.values[:, :, f])
        alone += own
        n_free += parameters
    what = "against independent values"
    return compare_likelihoods(log_likelihood, alone, n_free, N_KINDS, what)


def _independent(emission, column) -> tuple[np.ndarray, int]:
    """Log-likelihood of each sequence of a feature by itself, and parameters."""
    if emission.is_numeric:
        known = ~np.isnan(column)
        if not known.any():
            return np.zeros(len(column)), 0
        mean, std = mean_and_spread(column)
        logs = stats.norm.logpdf(np.where(known, column, mean), mean, std)
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
    return note_certainty(subject.latents, told, np.ones(len(told)))
