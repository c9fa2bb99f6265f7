"""What a search keeps to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Rules"]


@dataclass(frozen=True, eq=False)
class Rules:
    """Limits of a search; nodes are numbers.

    forbidden, required: ``[i, j]`` refers to the edge i -> j. The diagonal of
        `forbidden` is set, (n_nodes, n_nodes)
    max_parents: largest number of parents of a node
    max_iter: largest number of moves, or of passes over the nodes
    tol: smallest gain, in nats, that makes a move worth it
    random_state: source of randomness
    progress: ``progress(message)`` is called once per step; True asks to stop
    """

    forbidden: np.ndarray
    required: np.ndarray
    max_parents: int
    max_iter: int = 10_000
    tol: float = 1e-6
    random_state: int | np.random.RandomState | None = 0
    progress: Callable[[str], bool] | None = None

    @classmethod
    def free(cls, n_nodes: int, **limits: Any) -> Rules:
        """No limits but those given."""
        nothing = np.zeros((n_nodes, n_nodes), dtype=bool)
        limits = {"required": nothing, "max_parents": n_nodes, **limits}
        forbidden = limits.pop("forbidden", nothing) | np.eye(n_nodes, dtype=bool)
        return cls(forbidden, **limits)
