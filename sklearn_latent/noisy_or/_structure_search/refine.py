"""From quartets to the refined network: which search, which rows, in which order."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from .._beam import FINE, Beam
from .._expected import maximize
from .._maximum_likelihood import climb_beams, errors_of, expect_block
from .._network import NoisyOrNetwork
from .._parameters.mixture import solve_triplets
from .._statistics.moments import MomentSource, Residual
from .._statistics.patterns import Patterns
from .._statistics.rows import BlockMoments
from .._statistics.subsets import subset_variance
from .classes import column_rates
from .coupling import pair_moments, subset_moments
from .dependence import Judge, classes_above, learn_choice
from .extend import Discovery, Thresholds
from .quartets import TRIPLES
from .sampling import affordable_steps, thin
from .search import MOST_REOPENED, Fitted, Search

# Rows of the first rounds, and of all others: what a structure needs. On random
# networks of 40 latents, 4,000 rows find all.
FIRST_ROWS, MOST_ROWS = 4000, 20_000

# Rows that choose the number of classes.
CLASS_ROWS = 10_000

# Rounds of births before latents are compared with classes.
FIRST_ROUNDS = 2

# Random starts of small networks, with so many more latents than were found, and their
# priors. (Of 60 tables of independent latents that share features, 35 get classes
# without them, and 22 with them.)
MORE_LATENTS, RANDOM_PRIOR = (0, 0, 1, 1, 2, 2), 0.25

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
    opposite: Thresholds | None = None,
) -> NoisyOrNetwork | None:
    """Search by likelihood, from what quartets found.

    None if independent latents do not explain the columns, but their opposite: an and
    of causes is an or of their absence. It is tried with the thresholds `opposite`.
    """
    # Two threads on small matrices take longer than one.
    with threadpool_limits(1):
        start = NoisyOrNetwork._of(found.prior, found.failure, found.leaks(source))
        rows = thin(patterns, MOST_ROWS, rng)
        best = _search(start, patterns, rows, dependence, rng, report, opposite)
        if best is None:
            return None
        if best.n_classes == 1:
            beam = Beam(rows, best.n_latents, FINE)
            steps = affordable_steps(rows, *FINAL_STEPS)
            best = climb_beams(best, [beam], tol=FINAL_TOLERANCE, max_iter=steps).state
        if len(rows.weights) < len(patterns.weights):
            best = _polish(best, source)
    return _ordered(best)


def _search(start, patterns, rows, dependence, rng, report, opposite):
    """Independent latents, or classes, or both; None: the opposite of the columns."""
    few = thin(patterns, FIRST_ROWS, rng)
    first = Search(few, report).run(start, FIRST_ROUNDS).parameters
    # The same for everybody, so that the same rows give the same network: only which
    # rows are looked at, if they are many, is a matter of chance.
    fixed = np.random.RandomState(0)
    judge = Judge(patterns, FIRST_ROWS, fixed)
    classes = dependence and judge.prefers_mixtures(first)
    if classes:
        first = _search_again(first, few, report)
        # These networks have seen the rows that judge.
        classes = judge.prefers_mixtures(first, least=0.0)
    if classes:
        if opposite is not None and judge.prefers_opposite(opposite):
            return None
        if len(patterns.weights) > FIRST_ROWS:
            judge = Judge(patterns, CLASS_ROWS, fixed)
        return learn_choice(judge.choose(), rows, fixed, report)
    best = Search(rows, report).run(first).parameters
    return classes_above(judge, best, rows) if dependence else best


def _search_again(found, few, report) -> NoisyOrNetwork:
    """Independent latents once more: to the end, and from random starts.

    Births of latents one by one get stuck where latents share most of their features.
    """
    searches: list[Fitted] = [Search(few, report).run(found)]
    n_latents, n_features = searches[0].parameters.failure.shape
    rng, leak = np.random.RandomState(0), 0.2 * column_rates(few)
    for size in (n_latents + more for more in MORE_LATENTS if n_latents):
        if size * n_features <= MOST_REOPENED:
            failure = rng.uniform(0.2, 0.8, (size, n_features))
            start = NoisyOrNetwork._of(np.full(size, RANDOM_PRIOR), failure, leak)
            searches.append(Search(few, report).run(start, 0))
    return max(searches, key=lambda search: search.score).parameters


def _polish(parameters, source: BlockMoments) -> NoisyOrNetwork:
    """EM steps over all blocks, wherever they are."""
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
