"""What a structure search may do and how it scores, in one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ._scores.penalty import Penalty

__all__ = ["SearchOptions"]

# Restarts of an order search that nobody asked for, and up to how many nodes.
CHEAP_RESTARTS = 3
FEW_NODES = 50


@dataclass(frozen=True, eq=False)
class SearchOptions:
    """Options of a search, validated; nodes are numbers.

    forbidden, required: ``[i, j]`` refers to the edge i -> j. The diagonal of
        `forbidden` is set, (n_nodes, n_nodes)
    link, noise, search, similarity, n_candidates, max_parents, max_latents, bipartite,
        hidden_search, max_iter, tol, n_restarts, tabu: as in `IdealParentGaussianBN`.
        `search` is one of "greedy", "order", "auto"
    penalty: factor of the BIC penalty, or the extended BIC
    random_state: source of randomness
    n_distinct: number of different rows, where it is known
    initial: graph to start from, (n_nodes, n_nodes)
    progress: ``progress(message)`` is called once per step; True asks to stop
    """

    forbidden: np.ndarray
    required: np.ndarray
    link: str = "linear"
    noise: str = "additive"
    search: str = "greedy"
    similarity: str = "C2"
    n_candidates: int | None = None
    max_parents: int | None = None
    max_latents: int = 0
    bipartite: bool = False
    hidden_search: str = "auto"
    max_iter: int = 10_000
    tol: float = 1e-6
    n_restarts: int | None = None
    tabu: int = 0
    penalty: float | str = 1.0
    random_state: int | np.random.RandomState | None = None
    n_distinct: int | None = None
    initial: np.ndarray | None = None
    progress: Callable[..., bool] | None = None

    @classmethod
    def free(cls, n_nodes: int, **options) -> SearchOptions:
        """Options without forbidden or required edges."""
        nothing = np.zeros((n_nodes, n_nodes), dtype=bool)
        return cls(np.eye(n_nodes, dtype=bool), nothing, **options)

    def penalties(self, weight: float) -> list[Penalty]:
        """What a network of so many rows may cost while searching."""
        many = Penalty(self.penalty, weight, len(self.forbidden))
        return [many, replace(many, rare=True)] if many.is_extended else [many]

    def restarts(self) -> int:
        """Number of restarts; unless given, where they cost little."""
        if self.n_restarts is not None:
            return self.n_restarts
        few = len(self.forbidden) <= FEW_NODES
        return CHEAP_RESTARTS if self.search == "order" and few else 0

    def parent_limit(self, weight: float) -> int:
        """Largest number of parents, also by what the rows can support.

        A family with as many parameters as different rows fits them perfectly, so its
        likelihood is without bound; half of the rows are left for the noise.
        """
        n_rows = weight if self.n_distinct is None else min(weight, self.n_distinct)
        limit = max(int(n_rows) // 2 - 1, 0)
        if self.max_parents is not None:
            limit = min(limit, self.max_parents)
        return min(limit, len(self.forbidden) - 1)
