"""How many classes rows belong to, and the graph that these share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr
from sklearn.cluster import KMeans

from ..._core.criteria import bic
from .._conditional import condition
from .._greedy import greedy_search
from .._margin_fit import few_values, ordered_sample
from .._network import GaussianNetwork
from .._options import SearchOptions
from .._rows import Rows, distinct_rows
from .._rules import search_by_price
from .._statistics import standardise
from .._table_margins import to_scores
from .em import ClassMoments, ClassParameters, fit_classes
from .evaluator import ClassEvaluator

MOST_CLASSES = 8
# Numbers of classes in a row that are no better, before the search ends.
PATIENCE = 2
# Nats per value that are much: no further class makes up for so many behind what is
# known, and classes ahead by so many may overlap.
MUCH = 0.05
# Searches for a graph and fits of classes in turn.
MAX_ROUNDS = 3
# Squared distance of a row from a group, in mean squared distances within groups, from
# which it counts less there.
FAR = 100.0
# Classes that matter show in so many rows.
MOST_ROWS = 1000
# Rows per column below which no classes are tried, and rows in all: parameters of
# classes cost more there than classes can gain, and fits to few rows should be fast.
FEWEST_PER_COLUMN = 5
FEWEST_ROWS = 40
# Share of rows that must be different. Others are resamples or counts, on whose values
# classes have spikes.
DIFFERENT = 0.9
# Different values of a column, below which classes have spikes on them as well.
FEWEST_VALUES = 2 * MOST_CLASSES
# Standard errors between densities of rows and what a network expects of them, from
# which classes are tried: 2.4 in one of 90 random networks and at most 1.8 in the
# others, at least 2.9 in ten real tables.
SUSPECT = 1.5
LEAST_AWAY = 0.15
# The same for the moments of the leading principal components: at most 2.2 in 60 random
# networks, 2.8 and more in five parts of a table of penguins of three species.
N_COMPONENTS = 2
PEAKED = 2.5
# The same for squares of errors that depend on other errors: at most 2.0 in 40 random
# networks, 93 to 100 in five parts of a table of earthquakes along an arc.
DEPENDENT = 4.0


@dataclass(frozen=True, eq=False)
class ClassFit:
    """Classes of rows.

    bic: by which their number is chosen
    overlap: twice the entropy of the classes of rows. With it the BIC tells classes
        from heavy tails or bent columns (Biernacki, Celeux and Govaert, 2000)
    """

    parameters: ClassParameters
    bic: float
    overlap: float


def comparable(X, weights) -> Rows | None:
    """Rows by which a number of classes can be chosen; None if there are no such."""
    X, weights = distinct_rows(X, weights)
    if len(X) < max(FEWEST_ROWS, FEWEST_PER_COLUMN * X.shape[1]):
        return None
    if (weights == weights.min()).mean() < DIFFERENT:
        return None
    n_values = np.array([len(np.unique(column)) for column in X[:, few_values(X)].T])
    if (n_values < FEWEST_VALUES).any():
        return None
    rows = first_rows(X, weights)
    return rows if (np.nanstd(rows.X, axis=0) > 0.0).all() else None


def first_rows(X, weights) -> Rows:
    """Some of the rows, drawn by their values, whatever their order."""
    X, weights = ordered_sample(X, weights)
    return Rows(X[:MOST_ROWS], weights[:MOST_ROWS])


def looks_mixed(network: GaussianNetwork, rows: Rows) -> bool:
    """Whether rows are so unlike those of a network that classes are worth a search.

    Distances of rows of normal scores from their mean are chi-squared, with as many
    degrees of freedom as values are known; and no principal component has two peaks.
    """
    Z = to_scores(network.margins, rows.X)[0]
    n_known = (~np.isnan(Z)).sum(axis=1)
    # Of all ways to fill in a row, its expectation is the nearest to the mean, as near
    # as the known values alone are.
    Z = condition(network._joint(), Z)[0] if rows.has_gaps else Z
    Z, n_known = Z[n_known > 0], n_known[n_known > 0]
    errors = (Z - network.conditional_means(Z)) / np.sqrt(network.noise_variance)
    distance = ((errors**2).sum(axis=1) - n_known) / np.sqrt(2.0 * n_known)
    error = np.sqrt((2.0 + 12.0 / n_known.mean()) / len(Z))
    away = abs(distance.var() - 1.0)
    if away > max(SUSPECT * error, LEAST_AWAY) or max(_peaks(Z)) > PEAKED:
        return True
    if _dependence(errors[n_known == Z.shape[1]]) > DEPENDENT:
        return True
    # Margins make one peak of several, and skewed columns symmetric.
    return network.margins is not None and _peaks(rows.X)[1] > PEAKED


def _peaks(Z) -> tuple[float, float]:
    """How skewed, and how flat, leading principal components are, as groups make them.

    In standard errors.
    """
    Z = Z - np.nanmean(Z, axis=0)
    Z = np.nan_to_num(Z / np.maximum(np.nanstd(Z, axis=0), 1e-300))
    leading = Z @ np.linalg.eigh(Z.T @ Z)[1][:, -N_COMPONENTS:]
    leading /= np.maximum(leading.std(axis=0), 1e-300)
    skewness = np.abs((leading**3).mean(axis=0)) * np.sqrt(len(Z) / 6.0)
    flatness = (3.0 - (leading**4).mean(axis=0)) * np.sqrt(len(Z) / 24.0)
    return float(skewness.max()), float(flatness.max())


def _dependence(errors) -> float:
    """How squares of errors depend on other errors and their squares, as in groups.

    All squared correlations together are chi-squared; in standard errors.
    """
    n_rows, n = errors.shape
    if n_rows < FEWEST_ROWS or n < 2:
        return 0.0
    squares = errors**2
    both = np.hstack([errors, squares])
    both = (both - both.mean(axis=0)) / np.maximum(both.std(axis=0), 1e-300)
    found = (both[:, n:].T @ both / n_rows) ** 2
    found[:, :n][np.eye(n, dtype=bool)] = 0.0
    total = n_rows * (found[:, :n].sum() + np.triu(found[:, n:], 1).sum())
    degrees = 1.5 * n * (n - 1)
    return float((total - degrees) / np.sqrt(2.0 * degrees))


def choose_classes(
    rows: Rows, adjacency, options: SearchOptions, numbers=None, known=np.inf
) -> ClassFit:
    """Best of some numbers of classes.

    adjacency: graph to begin with
    known: BIC that has been reached in another way
    """
    best, n_worse = None, 0
    hopeless = known + much(rows)
    for n_classes in numbers or range(2, MOST_CLASSES + 1):
        share = _first_shares(rows, n_classes)
        found = improve_classes(rows, share, options, adjacency)
        adjacency = found.parameters.adjacency
        if best is None or found.bic < best.bic:
            best, n_worse = found, 0
        else:
            n_worse += 1
        if n_worse == PATIENCE or best.bic > hopeless:
            break
    assert best is not None
    return best


def improve_classes(rows: Rows, share, options: SearchOptions, adjacency) -> ClassFit:
    """Search for a graph and fit classes to it in turn, from P(class) of each row."""
    # Columns in standard units have the mean 0.
    filled = Rows(np.nan_to_num(rows.X), rows.weights) if rows.has_gaps else rows
    moments = ClassMoments.of(filled, share, None)
    best = None
    for _ in range(MAX_ROUNDS):
        found = _search_graph(moments, adjacency, options)
        if best is not None and (found == adjacency).all():
            break
        adjacency = found
        parameters, share, fitted = fit_classes(rows, adjacency, moments)
        moments = ClassMoments.of(rows, share, parameters)
        overlap = 2.0 * rows.sum(entr(share).sum(axis=1))
        fit = ClassFit(parameters, class_bic(parameters, rows, fitted), overlap)
        if best is None or fit.bic < best.bic:
            best = fit
    assert best is not None
    return best


def class_bic(parameters: ClassParameters, rows: Rows, fitted: float) -> float:
    """BIC of classes that share a graph, from their log-likelihood."""
    n_classes, n_nodes = parameters.intercept.shape
    each = 2 * n_nodes + int(parameters.adjacency.sum())
    return bic(fitted, n_classes * each + n_classes - 1, rows.weight)


def much(rows: Rows) -> float:
    """Difference of BIC that is much."""
    return 2.0 * MUCH * rows.weight * rows.n_features


def _first_shares(rows: Rows, n_classes) -> np.ndarray:
    """P(class) of each row to begin with, by k-means.

    Groups overlap a little, less the farther they are apart: what they add to the
    spread of each other is no more than that itself.
    """
    means = KMeans(n_classes, n_init=1, random_state=0)
    distance = means.fit_transform(np.nan_to_num(rows.X), sample_weight=rows.weights)
    away = distance**2 * rows.weight / max(means.inertia_, 1e-300)
    share = 0.02 / n_classes * np.minimum(1.0, FAR / np.maximum(away, 1e-300))
    own = means.labels_[:, None] == np.arange(n_classes)
    share[own] = 0.0
    share[own] = 1.0 - share.sum(axis=1)
    return share


def _search_graph(moments: ClassMoments, adjacency, options) -> np.ndarray:
    """Improve a graph by the scores of all classes together."""
    evaluator = ClassEvaluator([standardise(own)[0] for own in moments.statistics])
    rules = options.rules(evaluator.weight)
    penalty = options.penalties(evaluator.weight)[0]
    rules = replace(rules, progress=options.progress)
    result = search_by_price(greedy_search, evaluator, penalty, rules, adjacency)
    return result.adjacency
