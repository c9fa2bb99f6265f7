"""Categories that repeat the one before, or else depend on the state."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._core.persistence import Array
from ..._core.validation import check_numbers, check_probabilities
from .._tables import check_cells, check_table, normalized
from .base import SMOOTHING, Column
from .discrete import Discrete

# Steps in which repeats and chance are told apart within an M-step. They work on
# counts, so that more would be cheap, but later steps of EM go on from here.
N_STEPS = 10


class CategoricalRepeat(Discrete):
    """A category that is kept with some probability, or else drawn given the state.

    After category p, the probability of category x in state s is
    ``(1 - repeat[p]) * table[s, x]``, and ``repeat[p]`` more if x is p. Where the value
    before is not known, in the first slice and after a gap, it is ``table[s, x]``. It
    has one parameter more for each category, whatever the number of states, where
    `CategoricalMemory` has a table for each category before.

    Parameters
    ----------
    table : array-like of shape (n_states, n_categories)
        P(category | state) of values that are no repeats.
    repeat : array-like of shape (n_categories,)
        Probability that a category is kept.
    """

    kind = "repeat"
    has_memory = True
    _fields: ClassVar = {"table": Array("float", 2), "repeat": Array("float", 1)}

    def __init__(self, table: ArrayLike, repeat: ArrayLike):
        self.table = check_table("table", table, (None, None))
        kept = np.array(check_numbers("repeat", repeat))
        if kept.shape != self.table.shape[1:]:
            raise ValueError(
                f"repeat must have one value per category, shape "
                f"{self.table.shape[1:]}, got shape {kept.shape}."
            )
        check_probabilities("repeat", kept)
        check_cells(len(kept) * self.table.size)
        kept.setflags(write=False)
        self.repeat = kept

    @classmethod
    def flat(cls, column: Column) -> Self:
        """All categories alike, kept in half of the slices."""
        width = column.n_categories
        return cls(np.full((1, width), 1 / width), np.full(width, 0.5))

    # A plain attribute in the base class; here it follows from the parameters.
    @cached_property
    def after(self) -> np.ndarray:  # type: ignore[override]
        """P(category | state, category before)."""
        drawn = (1 - self.repeat)[:, None] * self.table[:, None, :]
        return drawn + np.diag(self.repeat)

    @property
    def n_free(self) -> int:
        """Number of free parameters."""
        return self.table.size - len(self.table) + len(self.repeat)

    def fitted(self, statistics: np.ndarray, smoothing: float = SMOOTHING) -> Self:
        """Tell repeats from values that happen to be the same, by EM on counts."""
        counts = statistics + self.pseudo_statistics(smoothing)
        pairs, rest = self.split(counts)
        same = np.einsum("spp->sp", pairs)
        other = pairs.sum(axis=1) - same + rest
        before = pairs.sum(axis=(0, 2))
        repeat, table = self.repeat, self.table
        if len(table) != len(counts):
            table = normalized(other + same)
        for _ in range(N_STEPS):
            share = repeat / (repeat + (1 - repeat) * table)
            repeat = (same * share).sum(axis=0) / before
            table = normalized(other + same * (1 - share))
        return self._with(table=table, repeat=np.clip(repeat, 0.0, 1.0))
