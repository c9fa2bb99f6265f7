"""What emissions of categories have in common: tables."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._panels.panel import MISSING
from .._tables import draw_categories, log_table
from .base import Emission, as_codes

# Slices of which the shares of categories with memory are the mean. In the long run, a
# chain that ends in one category would show nothing else.
N_TYPICAL = 20


class Discrete(Emission):
    """An emission of categories, whatever parameters its tables follow from.

    table: P(category | state), (n_states, n_categories); with memory, where the value
        before is not known
    after: with memory P(category | state, category before), (n_states, n_categories,
        n_categories)
    """

    table: np.ndarray
    after: np.ndarray

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.table.shape[0]

    @property
    def n_categories(self) -> int:
        """Number of categories."""
        return self.table.shape[1]

    @property
    def follows_categories(self) -> bool:  # type: ignore[override]
        """Whether it depends on the category before."""
        return self.has_memory

    @property
    def key(self) -> tuple:
        """What the design depends on."""
        return "discrete", self.has_memory, self.n_categories

    @cached_property
    def natural(self) -> np.ndarray:
        """Logarithms of the tables, that without memory last."""
        if not self.has_memory:
            return log_table(self.table)
        after = self.after.reshape(self.n_states, -1)
        return log_table(np.concatenate([after, self.table], axis=1))

    def design(self, values: ArrayLike, previous: ArrayLike) -> np.ndarray:
        """Indicators of the category, or of the pair of it and that before."""
        codes, width = as_codes(values), self.n_categories
        if self.has_memory:
            before = as_codes(previous)
            before = np.where(before == MISSING, width, before)
            codes = np.where(codes == MISSING, MISSING, before * width + codes)
            width *= width + 1
        return np.where(codes[:, None] == np.arange(width), 1.0, 0.0)

    @property
    def typical(self) -> np.ndarray:
        """The table; with memory, shares in the first slices of a state that stays."""
        if not self.has_memory:
            return self.table
        shares = [self.table]
        for _ in range(N_TYPICAL - 1):
            shares.append(np.einsum("sp,spc->sc", shares[-1], self.after))
        return np.mean(shares, axis=0)

    def pseudo_statistics(self, smoothing: float) -> np.ndarray:
        """The same share of all categories, whatever was before."""
        width = self.n_categories
        n_rows = width + 1 if self.has_memory else 1
        return np.full(n_rows * width, smoothing / width)

    def split(self, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Counts of pairs, (n_states, n_categories, n_categories), and of the rest."""
        width = self.n_categories
        pairs = statistics[:, :-width].reshape(-1, width, width)
        return pairs, statistics[:, -width:]

    def draw(self, states: np.ndarray, rng: Any) -> np.ndarray:
        """Draw categories, slice by slice if each depends on the last."""
        if not self.has_memory:
            rows = self.table[states.ravel()]
            return draw_categories(rows, rng).reshape(states.shape)
        codes = np.empty(states.shape, dtype=np.int64)
        codes[:, 0] = draw_categories(self.table[states[:, 0]], rng)
        for t in range(1, states.shape[1]):
            rows = self.after[states[:, t], codes[:, t - 1]]
            codes[:, t] = draw_categories(rows, rng)
        return codes

    def predicted(self, posterior: ArrayLike, values: ArrayLike) -> np.ndarray:
        """P(category) of each value."""
        posterior = np.asarray(posterior)
        shares = posterior @ self.table
        if self.has_memory:
            codes = as_codes(values)
            known = np.eye(self.n_categories + 1, self.n_categories)[codes]
            after = self.after.reshape(-1, self.n_categories)
            for t in range(1, shares.shape[1]):
                missing = codes[:, t - 1] == MISSING
                before = np.where(missing[:, None], shares[:, t - 1], known[:, t - 1])
                pairs = posterior[:, t, :, None] * before[:, None, :]
                shares[:, t] = pairs.reshape(len(pairs), -1) @ after
        return shares
