"""Fits and comparisons of models on the rows, component by component.

Exact likelihood visits every pair of distinct row and state of the coupled latents.
Where that is too much, a smaller sample of the rows stands for all.
"""

from __future__ import annotations

import numpy as np

from .._inference.inference import infer
from .._likelihood.exact import Parameters
from .._statistics.patterns import Component, Patterns, components
from .smoothed import (
    Model,
    deletion_losses,
    edge_evidence,
    fit_smoothed,
    posterior_correlation,
)

# Coupled latents whose states are enumerated.
MAX_COUPLED = 12

# Rows times states of one EM step of the search: 0.1 s.
SEARCH_TABLE = 2**23

# The same of the final fit and of the likelihood of the result: 1 s and 0.5 GB.
FINAL_TABLE = 2**26

# Fewer rows than this are never sampled.
LEAST_ROWS = 1000

# Rows whose likelihood stands for that of all if more latents are coupled: their sums
# take up to half a second a row.
SCORED_ROWS = 250


def largest_component(structure) -> int:
    """Number of latents of the largest connected part of a structure."""
    return max((len(part.latents) for part in components(structure)), default=0)


def affordable_rows(n_coupled: int, table: int = SEARCH_TABLE) -> int:
    """Rows that an EM step over the states of some coupled latents can afford."""
    return max(LEAST_ROWS, table >> n_coupled)


def scored_rows(patterns: Patterns, structure) -> Patterns:
    """The rows whose likelihood is computed at the end of a fit: all, or a sample."""
    n_coupled = largest_component(structure)
    most = SCORED_ROWS
    if n_coupled <= MAX_COUPLED:
        most = affordable_rows(n_coupled, FINAL_TABLE)
    return _thin(patterns, most, np.random.RandomState(0))


class Likelihood:
    """The rows, as the search sees them.

    patterns: distinct rows
    random_state: for the sample, if one is needed
    most: if there are more distinct rows, a random sample of this many rows is taken
    patterns: distinct rows of the sample
    n_rows: number of rows of the sample
    """

    def __init__(self, patterns, random_state, most=None):
        if most is not None:
            patterns = _thin(patterns, most, random_state)
        self.patterns = patterns
        self.n_rows = float(patterns.weights.sum())
        self._tables: dict[bytes, Patterns] = {}

    def _parts(self, model):
        for part in components(model.structure):
            key = part.features.tobytes()
            if key not in self._tables:
                self._tables[key] = self.patterns.select(part.features)
            yield part, self._tables[key]

    def fit(self, model: Model, **options) -> Model:
        """Fit the parameters; see `fit_smoothed`."""
        result = Parameters(*(np.array(values) for values in model[:3]))
        log_likelihood = 0.0
        for part, table in self._parts(model):
            fitted = fit_smoothed(_restrict(model, part), table, **options)
            result.put(part, fitted)
            log_likelihood += fitted.log_likelihood
        return Model(*result, log_likelihood)

    def posterior_correlation(self, model: Model) -> np.ndarray:
        """Correlation of the posteriors of latents over the rows."""
        correlation = np.zeros((len(model.prior),) * 2)
        for part, table in self._parts(model):
            if len(part.latents) > 1:
                correlation[np.ix_(part.latents, part.latents)] = posterior_correlation(
                    _restrict(model, part), table
                )
        return correlation

    def unlikely_rates(self, model: Model, share: float) -> np.ndarray:
        """How often each feature is on in the least likely rows."""
        on, observed, weights = self.patterns
        known = self.patterns.known
        order = np.argsort(
            infer(*model[:3], on, observed).log_likelihood, kind="stable"
        )
        before = np.cumsum(weights[order]) - weights[order]
        chosen = order[before < share * self.n_rows]
        total = np.maximum(weights[chosen] @ known[chosen], 1e-300)
        return weights[chosen] @ on[chosen] / total

    def deletion_losses(self, model: Model) -> np.ndarray:
        """What each latent is worth; see `deletion_losses`."""
        losses = np.zeros(len(model.prior))
        for part, table in self._parts(model):
            losses[part.latents] = deletion_losses(_restrict(model, part), table)
        return losses

    def edge_evidence(self, model: Model):
        """Slope and information of each failure; see `edge_evidence`.

        Pairs of a latent and a feature of different components have none, unless the
        feature has no parent yet.
        """
        slope, information = np.zeros_like(model.failure), np.zeros_like(model.failure)
        orphans = np.flatnonzero(~model.structure.any(axis=0))
        for part, _ in self._parts(model):
            if not len(part.latents):
                continue
            part = part._replace(features=np.union1d(part.features, orphans))
            table = self.patterns.select(part.features)
            block = np.ix_(part.latents, part.features)
            slope[block], information[block] = edge_evidence(
                _restrict(model, part), table
            )
        return slope, information


def _restrict(model: Model, part: Component) -> Model:
    """The part of a model that a component is."""
    return Model(*Parameters(*model[:3]).restrict(part))


def _thin(patterns, most, rng):
    """A random sample of the rows, if there are too many distinct ones."""
    if len(patterns.weights) <= most:
        return patterns
    share = patterns.weights / patterns.weights.sum()
    drawn = rng.multinomial(most, share).astype(float)
    return patterns._replace(weights=drawn).take(drawn > 0)
