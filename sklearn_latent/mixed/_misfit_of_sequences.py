"""Whether sequences follow a latent dynamic Bayesian network."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special, stats

from .._answers.diagnosis import Subject
from .._answers.statistics import NUMBER, SIZE, Mark, row_limit
from .._core.checks import (
    N_KINDS,
    Check,
    Comparison,
    compare_likelihoods,
    critical_z,
    note_certainty,
)
from .._tables.thin import some_rows
from ._emissions.emission import as_codes
from ._emissions.numbers import mean_and_spread
from ._inference.completion import complete
from ._inference.surprise import surprise
from ._panels.panel import Panel


def subject_of(
    network: Any, panel: Panel, names, latents, times, labels, n_learned=np.inf
) -> Subject:
    """Sequences, prepared for a diagnosis.

    labels: of the categories of each feature
    n_learned: sequences that the network was learned from, so that others may differ
        by what those leave open
    """
    marks = [
        mark
        for f, emission in enumerate(network.emissions)
        for mark in _marks(f, str(names[f]), emission, labels[f])
    ]
    most = row_limit(len(marks), panel.n_slices)
    panel = panel.of_sequences(some_rows(len(panel.codes), most))
    whole = complete(network, panel)
    data = network._data(panel.values)
    found = network._expect(data)
    return Subject(
        whole.values,
        lambda n, rng: network.sample(n, panel.n_slices, rng)[0],
        marks,
        list(map(str, names)),
        _check_likelihood(network, panel.values, found.log_likelihood),
        times,
        n_learned,
        others=[
            *_steps(network, whole, names, times),
            *_certainty(found.states, data.weights > 0, latents),
        ],
    )


def _marks(f: int, name: str, emission, labels) -> list[Mark]:
    """Categories of a feature, of which the first of two says no more than the last."""
    if emission.is_numeric:
        return [Mark(f, name, NUMBER), Mark(f, name, SIZE)]
    codes = range(int(emission.n_categories == 2), emission.n_categories)
    return [Mark(f, f"{name}={labels[code]}", code) for code in codes]


def _steps(network, panel: Panel, names, times) -> list[Check]:
    """Values given the latents in the slice before, in each window of slices.

    What `fit` warns of. There is nothing to compare in two slices, and networks of
    several epochs have learned the changes.
    """
    if panel.n_slices < 3 or network.earlier:
        return []
    found = surprise(network, panel)
    ends = np.append(found.first[1:] - 1, found.last)
    total = np.maximum(found.unit, 1e-300)
    n_cells = len(found.feature)

    def name(p):
        window, cell = divmod(p, n_cells)
        first, last = (times[places[window]] for places in (found.first, ends))
        when = f"at {first}" if first == last else f"from {first} to {last}"
        return f"{names[found.feature[cell]]} {when}"

    z = found.z.ravel()
    limit = critical_z(int((z != 0).sum()), N_KINDS)
    seen, expected = (
        (part / total).ravel() for part in (found.observed, found.expected)
    )
    return Comparison("step", name, seen, expected, z, limit).lines()


def _check_likelihood(network, values, log_likelihood) -> Check:
    """Likelihood of sequences against that of independent values."""
    alone, n_free = np.zeros(len(values)), 0
    for f, emission in enumerate(network.emissions):
        column = values[:, :, f]
        independent = _numbers if emission.is_numeric else _categories
        own, parameters = independent(column)
        alone += own
        n_free += parameters
    return compare_likelihoods(log_likelihood, alone, n_free, "values")


def _categories(column) -> tuple[np.ndarray, int]:
    """Log-likelihood of each sequence of a category by itself, and parameters."""
    codes = as_codes(column)
    counts = np.bincount(codes[codes >= 0])
    shares = counts / max(counts.sum(), 1)
    # Nothing is known of the last one, the code -1.
    logs = np.append(special.xlogy(counts > 0, shares), 0.0)
    return logs[codes].sum(axis=1), max(len(counts) - 1, 0)


def _numbers(column) -> tuple[np.ndarray, int]:
    """The same of a number."""
    known = ~np.isnan(column)
    if not known.any():
        return np.zeros(len(column)), 0
    mean, std = mean_and_spread(column)
    logs = stats.norm.logpdf(np.where(known, column, mean), mean, std)
    return np.where(known, logs, 0.0).sum(axis=1), 2


def _certainty(states, inside, names) -> list[Check]:
    """Share of the uncertainty about each latent that the sequences take away."""
    told = []
    for state in states:
        own = state[inside]
        whole = special.entr(own.mean(axis=0)).sum() if len(own) else 0.0
        left = special.entr(own).sum(axis=1).mean() if len(own) else 0.0
        told.append(1.0 - left / whole if whole > 1e-12 else 0.0)
    return note_certainty(names, told)
