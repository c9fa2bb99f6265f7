"""The two-slice graph of a latent dynamic Bayesian network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from .._core.graphs import is_acyclic
from .._core.persistence import Array, Persistent
from .._core.validation import check_numbers


@dataclass(frozen=True, eq=False)
class TemporalGraph(Persistent):
    """Which features each latent measures, and how latents cause each other in time.

    Parameters
    ----------
    structure : array-like of bool of shape (n_latents, n_observed)
        True where a latent is the parent of a feature of its own slice.
    intra : array-like of bool of shape (n_latents, n_latents)
        Edges within a slice: ``[i, j]`` and not ``[j, i]`` is i -> j, both are an
        undirected edge. The directed edges have no cycle.
    inter : array-like of bool of shape (n_latents, n_latents)
        ``[i, j]`` is an edge from latent i at slice t to latent j at slice t + 1.

    Examples
    --------
    >>> from sklearn_latent.mixed import TemporalGraph
    >>> graph = TemporalGraph(
    ...     structure=[[1, 1, 0, 0], [0, 0, 1, 1]],
    ...     intra=[[0, 1], [0, 0]],
    ...     inter=[[1, 0], [0, 1]],
    ... )
    >>> graph
    TemporalGraph(n_latents=2, n_observed=4, n_intra=1, n_inter=2)
    >>> graph.parents_within(1), graph.parents_before(1)
    ((0,), (1,))
    """

    _fields: ClassVar = {
        "structure": Array("bool", 2),
        "intra": Array("bool", 2),
        "inter": Array("bool", 2),
    }

    structure: np.ndarray
    intra: np.ndarray
    inter: np.ndarray

    def __post_init__(self):
        structure = _boolean("structure", self.structure)
        n = len(structure)
        for name in ("intra", "inter"):
            matrix = _boolean(name, getattr(self, name))
            if matrix.size == 0:
                matrix = matrix.reshape(0, 0)
            if matrix.shape != (n, n):
                raise ValueError(
                    f"{name} must have one row and one column per latent, shape "
                    f"({n}, {n}), got {matrix.shape}."
                )
            object.__setattr__(self, name, _frozen(matrix))
        object.__setattr__(self, "structure", _frozen(structure))
        if self.intra.diagonal().any():
            latent = int(np.flatnonzero(self.intra.diagonal())[0])
            raise ValueError(
                "intra must not join a latent with itself, got such an edge for "
                f"latent {latent}."
            )
        if not is_acyclic(self.intra & ~self.intra.T):
            raise ValueError("intra must have no directed cycle, got one.")

    @property
    def n_latents(self) -> int:
        """Number of latents."""
        return len(self.structure)

    @property
    def n_observed(self) -> int:
        """Number of features per slice."""
        return self.structure.shape[1]

    @property
    def is_pure(self) -> bool:
        """Whether no feature has more than one parent."""
        return bool((self.structure.sum(axis=0) <= 1).all())

    @property
    def is_directed(self) -> bool:
        """Whether no edge is undirected."""
        return not (self.intra & self.intra.T).any()

    def features_of(self, j: int) -> np.ndarray:
        """Features that measure latent `j`."""
        return self._features[j]

    def parents_within(self, j: int) -> tuple[int, ...]:
        """Parents of latent `j` in its own slice, in order; no undirected neighbour."""
        return self._parents[j][1]

    def parents_before(self, j: int) -> tuple[int, ...]:
        """Parents of latent `j` in the slice before, in order."""
        return self._parents[j][0]

    def components(self) -> list[np.ndarray]:
        """Groups of latents that no edge joins; each is a chain of its own."""
        return list(self._components)

    # EM asks for these in every step.

    @cached_property
    def _features(self) -> list[np.ndarray]:
        return [_frozen(np.flatnonzero(own)) for own in self.structure]

    @cached_property
    def _parents(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Parents of each latent in the slice before, and in its own."""
        edges = self.inter, self.intra & ~self.intra.T
        before, within = (
            [tuple(np.flatnonzero(column).tolist()) for column in matrix.T]
            for matrix in edges
        )
        return list(zip(before, within, strict=True))

    @cached_property
    def _components(self) -> list[np.ndarray]:
        if not self.n_latents:
            return []
        joined = self.intra | self.inter
        count, labels = connected_components(joined, directed=False)
        return [np.flatnonzero(labels == label) for label in range(count)]

    def _part(self, latents, features) -> TemporalGraph:
        """Some of the latents and features, by number, and the edges between them."""
        latents = np.asarray(latents, dtype=int)
        own = np.ix_(latents, latents)
        structure = self.structure[np.ix_(latents, features)]
        return TemporalGraph(structure, self.intra[own], self.inter[own])

    def permuted(self, order: ArrayLike) -> TemporalGraph:
        """The same graph with its latents in another order.

        Parameters
        ----------
        order : sequence of int
            Latent ``order[i]`` becomes latent i.

        Returns
        -------
        graph : TemporalGraph
            The graph with renumbered latents.
        """
        order = check_numbers("order", order)
        if not np.array_equal(np.sort(order, axis=None), np.arange(self.n_latents)):
            raise ValueError(
                f"order must hold each of 0 to {self.n_latents - 1} once, got {order}."
            )
        order = order.astype(int).ravel()
        both = np.ix_(order, order)
        return TemporalGraph(self.structure[order], self.intra[both], self.inter[both])

    def directed(self) -> TemporalGraph:
        """Orient undirected edges so that the slice has no cycle.

        Tables of parameters need a direction. Where possible no orientation makes a
        collider whose parents are not joined, so that the directed graph says the same
        about independence as the undirected edges do [1]_.

        Returns
        -------
        graph : TemporalGraph
            Without undirected edges.

        References
        ----------
        .. [1] Dor, D., Tarsi, M. (1992). A simple algorithm to construct a consistent
           extension of a partially oriented graph. Technical report, UCLA.
        """
        return self._directed

    @cached_property
    def _directed(self) -> TemporalGraph:
        if self.is_directed:
            return self
        intra = self.intra.copy()
        left = np.ones(self.n_latents, dtype=bool)
        while left.any():
            sink = self._next_sink(left)
            left[sink] = False
            intra[sink, left & self.intra[:, sink]] = False
        return TemporalGraph(self.structure, intra, self.inter)

    def _next_sink(self, left: np.ndarray) -> int:
        """A latent that can be the last of those left: the best, then the highest."""
        joined = self.intra | self.intra.T
        choices = []
        for j in np.flatnonzero(left):
            children = left & self.intra[j] & ~self.intra[:, j]
            if children.any():
                continue
            undirected = np.flatnonzero(left & self.intra[j] & self.intra[:, j])
            around = np.flatnonzero(left & joined[j])
            # Parents that are not joined with each other become a collider. Latents
            # of the slice before are given, hence joined.
            apart = sum(
                int((~joined[i, around[around != i]]).sum())
                + int((self.inter[:, j] & ~self.inter[:, i]).sum())
                for i in undirected
            )
            choices.append((apart, -int(j)))
        return -min(choices)[1]

    def __repr__(self):
        undirected = int((self.intra & self.intra.T).sum()) // 2
        return (
            f"TemporalGraph(n_latents={self.n_latents}, n_observed={self.n_observed}, "
            f"n_intra={int(self.intra.sum()) - undirected}, "
            f"n_inter={int(self.inter.sum())})"
        )


def complete_graph(structure) -> TemporalGraph:
    """The graph in which every latent depends on all others."""
    n = len(structure)
    return TemporalGraph(structure, np.triu(np.ones((n, n)), 1), np.ones((n, n)))


def _boolean(name: str, matrix) -> np.ndarray:
    """Validate a two-dimensional array of 0 and 1."""
    if isinstance(matrix, Sequence) and not len(matrix):
        matrix = np.empty((0, 0))
    matrix = check_numbers(name, matrix, dtype=None)
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} must be a two-dimensional array of booleans, got shape "
            f"{matrix.shape}."
        )
    if not np.isin(matrix, [0, 1]).all():
        raise ValueError(f"{name} must hold only 0 and 1, got other values.")
    return matrix.astype(bool)


def _frozen(matrix: np.ndarray) -> np.ndarray:
    """A read-only copy."""
    matrix = matrix.copy()
    matrix.setflags(write=False)
    return matrix
