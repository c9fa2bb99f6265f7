"""Gaps and next slices: by the model alone, or with the values nearby."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from .._emissions.emission import as_codes
from .._forecast import Forecast
from .._inference.expectation import warn_if_approximate
from .._latent_dbn import most_probable
from .._panels.panel import MISSING, Panel, is_known
from .correction import (
    MAX_VALUES,
    Correction,
    Examples,
    offset_of,
    spread_out,
)

STRATEGIES = ("posterior", "hybrid")

# Values are hidden in as many turns, so that each is predicted once with one part in
# five of its surroundings missing.
N_TURNS = 5

# Sequences that corrections are learned from.
MAX_SEQUENCES = 2000

# Slices of the sequences that are cut short to learn forecasts, in total: each place of
# a cut needs a sequence of its own.
MAX_CUT_SLICES = 100_000

# Slices ahead that have a correction of their own; later ones follow the last of these.
MAX_AHEAD = 4

# Slices that have a level of their own.
MAX_LEVELS = 50

# Weights of other features have a prior that is so much stronger: there are many of
# them (HELP, categories forecast: 0.547 instead of 0.539 with 1, 3 folds).
CAUTION = 5.0


class Hybrid:
    """The model's predictions, corrected by what is recorded nearby.

    For the strategy "hybrid" (Section 4.3 of Halbersberg and Lerner, 2020) the
    probability of a category is that of the model times the exponential of a linear
    score of what is near: the last values before and the next ones after, how often the
    feature has each value in the sequence, the states of all latents, the number of the
    slice, and the other features: in the same slice or, of slices ahead, the last ones.
    A number is the model's mean plus a linear function of how far what is near is from
    it. The weights are shrunk to zero, where the model speaks alone, and learned by
    hiding known values of training sequences, or all after a slice; only when they are
    first needed, because that can take as long as the rest of ``fit``.
    """

    def __init__(self, panel: Panel):
        panel = _some_sequences(panel)
        values = panel.values
        if values.dtype.kind != "f":
            largest = max(int(values.max(initial=0)), 1)
            values = values.astype(np.min_scalar_type(-largest - 1))
        self.values = values
        self.mass = panel.weights
        # By how many slices ahead they are for; 0 for gaps.
        self.corrections: dict[int, list[Correction]] = {}

    def learned(self, network, ahead: int = 0) -> list[Correction]:
        """The correction of each feature."""
        if ahead not in self.corrections:
            with threadpool_limits(1):  # as in `fit`
                found = self._learn(network, ahead)
            self.corrections[ahead] = found
        return self.corrections[ahead]

    def _learn(self, network, ahead) -> list[Correction]:
        """Learn them from hidden values."""
        parts: list[list] = [[] for _ in network.emissions]
        hidden = self._ahead(network, ahead) if ahead else self._gaps(network)
        for rows, near in hidden:
            values, mass = self.values[rows], self.mass[rows]
            for f, (place, found, inputs) in enumerate(near):
                emission, target = network.emissions[f], values[:, :, f][place]
                known = is_known(target)
                target = (
                    emission.standardized(target)
                    if emission.is_numeric
                    else as_codes(target)
                )
                offset = offset_of(emission, found)
                examples = Examples(inputs, offset, target, mass[place[0]])
                parts[f].append((rows[place[0]][known], examples[known]))
        return [
            Correction.learned(_joined(part), emission.is_numeric)
            for emission, part in zip(network.emissions, parts, strict=True)
        ]

    def _gaps(self, network) -> Iterator:
        """Sequences with hidden values, and what is near these."""
        # The turn depends on the place alone: the same data, the same weights.
        turn = np.random.RandomState(0).randint(N_TURNS, size=self.values.shape)
        rows = np.arange(len(self.values))
        for number in range(N_TURNS):
            hidden = (turn == number) & is_known(self.values)
            places = _places(hidden, MAX_VALUES // N_TURNS)
            values = np.where(hidden, _gap(self.values), self.values)
            yield rows, self._near_gaps(network, values, places)

    def _ahead(self, network, ahead: int) -> Iterator:
        """Sequences that are cut short, and what is near a later slice."""
        n_slices = self.values.shape[1]
        recorded = np.asarray(is_known(self.values).any(axis=2))
        # A network of epochs looks ahead from its last one.
        first = max(network._spans(n_slices)[-1][1].start - 1, 0)
        slices = np.arange(n_slices)
        wanted = recorded & (slices >= first) & (slices < n_slices - ahead)
        if not wanted.any():
            wanted[0] = True  # to know how many inputs there are
        rows, cuts = np.nonzero(wanted)
        most = min(MAX_VALUES, max(MAX_CUT_SLICES // n_slices, 1))
        chosen = spread_out(len(rows), most)
        rows, cuts = rows[chosen], cuts[chosen]
        before = (slices <= cuts[:, None])[:, :, None]
        values = np.where(before, self.values[rows], _gap(self.values))
        found = network.forecast(values, ahead)
        yield rows, self._near_ahead(network, values, found, ahead)

    def probabilities(self, network, codes, strategy="posterior") -> list:
        """P(category) of each missing value, or mean and standard deviation.

        codes (n, n_slices, n_observed) -> (n_missing, n_categories or 2) per feature.
        """
        codes = np.asarray(codes)
        missing = ~is_known(codes)
        if strategy == "posterior":
            found = enumerate(network.predictive(codes))
            return [shares[missing[:, :, f]] for f, shares in found]
        corrections = self.learned(network)
        warn_if_approximate(network)
        near = self._near_gaps(network, codes, _places(missing))
        return [
            correction.corrected(emission, found, inputs)
            for correction, emission, (_, found, inputs) in zip(
                corrections, network.emissions, near, strict=True
            )
        ]

    def fill(self, network, codes, strategy="posterior") -> np.ndarray:
        """Put the most probable category, or the mean, where a value is missing."""
        filled = np.array(codes)
        missing = ~is_known(filled)
        found = self.probabilities(network, codes, strategy)
        for f, best in enumerate(most_probable(network.emissions, found)):
            filled[:, :, f][missing[:, :, f]] = best
        return filled

    def forecast(self, network, codes, n_steps, strategy="posterior") -> Forecast:
        """What to expect of the slices after the last recorded one."""
        forecast = network.forecast(codes, n_steps)
        farthest = min(self.values.shape[1] - 1, MAX_AHEAD)
        if strategy == "posterior" or not farthest:
            return forecast
        probabilities = [np.array(shares) for shares in forecast.probabilities]
        for step in range(1, n_steps + 1):
            corrections = self.learned(network, min(step, farthest))
            near = self._near_ahead(network, codes, forecast, step)
            for f, (_, found, inputs) in enumerate(near):
                probabilities[f][:, step - 1] = corrections[f].corrected(
                    network.emissions[f], found, inputs
                )
        best = most_probable(network.emissions, probabilities)
        return replace(
            forecast, probabilities=probabilities, values=np.stack(best, axis=2)
        )

    def _near_gaps(self, network, codes, places) -> Iterator:
        """By feature: places, what the model says of them, and what is near."""
        posterior = network._expect(network._data(codes)).states
        own = network._predicted(posterior, codes)
        states = np.concatenate([np.ones((*codes.shape[:2], 1)), *posterior], axis=2)
        # What the same slice shows of other features, and the latents do not explain.
        surprises = []
        for f, emission in enumerate(network.emissions):
            found = own[f]
            if emission.is_numeric:
                found = emission.standardized(found[:, :, :1])
            surprises.append(_standard(emission, codes[:, :, f]) - found)
        others = np.nan_to_num(np.concatenate(surprises, axis=2))
        for f, (emission, place) in enumerate(
            zip(network.emissions, places, strict=True)
        ):
            found, column = own[f][place], codes[:, :, f]
            common = self._common(place, states[place], others[place])
            inputs = [*common, *_own_values(emission, column, place, found)]
            yield place, found, np.concatenate(inputs, axis=1)

    def _near_ahead(self, network, codes, forecast: Forecast, step: int) -> Iterator:
        """By feature: places, what the model says of them, and what is near."""
        n = len(codes)
        place = np.arange(n), forecast.slices[:, step - 1]
        gaps = np.full((n, step, codes.shape[2]), _gap(codes), codes.dtype)
        codes = np.concatenate([codes, gaps], axis=1)
        states = [np.ones((n, 1)), *(part[:, step - 1] for part in forecast.states)]
        others = []
        for f, emission in enumerate(network.emissions):
            last = _last_known(codes[:, :, f])[0][place]
            value = _standard(emission, codes[:, :, f])[place[0], last]
            others.append(np.where(last[:, None] < 0, 0.0, value))
        common = self._common(place, np.hstack(states), np.hstack(others))
        for f, emission in enumerate(network.emissions):
            found = forecast.probabilities[f][:, step - 1]
            own = _own_values(emission, codes[:, :, f], place, found)
            yield place, found, np.concatenate([*common, *own], axis=1)

    def _common(self, place, states, others) -> list[np.ndarray]:
        """Inputs that all features have: states, levels of slices, other features."""
        levels = np.arange(min(self.values.shape[1], MAX_LEVELS))
        return [states, place[1][:, None] == levels, others / np.sqrt(CAUTION)]


def _some_sequences(panel: Panel) -> Panel:
    """Distinct sequences that count, at most as many as are learned from.

    They are in the same random order whenever they are the same, because parts of them
    are held out together.
    """
    panel = panel.merged()
    kept = np.flatnonzero(panel.weights) if panel.weights.any() else [0]
    chosen = np.random.RandomState(0).permutation(kept)[:MAX_SEQUENCES]
    return panel.of_sequences(chosen)


def _joined(parts) -> Examples:
    """Examples of several turns, by sequence; of many as many as are learned from."""
    rows = np.concatenate([rows for rows, _ in parts])
    order = np.argsort(rows, kind="stable")
    order = order[spread_out(len(order), MAX_VALUES)]
    return Examples.joined([examples for _, examples in parts])[order]


def _gap(values):
    """What stands for a missing value."""
    return np.nan if values.dtype.kind == "f" else MISSING


def _places(wanted, most: int | None = None) -> list[tuple]:
    """Rows and slices of the wanted values of each feature, at most so many."""
    found = []
    for f in range(wanted.shape[2]):
        rows, slices = np.nonzero(wanted[:, :, f])
        chosen = spread_out(len(rows), len(rows) if most is None else most)
        found.append((rows[chosen], slices[chosen]))
    return found


def _standard(emission, column) -> np.ndarray:
    """Standardised numbers, or an indicator of each category, (n, n_slices, ...)."""
    if emission.is_numeric:
        return emission.standardized(column)[:, :, None]
    codes = as_codes(column)[:, :, None]
    return np.where(codes == MISSING, np.nan, codes == np.arange(emission.n_categories))


def _last_known(column) -> tuple[np.ndarray, np.ndarray]:
    """Slices of the last two known values before each slice, or -1, (n, n_slices)."""
    slices = np.arange(column.shape[1])
    seen = np.maximum.accumulate(np.where(is_known(column), slices, -1), axis=1)
    last = np.concatenate([np.full((len(column), 1), -1), seen[:, :-1]], axis=1)
    second = np.take_along_axis(last, np.maximum(last, 0), axis=1)
    return last, np.where(last < 0, -1, second)


def _own_values(emission, column, place, found) -> list[np.ndarray]:
    """Inputs from the other values of the feature in the sequence."""
    rows, slices = place
    offset = offset_of(emission, found)
    # Numbers count from where the model expects the wanted one.
    origin = offset if emission.is_numeric else 0.0
    values = _standard(emission, column)
    count = is_known(column).sum(axis=1)[rows, None]
    # Their mean, or the share of each category, less the fewer are known.
    parts = [(np.nansum(values, axis=1)[rows] - origin * count) / (count + 1.0)]
    if not emission.is_numeric:
        parts.append(offset - offset.mean(axis=1, keepdims=True))
    for step in (1, -1):
        at = slices if step == 1 else column.shape[1] - 1 - slices
        last, second = (part[rows, at] for part in _last_known(column[:, ::step]))
        for seen, wanted in (
            (last, last == at - 1),
            (last, last < at - 1),
            (second, True),
        ):
            near = values[:, ::step][rows, seen] - origin
            parts.append(np.where((wanted & (seen >= 0))[:, None], near, 0.0))
    return parts
