"""Likelihood with failures that learn from each other, and what it says of structures.

Maximum likelihood sets many a failure to 0 if rows are few: of 25 rows with a cause
that fails one time in ten, none may show the failure. So the failures of a network are
taken as draws from one beta distribution, whose parameters are estimated from them
(empirical Bayes). On the 8 x 8 images this recovers, from the true structure, 6.3 of 8
sources at 100 rows where maximum likelihood recovers 1.0, and 7.7 at 500 rows where it
recovers 7.1; at thousands of rows the two agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._criteria import bic_score
from .._likelihood.exact import (
    Parameters,
    StateTable,
    climb_exact,
    clip_parameters,
    configurations,
    posteriors,
)
from .._statistics.patterns import Patterns

# Pseudo-rows of the beta distribution of failures: never more certain than this.
MOST_PSEUDO_ROWS = 100.0


class Model(NamedTuple):
    """Parameters of a network, and its log-likelihood where known."""

    prior: np.ndarray
    failure: np.ndarray
    leak: np.ndarray
    log_likelihood: float = -np.inf

    @property
    def structure(self) -> np.ndarray:
        """Where there is an edge."""
        return self.failure < 1.0

    @property
    def n_parameters(self) -> int:
        """Priors and edges; the leaks are the same number in every model."""
        return len(self.prior) + int(self.structure.sum())

    def score(self, n_rows: float) -> float:
        """Score of the BIC, up to a constant; higher is better."""
        return bic_score(self.log_likelihood, self.n_parameters, n_rows)

    def keep(self, latents) -> Model:
        """Drop all other latents."""
        return Model(self.prior[latents], self.failure[latents], self.leak)


def _pseudo_rows(failure, statistics):
    """Beta distribution of the failures, as failed and successful pseudo-rows.

    Method of moments: what the failures vary more than their sampling noise.
    """
    edges = failure < 1.0
    values, trials = failure[edges], np.maximum(statistics.trials[edges], 1.0)
    if len(values) < 2:
        return 1.0, 1.0
    mean = np.average(values, weights=trials)
    noise = np.average(values * (1.0 - values) / trials, weights=trials)
    spread = np.average((values - mean) ** 2, weights=trials) - noise
    certain = mean * (1.0 - mean)
    total = certain / max(spread, certain / (1.0 + MOST_PSEUDO_ROWS)) - 1.0
    total = np.clip(total, 1.0, MOST_PSEUDO_ROWS)
    return mean * total, (1.0 - mean) * total


def fit_smoothed(model: Model, patterns: Patterns, *, max_iter=50, tol=1e-5) -> Model:
    """EM with smoothed failures; `tol` is per row."""
    start = Parameters(model.prior, model.failure, model.leak)
    ascent = climb_exact(start, patterns, tol=tol, max_iter=max_iter, smooth=_smooth)
    prior, failure, leak = ascent.state
    return Model(prior, failure, leak, ascent.objective)


def _smooth(parameters, statistics):
    """Add pseudo-rows to the statistics."""
    failure = parameters.failure
    failed, fired = _pseudo_rows(failure, statistics)
    return statistics._replace(
        trials=statistics.trials + failed + fired,
        # The M-step multiplies by 1 - failure, which leaves the pseudo-rows.
        causes=statistics.causes + fired / np.maximum(1.0 - failure, 1e-12),
    )


def _tabulate(model: Model):
    """Parameters of a model, log-probabilities of its states, and the states."""
    parameters = Parameters(*clip_parameters(*model[:3]))
    states = configurations(len(model.prior)).astype(np.float64)
    return parameters, StateTable.of(*parameters), states


def deletion_losses(model: Model, patterns: Patterns) -> np.ndarray:
    """Log-likelihood that each latent adds, all other parameters fixed.

    Without a latent, a row has the probability that it has together with the latent
    off, divided by P(latent off): one pass serves all latents.
    """
    (prior, _, _), table, states = _tabulate(model)
    losses = np.zeros(len(prior))
    for rows, posterior, _ in posteriors(table, patterns.on, patterns.observed):
        share = np.maximum(posterior @ (1.0 - states), 1e-300)
        losses -= patterns.weights[rows] @ np.log(share)
    return losses + patterns.weights.sum() * np.log1p(-prior)


def posterior_correlation(model: Model, patterns: Patterns) -> np.ndarray:
    """Correlation of the posteriors of latents over the rows."""
    _, table, states = _tabulate(model)
    latent_on = np.empty((len(patterns.on), len(model.prior)))
    for rows, posterior, _ in posteriors(table, patterns.on, patterns.observed):
        latent_on[rows] = posterior @ states
    weights = patterns.weights / patterns.weights.sum()
    centred = latent_on - weights @ latent_on
    covariance = centred.T @ (centred * weights[:, None])
    deviation = np.sqrt(np.diag(covariance))
    scale = np.where(deviation > 1e-9, deviation, np.inf)
    return covariance / scale[:, None] / scale


def edge_evidence(model: Model, patterns: Patterns):
    """Slope and information of the likelihood in every failure, of non-edges too."""
    (_, failure, _), table, states = _tabulate(model)
    odds = np.exp(-table.on)
    slope, information = np.zeros_like(failure), np.zeros_like(failure)
    for rows, posterior, _ in posteriors(
        table, patterns.on, patterns.observed, row_elements=4 * failure.size
    ):
        on, weights = patterns.on[rows], patterns.weights[rows]
        known = None if patterns.observed is None else patterns.observed[rows]
        for latent, state in enumerate(states.T):
            fired = (posterior * state) @ odds * on
            tried = (posterior @ state)[:, None] * (1.0 if known is None else known)
            score = (tried - fired) / failure[latent]
            slope[latent] += weights @ score
            information[latent] += weights @ score**2
    return slope, information
