"""Which features measure the same latent, by BIC on pooled slices.

A set of features is split in two if two dependent hidden classes explain it better than
one, and sets that one class explains are joined again. No step looks at a single pair
of features alone, because a pair cannot tell a common cause from two causes that depend
on each other: a good feature of one latent is often closer to a good feature of another
than to a poor one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from scipy.stats import chi2

from .._core.choose import Growth
from .._core.criteria import bic_price
from ._hidden_classes import Classes, Rows, fit_classes, fit_pair, grow_classes, refined
from ._mutual_information import design_effect, mutual_information
from ._panels.panel import Panel

# A feature may belong to another group if it is this close to it, relative to its own.
NEARLY = 0.5

# Level of the test of independence that decides which features are looked at together.
LEVEL = 1e-3

# Rows that show two latents show them all the more if there are more, so that a sample
# of this many is asked first.
FEW_ROWS = 1000

# Pairs of halves between which features are moved, the best of five guesses. (With
# one, a latent of two features is torn apart in one of 20 random panels.)
N_SETTLED = 2

Halves = tuple[frozenset, frozenset]


@dataclass(frozen=True)
class SearchOptions:
    """What a search for latents is told.

    max_states: largest number of states of a latent
    n_states: number of states of all latents, None = chosen by BIC
    seed: of the random starts of hidden classes
    """

    max_states: int = 6
    n_states: int | None = None
    seed: int = 0


def column_groups(panel: Panel, options: SearchOptions) -> list[tuple[int, ...]]:
    """Groups of features that share a latent."""
    effect = design_effect(panel.codes, panel.weights)
    return GroupSearch(Rows.pooled(panel), effect, options).run()


class GroupSearch:
    """Search for the groups; remembers every model it has fitted.

    rows: pooled slices
    effect: design effect of each pair, (n_features, n_features)
    """

    def __init__(self, rows: Rows, effect, options: SearchOptions):
        self.rows, self.effect, self.options = rows, effect, options
        found = mutual_information(rows.counts, rows.n_categories)
        self.information, self.closeness, self.totals = found
        self.dependent = _dependent(
            self.information, self.totals / effect, rows.n_categories
        )
        self._rows: dict[frozenset, Rows] = {}
        self._models: dict[frozenset, Growth[Classes]] = {}
        self._pairs: dict[Halves, Classes] = {}
        self._splits: dict[frozenset, list[tuple]] = {}

    @cached_property
    def thin(self) -> GroupSearch | None:
        """The same search on a sample of the rows; None if they are few."""
        sample = self.rows.thinned(FEW_ROWS)
        if sample is self.rows:
            return None
        return GroupSearch(sample, self.effect, self.options)

    def run(self, max_rounds: int = 5) -> list[tuple[int, ...]]:
        """Split, then join and move until nothing changes."""
        _, labels = connected_components(self.dependent, directed=False)
        groups = [
            group
            for label in np.unique(labels)
            for group in self._split(frozenset(np.flatnonzero(labels == label)))
            if len(group) > 1
        ]
        for _ in range(max_rounds):
            before = set(groups)
            groups = self._move(self._join(groups))
            groups = [part for group in groups for part in self._split(group)]
            if set(groups) == before:
                break
        kept = [self._without_idle(group) for group in groups]
        return sorted(tuple(sorted(map(int, group))) for group in kept if group)

    # Models

    def rows_of(self, group: frozenset) -> Rows:
        """Rows of the features of a group, in order."""
        if group not in self._rows:
            self._rows[group] = self.rows.of_features(sorted(group))
        return self._rows[group]

    def models_of(self, group: frozenset) -> Growth[Classes]:
        """Models of one class with 1, 2, ... states, as far as they were fitted."""
        if group not in self._models:
            self._models[group] = grow_classes(
                self.rows_of(group),
                self.options.max_states,
                random_state=self.options.seed,
            )
        return self._models[group]

    def one_class(self, group: frozenset) -> Classes:
        """The best model with one hidden class."""
        return self.models_of(group).best

    def two_classes(self, first: frozenset, second: frozenset) -> Classes:
        """The model with a hidden class for each of two groups."""
        key = _ordered(first, second)
        if key not in self._pairs:
            rows, in_first = self._sides(*key)
            alone = [self.one_class(group).emission[0] for group in key]
            # A weak group alone does not show states that both together do.
            both = self.one_class(key[0] | key[1]).emission[0]
            columns = np.repeat(in_first, rows.n_categories)
            agreeing = both[:, columns], both[:, ~columns]
            found = [fit_pair(rows, in_first, *start) for start in (alone, agreeing)]
            self._pairs[key] = max(found, key=lambda model: model.bic)
        return self._pairs[key]

    def gain_of_two(self, first: frozenset, second: frozenset) -> float:
        """BIC of two classes less that of one; by a sample if that is above 0."""
        if self.thin is not None:
            gain = self.thin.gain_of_two(first, second)
            if gain > 0:
                return gain
        return self._own_gain(first, second)

    def _own_gain(self, first: frozenset, second: frozenset) -> float:
        """As `gain_of_two`, by these rows."""
        return self.two_classes(first, second).bic - self.one_class(first | second).bic

    def _sides(self, first: frozenset, second: frozenset) -> tuple[Rows, np.ndarray]:
        """Rows of two groups together, and which features are of the first."""
        both = first | second
        in_first = np.array([feature in first for feature in sorted(both)])
        return self.rows_of(both), in_first

    # Steps

    def _split(self, group: frozenset) -> list[frozenset]:
        """Split a group in two, again and again, while BIC gains."""
        if self.thin is not None:
            parts = self.thin._split(group)
            if len(parts) > 1:
                return [part for half in parts for part in self._split(half)]
        halves = self.best_halves(group)
        if not halves or halves[0][2] <= 0:
            return [group]
        return [part for half in halves[0][:2] for part in self._split(half)]

    def best_halves(self, group: frozenset) -> list[tuple[frozenset, frozenset, float]]:
        """Two groups in place of one, and what BIC gains; the best pair first."""
        # With fewer than two features a class is the feature itself, and a feature
        # that depends on a class is the same as one that measures it.
        if len(group) < 4:
            return []
        if group not in self._splits:
            guesses = [
                (first, group - first)
                for first in dict.fromkeys(candidate_halves(self, group))
                if 2 <= len(first) <= len(group) - 2
            ]
            found = self._ranked(guesses)
            settled = [self._settle(*halves[:2]) for halves in found[:N_SETTLED]]
            self._splits[group] = self._ranked([*guesses, *settled])
        return self._splits[group]

    def _ranked(self, pairs) -> list[tuple[frozenset, frozenset, float]]:
        """Distinct pairs of groups with what BIC gains; the best first."""
        distinct = {frozenset(halves): halves for halves in pairs}.values()
        found = [(*halves, self._own_gain(*halves)) for halves in distinct]
        return sorted(found, key=lambda halves: -halves[2])

    def _settle(self, first: frozenset, second: frozenset) -> Halves:
        """Move features between two groups while BIC gains."""
        first, second = _ordered(first, second)
        model = self.two_classes(first, second)
        tried: set[int] = set()
        while True:
            features = sorted(first | second)
            moves = candidate_moves(*self._sides(first, second), model)
            best = max(
                (place for place, f in enumerate(features) if f not in tried),
                key=lambda place: moves[place][0],
                default=None,
            )
            if best is None or moves[best][0] <= 0:
                return first, second
            feature = features[best]
            tried.add(feature)
            moved = first ^ {feature}, second ^ {feature}
            if min(map(len, moved)) < 2:
                continue
            candidate = fit_pair(*self._sides(*moved), *moves[best][1])
            if candidate.bic > model.bic:
                first, second, model = *moved, candidate

    def _join(self, groups: Sequence[frozenset]) -> list[frozenset]:
        """Join groups that one hidden class explains better than two."""
        groups = list(groups)
        while len(groups) > 1:
            for i, j in self._neighbours(groups):
                if not self._may_join(groups[i], groups[j]):
                    continue
                if self.gain_of_two(groups[i], groups[j]) <= 0:
                    joined = groups[i] | groups[j]
                    groups = [g for k, g in enumerate(groups) if k not in (i, j)]
                    groups.append(joined)
                    break
            else:
                break
        return groups

    def _move(self, groups: Sequence[frozenset]) -> list[frozenset]:
        """Move features between all groups that depend on each other."""
        groups = list(groups)
        for i, j in self._neighbours(groups):
            pair = groups[i], groups[j]
            if min(map(len, pair)) > 1 and self._may_move(*pair):
                groups[i], groups[j] = self._settle(*pair)
        return groups

    def _may_join(self, first: frozenset, second: frozenset) -> bool:
        """Whether features of two groups are about as close as those of each group.

        Those of one latent are, however it is divided.
        """
        means = [
            self.closeness[np.ix_(group, group)].sum() / (len(group) ** 2 - len(group))
            for group in map(sorted, (first, second))
        ]
        between = self.closeness[np.ix_(sorted(first), sorted(second))].mean()
        return between > NEARLY * np.sqrt(np.prod(means))

    def _may_move(self, first: frozenset, second: frozenset) -> bool:
        """Whether a feature is about as close to the other group as to its own."""
        return any(
            self.closeness[feature, sorted(other)].mean()
            > NEARLY * self.closeness[feature, sorted(own - {feature})].mean()
            for own, other in ((first, second), (second, first))
            for feature in own
        )

    def _neighbours(self, groups: Sequence[frozenset]) -> list[tuple[int, int]]:
        """Pairs of groups that depend on each other, the closest first."""
        found = []
        for i in range(len(groups)):
            for j in range(i):
                between = np.ix_(sorted(groups[i]), sorted(groups[j]))
                if self.dependent[between].any():
                    found.append((-self.closeness[between].mean(), j, i))
        return [(i, j) for _, i, j in sorted(found)]

    def _without_idle(self, group: frozenset) -> frozenset:
        """Leave out features that say nothing about the class of their group."""
        while len(group) > 1:
            linked = [i for i in sorted(group) if self.dependent[i].any()]
            if len(linked) < len(group):
                group = frozenset(linked)
                continue
            if self.one_class(group).n_classes == 1:
                # Too weak to show a class by itself, but other features need it.
                others = np.setdiff1d(np.arange(len(self.dependent)), linked)
                needed = self.dependent[np.ix_(linked, others)].any()
                return group if needed else frozenset()
            idle = [i for i in sorted(group) if self._is_idle(i, group)]
            if not idle:
                return group
            group = group - {idle[0]}
        return frozenset()

    def _is_idle(self, feature: int, group: frozenset) -> bool:
        """Whether BIC gains when a feature does not depend on the class."""
        if len(group) == 2:
            return False
        alone = fit_classes(self.rows_of(frozenset([feature])), 1)
        without = self.one_class(group - {feature}).bic + alone.bic
        return without > self.one_class(group).bic


def candidate_halves(search: GroupSearch, group: frozenset) -> Iterator[frozenset]:
    """Guesses at one half of a group that may have two latents."""
    model, rows = search.one_class(group), search.rows_of(group)
    features = np.array(sorted(group))
    near = np.ix_(features, features)
    # What one class leaves unexplained: too little dependence among features of
    # the same latent, too much between those of different ones.
    emission = model.emission[0]
    pairs = (emission * model.joint[:, None]).T @ emission
    residual = (
        search.information[near] - mutual_information(pairs, rows.n_categories)[0]
    )
    np.fill_diagonal(residual, 0.0)
    scale = np.maximum(np.sqrt(np.abs(residual).sum(axis=1)), 1e-12)
    for matrix in (residual, residual / np.outer(scale, scale)):
        values, vectors = np.linalg.eigh(matrix)
        yield frozenset(features[vectors[:, np.argmax(values)] > 0])
    # A weak latent among strong features.
    strength = search.closeness[near].sum(axis=1)
    order = np.argsort(strength, kind="stable")
    gaps = np.diff(np.log(np.maximum(strength[order], 1e-12)))[1:-1]
    yield frozenset(features[order[: 2 + int(np.argmax(gaps))]])
    for distance in (1.0 - search.closeness[near], _profile_gaps(search, features)):
        np.fill_diagonal(distance, 0.0)
        tree = linkage(squareform(distance, checks=False), "average")
        yield frozenset(features[fcluster(tree, 2, "maxclust") == 1])


def _profile_gaps(search: GroupSearch, features) -> np.ndarray:
    """How far two features are from being related to all others alike.

    Dependence falls by a factor along each edge of a tree, so two features of the
    same latent differ from each other by the same factor towards any third one,
    whatever their quality (Choi et al., 2011, Learning latent tree graphical models).
    """
    near = np.ix_(features, features)
    information, totals = search.information[near], search.totals[near]
    # Noise has a mutual information too, and its logarithm an error of its own.
    free = np.outer(*(2 * [search.rows.n_categories[features] - 1.0]))
    noise = free / (2 * np.maximum(totals, 1.0))
    strength = np.maximum(information - noise, 0.1 * noise + 1e-12)
    logs = np.log(strength)
    errors = (2 * strength / np.maximum(totals, 1.0) + noise**2) / strength**2
    n = len(features)
    gaps = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            others = np.delete(np.arange(n), [j, i])
            weight = 1.0 / (errors[i, others] + errors[j, others] + 0.01)
            shift = logs[i, others] - logs[j, others]
            mean = weight @ shift / weight.sum()
            gaps[i, j] = np.sqrt(weight @ (shift - mean) ** 2 / weight.sum())
    return gaps + gaps.T


def candidate_moves(rows: Rows, in_first, model: Classes) -> list[tuple[float, list]]:
    """For each feature about what BIC gains if it moves, and tables after the move.

    Each feature is predicted from all others, through its own class and through the
    other one.
    """
    price = bic_price(rows.total)
    # Classes and categories come first in all arrays: sums over few are quick that way.
    values = np.split(np.ascontiguousarray(rows.one_hot.T), rows.layout.offsets[1:])
    places = np.flatnonzero(in_first), np.flatnonzero(~in_first)
    sides = [
        dict(zip(own, model.tables(k), strict=True)) for k, own in enumerate(places)
    ]
    logs = [sum(np.log(t) @ values[f] for f, t in side.items()) for side in sides]
    moves: dict[int, tuple[float, list]] = {}
    for k, joint in enumerate((model.joint, model.joint.T)):
        others = _likelihood(logs[1 - k])
        through = joint @ others
        for f, table in sides[k].items():
            # A value that is missing is certain, whatever the class.
            gap = 1.0 - values[f].sum(axis=0)
            rest = _likelihood(logs[k] - np.log(table) @ values[f])
            stay = _shares(rest * through)
            value = rows.weights @ np.log(
                (stay * (table @ values[f] + gap)).sum(axis=0)
            )
            leave = refined(_shares(others * (joint.T @ rest)), values[f], gap, rows)
            n_more = (len(leave.state) - len(table)) * (len(values[f]) - 1)
            after = [dict(sides[0]), dict(sides[1])]
            del after[k][f]
            after[1 - k][f] = leave.state
            tables = [np.hstack([own[g] for g in sorted(own)]) for own in after if own]
            moves[f] = leave.objective - value - price * n_more, tables
    return [moves[f] for f in sorted(moves)]


def _likelihood(logs) -> np.ndarray:
    return np.exp(logs - logs.max(axis=0))


def _shares(weights) -> np.ndarray:
    return weights / weights.sum(axis=0)


def _dependent(information, totals, n_categories) -> np.ndarray:
    """Pairs that are hardly independent; BIC decides later what is worth a latent."""
    free = np.outer(n_categories - 1, n_categories - 1)
    limit = chi2.isf(LEVEL, np.maximum(free, 1))
    return (free > 0) & (2 * totals * information > limit)


def _ordered(first: frozenset, second: frozenset) -> Halves:
    return (first, second) if min(first) < min(second) else (second, first)
