"""Hidden classes of rows: how many, the graph that they share, parameters of each.

Structural EM in which the class of each row is not observed. Each class has its own
weights, intercepts and noise variances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import entr, logsumexp, softmax
from sklearn.cluster import KMeans

from .._core.choose import Growth, grow
from .._core.climb import climb
from .._core.criteria import bic
from ._conditional import IncompleteData, condition, expected_statistics
from ._editing import Units
from ._families import Family
from ._gaussian_network import GaussianNetwork
from ._greedy import greedy_search
from ._groups import FEWEST_ROWS, MOST_GROUPS, comparable, first_rows
from ._linear_scores import JITTER, LinearEvaluator
from ._options import SearchOptions
from ._rows import Rows, distinct_rows
from ._rules import MoveEvaluator, search_by_price
from ._statistics import (
    LOG_2_PI,
    NOISE_SHARE,
    GaussianStatistics,
    standardise,
)
from ._structural_em import learn
from ._table_margins import Margins, to_scores

# Nats per value that are much: no further class makes up for so many behind what is
# known, and classes ahead by so many may overlap.
MUCH = 0.05
# Rows of the mean covariance within classes that are added to that of each class, so
# that a class of few rows does not collapse (Fraley and Raftery, 2007, Journal of
# Classification 24). Five or ten predict olives worse, other tables alike.
PRIOR_ROWS = 2.0
# Squared distance of a row from a group, in mean squared distances within groups, from
# which it counts less there.
FAR = 100.0
# Standard errors of the moments of leading principal components from which classes are
# tried: at most 2.2 in 60 random networks, 2.8 and more in five parts of a table of
# penguins of three species.
PEAKED = 2.5
# The same for squares of errors that depend on other errors: at most 2.0 in 40 random
# networks, 93 to 100 in five parts of a table of earthquakes along an arc.
DEPENDENT = 4.0


class ClassFit(NamedTuple):
    """Classes of rows.

    shares: P(class) of each row, (n_rows, n_classes)
    bic: by which their number is chosen
    """

    network: GaussianNetwork
    shares: np.ndarray
    bic: float

    def overlap(self, rows: Rows) -> float:
        """Twice the entropy of the classes of rows.

        With it the BIC tells classes from heavy tails or bent columns (Biernacki,
        Celeux and Govaert, 2000).
        """
        return 2.0 * rows.sum(entr(self.shares).sum(axis=1))


def learn_classes(
    rows: Rows,
    network: GaussianNetwork,
    options: SearchOptions,
    n_classes: int | str,
    choices: list[Margins],
) -> GaussianNetwork | None:
    """Network with classes of rows; None if one class is as good.

    network: without classes
    n_classes: their number, or "auto"
    choices: margins of which the best are taken
    """
    X, weights = distinct_rows(rows.X, rows.weights)
    known = np.inf
    sizes: Sequence[int] = range(2, MOST_GROUPS + 1)
    if n_classes == "auto":
        sample = comparable(X, weights, np.ones(X.shape[1], dtype=bool))
        if sample is None or not looks_mixed(network, sample):
            return None
        fits = network.log_likelihood(sample.X)
        known = bic(sample.sum(fits), network.n_parameters, sample.weight)
    else:
        sample = first_rows(X, weights)
        sizes = [min(int(n_classes), len(sample.X))]
    best = None
    for margins in choices:
        scores = Scores(sample, margins)
        standard, extra = scores.rows(sample), scores.price(sample)
        if n_classes == "auto" and _is_bound(options):
            known = min(known, saturated_bic(standard) + extra)
        found = choose_classes(
            standard,
            scores.options(options),
            network.adjacency[np.ix_(scores.order, scores.order)],
            sizes,
            min(known, best[0] if best else np.inf) - extra,
        )
        if best is None or found.bic + extra < best[0]:
            best = found.bic + extra, scores, standard, found
    assert best is not None
    criterion, scores, standard, fit = best
    # Overlap is forgiven where classes describe rows much better.
    if criterion + min(fit.overlap(standard), much(sample)) > known:
        return None
    if len(sample.X) < len(X):
        every = scores.rows(Rows(X, weights))
        share = softmax(fit.network._class_log_densities(every.X), axis=1)
        graph = fit.network.adjacency
        fit = ClassSearch(every, scores.options(options)).run(share, graph)
    return scores.network(fit.network)


def much(rows: Rows) -> float:
    """Difference of BIC that is much."""
    return 2.0 * MUCH * rows.weight * rows.n_features


def _is_bound(options: SearchOptions) -> bool:
    """Whether a network may lack edges that rows ask for."""
    free = options.max_parents is None and options.penalty in ("ebic", 1.0)
    return not free or bool(options.forbidden.sum() > len(options.forbidden))


def saturated_bic(rows: Rows) -> float:
    """BIC of a normal distribution; infinity for rows with gaps, or collinear columns.

    Classes must not stand for edges that a network was not allowed to have.
    """
    if rows.has_gaps:
        return np.inf
    statistics = GaussianStatistics.of(rows.X, rows.weights)
    sign, log_det = np.linalg.slogdet(statistics.covariance)
    n = rows.n_features
    fit = -0.5 * rows.weight * (n * (LOG_2_PI + 1.0) + log_det)
    return bic(fit, n * (n + 3) // 2, rows.weight) if sign > 0 else np.inf


class Scores(Units):
    """Scores of columns with margins, in standard units and an order of their own."""

    def __init__(self, rows: Rows, margins: Margins):
        own = Units.of(to_scores(margins, rows.X)[0], rows.weights)
        super().__init__(own.order, own.centre, own.scale)
        self.margins = margins

    def rows(self, rows: Rows) -> Rows:
        """Standard scores of rows."""
        return Rows(self.scores(to_scores(self.margins, rows.X)[0]), rows.weights)

    def options(self, options: SearchOptions) -> SearchOptions:
        """Options of a search over the ordered columns."""
        return replace(options.restricted(self.order), initial=None)

    def price(self, rows: Rows) -> float:
        """What margins and units add to a criterion of standard scores."""
        units = (~np.isnan(rows.X)) @ np.log(self.scale)
        log_slope = rows.sum(to_scores(self.margins, rows.X)[1] - units)
        n_parameters = sum(margin.n_parameters for margin in self.margins or ())
        return bic(log_slope, n_parameters, rows.weight)

    def network(self, network: GaussianNetwork) -> GaussianNetwork:
        """Network of the columns from that of standard scores; largest class first."""
        network = super().network(network)
        ranked = np.argsort(-network.class_weight, kind="stable")
        weights, intercept, noise = (own[ranked] for own in network._parameters)
        return GaussianNetwork(
            network.adjacency,
            weights,
            intercept,
            noise,
            margins=self.margins,
            class_weight=network.class_weight[ranked],
        )


def looks_mixed(network: GaussianNetwork, rows: Rows) -> bool:
    """Whether rows are so unlike those of a network that classes are worth a search.

    A principal component has two peaks, or squares of errors depend on other errors.
    """
    Z = to_scores(network.margins, rows.X)[0]
    complete = ~np.isnan(Z).any(axis=1)
    if rows.has_gaps:
        Z = condition(network._joint(), Z)[0]
    errors = (Z - network.conditional_means(Z)) / np.sqrt(network.noise_variance)
    if max(_peaks(Z)) > PEAKED or _dependence(errors[complete]) > DEPENDENT:
        return True
    # Margins make one peak of several, and skewed columns symmetric.
    return network.margins is not None and _peaks(rows.X)[1] > PEAKED


def _peaks(Z) -> tuple[float, float]:
    """How skewed, and how flat, two leading principal components are: as groups are.

    In standard errors.
    """
    Z = Z - np.nanmean(Z, axis=0)
    Z = np.nan_to_num(Z / np.maximum(np.nanstd(Z, axis=0), 1e-300))
    leading = Z @ np.linalg.eigh(Z.T @ Z)[1][:, -2:]
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
    rows: Rows, options: SearchOptions, adjacency, sizes, known=np.inf
) -> ClassFit:
    """Best of some numbers of classes.

    adjacency: graph to begin with; the next number begins with what was found
    known: BIC that has been reached in another way
    """
    search = ClassSearch(rows, options)

    def fit(n_classes: int) -> ClassFit:
        nonlocal adjacency
        found = search.run(first_shares(rows, n_classes), adjacency)
        adjacency = found.network.adjacency
        return found

    def is_hopeless(growth: Growth[ClassFit]) -> bool:
        return min(growth.costs) > known + much(rows)

    return grow(fit, sizes, lambda found: found.bic, is_hopeless=is_hopeless).best


def first_shares(rows: Rows, n_classes: int) -> np.ndarray:
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


class ClassSearch:
    """Structural EM for the classes of rows in standard units."""

    def __init__(self, rows: Rows, options: SearchOptions):
        self.rows, self.options = rows, options

    def run(self, share, adjacency) -> ClassFit:
        """Search for a graph and fit classes to it in turn, from P(class) of rows."""
        moments = self.statistics(share, None)
        graph = self.graph(moments, adjacency)
        start = class_network(moments, graph)
        return learn(
            start, self.fit, self.search, lambda found: -found.bic, max_rounds=2
        )

    def fit(self, start: GaussianNetwork) -> ClassFit:
        """Parameters by EM."""
        rows = self.rows

        def expect(network):
            log_densities = network._class_log_densities(rows.X)
            fitted = rows.sum(logsumexp(log_densities, axis=1))
            return fitted, softmax(log_densities, axis=1)

        def maximise(network, share):
            return class_network(self.statistics(share, network), network.adjacency)

        ascent = climb(
            expect,
            maximise,
            start,
            tol=1e-4 * rows.weight,
            max_iter=100,
            patient=False,
            accelerate=True,
        )
        network, fitted = ascent.state, float(ascent.objective)
        criterion = bic(fitted, network.n_parameters, rows.weight)
        return ClassFit(network, ascent.statistics, criterion)

    def search(self, found: ClassFit) -> GaussianNetwork | None:
        """Classes of a better graph, by what is expected of each."""
        before = found.network.adjacency
        moments = self.statistics(found.shares, found.network)
        graph = self.graph(moments, before)
        return None if (graph == before).all() else class_network(moments, graph)

    def graph(self, moments: list[GaussianStatistics], adjacency) -> np.ndarray:
        """Improve a graph by the scores of all classes together."""
        evaluator = ClassEvaluator([standardise(own)[0] for own in moments])
        rules = self.options.rules(evaluator.weight)
        rules = replace(rules, progress=self.options.progress)
        penalty = self.options.penalties(evaluator.weight)[0]
        return search_by_price(
            greedy_search, evaluator, penalty, rules, adjacency
        ).adjacency

    def statistics(
        self, share, before: GaussianNetwork | None
    ) -> list[GaussianStatistics]:
        """Statistics of each class; covariances are drawn to their mean.

        share: P(class) of each row, (n_rows, n_classes)
        before: what missing values are expected by; None takes their mean, 0
        """
        rows = self.rows
        # Groups may be 1e8 times as far apart as they are wide, and squares of these
        # distances must not count.
        weights = np.maximum(share, 1e-30).T
        if rows.weights is not None:
            weights = weights * rows.weights
        if before is None or not rows.has_gaps:
            X = np.nan_to_num(rows.X)
            each = [GaussianStatistics.of(X, own) for own in weights]
        else:
            each = [
                expected_statistics(own._joint(), IncompleteData.of(rows.X, weight))[0]
                for own, weight in zip(before.classes, weights, strict=True)
            ]
        pooled = sum(own.scatter for own in each) / sum(own.weight for own in each)
        return [
            replace(
                own,
                scatter=(own.scatter + PRIOR_ROWS * pooled)
                * (own.weight / (own.weight + PRIOR_ROWS)),
            )
            for own in each
        ]


def class_network(moments: list[GaussianStatistics], adjacency) -> GaussianNetwork:
    """Most probable parameters of each class; one call per node solves all of them."""
    size = np.array([own.weight for own in moments])
    mean = np.array([own.mean for own in moments])
    covariance = np.array([own.scatter for own in moments]) / size[:, None, None]
    variance = np.einsum("kii->ki", covariance)
    # A column that is constant within classes has nothing but rounding errors.
    scale = np.sqrt(np.where(variance > 1e-24, variance, NOISE_SHARE))
    correlation = covariance / (scale[:, :, None] * scale[:, None, :])
    weights, left = np.zeros_like(correlation), np.ones_like(scale)
    for child in np.flatnonzero(adjacency.any(axis=0)):
        parents = np.flatnonzero(adjacency[:, child])
        common = correlation[:, parents, child]
        block = correlation[:, parents[:, None], parents]
        block = block + JITTER * np.eye(len(parents))
        beta = np.linalg.solve(block, common[:, :, None])[:, :, 0]
        weights[:, parents, child] = beta * scale[:, [child]] / scale[:, parents]
        left[:, child] -= np.einsum("kp,kp->k", beta, common)
    intercept = mean - np.einsum("ki,kij->kj", mean, weights)
    noise = np.maximum(left, NOISE_SHARE) * scale**2
    return GaussianNetwork._linear(
        adjacency, weights, intercept, noise, class_weight=size / size.sum()
    )


class ClassEvaluator(MoveEvaluator):
    """Sums of the scores of all classes; every class pays for its parameters."""

    def __init__(self, statistics: Sequence[GaussianStatistics]):
        self.parts = [LinearEvaluator(own) for own in statistics]
        self.n_nodes = statistics[0].n_nodes
        self.weight = sum(own.weight for own in statistics)
        self.set_costs(None, 0.0)

    def set_costs(self, parameter_cost: float | None, edge_cost) -> None:
        """Prices of the parameters of a class, and of edges on top."""
        super().set_costs(parameter_cost, edge_cost)
        for part in self.parts:
            part.set_costs(self.parameter_cost, self.edge_costs / len(self.parts))

    def family_score(self, child: int, parents: tuple[int, ...]) -> float:
        """Score of one family."""
        return sum(part.family_score(child, parents) for part in self.parts)

    def move_scores(
        self, families: Sequence[Family], allowed, children, room: Sequence[bool]
    ) -> list[np.ndarray]:
        """Scores of families after each of their moves."""
        each = [
            part.move_scores(families, allowed, children, room) for part in self.parts
        ]
        return [np.sum(scores, axis=0) for scores in zip(*each, strict=True)]
