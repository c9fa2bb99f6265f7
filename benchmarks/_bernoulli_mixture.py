"""Mixture of Bernoullis (latent classes): the alternative on 0/1 tables."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

# Numbers of classes that are tried, and how many of them without a gain end the trial.
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
PATIENCE = 2

# Average rows that are added to every class. One is usual; words need more.
SMOOTHING = (1.0, 3.0, 10.0)


class BernoulliMixture:
    """Mixture of Bernoullis by EM, smoothed by average rows added to every class."""

    def __init__(self, n_classes, pseudo=1.0, *, max_iter=300, tol=1e-5):
        self.n_classes, self.pseudo = n_classes, pseudo
        self.max_iter, self.tol = max_iter, tol

    def fit(self, X):
        """Keep the best of several starts from random rows."""
        rows, counts = np.unique(np.asarray(X), axis=0, return_counts=True)
        rows, rng = rows.astype(float), np.random.RandomState(0)
        # Few classes have bad local optima, many only take long.
        n_init = np.clip(40 // self.n_classes, 1, 5)
        starts = [self._climb(rows, counts, rng) for _ in range(n_init)]
        _, self.weight_, self.rate_ = max(starts, key=lambda start: start[0])
        return self

    def _climb(self, rows, counts, rng):
        """Objective per row, weights and rates at the end of EM."""
        n, k = counts.sum(), self.n_classes
        mean = (counts @ rows + 0.5) / (n + 1)
        seeds = rows[rng.choice(len(rows), k, p=counts / n)]
        weight, rate = np.full(k, 1 / k), 0.25 * seeds + 0.75 * mean
        last = -np.inf
        for _ in range(self.max_iter):
            joint = _log_joint(rows, weight, rate)
            total = logsumexp(joint, axis=1, keepdims=True)
            # The smoothing is a prior, so that its logarithm is part of the objective.
            prior = np.log(rate) @ mean + np.log1p(-rate) @ (1 - mean)
            value = (counts @ total[:, 0] + self.pseudo * prior.sum()) / n
            if value - last < self.tol:
                break
            last = value
            shares = np.exp(joint - total) * counts[:, None]
            size = shares.sum(axis=0)
            weight = (size + 1e-9) / (size + 1e-9).sum()
            sums = shares.T @ rows + self.pseudo * mean
            rate = np.clip(sums / (size[:, None] + self.pseudo), 1e-9, 1 - 1e-9)
        return value, weight, rate

    def score(self, X):
        """Mean log-likelihood per row."""
        joint = _log_joint(np.asarray(X, dtype=float), self.weight_, self.rate_)
        return float(logsumexp(joint, axis=1).mean())


def _log_joint(rows, weight, rate):
    """Log P(row, class), of shape (n_rows, n_classes)."""
    off = np.log1p(-rate)
    return rows @ (np.log(rate) - off).T + off.sum(axis=1) + np.log(weight)


def best_mixture(X, X_judge, smoothing=SMOOTHING):
    """The mixture that other rows prefer, over numbers of classes and smoothing."""
    models = [_best_size(X, X_judge, pseudo) for pseudo in smoothing]
    return max(models, key=lambda model: model.score(X_judge))


def _best_size(X, X_judge, pseudo):
    """The number of classes that other rows prefer; ends when scores fall."""
    best, top, failures = None, -np.inf, 0
    for n_classes in SIZES:
        model = BernoulliMixture(n_classes, pseudo).fit(X)
        score = model.score(X_judge)
        if score > top:
            best, top, failures = model, score, 0
        else:
            failures += 1
        if failures == PATIENCE or 4 * n_classes > len(X):
            break
    return best


def validated_mixture(X, X_fit, X_valid, smoothing=SMOOTHING):
    """The mixture that validation rows prefer, fitted again to all training rows."""
    chosen = best_mixture(X_fit, X_valid, smoothing)
    return BernoulliMixture(chosen.n_classes, chosen.pseudo).fit(X)
