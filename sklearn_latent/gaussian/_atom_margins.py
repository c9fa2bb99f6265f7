"""Columns in which values are repeated: constants, and atoms beside a density."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from .._core.persistence import Array, Model, Persistent
from .._core.validation import check_numbers
from ._margin_kinds import EstimatedMargin, Floats, Margin, MixtureMargin
from ._statistics import LOG_2_PI, TINY


class ConstantMargin(Persistent, Margin):
    """A column with a single value, which is part of no density.

    Parameters
    ----------
    value : float
        The value.
    """

    name = "constant"
    _fields: ClassVar = {"value": Array(ndim=0)}

    def __init__(self, value: ArrayLike) -> None:
        self.value = float(check_numbers("value", value))

    def scores(self, values: Floats) -> Floats:
        """Scores of values: the middle."""
        return np.zeros_like(values)

    def log_slopes(self, values: Floats) -> Floats:
        """None for the value; no other has a density."""
        return np.where(self.atoms_of(values)[0], 0.0, -np.inf)

    def values(self, scores: Floats) -> Floats:
        """The value."""
        return np.full_like(scores, self.value)

    def expectation(self, mean: Floats, variance: Floats) -> Floats:
        """Expected values: the value."""
        return np.full_like(mean, self.value)

    def atoms_of(self, values, share: float = 0.5):
        """As for all margins."""
        # Values of a constant differ by rounding alone.
        least = 1e-12 * abs(self.value) + np.sqrt(TINY)
        at = np.abs(values - self.value) <= least
        return at, np.log1p(-share), np.log(share)


class AtomMargin(EstimatedMargin):
    r"""A column of a few frequent values, the atoms, and a density of all others.

    An atom stands for an interval of scores, as wide as its share asks for. Its own
    score is the mean of that interval.

    Parameters
    ----------
    atoms : array-like of shape (n_atoms,)
        Values of a positive probability, in increasing order.
    share : array-like of shape (n_atoms,)
        Their probabilities; the sum is below 1.
    rest : MixtureMargin
        The density of the other values.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.gaussian import MixtureMargin
    >>> from sklearn_latent.gaussian._atom_margins import AtomMargin
    >>> rest = MixtureMargin([1.0], [2.0], [0.5])
    >>> margin = AtomMargin([0.0], [0.5], rest)
    >>> margin.values(np.array([-2.0, -0.5, 0.6745])).round(3)
    array([0., 0., 2.])
    """

    name = "atoms"
    _fields: ClassVar = {
        "atoms": Array(ndim=1),
        "share": Array(ndim=1),
        "rest": Model(MixtureMargin),
    }

    def __init__(self, atoms: ArrayLike, share: ArrayLike, rest: MixtureMargin) -> None:
        self.atoms = np.array(check_numbers("atoms", atoms))
        self.share = np.array(check_numbers("share", share))
        self.rest = rest
        if self.atoms.ndim != 1 or self.atoms.shape != self.share.shape:
            raise ValueError(
                "atoms and share must have one value per atom, got shapes "
                f"{self.atoms.shape} and {self.share.shape}."
            )
        if not len(self.atoms) or not (np.diff(self.atoms) > 0.0).all():
            raise ValueError(f"atoms must be increasing numbers, got {self.atoms}.")
        left = 1.0 - self.share.sum()
        if not (self.share > 0.0).all() or not left > 0.0:
            raise ValueError(
                f"share must be positive, with a sum below 1, got {self.share}."
            )
        self._log_rest = np.log(left)
        # Probabilities of atoms below each, and of those up to it.
        self._below = np.append(0.0, np.cumsum(self.share))
        self.atoms.flags.writeable = self.share.flags.writeable = False
        # Intervals of scores, their means, and how much scores vary within them.
        under = left * ndtr(rest.scores(self.atoms))
        above = left * ndtr(-rest.scores(self.atoms))
        rise = self._below[-1] - self._below
        self.low = _quantile(
            np.log(under + self._below[:-1]), np.log(above + rise[:-1])
        )
        self.high = _quantile(np.log(under + self._below[1:]), np.log(above + rise[1:]))
        ends = np.array([self.low, self.high])
        density = np.exp(-0.5 * (ends**2 + LOG_2_PI))
        # An end of an interval may be infinite.
        product = np.where(np.isfinite(ends), ends, 0.0) * density
        self.score = (density[0] - density[1]) / self.share
        within = 1.0 + (product[0] - product[1]) / self.share - self.score**2
        self.hidden_variance = float(np.clip(self.share @ within, 0.0, 0.99))

    @property
    def n_parameters(self) -> int:  # type: ignore[override]
        """The shares, and those of the rest."""
        return len(self.atoms) + self.rest.n_parameters

    def scored(self, values: Floats) -> tuple[Floats, Floats]:
        """Scores and log-slopes; those of atoms are as if their density were even."""
        values = np.asarray(values, dtype=float)
        number, at = self._find(values)
        own, slopes = self.rest.scored(values)
        below = self._below[np.searchsorted(self.atoms, values)]
        with np.errstate(divide="ignore"):
            sides = np.log(below), np.log(np.maximum(self._below[-1] - below, 0.0))
        z = _quantile(
            np.logaddexp(sides[0], self._log_rest + log_ndtr(own)),
            np.logaddexp(sides[1], self._log_rest + log_ndtr(-own)),
        )
        slopes = slopes + self._log_rest + 0.5 * (z - own) * (z + own)
        z = np.where(at, self.score[number], z)
        even = np.log(self.share) + 0.5 * (self.score**2 + LOG_2_PI)
        return z, np.where(at, even[number], slopes)

    def values(self, scores: Floats) -> Floats:
        """Values that have these scores."""
        return self._values(scores, self.rest.values)

    def _quick_values(self, scores: Floats) -> Floats:
        return self._values(scores, self.rest._quick_values)

    def _values(self, scores, rest) -> Floats:
        """Atoms, or values of the rest."""
        scores = np.asarray(scores, dtype=float)
        place = np.searchsorted(self.high, scores)
        number = np.minimum(place, len(self.atoms) - 1)
        at = (place == number) & (scores >= self.low[number])
        below = self._below[place]
        own = _quantile(
            _log_less(log_ndtr(scores), below) - self._log_rest,
            _log_less(log_ndtr(-scores), self._below[-1] - below) - self._log_rest,
        )
        return np.where(at, self.atoms[number], rest(np.where(at, 0.0, own)))

    def atoms_of(self, values, share: float = 0.5):
        """As for all margins."""
        number, at = self._find(values)
        return at, np.log(self.share)[number], self._log_rest

    def intervals(self, values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows that have an atom, and where its interval of scores begins and ends."""
        number, at = self._find(values)
        return np.flatnonzero(at), self.low[number[at]], self.high[number[at]]

    def settled(self, scores) -> np.ndarray:
        """Scores, those within the interval of an atom as the score of the atom."""
        number = np.minimum(np.searchsorted(self.high, scores), len(self.atoms) - 1)
        at = (scores >= self.low[number]) & (scores <= self.high[number])
        return np.where(at, self.score[number], scores)

    def spread(self, scores, place) -> np.ndarray:
        """Scores, those of atoms at places between 0 and 1 of their intervals."""
        for score, low, high in zip(self.score, self.low, self.high, strict=True):
            low, high = ndtr([low, high])
            drawn = ndtri(low + place * (high - low))
            scores = np.where(scores == score, drawn, scores)
        return scores

    def _find(self, values) -> tuple[np.ndarray, np.ndarray]:
        """Number of an atom for each value, and whether the value is that atom."""
        number = np.searchsorted(self.atoms, values).clip(0, len(self.atoms) - 1)
        return number, self.atoms[number] == values


def _quantile(log_below, log_above) -> np.ndarray:
    """Normal quantiles, from the nearer end, where probabilities keep their digits."""
    lower = log_below < log_above
    z = ndtri_exp(np.minimum(np.where(lower, log_below, log_above), np.log(0.5)))
    return np.where(lower, z, -z)


def _log_less(log_probability, less) -> np.ndarray:
    """Logarithm of a probability minus another."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        part = np.where(less > 0.0, less * np.exp(-log_probability), 0.0)
        return np.minimum(log_probability + np.log1p(-np.minimum(part, 1.0)), 0.0)
