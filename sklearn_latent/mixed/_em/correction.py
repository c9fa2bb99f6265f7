"""Regressions around the predictions of a model, shrunk to none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

# Strengths of the prior that pulls towards the model alone, in observations. The one
# that predicts held-out values best is used; without any such gain it is the first.
PENALTIES = (np.inf, 100.0, 30.0, 10.0, 3.0)

# Parts of the values, of which each is held out once.
N_FOLDS = 3

# Values that weights are learned from.
MAX_VALUES = 4000

# Steps of the optimiser; the prior makes the problem well conditioned.
MAX_STEPS = 30


@dataclass(frozen=True)
class Examples:
    """Known values of a feature, what the model says of them, and what is near.

    inputs: (n, n_inputs)
    offset: log-probabilities, (n, n_categories), or standardised means, (n, 1)
    target: the values, (n,): codes or standardised numbers
    mass: their weights, (n,)
    """

    inputs: np.ndarray
    offset: np.ndarray
    target: np.ndarray
    mass: np.ndarray

    @classmethod
    def joined(cls, parts: list[Examples]) -> Examples:
        """All examples of several parts."""
        return cls(*map(np.concatenate, zip(*map(_fields, parts), strict=True)))

    def __getitem__(self, chosen) -> Examples:
        return Examples(*(field[chosen] for field in _fields(self)))


def _fields(examples: Examples) -> tuple[np.ndarray, ...]:
    """The fields, in order."""
    return examples.inputs, examples.offset, examples.target, examples.mass


@dataclass(frozen=True)
class Correction:
    """Weights of what is near, (n_inputs, n_categories or 1).

    spread: share of the standard deviation of a number that is left
    """

    weights: np.ndarray
    spread: float = 1.0

    @classmethod
    def learned(cls, examples: Examples, is_numeric: bool) -> Correction:
        """The weights whose strength of the prior predicts held-out values best."""
        fit, loss = (_lines, _square) if is_numeric else (_logits, _surprise)
        n = len(examples.target)
        fold = np.arange(n) * N_FOLDS // max(n, 1)
        losses = np.zeros(len(PENALTIES))
        for held in range(N_FOLDS):
            found = fit(examples[fold != held], PENALTIES)
            losses += [loss(examples[fold == held], weights) for weights in found]
        best = int(losses.argmin())
        # Up to that one, because the optimiser goes on from the weights before.
        weights = fit(examples, PENALTIES[: best + 1])[-1]
        return cls(weights, float(np.sqrt(losses[best] / losses[0])) if best else 1.0)

    def corrected(self, emission, found, inputs) -> np.ndarray:
        """Probabilities, (n, n_categories), or mean and standard deviation, (n, 2)."""
        score = offset_of(emission, found) + inputs @ self.weights
        if not emission.is_numeric:
            return softmax(score, axis=1)
        mean = emission.restored(score)
        above = emission.standardized(found.sum(axis=1, keepdims=True))
        above = score + self.spread * (above - offset_of(emission, found))
        return np.concatenate([mean, emission.restored(above) - mean], axis=1)


def offset_of(emission, found) -> np.ndarray:
    """Log-probabilities, (n, n_categories), or standardised means, (n, 1)."""
    if emission.is_numeric:
        return emission.standardized(found[:, :1])
    return np.log(np.maximum(found, 1e-12))


def spread_out(n: int, most: int) -> np.ndarray:
    """Places of at most so many of n, from the first to the last."""
    return np.linspace(0, n - 1, min(n, most)).astype(int)


def _lines(examples: Examples, penalties) -> list[np.ndarray]:
    """Linear regressions around given means."""
    inputs, mass = examples.inputs, examples.mass
    rest = examples.target - examples.offset[:, 0]
    spread = float(np.sqrt(mass @ rest**2 / max(mass.sum(), 1e-300)))
    nothing = np.zeros((inputs.shape[1], 1))
    if not spread:
        return [nothing] * len(penalties)
    # In units of the spread, so that the prior means the same in all.
    weighted = inputs.T * (mass / spread)
    square, product = weighted @ (inputs / spread), weighted @ (rest / spread)
    found = []
    for penalty in penalties:
        weights = nothing
        if np.isfinite(penalty):
            # Least squares, because huge weights leave nothing of the penalty.
            shrunk = square + penalty * np.eye(len(square))
            weights = np.linalg.lstsq(shrunk, product[:, None], rcond=None)[0]
        found.append(weights)
    return found


def _square(examples: Examples, weights) -> float:
    """Squared error of numbers."""
    score = examples.offset + examples.inputs @ weights
    return float(examples.mass @ (examples.target - score[:, 0]) ** 2)


def _logits(examples: Examples, penalties) -> list[np.ndarray]:
    """Multinomial logistic regressions around given log-probabilities."""
    inputs, offset = examples.inputs, examples.offset
    target, mass = examples.target, examples.mass
    shape = inputs.shape[1], offset.shape[1]
    rows = np.arange(len(target))

    def loss(flat, penalty):
        weights = flat.reshape(shape)
        score = offset + inputs @ weights
        score -= score.max(axis=1, keepdims=True)
        share = np.exp(score)
        total = share.sum(axis=1)
        value = mass @ (np.log(total) - score[rows, target])
        value += penalty / 2 * (flat @ flat)
        share *= (mass / total)[:, None]
        share[rows, target] -= mass
        gradient = inputs.T @ share
        return value, (gradient + penalty * weights).ravel()

    found = [np.zeros(shape)]
    for penalty in penalties:
        last = found[-1]
        if np.isfinite(penalty) and len(rows) and shape[1] > 1:
            last = minimize(
                loss,
                last.ravel(),
                args=(penalty,),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": MAX_STEPS},
            ).x.reshape(shape)
        found.append(last)
    return found[1:]


def _surprise(examples: Examples, weights) -> float:
    """Minus the log-likelihood of categories."""
    score = examples.offset + examples.inputs @ weights
    own = score[np.arange(len(score)), examples.target]
    return float(examples.mass @ (logsumexp(score, axis=1) - own))
