"""What a search asks of a family model, what it keeps to, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._core.criteria import bic_price
from .._families import Family

# Gains that differ by less, in nats, are the same: directions that the score cannot
# tell apart are decided by number, not by rounding errors.
TIE = 1e-6


def with_parent(parents: tuple[int, ...], new: int) -> tuple[int, ...]:
    """Parents with one more, in ascending order."""
    return tuple(sorted((*parents, new)))


def without_parent(parents: tuple[int, ...], old: int) -> tuple[int, ...]:
    """Parents with one less."""
    return tuple(parent for parent in parents if parent != old)


class MoveEvaluator(ABC):
    """Scores of families and of the moves that change them.

    Scores are log-likelihoods minus the penalty, so higher is better. A move that was
    pruned, or is not allowed, has the score minus infinity. Methods take many families
    at a time, so that a model whose parameters need optimisation can fit them together.

    weight: number of rows, or sum of their weights
    is_exhaustive: whether all allowed moves are scored. If so, scores depend on the
        family alone, and candidates that would close a cycle now are scored for later
    n_evaluated: families fitted exactly so far
    n_considered: families that a search without pruning would have fitted
    """

    n_nodes: int
    weight: float
    is_exhaustive: bool = True
    n_evaluated: int = 0
    n_considered: int = 0

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
        self, families: Sequence[Family], allowed, room: Sequence[bool]
    ) -> list[np.ndarray]:
        """Scores of families after each of their moves.

        Row 0 keeps all parents, row i + 1 drops parent i; column z adds node z, the
        last adds none: additions and replacements, then the family itself and its
        deletions.

        allowed (n_families, n_nodes): nodes that may be added
        room: whether there may be one more parent
        -> scores, each (n_parents + 1, n_nodes + 1).
        """

    def reverse_scores(self, families: Sequence[Family], children) -> np.ndarray:
        """Scores of families with one of their children as one more parent.

        Together with the deletion from the child this is the score of a reversal. Asked
        for only where not all moves are scored.
        """
        raise NotImplementedError(f"{type(self).__name__} scores all moves.")


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
