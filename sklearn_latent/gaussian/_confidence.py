"""How sure edges are: bootstrap fits, and what their shares are worth."""

from __future__ import annotations

import warnings

import numpy as np
from joblib import Parallel, delayed
from scipy.special import ndtr, ndtri
from sklearn.base import clone

from .._graphs import equivalence_class
from ..exceptions import LatentWarning
from ._options import is_linear
from ._parameters import parse_constraints

# Confidence in a pair by the share of fits that join it, both as normal quantiles.
# Fits to bootstrap samples doubt true edges near the threshold of the extended BIC,
# the more the fewer rows and features there are. Probit regression over 74 random
# networks (degree 1 to 4 and scale-free; normal, exponential and t errors; weights of
# four sizes) of these numbers of rows and features;
# benchmarks/gaussian_confidence.py checks it on others.
OFFSET, SLOPE = 0.58, 1.35
BY_ROWS, BY_FEATURES = -0.20, -0.22
ROWS, FEATURES = (60, 1500), (8, 24)
# Shares closer to 0 and 1 say nothing more.
SMALLEST_SHARE = 0.005


def bootstrap_shares(model, X, draws, n_jobs) -> np.ndarray:
    """Share of bootstrap fits that have each edge; draws (n_bootstraps, n_samples)."""
    fits = Parallel(n_jobs=n_jobs)(
        delayed(_bootstrap_edges)(model, X, weights, False) for weights in draws
    )
    return np.mean([edges for edges, _ in fits], axis=0)


def bootstrap_confidence(model, X, draws, n_jobs) -> np.ndarray:
    """Probability of each edge by bootstrap fits, calibrated where that is known."""
    fits = Parallel(n_jobs=n_jobs)(
        delayed(_bootstrap_edges)(model, X, weights, True) for weights in draws
    )
    edges, known = zip(*fits, strict=True)
    shares = np.mean(edges, axis=0)
    return calibrated(shares, draws.shape[1]) if all(known) else shares


def _bootstrap_edges(model, X, weights, by_class) -> tuple[np.ndarray, bool]:
    """Edges between features in a fit to a bootstrap sample.

    By class, where data cannot tell the direction of an edge, either one counts a half.
    Also returns whether shares of such fits can be calibrated.
    """
    with warnings.catch_warnings():
        # A resample may well lack what the data have.
        warnings.simplefilter("ignore", LatentWarning)
        fitted = clone(model).fit(X, sample_weight=weights)
    n = fitted.n_features_in_
    edges = fitted.adjacency_[:n, :n]
    directed = not is_linear(fitted) or fitted.n_latents_ > 0
    if directed or not by_class:
        return edges.astype(float), False
    forbidden, required = parse_constraints(
        fitted.forbidden, fitted.required, fitted.node_names_[:n].tolist()
    )
    np.fill_diagonal(forbidden, False)
    bound = forbidden | forbidden.T | required | required.T
    pattern = equivalence_class(edges)
    open_edges = pattern & pattern.T & ~bound
    return np.where(open_edges, 0.5, edges), fitted.penalty_ == "ebic"


def calibrated(shares, n_rows: int) -> np.ndarray:
    """Probabilities of edges from the shares of bootstrap fits that have them.

    Of the pair as a whole by how often it is joined; its directions keep their odds.
    """
    pair = shares + shares.T
    score = ndtri(np.clip(pair, SMALLEST_SHARE, 1.0 - SMALLEST_SHARE))
    # Seen from 250 rows and 12 features.
    offset = OFFSET + BY_ROWS * np.log(np.clip(n_rows, *ROWS) / 250)
    offset += BY_FEATURES * np.log(np.clip(len(shares), *FEATURES) / 12)
    quantile = offset + SLOPE * score
    probability = np.where(pair > 0.0, ndtr(quantile), 0.0)
    return probability * shares / np.where(pair > 0.0, pair, 1.0)
