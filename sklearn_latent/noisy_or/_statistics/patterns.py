"""Data as distinct rows with weights, and structures as independent components.

Likelihood, EM and standard errors need each distinct row only once, and latents that
share no feature, directly or through others, never meet in one formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..._core.validation import is_whole


class Patterns(NamedTuple):
    """Distinct binary rows and how often each occurs.

    on: which features are on, (n_patterns, n_features)
    observed: which features are known; None if all are, (n_patterns, n_features)
    weights: summed weight of the rows that show the pattern, always positive,
        (n_patterns,)
    squares: the same of their squared weights; None if weights are counts
    """

    on: np.ndarray
    observed: np.ndarray | None
    weights: np.ndarray
    squares: np.ndarray | None = None

    @classmethod
    def of(cls, rows, weights=None) -> Patterns:
        """Collapse binary rows."""
        if rows.dtype == bool:
            return cls._collapse(rows, None, weights, squares_of(weights))
        missing = np.isnan(rows) if rows.dtype.kind == "f" else None
        observed = None if missing is None or not missing.any() else ~missing
        # NaN == 1 is False, so that a missing feature is never on.
        return cls._collapse(rows == 1, observed, weights, squares_of(weights))

    @classmethod
    def of_codes(cls, on, observed, n_features, weights=None, squares=None) -> Patterns:
        """Collapse rows whose features are bits.

        on, observed (n_samples, ceil(n_features / 8)), weights, squares (n_samples,).
        """
        codes = on if observed is None else np.hstack([on, observed])
        codes, totals, squares = _sum_by_code(codes, weights, squares)
        width = on.shape[1]
        shown = np.unpackbits(codes[:, :width], axis=1, count=n_features).astype(bool)
        known = None
        if observed is not None:
            known = np.unpackbits(codes[:, width:], axis=1, count=n_features)
            known = None if known.all() else known.astype(bool)
        return cls(shown, known, totals, squares)

    @classmethod
    def merge(cls, parts) -> Any:
        """Join patterns of blocks of rows, without those that are None, if any."""
        parts = [part for part in parts if part is not None]
        if not parts:
            return None
        on = np.concatenate([part.on for part in parts])
        observed = None
        if any(part.observed is not None for part in parts):
            observed = np.concatenate([part.known for part in parts])
        weights = [part.weights for part in parts]
        squares = join_squares([part.squares for part in parts], weights)
        return cls._collapse(on, observed, np.concatenate(weights), squares)

    def __add__(self, other) -> Patterns:
        return Patterns.merge([self, other])

    @classmethod
    def _collapse(cls, on, observed, weights, squares=None):
        known = None if observed is None else np.packbits(observed, axis=1)
        on, width = np.packbits(on, axis=1), on.shape[1]
        return cls.of_codes(on, known, width, weights, squares)

    @property
    def copies(self) -> np.ndarray:
        """Number of rows that show each pattern, effective where not counted."""
        if self.squares is None:
            return self.weights
        return np.rint(self.weights**2 / self.squares)

    @property
    def known(self) -> np.ndarray:
        """The mask of known features as an array, whether all are known or not."""
        return np.ones_like(self.on) if self.observed is None else self.observed

    def by_component(self, structure) -> Iterator[tuple[Component, Patterns]]:
        """Components of a structure, each with the patterns of its features."""
        parts = components(structure)
        for part in parts:
            yield part, self if len(parts) == 1 else self.select(part.features)

    def turn(self, polarity) -> Patterns:
        """Columns of polarity -1 read as their opposite, and back again."""
        return self._replace(on=turn(self.on, self.observed, polarity))

    def take(self, rows) -> Patterns:
        """Some of the rows."""
        observed = None if self.observed is None else self.observed[rows]
        squares = None if self.squares is None else self.squares[rows]
        return Patterns(self.on[rows], observed, self.weights[rows], squares)

    def select(self, features) -> Patterns:
        """Patterns of some of the features."""
        observed = None if self.observed is None else self.observed.take(features, 1)
        on = self.on.take(features, axis=1)
        return self._collapse(on, observed, self.weights, self.squares)


def squares_of(weights) -> np.ndarray | None:
    """Squared weights of rows, unless they are counts."""
    return None if weights is None or is_whole(weights) else np.square(weights)


def join_squares(squares, weights) -> np.ndarray | None:
    """Squared weights of several tables; those that have none are counts."""
    if all(own is None for own in squares):
        return None
    pairs = zip(squares, weights, strict=True)
    return np.concatenate([count if own is None else own for own, count in pairs])


def turn(on, observed, polarity):
    """Which features are on, if columns of polarity -1 are read as their opposite."""
    flipped = polarity < 0
    if not flipped.any():
        return on
    # What is missing is never on, however it is read.
    return on ^ (flipped if observed is None else flipped & observed)


def _sum_by_code(codes, weights, squares):
    """Distinct rows of bytes, in order, and the weight of each if it has any."""
    # One opaque item per row sorts an order of magnitude faster than axis=0.
    keys: np.ndarray = np.zeros(len(codes))
    if codes.shape[1]:
        keys = np.ascontiguousarray(codes).view(f"V{codes.shape[1]}").ravel()
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    group = group.ravel()
    totals = np.bincount(group, weights=weights, minlength=len(first))
    present = np.flatnonzero(totals > 0)
    if squares is not None:
        squares = np.bincount(group, weights=squares, minlength=len(first))[present]
    return codes[first[present]], totals[present].astype(np.float64), squares


class Component(NamedTuple):
    """A connected component of a structure: indices of its latents and features."""

    latents: np.ndarray
    features: np.ndarray


def components(structure) -> list[Component]:
    """Split a structure into parts that share no edge."""
    edges = sparse.coo_array(structure)
    n_latents, n_features = edges.shape
    n_nodes = n_latents + n_features
    graph = sparse.coo_array(
        (np.ones(edges.nnz), (edges.coords[0], edges.coords[1] + n_latents)),
        shape=(n_nodes, n_nodes),
    )
    n_parts, labels = connected_components(graph, directed=False)
    has_latent = np.zeros(n_parts, dtype=bool)
    has_latent[labels[:n_latents]] = True
    # Features without parents are independent of everything: one part for them all.
    labels = np.where(has_latent[labels], labels, n_parts)
    order = np.argsort(labels, kind="stable")
    breaks = np.flatnonzero(np.diff(labels[order])) + 1
    parts = [
        Component(nodes[nodes < n_latents], nodes[nodes >= n_latents] - n_latents)
        for nodes in np.split(order, breaks)
    ]
    return [part for part in parts if len(part.latents) or len(part.features)]
