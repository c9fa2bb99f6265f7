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

# Offset, slope and bend of the confidence in a pair by the share of fits that join it,
# both as normal quantiles. Fits to bootstrap samples doubt true edges near the
# threshold of the extended BIC: of pairs with a share of .6 to .8, 91% are true edges.
# Probit regression over 104 random networks of 8 to 24 variables, 60 to 800 rows;
# benchmarks/gaussian_confidence.py checks it on others.
OFFSET, SLOPE, BEND = 0.49, 1.42, 0.13
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
    return calibrated(shares) if all(known) else shares


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


def calibrated(shares) -> np.ndarray:
    """Probabilities of edges from the shares of bootstrap fits that have them.

    Of the pair as a whole by how often it is joined; its directions keep their odds.
    """
    pair = shares + shares.T
    score = ndtri(np.clip(pair, SMALLEST_SHARE, 1.0 - SMALLEST_SHARE))
    quantile = OFFSET + (SLOPE + BEND * score) * score
    probability = np.where(pair > 0.0, ndtr(quantile), 0.0)
    return probability * shares / np.where(pair > 0.0, pair, 1.0)
