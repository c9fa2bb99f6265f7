"""The model object of a process that changes: one network per epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._core.persistence import Array
from .._core.validation import check_numbers, shown
from ._inference.expectation import Expectation
from ._inference.patterns import ChainData
from ._model import LatentDBN
from ._tables import free_parameters


class _Networks:
    """How the networks of the epochs are written and read."""

    def encode(self, value):
        """Plain forms."""
        return [network.to_dict() for network in value]

    def decode(self, name, value):
        """Networks."""
        if type(value) is not list:
            raise ValueError(f"{name} must be a list, got {shown(value)}.")
        return [LatentDBN.from_dict(one) for one in value]


class EpochDBN(LatentDBN):
    """A latent dynamic Bayesian network whose tables change at some slices.

    The graph and the numbers of states are the same in all epochs. The step into the
    first slice of an epoch follows the tables of that epoch. Attributes of a single
    network, such as `transition` and `emission`, are those of the last epoch, which a
    forecast follows, too.

    Parameters
    ----------
    networks : list of LatentDBN
        The network of each epoch; the start tables of the first count.
    change_points : array-like of int of shape (n_epochs - 1,)
        First slices of the epochs after the first, in order.

    Examples
    --------
    >>> from sklearn_latent.mixed import EpochDBN, LatentDBN, TemporalGraph
    >>> graph = TemporalGraph(structure=[[1]], intra=[[0]], inter=[[1]])
    >>> stay, move = [[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]
    >>> networks = [
    ...     LatentDBN(graph, [2], [[0.5, 0.5]], [table], [stay])
    ...     for table in (stay, move)
    ... ]
    >>> network = EpochDBN(networks, change_points=[2])
    >>> network.viterbi([[[0], [0], [-1], [-1]]])[0, :, 0]
    array([0, 0, 1, 0])
    """

    _fields: ClassVar = {"networks": _Networks(), "change_points": Array("int", 1)}

    def __init__(self, networks: Sequence[LatentDBN], change_points: ArrayLike):
        points = check_numbers("change_points", change_points).reshape(-1)
        if (points < 1).any() or (np.diff(points) <= 0).any() or (points % 1).any():
            raise ValueError(
                "change_points must be slices from 1 on, in increasing order, got "
                f"{shown(change_points)}."
            )
        if not len(networks) or len(networks) != len(points) + 1:
            raise ValueError(
                f"networks must hold one network per epoch, {len(points) + 1}, got "
                f"{len(networks)}."
            )
        first, last = networks[0], networks[-1]
        for one in networks:
            same = np.array_equal(one.cardinality, first.cardinality)
            if one.graph != first.graph or not same:
                raise ValueError(
                    "networks must have the same graph and numbers of states in all "
                    "epochs, got others."
                )
        super().__init__(
            last.graph,
            last.cardinality,
            first.start,
            last.transition,
            last.emissions,
            max_joint_states=last.max_joint_states,
        )
        if not self.is_exact():
            raise ValueError(
                "networks must have few enough joint states for exact inference, got "
                f"more than max_joint_states={self.max_joint_states}."
            )
        self.networks = list(networks)
        self.change_points = points.astype(int)

    @property
    def n_epochs(self) -> int:
        """Number of epochs."""
        return len(self.networks)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters; a table that epochs share counts once."""
        total = self.networks[0].n_parameters
        for before, one in zip(self.networks[:-1], self.networks[1:], strict=True):
            pairs = zip(before.transition, one.transition, strict=True)
            tables = [new for old, new in pairs if not np.array_equal(old, new)]
            changed = zip(before.emissions, one.emissions, strict=True)
            total += free_parameters(tables)
            total += sum(new.n_free for old, new in changed if old != new)
        return total

    @property
    def has_time(self) -> bool:
        """Slices differ."""
        return True

    def epoch_of(self, n_slices: int) -> np.ndarray:
        """Number of the epoch of each slice.

        Parameters
        ----------
        n_slices : int
            Number of slices.

        Returns
        -------
        epoch : ndarray of int of shape (n_slices,)
            From 0 on.
        """
        return np.searchsorted(self.change_points, np.arange(n_slices), side="right")

    def __repr__(self):
        return (
            f"EpochDBN(n_epochs={self.n_epochs}, n_latents={self.n_latents}, "
            f"n_observed={self.n_observed}, cardinality={self.cardinality.tolist()})"
        )

    def _predicted(self, posterior, codes) -> list[np.ndarray]:
        epoch = self.epoch_of(codes.shape[1])
        found = self.networks[0]._predicted(posterior, codes)
        for e, network in enumerate(self.networks[1:], start=1):
            for old, new in zip(
                found, network._predicted(posterior, codes), strict=True
            ):
                old[:, epoch == e] = new[:, epoch == e]
        return found

    def _expect(self, data: ChainData) -> Expectation:
        """As of one network: counts of all epochs together."""
        found = super()._expect(data)
        transition, emission = (
            [sum(tables[k::n]) for k in range(n)]
            for tables, n in (
                (found.counts.transition, self.n_latents),
                (found.counts.emission, self.n_observed),
            )
        )
        counts = replace(found.counts, transition=transition, emission=emission)
        return replace(found, counts=counts)

    @property
    def _epochs(self) -> list[LatentDBN]:
        return self.networks

    def _of_epochs(self, networks: list[LatentDBN]) -> EpochDBN:
        return EpochDBN(networks, self.change_points)

    def _spans(self, n_slices: int) -> list[tuple[LatentDBN, slice]]:
        ends = np.append(np.minimum(self.change_points, n_slices), n_slices)
        starts = np.append(0, ends[:-1])
        return [
            (network, slice(int(low), int(high)))
            for network, low, high in zip(self.networks, starts, ends, strict=True)
            if low < high
        ]
