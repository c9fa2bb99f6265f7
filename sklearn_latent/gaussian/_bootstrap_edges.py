"""How sure edges are: shares of bootstrap fits that have them."""

from __future__ import annotations

import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from .._core.graphs import equivalence_class
from ..exceptions import LatentWarning
from ._options import is_linear, parse_constraints


def bootstrap_shares(model, X, draws, n_jobs) -> np.ndarray:
    """Share of bootstrap fits that have each edge; draws (n_bootstraps, n_samples)."""
    fits = Parallel(n_jobs=n_jobs)(
        delayed(_bootstrap_edges)(model, X, weights) for weights in draws
    )
    return np.mean(fits, axis=0)


def _bootstrap_edges(model, X, weights) -> np.ndarray:
    """Edges between features in a fit to a bootstrap sample.

    Where data cannot tell the direction of an edge, either one counts a half.
    """
    with warnings.catch_warnings():
        # A resample may well lack what the data have.
        warnings.simplefilter("ignore", LatentWarning)
        fitted = clone(model).fit(X, sample_weight=weights)
    n = fitted.n_features_in_
    edges = fitted.adjacency_[:n, :n]
    if not is_linear(fitted) or fitted.n_latents_ > 0:
        return edges.astype(float)
    forbidden, required = parse_constraints(
        fitted.forbidden, fitted.required, fitted.node_names_[:n].tolist()
    )
    np.fill_diagonal(forbidden, False)
    bound = forbidden | forbidden.T | required | required.T
    pattern = equivalence_class(edges)
    open_edges = pattern & pattern.T & ~bound
    return np.where(open_edges, 0.5, edges)
