"""Categories whose probabilities depend on the state alone."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._core.persistence import Array
from .._tables import check_table, normalized
from .base import SMOOTHING, Column
from .discrete import Discrete


class Categorical(Discrete):
    """A table of P(category | state).

    Parameters
    ----------
    table : array-like of shape (n_states, n_categories)
        Probabilities, which sum to 1 in each row.

    Examples
    --------
    >>> from sklearn_latent.mixed import Categorical
    >>> Categorical([[0.8, 0.2], [0.1, 0.9]]).n_free
    2
    """

    kind = "categorical"
    _fields: ClassVar = {"table": Array("float", 2)}

    def __init__(self, table: ArrayLike):
        self.table = check_table("table", table, (None, None))

    @classmethod
    def flat(cls, column: Column) -> Self:
        """The same share of all categories."""
        return cls(np.full((1, column.n_categories), 1 / column.n_categories))

    @property
    def n_free(self) -> int:
        """Number of free parameters."""
        return self.table.size - len(self.table)

    def fitted(self, statistics: np.ndarray, smoothing: float = SMOOTHING) -> Self:
        """Shares of the categories."""
        return self._with(table=normalized(statistics, smoothing))
