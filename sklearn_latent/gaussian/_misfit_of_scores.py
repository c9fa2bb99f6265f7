"""Whether rows follow a Gaussian network: scores, their noise, and drawn gaps."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import norm

from .._answers.diagnosis import Posteriors, Subject
from .._answers.statistics import GRID, NUMBER, SIZE, Mark, row_limit
from .._core.checks import Check, compare_likelihoods, note_certainty
from .._tables.thin import some_rows
from ._conditional import condition
from ._groups import compare_groups
from ._table_margins import (
    atom_columns,
    bent_columns,
    estimated,
    to_scores,
    to_values,
)

# Rows whose latents are inferred where that has no formula.
MOST_INFERRED = 500
# Features that correlate more than this say the same.
SAME = 0.99
# Residuals of this size, in spreads of their column, are lost digits of products, and
# in values of their column, of sums: of exact copies they are 1e-16 of either.
ROUNDING, DIGITS = 1e-8, 1e-14
# Where there is no formula, a Markov chain makes so many steps.
STEPS = 50


def subject_of(network: Any, X, names, latent_names, n_learned=np.inf) -> Subject:
    """Rows in the units of the user, NaN where missing, prepared for a diagnosis.

    n_learned: rows that the network was learned from, so that others may differ by what
        those leave open
    """
    n = network.n_features
    X = X[some_rows(len(X), row_limit(n))]
    few = X if network.is_jointly_gaussian else X[:MOST_INFERRED]
    bent = [j for j, _ in bent_columns(network.margins)]
    scores = to_scores(network.margins, X)[0]
    # Tails of estimated margins are guesses, which gaps must not be drawn from.
    most_extreme = norm.isf(0.5 / len(scores))
    scores[:, bent] = scores[:, bent].clip(-most_extreme, most_extreme)
    Z = complete(network, scores)
    subject = Subject(
        Z[:, np.newaxis],
        partial(_drawn, network),
        [Mark(j, str(names[j]), code) for code in (NUMBER, SIZE) for j in range(n)],
        list(map(str, names)),
        _check_likelihood(network, few),
        n_learned=n_learned,
        bent=bent,
        same=SAME,
    )
    if network.is_jointly_gaussian:
        mean, covariance = (part[:n] for part in network.joint())
        subject.scale = mean, np.sqrt(np.diagonal(covariance))
        subject.noise = partial(_noise, network, mean, covariance[:, :n])
        place = np.argsort([node for node in network.topological_order if node < n])
        subject.before = place[:, None] < place
    subject.others = _groups(
        network, np.where(np.isnan(X), to_values(network.margins, Z), X)
    )
    if network.n_latents:
        subject.others += _certainty(network, scores[: len(few)], latent_names)
    return subject


def _drawn(network, n_rows, rng) -> np.ndarray:
    """Scores of rows of the network without background, (n_rows, 1, n_features)."""
    scores = network._draw(n_rows, rng)[:, : network.n_features]
    return scores[:, np.newaxis]


def _groups(network, X) -> list[Check]:
    """Whether rows form groups, which a single network does not describe."""
    found = compare_groups(network, X)
    if found is None:
        return []
    what = f"{found.n_groups} groups" if found.n_groups > 1 else "a single group"
    ok = found.n_groups < 2 or found.own >= found.mixture
    return [Check("groups", what, found.own, found.mixture, np.nan, ok)]


def _certainty(network, Z, names) -> list[Check]:
    """Share of the variance of each latent that the rows tell."""
    mean, _, variance = network._infer(Z)
    hidden = slice(network.n_features, None)
    return note_certainty(names, Posteriors(mean[:, hidden], variance[:, hidden]).told)


def _check_likelihood(network, X) -> Check:
    """Log-densities of rows against those of columns with independent normal scores."""
    Z, log_slope = to_scores(estimated(network.margins), X)
    known = ~np.isnan(Z)
    some = np.maximum(known.sum(axis=0), 1)
    mean, square = (np.nansum(Z**power, axis=0) / some for power in (1, 2))
    spread = np.sqrt(np.maximum(np.nansum((Z - mean) ** 2, axis=0) / some, 1e-300))
    varies = spread > 1e-9 * np.sqrt(square)
    for column in atom_columns(network.margins):
        mean[column], spread[column] = 0.0, 1.0
    own = norm.logpdf(np.where(known, Z, mean), mean, spread)
    own = np.where(known & varies, own, 0.0).sum(axis=1)
    whole = network.log_likelihood(X)
    if not varies.all():
        # A constant column has no density; what the model says of it does not count.
        whole = whole - network.log_likelihood(np.where(varies, np.nan, X))
    return compare_likelihoods(whole, own + log_slope, 2.0 * varies.sum())


# Noise


def _noise(network, mean, covariance, Z) -> np.ndarray:
    """Standard normal noise of each feature given those before it."""
    spread = np.sqrt(np.diagonal(covariance))
    order = network.topological_order
    order = order[order < len(spread)]
    factor = _root((covariance / np.outer(spread, spread))[np.ix_(order, order)])
    scores = ((Z - mean) / spread)[:, order]
    residuals, scale = np.empty_like(Z), np.empty_like(spread)
    residuals[:, order] = solve_triangular(factor, scores.T, lower=True).T
    scale[order] = np.diagonal(factor)
    # Rounding depends on the processor.
    size = np.abs(residuals * scale * spread).max(axis=0, initial=0.0)
    least = ROUNDING * Z.std(axis=0) + DIGITS * np.abs(Z).max(axis=0, initial=0.0)
    residuals = np.where(size > least, residuals, 0.0)
    # Rows of a background are few, and as far away as any.
    end = GRID[-1] if network.background is not None else np.inf
    return np.clip(residuals, -end, end)


def _root(correlation) -> np.ndarray:
    """Cholesky factor, also where columns repeat each other to the last digit."""
    for ridge in (0.0, 1e-12, 1e-9, 1e-6):
        try:
            return np.linalg.cholesky(correlation + ridge * np.eye(len(correlation)))
        except np.linalg.LinAlgError:
            continue
    return np.eye(len(correlation))


# Missing values


def complete(network, Z) -> np.ndarray:
    """Scores with a draw for each missing one, the same in every order of the rows.

    If the network is right and values are missing at random, completed rows follow it.
    So checks need not know which values were missing, nor what that depends on. Atoms,
    which stand for intervals of scores, are drawn from these.
    """
    missing = np.isnan(Z)
    rows = np.flatnonzero(missing.any(axis=1))
    filled = Z.copy()
    if len(rows):
        rows = rows[np.lexsort(Z[rows].T)]
        drawn = _draw(network, Z[rows], np.random.RandomState(0))
        filled[rows] = np.where(missing[rows], drawn[:, : Z.shape[1]], Z[rows])
    order = np.lexsort(filled.T)
    for column, margin in atom_columns(network.margins).items():
        place = np.random.RandomState(column).random_sample(len(Z))
        filled[order, column] = margin.spread(filled[order, column], place)
    return filled


def _draw_class(network, Z, rng) -> np.ndarray:
    """A class for each row, given what it shows."""
    share = network._shares(Z)
    return (rng.random_sample((len(Z), 1)) > share.cumsum(axis=1)[:, :-1]).sum(axis=1)


def _draw(network, Z, rng) -> np.ndarray:
    """Values of all nodes given some of the features."""
    if network.classes:
        label = _draw_class(network, Z, rng)
        drawn = np.empty((len(Z), network.n_nodes))
        for number, own in enumerate(network.classes):
            members = label == number
            drawn[members] = _draw(own, Z[members], rng)
        return drawn
    if not network.is_jointly_gaussian:
        return _draw_by_steps(network, Z, rng)
    # A row of the network, moved by what others differ in that show other values.
    free = network._draw(len(Z), rng)
    joint = network._joint()
    seen = np.where(np.isnan(Z), np.nan, free[:, : Z.shape[1]])
    return free + condition(joint, Z)[0] - condition(joint, seen)[0]


def _draw_by_steps(network, Z, rng) -> np.ndarray:
    """The same by Metropolis steps, from values that the network has of itself."""
    known = np.pad(~np.isnan(Z), [(0, 0), (0, network.n_latents)])
    values = np.pad(np.nan_to_num(Z), [(0, 0), (0, network.n_latents)])
    nodes = [j for j in network.topological_order.tolist() if not known[:, j].all()]
    for step in range(STEPS):
        for node in nodes:
            free = np.flatnonzero(~known[:, node])
            old = values[free]
            new = old.copy()
            new[:, node] = _draw_node(network, old, node, rng)
            before, after = (network._family_log_likelihoods(v) for v in (old, new))
            log_ratio = (after - before)[:, network.adjacency[node]].sum(axis=1)
            # Nothing is there to stay with at first.
            log_draw = np.log1p(-rng.random_sample(len(free)))
            taken = (log_draw < log_ratio) | (step == 0)
            values[free] = np.where(taken[:, None], new, old)
    return values


def _draw_node(network, values, node, rng) -> np.ndarray:
    """Values of a node given those of its parents."""
    nodes = np.array([node])
    means = network._family_means(values @ network.weights[:, nodes], nodes)
    noise = network._noise
    has_parents = network.adjacency[:, node].any()
    noise, means = (noise, noise.clip(means)) if has_parents else (noise.root, means)
    return noise.draw(means, network.noise_variance[node], rng)[:, 0]
