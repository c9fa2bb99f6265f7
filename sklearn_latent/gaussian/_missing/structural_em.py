"""Structure of linear networks with values missing: structural EM."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from ..._core.criteria import log_choices
from .._conditional import IncompleteData
from .._greedy import greedy_search
from .._linear_scores import LinearEvaluator
from .._network import GaussianNetwork
from .._options import SearchOptions
from .._orders import order_search
from .._rules import TIE, SearchResult
from .._statistics import GaussianStatistics, standardise
from .linear_em import LinearState, fit_network, maximise, saturated_statistics

# Rounds of search and EM; three or four are typical.
MAX_ROUNDS = 30
# Features from which thorough searches are few. Below, each guess and price has one:
# 30 features, 500 rows: without, SHD 52 instead of 19 (half of the values missing).
MANY_FEATURES = 100


@dataclass(eq=False)
class LearnedNetwork:
    """A learned network and how it was found.

    score: log-likelihood of the observed values minus the penalty; higher is better
    history: accepted moves and their gains
    n_evaluated, n_considered: families, or networks, fitted, and moves weighed
    trace: per round, log-likelihoods of the EM steps and the expected score before and
        after the search
    """

    network: GaussianNetwork
    score: float
    history: list
    n_evaluated: int
    n_considered: int
    trace: list = field(default_factory=list)


def measured(adjacency, n_features) -> np.ndarray:
    """Which latents have neighbours among the features, (n_latents,)."""
    n = n_features
    return adjacency[n:, :n].any(axis=1) | adjacency[:n, n:].any(axis=0)


class StructuralEM:
    """Alternate between EM for the parameters and search on expected statistics.

    method: search that is used now, at first that of the options
    penalty: what networks cost in the search that is used now
    """

    def __init__(self, data: IncompleteData, options: SearchOptions):
        self.data = data
        self.options = options
        self.method = options.search
        self.penalty = options.penalties(data.weight)[0]
        self.history: list = []
        self.trace: list = []
        self.n_evaluated = 0
        self.n_considered = 0
        self.stopped = False

    def score(self, state: LinearState) -> float:
        """Log-likelihood of the observed values minus the penalty of a search."""
        n_parents = state.adjacency.sum(axis=0)
        edges = self.penalty.parents(len(n_parents))[n_parents].sum()
        cost = self.penalty.parameter * state.n_parameters + float(edges)
        return state.log_likelihood - cost

    def whole_score(self, state: LinearState) -> float:
        """Score by which networks of different searches are compared."""
        return state.log_likelihood - self.price(state.adjacency)

    def price(self, adjacency) -> float:
        """Price of a whole network.

        A weight per edge, an intercept and a noise variance per feature. Latents have
        neither, because their place and scale are arbitrary. Neighbours of latents pay
        for being some of many possible ones, as does their number, and so do edges
        between latents.
        """
        n = self.data.n_features
        lower = measured(adjacency, n)
        n_measured = int(lower.sum())
        n_parameters = int(adjacency.sum()) + 2 * n
        above = adjacency[n:, n:][~lower].sum(axis=1)
        between = adjacency[n:, n:][np.ix_(lower, lower)].sum()
        choices = log_choices(n_measured, np.minimum(above, n_measured)).sum()
        choices += log_choices(n_measured * (n_measured - 1) / 2, between)
        choices += n_measured * np.log(n)
        price = self.penalty.multiplicity * float(choices)
        price += self.penalty.structure(adjacency)
        return price + self.penalty.parameter * n_parameters

    def choice(self, n_children) -> np.ndarray:
        """Price of having chosen the number of children of a latent, and these."""
        n = self.data.n_features
        return self.penalty.multiplicity * (np.log(n) + log_choices(n, n_children))

    @property
    def tol(self) -> float:
        """Smallest gain, in nats, that makes a change worth it."""
        return max(self.options.tol * self.data.weight, TIE)

    def report(self, message: str) -> bool:
        """Tell how far the search has come; whether to stop."""
        if self.options.progress is not None and not self.stopped:
            self.stopped = bool(self.options.progress(message))
        return self.stopped

    def evaluator(self, statistics: GaussianStatistics) -> LinearEvaluator:
        """Scores of families by expected statistics, in standard units."""
        standard, _ = standardise(statistics)
        greedy = self.options.search == "greedy"  # pruning was asked for
        return LinearEvaluator(
            standard,
            parameter_cost=self.penalty.parameter,
            edge_cost=self.penalty.parents(standard.n_nodes),
            n_candidates=self.options.n_candidates if greedy else None,
        )

    def search(
        self, statistics: GaussianStatistics, initial, n_latents: int
    ) -> tuple[SearchResult, float]:
        """Search on expected statistics; the graph found and the score of the first.

        The expected score of what comes back is never below that of the graph to start
        from, so neither is its observed score (Friedman, 1997).
        """
        rules = self.options.rules(self.data.weight, n_latents)
        evaluator = self.evaluator(statistics)
        initial = initial | rules.required
        before = evaluator.graph_score(initial)
        search = greedy_search if self.method == "greedy" else order_search
        result = search(evaluator, rules, initial=initial)
        self.n_evaluated += evaluator.n_evaluated
        self.n_considered += evaluator.n_considered
        if result.score <= before + rules.tol:
            result = SearchResult(initial, before, [])
        # Back to the units of the data.
        units = -statistics.weight * float(np.log(statistics.scale).sum())
        result.score += units
        return result, before + units

    def first(self) -> LinearState:
        """Best network without latents, from first guesses of missing values.

        Best-order search is thorough, so that where it ends is decided by the guess:
        two are made, of which a strong pull towards independence suits few rows, and a
        weak one many. The guess and the price of edges that lead to the best network
        are kept, and only that network is refined.
        """
        n = self.data.n_features
        initial = self.options.initial
        if initial is None:
            initial = self.options.required
        guesses = [saturated_statistics(self.data, pull=pull) for pull in self.pulls()]
        states = []
        graphs: dict[int, np.ndarray] = {}
        prices = self.options.penalties(self.data.weight)
        for self.penalty, place in product(prices, range(len(guesses))):
            statistics, graph = guesses[place], initial[:n, :n]
            method = self.method
            if n > MANY_FEATURES and self.penalty is not prices[0]:
                # Another price changes the graph of the same guess by few edges.
                method, graph = "greedy", graphs[place]
            with self.searching(method):
                result, _ = self.search(statistics, graph, 0)
            graphs[place] = result.adjacency
            parameters = maximise(
                statistics, result.adjacency, 0, self.data.noise_floor
            )
            state = fit_network(self.data, result.adjacency, parameters, tol=2e-5)
            score = self.whole_score(state)
            states.append((score, self.penalty, state, result.history))
            if self.stopped:
                break
        most = max(score for score, *_ in states)
        # Of graphs of one class, found at several prices, the first.
        best = next(entry for entry in states if entry[0] > most - self.tol)
        _, self.penalty, state, history = best
        self.history += history
        return self.settle(state)

    def pulls(self) -> list[float]:
        """Strengths of the pull of first guesses towards independence.

        Greedy search is not thorough enough to tell them apart.
        """
        n = self.data.n_features
        if self.method != "order" or not self.data.n_missing:
            return [n]
        weak = n**2 / self.data.weight
        return [weak] if n > MANY_FEATURES else [n, weak]

    def settle(self, state: LinearState) -> LinearState:
        """Refine a network by greedy search, and at last by the search of the options.

        What is missing is known better with every round, but moves little: there a
        thorough search in each of them finds nothing more.
        """
        with self.searching("greedy"):
            state = self.refine(state.adjacency, state.parameters, state.n_latents)
        if self.method == "greedy" or self.stopped:
            return state
        trial = self.refine(
            state.adjacency, state.parameters, state.n_latents, max_rounds=2
        )
        gain = self.whole_score(trial) - self.whole_score(state)
        return trial if gain > self.tol else state

    @contextmanager
    def searching(self, method: str):
        """Use another search for a while."""
        kept, self.method = self.method, method
        try:
            yield
        finally:
            self.method = kept

    def refine(
        self, adjacency, parameters, n_latents: int, *, max_rounds=MAX_ROUNDS
    ) -> LinearState:
        """Alternate EM and search until the structure stays."""
        is_complete = self.data.n_missing == 0 and n_latents == 0
        for _ in range(max_rounds):
            steps: list[float] = []
            state = fit_network(
                self.data, adjacency, parameters, n_latents, tol=2e-5, trace=steps
            )
            entry = {"log_likelihood": steps, "score": self.score(state)}
            self.trace.append(entry)
            if is_complete or self.report(
                f"{int(adjacency.sum())} edges, {n_latents} latents, "
                f"score {entry['score']:.8g}"
            ):
                break
            result, before = self.search(state.statistics, adjacency, n_latents)
            entry["expected_score"] = before, result.score
            if (result.adjacency == adjacency).all():
                break
            self.history += result.history
            adjacency = result.adjacency
            parameters = maximise(
                state.statistics, adjacency, n_latents, self.data.noise_floor
            )
        return state

    def finish(self, state: LinearState) -> LearnedNetwork:
        """Fit the parameters to the end and put everything together."""
        steps: list[float] = []
        state = fit_network(
            self.data,
            state.adjacency,
            state.parameters,
            state.n_latents,
            max_iter=100,
            tol=1e-8,
            trace=steps,
        )
        score = self.score(state)
        self.trace.append({"log_likelihood": steps, "score": score})
        return LearnedNetwork(
            state.network(),
            score,
            self.history,
            self.n_evaluated,
            self.n_considered,
            self.trace,
        )
