"""From what was read of the rows to a network with its margins and classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._classes.learn import learn_classes
from ._learn import (
    choose_search,
    extend_network,
    learn_network,
    log_likelihood,
    restrict_network,
)
from ._margins.columns import Margins
from ._margins.estimate import estimate_margins
from ._margins.sample import ScoredRows, SeenRows, rank_statistics, score
from ._missing.structural_em import LearnedNetwork
from ._network import GaussianNetwork
from ._options import SearchOptions
from ._reading import (
    adds_up,
    seeks_classes,
    wanted_margins,
    warn_degenerate,
    warn_few_rows,
    warn_unseen,
    warn_without_noise,
)
from ._statistics.rows import Rows, RowStatistics


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit found.

    network: with names, margins and classes
    learned: the search for it
    options: which search, and which penalty
    log_likelihood: of all rows, whose weights sum to `weight`
    is_exact: whether that is more than an estimate
    scored: sums of scores of the rows; None if these do not add up
    """

    network: GaussianNetwork
    learned: LearnedNetwork
    options: SearchOptions
    log_likelihood: float
    weight: float
    is_exact: bool
    scored: ScoredRows | None


def fit_rows(
    estimator, rows: Rows | SeenRows | ScoredRows, options: SearchOptions, names, again
) -> Fit:
    """Margins, a network of the scores, and classes of rows if these are wanted.

    again: blocks that can be read again, or None
    """
    data: Rows | RowStatistics
    if isinstance(rows, ScoredRows):
        margins = estimator.network_.margins
        data, log_slope = rows.statistics, rows.log_slope
    else:
        margins = estimate_margins(wanted_margins(estimator), rows, names)
        data, log_slope = score(rows, margins, again)
    seen, known = _seen_features(estimator, data, names)
    options = choose_search(options.restricted(seen))
    ranked = rank_statistics(rows, margins) if isinstance(rows, SeenRows) else None
    learned = learn_network(known, options, ranked)
    warn_degenerate(known, learned.network, np.array(names)[seen])
    warn_few_rows(data.weight, learned.network)
    network = extend_network(learned.network, np.flatnonzero(seen), names)
    estimated = network.n_latents > 0 or (isinstance(data, Rows) and data.has_gaps)
    is_exact = network.is_jointly_gaussian or not estimated
    fitted = log_likelihood(network, data) + log_slope
    network = network.with_margins(margins)
    scored = None if isinstance(data, Rows) else ScoredRows(data, log_slope)
    if not isinstance(rows, ScoredRows):
        mixed = _with_classes(estimator, rows, network, seen, options)
        if mixed is not None:
            (network, fitted), scored = mixed, None
    return Fit(network, learned, options, fitted, data.weight, is_exact, scored)


def _seen_features(
    estimator, data: Rows | RowStatistics, names
) -> tuple[np.ndarray, Rows | RowStatistics]:
    """Which features have a value, with a warning of the others; data of these."""
    if not isinstance(data, Rows):
        return np.ones(len(names), dtype=bool), data
    seen = ~np.isnan(data.X).all(axis=0)
    warn_unseen(seen, names)
    known = data.columns(seen)
    if adds_up(estimator) and not known.has_gaps:
        return seen, RowStatistics.of(known.X, known.weights)
    return seen, known


def _with_classes(
    estimator,
    rows: Rows | SeenRows,
    network: GaussianNetwork,
    seen,
    options: SearchOptions,
) -> tuple[GaussianNetwork, float] | None:
    """Network with classes of rows and its log-likelihood; None if without is best."""
    if not seeks_classes(estimator) or not seen.any():
        return None
    if isinstance(rows, SeenRows):
        assert rows.sample is not None  # kept for this
        rows = rows.sample.rows
    known = restrict_network(network, seen)
    choices: list[Margins] = [known.margins]
    if wanted_margins(estimator) == "auto" and known.margins is not None:
        choices.append(None)
    own = rows.columns(seen)
    found = learn_classes(own, known, options, estimator.n_classes, choices)
    if found is None:
        return None
    # Within classes: however far these are apart, it is no noise that they lack.
    each = [np.diagonal(part.joint()[1]) for part in found.classes]
    spread = found.class_weight @ np.array(each)
    warn_without_noise(spread, found, np.array(network.node_names)[seen])
    mixed = extend_network(found, np.flatnonzero(seen), network.node_names)
    return mixed, rows.sum(mixed.log_likelihood(rows.X))
