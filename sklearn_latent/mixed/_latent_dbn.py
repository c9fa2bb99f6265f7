"""The model object: a dynamic Bayesian network with latents and their features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._answers.protocol import GraphParts, Network
from .._core.persistence import Array, Arrays, Integer, Model
from .._core.validation import (
    MOST_COLUMNS,
    MOST_ROWS,
    check_count,
    check_counts,
    check_numbers,
    check_random_state,
    check_sample_weight,
    shown,
)
from ._emissions.emission import Emission
from ._emissions.kinds import (
    EmissionsField,
    check_emissions,
    check_values,
    shown_emissions,
)
from ._forecast import Forecast
from ._graph import TemporalGraph
from ._inference.ahead import look_ahead
from ._inference.chain_data import ChainData
from ._inference.expectation import (
    ChainCounts,
    Expectation,
    expectation,
    most_probable_states,
    sequence_log_likelihood,
    warn_if_approximate,
)
from ._inference.tree import SliceTree
from ._panels.panel import is_known
from ._tables import (
    check_length,
    check_tables,
    draw_categories,
    family_of,
    free_parameters,
    slice_order,
    table_shape,
)
from ._two_slices_graph import graph_of, pgmpy_of

# A joint chain of 500 states takes matrices of 500 x 500 per slice and sequence block;
# the cost grows with the square. 4,096 take 0.7 GB, and nothing, a file included, may
# ask for more.
MAX_JOINT_STATES, MOST_JOINT_STATES = 500, 4096


class _Networks:
    """How the networks of earlier epochs are written and read."""

    omitted = True

    def encode(self, value):
        """Plain forms."""
        return [network.to_dict() for network in value]

    def decode(self, name, value):
        """Networks."""
        if type(value) is not list:
            raise ValueError(f"{name} must be a list, got {shown(value)}.")
        return [LatentDBN.from_dict(one) for one in value]


class LatentDBN(Network):
    """Latent variables that change over time, and the features that measure them.

    Latents of a slice depend on each other (`intra` edges of the graph) and on those of
    the slice before (`inter` edges); a feature depends on the latent that it measures.
    Tables are the same for all slices; the first slice has start tables of its own.
    If tables change at some slices, there is a network of each epoch; the step into the
    first slice of an epoch follows its tables.

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
        Largest number of joint states of latents that inference keeps together, at
        most 4,096: those that time joins, and within a slice those of one table or a
        few. Inference is exact up to it. Above, it is factored, and a warning says so.
    earlier : list of LatentDBN, default=()
        Networks of earlier epochs, of the same graph and numbers of states. Start
        tables are those of the first. What has no epoch, such as `transition`, a
        forecast or a graph, is that of the last epoch.
    change_points : array-like of int of shape (n_epochs - 1,), default=()
        First slices of the epochs after the first, in order.

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
        "earlier": _Networks(),
        "change_points": Array("int", 1, omitted=True),
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
        earlier: Sequence[LatentDBN] | None = (),
        change_points: ArrayLike | None = (),
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
        self._set_epochs(earlier or (), change_points)

    def _set_epochs(self, earlier: Sequence[LatentDBN], change_points) -> None:
        """Check and keep the networks of earlier epochs."""
        points = np.zeros(0)
        if change_points is not None:
            points = check_numbers("change_points", change_points).reshape(-1)
        if (points < 1).any() or (np.diff(points) <= 0).any() or (points % 1).any():
            raise ValueError(
                "change_points must be slices from 1 on, in increasing order, got "
                f"{shown(change_points)}."
            )
        if len(earlier) != len(points):
            raise ValueError(
                f"earlier must hold one network per change point, {len(points)}, got "
                f"{len(earlier)}."
            )
        for one in earlier:
            same = np.array_equal(one.cardinality, self.cardinality)
            if one.graph != self.graph or not same or one.n_epochs > 1:
                raise ValueError(
                    "earlier must hold networks of one epoch with the same graph and "
                    "numbers of states, got others."
                )
        self.earlier: list[LatentDBN] = list(earlier)
        self.change_points = points.astype(int)
        if earlier:
            self.start = earlier[0].start
        if earlier and not self.is_exact():
            raise ValueError(
                "networks of several epochs must have few enough joint states for "
                f"exact inference, got more than {self.max_joint_states}."
            )

    def _arguments(self) -> dict[str, Any]:
        found = super()._arguments()
        if not self.earlier:
            found |= {"earlier": None, "change_points": None}
        return found

    def with_earlier(
        self, earlier: Sequence[LatentDBN], change_points: ArrayLike
    ) -> LatentDBN:
        """The network of a process that changes, which this one ends.

        Parameters
        ----------
        earlier : list of LatentDBN
            Networks of the epochs before.
        change_points : array-like of int of shape (n_epochs - 1,)
            First slices of the epochs after the first, in order.

        Returns
        -------
        network : LatentDBN
            That of all epochs.

        Examples
        --------
        >>> from sklearn_latent.mixed import LatentDBN, TemporalGraph
        >>> graph = TemporalGraph(structure=[[1]], intra=[[0]], inter=[[1]])
        >>> stay, move = [[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]
        >>> before, after = [
        ...     LatentDBN(graph, [2], [[0.5, 0.5]], [table], [stay])
        ...     for table in (stay, move)
        ... ]
        >>> network = after.with_earlier([before], change_points=[2])
        >>> network.viterbi([[[0], [0], [-1], [-1]]])[0, :, 0]
        array([0, 0, 1, 0])
        """
        known = self._arguments() | {"earlier": earlier, "change_points": change_points}
        return LatentDBN(**known)

    @property
    def n_epochs(self) -> int:
        """Number of epochs."""
        return len(self.earlier) + 1

    @property
    def _epochs(self) -> list[LatentDBN]:
        """The networks of all epochs, in order."""
        return [*self.earlier, self]

    def _spans(self, n_slices: int) -> list[tuple[LatentDBN, slice]]:
        """Networks, and the slices that each is for."""
        ends = [*np.minimum(self.change_points, n_slices).tolist(), n_slices]
        spans = zip(self._epochs, [0, *ends[:-1]], ends, strict=True)
        return [(one, slice(low, high)) for one, low, high in spans if low < high]

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
    def n_observed(self) -> int:
        """Number of features per slice."""
        return self.graph.n_observed

    @property
    def _parents(self) -> np.ndarray:
        """Latent that each feature measures, -1 for none."""
        measured = self.graph.structure.any(axis=0)
        if not self.graph.n_latents:
            return np.full(self.graph.n_observed, -1)
        return np.where(measured, self.graph.structure.argmax(axis=0), -1)

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
        """Number of free parameters; a table that slices share counts once."""
        first = self._epochs[0]
        each = zip(first.transition, first._tied, strict=True)
        tables = [table for table, same in each if not same]
        total = free_parameters([*first.start, *tables])
        total += sum(emission.n_free for emission in first.emissions)
        for before, one in pairwise(self._epochs):
            pairs = zip(before.transition, one.transition, strict=True)
            new = [table for old, table in pairs if not np.array_equal(old, table)]
            changed = zip(before.emissions, one.emissions, strict=True)
            total += free_parameters(new)
            total += sum(e.n_free for old, e in changed if old != e)
        return total

    @property
    def has_time(self) -> bool:
        """Whether a slice depends on the one before, or differs from the first."""
        if self.earlier:
            return True
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
        return all(
            len(tree.cards) == 1 or tree.width <= self.max_joint_states
            for tree in self._trees()
            if latents is None or not tree.cards.keys().isdisjoint(latents)
        )

    def _trees(self, together: bool = False) -> list[SliceTree]:
        """How the latents of each part of the graph are summed out.

        `together`: all latents are one part, and kept to the end
        """
        cache = self.__dict__.setdefault("_known_trees", {})
        if together not in cache:
            graph = self.directed_graph
            parts = [range(self.n_latents)] if together else graph.components()
            cache[together] = [
                SliceTree(graph, self.cardinality, latents, together=together)
                for latents in parts
                if len(latents)
            ]
        return cache[together]

    def __repr__(self):
        epochs = f"n_epochs={self.n_epochs}, " if self.earlier else ""
        return (
            f"LatentDBN({epochs}n_latents={self.n_latents}, "
            f"n_observed={self.n_observed}, cardinality={self.cardinality.tolist()})"
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

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.n_latents, self.n_observed

    def _graph(self, latents: list, features: list, **options: Any) -> GraphParts:
        return graph_of(self, latents, features, **options)

    def _pgmpy(self, latents: list, features: list) -> Any:
        return pgmpy_of(self, latents, features)

    def log_likelihood(self, codes: ArrayLike) -> np.ndarray:
        """Log-likelihood of each sequence, in nats.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number; -1 is missing and is integrated out.

        Returns
        -------
        log_likelihood : ndarray of shape (n,)
            A lower bound where inference is factored.
        """
        warn_if_approximate(self)
        return sequence_log_likelihood(self, self._data(codes))

    def posterior(self, codes: ArrayLike) -> list[np.ndarray]:
        """P(state | whole sequence) of each latent in each slice.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.

        Returns
        -------
        posterior : list of ndarray of shape (n, n_slices, cardinality)
            One array per latent.
        """
        warn_if_approximate(self)
        return self._expect(self._data(codes)).states

    def expected_counts(
        self, codes: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ChainCounts:
        """Expected counts of all tables.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the sequences.

        Returns
        -------
        counts : ChainCounts
            In the shape of the tables; counts of several panels add up.
        """
        warn_if_approximate(self)
        found = self._expect(self._data(codes, sample_weight)).counts
        # As of one network: counts of all epochs together.
        transition, emission = (
            [sum(tables[k::n]) for k in range(n)]
            for tables, n in (
                (found.transition, self.n_latents),
                (found.emission, self.n_observed),
            )
        )
        return replace(found, transition=transition, emission=emission)

    def viterbi(self, codes: ArrayLike, *, return_log_probability: bool = False) -> Any:
        """Most probable states of all latents in all slices, taken together.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.
        return_log_probability : bool, default=False
            Whether to return log P(states, sequence) too.

        Returns
        -------
        states : ndarray of int of shape (n, n_slices, n_latents)
            The states.
        log_probability : ndarray of shape (n,)
            Only with `return_log_probability`.
        """
        warn_if_approximate(self)
        states, log_probability = most_probable_states(self, self._data(codes))
        return (states, log_probability) if return_log_probability else states

    def predictive(self, codes: ArrayLike) -> list[np.ndarray]:
        """P(category | all other values of the sequence) where a value is missing.

        For a value that is not missing it is what a further reading of the feature
        would show.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.

        Returns
        -------
        probabilities : list of ndarray of shape (n, n_slices, n_categories)
            One array per feature.
        """
        codes = self._check(codes)
        posterior = self.posterior(codes)
        return self._predicted(posterior, codes)

    def _predicted(self, posterior, codes) -> list[np.ndarray]:
        """What each value should be, given states of the latents."""
        states = [*posterior, np.ones((*codes.shape[:2], 1))]
        found: list = []
        for network, span in self._spans(codes.shape[1]):
            for f, (j, emission) in enumerate(
                zip(self._parents, network.emissions, strict=True)
            ):
                own = emission.predicted(states[j], codes[:, :, f])
                if len(found) <= f:
                    found.append(own)
                found[f][:, span] = own[:, span]
        return found

    def forecast(self, codes: ArrayLike, n_steps: int = 1) -> Forecast:
        """What to expect of the slices after the last recorded one of each sequence.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.
        n_steps : int, default=1
            Number of slices.

        Returns
        -------
        forecast : Forecast
            Distributions of features and latents, and most probable categories.
        """
        codes = self._check(codes)
        n_steps = check_count("n_steps", n_steps, 1, MOST_COLUMNS)
        warn_if_approximate(self)
        last, states, found = look_ahead(self, codes, n_steps)
        best = most_probable(self.emissions, found)
        return Forecast(
            found,
            np.stack(best, axis=2),
            states,
            last[:, None] + np.arange(1, n_steps + 1),
            [f"x{f}" for f in range(self.n_observed)],
            np.arange(len(codes)),
            [emission.is_numeric for emission in self.emissions],
        )

    def impute(self, codes: ArrayLike) -> np.ndarray:
        """Fill missing values with the most probable category.

        Parameters
        ----------
        codes : array-like of int of shape (n, n_slices, n_observed)
            Categories by number, -1 = missing.

        Returns
        -------
        filled : ndarray of int of the same shape
            Without missing values; all others as they were.
        """
        codes = self._check(codes)
        best = most_probable(self.emissions, self.predictive(codes))
        return np.where(is_known(codes), codes, np.stack(best, axis=2))

    def _expect(self, data: ChainData) -> Expectation:
        """States of the latents and expected counts of all tables."""
        return expectation(self, data)

    def _data(self, codes, sample_weight=None) -> ChainData:
        """Validate codes and find their patterns."""
        codes = self._check(codes)
        weights = check_sample_weight(sample_weight, len(codes))
        return ChainData.of(codes, self.graph.structure, weights)

    def _check(self, codes) -> np.ndarray:
        """Validate codes."""
        codes = check_numbers("codes", codes, dtype=None)
        if codes.ndim != 3 or codes.shape[2] != self.n_observed:
            raise ValueError(
                "codes must have shape (n, n_slices, n_observed) with n_observed="
                f"{self.n_observed}, got shape {codes.shape}."
            )
        return check_values(codes, self.emissions)


def most_probable(emissions, found) -> list[np.ndarray]:
    """The most probable category, or the mean, by feature."""
    return [
        one[..., 0] if emission.is_numeric else one.argmax(axis=-1)
        for emission, one in zip(emissions, found, strict=True)
    ]
