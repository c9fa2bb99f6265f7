"""Categories: tables of their probabilities, whatever these follow from.

With memory, probabilities depend on the category before, too: by a table of each state,
by chances of being kept, or, of categories in order, by a shift of the location.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from ..._core.persistence import Array
from ..._core.validation import check_numbers, check_probabilities
from .._panels.panel import MISSING
from .._tables import check_cells, check_table, draw_categories, log_table, normalized
from .emission import N_TYPICAL, SMOOTHING, Column, Emission, as_codes, previous_values
from .numbers import check_vector

# Steps in which repeats and chance are told apart within an M-step. They work on
# counts, so that more would be cheap, but later steps of EM go on from here.
N_STEPS = 10

# Weight of the prior of a row of the table with memory, in observations.
MEMORY_SMOOTHING = 1.0

# Steps of Fisher scoring, of which few are needed from the last parameters of EM; one
# that gains less than this share of an observation is the last.
MAX_STEPS = 50
TOLERANCE = 1e-9


class Categories(Emission):
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


class Categorical(Categories):
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


class CategoricalRepeat(Categories):
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


class CategoricalMemory(Categories):
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


class Ordinal(Categories):
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


class OrdinalMemory(Categories):
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


def check_thresholds(name: str, values) -> np.ndarray:
    """Validate increasing numbers."""
    thresholds = check_vector(name, values)
    if (np.diff(thresholds) <= 0).any():
        raise ValueError(f"{name} must increase, got others.")
    return thresholds


def cumulative_shares(thresholds, location) -> np.ndarray:
    """P(category) of each row, given its location; (n_rows, n_categories)."""
    check_cells((len(thresholds) + 1) * len(location))
    upper, lower = _bounds(thresholds, location)
    # Far above, differences of numbers near 1 would lose their digits.
    above = lower > -upper
    shares = np.where(above, expit(-lower) - expit(-upper), expit(upper) - expit(lower))
    return shares / shares.sum(axis=1, keepdims=True)


def fit_cumulative(counts, thresholds, *effects) -> list[np.ndarray]:
    """Thresholds and effects of the greatest likelihood, by Fisher scoring.

    counts (*levels, n_categories): a row has the sum of one effect of each kind as its
    location, and the first effect of a kind is 0. Thresholds and effects come in as a
    first guess, if they have as many levels.
    """
    *levels, width = counts.shape
    counts = counts.reshape(-1, width)
    places = np.unravel_index(np.arange(len(counts)), levels)
    design = np.concatenate(
        [np.eye(n)[own, 1:] for n, own in zip(levels, places, strict=True)], axis=1
    )
    if [len(own) for own in effects] == levels:
        thresholds = thresholds - sum(own[0] for own in effects)
        weights = np.concatenate([own[1:] - own[0] for own in effects])
    else:
        thresholds, weights = first_thresholds(counts), np.zeros(design.shape[1])
    if width > 1:
        thresholds, weights = _climb(counts, design, thresholds, weights)
    parts = np.split(weights, np.cumsum(levels)[:-1] - np.arange(1, len(levels)))
    return [thresholds, *(np.append(0.0, part) for part in parts)]


def _climb(counts, design, thresholds, weights) -> list[np.ndarray]:
    """Fisher scoring; counts (n_rows, n_categories), design (n_rows, n_weights)."""
    current = np.concatenate([thresholds, weights])
    value = _log_likelihood(counts, design, current)
    for _ in range(MAX_STEPS):
        step = _step(counts, design, current)
        for _ in range(30):
            trial = _log_likelihood(counts, design, current + step)
            if trial >= value:
                break
            step = step / 2
        else:
            break
        gain, value, current = trial - value, trial, current + step
        if gain <= TOLERANCE:
            break
    return np.split(current, [len(thresholds)])


def first_thresholds(counts) -> np.ndarray:
    """Thresholds that all rows together suggest."""
    shares = counts.sum(axis=0) + 1e-3
    return logit(np.cumsum(shares)[:-1] / shares.sum())


def _bounds(thresholds, location):
    """Upper and lower end of each category, relative to the location."""
    cuts = thresholds - np.asarray(location)[:, None]
    ends = np.full((len(cuts), 1), np.inf)
    return np.concatenate([cuts, ends], axis=1), np.concatenate([-ends, cuts], axis=1)


def _log_likelihood(counts, design, parameters) -> float:
    """Log-likelihood, minus infinity if thresholds are not in order."""
    n_cuts = counts.shape[1] - 1
    thresholds = parameters[:n_cuts]
    if (np.diff(thresholds) <= 0).any():
        return -np.inf
    shares = cumulative_shares(thresholds, design @ parameters[n_cuts:])
    seen = counts > 0
    if (shares[seen] <= 0).any():
        return -np.inf
    return float(counts[seen] @ np.log(shares[seen]))


def _step(counts, design, parameters) -> np.ndarray:
    """Expected information, inverted, times the gradient."""
    n_rows, n_values = counts.shape
    n_cuts = n_values - 1
    thresholds, location = parameters[:n_cuts], design @ parameters[n_cuts:]
    shares = np.maximum(cumulative_shares(thresholds, location), 1e-300)
    cuts = thresholds - location[:, None]
    density = expit(cuts) * expit(-cuts)
    slopes = np.zeros((n_rows, n_values, len(parameters)))
    each = np.arange(n_cuts)
    slopes[:, each, each] = density
    slopes[:, each + 1, each] = -density
    falls = -slopes[:, :, :n_cuts].sum(axis=2, keepdims=True)
    slopes[:, :, n_cuts:] = falls * design[:, None]
    gradient = np.einsum("rk,rkp->p", counts / shares, slopes)
    mass = counts.sum(axis=1)[:, None] / shares
    information = np.einsum("rk,rkp,rkq->pq", mass, slopes, slopes)
    # What no row tells stays where it is.
    information += 1e-10 * (1.0 + np.trace(information)) * np.eye(len(parameters))
    return np.linalg.solve(information, gradient)
