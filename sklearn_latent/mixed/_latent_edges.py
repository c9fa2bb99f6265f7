"""Edges between latents, by BIC of families on counts of guessed states.

A family is a latent and its parents, in its own slice and in the one before. Its counts
come from the states that each slice by itself suggests, corrected for how often they
are wrong. The local graphs of windows and the global one are found in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

import numpy as np

from .._core.climb import climb
from .._core.criteria import bic_price
from .._core.graphs import is_acyclic
from ._tables import family_score

# Parents of a latent that are considered together, the most promising ones.
MAX_CANDIDATES = 5

# Latents up to which the best order of a slice is found among all.
MAX_EXACT_LATENTS = 12


class GuessedStates:
    """Counts of families from the most probable state of each slice by itself.

    The state that a slice suggests depends on the latents through its own latent
    alone, so that the table of suggested states is the table of true ones, blurred
    along each axis by a known matrix. EM takes the blur off.

    states: most probable states, -1 = nothing known, (n, n_slices, n_latents)
    confusions: P(suggested state | state), per latent, (cardinality, cardinality)
    weights: weights of the sequences, (n,)
    """

    # Tables of guessed states do not support more, and taking off the blur is slow.
    max_parents = 3
    max_cells = 1_500

    def __init__(self, states, confusions, weights):
        self.states, self.confusions = states, confusions
        self.has_past = states.shape[1] > 1
        self.cardinality = np.array([len(table) for table in confusions], dtype=int)
        now = states[:, 1:] if self.has_past else states
        before = states[:, : now.shape[1]]
        n_rows = now.shape[0] * now.shape[1]
        self._now = now.reshape(n_rows, states.shape[2])
        self._before = before.reshape(self._now.shape)
        self._weights = np.repeat(weights, now.shape[1])
        # A state that is known with certainty is worth a row, one that is guessed
        # nothing; a table of two latents loses by both.
        quality = [_agreement(table) for table in confusions]
        worth = float(np.mean(quality) ** 4) if quality else 1.0
        self.total = float(self._weights.sum()) * worth
        self.price = bic_price(self.total)
        self._tables: dict[tuple, np.ndarray] = {}

    def shifted(self, j: int, step: int) -> np.ndarray:
        """States of a latent some slices later, as if they were of this slice."""
        moved = np.full(self.states.shape[:2], -1)
        n_slices = moved.shape[1]
        here = slice(max(-step, 0), n_slices - max(step, 0))
        there = slice(max(step, 0), n_slices - max(-step, 0))
        moved[:, here] = self.states[:, there, j]
        return moved

    def prepare(self, families) -> None:
        """Find the tables of families, given as to `counts`, many at a time."""
        by_shape: dict[tuple, list] = {}
        for key in dict.fromkeys(map(_members, families)):
            if key not in self._tables:
                lengths = sorted(self.cardinality[[*key[0], *key[1]]].tolist())
                by_shape.setdefault(tuple(lengths), []).append(key)
        for shape, keys in by_shape.items():
            self._sharpen(keys, shape)

    def score(self, before, within, child) -> tuple[float, int]:
        """Log-likelihood of a latent given its parents, and free parameters."""
        family = before, within, child
        self.prepare([family])
        members = _members(family)[1]
        place = [len(before) + members.index(i) for i in (*within, child)]
        table = self._tables[_members(family)]
        return family_score(table.transpose(*range(len(before)), *place))

    def _sharpen(self, keys, shape) -> None:
        """Find tables side by side whose shapes are the same but for the order."""
        # Axes of each table by length.
        orders = [
            np.argsort(self.cardinality[[*before, *now]], kind="stable")
            for before, now in keys
        ]
        tables, confusions = [], []
        for (before, now), order in zip(keys, orders, strict=True):
            family = np.array([*before, *now])[order]
            past = order < len(before)
            tables.append(self._suggested(family, past, shape))
            confusions.append([self.confusions[i] for i in family])
        axes = [np.array(axis) for axis in zip(*confusions, strict=True)]
        found = _deblur(np.array(tables), axes)
        for key, order, sharp in zip(keys, orders, found, strict=True):
            sharp *= self.total / max(sharp.sum(), 1e-300)
            self._tables[key] = sharp.reshape(shape).transpose(np.argsort(order))

    def _suggested(self, family, past, shape) -> np.ndarray:
        """Counts of suggested states of latents, of some in the slice before."""
        columns = [
            (self._before if before else self._now)[:, i]
            for i, before in zip(family, past, strict=True)
        ]
        known = np.logical_and.reduce([column >= 0 for column in columns])
        index = np.ravel_multi_index([column[known] for column in columns], shape)
        return np.bincount(index, self._weights[known], minlength=np.prod(shape))


def _members(family) -> tuple[tuple, tuple]:
    """Latents of a family in the slice before, and in this one.

    Each latent of a table is a child in turn, and the table is the same.
    """
    before, within, child = family
    return tuple(before), tuple(sorted([*within, child]))


def _agreement(confusion) -> float:
    """Share of states found beyond chance, 0 to 1."""
    n = len(confusion)
    if n < 2:
        return 1.0
    return float(np.clip((confusion.diagonal().mean() - 1 / n) / (1 - 1 / n), 0.0, 1.0))


def _deblur(tables, confusions, tol=1e-6, max_iter=60) -> np.ndarray:
    """Tables whose blurred forms are closest to `tables` in likelihood, by EM.

    tables (n, n_cells), confusions (n, cardinality, cardinality) of each axis.
    """
    totals = tables.sum(axis=1, keepdims=True)
    shares = tables / np.maximum(totals, 1e-300)
    back_again = [matrix.swapaxes(1, 2) for matrix in confusions]
    last = np.full(len(tables), -np.inf)

    def expect(sharp):
        nonlocal last
        blurred = np.maximum(_blurred(sharp, confusions), 1e-300)
        back = _blurred(shares / blurred, back_again)
        value = (shares * np.log(blurred)).sum(axis=1)
        # A table that has converged does not wait for others.
        back[value - last <= tol] = 1.0
        last = value
        return value, sharp * back

    ascent = climb(
        expect,
        lambda _, sharper: sharper,
        np.full(tables.shape, 1.0 / tables.shape[1]),
        tol=tol,
        max_iter=max_iter,
        patient=False,
    )
    return ascent.state * totals


def _blurred(tables, confusions) -> np.ndarray:
    """Tables (n, n_cells), multiplied by a matrix of their own along each axis."""
    n, right = len(tables), tables.shape[1]
    for matrix in confusions:
        k = matrix.shape[1]
        right //= k
        tables = tables.reshape(n, -1, k, right)
        if right > 1:
            tables = np.matmul(matrix.swapaxes(1, 2)[:, None], tables)
        else:
            tables = np.matmul(tables[..., 0], matrix)
    return tables.reshape(n, -1)


def best_edges(counts) -> tuple[np.ndarray, np.ndarray]:
    """Find the directed edges of highest BIC, within a slice and into the next one.

    ``counts.score(before, within, child)`` is the log-likelihood of a family and its
    number of parameters, each of which costs ``counts.price``.
    """
    n = len(counts.cardinality)
    intra, inter = np.zeros((2, n, n), dtype=bool)
    families = [_Families(counts, child) for child in range(n)]
    # Tables of all latents are found together.
    counts.prepare(chain.from_iterable(family.trials() for family in families))
    for family in families:
        family.choose()
    counts.prepare(chain.from_iterable(family.choices() for family in families))
    for family in families:
        family.find_best()
    exact = n <= MAX_EXACT_LATENTS
    within = _best_order(families) if exact else _greedy_order(families)
    for child, inside in enumerate(within):
        intra[list(inside), child] = True
        inter[list(families[child].best[inside][1]), child] = True
    return intra, inter


class _Families:
    """Scores of the families of one latent.

    best: for every set of parents within the slice, the best score and the parents
        before that go with it
    """

    def __init__(self, counts, child: int):
        self.source, self.child = counts, child
        self._known: dict[tuple, float] = {}
        self.best: dict[tuple, tuple[float, tuple]] = {}
        n = len(counts.cardinality)
        self._own = (child,) if counts.has_past else ()
        # Families with a parent, without the own past and with it.
        self._trials: dict[tuple[int, bool], list[tuple]] = {
            (i, True): [((), (i,)), (self._own, (i,))] for i in range(n) if i != child
        }
        for i in range(n) if counts.has_past else ():
            self._trials[i, False] = [((i,), ()), (tuple(sorted({i, child})), ())]
        self._parents: dict[tuple, list[tuple]] = {}

    def trials(self) -> Iterator[tuple]:
        """Families that tell which parents are worth a closer look."""
        pairs = chain.from_iterable(self._trials.values())
        return self._families([((), ()), (self._own, ()), *pairs])

    def choose(self) -> None:
        """Choose parents that are worth a closer look: they help next to the own past.

        Then all sets of them are tried.
        """
        alone, with_own = self.score((), ()), self.score(self._own, ())
        gains = {
            key: max(self.score(*first) - alone, self.score(*second) - with_own)
            for key, (first, second) in self._trials.items()
        }
        useful = [key for key, gain in gains.items() if gain > 0]
        useful = sorted(useful, key=lambda key: -gains[key])[:MAX_CANDIDATES]
        before = sorted(i for i, now in useful if not now)
        within = sorted(i for i, now in useful if now)
        most = self.source.max_parents
        for inside in _subsets(within, most):
            self._parents[inside] = list(_subsets(before, most - len(inside)))

    def choices(self) -> Iterator[tuple]:
        """Families that may be the best."""
        return self._families(
            (out, inside) for inside, outs in self._parents.items() for out in outs
        )

    def find_best(self) -> None:
        """Find the best parents before for every set of parents within the slice."""
        for inside, outs in self._parents.items():
            scored = [(self.score(outside, inside), outside) for outside in outs]
            # The first of equal scores has the fewest parents.
            self.best[inside] = max(scored, key=lambda pair: pair[0])

    def score(self, before, within) -> float:
        """BIC of the family, higher is better."""
        key = before, within
        if key not in self._known:
            self._known[key] = -np.inf
            if self._fits(before, within):
                value, n_free = self.source.score(before, within, self.child)
                self._known[key] = value - self.source.price * n_free
        return self._known[key]

    def _fits(self, before, within) -> bool:
        """Whether the table of a family is small enough."""
        cards = self.source.cardinality[[*before, *within, self.child]]
        return bool(np.prod(cards, dtype=float) <= self.source.max_cells)

    def _families(self, parents) -> Iterator[tuple]:
        """Families with some parents, as `score` takes them."""
        return ((*both, self.child) for both in parents if self._fits(*both))


def _subsets(items, most):
    """Subsets of at most some items, small ones first."""
    sizes = range(min(len(items), most) + 1)
    return chain.from_iterable(combinations(items, size) for size in sizes)


def _best_order(families) -> list[tuple]:
    """Parents within the slice, best over all orders (Silander and Myllymäki, 2006)."""
    n = len(families)
    # Best value and last latent of every set of latents, coded as bits.
    values, last = [0.0] * (1 << n), [(-1, ())] * (1 << n)
    # The first that fits is the best.
    masks = [
        [
            (sum(1 << i for i in inside), score, inside)
            for inside, (score, _) in sorted(f.best.items(), key=lambda b: -b[1][0])
        ]
        for f in families
    ]
    for subset in range(1, 1 << n):
        best = -np.inf
        for j in range(n):
            if not subset >> j & 1:
                continue
            rest = subset & ~(1 << j)
            _, score, inside = next(m for m in masks[j] if m[0] & rest == m[0])
            if values[rest] + score > best:
                best = values[rest] + score
                last[subset] = j, inside
        values[subset] = best
    parents: list[tuple] = [()] * n
    subset = (1 << n) - 1
    while subset:
        j, inside = last[subset]
        parents[j] = inside
        subset &= ~(1 << j)
    return parents


def _greedy_order(families) -> list[tuple]:
    """Parents within the slice, added one by one while BIC gains and no cycle comes."""
    n = len(families)
    parents: list[tuple] = [()] * n
    adjacency = np.zeros((n, n), dtype=bool)
    while True:
        moves = []
        for j, family in enumerate(families):
            for inside, (score, _) in family.best.items():
                added = set(inside) - set(parents[j])
                if len(inside) == len(parents[j]) + 1 and len(added) == 1:
                    gain = score - family.best[parents[j]][0]
                    if gain > 0:
                        moves.append((-gain, added.pop(), j, inside))
        for _, i, j, inside in sorted(moves):
            adjacency[i, j] = True
            if is_acyclic(adjacency):
                parents[j] = inside
                break
            adjacency[i, j] = False
        else:
            return parents
