"""Edges between latents, by BIC of families on expected counts.

A family is a latent and its parents, in its own slice and in the one before. Counts
come from the chain in which every latent depends on all others, which assumes nothing
about edges, or, where that chain has too many states, from the states that each slice
by itself suggests, corrected for how often they are wrong.
"""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np

from ..._climb import climb
from ..._criteria import bic_price
from ..._graphs import is_acyclic, slice_equivalence_class
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

    def counts(self, before, within, child) -> np.ndarray:
        """As in `JointCounts`."""
        # Each latent of a table is a child in turn, and the table is the same.
        members = sorted([*within, child])
        key = tuple(before), tuple(members)
        if key not in self._tables:
            self._tables[key] = self._sharp_counts(*key)
        place = [len(before) + members.index(i) for i in (*within, child)]
        return self._tables[key].transpose(*range(len(before)), *place)

    def _sharp_counts(self, before, now) -> np.ndarray:
        """Counts with one axis per latent of the slice before, and of this one."""
        columns = [self._before[:, i] for i in before]
        columns += [self._now[:, i] for i in now]
        family = [*before, *now]
        known = np.logical_and.reduce([column >= 0 for column in columns])
        shape = tuple(self.cardinality[family])
        index = np.ravel_multi_index([column[known] for column in columns], shape)
        table = np.bincount(index, self._weights[known], minlength=np.prod(shape))
        sharp = _deblur(table.reshape(shape), [self.confusions[i] for i in family])
        return sharp * (self.total / max(sharp.sum(), 1e-300))


def _agreement(confusion) -> float:
    """Share of states found beyond chance, 0 to 1."""
    n = len(confusion)
    if n < 2:
        return 1.0
    return float(np.clip((confusion.diagonal().mean() - 1 / n) / (1 - 1 / n), 0.0, 1.0))


def _deblur(table, confusions, tol=1e-6, max_iter=60) -> np.ndarray:
    """The table whose blurred form is closest to `table` in likelihood, by EM."""
    blur = np.ones((1, 1))
    for matrix in confusions:
        blur = np.kron(blur, matrix)
    shares = table.ravel() / max(table.sum(), 1e-300)

    def expect(sharp):
        blurred = np.maximum(sharp @ blur, 1e-300)
        return shares @ np.log(blurred), sharp * (blur @ (shares / blurred))

    start = np.full(table.size, 1.0 / table.size)
    ascent = climb(
        expect,
        lambda _, sharper: sharper,
        start,
        tol=tol,
        max_iter=max_iter,
        patient=False,
    )
    return (ascent.state * table.sum()).reshape(table.shape)


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
        before, within = self._candidates()
        self.best: dict[tuple, tuple[float, tuple]] = {}
        most = counts.max_parents
        for inside in _subsets(within, most):
            scored = [
                (self.score(outside, inside), outside)
                for outside in _subsets(before, most - len(inside))
            ]
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
        cards = self.source.cardinality
        n_cells = np.prod(cards[[*before, *within, self.child]], dtype=float)
        if n_cells > self.source.max_cells:
            return -np.inf, np.inf
        counts = self.source.counts(before, within, self.child)
        value, n_parameters = family_score(counts)
        return value, bic_price(self.source.total) * n_parameters

    def _candidates(self) -> tuple[tuple, tuple]:
        """Parents that are worth a closer look: they help next to the own past."""
        n, child = len(self.source.cardinality), self.child
        past = range(n) if self.source.has_past else range(0)
        own = (child,) if self.source.has_past else ()
        alone, with_own = self.score((), ()), self.score(own, ())
        gains = {}
        for i in past:
            if i == child:
                gain = with_own - alone
            else:
                gain = max(
                    self.score((i,), ()) - alone,
                    self.score(tuple(sorted((i, child))), ()) - with_own,
                )
            gains[i, False] = gain
        for i in range(n):
            if i != child:
                gains[i, True] = max(
                    self.score((), (i,)) - alone, self.score(own, (i,)) - with_own
                )
        useful = [key for key, gain in gains.items() if gain > 0]
        useful = sorted(useful, key=lambda key: -gains[key])[:MAX_CANDIDATES]
        return (
            tuple(sorted(i for i, now in useful if not now)),
            tuple(sorted(i for i, now in useful if now)),
        )


def _subsets(items, most):
    """Subsets of at most some items, small ones first."""
    sizes = range(min(len(items), most) + 1)
    return chain.from_iterable(combinations(items, size) for size in sizes)


def _best_order(families) -> list[tuple]:
    """Parents within the slice, best over all orders (Silander and Myllymäki, 2006)."""
    n = len(families)
    # Best value and last latent of every set of latents, coded as bits.
    values, last = [0.0] * (1 << n), [(-1, ())] * (1 << n)
    masks = [
        [
            (sum(1 << i for i in inside), score, inside)
            for inside, (score, _) in f.best.items()
        ]
        for f in families
    ]
    for subset in range(1, 1 << n):
        best = -np.inf
        for j in range(n):
            if not subset >> j & 1:
                continue
            rest = subset & ~(1 << j)
            fits = [(s, inside) for mask, s, inside in masks[j] if mask & rest == mask]
            score, inside = max(fits, key=lambda pair: pair[0])
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
