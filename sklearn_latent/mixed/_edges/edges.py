"""Edges between latents, by BIC of families on expected counts.

A family is a latent and its parents, in its own slice and in the one before. Counts
come from the chain in which every latent depends on all others, which assumes nothing
about edges, or, where that chain has too many states, from the states that each slice
by itself suggests, corrected for how often they are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

import numpy as np

from ..._core.climb import climb
from ..._core.criteria import bic_price
from ..._core.graphs import is_acyclic, slice_equivalence_class
from .._tables import family_counts, family_score

# Parents of a latent that are considered together, the most promising ones.
MAX_CANDIDATES = 5

# Latents up to which the best order of a slice is found among all.
MAX_EXACT_LATENTS = 12


class JointCounts:
    """Counts of families from joint counts of all latents.

    joint: one axis per latent of the slice before (absent if the model has one slice),
        then one per latent of this slice
    n_latents: number of latents
    """

    max_parents = 5
    max_cells = 100_000

    def __init__(self, joint, n_latents: int):
        self.joint = joint
        self.has_past = joint.ndim == 2 * n_latents
        self.cardinality = np.array(joint.shape[-n_latents:] if n_latents else [], int)
        self.total = float(joint.sum())

    def prepare(self, families) -> None:
        """Nothing takes long here."""

    def counts(self, before, within, child) -> np.ndarray:
        """Counts with one axis per parent before, per parent within, and the child."""
        family = [(i, False) for i in before] + [(i, True) for i in (*within, child)]
        return family_counts(self.joint, range(len(self.cardinality)), family)


class AssignedCounts:
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
        n_slices = states.shape[1]
        self.has_past = n_slices > 1
        self.confusions = confusions
        self.cardinality = np.array([len(table) for table in confusions], dtype=int)
        n_rows = len(states) * max(n_slices - 1, 1)
        now = states[:, 1:] if self.has_past else states
        self._now = now.reshape(n_rows, states.shape[2])
        self._before = states[:, : now.shape[1]].reshape(n_rows, states.shape[2])
        self._weights = np.repeat(weights, max(n_slices - 1, 1))
        # A state that is known with certainty is worth a row, one that is guessed
        # nothing; a table of two latents loses by both.
        quality = [_agreement(table) for table in confusions]
        self._worth = float(np.mean(quality) ** 4) if quality else 1.0
        self.total = float(self._weights.sum()) * self._worth
        self._tables: dict[tuple, np.ndarray] = {}

    def prepare(self, families) -> None:
        """Find the tables of families, given as to `counts`, many at a time."""
        by_shape: dict[tuple, list] = {}
        for key in dict.fromkeys(map(_members, families)):
            if key not in self._tables:
                lengths = sorted(self.cardinality[[*key[0], *key[1]]].tolist())
                by_shape.setdefault(tuple(lengths), []).append(key)
        for shape, keys in by_shape.items():
            self._sharpen(keys, shape)

    def counts(self, before, within, child) -> np.ndarray:
        """As in `JointCounts`."""
        family = before, within, child
        self.prepare([family])
        members = _members(family)[1]
        place = [len(before) + members.index(i) for i in (*within, child)]
        table = self._tables[_members(family)]
        return table.transpose(*range(len(before)), *place)

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


def learn_edges(counts) -> tuple[np.ndarray, np.ndarray]:
    """Find the edges of highest BIC, and which directions the data cannot tell."""
    intra, inter, _ = best_edges(counts)
    return slice_equivalence_class(intra, inter), inter


def best_edges(counts, doubt=0.0):
    """Find the edges of highest BIC, and which of them rest on little evidence."""
    n = len(counts.cardinality)
    intra = np.zeros((n, n), dtype=bool)
    inter = np.zeros((n, n), dtype=bool)
    if not n:
        return intra, inter, []
    families = [_Families(counts, child) for child in range(n)]
    # Tables of all latents are found together.
    counts.prepare(chain.from_iterable(family.trials() for family in families))
    for family in families:
        family.choose()
    counts.prepare(chain.from_iterable(family.choices() for family in families))
    for family in families:
        family.find_best()
    within = (
        _best_order(families) if n <= MAX_EXACT_LATENTS else _greedy_order(families)
    )
    doubtful = []
    for child, inside in enumerate(within):
        family = families[child]
        before = family.best[inside][1]
        intra[list(inside), child] = True
        inter[list(before), child] = True
        edges = [("intra", i) for i in inside] + [("inter", i) for i in before]
        for kind, parent in edges:
            ratio = family.evidence(before, inside, kind, parent)
            if ratio < doubt:
                doubtful.append((ratio, kind, parent, child))
    return intra, inter, [edge for _, *edge in sorted(doubtful)]


class _Families:
    """Scores of the families of one latent.

    best: for every set of parents within the slice, the best score and the parents
        before that go with it
    """

    def __init__(self, counts, child: int):
        self.source, self.child = counts, child
        self._known: dict[tuple, tuple[float, float]] = {}
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
        log_likelihood, penalty = self._parts(before, within)
        return log_likelihood - penalty

    def evidence(self, before, within, kind, parent) -> float:
        """Log-likelihood that an edge gains, in units of its penalty."""
        without = [
            tuple(i for i in parents if i != parent or kind != own)
            for parents, own in ((before, "inter"), (within, "intra"))
        ]
        value, penalty = self._parts(before, within)
        less, less_penalty = self._parts(*without)
        return (value - less) / max(penalty - less_penalty, 1e-12)

    def _parts(self, before, within) -> tuple[float, float]:
        """Log-likelihood of the family given its counts, and its penalty."""
        key = before, within
        if key not in self._known:
            self._known[key] = self._computed_parts(before, within)
        return self._known[key]

    def _computed_parts(self, before, within) -> tuple[float, float]:
        if not self._fits(before, within):
            return -np.inf, np.inf
        counts = self.source.counts(before, within, self.child)
        value, n_parameters = family_score(counts)
        return value, bic_price(self.source.total) * n_parameters

    def _fits(self, before, within) -> bool:
        """Whether the table of a family is small enough."""
        cards = self.source.cardinality[[*before, *within, self.child]]
        return bool(np.prod(cards, dtype=float) <= self.source.max_cells)

    def _families(self, parents) -> Iterator[tuple]:
        """Families with some parents, as `counts` takes them."""
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
