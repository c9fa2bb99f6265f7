"""The model object: a dynamic Bayesian network with latents and their features."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._answers.protocol import GraphParts
from .._core.persistence import Array, Arrays, Integer, Model
from .._core.validation import (
    MOST_COLUMNS,
    MOST_ROWS,
    check_count,
    check_counts,
    check_random_state,
)
from ._emissions.base import Emission
from ._emissions.kinds import (
    EmissionsField,
    check_emissions,
    shown_emissions,
)
from ._graph import TemporalGraph
from ._sequence_model import SequenceModel
from ._tables import (
    check_length,
    check_tables,
    draw_categories,
    family_of,
    free_parameters,
    joint_table,
    slice_order,
    table_shape,
)
from ._two_slices_graph import graph_of, pgmpy_of

# A joint chain of 500 states takes matrices of 500 x 500 per slice and sequence block;
# the cost grows with the square. 4,096 take 0.7 GB, and nothing, a file included, may
# ask for more.
MAX_JOINT_STATES, MOST_JOINT_STATES = 500, 4096


class LatentDBN(SequenceModel):
    """Latent variables that change over time, and the features that measure them.

    Latents of a slice depend on each other (`intra` edges of the graph) and on those of
    the slice before (`inter` edges); a feature depends on the latent that it measures.
    Tables are the same for all slices; the first slice has start tables of its own.

    Parameters
    ----------
    graph : TemporalGraph
        The structure. Each feature has at most one parent. Undirected edges are
        oriented as ``graph.directed()`` does it.
    cardinality : array-like of int of shape (n_latents,)
        Number of states of each latent.
    start : list of array-like
        ``start[j]``: P(latent j | its parents within the slice) in the first slice,
        one axis per parent in order of their numbers, then one for the latent.
    transition : list of array-like
        ``transition[j]``: P(latent j | its parents) in later slices, one axis per
        parent in the slice before, then per parent within the slice, then its own.
    emission : list of array-like or Emission
        One per feature: P(category | state of the parent), an array of shape
        (cardinality of parent, n_categories), or an emission of another kind. A feature
        that measures no latent has a single state.
    max_joint_states : int, default=500
        Largest number of joint states of coupled latents for which inference is exact,
        at most 4,096. Above, it is factored and a warning says so.

    Attributes
    ----------
    directed_graph : TemporalGraph
        The graph that the tables follow.
    emissions : list of Emission
        Emissions of all features as objects, also those that `emission` has as tables.

    Examples
    --------
    >>> from sklearn_latent.mixed import LatentDBN, TemporalGraph
    >>> graph = TemporalGraph(structure=[[1, 1]], intra=[[0]], inter=[[1]])
    >>> network = LatentDBN(
    ...     graph,
    ...     cardinality=[2],
    ...     start=[[0.5, 0.5]],
    ...     transition=[[[0.9, 0.1], [0.1, 0.9]]],
    ...     emission=[[[0.8, 0.2], [0.2, 0.8]]] * 2,
    ... )
    >>> codes = [[[0, 0], [-1, -1]]]  # nothing is known of the second slice
    >>> network.posterior(codes)[0].round(3)
    array([[[0.941, 0.059],
            [0.853, 0.147]]])
    """

    _fields: ClassVar = {
        "graph": Model(TemporalGraph),
        "cardinality": Array("int", 1),
        "start": Arrays(),
        "transition": Arrays(),
        "emission": EmissionsField(),
        "max_joint_states": Integer(1),
    }

    def __init__(
        self,
        graph: TemporalGraph,
        cardinality: ArrayLike,
        start: Sequence[ArrayLike],
        transition: Sequence[ArrayLike],
        emission: Sequence[ArrayLike | Emission],
        *,
        max_joint_states: int = MAX_JOINT_STATES,
    ):
        if not isinstance(graph, TemporalGraph):
            raise TypeError(
                f"graph must be a TemporalGraph, got {type(graph).__name__}."
            )
        # Before anything takes memory for features that the graph only claims to have.
        check_length("emission", emission, graph.n_observed)
        if not graph.is_pure:
            feature = int(np.flatnonzero(graph.structure.sum(axis=0) > 1)[0])
            raise ValueError(
                "graph must give each feature at most one latent, got more for feature "
                f"{feature}."
            )
        self.graph = graph
        self.max_joint_states = check_count(
            "max_joint_states", max_joint_states, 1, MOST_JOINT_STATES
        )
        self.cardinality = check_counts("cardinality", cardinality).reshape(-1)
        if self.cardinality.max(initial=0) > MOST_JOINT_STATES:
            raise ValueError(
                f"cardinality must be at most {MOST_JOINT_STATES} for each latent, got "
                f"{self.cardinality.max()}."
            )
        if self.cardinality.shape != (graph.n_latents,):
            raise ValueError(
                "cardinality must hold one number per latent, shape "
                f"({graph.n_latents},), got {self.cardinality.shape}."
            )
        directed, cards = self.directed_graph, self.cardinality
        latents = range(graph.n_latents)
        first, later = (
            [table_shape(directed, cards, j, later=past) for j in latents]
            for past in (False, True)
        )
        self.start = check_tables("start", start, first)
        self.transition = check_tables("transition", transition, later)
        rows = [int(cards[j]) if j >= 0 else 1 for j in self._parents]
        self.emissions = check_emissions(emission, rows)

    @cached_property
    def directed_graph(self) -> TemporalGraph:
        """The graph with all edges oriented, as the tables have them."""
        return self.graph.directed()

    @cached_property
    def emission(self) -> list[np.ndarray | Emission]:
        """Emission of each feature; a categorical one is its table."""
        return shown_emissions(self.emissions)

    def emissions_of(self, latent: int) -> list[Emission]:
        """Emissions of the features that measure a latent.

        Parameters
        ----------
        latent : int
            Number of the latent.

        Returns
        -------
        emissions : list of Emission
            In the order of the features.
        """
        return [self.emissions[f] for f in self.graph.features_of(latent)]

    @property
    def n_latents(self) -> int:
        """Number of latents."""
        return self.graph.n_latents

    @property
    def n_categories(self) -> np.ndarray:
        """Number of categories of each feature."""
        return np.array([one.n_categories for one in self.emissions], dtype=int)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters; a table that all slices share counts once."""
        later = [
            t for t, same in zip(self.transition, self._tied, strict=True) if not same
        ]
        tables = free_parameters([*self.start, *later])
        return tables + sum(emission.n_free for emission in self.emissions)

    @property
    def has_time(self) -> bool:
        """Whether a slice depends on the one before, or differs from the first."""
        same = bool(self._tied) and all(self._tied) and not self.graph.inter.any()
        return not same or any(emission.has_memory for emission in self.emissions)

    @property
    def _tied(self) -> list[bool]:
        """Whether each latent has states, and the same table in all slices."""
        return [
            start.shape[-1] > 1 and np.array_equal(start, transition)
            for start, transition in zip(self.start, self.transition, strict=True)
        ]

    def is_exact(self, latents: Sequence[int] | np.ndarray | None = None) -> bool:
        """Whether the joint states of some latents are few enough to enumerate.

        Parameters
        ----------
        latents : sequence of int or None, default=None
            Latents of one part; None asks for all parts.

        Returns
        -------
        exact : bool
            Whether inference is exact.
        """
        if latents is None:
            return all(map(self.is_exact, self.directed_graph.components()))
        states = np.prod(self.cardinality[latents].astype(float))
        return bool(len(latents) == 1 or states <= self.max_joint_states)

    def __repr__(self):
        return (
            f"LatentDBN(n_latents={self.n_latents}, n_observed={self.n_observed}, "
            f"cardinality={self.cardinality.tolist()})"
        )

    def sample(
        self, n_samples: int = 1, n_slices: int = 1, random_state: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw sequences.

        Parameters
        ----------
        n_samples : int, default=1
            Number of sequences.
        n_slices : int, default=1
            Their length.
        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        codes : ndarray of int of shape (n_samples, n_slices, n_observed)
            Categories by number.
        states : ndarray of int of shape (n_samples, n_slices, n_latents)
            The states behind them.
        """
        n_samples = check_count("n_samples", n_samples, 1, MOST_ROWS)
        n_slices = check_count("n_slices", n_slices, 1, MOST_COLUMNS)
        rng = check_random_state(random_state)
        graph = self.directed_graph
        states = np.zeros((n_samples, n_slices, self.n_latents), dtype=np.intp)
        spans = self._spans(n_slices)
        for network, span in spans:
            for t in range(span.start, span.stop):
                for j in slice_order(graph):
                    *parents, _ = family_of(graph, j, later=t > 0)
                    table = network.transition[j] if t else self.start[j]
                    past = tuple(states[:, t - (not now), i] for i, now in parents)
                    rows = table[past]
                    rows = np.broadcast_to(rows, (n_samples, rows.shape[-1]))
                    states[:, t, j] = draw_categories(rows, rng)
        numeric = any(emission.is_numeric for emission in self.emissions)
        dtype = np.float64 if numeric else np.int64
        codes = np.empty((n_samples, n_slices, self.n_observed), dtype=dtype)
        alone = np.zeros(codes.shape[:2], dtype=int)
        for f, j in enumerate(self._parents):
            behind = states[:, :, j] if j >= 0 else alone
            for network, span in spans:
                codes[:, span, f] = network.emissions[f].draw(behind[:, span], rng)
        return codes, states

    def joint_tables(
        self, latents: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Start and transition of the joint states of some latents.

        Parameters
        ----------
        latents : sequence of int or None, default=None
            Latents that have no parent outside; None takes all.

        Returns
        -------
        start : ndarray
            P(states in the first slice), one axis per latent.
        transition : ndarray
            P(states now | states before), one axis per latent of the slice before, then
            one per latent of this slice.
        """
        latents = list(range(self.n_latents)) if latents is None else list(latents)
        return (
            joint_table(self.directed_graph, self.start, latents, later=False),
            joint_table(self.directed_graph, self.transition, latents, later=True),
        )

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.n_latents, self.n_observed

    def _graph(self, latents: list, features: list, **options: Any) -> GraphParts:
        return graph_of(self, latents, features, **options)

    def _pgmpy(self, latents: list, features: list) -> Any:
        return pgmpy_of(self, latents, features)

    @property
    def _epochs(self) -> list[LatentDBN]:
        """Networks, one after the other, that slices follow."""
        return [self]

    def _of_epochs(self, networks: list[LatentDBN]) -> LatentDBN:
        """The same process with other networks."""
        return networks[0]

    def _spans(self, n_slices: int) -> list[tuple[LatentDBN, slice]]:
        """Networks, and the slices that each is for."""
        return [(self, slice(0, n_slices))]
