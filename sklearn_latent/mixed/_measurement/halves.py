"""Guesses at the halves of a group of features that may have two latents."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from .._classes.dependence import mutual_information


def candidate_halves(search, group: frozenset) -> Iterator[frozenset]:
    """Candidates for one half of a group that may have two latents."""
    model = search.one_class(group)
    features = np.array(sorted(group))
    near = np.ix_(features, features)
    rows = search.rows_of(group)
    # What one class leaves unexplained: too little dependence among features of
    # the same latent, too much between those of different ones.
    pairs = (model.emission * model.prior[:, None]).T @ model.emission
    explained = mutual_information(pairs, rows.n_categories)[0]
    residual = search.information[near] - explained
    np.fill_diagonal(residual, 0.0)
    scale = np.sqrt(np.abs(residual).sum(axis=1))
    scale = np.maximum(scale, 1e-12)
    for matrix in (residual, residual / np.outer(scale, scale)):
        values, vectors = np.linalg.eigh(matrix)
        leading = vectors[:, np.argmax(values)]
        yield frozenset(features[leading > 0])
    # A weak latent among strong features.
    strength = search.closeness[near].sum(axis=1)
    order = np.argsort(strength, kind="stable")
    if len(order) >= 4:
        gaps = np.diff(np.log(np.maximum(strength[order], 1e-12)))[1:-1]
        yield frozenset(features[order[: 2 + int(np.argmax(gaps))]])
    for distance in (1.0 - search.closeness[near], _profile_gaps(search, features)):
        np.fill_diagonal(distance, 0.0)
        tree = linkage(squareform(distance, checks=False), "average")
        labels = fcluster(tree, 2, "maxclust")
        yield frozenset(features[labels == 1])


def _profile_gaps(search, features) -> np.ndarray:
    """How far two features are from being related to all others alike.

    Dependence falls by a factor along each edge of a tree, so two features of the
    same latent differ from each other by the same factor towards any third one,
    whatever their quality (Choi et al., 2011, Learning latent tree graphical models).
    """
    near = np.ix_(features, features)
    information, totals = search.information[near], search.totals[near]
    # Noise has a mutual information too, and its logarithm an error of its own.
    free = np.outer(*(2 * [search.rows.n_categories[features] - 1.0]))
    noise = free / (2 * np.maximum(totals, 1.0))
    strength = np.maximum(information - noise, 0.1 * noise + 1e-12)
    logs = np.log(strength)
    errors = (2 * strength / np.maximum(totals, 1.0) + noise**2) / strength**2
    n = len(features)
    gaps = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            others = np.delete(np.arange(n), [j, i])
            weight = 1.0 / (errors[i, others] + errors[j, others] + 0.01)
            shift = logs[i, others] - logs[j, others]
            mean = weight @ shift / weight.sum()
            gaps[i, j] = gaps[j, i] = np.sqrt(
                weight @ (shift - mean) ** 2 / weight.sum()
            )
    return gaps
