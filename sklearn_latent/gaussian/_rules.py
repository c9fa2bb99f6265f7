"""What a search over graphs keeps to, what it pays, and what it returns.

The extended BIC charges for whole structures, but a search, which changes one edge at a
time, needs a price per edge. How much the choice of an edge costs depends on how many
there are, which is not known before the search. It begins with the price of one of
p - 1 candidates; then it takes the price at the number of edges that it found, until
that number stays. Structures are compared by the exact numbers of alternatives. In that
comparison, and once their number is known, edges must also exceed what chance gains,
which is more in few rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import comb
from typing import Any

import numpy as np

from .._core.criteria import bic_price, log_choices, small_sample_factor
from ._families import Family

# Gains that differ by less, in nats, are the same: directions that the score cannot
# tell apart are decided by number, not by rounding errors.
TIE = 1e-6


def with_parent(parents: tuple[int, ...], new: int) -> tuple[int, ...]:
    """Parents with one more, in ascending order."""
    return tuple(sorted((*parents, new)))


def without_parent(parents: tuple[int, ...], old: int) -> tuple[int, ...]:
    """Parents with one less."""
    return tuple(parent for parent in parents if parent != old)


def ranked_with_ties(gains) -> np.ndarray:
    """Order of gains, the largest first; of those that are the same, by number."""
    order = np.argsort(-gains)
    group = np.cumsum(-np.diff(gains[order], prepend=np.inf) > TIE)
    return order[np.lexsort([order, group])]


def least_gain(scores) -> float:
    """Smallest gain that means something.

    More than rounding errors of scores; and of moves that gain the same, the one that
    is taken may gain a little less than the best.
    """
    rounding = 64.0 * np.finfo(float).eps * float(np.abs(scores).sum())
    return max(rounding, 2.0 * TIE)


@dataclass(frozen=True, eq=False)
class Rules:
    """Limits of a search; nodes are numbers.

    forbidden, required: ``[i, j]`` refers to the edge i -> j; the diagonal is forbidden
    max_iter: largest number of moves, or of passes over the nodes
    tol: smallest gain, in nats, that makes a move worth it
    progress: ``progress(message)`` is called once per step; True asks to stop
    """

    forbidden: np.ndarray
    required: np.ndarray
    max_parents: int
    max_iter: int = 10_000
    tol: float = 1e-6
    random_state: int | np.random.RandomState | None = 0
    progress: Callable[[str], bool] | None = None

    def reordered(self, order) -> Rules:
        """The same limits with the nodes in another order."""
        both = np.ix_(order, order)
        return replace(
            self, forbidden=self.forbidden[both], required=self.required[both]
        )

    @classmethod
    def free(cls, n_nodes: int, **limits: Any) -> Rules:
        """No limits but those given."""
        nothing = np.zeros((n_nodes, n_nodes), dtype=bool)
        limits = {"required": nothing, "max_parents": n_nodes, **limits}
        forbidden = limits.pop("forbidden", nothing) | np.eye(n_nodes, dtype=bool)
        return cls(forbidden, **limits)


@dataclass(frozen=True)
class Penalty:
    """Penalty of a number of rows and features, in nats.

    kind: factor of the BIC penalty, or the extended BIC
    n_edges: number of edges at which they are priced while searching, if known
    """

    kind: float | str
    weight: float
    n_features: int
    n_edges: int | None = None

    @property
    def is_extended(self) -> bool:
        """Whether choices cost, and few rows are allowed for."""
        return self.kind == "ebic"

    @property
    def parameter(self) -> float:
        """Price of a parameter: that of the BIC, times the factor."""
        price = bic_price(self.weight)
        return price if isinstance(self.kind, str) else float(self.kind) * price

    def parents(self, n_most: int) -> np.ndarray:
        """Price of parents on top of their parameters while searching."""
        if self.n_edges is not None:
            return self._parents(n_most, self._choice(self.n_edges))
        choice = np.log(max(self.n_features - 1, 1)) if self.is_extended else 0.0
        return choice * np.arange(n_most + 1)

    def _choice(self, n_edges: int) -> float:
        """Price of choosing one of so many edges among all pairs of features."""
        n_pairs = comb(self.n_features, 2)
        n_edges = min(max(n_edges, 1), n_pairs)
        return float(log_choices(n_pairs, n_edges)) / max(n_edges, 1)

    def _parents(self, n_most: int, choice: float) -> np.ndarray:
        """As `parents`, where choosing an edge costs that much."""
        if not self.is_extended:
            return np.zeros(n_most + 1)
        factor = small_sample_factor(self.weight, np.arange(n_most))
        steps = factor * (self.parameter + choice) - self.parameter
        return np.concatenate([[0.0], np.cumsum(steps)])

    @property
    def latent_edge(self) -> float:
        """Price of an edge of a latent on top of parameter and choice."""
        if not self.is_extended:
            return 0.0
        return float(small_sample_factor(self.weight, 0) - 1.0) * self.parameter

    @property
    def multiplicity(self) -> float:
        """Weight of the price of choosing the neighbours of a latent."""
        if isinstance(self.kind, str):
            return float(small_sample_factor(self.weight, 0))
        return min(float(self.kind), 1.0)

    def structure(self, adjacency) -> float:
        """Price of a whole structure on top of its parameters."""
        n = self.n_features
        neighbours = adjacency[n:, :n].sum(axis=1) + adjacency[:n, n:].sum(axis=0)
        price = self.multiplicity * float(log_choices(n, neighbours).sum())
        if not self.is_extended:
            return price
        parents = adjacency[:n, :n].sum(axis=0)
        n_edges = int(parents.sum())
        price += float(self._parents(n, self._choice(n_edges))[parents].sum())
        return price + self.latent_edge * float(adjacency.sum() - n_edges)


@dataclass
class SearchResult:
    """The best graph, its score, and the moves of the search with their gains."""

    adjacency: np.ndarray
    score: float
    history: list = field(default_factory=list)

    def relabelled(self, nodes) -> SearchResult:
        """The same result where node i is called nodes[i]."""
        adjacency = np.zeros_like(self.adjacency)
        adjacency[np.ix_(nodes, nodes)] = self.adjacency
        history = relabelled_history(self.history, nodes)
        return SearchResult(adjacency, self.score, history)


def relabelled_history(history: list, nodes) -> list:
    """Moves and gains where node i is called nodes[i]; others keep their names."""
    names = {place: int(node) for place, node in enumerate(nodes)}
    # Other moves count or name latents.
    n_nodes = {"add": 2, "delete": 2, "reverse": 2, "replace": 3, "move": 1}
    moves = []
    for (kind, *numbers), gain in history:
        n = n_nodes.get(kind, 0)
        renamed = [names.get(number, number) for number in numbers[:n]]
        moves.append(((kind, *renamed, *numbers[n:]), gain))
    return moves


class MoveEvaluator(ABC):
    """Scores of families and of the moves that change them.

    Scores are log-likelihoods minus the penalty, so higher is better. A move that was
    pruned, or is not allowed, has the score minus infinity. Methods take many families
    at a time, so that a model whose parameters need optimisation can fit them together.

    weight: number of rows, or sum of their weights
    n_candidates: how many candidates of a family are scored; None scores all
    n_evaluated: families fitted exactly so far
    n_considered: families that a search without pruning would have fitted
    """

    n_nodes: int
    weight: float
    n_candidates: int | None = None
    n_evaluated: int = 0
    n_considered: int = 0

    @property
    def is_exhaustive(self) -> bool:
        """Whether all allowed moves are scored.

        If so, scores depend on the family alone, and candidates that would close a
        cycle now are scored for later.
        """
        return self.n_candidates is None

    def set_costs(self, parameter_cost: float | None, edge_cost) -> None:
        """Prices of parameters, and of edges on top.

        parameter_cost: None is that of the BIC
        edge_cost: per edge, or of all parents of a node by their number, (n_nodes + 1,)
        """
        price = bic_price(self.weight) if parameter_cost is None else parameter_cost
        self.parameter_cost = price
        alike = np.ndim(edge_cost) == 0
        costs = edge_cost * np.arange(self.n_nodes + 1) if alike else edge_cost
        self.edge_costs = np.asarray(costs)

    @abstractmethod
    def family_score(self, child: int, parents: tuple[int, ...]) -> float:
        """Score of one family; cached where it is costly."""

    @abstractmethod
    def move_scores(
        self, families: Sequence[Family], allowed, children, room: Sequence[bool]
    ) -> list[np.ndarray]:
        """Scores of families after each of their moves.

        Row 0 keeps all parents, row i + 1 drops parent i; column z adds node z, the
        last adds none: additions and replacements, then the family itself and its
        deletions.

        allowed (n_families, n_nodes): nodes that may be added
        children (n_families, n_nodes): nodes that an edge leads to now. As one more
            parent they are scored for the sake of a reversal
        room: whether there may be one more parent
        -> scores, each (n_parents + 1, n_nodes + 1).
        """


def search_by_price(
    search, evaluator: MoveEvaluator, penalty: Penalty, rules: Rules, initial
) -> SearchResult:
    """Search until the number of edges is the one at which they are priced.

    Of the graphs on the way the best by what whole structures cost.
    """
    if initial is not None and penalty.is_extended:
        penalty = replace(penalty, n_edges=int(initial.sum()))
    history: list = []
    found: list[tuple[float, SearchResult]] = []
    priced: set[int | None] = set()
    while penalty.n_edges not in priced:
        priced.add(penalty.n_edges)
        prices = penalty.parents(evaluator.n_nodes)
        evaluator.set_costs(penalty.parameter, prices)
        result = search(evaluator, rules, initial=initial)
        initial = result.adjacency
        history = history + result.history
        searched = float(prices[initial.sum(axis=0)].sum())
        whole = result.score + searched - penalty.structure(initial)
        found.append((whole, SearchResult(initial, result.score, history)))
        if penalty.is_extended:
            penalty = replace(penalty, n_edges=int(initial.sum()))
    return max(found, key=lambda entry: entry[0])[1]
