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
from .classes import best_start, class_network, fit_mixture
from .sampling import affordable_steps, hold_out, thin
from .search import Search

# Share of the rows that judge, and number of random splits of tables with few rows.
HELD_OUT = 0.25
FEW_ROWS, N_SPLITS = 1000, 4

# Numbers of classes of a mixture grow by this factor until two in a row are worse.
GROWTH = 2.0**0.5
MOST_CLASSES = 256

# Further gain that is thought possible, in units of the gain of the last doubling of
# the classes.
OUTLOOK = 4.0

# Standard errors by which a mixture may be worse than the best, if it is smaller.
NO_WORSE_Z = 1.0

# Least and largest number of EM steps of a model that is to be compared, and gain per
# row that ends them.
STEPS, TOLERANCE = (15, 100), 1e-5

# Standard errors by which classes must improve the likelihood of other rows. One of 40
# tables of independent latents gets classes by chance. (If any improvement were enough,
# half of the tables of 60 rows of independent features would get them.)
LEAST_Z = 2.0

# The same for a mixture in place of latents: that columns depend is known then.
SLIGHT_Z = 0.5


class Judge:
    """Rows to learn from, and others to judge by: several splits if rows are few."""

    def __init__(self, patterns: Patterns, most: int, rng):
        sample = thin(patterns, most, rng)
        few = sample.weights.sum() < FEW_ROWS
        n_splits = N_SPLITS if few else 1
        splits = [hold_out(sample, HELD_OUT, rng) for _ in range(n_splits)]
        self.splits = [
            (train, test)
            for train, test in splits
            if len(train.weights) and len(test.weights)
        ]
        self.weights = np.concatenate(
            [np.zeros(0), *(test.weights for _, test in self.splits)]
        )
        self.rng = rng

    def mean(self, rows) -> float:
        """Mean over the rows that judge, of all splits."""
        return float(self.weights @ rows / self.weights.sum())

    def z(self, rows) -> float:
        """Mean in standard errors."""
        mean = self.mean(rows)
        # Splits share rows: they are worth as much as one.
        n_rows = self.weights.sum() / len(self.splits)
        error = np.sqrt(self.mean((rows - mean) ** 2) / n_rows)
        # Rows that say nothing differ by rounding.
        return mean / max(error, 1e-9)

    def each(self, function) -> np.ndarray:
        """Log-likelihood of the rows that judge: ``function(train, test)`` tells."""
        return np.concatenate([function(*split) for split in self.splits])

    def refit(self, start: Layered) -> np.ndarray:
        """Log-likelihoods after a fit to other rows."""
        return self.each(lambda train, test: evaluate(fit_some(start, train)[0], test))

    def mixtures(self, least=-np.inf):
        """Numbers of classes up to the best, what the rows say of each; the best.

        Nothing if mixtures are clearly not going to reach a mean of `least`.
        """
        tried: list[tuple[int, np.ndarray]] = []
        means: list[float] = []
        size = 2.0
        most = min(MOST_CLASSES, self.splits[0][0].weights.sum() / 3.0)
        while round(size) <= most:
            n_classes = round(size)
            rows = self.each(
                lambda train, test, n=n_classes: fit_mixture(
                    train, n, self.rng
                ).log_likelihood(test)
            )
            tried.append((n_classes, rows))
            means.append(self.mean(rows))
            best = max(means)
            if len(means) - means.index(best) > 2:
                break
            # Gains shrink as classes are added.
            if len(means) > 2 and best + OUTLOOK * (best - means[-3]) < least:
                return [], None
            size *= GROWTH
        return tried, tried[int(np.argmax(means))][1] if tried else None

    def prefers_mixtures(self, independent: Layered) -> bool:
        """Whether some mixture is better than independent latents."""
        if not self.splits:
            return False
        before = self.refit(independent)
        _, best = self.mixtures(self.mean(before))
        least = SLIGHT_Z if independent.n_latents else LEAST_Z
        return best is not None and self.z(best - before) >= least


def fit_some(start: Layered, patterns: Patterns) -> tuple[Layered, Beam]:
    """Some EM steps."""
    beam = Beam(patterns, start.n_latents)
    steps = affordable_steps(patterns, *STEPS)
    ascent = climb_truncated(start, beam, tol=TOLERANCE, max_iter=steps)
    return ascent.state, beam


def evaluate(parameters: Layered, patterns: Patterns) -> np.ndarray:
    """Log-likelihood of rows."""
    beam = Beam(patterns, parameters.n_latents, WIDE)
    beam.search(parameters.clipped())
    return beam.log_likelihood


def learn_classes(judge: Judge, patterns, report=None) -> Layered:
    """A network with classes: the best mixture itself, or what grows from it."""
    tried, best = judge.mixtures()
    # The fewest classes that are as good as the best, as far as rows can tell.
    n_classes, rows = next(
        (n, rows) for n, rows in tried if judge.z(best - rows) < NO_WORSE_Z
    )

    def grow(train, test):
        start = class_network(fit_mixture(train, n_classes, judge.rng))
        return evaluate(Search.of_classes(train).run_classes(start).parameters, test)

    # What grows is the richer model: the mixture must be better to replace it.
    further = judge.z(judge.each(grow) - rows) > -LEAST_Z
    mixture = best_start(patterns, n_classes, judge.rng)
    if not further:
        return class_network(mixture, 1.0, 0.0)
    search = Search.of_classes(patterns, report)
    return search.run_classes(class_network(mixture)).parameters


def classes_above(judge: Judge, independent: Layered, patterns) -> Layered:
    """The same network, under as many classes as other rows support."""
    if not judge.splits or independent.n_latents < 2:
        return independent
    before = judge.refit(independent)
    fitted, beam = fit_some(independent, judge.splits[0][0])
    best, n_classes = None, 2
    while n_classes <= MOST_CLASSES:
        start = _with_classes(fitted, beam, n_classes, judge.rng)
        rows = judge.refit(start)
        if judge.z(rows - before) < LEAST_Z:
            break
        best, before, n_classes = start, rows, 2 * n_classes
    if best is None:
        return independent
    return fit_some(best, patterns)[0]


def _with_classes(parameters, beam, n_classes, rng) -> Layered:
    """Classes of rows by the states of their latents."""
    likeliest = beam.likeliest
    table = Patterns(likeliest, None, beam.patterns.weights)
    mixture = fit_mixture(table, n_classes, rng)
    return parameters._replace(weight=mixture.weight, prior=mixture.rate)
