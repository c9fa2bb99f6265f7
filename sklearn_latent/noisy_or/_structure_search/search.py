"""Search for latents by likelihood, from proposals that moments make.

Proposals come from pairs of features that vote for sets of children, from quartets, and
from the triplets whose dependence a model leaves unexplained. Models are compared by
the Bayesian information criterion (BIC); latents and edges that do not improve it
are dropped.
"""

from __future__ import annotations

import numpy as np

from ..._criteria import bic_price
from .._statistics.moments import MomentSource, Residual
from .coupling import (
    Triplets,
    coupled_triplets,
    discovery_level,
    discovery_threshold,
    pair_moments,
    pair_strength,
)
from .evidence import MAX_COUPLED, Likelihood, largest_component
from .proposals import propose_children
from .smoothed import Model

# Least share of the coupled triplets within a proposal that no other one explains.
NEW_SHARE = 0.2

# A new latent starts here; EM finds its way from any such place.
START = 0.3

# Share of the rows that may show a latent not yet thought of.
UNLIKELY_ROWS = 0.3


def first_proposals(source: MomentSource, others, pretest="auto") -> np.ndarray:
    """Sets of children to start with."""
    n_features = source.n_features
    nothing = Residual(source, np.zeros(0), np.ones((0, n_features)))
    triplets = coupled_triplets(nothing, pair_moments(source), pretest)
    children = propose_children(triplets, n_features)
    return cover(np.concatenate([children, others]), triplets)


def search_latents(
    source: MomentSource, likelihood: Likelihood, children, pretest="auto", report=None
) -> Model:
    """Find latents, their children and their parameters."""
    n_features, n_rows = source.n_features, likelihood.n_rows
    pairs = pair_moments(source)
    leak = 1.0 - np.diag(pairs)
    model = likelihood.fit(Model(np.zeros(0), np.ones((0, n_features)), leak))
    while len(children):
        born = change_edges(_deliver(model, children, likelihood), likelihood)
        better = merge_latents(born, likelihood)
        if better.score(n_rows) <= model.score(n_rows):
            break
        model = better
        if report is not None and report(model):
            break
        residual = Residual(source, model.prior, model.failure)
        triplets = coupled_triplets(residual, pairs, pretest)
        children = cover(propose_children(triplets, n_features), triplets)
    return _explain_rows(model, source, pairs, likelihood)


def _explain_rows(model, source, pairs, likelihood) -> Model:
    """Add latents that unlikely rows suggest, while pairs are explained badly.

    Latents that share all their children propose no sets. The rows that a model finds
    least likely show where they are.
    """
    while len(model.prior) and not _explains_pairs(model, source, pairs, likelihood):
        born = change_edges(_born_from_rows(model, likelihood), likelihood)
        better = merge_latents(born, likelihood)
        if better.score(likelihood.n_rows) <= model.score(likelihood.n_rows):
            break
        model = better
    return model


def _explains_pairs(model, source, pairs, likelihood) -> bool:
    """Whether what the model leaves of all pairs may be noise."""
    if largest_component(model.structure) >= MAX_COUPLED:
        return True
    residual = Residual(source, model.prior, model.failure)
    z = np.abs(pair_strength(residual, pairs)[2])
    # The model is only as good as the rows it has seen.
    z *= np.sqrt(likelihood.n_rows / source.n_rows)
    return discovery_threshold(z, discovery_level(likelihood.n_rows)) == np.inf


def _born_from_rows(model, likelihood) -> Model:
    """Add a latent that may drive whatever is on in the least likely rows."""
    rate = likelihood.unlikely_rates(model, UNLIKELY_ROWS)
    grown = Model(
        np.append(model.prior, UNLIKELY_ROWS),
        np.vstack([model.failure, np.clip(1.0 - 0.8 * rate, 0.05, 0.95)]),
        model.leak,
    )
    return prune_latents(likelihood.fit(grown), likelihood)


def cover(proposals, triplets: Triplets) -> np.ndarray:
    """Choose, in order, the proposals that explain triplets which others do not."""
    open_ = np.ones(len(triplets.sets), dtype=bool)
    chosen = np.zeros(len(proposals), dtype=bool)
    for number, children in enumerate(proposals):
        inside = children[triplets.sets].all(axis=1)
        n_new = int((inside & open_).sum())
        if n_new and n_new >= NEW_SHARE * inside.sum():
            chosen[number] = True
            open_ &= ~inside
    return proposals[chosen]


def _deliver(model: Model, children, likelihood: Likelihood) -> Model:
    """Add latents, fit, and prune those that do not improve the BIC."""
    children = _those_with_room(model, children)
    if not len(children):
        return model
    grown = Model(
        np.concatenate([model.prior, np.full(len(children), START)]),
        np.concatenate([model.failure, np.where(children, START, 1.0)]),
        model.leak,
    )
    return prune_latents(likelihood.fit(grown), likelihood)


def _those_with_room(model, children):
    """The first proposals, as many as can be coupled."""
    while len(children):
        grown = np.concatenate([model.structure, children])
        if largest_component(grown) <= MAX_COUPLED:
            break
        children = children[:-1]
    return children


def merge_latents(model: Model, likelihood: Likelihood) -> Model:
    """Unite latents that go together, as long as BIC improves.

    Latents are independent, so that two whose posteriors are correlated may be halves
    of one.
    """
    while len(model.prior) > 1:
        correlation = np.triu(likelihood.posterior_correlation(model), 1)
        one, two = np.unravel_index(correlation.argmax(), correlation.shape)
        if correlation[one, two] <= 0.1:
            break
        failure = np.array(model.failure)
        failure[one] = np.minimum(failure[one], failure[two])
        united = model._replace(failure=failure).keep(np.arange(len(failure)) != two)
        united = change_edges(likelihood.fit(united), likelihood)
        if united.score(likelihood.n_rows) <= model.score(likelihood.n_rows):
            break
        model = united
    return model


def prune_latents(model: Model, likelihood: Likelihood) -> Model:
    """Drop latents, the least useful first, as long as BIC improves."""
    n_rows = likelihood.n_rows
    while len(model.prior):
        penalty = bic_price(n_rows) * (1 + model.structure.sum(axis=1))
        surplus = likelihood.deletion_losses(model) - penalty
        # Two children are a pair, which has many explanations.
        surplus[model.structure.sum(axis=1) < 3] = -np.inf
        if surplus.min() >= 0:
            break
        keep = np.arange(len(surplus)) != surplus.argmin()
        model = likelihood.fit(model.keep(keep))
    return model


def change_edges(model: Model, likelihood: Likelihood) -> Model:
    """Add and drop edges by their evidence, as long as BIC improves."""
    n_rows = likelihood.n_rows
    while len(model.prior):
        slope, information = likelihood.edge_evidence(model)
        edges = model.structure
        # An edge is worth what the likelihood falls on the way to a failure of 1.
        worth = (1.0 - model.failure) ** 2 * information
        drop = edges & (worth < 2.0 * bic_price(n_rows))
        gain = slope**2 / np.maximum(information, 1e-300)
        add = ~edges & (slope < 0) & (gain > 2.0 * bic_price(n_rows))
        if not (drop | add).any():
            break
        if largest_component(edges | add) > MAX_COUPLED:
            add[:] = False
        failure = np.where(drop, 1.0, np.where(add, START, model.failure))
        better = likelihood.fit(model._replace(failure=failure))
        better = prune_latents(better, likelihood)
        if better.score(n_rows) <= model.score(n_rows):
            break
        model = better
    return model
