"""From quartets to the refined network: which search, which rows, in which order."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from ..._core.criteria import bic
from .._beam import FINE, Beam
from .._expected import maximize
from .._maximum_likelihood import climb_beams, errors_of, expect_block
from .._network import NoisyOrNetwork
from .._parameters.mixture import solve_triplets
from .._posterior import infer_network
from .._statistics.moments import MomentSource, Residual
from .._statistics.patterns import Patterns
from .._statistics.rows import BlockMoments
from .._statistics.subsets import subset_variance
from .coupling import pair_moments, subset_moments
from .dependence import classes_above
from .extend import Discovery
from .quartets import TRIPLES
from .sampling import affordable_steps, scored_rows, thin
from .search import Search, search_independent

# Rows of the first rounds, and of all others: what a structure needs. On random
# networks of 40 latents, 4,000 rows find all.
FIRST_ROWS, MOST_ROWS = 4000, 20_000

# Rounds of births on the first rows.
FIRST_ROUNDS = 2

# Least and largest number of steps of the last EM, and gain per row that ends them.
FINAL_STEPS, FINAL_TOLERANCE = (5, 100), 1e-6

# Steps over all rows, if the search has seen only some of them.
POLISHING_STEPS = 5

# Rows times features that a block looks at in each of these steps: some seconds.
POLISHED_VALUES = 2**24

# Rows of which standard errors are computed.
ERROR_ROWS = 5000

# Least share of common children of a latent and of the one that a quartet revealed.
LEAST_LIKENESS = 0.3


def refine_structure(
    source: BlockMoments,
    patterns: Patterns,
    found: Discovery,
    *,
    dependence: bool,
    rng,
    report=None,
) -> NoisyOrNetwork:
    """Search by likelihood, from what quartets found."""
    # Two threads on small matrices take longer than one.
    with threadpool_limits(1):
        start = NoisyOrNetwork._of(found.prior, found.failure, found.leaks(source))
        rows = thin(patterns, MOST_ROWS, rng)
        few = thin(patterns, FIRST_ROWS, rng)
        first = search_independent(few, start, FIRST_ROUNDS, report)
        best = Search(rows, report).run(first.parameters).parameters
        rivals = [best]
        if dependence:
            above = classes_above(best, rows)
            rivals += [above] if above.n_classes > 1 else []
        rivals = [_polish(_finish(one, rows), source, patterns, rows) for one in rivals]
        best = min(rivals, key=lambda one: network_bic(one, patterns))
    return _ordered(best)


def _finish(parameters, rows) -> NoisyOrNetwork:
    """EM to the end."""
    beam = Beam(rows, parameters.n_latents, FINE)
    steps = affordable_steps(rows, *FINAL_STEPS)
    ascent = climb_beams(parameters, [beam], tol=FINAL_TOLERANCE, max_iter=steps)
    return ascent.state


def network_bic(network: NoisyOrNetwork, patterns: Patterns) -> float:
    """The BIC as users see it, of all rows or of some."""
    rows = scored_rows(patterns, network.structure)
    found = infer_network(network, rows.on, rows.observed)
    share = rows.weights.sum() / patterns.weights.sum()
    return bic(
        rows.weights @ found.log_likelihood / share,
        network.n_parameters,
        patterns.weights.sum(),
    )


def _polish(parameters, source: BlockMoments, patterns, rows) -> NoisyOrNetwork:
    """EM steps over all blocks, wherever they are, if the search saw some rows only."""
    if len(rows.weights) == len(patterns.weights):
        return parameters
    for _ in range(POLISHING_STEPS):
        expected = source.sum(expect_block, parameters, POLISHED_VALUES)
        parameters = maximize(parameters, expected, smooth=True)
    return parameters


def _ordered(parameters: NoisyOrNetwork) -> NoisyOrNetwork:
    """Sort latents by the number of features they switch on."""
    effect = parameters.prior * (1.0 - parameters.failure).sum(axis=1)
    return parameters._keep(np.argsort(-effect, kind="stable"))


def assign_quartets(parameters: NoisyOrNetwork, found: Discovery):
    """The quartet, if any, that revealed each latent, and its depth."""
    depth = np.full(parameters.n_latents, np.inf)
    quartets = np.full((parameters.n_latents, 4), -1, dtype=np.int64)
    structure = parameters.structure
    edges, others = structure.astype(float), (found.failure < 1.0).astype(float)
    common = edges @ others.T
    union = edges.sum(axis=1)[:, None] + others.sum(axis=1) - common
    likeness = common / np.maximum(union, 1.0)
    inside = structure[:, found.quartets].all(axis=2)
    likeness = np.where(inside, likeness, 0.0)
    if len(found.prior):
        best = likeness.argmax(axis=1)
        sure = likeness[np.arange(len(best)), best] > LEAST_LIKENESS
        depth[sure] = found.depth[best[sure]]
        quartets[sure] = found.quartets[best[sure]]
    return depth, quartets


def search_errors(parameters: NoisyOrNetwork, patterns: Patterns, rng):
    """Standard errors by likelihood, from a sample of the rows if there are many."""
    sample = thin(patterns, ERROR_ROWS, rng)
    with threadpool_limits(1):
        beam = Beam(sample, parameters.n_latents, FINE)
        beam.search(parameters._clipped())
        errors = errors_of(parameters._clipped(), beam)
    scale = np.sqrt(sample.weights.sum() / patterns.weights.sum())
    return scale * errors[0], scale * errors[1]


def discovery_errors(source: MomentSource, found: Discovery):
    """Standard errors of what quartets told, by the delta method.

    Medians over the triplets of the quartet, as for the parameters. What was
    subtracted counts as known.
    """
    prior = np.full(len(found.prior), np.nan)
    failure = np.full(found.failure.shape, np.nan)
    pairs = pair_moments(source)
    for latent, quartet in enumerate(found.quartets):
        before = found.select(found.depth < found.depth[latent])
        residual = Residual(source, before.prior, before.failure)
        sets = quartet[np.array(TRIPLES)]
        raw, M = subset_moments(residual, sets, pairs)
        gradient = solve_triplets(M).gradient * (M / raw)[:, None, :]
        errors = np.sqrt(subset_variance(raw, gradient) / source.n_rows)
        prior[latent] = np.median(errors[:, 0])
        for feature in quartet:
            failure[latent, feature] = np.median(errors[:, 1:][sets == feature])
    return prior, failure
