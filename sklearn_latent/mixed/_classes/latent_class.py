"""Latent class models by EM.

They work on distinct rows with weights, so that the cost depends on the number of
distinct rows and not on the amount of data. Rows are one-hot: a step of EM is then two
matrix products, and a missing value is a block of zeros, which sums it out exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._core.climb import climb
from ..._core.criteria import bic_score
from ..._core.validation import check_random_state
from .._emissions.layout import Layout
from .._panels.panel import Panel, distinct_rows
from .dependence import mutual_information, pair_counts

# Weight of the prior that pulls a table toward the feature's own distribution. It is
# small enough to leave estimates alone and keeps logarithms finite.
PSEUDO_COUNT = 0.1

# Starts run side by side for some steps, then the best go on: steps, and how many then.
HEATS = ((5, 3), (10, 1))

# Features whose categories serve as starts.
MAX_ANCHORS = 6

# Random starts besides those from the features.
N_RANDOM = 4

# A step that gains less than this many nats ends EM. Decisions hang on differences of
# several nats.
TOLERANCE = 1e-2
MAX_ITER = 300


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
        """Collect distinct rows."""
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

    def thinned(self, n_rows: int) -> Rows:
        """A sample of about as many rows, evenly spaced; the rows if they are fewer."""
        if self.total <= n_rows:
            return self
        ends = np.cumsum(self.weights)
        # Neighbours are alike, so that even steps make a representative sample.
        places = (np.arange(n_rows) + 0.5) / n_rows * ends[-1]
        drawn = np.searchsorted(ends, places)
        weights = np.bincount(drawn, minlength=len(ends)).astype(float)
        return Rows(self.codes[weights > 0], weights[weights > 0], self.n_categories)

    @cached_property
    def layout(self) -> Layout:
        """Where the tables of each feature are, one beside the other."""
        return Layout(self.n_categories)

    def one_hot(self) -> np.ndarray:
        """Rows as zeros and ones, feature after feature."""
        return self.layout.indicators(self.codes).toarray()

    def marginals(self) -> np.ndarray:
        """Distribution of each feature, side by side."""
        counts = self.weights @ self.layout.indicators(self.codes)
        prior = PSEUDO_COUNT / np.repeat(self.n_categories, self.n_categories)
        return self.layout.normalized(counts + prior)


@dataclass(frozen=True)
class LatentClasses:
    """A latent class model: features independent given one hidden class.

    prior: probability of each class, (n_classes,)
    emission: P(category | class), feature after feature, (n_classes, sum(n_categories))
    log_likelihood: of the rows it was fitted to
    bic: log-likelihood less the price of the parameters; higher is better
    """

    prior: np.ndarray
    emission: np.ndarray
    log_likelihood: float
    bic: float

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.prior)

    def tables(self, rows: Rows) -> list[np.ndarray]:
        """P(category | class) of each feature."""
        return rows.layout.split(self.emission)


def fit_classes(rows: Rows, n_classes: int, *, random_state=None) -> LatentClasses:
    """Fit a latent class model; without a random state, from the features alone."""
    return _Fits(rows).fit(n_classes, random_state)


def fit_classes_bic(
    rows: Rows, max_classes: int, *, random_state=None
) -> list[LatentClasses]:
    """Fit latent class models with ever more classes until BIC falls."""
    fits = _Fits(rows)
    models: list[LatentClasses] = []
    for n_classes in range(1, max_classes + 1):
        models.append(fits.fit(n_classes, random_state))
        best = int(np.argmax([model.bic for model in models]))
        # Two classes can lose to one where three would win.
        if len(models) - 1 - best >= (1 if best else 2):
            break
    return models


class _Fits:
    """Models of the same rows.

    Tables have one more column, the prior, as rows have one more of ones, so that a
    step of EM is two matrix products.
    """

    def __init__(self, rows: Rows):
        self.rows = rows
        self.marginals = rows.marginals()
        self._one_hot = np.pad(rows.one_hot(), ((0, 0), (0, 1)), constant_values=1.0)
        self._columns = np.ascontiguousarray(self._one_hot.T)

    def fit(self, n_classes: int, random_state=None) -> LatentClasses:
        """The model with a number of classes."""
        rows, marginals = self.rows, self.marginals
        if n_classes == 1 or not rows.total:
            prior = np.full(n_classes, 1.0 / n_classes)
            value = float((rows.weights @ self._one_hot[:, :-1]) @ np.log(marginals))
            return _model(rows, prior, np.repeat(marginals[None], n_classes, 0), value)
        tables = self._starts(n_classes, random_state)
        for n_steps, n_kept in HEATS:
            short = self._climb(tables, n_steps)
            best = np.argsort(-short.objective, kind="stable")[:n_kept]
            tables = short.state[best]
        ascent = self._climb(tables, MAX_ITER)
        emission, prior = ascent.state[0, :, :-1], ascent.state[0, :, -1]
        return _model(rows, prior, emission, float(ascent.objective[0]))

    def _climb(self, tables, max_iter):
        """EM from several starts side by side.

        The tables have a first axis of starts, as has the objective, the
        log-likelihood.
        """
        weights, one_hot, columns = self.rows.weights, self._one_hot, self._columns
        prior = PSEUDO_COUNT * np.append(self.marginals, 1.0 / tables.shape[1])

        def expect(tables):
            n_starts, n_classes, width = tables.shape
            logs = np.log(tables).reshape(-1, width) @ columns
            # Classes come before rows: sums over few classes are quick that way.
            logs = logs.reshape(n_starts, n_classes, -1)
            peak = logs.max(axis=1, keepdims=True)
            np.exp(np.subtract(logs, peak, out=logs), out=logs)
            sums = logs.sum(axis=1, keepdims=True)
            value = (np.log(sums) + peak)[:, 0] @ weights
            weighted = np.multiply(logs, weights / sums, out=logs)
            counts = weighted.reshape(-1, len(one_hot)) @ one_hot
            return value, counts.reshape(tables.shape)

        def maximize(_, counts):
            counts = counts + prior
            counts[..., :-1] = self.rows.layout.normalized(counts[..., :-1])
            counts[..., -1] /= counts[..., -1].sum(axis=1, keepdims=True)
            return counts

        return climb(
            expect,
            maximize,
            tables,
            tol=TOLERANCE,
            max_iter=max_iter,
            patient=False,
            # Several starts would need leaps of several lengths.
            accelerate=len(tables) == 1,
        )

    def _starts(self, n_classes, random_state) -> np.ndarray:
        """Starting points: the categories of each of the strongest features, noise."""
        starts = [
            _anchor(self.rows, merged, self.marginals, n_classes)
            for merged in self._merged
        ]
        if random_state is not None:
            rng = check_random_state(random_state)
            for _ in range(N_RANDOM):
                noise = rng.gamma(1.0, size=(n_classes, len(self.marginals)))
                emission = (0.05 + noise) * self.marginals
                prior = np.full(n_classes, 1.0 / n_classes)
                starts.append((prior, self.rows.layout.normalized(emission)))
        return np.array([np.column_stack([table, prior]) for prior, table in starts])

    @cached_property
    def _counts(self) -> np.ndarray:
        """Counts of all pairs of categories."""
        return pair_counts(self._one_hot[:, :-1], self.rows.weights)

    @cached_property
    def _merged(self) -> list[list]:
        """For each anchor, its categories and ever fewer of them; see `_joined`."""
        return [
            _joined(self.rows, self._counts, self.marginals, feature)
            for feature in self._anchors
        ]

    @cached_property
    def _anchors(self) -> np.ndarray:
        """The features that depend the most on others."""
        counts, rows = self._counts, self.rows
        strength = mutual_information(counts, rows.n_categories)[0].sum(axis=1)
        # A feature of which nothing is known cannot serve.
        seen = np.add.reduceat(counts.diagonal(), rows.layout.offsets) > 0
        order = np.argsort(-np.where(seen, strength, -np.inf), kind="stable")
        return order[: min(MAX_ANCHORS, int(seen.sum()))]


def _joined(rows, counts, marginals, feature) -> list[list]:
    """Counts given each category of a feature, joined one by one: all, ..., two."""
    first = rows.layout.offsets[feature]
    block = counts[first : first + rows.n_categories[feature]]
    size = block[:, first : first + len(block)].diagonal()
    found = [list(block[size > 0] + PSEUDO_COUNT * marginals)]
    while len(found[-1]) > 2:
        members = list(found[-1])
        profiles = np.sqrt(rows.layout.normalized(np.array(members)))
        gaps = -2 * profiles @ profiles.T
        gaps[np.tril_indices(len(gaps))] = np.inf
        i, j = np.unravel_index(np.argmin(gaps), gaps.shape)
        members[i] = members[i] + members.pop(int(j))
        found.append(members)
    return found


def _anchor(rows, merged, marginals, n_classes):
    """Classes that are the categories of one feature, joined or split to fit."""
    members = list(next((m for m in merged if len(m) <= n_classes), merged[0]))
    while len(members) < n_classes:
        # Split the largest class by a tilt, which EM makes larger if it helps.
        largest = int(np.argmax([row.sum() for row in members]))
        tilt = 1.0 + 0.3 * np.cos(np.arange(len(marginals)) * (1.0 + len(members)))
        half = members[largest] / 2
        members[largest] = half * tilt
        members.append(half * (2.0 - tilt))
    table = np.array(members)
    prior = table.sum(axis=1)
    return prior / prior.sum(), rows.layout.normalized(table)


def _model(rows, prior, emission, value) -> LatentClasses:
    n_classes = len(prior)
    n_free = n_classes - 1 + rows.layout.n_free(n_classes)
    return LatentClasses(prior, emission, value, bic_score(value, n_free, rows.total))
