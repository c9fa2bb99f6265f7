"""One hidden class behind some columns, or two that depend on each other, by EM.

This is a network of one slice with one or two latents, fitted many hundred times in a
search for groups of columns, so it has a kernel of its own. It works on distinct rows
with weights: the cost depends on the number of distinct rows and not on the amount of
data. Rows are one-hot: a step of EM is a few matrix products, and a missing value is a
block of zeros, which sums it out exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._core.choose import Growth, grow
from .._core.climb import Ascent, climb
from .._core.criteria import bic_score
from .._core.validation import check_random_state
from .._tables.thin import thinned_weights
from ._emissions.layout import Layout
from ._mutual_information import mutual_information, pair_counts
from ._panels.panel import Panel, distinct_rows
from ._tables import normalized

# Weight of the prior that pulls a table toward the feature's own distribution. It is
# small enough to leave estimates alone and keeps logarithms finite.
PSEUDO_COUNT = 0.1

# Starts run side by side for some steps, then the best go on: steps, and how many then.
HEATS = ((5, 3), (10, 1))

# Starts: categories of so many features, and so many random ones.
MAX_ANCHORS, N_RANDOM = 6, 4

# A step that gains less than this many nats ends EM. Decisions hang on differences of
# several nats.
TOLERANCE = 1e-2


@dataclass(frozen=True)
class Rows:
    """Distinct rows of categories, their weights, and the numbers of categories.

    codes: category numbers, -1 = missing, (n_rows, n_features)
    weights: how often each row occurs, (n_rows,)
    n_categories: number of categories of each feature, (n_features,)
    """

    codes: np.ndarray
    weights: np.ndarray
    n_categories: np.ndarray

    @classmethod
    def of(cls, codes, weights, n_categories) -> Rows:
        """Collect distinct rows that say something."""
        n_categories = np.asarray(n_categories, dtype=np.int64)
        codes = np.asarray(codes)
        seen = (codes >= 0).any(axis=1) & (weights > 0)
        codes, weights = codes[seen], np.asarray(weights, dtype=float)[seen]
        first, index = distinct_rows(codes)
        weights = np.bincount(index, weights, minlength=len(first))
        return cls(codes[first], weights, n_categories)

    @classmethod
    def pooled(cls, panel: Panel) -> Rows:
        """All slices of all sequences: the model is the same at every time."""
        codes = panel.codes.reshape(-1, panel.n_observed)
        weights = np.repeat(panel.weights, panel.n_slices)
        return cls.of(codes, weights, panel.n_categories)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    def of_features(self, features) -> Rows:
        """Rows of some of the features."""
        features = np.asarray(features, dtype=int)
        return Rows.of(
            self.codes[:, features], self.weights, self.n_categories[features]
        )

    def thinned(self, most: int) -> Rows:
        """A sample of about as many rows; the rows themselves if they are fewer."""
        weights = thinned_weights(self.weights, most)
        if weights is self.weights:
            return self
        return Rows(self.codes[weights > 0], weights[weights > 0], self.n_categories)

    @cached_property
    def layout(self) -> Layout:
        """Where the tables of each feature are, one beside the other."""
        return Layout(self.n_categories)

    @cached_property
    def one_hot(self) -> np.ndarray:
        """Rows as zeros and ones, feature after feature."""
        return self.layout.indicators(self.codes).toarray()

    @cached_property
    def marginals(self) -> np.ndarray:
        """Distribution of each feature, side by side."""
        prior = PSEUDO_COUNT / np.repeat(self.n_categories, self.n_categories)
        return self.layout.normalized(self.weights @ self.one_hot + prior)

    @cached_property
    def counts(self) -> np.ndarray:
        """Counts of all pairs of categories."""
        return pair_counts(self.one_hot, self.weights)


@dataclass(frozen=True)
class Classes:
    """One or two hidden classes, and the rows that they are fitted to.

    joint: shares of the classes, one axis for each
    emission: P(category | class), feature after feature, a matrix for each class
    bic: log-likelihood less the price of the parameters; higher is better
    """

    joint: np.ndarray
    emission: list[np.ndarray]
    log_likelihood: float
    bic: float
    layouts: list[Layout]

    @property
    def n_classes(self) -> int:
        """Number of joint states."""
        return self.joint.size

    def tables(self, place: int = 0) -> list[np.ndarray]:
        """P(category | class) of each feature of a class."""
        return self.layouts[place].split(self.emission[place])


def fit_classes(rows: Rows, n_classes: int, *, random_state=None) -> Classes:
    """Fit one class; without a random state, from the features alone."""
    return _fit_one(rows, _Starts(rows), n_classes, random_state)


def grow_classes(rows: Rows, max_classes: int, *, random_state=None) -> Growth[Classes]:
    """Fit one class with ever more states until BIC falls."""
    starts = _Starts(rows)
    return grow(
        lambda n_classes: _fit_one(rows, starts, n_classes, random_state),
        range(1, max_classes + 1),
        lambda model: -model.bic,
        # One fall is enough once several classes have beaten one.
        is_hopeless=lambda found: 0 < found.place < len(found.fits) - 1,
    )


def fit_pair(rows: Rows, in_first, first, second) -> Classes:
    """Fit two classes that depend on each other, from tables of their own features."""
    em = _ClassEM(rows, [in_first, ~in_first])
    # Few features alone may suggest certainty, from which EM hardly moves.
    softer = [
        em.layouts[k].normalized(table + 0.1 * em.marginals[k])[None]
        for k, table in enumerate((first, second))
    ]
    shape = 1, len(first), len(second)
    ascent = em.climb((np.full(shape, 1.0 / np.prod(shape)), *softer), max_iter=200)
    return em.best(ascent)


def _fit_one(rows: Rows, starts: _Starts, n_classes: int, random_state) -> Classes:
    em = _ClassEM(rows, [np.ones(len(rows.n_categories), dtype=bool)])
    if n_classes == 1 or not rows.total:
        shares = np.full(n_classes, 1.0 / n_classes)
        value = rows.weights @ rows.one_hot @ np.log(rows.marginals)
        return em.model(shares, [np.tile(rows.marginals, (n_classes, 1))], value)
    state = starts.of(n_classes, random_state)
    for n_steps, n_kept in HEATS:
        ascent = em.climb(state, n_steps)
        best = np.argsort(-ascent.objective, kind="stable")[:n_kept]
        state = tuple(part[best] for part in ascent.state)
    return em.best(em.climb(state, max_iter=300))


class _ClassEM:
    """EM of one or two classes, each with features of its own.

    Several starts run side by side, along the first axis of all arrays of a state: the
    shares of the classes and the tables of each.
    """

    def __init__(self, rows: Rows, sides: Sequence[np.ndarray]):
        self.rows = rows
        self.layouts = [Layout(rows.n_categories[side]) for side in sides]
        columns = [np.repeat(side, rows.n_categories) for side in sides]
        self.one_hot = [rows.one_hot[:, own] for own in columns]
        self.columns = [np.ascontiguousarray(own.T) for own in self.one_hot]
        self.marginals = [rows.marginals[own] for own in columns]

    def climb(self, state: tuple, max_iter: int) -> Ascent:
        """EM from all starts."""
        return climb(
            self.expect,
            self.maximize,
            state,
            tol=TOLERANCE,
            max_iter=max_iter,
            patient=False,
            # Several starts would need leaps of several lengths.
            accelerate=len(state[0]) == 1,
        )

    def expect(self, state: tuple) -> tuple:
        """Log-likelihood of each start, and expected counts."""
        joint, *tables = state
        weights = self.rows.weights
        value, shares = np.zeros(len(joint)), []
        for table, columns in zip(tables, self.columns, strict=True):
            logs = np.log(table).reshape(-1, table.shape[2]) @ columns
            # Classes come before rows: sums over few classes are quick that way.
            logs = logs.reshape(*table.shape[:2], -1)
            peak = logs.max(axis=1, keepdims=True)
            value += peak[:, 0] @ weights
            shares.append(np.exp(np.subtract(logs, peak, out=logs), out=logs))
        first, *second = shares
        # What the other class says of each state, and then of each row.
        through = joint @ second[0] if second else joint[:, :, None]
        weighted = first * through
        sums = weighted.sum(axis=1, keepdims=True)
        value += np.log(sums[:, 0]) @ weights
        scale = weights / sums
        posteriors = [np.multiply(weighted, scale, out=weighted)]
        if second:
            first *= scale
            counts = joint * (first @ second[0].swapaxes(1, 2))
            posteriors.append(second[0] * (joint.swapaxes(1, 2) @ first))
        else:
            counts = weighted.sum(axis=2)
        return value, (
            counts,
            *(
                (own.reshape(-1, len(weights)) @ one_hot).reshape(table.shape)
                for own, one_hot, table in zip(
                    posteriors, self.one_hot, tables, strict=True
                )
            ),
        )

    def maximize(self, _, statistics: tuple) -> tuple:
        """Shares of classes and tables, from expected counts."""
        joint, *counts = statistics
        joint = joint + PSEUDO_COUNT / joint[0].size
        total = joint.sum(axis=tuple(range(1, joint.ndim)), keepdims=True)
        each = zip(self.layouts, counts, self.marginals, strict=True)
        return joint / total, *(
            layout.normalized(count + PSEUDO_COUNT * own) for layout, count, own in each
        )

    def best(self, ascent: Ascent) -> Classes:
        """The only start that is left."""
        joint, *tables = (part[0] for part in ascent.state)
        return self.model(joint, tables, ascent.objective[0])

    def model(self, joint, tables, log_likelihood) -> Classes:
        """The classes with their BIC."""
        each = zip(self.layouts, joint.shape, strict=True)
        n_free = joint.size - 1 + sum(own.n_free(n) for own, n in each)
        bic = bic_score(log_likelihood, n_free, self.rows.total)
        return Classes(joint, tables, float(log_likelihood), bic, self.layouts)


class _Starts:
    """Where EM of one class starts: categories of its strongest features, and noise."""

    def __init__(self, rows: Rows):
        self.rows = rows

    def of(self, n_classes: int, random_state) -> tuple:
        """Shares of classes and tables, of all starts."""
        rows = self.rows
        starts = [self._anchored(merged, n_classes) for merged in self._merged]
        if random_state is not None:
            rng = check_random_state(random_state)
            for _ in range(N_RANDOM):
                noise = rng.gamma(1.0, size=(n_classes, len(rows.marginals)))
                emission = rows.layout.normalized((0.05 + noise) * rows.marginals)
                starts.append((np.full(n_classes, 1.0 / n_classes), emission))
        return tuple(np.array(part) for part in zip(*starts, strict=True))

    @cached_property
    def _merged(self) -> list[list]:
        """For each anchor, its categories and ever fewer of them; see `_joined`."""
        return [self._joined(feature) for feature in self._anchors()]

    def _anchors(self) -> np.ndarray:
        """The features that depend the most on others."""
        rows = self.rows
        strength = mutual_information(rows.counts, rows.n_categories)[0].sum(axis=1)
        # A feature of which nothing is known cannot serve.
        seen = np.add.reduceat(rows.counts.diagonal(), rows.layout.offsets) > 0
        order = np.argsort(-np.where(seen, strength, -np.inf), kind="stable")
        return order[: min(MAX_ANCHORS, int(seen.sum()))]

    def _joined(self, feature: int) -> list[list]:
        """Counts given each category of a feature, joined one by one: all, ..., two."""
        rows = self.rows
        first = rows.layout.offsets[feature]
        block = rows.counts[first : first + rows.n_categories[feature]]
        size = block[:, first : first + len(block)].diagonal()
        found = [list(block[size > 0] + PSEUDO_COUNT * rows.marginals)]
        while len(found[-1]) > 2:
            members = list(found[-1])
            profiles = np.sqrt(rows.layout.normalized(np.array(members)))
            gaps = -2 * profiles @ profiles.T
            gaps[np.tril_indices(len(gaps))] = np.inf
            i, j = np.unravel_index(np.argmin(gaps), gaps.shape)
            members[i] = members[i] + members.pop(int(j))
            found.append(members)
        return found

    def _anchored(self, merged: list[list], n_classes: int) -> tuple:
        """Classes that are the categories of one feature, joined or split to fit."""
        members = list(next((m for m in merged if len(m) <= n_classes), merged[0]))
        while len(members) < n_classes:
            # Split the largest class by a tilt, which EM makes larger if it helps.
            largest = int(np.argmax([row.sum() for row in members]))
            angles = np.arange(len(self.rows.marginals)) * (1.0 + len(members))
            tilt = 1.0 + 0.3 * np.cos(angles)
            half = members[largest] / 2
            members[largest] = half * tilt
            members.append(half * (2.0 - tilt))
        table = np.array(members)
        size = table.sum(axis=1)
        return size / size.sum(), self.rows.layout.normalized(table)


def refined(posterior, values, gap, rows: Rows) -> Ascent:
    """A table of one more feature, from what the others say of the class.

    posterior (n_classes, n_rows), values (n_categories, n_rows), gap 1 where the value
    is missing
    """

    def expect(table):
        joint = posterior * (table @ values + gap)
        likelihood = joint.sum(axis=0)
        return rows.weights @ np.log(likelihood), joint * (rows.weights / likelihood)

    def maximize(_, weighted):
        return normalized(weighted @ values.T + 1e-3)

    start = maximize(None, posterior * rows.weights)
    return climb(expect, maximize, start, tol=TOLERANCE, max_iter=4, patient=False)
