"""What a search asks of a family model, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .._nonlinear.fitter import Family


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

    n_nodes: number of nodes
    is_exhaustive: whether all allowed moves are scored. If so, scores depend on the
        family alone, and candidates that would close a cycle now are scored for later
    n_evaluated: families fitted exactly so far
    n_considered: families that a search without pruning would have fitted
    """

    n_nodes: int
    is_exhaustive: bool = True
    n_evaluated: int = 0
    n_considered: int = 0

    @abstractmethod
    def family_score(self, child: int, parents: tuple[int, ...]) -> float:
        """Score of one family; cached where it is costly."""

    @abstractmethod
    def add_scores(self, families: Sequence[Family], allowed) -> np.ndarray:
        """Scores of families with one more parent."""

    @abstractmethod
    def delete_scores(self, child: int, parents: tuple[int, ...]) -> np.ndarray:
        """Scores of a family without each of its parents, in their order."""

    @abstractmethod
    def replace_scores(self, families: Sequence[Family], allowed) -> list[np.ndarray]:
        """Scores of families with one parent replaced by a candidate.

        allowed (n_families, n_nodes) -> scores, each (n_parents, n_nodes).
        """

    @abstractmethod
    def reverse_scores(self, families: Sequence[Family], children) -> np.ndarray:
        """Scores of families with one of their children as one more parent.

        Together with `delete_scores` of the child this is the score of a reversal.
        """


@dataclass
class SearchResult:
    """What a search found.

    adjacency: the best graph, (n_nodes, n_nodes)
    score: its score
    history: moves and their gains, in the order of the search
    """

    adjacency: np.ndarray
    score: float
    history: list = field(default_factory=list)


def rounding_error(scores) -> float:
    """Size of differences of scores that mean nothing."""
    return 64.0 * np.finfo(float).eps * float(np.abs(scores).sum())
