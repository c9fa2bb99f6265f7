"""Two hidden classes that depend on each other, by EM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._latent_class import PSEUDO_COUNT, TOLERANCE, Rows

__all__ = ["LatentPair", "fit_pair"]


@dataclass(frozen=True)
class LatentPair:
    """Two dependent hidden classes, each with features of its own.

    Attributes
    ----------
    joint : ndarray of shape (n_first, n_second)
        Joint distribution of the two classes.

    first, second : ndarray of shape (n_classes, sum(n_categories))
        P(category | class) of the features of each.

    log_likelihood, bic : float
        As in `LatentClasses`.
    """

    joint: np.ndarray
    first: np.ndarray
    second: np.ndarray
    log_likelihood: float
    bic: float


def fit_pair(rows: Rows, in_first, first, second, *, max_iter=200) -> LatentPair:
    """Fit two hidden classes that depend on each other.

    Parameters
    ----------
    rows : Rows
        Data of the features of both.

    in_first : ndarray of bool of shape (n_features,)
        Which features belong to the first class; the others belong to the second.

    first, second : ndarray of shape (n_classes, sum(n_categories))
        P(category | class) of the features of each, to begin with.

    max_iter : int, default=200
        Limit of the number of steps.

    Returns
    -------
    model : LatentPair
        The fit.
    """
    columns = np.repeat(in_first, rows.n_categories)
    one_hot = rows.one_hot()
    tables = [np.ascontiguousarray(one_hot[:, side].T) for side in (columns, ~columns)]
    # Only the numbers of categories of these matter, to scale tables.
    parts = [
        Rows(rows.codes[:, side], rows.weights, rows.n_categories[side])
        for side in (in_first, ~in_first)
    ]
    priors = [
        PSEUDO_COUNT * part.marginals(table.T)
        for part, table in zip(parts, tables, strict=True)
    ]
    emission = [first, second]
    joint = np.full((len(first), len(second)), 1.0 / (len(first) * len(second)))
    previous = -np.inf
    for _ in range(max_iter):
        # Classes come first in all arrays: sums over few classes are quick that way.
        logs = [np.log(e) @ table for table, e in zip(tables, emission, strict=True)]
        peaks = [log.max(axis=0) for log in logs]
        a, b = (np.exp(log - peak) for log, peak in zip(logs, peaks, strict=True))
        from_a, from_b = joint.T @ a, joint @ b
        likelihood = (from_a * b).sum(axis=0)
        value = rows.weights @ (np.log(likelihood) + peaks[0] + peaks[1])
        if value - previous < TOLERANCE:
            break
        previous = value
        share = rows.weights / likelihood
        a = a * share
        joint_counts = joint * (a @ b.T)
        posteriors = a * from_b, b * from_a * share
        joint = joint_counts + PSEUDO_COUNT / joint_counts.size
        joint /= joint.sum()
        emission = [
            part.normalized(posterior @ table.T + prior)
            for part, posterior, table, prior in zip(
                parts, posteriors, tables, priors, strict=True
            )
        ]
    n_free = joint.size - 1
    for part, e in zip(parts, emission, strict=True):
        n_free += len(e) * int((part.n_categories - 1).sum())
    bic = float(value) - 0.5 * n_free * np.log(max(rows.total, 2.0))
    return LatentPair(joint, emission[0], emission[1], float(value), bic)
