"""Scores of moves when rows belong to classes that share one graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._linear_scores import LinearEvaluator
from .._rules import Family, MoveEvaluator
from .._statistics import GaussianStatistics


class ClassEvaluator(MoveEvaluator):
    """Sums of the scores of all classes; every class pays for its parameters."""

    def __init__(self, statistics: Sequence[GaussianStatistics]):
        self.parts = [LinearEvaluator(own) for own in statistics]
        self.n_nodes = statistics[0].n_nodes
        self.weight = sum(own.weight for own in statistics)
        self.set_costs(None, 0.0)

    def set_costs(self, parameter_cost: float | None, edge_cost) -> None:
        """Prices of the parameters of a class, and of edges on top."""
        super().set_costs(parameter_cost, edge_cost)
        for part in self.parts:
            part.set_costs(self.parameter_cost, self.edge_costs / len(self.parts))

    def family_score(self, child: int, parents: tuple[int, ...]) -> float:
        """Score of one family."""
        return sum(part.family_score(child, parents) for part in self.parts)

    def move_scores(
        self, families: Sequence[Family], allowed, children, room: Sequence[bool]
    ) -> list[np.ndarray]:
        """Scores of families after each of their moves."""
        each = [
            part.move_scores(families, allowed, children, room) for part in self.parts
        ]
        return [np.sum(scores, axis=0) for scores in zip(*each, strict=True)]
