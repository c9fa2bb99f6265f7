"""From proposals to the refined model: which search, which rows, in which order."""

from __future__ import annotations

import numpy as np

from .._statistics.counts import RowSource
from .._statistics.patterns import Patterns
from .crowded import search_crowded
from .evidence import (
    FINAL_TABLE,
    MAX_COUPLED,
    Likelihood,
    affordable_rows,
    largest_component,
)
from .extend import Discovery
from .search import change_edges, first_proposals, prune_latents, search_latents
from .smoothed import Model

# Fewer rows than this are never left to moments alone.
CROWDED_ROWS = 1000

# Share of the union that a latent and its quartet's latent must have in common.
LIKENESS = 0.5


def refine_structure(
    source: RowSource,
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
        return _ordered(search_crowded(source, proposals, pretest, report))
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
    return Model(
        model.prior[order], model.failure[order], model.leak, model.log_likelihood
    )


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
        sure = likeness[np.arange(len(best)), best] >= LIKENESS
        depth[sure], quartets[sure] = (
            found.depth[best[sure]],
            found.quartets[best[sure]],
        )
    order = np.argsort(depth, kind="stable")
    return Discovery(model.prior, model.failure, depth, quartets).select(order)
