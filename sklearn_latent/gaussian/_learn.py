"""From rows, or sums over them, to a network: which search, which score, which data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from ._atom_margins import ConstantMargin
from ._conditional import IncompleteData
from ._families import fit_network
from ._greedy import greedy_search
from ._latents.growth import paper_search
from ._latents.placement import canonical, place_latents
from ._linear_scores import LinearEvaluator, fit_linear
from ._margin_kinds import Margin, NormalMargin
from ._missing.nonlinear_em import bent_network, learn_nonlinear, make_evaluator
from ._missing.structural_em import LearnedNetwork, StructuralEM
from ._network import GaussianNetwork
from ._options import SearchOptions, is_linear
from ._orders import grow_shrink_trees, order_search
from ._rows import Rows, RowSums, column_order, distinct_rows
from ._rules import MoveEvaluator, SearchResult, relabelled_history, search_by_price
from ._statistics import GaussianStatistics, canonical_order, standardise
from ._table_margins import Margins, atom_columns


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
        return LearnedNetwork(network, 0.0, [], 0, 0)
    if isinstance(data, Rows):
        return _learn_rows(data, options)
    result, evaluator = search_linear((searched or data).moments, options)
    parameters = fit_linear(data.moments, result.adjacency)
    network = GaussianNetwork(result.adjacency, *parameters)
    return _learned(network, result, evaluator)


def _learn_rows(data: Rows, options: SearchOptions) -> LearnedNetwork:
    """Learn from rows, their columns in an order that depends on values alone.

    Otherwise moves that gain the same would be decided by the order that columns came
    in.
    """
    order = column_order(data.X, data.weights)
    own = Rows(data.X[:, order], data.weights)
    options = options.restricted(order)
    if options.max_latents > 0 or data.has_gaps:
        # A second thread gains nothing on small matrices, and waits for a core that is
        # busy: two fits of 5 latents side by side took 390 s each instead of 26.
        with threadpool_limits(1):
            learned = learn_incomplete(own.X, own.weights, options)
    else:
        result, evaluator, network = _learn_nonlinear(own, options)
        learned = _learned(network, result, evaluator)
    names = learned.network.node_names[: len(order)]
    network = extend_network(learned.network, order, names)
    history = relabelled_history(learned.history, order)
    return replace(learned, network=network, history=history)


def _learned(
    network: GaussianNetwork, result: SearchResult, evaluator: MoveEvaluator
) -> LearnedNetwork:
    """A network of complete rows and how it was found."""
    return LearnedNetwork(
        network,
        result.score,
        result.history,
        evaluator.n_evaluated,
        evaluator.n_considered,
    )


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
    standard, scale = standardise(statistics)
    order = canonical_order(standard)
    standard = standard.reordered(order)
    rules = options.rules(standard.weight).reordered(order)
    initial = None if options.initial is None else options.initial[np.ix_(order, order)]
    greedy = options.search == "greedy"
    n_candidates = options.n_candidates if greedy else None
    evaluator = LinearEvaluator(standard, n_candidates=n_candidates)

    trees = None

    def ordered(evaluator, rules, initial):
        nonlocal trees
        trees = trees or grow_shrink_trees(evaluator, rules)
        n_restarts = options.n_restarts if initial is None else 0
        return order_search(
            evaluator, rules, initial=initial, n_restarts=n_restarts, trees=trees
        )

    search = greedy_search if greedy else ordered
    penalty = options.penalties(evaluator.weight)[0]
    rules = replace(rules, progress=options.progress)
    result = search_by_price(search, evaluator, penalty, rules, initial)
    result = result.relabelled(order)
    result.score -= standard.weight * float(np.log(scale).sum())
    return result, evaluator


def _linear_graph(data: Rows, options: SearchOptions) -> np.ndarray:
    """Graph of a linear network with normal noise, found by order search."""
    moments = GaussianStatistics.of(data.X, data.weights)
    return search_linear(moments, replace(options, search="order"))[0].adjacency


def _learn_nonlinear(data: Rows, options: SearchOptions):
    """Greedy search with optimised families; result, evaluator, network."""
    evaluator = make_evaluator(data.X, data.weights, options)
    rules = options.rules(data.weight)
    initial = options.initial
    if initial is None and not options.published:
        # Greedy search gets stuck where a search over orders does not.
        initial = _linear_graph(data, options)
    penalty = options.penalties(evaluator.weight)[0]
    rules = replace(rules, progress=options.progress)
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
    return result, evaluator, network


def learn_incomplete(X, sample_weight, options: SearchOptions) -> LearnedNetwork:
    """Learn a network from data with missing values, or with latents."""
    X, sample_weight = distinct_rows(X, sample_weight)
    data = IncompleteData.of(X, sample_weight)
    if is_linear(options):
        return _learn_linear(data, options)
    # A linear network says first what the missing values may be, how many latents
    # there may be, and where.
    linear = replace(options, link="linear", noise="additive", n_candidates=None)
    start = _learn_linear(data, replace(linear, search="greedy")).network
    return learn_nonlinear(X, sample_weight, start, StructuralEM(data, options))


def _learn_linear(data: IncompleteData, options: SearchOptions) -> LearnedNetwork:
    """Structural EM for linear networks, with latents if these are allowed."""
    em = StructuralEM(data, options)
    if options.max_latents == 0:
        return em.finish(em.first())
    state = paper_search(em) if options.published else place_latents(em)
    return em.finish(canonical(em, state))


def restrict_network(network: GaussianNetwork, seen) -> GaussianNetwork:
    """Network without latents over the features that are seen; others have no edges."""
    if seen.all():
        return network
    both = np.ix_(seen, seen)
    margins = None
    if network.margins is not None:
        margins = [network.margins[place] for place in np.flatnonzero(seen)]
    return GaussianNetwork(
        network.adjacency[both],
        network.weights[both],
        network.intercept[seen],
        network.noise_variance[seen],
        margins=margins,
    )


def with_constants(network: GaussianNetwork, constants) -> GaussianNetwork:
    """Network with the values of features that have only one, by number."""
    if not constants:
        return network
    margins = list(network.margins or [NormalMargin()] * network.n_features)
    for number, value in constants.items():
        margins[number] = ConstantMargin(value)
    # With a density of 1 at its score, a column adds nothing.
    noise = network._parameters[2].copy()
    density = network._noise.root.log_density(np.zeros(1), np.zeros(1), np.ones(1))
    noise[..., list(constants)] = np.exp(2.0 * density)
    return network._with(margins=margins, noise_variance=noise)


def settled(network: GaussianNetwork) -> GaussianNetwork:
    """Network with as much noise as the scores have behind atoms.

    A network learns from a single score for each atom. How much these vary less than
    all is explained by parents to the same extent as the rest.
    """
    factor = np.ones(network.n_nodes)
    for column, margin in atom_columns(network.margins).items():
        factor[column] = 1.0 / (1.0 - margin.hidden_variance)
    if (factor == 1.0).all():
        return network
    return network._with(noise_variance=network._parameters[2] * factor)


def extend_network(network: GaussianNetwork, features, names) -> GaussianNetwork:
    """Network over all features, with names; those that it lacks stay alone.

    features: numbers of its features
    """
    if network.classes:
        each = [extend_network(own, features, names) for own in network.classes]
        return GaussianNetwork(
            each[0].adjacency,
            [own.weights for own in each],
            [own.intercept for own in each],
            [own.noise_variance for own in each],
            node_names=each[0].node_names,
            margins=_extend_margins(network.margins, features, len(names)),
            class_weight=network.class_weight,
        )
    taken = set(names)
    all_names = list(names)
    for number in range(network.n_latents):
        name = f"latent{number}"
        while name in taken:
            name += "_"
        taken.add(name)
        all_names.append(name)
    latents = len(names) + np.arange(network.n_latents)
    places = np.concatenate([features, latents]).astype(int)
    n_nodes = len(all_names)
    both = np.ix_(places, places)
    adjacency = np.zeros((n_nodes, n_nodes), dtype=bool)
    weights = np.zeros((n_nodes, n_nodes))
    intercept, noise_variance = np.zeros(n_nodes), np.ones(n_nodes)
    adjacency[both], weights[both] = network.adjacency, network.weights
    intercept[places] = network.intercept
    noise_variance[places] = network.noise_variance
    theta = None
    if network.link_parameters is not None:
        theta = np.zeros((n_nodes, network.link_parameters.shape[1]))
        theta[places] = network.link_parameters
    return GaussianNetwork(
        adjacency,
        weights,
        intercept,
        noise_variance,
        link=network.link,
        noise=network.noise,
        link_parameters=theta,
        n_latents=network.n_latents,
        node_names=all_names,
    )


def _extend_margins(margins: Margins, features, n_features: int) -> Margins:
    """Margins of all features; those that are not given are normal."""
    if margins is None:
        return None
    extended: list[Margin] = [NormalMargin()] * n_features
    for place, margin in zip(features, margins, strict=True):
        extended[place] = margin
    return tuple(extended)
