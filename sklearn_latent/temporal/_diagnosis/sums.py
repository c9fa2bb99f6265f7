"""Sums over sequences in which data and model can differ."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._emissions.base import as_codes
from .._panels.panel import MISSING

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
                self.scales[f] = scale_of(values[:, :, f])
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

    def by_feature(self, sums) -> np.ndarray:
        """Sums of the marks of each feature."""
        return np.bincount(self.owner, sums, len(self.emissions))


@dataclass(frozen=True)
class Sums:
    """Sums of marks over sequences.

    rate: of each mark, (n_marks,)
    slice: by slice, (n_slices, n_marks)
    pair: of products of two marks in a slice, (n_marks, n_marks)
    past, older: of products of marks with themselves one and two slices before, by
        feature; of categories, how often one is repeated, (n_observed,)
    tail: of fourth powers of numbers, 0 for categories, (n_observed,)
    """

    rate: np.ndarray
    slice: np.ndarray
    pair: np.ndarray
    past: np.ndarray
    older: np.ndarray
    tail: np.ndarray

    @classmethod
    def of(cls, marks: Marks, values) -> Sums:
        """Sums of some sequences."""
        own = marks.of(values)
        flat = own.reshape(-1, own.shape[2])
        squares = np.array(marks.label) == -2
        fourth = np.where(squares, (flat**2).sum(axis=0), 0.0)

        def again(lag):
            products = (own[:, lag:] * own[:, :-lag]).sum(axis=(0, 1))
            return marks.by_feature(np.where(squares, 0.0, products))

        return cls(
            flat.sum(axis=0),
            own.sum(axis=0),
            flat.T @ flat,
            again(1),
            again(2),
            marks.by_feature(fourth),
        )

    @classmethod
    def possible(cls, marks: Marks, values) -> Sums:
        """How many values each sum is over."""
        here = (~is_gap(values)).astype(np.float64)
        known = here[:, :, marks.owner]
        flat = known.reshape(-1, known.shape[2])

        def again(lag):
            return (here[:, lag:] * here[:, :-lag]).sum(axis=(0, 1))

        return cls(
            flat.sum(axis=0),
            known.sum(axis=0),
            flat.T @ flat,
            again(1),
            again(2),
            here.sum(axis=(0, 1)),
        )


@dataclass(frozen=True)
class Spread:
    """Means and variances of sums over tables drawn from a network."""

    mean: Sums
    variance: Sums

    @classmethod
    def of(cls, drawn) -> Spread:
        """From the sums of each of several tables."""
        totals: dict[str, Any] = {field.name: 0.0 for field in fields(Sums)}
        squares, n = dict(totals), 0
        for sums in drawn:
            n += 1
            for name in totals:
                value = getattr(sums, name)
                totals[name] = totals[name] + value
                squares[name] = squares[name] + value**2
        mean = {name: total / n for name, total in totals.items()}
        variance = {
            name: np.maximum(squares[name] / n - mean[name] ** 2, 0.0) * n / (n - 1)
            for name in mean
        }
        return cls(Sums(**mean), Sums(**variance))


def draw_like(network, values, rng) -> np.ndarray:
    """Sequences of the network with the gaps of these."""
    drawn = network.sample(len(values), values.shape[1], random_state=rng)[0]
    gap = np.nan if drawn.dtype.kind == "f" else MISSING
    return np.where(is_gap(values), gap, drawn)


def is_gap(values) -> np.ndarray:
    """Where a value is missing."""
    return np.isnan(values) if values.dtype.kind == "f" else values == MISSING


def scale_of(column) -> tuple[float, float]:
    """Mean and standard deviation of numbers, 1 if they do not vary."""
    known = column[~np.isnan(column)]
    # Squares of huge numbers overflow.
    unit = float(np.abs(known).max(initial=0.0)) or 1.0
    if not len(known):
        return 0.0, 1.0
    known = known / unit
    return float(unit * known.mean()), float(unit * known.std()) or 1.0
