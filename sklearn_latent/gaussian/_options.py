"""What is to be learned, and how, in one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ._links import Linear, get_link
from ._noise import Additive, Noise, get_noise
from ._rules import Penalty, Rules

# Restarts of an order search at the most, and up to how many nodes: there they cost
# little.
RESTARTS = 10
FEW_NODES = 50


def is_linear(settings) -> bool:
    """Whether an estimator, or options, ask for linear links and additive noise."""
    return isinstance(get_link(settings.link), Linear) and isinstance(
        get_noise(settings.noise), Additive
    )


@dataclass(frozen=True, eq=False)
class SearchOptions:
    """Validated parameters of `IdealParentGaussianBN`; nodes are numbers.

    forbidden, required: matrices over the features; the diagonal is forbidden
    published: whether latents are found as in the paper
    n_distinct: number of different rows, where it is known
    initial: graph to start from
    progress: ``progress(message)`` is called once per step; True asks to stop
    """

    forbidden: np.ndarray
    required: np.ndarray
    link: str = "linear"
    noise: str | Noise = "additive"
    search: str = "greedy"
    similarity: str = "C2"
    n_candidates: int | None = None
    max_parents: int | None = None
    max_latents: int = 0
    bipartite: bool = False
    published: bool = False
    max_iter: int = 10_000
    tol: float = 1e-8
    penalty: float | str = 1.0
    random_state: int | np.random.RandomState | None = 0
    n_distinct: int | None = None
    initial: np.ndarray | None = None
    progress: Callable[..., bool] | None = None

    def restricted(self, seen) -> SearchOptions:
        """Options over some of the features; seen (n_features,)."""
        both = np.ix_(seen, seen)
        return replace(
            self,
            forbidden=self.forbidden[both],
            required=self.required[both],
            initial=None if self.initial is None else self.initial[both],
        )

    def rules(self, weight: float, n_latents: int = 0) -> Rules:
        """Limits of a search over features and latents, for so many rows."""
        n_features = len(self.forbidden)
        n_nodes = n_features + n_latents
        forbidden = np.eye(n_nodes, dtype=bool)
        required = np.zeros((n_nodes, n_nodes), dtype=bool)
        forbidden[:n_features, :n_features] |= self.forbidden
        required[:n_features, :n_features] = self.required
        if self.bipartite:
            forbidden[:n_features] = True
            forbidden[:, n_features:] = True
        return Rules(
            forbidden & ~required,
            required,
            self.parent_limit(weight),
            max_iter=self.max_iter,
            tol=self.tol * weight,
            random_state=self.random_state,
        )

    def penalties(self, weight: float) -> list[Penalty]:
        """What a network of so many rows may cost while searching."""
        many = Penalty(self.penalty, weight, len(self.forbidden))
        return [many, replace(many, n_edges=1)] if many.is_extended else [many]

    @property
    def n_restarts(self) -> int:
        """Largest number of restarts of an order search."""
        return RESTARTS if len(self.forbidden) <= FEW_NODES else 0

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
