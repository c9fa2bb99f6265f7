"""Rows in groups: whether a mixture describes them better than a network."""

from __future__ import annotations

import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import entr
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from .._core.choose import grow
from .._core.criteria import bic
from .._core.warn import warn
from ..exceptions import ModelMisfitWarning
from ._atom_margins import ConstantMargin
from ._gaussian_network import GaussianNetwork
from ._margin_fit import few_values, ordered_sample
from ._rows import Rows, distinct_rows
from ._table_margins import atom_columns

MOST_GROUPS = 8
# Groups that matter show in these; 100 columns x 4,000 rows would double the time.
MOST_ROWS = 1000
# Rows per column below which no groups are tried, and rows in all: parameters of groups
# cost more there than groups can gain, and fits to few rows should be fast.
FEWEST_PER_COLUMN = 5
FEWEST_ROWS = 40
# Share of rows that must be different. Others are resamples or counts, on whose values
# mixtures have spikes.
DIFFERENT = 0.9


def warn_groups(network: GaussianNetwork, rows: Rows) -> bool:
    """Warn if rows of a network that cannot have classes form groups."""
    if rows.has_gaps:
        return False
    found = compare_groups(network, rows.X, rows.weights)
    # A single one is better only where edges were forbidden or cost too much.
    if found is not None and found.n_groups > 1 and found.mixture > found.own:
        gain = (found.mixture - found.own) / network.n_features
        warn(
            f"A mixture of {found.n_groups} normal distributions describes the rows "
            f"better than the network, by {gain:.2g} nats per value (BIC). Either "
            "they form groups, which latents and edges then stand for: max_latents=0 "
            'allows for classes of rows. Or responses are curved: try link="sigmoid".',
            ModelMisfitWarning,
        )
        return True
    return False


class Groups(NamedTuple):
    """A network beside a mixture; log-likelihoods per row, less the BIC's penalty."""

    n_groups: int
    own: float
    mixture: float


def compare_groups(network: GaussianNetwork, X, weights=None) -> Groups | None:
    """Compare a linear network with the best mixture of complete rows.

    None if rows are too few, or too many of them repeat others.
    """
    if not network.is_jointly_gaussian or atom_columns(network.margins):
        return None
    constant = [isinstance(m, ConstantMargin) for m in network.margins or ()]
    varies = ~np.array(constant or [False] * network.n_features)
    rows = comparable(X, weights, varies)
    if rows is None:
        return None
    n_groups, mixture = best_mixture(rows.X[:, varies])
    fit, n_rows = network.log_likelihood(rows.X).sum(), len(rows.X)
    own = bic(fit, network.n_parameters, n_rows)
    return Groups(n_groups, -0.5 * own / n_rows, -0.5 * mixture / n_rows)


def comparable(X, weights, varies) -> Rows | None:
    """Rows by which a number of groups can be chosen; None if there are no such.

    varies: columns that are not constant by themselves, (n_features,)
    """
    X, weights = distinct_rows(X, weights)
    if len(X) < max(FEWEST_ROWS, FEWEST_PER_COLUMN * X.shape[1]) or not varies.any():
        return None
    if (weights == weights.min()).mean() < DIFFERENT:
        return None
    few = X[:, varies & few_values(X)].T
    if any(len(np.unique(column)) < 2 * MOST_GROUPS for column in few):
        return None  # groups would have spikes on their values as well
    rows = first_rows(X, weights)
    return rows if (np.nanstd(rows.X[:, varies], axis=0) > 0.0).all() else None


def first_rows(X, weights) -> Rows:
    """Some of the rows, drawn by their values, whatever their order."""
    X, weights = ordered_sample(X, weights)
    return Rows(X[:MOST_ROWS], weights[:MOST_ROWS])


def best_mixture(X) -> tuple[int, float]:
    """Number of components and completed BIC of the best mixture of rows."""
    scale = X.std(axis=0)
    standard = (X - X.mean(axis=0)) / scale
    found = []
    with warnings.catch_warnings():
        # A mixture that is not quite fitted is rated too low, which does no harm.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for kind in ("full", "diag"):
            growth = grow(
                partial(_mixture, standard, kind),
                range(1, MOST_GROUPS + 1),
                partial(completed_bic, X=standard),
            )
            found.append((min(growth.costs), int(growth.size)))
    criterion, n_groups = min(found)
    return n_groups, criterion + 2.0 * len(X) * float(np.log(scale).sum())


def _mixture(X, kind: str, n_groups: int) -> GaussianMixture:
    """A mixture of standardised rows, none of whose components is a spike."""
    mixture = GaussianMixture(
        n_groups, covariance_type=kind, reg_covar=1e-4, random_state=0
    )
    return mixture.fit(X)


def completed_bic(mixture, X) -> float:
    """BIC of a mixture plus twice the entropy of its components (Biernacki, 2000).

    Components that overlap describe heavy tails or bent columns, not groups.
    """
    share = mixture.predict_proba(X)
    return float(mixture.bic(X) + 2.0 * entr(share).sum())
