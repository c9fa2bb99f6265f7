"""From data to a learned network: which search, which score, which data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._missing.structural_em import LearnedNetwork, learn
from .._network import GaussianNetwork
from .._nonlinear.families import fit_network
from .._options import SearchOptions
from .._parameters import is_linear
from .._scores.linear import LinearEvaluator, fit_linear
from .._scores.moves import SearchResult
from .._scores.nonlinear import NonlinearEvaluator
from .._scores.penalty import Penalty
from .._statistics.rounding import rounded
from .._statistics.statistics import GaussianStatistics
from .greedy import greedy_search
from .order import order_search

__all__ = [
    "choose_among",
    "choose_search",
    "count_distinct",
    "learn_network",
    "search_linear",
]

# Share of the rows that search="auto" holds out, and the fewest rows it takes.
HELD_OUT = 0.25
MIN_HELD_OUT = 10
# Networks with more features are not worth fitting several times to choose a search.
MAX_CHOICE = 400


def search_linear(
    statistics: GaussianStatistics, options: SearchOptions
) -> tuple[SearchResult, LinearEvaluator]:
    """Search for the structure of a linear network."""
    # Sums that differ in their last digits only must lead to the same graph.
    statistics = rounded(statistics)
    found = []
    for penalty in options.penalties(statistics.weight):
        result, evaluator = _search_linear(statistics, options, penalty)
        graph = result.adjacency
        searched = penalty.parents(len(graph))[graph.sum(axis=0)].sum()
        whole = result.score + float(searched) - penalty.structure(graph)
        found.append((whole, result, evaluator))
    _, result, evaluator = max(found, key=lambda entry: entry[0])
    evaluator.n_evaluated = sum(entry[2].n_evaluated for entry in found)
    evaluator.n_considered = sum(entry[2].n_considered for entry in found)
    return result, evaluator


def _search_linear(statistics, options: SearchOptions, penalty: Penalty):
    """Search with one price of edges."""
    evaluator = LinearEvaluator(
        statistics,
        parameter_cost=penalty.parameter,
        edge_cost=penalty.parents(statistics.n_nodes),
        n_candidates=options.n_candidates if options.search == "greedy" else None,
    )
    search = greedy_search if options.search == "greedy" else order_search
    more = {"tabu": options.tabu} if options.search == "greedy" else {}
    result = search(
        evaluator,
        initial=options.initial,
        forbidden=options.forbidden,
        required=options.required,
        max_parents=options.parent_limit(statistics.weight),
        max_iter=options.max_iter,
        tol=options.tol,
        n_restarts=options.restarts(),
        random_state=options.random_state,
        progress=options.progress,
        **more,
    )
    return result, evaluator


def learn_network(X, sample_weight, options: SearchOptions) -> LearnedNetwork:
    """Learn a network with a search that is already chosen.

    X (n_samples, n_features), sample_weight (n_samples,).
    """
    if not X.shape[1]:
        # No feature has a value, so that there is nothing to learn.
        nothing = np.zeros((0, 0))
        network = GaussianNetwork(nothing, nothing, np.zeros(0), np.zeros(0))
        return LearnedNetwork(network, 0.0, [], 0, 0)
    if options.max_latents > 0 or np.isnan(X).any():
        return learn(X, sample_weight, options, hidden_search=options.hidden_search)
    if is_linear(options):
        statistics = GaussianStatistics.of(X, sample_weight)
        result, evaluator = search_linear(statistics, options)
        parameters = fit_linear(statistics, result.adjacency)
        network = GaussianNetwork(result.adjacency, *parameters)
    else:
        result, evaluator, network = _learn_nonlinear(X, sample_weight, options)
    return LearnedNetwork(
        network,
        result.score,
        result.history,
        evaluator.n_evaluated,
        evaluator.n_considered,
    )


def _learn_nonlinear(X, sample_weight, options: SearchOptions):
    """Greedy search with optimised families; result, evaluator, network."""
    weight = len(X) if sample_weight is None else float(np.sum(sample_weight))
    penalty = options.penalties(weight)[0]
    model = {
        "link": options.link,
        "noise": options.noise,
        "sample_weight": sample_weight,
    }
    evaluator = NonlinearEvaluator(
        X,
        **model,
        parameter_cost=penalty.parameter,
        edge_cost=penalty.parents(X.shape[1]),
        n_candidates=options.n_candidates,
        similarity=options.similarity,
    )
    result = greedy_search(
        evaluator,
        initial=options.initial,
        forbidden=options.forbidden,
        required=options.required,
        max_parents=options.parent_limit(weight),
        max_iter=options.max_iter,
        tol=options.tol,
        tabu=options.tabu,
        n_restarts=options.restarts(),
        random_state=options.random_state,
        progress=options.progress,
    )
    weights, theta, noise_variance, _ = fit_network(X, result.adjacency, **model)
    network = GaussianNetwork(
        result.adjacency,
        weights,
        theta[:, 0],
        noise_variance,
        link=options.link,
        noise=options.noise,
        link_parameters=theta,
    )
    return result, evaluator, network


def choose_search(X, sample_weight, options: SearchOptions) -> SearchOptions:
    """Replace "auto" in `search` and `penalty` by what predicts held-out rows best.

    X (n_samples, n_features), sample_weight (n_samples,).
    """
    if not is_linear(options):
        penalty = 1.0 if options.penalty == "auto" else options.penalty
        # The published similarities miss good candidates where links bend.
        similarity = "C3" if options.search == "auto" else options.similarity
        return replace(options, search="greedy", penalty=penalty, similarity=similarity)
    if options.max_latents > 0 and options.penalty == "auto":
        # Edges that fit noise would hide what hidden variables explain.
        plain = options.hidden_search == "paper"
        options = replace(options, penalty=1.0 if plain else "ebic")
    if options.search != "auto":
        penalty = 1.0 if options.penalty == "auto" else options.penalty
        return replace(options, penalty=penalty)
    if options.max_latents > 0:
        # Hidden variables change what an edge is worth, so nothing can be chosen
        # without them.
        return replace(options, search="order")
    held_out = hold_out(X)
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    n_rows = np.array([weights[~held_out].sum(), weights[held_out].sum()])
    if not 3 <= X.shape[1] <= MAX_CHOICE or n_rows.min() < MIN_HELD_OUT:
        penalty = "ebic" if options.penalty == "auto" else options.penalty
        return replace(options, search="order", penalty=penalty)
    train, test = _split(X, sample_weight, held_out)
    return choose_among(
        options, lambda candidate: _held_out_score(train, test, candidate)
    )


def choose_among(
    options: SearchOptions, score: Callable[[SearchOptions], float]
) -> SearchOptions:
    """Search and penalty that score best."""
    penalties: list[float | str] = ["ebic", 1.0]
    if options.penalty != "auto":
        penalties = [options.penalty]
    scores: dict[tuple[str, float | str], float] = {}
    for search in ("greedy", "order"):
        for penalty in penalties:
            scores[search, penalty] = score(
                replace(
                    options,
                    search=search,
                    penalty=penalty,
                    n_candidates=None,
                    n_restarts=options.n_restarts or 0,
                    progress=None,
                )
            )
        if scores[search, penalties[0]] >= scores[search, penalties[-1]] - 1e-9:
            penalties = penalties[:1]
    # Of equals, the search that is stronger in theory; those that find the same
    # network differ by rounding only.
    search, penalty = max(
        scores, key=lambda key: (round(scores[key], 9), key[0] == "order")
    )
    return replace(options, search=search, penalty=penalty, n_candidates=None)


def hold_out(X) -> np.ndarray:
    """Mask of held-out rows, by their values.

    Rows that are equal stay on one side, so that a weight of 2 is still a row twice,
    and neither the order of the rows nor that of the columns matters.

    X (n_samples, n_features) -> held_out (n_samples,).
    """
    bits = _scattered(X).sum(axis=1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return (bits >> np.uint64(40)) < np.uint64(int(HELD_OUT * 2**24))


def count_distinct(X) -> int:
    """Number of different rows, by their hashes.

    X (n_samples, n_features).
    """
    columns = np.arange(1, 2 * X.shape[1], 2, dtype=np.uint64)
    with np.errstate(over="ignore"):
        keys = (_scattered(X) * columns).sum(axis=1, dtype=np.uint64)
    return len(np.unique(keys))


def _scattered(X) -> np.ndarray:
    """Bits of numbers, scattered by splitmix64; NaN and -0.0 have one form each."""
    bits = np.where(np.isnan(X), np.nan, X + 0.0).view(np.uint64)
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _split(X, sample_weight, held_out):
    """Data and weights to learn from, and those held out."""
    return tuple(
        (X[rows], None if sample_weight is None else sample_weight[rows])
        for rows in (~held_out, held_out)
    )


def _held_out_score(train, test, options: SearchOptions) -> float:
    """Log-likelihood of held-out rows."""
    X, weight = train
    if np.isnan(X).all(axis=0).any():
        return 0.0  # nothing can be learned of a column that is gone
    options = replace(options, n_distinct=count_distinct(X))
    rows = learn_network(X, weight, options).network.log_likelihood(test[0])
    return float(rows.sum() if test[1] is None else test[1] @ rows)
