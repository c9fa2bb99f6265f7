"""From proposals to the refined model: which search, which rows, in which order.

Where too many latents are coupled for exact likelihood, moments have to do: proposals
are fitted by the method of moments for known structures. Further rounds, with proposals
from the triplets that are left unexplained, found nothing more.
"""

from __future__ import annotations

import numpy as np

from .._likelihood.exact import Parameters
from .._likelihood.likelihood import standard_errors
from .._network import NoisyOrNetwork
from .._numerics import EPSILON
from .._parameters.learn import learn_parameters, parameter_errors
from .._parameters.mixture import solve_triplets
from .._parameters.plan import Plan, Statistics
from .._statistics.moments import MomentSource, Residual
from .._statistics.patterns import Patterns
from .._statistics.rows import BlockMoments
from .._statistics.subsets import subset_variance
from .coupling import pair_moments, subset_moments
from .evidence import (
    FINAL_TABLE,
    MAX_COUPLED,
    Likelihood,
    affordable_rows,
    largest_component,
)
from .extend import Discovery
from .quartets import TRIPLES
from .search import (
    change_edges,
    first_proposals,
    prune_latents,
    search_latents,
)
from .smoothed import Model

# Fewer rows than this are never left to moments alone.
CROWDED_ROWS = 1000


def refine_structure(
    source: BlockMoments,
    patterns: Patterns,
    found: Discovery,
    pretest,
    rng,
    report=None,
) -> Model:
    """Search by likelihood on some rows, then fit on as many as possible."""
    proposals = first_proposals(source, found.failure < 1.0, pretest)
    n_coupled = largest_component(proposals)
    # With few rows the surplus is most likely noise, and moments are too poor anyway.
    if n_coupled > MAX_COUPLED and source.n_rows >= CROWDED_ROWS:
        return _ordered(_fit_crowded(proposals, source))
    most = affordable_rows(min(n_coupled, MAX_COUPLED))
    likelihood = Likelihood(patterns, rng, most)
    model = search_latents(source, likelihood, proposals, pretest, report)
    most = affordable_rows(largest_component(model.structure), FINAL_TABLE)
    final = Likelihood(patterns, rng, most)
    model = final.fit(model, tol=1e-7, max_iter=50)
    if final.n_rows > likelihood.n_rows:
        model = change_edges(prune_latents(model, final), final)
    return _ordered(model)


def _ordered(model: Model) -> Model:
    """Sort latents by the number of features they switch on."""
    effect = model.prior * (1.0 - model.failure).sum(axis=1)
    order = np.argsort(-effect, kind="stable")
    return model._replace(prior=model.prior[order], failure=model.failure[order])


def assign_quartets(model: Model, found: Discovery) -> Discovery:
    """Tell which quartet, if any, revealed each latent of a refined model."""
    depth = np.full(len(model.prior), np.inf)
    quartets = np.full((len(model.prior), 4), -1, dtype=np.int64)
    edges, others = model.structure.astype(float), (found.failure < 1.0).astype(float)
    common = edges @ others.T
    union = edges.sum(axis=1)[:, None] + others.sum(axis=1) - common
    likeness = common / np.maximum(union, 1.0)
    inside = model.structure[:, found.quartets].all(axis=2)
    likeness = np.where(inside, likeness, 0.0)
    if len(found.prior):
        best = likeness.argmax(axis=1)
        sure = likeness[np.arange(len(best)), best] > 0.0
        depth[sure] = found.depth[best[sure]]
        quartets[sure] = found.quartets[best[sure]]
    order = np.argsort(depth, kind="stable")
    return Discovery(model.prior, model.failure, depth, quartets).select(order)


def _fit_crowded(children, source: BlockMoments) -> Model:
    """Parameters by moments, without edges of no effect and latents of too few."""
    prior, failure, leak, _ = learn_parameters(*_count(children, source))
    failure = np.where(failure > 1.0 - 2.0 * EPSILON, 1.0, failure)
    useful = (failure < 1.0).sum(axis=1) >= 3
    return Model(prior[useful], failure[useful], leak)


def search_errors(
    model: Model, found: Discovery, source: BlockMoments, patterns: Patterns, rng
):
    """Standard errors by likelihood, from a sample of the rows if there are many.

    If too many latents are coupled, by moments.
    """
    structure = found.failure < 1.0
    parameters = Parameters(found.prior, found.failure, model.leak)
    n_coupled = largest_component(structure)
    if n_coupled > MAX_COUPLED:
        plan, statistics = _count(structure, source)
        return parameter_errors(plan, statistics, NoisyOrNetwork(*parameters))
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


def _count(structure, source: BlockMoments):
    plan = Plan.of(structure)
    return plan, source.sum(Statistics.of, plan)
