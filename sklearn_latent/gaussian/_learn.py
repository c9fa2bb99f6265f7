"""From rows, or sums over them, to a network: which search, which score, which data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from ._bent_em import bent_network, learn_nonlinear, make_evaluator
from ._conditional import IncompleteData
from ._editing import Units
from ._families import fit_network
from ._gaussian_network import GaussianNetwork
from ._greedy import greedy_search
from ._latent_placement import place_latents
from ._linear_scores import LinearEvaluator, fit_linear
from ._options import SearchOptions, is_linear
from ._orders import order_search
from ._paper_latents import paper_search
from ._rows import Rows, RowSums, distinct_rows
from ._rules import SearchResult, relabelled_history, search_by_price
from ._statistics import GaussianStatistics, canonical_order, standardise
from ._structural_em import LearnedNetwork, StructuralEM


def choose_search(options: SearchOptions) -> SearchOptions:
    """Replace "auto" in `search` and `penalty`.

    Nothing is held out: order search with the extended BIC predicts new rows as well as
    what a hold-out chooses, and does not depend on which rows these are.
    """
    chosen = options.search == "auto"
    linear = is_linear(options)
    search, similarity = options.search, options.similarity
    if chosen:
        search = "order" if linear else "greedy"
    if chosen and not linear:
        # The published similarities miss good candidates where links bend.
        similarity = "C3"
    penalty = options.penalty
    if penalty == "auto":
        # Edges that fit noise would hide what latents explain.
        extended = chosen or (options.max_latents > 0 and not options.published)
        penalty = "ebic" if extended else 1.0
    return replace(options, search=search, penalty=penalty, similarity=similarity)


def learn_network(
    data: Rows | RowSums,
    options: SearchOptions,
    searched: RowSums | None = None,
) -> LearnedNetwork:
    """Learn a network with a search that is already chosen.

    searched: statistics to find a graph by, if others than those of `data`
    """
    options = replace(options, n_distinct=data.n_distinct)
    if not data.n_features:
        # No feature has a value, so that there is nothing to learn.
        nothing = np.zeros((0, 0))
        network = GaussianNetwork(nothing, nothing, np.zeros(0), np.zeros(0))
        return LearnedNetwork(network, [], 0, 0)
    if isinstance(data, RowSums):
        result, evaluator = search_linear((searched or data).moments, options)
        parameters = fit_linear(data.moments, result.adjacency)
        network = GaussianNetwork(result.adjacency, *parameters)
        counts = evaluator.n_evaluated, evaluator.n_considered
        return LearnedNetwork(network, result.history, *counts)
    if options.max_latents == 0 and not data.has_gaps:
        return _in_order(data, options, _learn_nonlinear)
    # A second thread gains nothing on small matrices, and waits for a core that is
    # busy: two fits of 5 latents side by side took 390 s each instead of 26.
    with threadpool_limits(1):
        if is_linear(options):
            return learn_incomplete(data, options)
        return _in_order(data, options, _learn_bent)


def log_likelihood(network: GaussianNetwork, data: Rows | RowSums) -> float:
    """Log-likelihood of all rows; from statistics that of a linear network."""
    if isinstance(data, Rows):
        return data.sum(network.log_likelihood(data.X))
    moments = data.moments
    apart = np.eye(network.n_nodes) - network.weights
    mean = moments.mean @ apart - network.intercept
    variance = (apart * (moments.covariance @ apart)).sum(axis=0)
    noise = network.noise_variance
    terms = np.log(2.0 * np.pi * noise) + (variance + mean**2) / noise
    return float(-0.5 * moments.weight * terms.sum())


def search_linear(
    statistics: GaussianStatistics, options: SearchOptions
) -> tuple[SearchResult, LinearEvaluator]:
    """Search for the structure of a linear network.

    Columns are searched in an order of their own and in standard units, so that neither
    the order that they came in nor their units matter.
    """
    standard, _ = standardise(statistics)
    order = canonical_order(standard)
    standard = standard.reordered(order)
    options = options.restricted(order)
    rules = replace(options.rules(standard.weight), progress=options.progress)
    greedy = options.search == "greedy"
    n_candidates = options.n_candidates if greedy else None
    evaluator = LinearEvaluator(standard, n_candidates=n_candidates)

    def ordered(evaluator, rules, initial):
        n_restarts = options.n_restarts if initial is None else 0
        return order_search(evaluator, rules, initial=initial, n_restarts=n_restarts)

    search = greedy_search if greedy else ordered
    penalty = options.penalties(evaluator.weight)[0]
    result = search_by_price(search, evaluator, penalty, rules, options.initial)
    return result.relabelled(order), evaluator


def learn_incomplete(rows: Rows, options: SearchOptions) -> LearnedNetwork:
    """Learn a linear network from rows with missing values, or with latents."""
    units = Units.of(rows.X, rows.weights)
    scores, weights = distinct_rows(units.scores(rows.X), rows.weights)
    em = StructuralEM(
        IncompleteData.of(scores, weights), options.restricted(units.order)
    )
    if options.max_latents == 0:
        network = em.first().network
    else:
        network = paper_search(em) if options.published else place_latents(em)
    learned = em.finish(network)
    return replace(
        learned,
        network=units.network(learned.network)._with(),
        history=relabelled_history(learned.history, units.order),
    )


def _in_order(data: Rows, options: SearchOptions, learn) -> LearnedNetwork:
    """Learn from columns in an order that depends on values alone.

    Otherwise moves that gain the same would be decided by the order that columns came
    in.
    """
    order = Units.of(data.X, data.weights).order
    own = Rows(data.X[:, order], data.weights)
    learned = learn(own, options.restricted(order))
    network = learned.network
    network = network._over(order, network.node_names[: len(order)])
    history = relabelled_history(learned.history, order)
    return replace(learned, network=network, history=history)


def _learn_bent(data: Rows, options: SearchOptions) -> LearnedNetwork:
    """Learn a network that is not linear from rows with gaps, or with latents.

    A linear network says first what the missing values may be, how many latents there
    may be, and where.
    """
    linear = replace(
        options, link="linear", noise="additive", n_candidates=None, search="greedy"
    )
    start = learn_incomplete(data, linear).network
    X, weights = distinct_rows(data.X, data.weights)
    em = StructuralEM(IncompleteData.of(X, weights), options)
    return learn_nonlinear(X, weights, start, em)


def _learn_nonlinear(data: Rows, options: SearchOptions) -> LearnedNetwork:
    """Greedy search with optimised families, from complete rows."""
    evaluator = make_evaluator(data.X, data.weights, options)
    rules = replace(options.rules(data.weight), progress=options.progress)
    initial = options.initial
    if initial is None and not options.published:
        # Greedy search gets stuck where a search over orders does not.
        initial = _linear_graph(data, options)
    penalty = options.penalties(evaluator.weight)[0]
    result = search_by_price(greedy_search, evaluator, penalty, rules, initial)
    weights, theta, noise_variance, _ = fit_network(
        data.X,
        result.adjacency,
        link=options.link,
        noise=options.noise,
        sample_weight=data.weights,
        centred_parents=True,
    )
    network = bent_network(options, result.adjacency, weights, theta, noise_variance)
    counts = evaluator.n_evaluated, evaluator.n_considered
    return LearnedNetwork(network, result.history, *counts)


def _linear_graph(data: Rows, options: SearchOptions) -> np.ndarray:
    """Graph of a linear network with normal noise, found by order search."""
    moments = GaussianStatistics.of(data.X, data.weights)
    return search_linear(moments, replace(options, search="order"))[0].adjacency
