"""Categories in order, which follow the category before."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._core.persistence import Array
from .base import SMOOTHING, Column
from .cumulative import cumulative_shares, fit_cumulative
from .discrete import Discrete
from .gaussian import check_vector
from .ordinal import Ordinal, check_thresholds


class OrdinalMemory(Discrete):
    """Ordered categories whose location the category before shifts.

    ``logit P(category <= k | state, before) = after_thresholds[k] -
    after_location[state] - shift[before]``. Where the category before is not known,
    categories are those of `Ordinal` with `thresholds` and `location`.

    Parameters
    ----------
    thresholds : array-like of shape (n_categories - 1,)
        Increasing; of categories before which none is known.
    location : array-like of shape (n_states,)
        Location of each state, for the same categories.
    after_thresholds : array-like of shape (n_categories - 1,)
        Increasing; of categories after others.
    after_location : array-like of shape (n_states,)
        Location of each state, for the same categories.
    shift : array-like of shape (n_categories,)
        What each category before adds to the location.

    Examples
    --------
    >>> from sklearn_latent.mixed import OrdinalMemory
    >>> emission = OrdinalMemory([0.0], [0.0], [0.0], [0.0], shift=[-2.0, 2.0])
    >>> emission.after[0].round(2)
    array([[0.88, 0.12],
           [0.12, 0.88]])
    """

    kind = "ordinal memory"
    has_memory = True
    _fields: ClassVar = {
        "thresholds": Array("float", 1),
        "location": Array("float", 1),
        "after_thresholds": Array("float", 1),
        "after_location": Array("float", 1),
        "shift": Array("float", 1),
    }

    def __init__(
        self,
        thresholds: ArrayLike,
        location: ArrayLike,
        after_thresholds: ArrayLike,
        after_location: ArrayLike,
        shift: ArrayLike,
    ):
        alone = Ordinal(thresholds, location)
        self.thresholds, self.location = alone.thresholds, alone.location
        self.table = alone.table
        self.after_thresholds = check_thresholds("after_thresholds", after_thresholds)
        n_states, width = self.table.shape
        self.after_location = check_vector("after_location", after_location, n_states)
        self.shift = check_vector("shift", shift, width)
        rows = (self.after_location[:, None] + self.shift).ravel()
        after = cumulative_shares(self.after_thresholds, rows)
        self.after = after.reshape(n_states, width, width)

    @classmethod
    def flat(cls, column: Column) -> Self:
        """The same share of all categories."""
        one = Ordinal.flat(column)
        both = one.thresholds, one.location
        return cls(*both, *both, np.zeros(column.n_categories))

    @property
    def n_free(self) -> int:
        """Number of free parameters."""
        alone = len(self.thresholds) + len(self.location) - 1
        return 2 * alone + len(self.shift) - 1

    def fitted(self, statistics: np.ndarray, smoothing: float = SMOOTHING) -> Self:
        """Thresholds, locations and shifts by Fisher scoring."""
        pairs, rest = self.split(statistics + self.pseudo_statistics(smoothing))
        after = self.after_thresholds, self.after_location, self.shift
        return type(self)(
            *fit_cumulative(rest, self.thresholds, self.location),
            *fit_cumulative(pairs, *after),
        )
