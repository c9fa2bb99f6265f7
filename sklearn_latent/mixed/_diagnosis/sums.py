"""Sums over sequences in which data and model can differ."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._emissions.emission import as_codes
from .._emissions.numbers import mean_and_spread
from .._panels.panel import is_known

Sums = dict[str, np.ndarray]

# Standard deviations from the mean, beyond which numbers are all alike.
FARTHEST = 1e30


class Marks:
    """Values as numbers that can be added up.

    A category has a mark of 0 or 1, a number two: how far it is from the mean, in
    standard deviations, and the square of that.

    owner: feature of each mark, (n_marks,)
    label: category of each mark, -1 and -2 for those of numbers, (n_marks,)
    """

    def __init__(self, emissions, values):
        self.emissions = emissions
        self.owner, self.label, self.scales = [], [], {}
        for f, emission in enumerate(emissions):
            labels = list(range(emission.n_categories))
            if emission.is_numeric:
                self.scales[f] = mean_and_spread(values[:, :, f])
                labels = [-1, -2]
            self.owner += [f] * len(labels)
            self.label += labels

    def of(self, values) -> np.ndarray:
        """Marks of values (n, n_slices, n_observed); all 0 where one is missing."""
        parts = []
        for f, emission in enumerate(self.emissions):
            column = values[:, :, f]
            if emission.is_numeric:
                mean, spread = self.scales[f]
                with np.errstate(over="ignore"):
                    distance = np.nan_to_num((column - mean) / spread)
                # Variances of fourth powers must not overflow.
                distance = np.clip(distance, -FARTHEST, FARTHEST)
                parts.append(np.stack([distance, distance**2], axis=2))
            else:
                codes = as_codes(column)
                parts.append(codes[:, :, None] == np.arange(emission.n_categories))
        return np.concatenate(parts, axis=2, dtype=np.float64)

    def sums(self, values) -> Sums:
        """Sums of marks over sequences.

        rate: of each mark, (n_marks,)
        slice: by slice, (n_slices, n_marks)
        pair: of products of two marks in a slice, (n_marks, n_marks)
        past, older: of products of marks with themselves one and two slices before, by
            feature; of categories, how often one is repeated, (n_observed,)
        tail: of fourth powers of numbers, 0 for categories, (n_observed,)
        """
        own = self.of(values)
        flat = own.reshape(-1, own.shape[2])
        squares = np.array(self.label) == -2
        past, older = (
            np.where(squares, 0.0, (own[:, lag:] * own[:, :-lag]).sum(axis=(0, 1)))
            for lag in (1, 2)
        )
        return {
            "rate": flat.sum(axis=0),
            "slice": own.sum(axis=0),
            "pair": flat.T @ flat,
            "past": self._by_feature(past),
            "older": self._by_feature(older),
            "tail": self._by_feature(np.where(squares, (flat**2).sum(axis=0), 0.0)),
        }

    def possible(self, values) -> Sums:
        """How many values each sum is over."""
        here = is_known(values).astype(np.float64)
        known = here[:, :, self.owner]
        flat = known.reshape(-1, known.shape[2])
        past, older = (
            (here[:, lag:] * here[:, :-lag]).sum(axis=(0, 1)) for lag in (1, 2)
        )
        return {
            "rate": flat.sum(axis=0),
            "slice": known.sum(axis=0),
            "pair": flat.T @ flat,
            "past": past,
            "older": older,
            "tail": here.sum(axis=(0, 1)),
        }

    def _by_feature(self, sums) -> np.ndarray:
        """Sums of the marks of each feature."""
        return np.bincount(self.owner, sums, len(self.emissions))


def spread(drawn: Iterable[Sums]) -> tuple[Sums, Sums]:
    """Means and variances of the sums of several tables."""
    totals: Sums = {}
    squares: Sums = {}
    n = 0
    for sums in drawn:
        n += 1
        for name, value in sums.items():
            totals[name] = totals.get(name, 0.0) + value
            squares[name] = squares.get(name, 0.0) + value**2
    mean = {name: total / n for name, total in totals.items()}
    variance = {
        name: np.maximum(squares[name] / n - mean[name] ** 2, 0.0) * n / (n - 1)
        for name in mean
    }
    return mean, variance
