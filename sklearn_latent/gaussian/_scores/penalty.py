"""What a network costs: the BIC, the extended BIC, and the price of choosing.

The extended BIC charges for whole structures, but a search, which changes one edge at a
time, needs a price per edge. How much the choice of an edge costs depends on how many
there are, which is not known before the search. It begins with the price of one of
p - 1 candidates; then it takes the price at the number of edges that it found, until
that number stays. Structures are compared by the exact numbers of alternatives. In that
comparison, and once their number is known, edges must also exceed what chance gains,
which is more in few rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from ..._core.criteria import bic_price, log_choices, small_sample_factor


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
