"""What the kinds of emissions have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._core.persistence import Persistent
from .._panels.panel import MISSING

# Weight of the prior of each state, in observations. It is small enough to leave
# estimates alone and keeps logarithms finite.
SMOOTHING = 0.1

# Slices of which the shares of categories with memory are the mean. In the long run, a
# chain that ends in one category would show nothing else.
N_TYPICAL = 20

# log(0) would turn a prior of an impossible value into minus infinity.
SMALLEST_LOG = np.log(1e-300)


@dataclass(frozen=True)
class Column:
    """All values of one feature.

    values: category numbers (-1 = missing) or numbers (NaN = missing), (n, n_slices)
    weights: of the sequences, (n,)
    n_categories: number of categories; of bins if values are numbers
    """

    values: np.ndarray
    weights: np.ndarray
    n_categories: int


class Emission(Persistent, ABC):
    """How a feature shows the state of its latent; one state if it measures none.

    The log-likelihood of a value is linear in its sufficient statistics: `design` has
    these of each value, `natural` their coefficients by state. So evidence, expected
    statistics, priors and scores of all kinds are products of the same matrices, and
    statistics of several panels add up.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.mixed import Gaussian
    >>> emission = Gaussian(mean=[0.0], std=[1.0])
    >>> values = np.array([1.0, 2.0, 3.0])
    >>> statistics = np.ones((1, 3)) @ emission.design(values, values)
    >>> emission.fitted(statistics, smoothing=0.0).mean
    array([2.])
    """

    # Name of the kind, as users write it.
    kind: ClassVar[str]
    # Whether a value depends on the value of the slice before.
    has_memory: ClassVar[bool] = False
    # Whether values are numbers, not categories.
    is_numeric: ClassVar[bool] = False
    # Share of values that do not depend on the state; only numbers have any.
    contamination: float = 0.0

    @classmethod
    @abstractmethod
    def flat(cls, column: Column) -> Self:
        """An emission of one state, to fit statistics of any number of states."""

    @property
    @abstractmethod
    def n_states(self) -> int:
        """Number of states."""

    @property
    @abstractmethod
    def n_categories(self) -> int:
        """Number of categories, 0 for numbers."""

    @property
    @abstractmethod
    def n_free(self) -> int:
        """Number of free parameters."""

    @property
    @abstractmethod
    def natural(self) -> np.ndarray:
        """Coefficients of the sufficient statistics, (n_states, n_statistics)."""

    @abstractmethod
    def design(self, values: ArrayLike, previous: ArrayLike) -> np.ndarray:
        """Sufficient statistics of values (n,) after others (n,), 0 where missing.

        The result has shape (n, n_statistics).
        """

    @property
    @abstractmethod
    def key(self) -> tuple:
        """What `design` depends on: the same key, the same design."""

    @abstractmethod
    def pseudo_statistics(self, smoothing: float) -> np.ndarray:
        """Statistics that the prior adds to those of each state, (n_statistics,)."""

    @abstractmethod
    def fitted(self, statistics: np.ndarray, smoothing: float = SMOOTHING) -> Self:
        """M-step: the most probable emission of this kind, given statistics.

        statistics (n_states, n_statistics).
        """

    @abstractmethod
    def draw(self, states: np.ndarray, rng: Any) -> np.ndarray:
        """Draw a value for each state, (n, n_slices)."""

    @abstractmethod
    def predicted(self, posterior: ArrayLike, values: ArrayLike) -> np.ndarray:
        """What each value should be, given states (n, n_slices, n_states).

        Probabilities of categories, (n, n_slices, n_categories), or mean and standard
        deviation of numbers, (n, n_slices, 2). Values before the predicted ones matter
        to emissions with memory alone; where they are missing, predictions stand in.
        """

    @property
    @abstractmethod
    def typical(self) -> np.ndarray:
        """P(category | state) in a typical slice, (n_states, n_categories).

        Of numbers the shares of narrow bins.
        """

    @property
    def follows_categories(self) -> bool:
        """Whether a value depends on a category, of which there are few."""
        return self.has_memory and not self.is_numeric

    def __len__(self) -> int:
        return self.n_states

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_states={self.n_states})"

    def _with(self, **parameters: Any) -> Self:
        """The same kind with other parameters, not checked: each step of EM has one."""
        other = object.__new__(type(self))
        for name in self._fields:
            value = parameters.get(name, getattr(self, name))
            if name in parameters and isinstance(value, np.ndarray):
                value.setflags(write=False)
            setattr(other, name, value)
        return other

    def log_prior(self, smoothing: float) -> float:
        """Logarithm of the prior, up to a constant."""
        natural = np.maximum(self.natural, SMALLEST_LOG)
        return float((natural * self.pseudo_statistics(smoothing)).sum())

    def expected_log_likelihood(self, statistics: np.ndarray) -> float:
        """Log-likelihood of values with given expected statistics."""
        seen = statistics != 0  # 0 times log(0) is 0 here
        return float((self.natural[seen] * statistics[seen]).sum())


def previous_values(values: np.ndarray) -> np.ndarray:
    """Values of the slice before, missing in the first, (n, n_slices, ...)."""
    gap = MISSING if values.dtype.kind in "iu" else np.nan
    previous = np.full_like(values, gap)
    previous[:, 1:] = values[:, :-1]
    return previous


def as_codes(values: ArrayLike) -> np.ndarray:
    """Category numbers of values that may be floats with NaN for missing."""
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        return array
    return np.where(np.isnan(array), MISSING, array).astype(np.int64)
