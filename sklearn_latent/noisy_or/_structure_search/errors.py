"""Standard errors of the parameters of discovered latents."""

from __future__ import annotations

import numpy as np

from .._likelihood.exact import Parameters
from .._likelihood.likelihood import standard_errors
from .._parameters.mixture import solve_triplets
from .._statistics.counts import MomentSource, Residual, RowSource
from .._statistics.patterns import Patterns
from .._statistics.subsets import subset_variance
from .coupling import pair_moments, triplet_moments
from .crowded import crowded_errors
from .evidence import MAX_COUPLED, Likelihood, affordable_rows, largest_component
from .extend import Discovery
from .quartets import TRIPLES
from .smoothed import Model


def search_errors(
    model: Model, found: Discovery, source: RowSource, patterns: Patterns, rng
):
    """Standard errors by likelihood, from a sample of the rows if there are many.

    If too many latents are coupled, by moments.
    """
    structure = found.failure < 1.0
    parameters = Parameters(found.prior, found.failure, model.leak)
    n_coupled = largest_component(structure)
    if n_coupled > MAX_COUPLED:
        return crowded_errors(parameters, source)
    sample = Likelihood(patterns, rng, affordable_rows(n_coupled))
    errors = standard_errors(parameters, structure, sample.patterns)
    scale = np.sqrt(sample.n_rows / patterns.weights.sum())
    return scale * errors.prior, scale * errors.failure


def discovery_errors(source: MomentSource, found: Discovery):
    """Standard errors of what quartets told, by the delta method.

    Medians over the triplets of the quartet, as for the parameters. What was
    subtracted counts as known.
    """
    prior = np.full(len(found.prior), np.nan)
    failure = np.full(found.failure.shape, np.nan)
    if not len(found.prior):
        return prior, failure
    pairs = pair_moments(source)
    for latent, quartet in enumerate(found.quartets):
        before = found.select(found.depth < found.depth[latent])
        residual = Residual(source, before.prior, before.failure)
        sets = quartet[np.array(TRIPLES)]
        raw, M = triplet_moments(residual, sets, pairs)
        gradient = solve_triplets(M).gradient * (M / raw)[:, None, :]
        errors = np.sqrt(subset_variance(raw, gradient) / source.n_rows)
        prior[latent] = np.median(errors[:, 0])
        for feature in quartet:
            failure[latent, feature] = np.median(errors[:, 1:][sets == feature])
    return prior, failure
