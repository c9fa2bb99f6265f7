"""Dependence between discrete variables, from pairwise counts of all at once."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform


def pair_counts(one_hot, weights) -> np.ndarray:
    """Counts of all pairs of categories, (n_columns, n_columns)."""
    return (one_hot * weights[:, None]).T @ one_hot


def mutual_information(counts, n_categories):
    """Mutual information of all pairs of features, also normalised, and row totals."""
    first = np.concatenate([[0], np.cumsum(n_categories)[:-1]]).astype(int)

    def per_pair(values):
        return np.add.reduceat(np.add.reduceat(values, first, axis=0), first, axis=1)

    def to_columns(values, axis):
        return np.repeat(values, n_categories, axis=axis)

    totals = per_pair(counts)
    # Margins of each pair table, which differ between pairs where values are missing.
    by_row = to_columns(np.add.reduceat(counts, first, axis=1), 1)
    by_column = to_columns(np.add.reduceat(counts, first, axis=0), 0)
    all_rows = to_columns(to_columns(totals, 0), 1)
    seen = counts > 0
    ratio = np.ones_like(counts)
    ratio[seen] = (counts * all_rows)[seen] / (by_row * by_column)[seen]
    information = per_pair(counts * np.log(ratio)) / np.maximum(totals, 1e-300)
    # Rounding may leave less than nothing.
    information = np.maximum(information, 0.0)
    entropy = information.diagonal().copy()
    np.fill_diagonal(information, 0.0)
    scale = np.sqrt(np.outer(entropy, entropy))
    normalized = np.divide(
        information, scale, out=np.zeros_like(information), where=scale > 1e-12
    )
    return information, np.minimum(normalized, 1.0), totals


def design_effect(codes, weights) -> np.ndarray:
    """By how much slices of the same sequence count less than separate rows.

    Two features that change slowly agree or disagree over whole sequences, so their
    table looks as if it had more rows than it has. The variance of a correlation of two
    independent series grows by the sum of the products of their autocorrelations
    (Bartlett, 1935), used here with the chance-corrected share of values that stay.

    codes (n, n_slices, n_observed), weights (n,) -> effect (n_observed, n_observed).
    """
    n_slices, n_observed = codes.shape[1:]
    effect = np.ones((n_observed, n_observed))
    chance = np.array([_chance(codes[:, :, j], weights) for j in range(n_observed)])
    for lag in range(1, n_slices):
        early, late = codes[:, :-lag], codes[:, lag:]
        both = (early >= 0) & (late >= 0)
        mass = np.einsum("n,nto->o", weights, both)
        same = np.einsum("n,nto->o", weights, both & (early == late))
        share = np.divide(same, mass, out=chance.copy(), where=mass > 0)
        stay = np.divide(
            share - chance, 1 - chance, out=np.zeros(n_observed), where=chance < 1
        )
        stay = np.maximum(stay, 0.0)
        # What is left of it in long sequences is noise, and takes time.
        if (stay <= 2 / np.sqrt(np.maximum(mass, 4.0))).all():
            break
        effect += 2 * (1 - lag / n_slices) * np.outer(stay, stay)
    return effect


def _chance(column, weights):
    """Probability that two values of a feature agree by chance."""
    known = column >= 0
    if not known.any():
        return 1.0
    mass = np.broadcast_to(weights[:, None], column.shape)[known]
    shares = np.bincount(column[known], mass) / mass.sum()
    return float((shares**2).sum())


def latent_hierarchy(states, cardinality, weights) -> np.ndarray:
    """Complete linkage of latents by one less their normalised mutual information.

    states (n, n_latents), the most probable ones; weights (n,) -> (n_latents - 1, 4).
    """
    shown = [np.eye(n)[own] for n, own in zip(cardinality, states.T, strict=True)]
    counts = pair_counts(np.concatenate(shown, axis=1), weights)
    distance = 1.0 - mutual_information(counts, cardinality)[1]
    np.fill_diagonal(distance, 0.0)
    return linkage(squareform(distance, checks=False), "complete")


def cut_hierarchy(tree, n_groups: int | None) -> np.ndarray:
    """Group of each latent, numbered in order of appearance.

    None: as many groups as are left before the longest step between two unions.
    """
    if not len(tree):
        return np.zeros(1, dtype=int)
    if n_groups is None:
        # The last height is that of latents that are independent.
        steps = np.diff(np.append(tree[:, 2], 1.0))
        n_groups = len(tree) - int(np.argmax(steps))
    # Not fcluster, which SciPy 1.13 does not cut into one group.
    labels = cut_tree(tree, n_groups).ravel()
    _, first, index = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[index]
