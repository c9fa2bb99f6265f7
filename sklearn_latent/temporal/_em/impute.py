"""Filling gaps in sequences: by the model alone, or with neighbouring values."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from .._emissions.base import as_codes
from .._inference.inference import warn_if_approximate
from .._panels.panel import MISSING, Panel, is_known

IMPUTE_STRATEGIES = ("posterior", "hybrid")

# Values are hidden in as many turns, so that each is predicted once with one part in
# five of its surroundings missing.
N_TURNS = 5

# Sequences and values that the weights are learned from.
MAX_SEQUENCES = 2000
MAX_VALUES = 4000

# Steps of the optimiser; the prior makes the problem well conditioned.
MAX_STEPS = 30

# Strength of the prior that pulls towards the model alone, in observations.
PENALTY = 10.0


class Imputer:
    """Learned corrections of the model's predictions by neighbouring values.

    For the strategy "hybrid" (Section 4.3 of Halbersberg and Lerner, 2020) the
    probability of a category is that of the model times the exponential of a linear
    score of what is near: the last value before, the next value after, how often the
    feature has each value in the sequence, and the states of all latents in the slice.
    A number is the model's mean plus a linear function of how far what is near is from
    it. The weights are shrunk to zero, where the model speaks alone, and learned by
    hiding known values of training sequences; only when they are first needed, because
    that can take longer than the rest of ``fit``.
    """

    def __init__(self, panel: Panel):
        panel = _some_sequences(panel)
        values = panel.values
        if values.dtype.kind != "f":
            largest = max(int(values.max(initial=0)), 1)
            values = values.astype(np.min_scalar_type(-largest - 1))
        self.training: tuple | None = values, panel.weights
        self.weights: list[np.ndarray] = []

    def fit(self, network) -> Imputer:
        """Learn the weights, a matrix (n_inputs, n_categories or 1) per feature."""
        if self.training is None:
            return self
        values, mass = self.training
        gap = np.nan if values.dtype.kind == "f" else MISSING
        # The turn depends on the place alone: the same data, the same weights.
        turn = np.random.RandomState(0).randint(N_TURNS, size=values.shape)
        parts: list[list] = [[] for _ in network.emission]
        for number in range(N_TURNS):
            hidden = (turn == number) & is_known(values)
            for f, part in enumerate(
                _inputs(network, np.where(hidden, gap, values), hidden)
            ):
                where = hidden[:, :, f]
                target = values[:, :, f][where]
                emission = network.emissions[f]
                numeric = emission.is_numeric
                target = emission.standardized(target) if numeric else as_codes(target)
                weight = np.broadcast_to(mass[:, None], where.shape)[where]
                parts[f].append((*part, target, weight))
        self.weights = [
            (_fit_line if emission.is_numeric else _fit_weights)(
                *map(np.concatenate, zip(*part, strict=True))
            )
            for emission, part in zip(network.emissions, parts, strict=True)
        ]
        self.training = None  # nobody asks for it again
        return self

    def probabilities(self, network, codes, strategy="posterior") -> list:
        """P(category) of each missing value, or the mean of a number.

        codes (n, n_slices, n_observed) -> probabilities (n_missing, n_categories) or
        means (n_missing, 1).
        """
        codes = np.asarray(codes)
        missing = ~is_known(codes)
        if strategy == "posterior":
            found = zip(network.emissions, network.predictive(codes), strict=True)
            return [
                p[missing[:, :, f]][:, : 1 if emission.is_numeric else None]
                for f, (emission, p) in enumerate(found)
            ]
        self.fit(network)
        warn_if_approximate(network)
        parts = _inputs(network, codes, missing)
        scores = [
            offset + inputs @ weights
            for (inputs, offset), weights in zip(parts, self.weights, strict=True)
        ]
        return [
            e.restored(score) if e.is_numeric else softmax(score, axis=1)
            for e, score in zip(network.emissions, scores, strict=True)
        ]

    def fill(self, network, codes, strategy="posterior") -> np.ndarray:
        """Put the most probable category, or the mean, where a value is missing."""
        filled = np.array(codes)
        missing = ~is_known(filled)
        found = self.probabilities(network, codes, strategy)
        for f, (table, emission) in enumerate(
            zip(found, network.emissions, strict=True)
        ):
            best = table[:, 0] if emission.is_numeric else table.argmax(axis=1)
            filled[:, :, f][missing[:, :, f]] = best
        return filled


def _some_sequences(panel: Panel) -> Panel:
    """Distinct sequences, at most as many as weights are learned from."""
    panel = panel.merged()
    if len(panel.codes) <= MAX_SEQUENCES:
        return panel
    chosen = np.linspace(0, len(panel.codes) - 1, MAX_SEQUENCES).astype(int)
    return panel.of_sequences(chosen)


def _inputs(network, codes, wanted):
    """What is known near the wanted values, and what the model says, by feature."""
    posterior = network._expect(network._data(codes)).states
    states = np.concatenate([np.ones((*codes.shape[:2], 1)), *posterior], axis=2)
    own = network._predicted(posterior, codes)
    for f, (found, emission) in enumerate(zip(own, network.emissions, strict=True)):
        where = wanted[:, :, f]
        column, rows = codes[:, :, f], np.nonzero(where)[0]
        if emission.is_numeric:
            column = emission.standardized(column)
            offset = emission.standardized(found[where][:, :1])
            mean, trust = _own_mean(column)
            parts = [states[where], (mean[rows, None] - offset) * trust[rows, None]]
        else:
            offset = np.log(np.maximum(found[where], 1e-12))
            parts = [states[where], offset - offset.mean(axis=1, keepdims=True)]
            parts.append(_own_shares(column, offset.shape[1])[rows])
        for step in (1, -1):
            value, distance = _last_known(column[:, ::step])
            value, distance = value[:, ::step][where, None], distance[:, ::step][where]
            for near in (distance == 1, distance > 1):
                if emission.is_numeric:
                    parts.append(np.where(near[:, None], value - offset, 0.0))
                else:
                    same = value == np.arange(offset.shape[1])
                    parts.append(same & near[:, None])
        yield np.concatenate(parts, axis=1, dtype=np.float64), offset


def _own_shares(column, n_values: int) -> np.ndarray:
    """Share of each value in a sequence, less the fewer are known, (n, n_values)."""
    counts = np.stack([(column == value).sum(axis=1) for value in range(n_values)], 1)
    return counts / (counts.sum(axis=1, keepdims=True) + 1.0)


def _own_mean(column) -> tuple[np.ndarray, np.ndarray]:
    """Mean number of each sequence, and how far to trust it, 0 to 1, (n,)."""
    known = is_known(column)
    count = known.sum(axis=1)
    mean = np.where(known, column, 0.0).sum(axis=1) / np.maximum(count, 1)
    return mean, count / (count + 1.0)


def _last_known(column):
    """Last known value before each slice, and how many slices ago it was."""
    slices = np.arange(column.shape[1])
    seen = np.maximum.accumulate(np.where(is_known(column), slices, -1), axis=1)
    last = np.concatenate([np.full((len(column), 1), -1), seen[:, :-1]], axis=1)
    value = np.take_along_axis(column, np.maximum(last, 0), axis=1)
    known = last >= 0
    return np.where(known, value, MISSING), np.where(known, slices - last, 0)


def _fit_line(inputs, offset, target, mass):
    """Linear regression around given means, shrunk to none."""
    chosen = _some_values(len(inputs))
    inputs, rest = inputs[chosen], target[chosen] - offset[chosen, 0]
    spread = float(np.sqrt(mass[chosen] @ rest**2 / max(mass[chosen].sum(), 1e-300)))
    if not spread:
        return np.zeros((inputs.shape[1], 1))
    # In units of the spread, so that the prior means the same in all.
    inputs, rest = inputs / spread, rest / spread
    weighted = inputs.T * mass[chosen]
    # Least squares, because huge weights leave nothing of the penalty.
    square = weighted @ inputs + PENALTY * np.eye(inputs.shape[1])
    return np.linalg.lstsq(square, weighted @ rest[:, None], rcond=None)[0]


def _some_values(n: int) -> np.ndarray:
    """Places of the values that weights are learned from."""
    return np.linspace(0, n - 1, min(n, MAX_VALUES)).astype(int)


def _fit_weights(inputs, offset, target, mass):
    """Multinomial logistic regression around given log-probabilities."""
    n_values = offset.shape[1]
    chosen = _some_values(len(inputs))
    inputs, offset, target, mass = (
        part[chosen] for part in (inputs, offset, target, mass)
    )
    shape = (inputs.shape[1], n_values)
    if not len(inputs) or n_values < 2:
        return np.zeros(shape)
    rows = np.arange(len(target))

    def loss(flat):
        weights = flat.reshape(shape)
        score = offset + inputs @ weights
        score -= score.max(axis=1, keepdims=True)
        share = np.exp(score)
        total = share.sum(axis=1)
        value = mass @ (np.log(total) - score[rows, target])
        value += PENALTY / 2 * (flat @ flat)
        share *= (mass / total)[:, None]
        share[rows, target] -= mass
        gradient = inputs.T @ share
        return value, (gradient + PENALTY * weights).ravel()

    found = minimize(
        loss,
        np.zeros(shape).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MAX_STEPS},
    )
    return found.x.reshape(shape)
