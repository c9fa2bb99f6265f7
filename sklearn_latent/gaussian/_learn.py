"""From rows, or sums over them, to a network: which search, which score, which data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ._latents.growth import paper_search
from ._latents.placement import canonical, place_latents
from ._missing.nonlinear_em import bent_network, learn_nonlinear, make_evaluator
from ._missing.structural_em import LearnedNetwork, StructuralEM
from ._network import GaussianNetwork
from ._nonlinear.fitter import fit_network
from ._options import SearchOptions, is_linear
from ._scores.linear import LinearEvaluator, fit_linear
from ._scores.moves import SearchResult
from ._statistics.incomplete import IncompleteData, distinct_rows
from ._statistics.rows import Rows, RowStatistics, SplitStatistics
from ._statistics.statistics import GaussianStatistics, rounded
from ._structure_search.greedy import greedy_search
from ._structure_search.order import order_search

# Fewest rows that are worth holding out to choose a search.
MIN_HELD_OUT = 10
# Networks with more features are not worth fitting several times to choose a search.
MAX_CHOICE = 400


def choose_search(data: Rows | SplitStatistics, options: SearchOptions):
    """Replace "auto" in `search` and `penalty` by what predicts held-out rows best."""
    plain = 1.0 if options.penalty == "auto" else options.penalty
    extended = "ebic" if options.penalty == "auto" else options.penalty
    if not is_linear(options):
        # The published similarities miss good candidates where links bend.
        similarity = "C3" if options.search == "auto" else options.similarity
        return replace(options, search="greedy", penalty=plain, similarity=similarity)
    if options.max_latents > 0:
        # Edges that fit noise would hide what latents explain. Latents change what an
        # edge is worth, so nothing can be chosen without them.
        search = "order" if options.search == "auto" else options.search
        penalty = plain if options.published else extended
        return replace(options, search=search, penalty=penalty)
    if options.search != "auto":
        return replace(options, penalty=plain)
    train, test = data.parts
    few = min(train.weight, test.weight) < MIN_HELD_OUT
    if few or not 3 <= data.n_features <= MAX_CHOICE:
        return replace(options, search="order", penalty=extended)

    def score(candidate):
        if isinstance(train, Rows) and np.isnan(train.X).all(axis=0).any():
            return 0.0  # nothing can be learned of a column that is gone
        network = learn_network(train, candidate).network
        return log_likelihood(network, test) / test.weight

    return choose_among(options, score)


def choose_among(
    options: SearchOptions, score: Callable[[SearchOptions], float]
) -> SearchOptions:
    """Search and penalty that score best."""
    penalties: list[float | str] = ["ebic", 1.0]
    if options.penalty != "auto":
        penalties = [options.penalty]
    trial = replace(options, n_candidates=None, restarts=False, progress=None)
    scores: dict[tuple[str, float | str], float] = {}
    for search in ("greedy", "order"):
        for penalty in penalties:
            scores[search, penalty] = score(
                replace(trial, search=search, penalty=penalty)
            )
        if scores[search, penalties[0]] >= scores[search, penalties[-1]] - 1e-9:
            penalties = penalties[:1]
    # Of equals, the search that is stronger in theory; those that find the same
    # network differ by rounding only.
    search, penalty = max(
        scores, key=lambda key: (round(scores[key], 9), key[0] == "order")
    )
    return replace(options, search=search, penalty=penalty, n_candidates=None)


def learn_network(data: Rows | RowStatistics, options: SearchOptions) -> LearnedNetwork:
    """Learn a network with a search that is already chosen."""
    options = replace(options, n_distinct=len(data.distinct))
    if not data.n_features:
        # No feature has a value, so that there is nothing to learn.
        nothing = np.zeros((0, 0))
        network = GaussianNetwork(nothing, nothing, np.zeros(0), np.zeros(0))
        return LearnedNetwork(network, 0.0, [], 0, 0)
    if isinstance(data, RowStatistics):
        result, evaluator = search_linear(data.moments, options)
        parameters = fit_linear(data.moments, result.adjacency)
        network = GaussianNetwork(result.adjacency, *parameters)
    elif options.max_latents > 0 or data.has_gaps:
        return learn_incomplete(data.X, data.weights, options)
    else:
        result, evaluator, network = _learn_nonlinear(data, options)
    return LearnedNetwork(
        network,
        result.score,
        result.history,
        evaluator.n_evaluated,
        evaluator.n_considered,
    )


def log_likelihood(network: GaussianNetwork, data: Rows | RowStatistics) -> float:
    """Log-likelihood of all rows; from statistics that of a linear network."""
    if isinstance(data, Rows):
        return data.sum(network.log_likelihood(data.X))
    moments = data.moments
    apart = np.eye(network.n_nodes) - network.weights
    mean = moments.mean @ apart - network.intercept
    variance = np.einsum("ij,ik,kj->j", apart, moments.covariance, apart)
    noise = network.noise_variance
    terms = np.log(2.0 * np.pi * noise) + (variance + mean**2) / noise
    return float(-0.5 * moments.weight * terms.sum())


def search_linear(
    statistics: GaussianStatistics, options: SearchOptions
) -> tuple[SearchResult, LinearEvaluator]:
    """Search for the structure of a linear network."""
    # Sums that differ in their last digits only must lead to the same graph.
    statistics = rounded(statistics)
    rules = replace(options.rules(statistics.weight), progress=options.progress)
    greedy = options.search == "greedy"
    found = []
    for penalty in options.penalties(statistics.weight):
        evaluator = LinearEvaluator(
            statistics,
            parameter_cost=penalty.parameter,
            edge_cost=penalty.parents(statistics.n_nodes),
            n_candidates=options.n_candidates if greedy else None,
        )
        if greedy:
            result = greedy_search(evaluator, rules, initial=options.initial)
        else:
            result = order_search(
                evaluator, rules, initial=options.initial, n_restarts=options.n_restarts
            )
        graph = result.adjacency
        searched = penalty.parents(len(graph))[graph.sum(axis=0)].sum()
        whole = result.score + float(searched) - penalty.structure(graph)
        found.append((whole, result, evaluator))
    _, result, evaluator = max(found, key=lambda entry: entry[0])
    evaluator.n_evaluated = sum(entry[2].n_evaluated for entry in found)
    evaluator.n_considered = sum(entry[2].n_considered for entry in found)
    return result, evaluator


def _learn_nonlinear(data: Rows, options: SearchOptions):
    """Greedy search with optimised families; result, evaluator, network."""
    penalty = options.penalties(data.weight)[0]
    evaluator = make_evaluator(data.X, data.weights, options, penalty)
    rules = replace(options.rules(data.weight), progress=options.progress)
    result = greedy_search(evaluator, rules, initial=options.initial)
    weights, theta, noise_variance, _ = fit_network(
        data.X,
        result.adjacency,
        link=options.link,
        noise=options.noise,
        sample_weight=data.weights,
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


def extend_network(network: GaussianNetwork, seen, names) -> GaussianNetwork:
    """Network over all features, with names; features never seen stay alone."""
    taken = set(names)
    all_names = list(names)
    for number in range(network.n_latents):
        name = f"latent{number}"
        while name in taken:
            name += "_"
        taken.add(name)
        all_names.append(name)
    places = np.concatenate(
        [np.flatnonzero(seen), len(seen) + np.arange(network.n_latents)]
    ).astype(int)
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
