"""Ordered categories: a logistic variable that thresholds cut."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from .._tables import check_cells

# Steps of Fisher scoring; from the last parameters of EM few are needed.
MAX_STEPS = 50

# A step that gains less than this share of an observation is the last.
TOLERANCE = 1e-9

# Halvings of a step that does not gain.
MAX_HALVINGS = 30


def cumulative_shares(thresholds, location) -> np.ndarray:
    """P(category) of each row, given its location; (n_rows, n_categories)."""
    check_cells((len(thresholds) + 1) * len(location))
    upper, lower = _bounds(thresholds, location)
    # Far above, differences of numbers near 1 would lose their digits.
    above = lower > -upper
    shares = np.where(above, expit(-lower) - expit(-upper), expit(upper) - expit(lower))
    return shares / shares.sum(axis=1, keepdims=True)


def fit_cumulative(counts, thresholds, *effects) -> list[np.ndarray]:
    """Thresholds and effects of the greatest likelihood, by Fisher scoring.

    counts (*levels, n_categories): a row has the sum of one effect of each kind as its
    location, and the first effect of a kind is 0. Thresholds and effects come in as a
    first guess, if they have as many levels.
    """
    *levels, width = counts.shape
    counts = counts.reshape(-1, width)
    places = np.unravel_index(np.arange(len(counts)), levels)
    design = np.concatenate(
        [np.eye(n)[own, 1:] for n, own in zip(levels, places, strict=True)], axis=1
    )
    if [len(own) for own in effects] == levels:
        thresholds = thresholds - sum(own[0] for own in effects)
        weights = np.concatenate([own[1:] - own[0] for own in effects])
    else:
        thresholds, weights = first_thresholds(counts), np.zeros(design.shape[1])
    if width > 1:
        thresholds, weights = _climb(counts, design, thresholds, weights)
    parts = np.split(weights, np.cumsum(levels)[:-1] - np.arange(1, len(levels)))
    return [thresholds, *(np.append(0.0, part) for part in parts)]


def _climb(counts, design, thresholds, weights) -> list[np.ndarray]:
    """Fisher scoring; counts (n_rows, n_categories), design (n_rows, n_weights)."""
    current = np.concatenate([thresholds, weights])
    value = _log_likelihood(counts, design, current)
    for _ in range(MAX_STEPS):
        step = _step(counts, design, current)
        for _ in range(MAX_HALVINGS):
            trial = _log_likelihood(counts, design, current + step)
            if trial >= value:
                break
            step = step / 2
        else:
            break
        gain, value, current = trial - value, trial, current + step
        if gain <= TOLERANCE:
            break
    return np.split(current, [len(thresholds)])


def first_thresholds(counts) -> np.ndarray:
    """Thresholds that all rows together suggest."""
    shares = counts.sum(axis=0) + 1e-3
    return logit(np.cumsum(shares)[:-1] / shares.sum())


def _bounds(thresholds, location):
    """Upper and lower end of each category, relative to the location."""
    cuts = thresholds - np.asarray(location)[:, None]
    ends = np.full((len(cuts), 1), np.inf)
    return np.concatenate([cuts, ends], axis=1), np.concatenate([-ends, cuts], axis=1)


def _log_likelihood(counts, design, parameters) -> float:
    """Log-likelihood, minus infinity if thresholds are not in order."""
    n_cuts = counts.shape[1] - 1
    thresholds = parameters[:n_cuts]
    if (np.diff(thresholds) <= 0).any():
        return -np.inf
    shares = cumulative_shares(thresholds, design @ parameters[n_cuts:])
    seen = counts > 0
    if (shares[seen] <= 0).any():
        return -np.inf
    return float(counts[seen] @ np.log(shares[seen]))


def _step(counts, design, parameters) -> np.ndarray:
    """Expected information, inverted, times the gradient."""
    n_rows, n_values = counts.shape
    n_cuts = n_values - 1
    thresholds, location = parameters[:n_cuts], design @ parameters[n_cuts:]
    shares = np.maximum(cumulative_shares(thresholds, location), 1e-300)
    cuts = thresholds - location[:, None]
    density = expit(cuts) * expit(-cuts)
    slopes = np.zeros((n_rows, n_values, len(parameters)))
    each = np.arange(n_cuts)
    slopes[:, each, each] = density
    slopes[:, each + 1, each] = -density
    falls = -slopes[:, :, :n_cuts].sum(axis=2, keepdims=True)
    slopes[:, :, n_cuts:] = falls * design[:, None]
    gradient = np.einsum("rk,rkp->p", counts / shares, slopes)
    mass = counts.sum(axis=1)[:, None] / shares
    information = np.einsum("rk,rkp,rkq->pq", mass, slopes, slopes)
    # What no row tells stays where it is.
    information += 1e-10 * (1.0 + np.trace(information)) * np.eye(len(parameters))
    return np.linalg.solve(information, gradient)
