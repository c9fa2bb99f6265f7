"""Latents that depend on each other: hidden classes above them.

Models compete on rows that they have not seen: independent latents; the same latents
under classes, each with its own priors; a mixture of Bernoulli distributions, whose
classes are latents that drive the features of their rows; and the network that grows
from it by EM and further latents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._beam import WIDE, Beam
from .._maximum_likelihood import climb_beams
from .._network import NoisyOrNetwork
from .._statistics.patterns import Patterns
from .classes import Mixture, best_start, class_network, fit_mixture
from .polarity import learn_opposite
from .sampling import affordable_steps, folds, thin
from .search import Search

# Parts of the rows, each of which judges once. Of large tables only the first does.
N_FOLDS = 4

# Distinct rows times features of a table that is not large: some seconds.
FEW_VALUES = 2**15

# Numbers of classes of a mixture grow by this factor until two in a row are worse.
GROWTH = 2.0**0.5
MOST_CLASSES = 256

# Further gain that is thought possible, in units of the gain of the last doubling of
# the classes.
OUTLOOK = 4.0

# Least and largest number of EM steps of a model that is to be compared, and gain per
# row that ends them.
STEPS, TOLERANCE = (15, 100), 1e-5

# Standard errors by which classes above latents must improve the likelihood of other
# rows. One of 40 tables of independent latents gets them by chance.
LEAST_Z = 2.0

# The same for the best mixture of columns that have no latent. (Of 120 tables of
# independent features, of 60 to 200 rows, 9 exceed 2 and none 2.6.)
NO_LATENTS_Z = 3.0

# The same for classes in place of latents: that columns depend is known then.
SLIGHT_Z = 0.5


class Tried(NamedTuple):
    """Mixtures with the same number of classes, fitted to each split.

    rows: log-likelihood of the rows that judge
    """

    n_classes: int
    mixtures: list[Mixture]
    rows: np.ndarray


class Choice(NamedTuple):
    """A number of classes, and what is made of the mixture."""

    n_classes: int
    make: Callable[..., NoisyOrNetwork]


class Judge:
    """Rows to learn from, and others to judge by: several splits if rows are few."""

    def __init__(self, patterns: Patterns, most: int, rng):
        sample = _without_copies(thin(patterns, most, rng))
        self.few = sample.on.size <= FEW_VALUES
        splits = [
            (train, test)
            for train, test in folds(sample, N_FOLDS, rng)
            if len(train.weights) and len(test.weights)
        ]
        self.splits = splits if self.few else splits[:1]
        self.weights = np.concatenate(
            [np.zeros(0), *(test.weights for _, test in self.splits)]
        )
        self.rng = rng
        self.tried: list[Tried] = []

    def mean(self, rows) -> float:
        """Mean over the rows that judge, of all splits."""
        return float(self.weights @ rows / self.weights.sum())

    def z(self, rows) -> float:
        """Mean in standard errors."""
        mean = self.mean(rows)
        error = np.sqrt(self.mean((rows - mean) ** 2) / self.weights.sum())
        # Rows that say nothing differ by rounding.
        return mean / max(error, 1e-9)

    def refit(self, start: NoisyOrNetwork) -> np.ndarray:
        """Log-likelihoods after a fit to other rows."""
        return np.concatenate(
            [evaluate(fit_some(start, train)[0], test) for train, test in self.splits]
        )

    def try_mixtures(self, least=-np.inf) -> None:
        """Mixtures with more and more classes, until two in a row are worse.

        Or until they are clearly not going to reach a mean of `least`.
        """
        means: list[float] = []
        size = 2.0
        most = min(MOST_CLASSES, self.splits[0][0].weights.sum() / 3.0)
        while round(size) <= most:
            self.tried.append(self._try(round(size)))
            means.append(self.mean(self.tried[-1].rows))
            best = max(means)
            # Gains shrink as classes are added.
            hopeless = len(means) > 2 and best + OUTLOOK * (best - means[-3]) < least
            if hopeless or len(means) - means.index(best) > 2:
                break
            size *= GROWTH

    @property
    def best(self) -> Tried:
        """The best mixtures so far."""
        return max(self.tried, key=lambda tried: self.mean(tried.rows))

    def _try(self, n_classes) -> Tried:
        """Fit a mixture to each split."""
        mixtures = [fit_mixture(train, n_classes, self.rng) for train, _ in self.splits]
        return Tried(n_classes, mixtures, self.each(mixtures, Mixture.log_likelihood))

    def each(self, models, function) -> np.ndarray:
        """Log-likelihoods of the rows that judge, by the models of the splits."""
        pairs = zip(models, self.splits, strict=True)
        return np.concatenate([function(model, test) for model, (_, test) in pairs])

    def prefers_mixtures(self, independent: NoisyOrNetwork, least=SLIGHT_Z) -> bool:
        """Whether some mixture is better than independent latents."""
        if not self.splits:
            return False
        before = self.refit(independent)
        if not independent.n_latents:
            # Smoothed like mixtures, which would win by that alone.
            before, least = self._try(1).rows, NO_LATENTS_Z
        if not self.tried:
            self.try_mixtures(self.mean(before))
        return bool(self.tried) and self.z(self.best.rows - before) >= least

    def prefers_opposite(self, thresholds) -> bool:
        """Whether independent latents of the opposite of all columns beat mixtures."""
        opposite = np.concatenate(
            [
                evaluate(learn_opposite(train, thresholds, self.rng), test.opposite)
                for train, test in self.splits
            ]
        )
        return self.mean(opposite - self.best.rows) > 0.0

    def choose(self) -> Choice:
        """The best mixture, or what grows from it, if that is better."""
        if not self.tried:
            self.try_mixtures()
        # The fewest classes that are about as good as the best.
        top = self.best.rows
        n_classes, mixtures, rows = next(
            tried for tried in self.tried if self.z(top - tried.rows) < SLIGHT_Z
        )
        models = [
            grow(mixture, train)
            for mixture, (train, _) in zip(mixtures, self.splits, strict=True)
        ]
        grown = self.each(models, evaluate)
        if self.mean(grown - rows) > 0.0:
            return Choice(n_classes, grow)
        return Choice(n_classes, keep)


def _without_copies(patterns: Patterns) -> Patterns:
    """As many rows as if none came twice, where all did.

    Classes would learn rows by heart and find their copies among those that judge.
    """
    copies = max(1.0, patterns.copies.min(initial=np.inf))
    squares = None if patterns.squares is None else patterns.squares / copies
    return patterns._replace(weights=patterns.weights / copies, squares=squares)


def keep(mixture: Mixture, patterns, report=None) -> NoisyOrNetwork:
    """The network that a mixture is."""
    return class_network(mixture, 1.0, 0.0)


def grow(mixture: Mixture, patterns, report=None) -> NoisyOrNetwork:
    """Let EM improve that network, and add latents."""
    search = Search.of_classes(patterns, report)
    return search.run_classes(class_network(mixture)).parameters


def fit_some(start: NoisyOrNetwork, patterns: Patterns) -> tuple[NoisyOrNetwork, Beam]:
    """Some EM steps."""
    beam = Beam(patterns, start.n_latents)
    steps = affordable_steps(patterns, *STEPS)
    ascent = climb_beams(start, [beam], tol=TOLERANCE, max_iter=steps)
    return ascent.state, beam


def evaluate(parameters: NoisyOrNetwork, patterns: Patterns) -> np.ndarray:
    """Log-likelihood of rows."""
    beam = Beam(patterns, parameters.n_latents, WIDE)
    beam.search(parameters._clipped())
    return beam.log_likelihood


def learn_choice(choice: Choice, patterns, rng, report=None) -> NoisyOrNetwork:
    """Learn from all rows what some of them chose."""
    mixture = best_start(patterns, choice.n_classes, rng)
    return choice.make(mixture, patterns, report)


def classes_above(
    judge: Judge, independent: NoisyOrNetwork, patterns
) -> NoisyOrNetwork:
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


def _with_classes(parameters, beam, n_classes, rng) -> NoisyOrNetwork:
    """Classes of rows by the states of their latents."""
    likeliest = beam.likeliest
    table = Patterns(likeliest, None, beam.patterns.weights)
    mixture = fit_mixture(table, n_classes, rng)
    return parameters._with(class_weight=mixture.weight, class_prior=mixture.rate)
