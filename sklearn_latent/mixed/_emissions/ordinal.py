"""Categories in order, with one location of each state."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._core.persistence import Array
from .base import SMOOTHING, Column
from .cumulative import cumulative_shares, first_thresholds, fit_cumulative
from .discrete import Discrete
from .gaussian import check_vector


class Ordinal(Discrete):
    """Ordered categories by a cumulative logit model.

    ``logit P(category <= k | state) = thresholds[k] - location[state]``: a state with a
    higher location has higher categories. One state has location 0, so that there are
    ``n_categories + n_states - 2`` parameters.

    Parameters
    ----------
    thresholds : array-like of shape (n_categories - 1,)
        Increasing.
    location : array-like of shape (n_states,)
        Location of each state.

    Examples
    --------
    >>> from sklearn_latent.mixed import Ordinal
    >>> Ordinal(thresholds=[-1.0, 1.0], location=[0.0, 2.0]).table.round(2)
    array([[0.27, 0.46, 0.27],
           [0.05, 0.22, 0.73]])
    """

    kind = "ordinal"
    _fields: ClassVar = {
        "thresholds": Array("float", 1),
        "location": Array("float", 1),
    }

    def __init__(self, thresholds: ArrayLike, location: ArrayLike):
        self.thresholds = check_thresholds("thresholds", thresholds)
        self.location = check_vector("location", location)
        self.table = cumulative_shares(self.thresholds, self.location)

    @classmethod
    def flat(cls, column: Column) -> Self:
        """The same share of all categories."""
        return cls(first_thresholds(np.ones((1, column.n_categories))), [0.0])

    @property
    def n_free(self) -> int:
        """Number of free parameters."""
        return len(self.thresholds) + len(self.location) - 1

    def fitted(self, statistics: np.ndarray, smoothing: float = SMOOTHING) -> Self:
        """Thresholds and locations by Fisher scoring."""
        counts = statistics + self.pseudo_statistics(smoothing)
        return type(self)(*fit_cumulative(counts, self.thresholds, self.location))


def check_thresholds(name: str, values) -> np.ndarray:
    """Validate increasing numbers."""
    thresholds = check_vector(name, values)
    if (np.diff(thresholds) <= 0).any():
        raise ValueError(f"{name} must increase, got others.")
    return thresholds
