"""Filling gaps in sequences: by the model alone, or with neighbouring values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from .._inference.inference import expectation, warn_if_approximate
from .._panels.panel import MISSING, Panel

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
    The weights are shrunk to zero, where the model speaks
    alone, and learned by hiding known values of training sequences; only when they are
    first needed, because that can take longer than the rest of ``fit``.
    """

    def __init__(self, panel: Panel):
        panel = _some_sequences(panel)
        largest = max(int(panel.codes.max(initial=0)), 1)
        codes = panel.codes.astype(np.min_scalar_type(-largest - 1))
        self.panel: Panel | None = replace(panel, codes=codes)
        self.weights: list[np.ndarray] = []

    def fit(self, network) -> Imputer:
        """Learn the weights, a matrix (n_inputs, n_categories) per feature."""
        if self.panel is None:
            return self
        codes, mass = self.panel.codes, self.panel.weights
        # The turn depends on the place alone: the same data, the same weights.
        turn = np.random.RandomState(0).randint(N_TURNS, size=codes.shape)
        parts: list[list] = [[] for _ in network.emission]
        for number in range(N_TURNS):
            hidden = (turn == number) & (codes != MISSING)
            for f, part in enumerate(
                _inputs(network, np.where(hidden, MISSING, codes), hidden)
            ):
                where = hidden[:, :, f]
                target = codes[:, :, f][where]
                weight = np.broadcast_to(mass[:, None], where.shape)[where]
                parts[f].append((*part, target, weight))
        self.weights = [
            _fit_weights(*map(np.concatenate, zip(*part, strict=True)))
            for part in parts
        ]
        self.panel = None  # nobody asks for it again
        return self

    def probabilities(self, network, codes, strategy="posterior") -> list:
        """P(category) of each missing value.

        codes (n, n_slices, n_observed) -> probabilities (n_missing, n_categories).
        """
        codes = np.asarray(codes)
        missing = codes == MISSING
        if strategy == "posterior":
            predictive = network.predictive(codes)
            return [p[missing[:, :, f]] for f, p in enumerate(predictive)]
        self.fit(network)
        warn_if_approximate(network)
        return [
            softmax(offset + inputs @ weights, axis=1)
            for (inputs, offset), weights in zip(
                _inputs(network, codes, missing), self.weights, strict=True
            )
        ]

    def fill(self, network, codes, strategy="posterior") -> np.ndarray:
        """Put the most probable category where a value is missing."""
        filled = np.array(codes)
        for f, table in enumerate(self.probabilities(network, codes, strategy)):
            column = filled[:, :, f]
            column[column == MISSING] = table.argmax(axis=1)
        return filled


def _some_sequences(panel: Panel) -> Panel:
    """Distinct sequences, at most as many as weights are learned from."""
    panel = panel.merged()
    if len(panel.codes) <= MAX_SEQUENCES:
        return panel
    chosen = np.linspace(0, len(panel.codes) - 1, MAX_SEQUENCES).astype(int)
    return panel.of_sequences(chosen)


def _inputs(network, codes, wanted):
    """What is known near the wanted values, and log-probabilities, by feature."""
    posterior = expectation(network, network._data(codes)).states
    states = np.concatenate([np.ones((*codes.shape[:2], 1)), *posterior], axis=2)
    own = network._predicted(posterior, codes)
    for f, probabilities in enumerate(own):
        where = wanted[:, :, f]
        n_values = probabilities.shape[2]
        offset = np.log(np.maximum(probabilities[where], 1e-12))
        parts = [states[where], offset - offset.mean(axis=1, keepdims=True)]
        parts.append(_own_shares(codes[:, :, f], n_values)[np.nonzero(where)[0]])
        for step in (1, -1):
            value, distance = _last_known(codes[:, ::step, f])
            value, distance = value[:, ::step][where], distance[:, ::step][where]
            for near in (distance == 1, distance > 1):
                parts.append((value[:, None] == np.arange(n_values)) & near[:, None])
        yield np.concatenate(parts, axis=1, dtype=np.float64), offset


def _own_shares(column, n_values: int) -> np.ndarray:
    """Share of each value in a sequence, less the fewer are known, (n, n_values)."""
    counts = np.stack([(column == value).sum(axis=1) for value in range(n_values)], 1)
    return counts / (counts.sum(axis=1, keepdims=True) + 1.0)


def _last_known(column):
    """Last known value before each slice, and how many slices ago it was."""
    slices = np.arange(column.shape[1])
    seen = np.maximum.accumulate(np.where(column != MISSING, slices, -1), axis=1)
    last = np.concatenate([np.full((len(column), 1), -1), seen[:, :-1]], axis=1)
    value = np.take_along_axis(column, np.maximum(last, 0), axis=1)
    known = last >= 0
    return np.where(known, value, MISSING), np.where(known, slices - last, 0)


def _fit_weights(inputs, offset, target, mass):
    """Multinomial logistic regression around given log-probabilities."""
    n_values = offset.shape[1]
    if len(inputs) > MAX_VALUES:
        chosen = np.linspace(0, len(inputs) - 1, MAX_VALUES).astype(int)
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
