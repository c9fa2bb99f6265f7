"""From rows and a network without classes to one with them, if they are better."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from ..._core.criteria import bic
from .._network import GaussianNetwork
from .._options import SearchOptions
from .._rows import Rows, distinct_rows
from .._statistics import LOG_2_PI, GaussianStatistics, canonical_order
from .._table_margins import Margins, to_scores
from .search import (
    choose_classes,
    comparable,
    first_rows,
    improve_classes,
    looks_mixed,
    much,
)


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
    if n_classes == "auto":
        numbers = None
        sample = comparable(X, weights)
        if sample is None or not looks_mixed(network, sample):
            return None
        fits = network.log_likelihood(sample.X)
        known = bic(sample.sum(fits), network.n_parameters, sample.weight)
    else:
        sample = first_rows(X, weights)
        numbers = [min(int(n_classes), len(sample.X))]
    best = None
    for margins in choices:
        scores = StandardScores.of(sample, margins)
        standard, extra = scores.rows(sample), scores.price(sample)
        if n_classes == "auto" and _is_bound(options):
            known = min(known, saturated_bic(standard) + extra)
        found = choose_classes(
            standard,
            network.adjacency[np.ix_(scores.order, scores.order)],
            scores.options(options),
            numbers,
            min(known, best[0] if best else np.inf) - extra,
        )
        if best is None or found.bic + extra < best[0]:
            best = found.bic + extra, scores, found
    assert best is not None
    criterion, scores, fit = best
    # Overlap is forgiven where classes describe rows much better.
    if criterion + min(fit.overlap, much(sample)) > known:
        return None
    if len(sample.X) < len(X):
        every = scores.rows(Rows(X, weights))
        share = softmax(fit.parameters.log_densities(every), axis=1)
        own = scores.options(options)
        fit = improve_classes(every, share, own, fit.parameters.adjacency)
    return scores.network(fit.parameters.network)


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
    sign, log_det = np.linalg.slogdet(
        GaussianStatistics.of(rows.X, rows.weights).covariance
    )
    n = rows.n_features
    fit = -0.5 * rows.weight * (n * (LOG_2_PI + 1.0) + log_det)
    return bic(fit, n * (n + 3) // 2, rows.weight) if sign > 0 else np.inf


@dataclass(frozen=True, eq=False)
class StandardScores:
    """Scores in standard units, columns in an order that depends on values alone.

    order: numbers of the columns in that order
    centre, scale: units, (n_features,)
    """

    margins: Margins
    order: np.ndarray
    centre: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, rows: Rows, margins: Margins) -> StandardScores:
        """Units and order of the columns of rows."""
        Z = to_scores(margins, rows.X)[0]
        seen = ~np.isnan(Z)
        weights = seen * (1.0 if rows.weights is None else rows.weights[:, None])
        share = weights / np.maximum(weights.sum(axis=0), 1e-300)
        # Seen from one of the values, columns that are far from zero keep digits.
        origin = np.nan_to_num(np.nanmin(Z, axis=0))
        Z = np.where(seen, Z - origin, 0.0)
        mean = (share * Z).sum(axis=0)
        scale = np.sqrt((share * (Z - mean) ** 2).sum(axis=0))
        scale[~(scale > 0.0)] = 1.0
        filled = np.where(seen, (Z - mean) / scale, 0.0)
        order = canonical_order(GaussianStatistics.of(filled, rows.weights))
        return cls(margins, order, origin + mean, scale)

    def rows(self, rows: Rows) -> Rows:
        """Standard scores of rows, in order."""
        Z = (to_scores(self.margins, rows.X)[0] - self.centre) / self.scale
        return Rows(Z[:, self.order], rows.weights)

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
        place = np.argsort(self.order)
        both = np.ix_(place, place)
        ranked = np.argsort(-network.class_weight, kind="stable")
        classes = [network.classes[number] for number in ranked]
        units = self.scale / self.scale[:, None]
        weights = [own.weights[both] * units for own in classes]
        intercept = [
            self.centre - self.centre @ weight + self.scale * own.intercept[place]
            for own, weight in zip(classes, weights, strict=True)
        ]
        return GaussianNetwork(
            network.adjacency[both],
            weights,
            intercept,
            [own.noise_variance[place] * self.scale**2 for own in classes],
            margins=self.margins,
            class_weight=network.class_weight[ranked],
        )
