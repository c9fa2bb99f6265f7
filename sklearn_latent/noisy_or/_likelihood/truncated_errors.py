"""Standard errors from the truncated posteriors of rows."""

from __future__ import annotations

import numpy as np

from .beam import Beam
from .layered import Layered
from .likelihood import errors_of

# Parameters whose information is inverted together; of more, each is taken as if the
# others were known.
MOST_TOGETHER = 2500

# Elements of the largest temporary array: 64 MB.
CHUNK_ELEMENTS = 1 << 23


def truncated_errors(parameters: Layered, beam: Beam):
    """Standard errors of priors and failures; NaN where there is no edge.

    As `standard_errors`, with the posteriors of a beam that holds the parameters. Of
    latents under classes, those of P(latent on).
    """
    latent, feature = np.nonzero(parameters.structure)
    prior = parameters.marginal
    values = np.concatenate(
        [prior, parameters.failure[latent, feature], parameters.leak]
    )
    together = len(values) <= min(MOST_TOGETHER, beam.patterns.weights.sum() / 2)
    slope = np.zeros(len(values))
    information = np.zeros((len(values),) * 2 if together else len(values))
    for scores, weights in _scores(parameters, beam, latent, feature):
        slope += weights @ scores
        if together:
            information += scores.T @ (scores * weights[:, np.newaxis])
        else:
            information += weights @ scores**2
    errors = errors_of(values, slope, information)
    failure = np.full(parameters.failure.shape, np.nan)
    failure[latent, feature] = errors[len(prior) : len(prior) + len(latent)]
    return errors[: len(prior)], failure


def _scores(parameters, beam, latent, feature):
    """Yield the scores of rows and their weights, some rows at a time."""
    on, observed, weights, _ = beam.patterns
    prior, failure = parameters.marginal, parameters.failure[latent, feature]
    bounds = np.append(beam.starts, len(beam.row))
    n_columns = len(prior) + len(latent) + on.shape[1]
    per_row = -(-len(beam.row) // max(1, beam.n_rows))
    step = max(1, CHUNK_ELEMENTS // (2 * n_columns * per_row))
    for first in range(0, beam.n_rows, step):
        last = min(first + step, beam.n_rows)
        part = slice(bounds[first], bounds[last])
        starts = bounds[first:last] - bounds[first]
        states = beam.states[part].astype(np.float64)
        share = beam.share[part, np.newaxis]
        fired = 1.0 / (1.0 - beam.off_probability(states).T)
        fired *= on[beam.row[part]]
        of_edges = np.add.reduceat(
            share * states[:, latent] * fired[:, feature], starts, axis=0
        )
        of_leaks = np.add.reduceat(share * fired, starts, axis=0)
        latent_on = np.add.reduceat(share * states, starts, axis=0)
        known = np.ones(of_leaks.shape) if observed is None else observed[first:last]
        scores = np.hstack(
            [
                (latent_on - prior) / (prior * (1.0 - prior)),
                (latent_on[:, latent] * known[:, feature] - of_edges) / failure,
                (of_leaks - known) / (1.0 - parameters.leak),
            ]
        )
        yield scores, weights[first:last]
