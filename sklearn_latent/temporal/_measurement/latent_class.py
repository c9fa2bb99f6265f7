"""Latent class models by EM.

They work on distinct rows with weights, so that the cost depends on the number of
distinct rows and not on the amount of data. Rows are one-hot: a step of EM is then two
matrix products, and a missing value is a block of zeros, which sums it out exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .dependence import mutual_information

__all__ = [
    "LatentClasses",
    "Rows",
    "fit_classes",
    "fit_classes_bic",
]

# Weight of the prior that pulls a table toward the feature's own distribution. It is
# small enough to leave estimates alone and keeps logarithms finite.
PSEUDO_COUNT = 0.1

# Steps in which all starts run side by side before the best goes on alone.
SHORT_RUN = 15

# Features whose categories serve as starts.
MAX_ANCHORS = 6

# Random starts besides those from the features.
N_RANDOM = 4

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
        """Collect distinct rows.

        codes (n_rows, n_features), weights (n_rows,), n_categories (n_features,).
        """
        n_categories = np.asarray(n_categories, dtype=np.int64)
        codes = np.asarray(codes)
        seen = (codes >= 0).any(axis=1) & (weights > 0)
        codes, weights = codes[seen], np.asarray(weights, dtype=float)[seen]
        if np.log2(n_categories + 1.0).sum() < 62:
            # One number per row is quicker to sort than the rows themselves.
            place = np.cumprod(np.concatenate([[1], n_categories[:-1] + 1]))
            key = (codes.astype(np.int64) + 1) @ place
            _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
            weights = np.bincount(inverse.ravel(), weights, minlength=len(first))
            codes = codes[first]
        return cls(codes, weights, n_categories)

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

    def one_hot(self) -> np.ndarray:
        """Rows as zeros and ones, feature after feature."""
        codes = self.codes
        table = np.zeros((len(codes), int(self.n_categories.sum())))
        rows, columns = np.nonzero(codes >= 0)
        table[rows, self.offsets[columns] + codes[rows, columns]] = 1.0
        return table

    @property
    def offsets(self) -> np.ndarray:
        """First column of each feature in `one_hot`."""
        return np.concatenate([[0], np.cumsum(self.n_categories)[:-1]]).astype(int)

    def marginals(self, one_hot) -> np.ndarray:
        """Distribution of each feature, side by side."""
        counts = self.weights @ one_hot + PSEUDO_COUNT / np.repeat(
            self.n_categories, self.n_categories
        )
        return self.normalized(counts)

    def normalized(self, counts) -> np.ndarray:
        """Scale the block of each feature, along the last axis, to sum to one."""
        sums = np.add.reduceat(counts, self.offsets, axis=-1)
        return counts / np.repeat(sums, self.n_categories, axis=-1)


@dataclass(frozen=True)
class LatentClasses:
    """A latent class model: features independent given one hidden class.

    prior: probability of each class, (n_classes,)
    emission: P(category | class), feature after feature, (n_classes, sum(n_categories))
    log_likelihood: of the rows it was fitted to
    bic: Log-likelihood minus half the number of parameters times the logarithm of the
        number of rows; higher is better
    """

    prior: np.ndarray
    emission: np.ndarray
    log_likelihood: float
    bic: float

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.prior)

    def log_joint(self, one_hot) -> np.ndarray:
        """Log-probability of each row together with each class."""
        return one_hot @ np.log(self.emission).T + np.log(self.prior)

    def posterior(self, one_hot) -> np.ndarray:
        """P(class | row)."""
        return _softmax(self.log_joint(one_hot))[0]


def fit_classes(
    rows: Rows, n_classes: int, *, start=None, random_state=None, max_iter=300
) -> LatentClasses:
    """Fit a latent class model."""
    one_hot = rows.one_hot()
    marginals = rows.marginals(one_hot)
    if n_classes == 1:
        prior, emission = np.ones(1), marginals[None]
        value = float((rows.weights @ one_hot) @ np.log(marginals))
        return LatentClasses(prior, emission, value, _bic(rows, value, prior, emission))
    if start is None:
        prior, emission = _starts(rows, one_hot, marginals, n_classes, random_state)
        prior, emission, values = _climb(
            rows, one_hot, marginals, prior, emission, SHORT_RUN
        )
        best = np.argmax(values)
        prior, emission = prior[best, None], emission[best, None]
    else:
        prior, emission = start.prior[None], start.emission[None]
    prior, emission, values = _climb(
        rows, one_hot, marginals, prior, emission, max_iter
    )
    value = float(values[0])
    return LatentClasses(
        prior[0], emission[0], value, _bic(rows, value, prior[0], emission[0])
    )


def fit_classes_bic(
    rows: Rows, max_classes: int, *, random_state=None, max_iter=300
) -> list[LatentClasses]:
    """Fit latent class models with ever more classes until BIC falls."""
    models: list[LatentClasses] = []
    for n_classes in range(1, max_classes + 1):
        models.append(
            fit_classes(rows, n_classes, random_state=random_state, max_iter=max_iter)
        )
        bics = [model.bic for model in models]
        # One class too few can lose to none at all, so look past the first fall.
        if len(models) - 1 - int(np.argmax(bics)) >= 2:
            break
    return models


def _climb(rows, one_hot, marginals, prior, emission, max_iter):
    """EM from several starts side by side.

    Arrays have a first axis of starts; the values returned are the log-likelihoods of
    the parameters returned.
    """
    n_starts, n_classes, width = emission.shape
    columns = np.ascontiguousarray(one_hot.T)
    values = np.full(n_starts, -np.inf)
    best = prior, emission, values
    for _ in range(max_iter):
        logs = np.log(emission.reshape(-1, width)) @ columns
        logs = logs.reshape(n_starts, n_classes, -1) + np.log(prior)[:, :, None]
        # Classes come before rows: sums over few classes are quick that way.
        peak = logs.max(axis=1, keepdims=True)
        np.exp(np.subtract(logs, peak, out=logs), out=logs)
        sums = logs.sum(axis=1, keepdims=True)
        new_values = (np.log(sums) + peak)[:, 0] @ rows.weights
        best = prior, emission, new_values
        if (new_values - values < TOLERANCE).all():
            break
        values = new_values
        weighted = np.multiply(logs, rows.weights / sums, out=logs)
        counts = weighted.reshape(-1, len(one_hot)) @ one_hot
        counts = counts.reshape(emission.shape) + PSEUDO_COUNT * marginals
        emission = rows.normalized(counts)
        prior = weighted.sum(axis=2) + PSEUDO_COUNT / n_classes
        prior = prior / prior.sum(axis=1, keepdims=True)
    return best


def _starts(rows, one_hot, marginals, n_classes, random_state):
    """Starting points: the categories of each of the strongest features, and noise."""
    counts = (one_hot * rows.weights[:, None]).T @ one_hot
    strength = _dependence(rows, counts).sum(axis=1)
    order = np.argsort(-strength, kind="stable")[:MAX_ANCHORS]
    priors, emissions = [], []
    for feature in order:
        prior, emission = _anchor(rows, counts, marginals, feature, n_classes)
        priors.append(prior)
        emissions.append(emission)
    if random_state is not None:
        for _ in range(N_RANDOM):
            noise = random_state.gamma(1.0, size=(n_classes, len(marginals)))
            emissions.append(rows.normalized(0.05 * marginals + noise * marginals))
            priors.append(np.full(n_classes, 1.0 / n_classes))
    return np.array(priors), np.array(emissions)


def _anchor(rows, counts, marginals, feature, n_classes):
    """Classes that are the categories of one feature, joined or split to fit."""
    first = rows.offsets[feature]
    block = counts[first : first + rows.n_categories[feature]]
    size = block[:, first : first + len(block)].diagonal()
    block = block[size > 0] + PSEUDO_COUNT * marginals
    members = list(block)
    while len(members) > n_classes:
        profiles = np.sqrt(rows.normalized(np.array(members)))
        gaps = -2 * profiles @ profiles.T
        gaps[np.tril_indices(len(gaps))] = np.inf
        i, j = np.unravel_index(np.argmin(gaps), gaps.shape)
        members[i] = members[i] + members.pop(int(j))
    while len(members) < n_classes:
        # Split the largest class by a tilt, which EM makes larger if it helps.
        largest = int(np.argmax([row.sum() for row in members]))
        tilt = 1.0 + 0.3 * np.cos(np.arange(len(marginals)) * (1.0 + len(members)))
        half = members[largest] / 2
        members[largest] = half * tilt
        members.append(half * (2.0 - tilt))
    table = np.array(members)
    prior = table.sum(axis=1)
    return prior / prior.sum(), rows.normalized(table)


def _dependence(rows, counts):
    """Mutual information of all pairs of features, in nats, with a zero diagonal."""
    return mutual_information(counts, rows.n_categories)[0]


def _bic(rows, value, prior, emission):
    """Log-likelihood less half the number of parameters times log n."""
    n_classes = len(prior)
    n_free = n_classes - 1 + n_classes * int((rows.n_categories - 1).sum())
    return value - 0.5 * n_free * np.log(max(rows.total, 2.0))


def _softmax(logs):
    """Scale to sum to one along the last axis; also the logarithms of the sums."""
    peak = logs.max(axis=-1, keepdims=True)
    weights = np.exp(logs - peak)
    sums = weights.sum(axis=-1, keepdims=True)
    return weights / sums, (peak + np.log(sums))[..., 0]
