"""Latents of a slice, summed out one after the other (bucket elimination).

Latents that time joins, directly or through their children, are the core of a part of
the graph, whose joint states make a chain. All others hang on the core, or on nothing:
a slice without time is a tree alone. Each of them is summed out next to the latents
that it shares a table with, which costs as much as its widest bucket has states,
whatever the number of latents.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from scipy.special import logsumexp

from .._tables import family_counts, family_of, spread

# Below this a sum has lost digits, and is done in logarithms.
UNDERFLOW = 1e-200


@dataclass(frozen=True)
class Bucket:
    """A latent, and where it is summed out.

    latent: its number
    separator: latents that are left, about which its message is
    tables: latents whose tables are summed here
    target: place of the bucket that gets the message; -1 is the core
    """

    latent: int
    separator: tuple[int, ...]
    tables: tuple[int, ...]
    target: int

    @property
    def latents(self) -> tuple[int, ...]:
        """Axes of the bucket; the latent itself comes last."""
        return (*self.separator, self.latent)


@dataclass(frozen=True)
class Messages:
    """What the slices say, bucket by bucket; cells come before rows in all arrays.

    shares: P(latent, what is known below | separator), to find the best states in
        logarithms, (*separator, n_states, n_rows), and their sums over the latent
    core: messages about latents of the core, and which
    scale: logarithm of what was taken off, (n_rows,)
    lost: rows of which digits were lost, (n_rows,)
    """

    shares: list[tuple[np.ndarray, np.ndarray]]
    core: list[tuple[tuple[int, ...], np.ndarray]]
    scale: np.ndarray
    lost: np.ndarray


class SliceTree:
    """How the latents of a part of the graph are summed out of a slice.

    core: latents with joint states, in order
    together: whether that are all latents, so that any of them have counts
    n_states: number of their joint states
    width: states of the widest bucket, or of the core
    """

    def __init__(self, graph, cardinality, latents, *, together: bool = False):
        self.graph, self.together = graph, together
        self.cards = {int(j): int(cardinality[j]) for j in latents}
        self.core = sorted(self.cards) if together else _core(graph, self.cards)
        self.buckets = self._eliminated()
        sizes = [prod(self.cards[j] for j in one.latents) for one in self.buckets]
        if max(sizes, default=0) == prod(self.cards.values()):
            # One bucket has them all; sums over joint states are quicker.
            self.core, self.buckets = sorted(self.cards), []
        self.n_states = prod(self.cards[j] for j in self.core)
        self.width = max([self.n_states, *sizes])
        # State of each latent of the core in all joint states.
        shape = [self.cards[j] for j in self.core]
        places = np.unravel_index(np.arange(self.n_states), shape) if shape else ()
        self.places = dict(zip(self.core, places, strict=True))

    def _eliminated(self) -> list[Bucket]:
        """Buckets, each time of the latent whose bucket is the smallest."""
        rest = [j for j in self.cards if j not in self.core]
        families = {j: {*self.graph.parents_within(j), j} for j in rest}
        near = {j: set().union(*(f for f in families.values() if j in f)) for j in rest}
        found: list[tuple[int, tuple, tuple]] = []
        while near:
            latent = min(near, key=lambda j: (prod(self.cards[i] for i in near[j]), j))
            separator = near.pop(latent) - {latent}
            tables = tuple(j for j in families if latent in families[j])
            families = {j: f for j, f in families.items() if j not in tables}
            for i in separator & near.keys():
                near[i] = (near[i] | separator) - {latent}
            found.append((latent, tuple(sorted(separator)), tables))
        order = [latent for latent, *_ in found]
        targets = [[order.index(i) for i in near if i in order] for _, near, _ in found]
        return [
            Bucket(*one, target=min(target, default=-1))
            for one, target in zip(found, targets, strict=True)
        ]

    def up(self, tables, evidence, mode: str = "sum") -> Messages:
        """Sum over all latents but the core.

        tables: of each latent by number; evidence: of each, (n_states, n_rows), in
            logarithms unless the mode is "sum". "log" is the same in logarithms, "max"
            looks for the best states
        """
        waiting: list[list] = [[] for _ in range(len(self.buckets) + 1)]
        n_rows = max(own.shape[-1] for own in evidence.values())
        linear, shares = mode == "sum", []
        scale, lost = np.zeros(n_rows), np.zeros(n_rows, dtype=bool)
        combine = np.multiply if linear else np.add
        for bucket, messages in zip(self.buckets, waiting, strict=False):
            axes = {j: axis for axis, j in enumerate(bucket.latents)}
            potential = evidence[bucket.latent]
            for j in bucket.tables:
                family = [axes[i] for i, _ in family_of(self.graph, j, later=False)]
                table = spread(tables[j], family, len(axes) + 1)
                potential = combine(table if linear else careful_log(table), potential)
            for scope, message in messages:
                own = [*(axes[i] for i in scope), len(axes)]
                potential = combine(potential, spread(message, own, len(axes) + 1))
            if linear:
                message = potential.sum(axis=-2)
            else:
                total = logsumexp if mode == "log" else np.max
                message = total(potential, axis=-2)
            over = tuple(range(len(axes) - 1))
            peak = message.max(axis=over, keepdims=True) if over else message
            if linear:
                enough = (message >= UNDERFLOW * peak) & (peak >= UNDERFLOW)
                lost = lost | ~enough.all(axis=over)
                shares.append((potential, np.maximum(message, UNDERFLOW)))
                peak = np.maximum(peak, UNDERFLOW)
                message, taken = message / peak, np.log(peak)
            else:
                share = potential - message[..., None, :]
                share = np.exp(share) if mode == "log" else share
                shares.append((share, np.ones(1)))
                message, taken = message - peak, peak
            scale = scale + taken.reshape(-1)
            waiting[bucket.target].append((bucket.separator, message))
        return Messages(shares, waiting[-1], scale, lost)

    def down(self, shares, core) -> list[np.ndarray]:
        """P(states of each bucket), from the joint states of the core.

        core (n_rows, n_states).
        """
        found: list = [None] * len(shares)
        cards = [self.cards[j] for j in self.core]
        for place in range(len(shares) - 1, -1, -1):
            bucket = self.buckets[place]
            above, scope = core.T.reshape(*cards, -1), tuple(self.core)
            if bucket.target >= 0:
                above = found[bucket.target]
                scope = self.buckets[bucket.target].latents
            others = [axis for axis, j in enumerate(scope) if j not in bucket.separator]
            left = [j for j in scope if j in bucket.separator]
            order = [*map(left.index, bucket.separator), len(left)]
            above = above.sum(axis=tuple(others)).transpose(order)
            own, total = shares[place]
            found[place] = own * (above / total)[..., None, :]
        return found

    def states(self, core, beliefs) -> dict[int, np.ndarray]:
        """P(state) of each latent, (n_rows, n_states), from those of buckets."""
        found = {}
        if len(self.core) == 1:
            found[self.core[0]] = core
        elif self.core:
            # One product with indicators is faster than sums over short axes.
            cards = [self.cards[j] for j in self.core]
            eyes = [np.eye(self.cards[j])[own] for j, own in self.places.items()]
            parts = core @ np.concatenate(eyes, axis=1)
            parts = np.split(parts, np.cumsum(cards)[:-1], axis=1)
            found = dict(zip(self.core, parts, strict=True))
        for bucket, belief in zip(self.buckets, beliefs, strict=True):
            found[bucket.latent] = belief.sum(axis=tuple(range(belief.ndim - 2))).T
        return found

    def counts(self, beliefs, weights) -> dict[int, np.ndarray]:
        """Expected counts of the tables of the latents outside the core."""
        found = {}
        for bucket, belief in zip(self.buckets, beliefs, strict=True):
            joint = belief @ weights
            for j in bucket.tables:
                family = family_of(self.graph, j, later=False)
                found[j] = family_counts(joint, bucket.latents, family)
        return found

    def assign(self, shares, states: dict, pick) -> dict[int, np.ndarray]:
        """States of all latents, given those of the core, (n_rows,) each.

        ``pick(rows)`` is a state for each row (n_rows, n_states) of shares.
        """
        states = dict(states)
        for bucket, (share, _) in zip(self.buckets[::-1], shares[::-1], strict=True):
            above = (states[j] for j in bucket.separator)
            rows = np.arange(share.shape[-1])
            own = share[(*above, slice(None), rows)]
            states[bucket.latent] = pick(own if bucket.separator else own.T)
        return states


# Stands for log(0) where differences of logarithms must stay numbers.
NEVER = -1e12


def careful_log(table) -> np.ndarray:
    """Logarithm; that of 0 is so low that it is never forgotten, but finite."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(table), NEVER)


def _core(graph, latents) -> list[int]:
    """Latents that time joins, and their ancestors within the slice."""
    core = {j for j in latents if graph.inter[j].any() or graph.inter[:, j].any()}
    size = -1
    while size < len(core):
        size = len(core)
        core |= {i for j in core for i in graph.parents_within(j)}
    return sorted(core)
