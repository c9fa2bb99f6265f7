"""Latents that depend on each other: hidden classes above them.

Models compete on rows that they have not seen: independent latents; the same latents
under classes, each with its own priors; a mixture of Bernoulli distributions, whose
classes are latents that drive the features of their rows; and the network that grows
from it by EM and further latents.
"""

from __future__ import annotations

import numpy as np

from .._likelihood.beam import WIDE, Beam
from .._likelihood.layered import Layered
from .._likelihood.truncated import climb_truncated
from .._statistics.patterns import Patterns
from .classes import class_network, fit_mixture
from .sampling import hold_out, thin
from .search import Search

# Share of the rows that judge.
HELD_OUT = 0.25

# Rows that choose the number of classes.
MOST_ROWS = 10_000

# Numbers of classes of a mixture grow by this factor until two in a row are worse.
GROWTH = 2.0**0.5
MOST_CLASSES = 256

# EM steps of a model that is to be compared, and gain per row that ends them.
STEPS, TOLERANCE = 15, 1e-4

# Standard errors by which classes must improve the likelihood of other rows. One of 40
# tables of independent latents gets classes by chance. (If any improvement were enough,
# half of the tables of 60 rows of independent features would get them.)
LEAST_Z = 2.0


class Judge:
    """Rows to learn from, and others to judge by."""

    def __init__(self, patterns: Patterns, rng):
        sample = thin(patterns, MOST_ROWS, rng)
        self.train, self.test = hold_out(sample, HELD_OUT, rng)
        self.rng = rng

    @property
    def is_blind(self) -> bool:
        """Whether there are rows of one kind only."""
        return not (len(self.train.weights) and len(self.test.weights))

    def mean(self, rows) -> float:
        """Mean over the rows that judge."""
        return float(self.test.weights @ rows / self.test.weights.sum())

    def z(self, rows) -> float:
        """Mean in standard errors."""
        mean = self.mean(rows)
        error = np.sqrt(self.mean((rows - mean) ** 2) / self.test.weights.sum())
        return mean / max(error, 1e-300)

    def evaluate(self, parameters: Layered) -> np.ndarray:
        """Log-likelihood of the rows that judge."""
        beam = Beam(self.test, parameters.n_latents, WIDE)
        beam.search(parameters.clipped())
        return beam.log_likelihood

    def refit(self, start: Layered) -> tuple[np.ndarray, Layered, Beam]:
        """Fit to the rows to learn from; also the log-likelihood of the others."""
        beam = Beam(self.train, start.n_latents)
        ascent = climb_truncated(start, beam, tol=TOLERANCE, max_iter=STEPS)
        return self.evaluate(ascent.state), ascent.state, beam

    def best_mixture(self):
        """The mixture with the best number of classes, and what the rows say of it."""
        best, best_rows, worse, size = None, np.full(1, -np.inf), 0, 2.0
        most = min(MOST_CLASSES, self.train.weights.sum() / 3.0)
        while worse < 2 and round(size) <= most:
            mixture = fit_mixture(self.train, round(size), self.rng)
            rows = mixture.log_likelihood(self.test)
            if best is None or self.mean(rows) > self.mean(best_rows):
                best, best_rows, worse = mixture, rows, 0
            else:
                worse += 1
            size *= GROWTH
        return best, best_rows


def mixture_beats(judge: Judge, independent: Layered):
    """The mixture that is better than independent latents, and its rows; or None."""
    if judge.is_blind:
        return None
    mixture, rows = judge.best_mixture()
    if mixture is None:
        return None
    gain = rows - judge.refit(independent)[0]
    return (mixture, rows) if judge.z(gain) >= LEAST_Z else None


def learn_classes(judge: Judge, mixture, rows, patterns, report=None) -> Layered:
    """A network with classes: the mixture itself, or what grows from it."""
    grown = Search.of_classes(judge.train).run_classes(class_network(mixture))
    further = judge.mean(judge.evaluate(grown.parameters) - rows) > 0.0
    mixture = fit_mixture(patterns, len(mixture.weight), judge.rng)
    if not further:
        return class_network(mixture, 1.0, 0.0)
    search = Search.of_classes(patterns, report)
    return search.run_classes(class_network(mixture)).parameters


def classes_above(judge: Judge, independent: Layered, patterns) -> Layered:
    """The same network, under as many classes as other rows support."""
    if judge.is_blind or independent.n_latents < 2:
        return independent
    before, fitted, beam = judge.refit(independent)
    best, n_classes = None, 2
    while n_classes <= MOST_CLASSES:
        start = _with_classes(fitted, beam, n_classes, judge.rng)
        rows = judge.refit(start)[0]
        if judge.z(rows - before) < LEAST_Z:
            break
        best, before, n_classes = start, rows, 2 * n_classes
    if best is None:
        return independent
    beam = Beam(patterns, best.n_latents)
    return climb_truncated(best, beam, tol=TOLERANCE, max_iter=2 * STEPS).state


def _with_classes(parameters, beam, n_classes, rng) -> Layered:
    """Classes of rows by the states of their latents."""
    likeliest = beam.states[beam.starts]
    table = Patterns(likeliest, None, beam.patterns.weights)
    mixture = fit_mixture(table, n_classes, rng)
    return parameters._replace(weight=mixture.weight, prior=mixture.rate)
