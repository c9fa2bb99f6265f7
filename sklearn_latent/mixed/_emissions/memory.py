"""Categories that depend on the state and on the category before."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._core.persistence import Array
from .._panels.panel import MISSING
from .._tables import check_table, normalized
from .base import SMOOTHING, Column, previous_values
from .discrete import Discrete

# Weight of the prior of a row of the table with memory, in observations.
MEMORY_SMOOTHING = 1.0


class CategoricalMemory(Discrete):
    """Tables of P(category | state, category before), and of P(category | state).

    The second is for values before which none is known: in the first slice and after a
    gap. The model is that of recorded values given which of them are recorded: a value
    after a gap is not a mixture over what may have been in the gap.

    Parameters
    ----------
    table : array-like of shape (n_states, n_categories)
        P(category | state) where the value before is not known.
    after : array-like of shape (n_states, n_categories, n_categories)
        P(category | state, category before); the category before comes first.
    prior : array-like of shape (n_categories, n_categories) or None, default=None
        P(category | category before) toward which estimates of the rows of all states
        are shrunk, by one observation each. None is the same share of all.

    Examples
    --------
    >>> from sklearn_latent.mixed import CategoricalMemory
    >>> emission = CategoricalMemory(
    ...     table=[[0.5, 0.5]], after=[[[0.9, 0.1], [0.2, 0.8]]]
    ... )
    >>> emission.predicted([[[1.0], [1.0]]], [[1, -1]])[0, 1]
    array([0.2, 0.8])
    """

    kind = "memory"
    has_memory = True
    _fields: ClassVar = {
        "table": Array("float", 2),
        "after": Array("float", 3),
        "prior": Array("float", 2),
    }

    def __init__(
        self, table: ArrayLike, after: ArrayLike, prior: ArrayLike | None = None
    ):
        self.table = check_table("table", table, (None, None))
        n_states, width = self.table.shape
        self.after = check_table("after", after, (n_states, width, width))
        if prior is None:
            prior = np.full((width, width), 1 / width)
        self.prior = check_table("prior", prior, (width, width))

    @classmethod
    def flat(cls, column: Column) -> Self:
        """What follows on each category, whatever the state."""
        width = column.n_categories
        codes, previous = column.values, previous_values(column.values)
        weights = np.broadcast_to(column.weights[:, None], codes.shape)
        pairs = np.zeros((width, width))
        both = (codes != MISSING) & (previous != MISSING)
        np.add.at(pairs, (previous[both], codes[both]), weights[both])
        # What was never seen to follow on a category happens as often as anywhere.
        shares = normalized(pairs.sum(axis=0), SMOOTHING)
        prior = normalized(pairs + MEMORY_SMOOTHING * shares)
        return cls(shares[None], prior[None], prior)

    @property
    def n_free(self) -> int:
        """Number of free parameters."""
        return sum(t.size - t.size // t.shape[-1] for t in (self.table, self.after))

    def pseudo_statistics(self, smoothing: float) -> np.ndarray:
        """What follows on each category in all states together."""
        rest = np.full(self.n_categories, smoothing / self.n_categories)
        return np.concatenate([MEMORY_SMOOTHING * self.prior.ravel(), rest])

    def fitted(self, statistics: np.ndarray, smoothing: float = SMOOTHING) -> Self:
        """Shares of the categories, of each state and category before."""
        pairs, rest = self.split(statistics + self.pseudo_statistics(smoothing))
        return self._with(table=normalized(rest), after=normalized(pairs))
