"""Which features measure the same latent, by BIC on pooled slices.

A set of features is split in two if two dependent hidden classes explain it better than
one, and sets that one class explains are joined again. No step looks at a
single pair of features alone, because a pair cannot tell a common cause from two
causes that depend on each other: a good feature of one latent is often closer to a good
feature of another than to a poor one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.stats import chi2

from .._classes.dependence import design_effect, mutual_information, pair_counts
from .._classes.latent_class import LatentClasses, Rows, fit_classes, fit_classes_bic
from .._classes.latent_pair import LatentPair, candidate_moves, fit_pair
from .._panels.panel import Panel
from .groups import SearchOptions
from .halves import candidate_halves

# Rounds of joining and moving; each ends earlier when nothing changes.
MAX_ROUNDS = 5

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

# Steps of EM from a start that is nearly right already.
SHORT = 60


def measurement_search(panel: Panel, options: SearchOptions) -> MeasurementSearch:
    """The search for groups of features that share a latent."""
    effect = design_effect(panel.codes, panel.weights)
    return MeasurementSearch(Rows.pooled(panel), effect, options)


class MeasurementSearch:
    """Search for the groups; remembers every model it has fitted.

    rows: pooled slices
    effect: design effect of each pair, (n_features, n_features)
    options: largest number of states of a latent, seed of random starts
    """

    def __init__(self, rows: Rows, effect, options: SearchOptions):
        self.rows = rows
        self.options = options
        counts = pair_counts(rows.one_hot(), rows.weights)
        information, self.closeness, totals = mutual_information(
            counts, rows.n_categories
        )
        self.information = information
        self.totals = totals
        self.dependent = _dependent(information, totals / effect, rows.n_categories)
        self.effect = effect
        self._rows: dict[frozenset, Rows] = {}
        self._models: dict[frozenset, list[LatentClasses]] = {}
        self._plain: dict[tuple[frozenset, frozenset], LatentPair] = {}
        self._pairs: dict[tuple[frozenset, frozenset], LatentPair] = {}
        self._splits: dict[frozenset, list[tuple]] = {}

    @cached_property
    def thin(self) -> MeasurementSearch | None:
        """The same search on a sample of the rows; None if they are few."""
        sample = self.rows.thinned(FEW_ROWS)
        if sample is self.rows:
            return None
        return MeasurementSearch(sample, self.effect, self.options)

    def run(self) -> list[tuple[int, ...]]:
        """Split, then join and move until nothing changes."""
        _, labels = connected_components(self.dependent, directed=False)
        groups = [
            group
            for label in np.unique(labels)
            for group in self._split(frozenset(np.flatnonzero(labels == label)))
            if len(group) > 1
        ]
        for _ in range(MAX_ROUNDS):
            before = set(groups)
            groups = self._join(groups)
            groups = self._move(groups)
            groups = [part for group in groups for part in self._split(group)]
            if set(groups) == before:
                break
        return _as_tuples(part for group in groups for part in self._drop(group))

    # Models

    def rows_of(self, group: frozenset) -> Rows:
        """Rows of the features of a group, in order."""
        if group not in self._rows:
            self._rows[group] = self.rows.of_features(sorted(group))
        return self._rows[group]

    def one_class(self, group: frozenset) -> LatentClasses:
        """The best model with one hidden class."""
        if group not in self._models:
            self._models[group] = fit_classes_bic(
                self.rows_of(group),
                self.options.max_states,
                random_state=self.options.seed,
            )
        return max(self._models[group], key=lambda model: model.bic)

    def models_of(self, group: frozenset) -> list[LatentClasses]:
        """Models with 1, 2, ... classes, as far as they were fitted."""
        self.one_class(group)
        return self._models[group]

    def two_classes(self, first: frozenset, second: frozenset) -> LatentPair:
        """The model with a hidden class for each of two groups.

        A group alone may be too weak to show all states of its class, which the other
        group then helps to tell apart, so larger numbers of states are tried too.
        """
        key = _ordered(first, second)
        if key not in self._pairs:
            self._pairs[key] = self._enlarged(key, self._plain_pair(key))
        return self._pairs[key]

    def _enlarged(self, key, model: LatentPair) -> LatentPair:
        """The best of a model and models with more states."""
        tables = [self.one_class(group).emission for group in key]
        tried = set()
        for side in (0, 1, 0, 1):
            sizes = len(tables[0]) + (side == 0), len(tables[1]) + (side == 1)
            states = self.models_of(key[side])
            if sizes in tried or sizes[side] > len(states):
                continue
            tried.add(sizes)
            larger = list(tables)
            larger[side] = states[sizes[side] - 1].emission
            candidate = self._fit_pair(key, larger, SHORT, model)
            if candidate.bic > model.bic:
                model, tables = candidate, larger
        candidate = self._fit_pair(key, self._agreeing(key), SHORT, model)
        return max(model, candidate, key=lambda pair: pair.bic)

    def gain_of_two(self, first, second) -> float:
        """BIC of two classes less that of one, or a lower bound above 0."""
        if self.thin is not None:
            gain = self.thin.gain_of_two(first, second)
            if gain > 0:
                return gain
        return self._own_gain(first, second)

    def _own_gain(self, first, second) -> float:
        """As `gain_of_two`, by these rows."""
        one = self.one_class(first | second).bic
        # Larger numbers of states can only add to a gain.
        gain = self._plain_pair(_ordered(first, second)).bic - one
        return gain if gain > 0 else self.two_classes(first, second).bic - one

    def _plain_pair(self, key) -> LatentPair:
        """The model with the numbers of states that each group shows alone."""
        if key not in self._plain:
            tables = [self.one_class(group).emission for group in key]
            self._plain[key] = self._fit_pair(key, tables)
        return self._plain[key]

    def _agreeing(self, key) -> list[np.ndarray]:
        """Tables of two groups under the one class of both, as if the two agreed.

        They know of states that a weak group alone does not show.
        """
        rows, in_first = self._sides(*key)
        emission = self.one_class(key[0] | key[1]).emission
        columns = np.repeat(in_first, rows.n_categories)
        return [emission[:, columns], emission[:, ~columns]]

    def _fit_pair(self, key, tables, max_iter=200, rival=None) -> LatentPair:
        rows, in_first = self._sides(*key)
        return fit_pair(rows, in_first, *tables, max_iter=max_iter, rival=rival)

    def _sides(self, first, second) -> tuple[Rows, np.ndarray]:
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
        if not halves or halves[0][2] <= self.one_class(group).bic:
            return [group]
        return [part for half in halves[0][:2] for part in self._split(half)]

    def best_halves(self, group: frozenset) -> list[tuple]:
        """Two groups in place of one, and their BIC; the best pair first."""
        # With fewer than two features a class is the feature itself, and a feature
        # that depends on a class is the same as one that measures it.
        if len(group) < 4:
            return []
        if group not in self._splits:
            firsts = [
                first
                for first in dict.fromkeys(candidate_halves(self, group))
                if 2 <= len(first) <= len(group) - 2
            ]
            found = self._ranked(group, ((first, group - first) for first in firsts))
            settled = [self._settle(*halves[:2]) for halves in found[:N_SETTLED]]
            pairs = [*(halves[:2] for halves in found), *settled]
            self._splits[group] = self._ranked(group, pairs)
        return self._splits[group]

    def _ranked(self, group, pairs) -> list[tuple]:
        """Distinct pairs of groups with the BIC of two classes; the best first.

        A lower bound, where it is better than that of one class.
        """
        one = self.one_class(group).bic
        distinct = {frozenset(halves): halves for halves in pairs}.values()
        found = [
            (first, second, one + self._own_gain(first, second))
            for first, second in distinct
        ]
        return sorted(found, key=lambda halves: -halves[2])

    def _settle(self, first, second) -> tuple[frozenset, frozenset]:
        """Move features between two groups while BIC gains."""
        first, second = _ordered(first, second)
        # Most pairs have nothing to move, which a plain model shows as well.
        model = self._pairs.get((first, second)) or self._plain_pair((first, second))
        tried: set[int] = set()
        while True:
            features = sorted(first | second)
            moves = candidate_moves(*self._sides(first, second), model)
            best = max(
                (place for place, f in enumerate(features) if f not in tried),
                key=lambda place: moves[place].gain,
                default=None,
            )
            if best is None or moves[best].gain <= 0:
                return first, second
            feature = features[best]
            tried.add(feature)
            moved = first ^ {feature}, second ^ {feature}
            if min(map(len, moved)) < 2:
                continue
            candidate = self._fit_pair(moved, moves[best].tables(), SHORT)
            if candidate.bic > model.bic:
                first, second, model = *moved, candidate

    def _join(self, groups: Sequence[frozenset]) -> list[frozenset]:
        """Join groups that one hidden class explains better than two."""
        groups = list(groups)
        while len(groups) > 1:
            for i, j in self.neighbours(groups):
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
        for i, j in self.neighbours(groups):
            if min(len(groups[i]), len(groups[j])) < 2:
                continue
            if self._may_move(groups[i], groups[j]):
                groups[i], groups[j] = self._settle(groups[i], groups[j])
        return groups

    def _may_join(self, first, second) -> bool:
        """Whether features of two groups are about as close as those of each group.

        Those of one latent are, however it is divided.
        """
        within = [
            self.closeness[np.ix_(group, group)]
            for group in map(sorted, (first, second))
        ]
        means = [part.sum() / (len(part) * (len(part) - 1)) for part in within]
        between = self.closeness[np.ix_(sorted(first), sorted(second))].mean()
        return between > NEARLY * np.sqrt(np.prod(means))

    def _may_move(self, first, second) -> bool:
        """Whether a feature is about as close to the other group as to its own."""
        for own, other in ((first, second), (second, first)):
            for feature in own:
                rest = sorted(own - {feature})
                to_own = self.closeness[feature, rest].mean()
                to_other = self.closeness[feature, sorted(other)].mean()
                if to_other > NEARLY * to_own:
                    return True
        return False

    def neighbours(self, groups) -> list[tuple[int, int]]:
        """Pairs of groups that depend on each other, the closest first."""
        found = []
        for i in range(len(groups)):
            for j in range(i):
                between = np.ix_(sorted(groups[i]), sorted(groups[j]))
                if self.dependent[between].any():
                    found.append((-self.closeness[between].mean(), j, i))
        return [(i, j) for _, i, j in sorted(found)]

    def _drop(self, group: frozenset) -> list[frozenset]:
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
                return [group] if needed else []
            weak = [i for i in sorted(group) if self._is_idle(i, group)]
            if not weak:
                return [group]
            group = group - {weak[0]}
        return []

    def _is_idle(self, feature, group) -> bool:
        """Whether BIC gains when a feature does not depend on the class."""
        if len(group) == 2:
            return False
        others = group - {feature}
        alone = fit_classes(self.rows_of(frozenset([feature])), 1)
        return self.one_class(others).bic + alone.bic > self.one_class(group).bic


def _dependent(information, totals, n_categories) -> np.ndarray:
    """Pairs that are hardly independent; BIC decides later what is worth a latent."""
    free = np.outer(n_categories - 1, n_categories - 1)
    limit = chi2.isf(LEVEL, np.maximum(free, 1))
    return (free > 0) & (2 * totals * information > limit)


def _as_tuples(groups) -> list[tuple[int, ...]]:
    return sorted(tuple(sorted(int(i) for i in group)) for group in groups)


def _ordered(first: frozenset, second: frozenset) -> tuple[frozenset, frozenset]:
    return (first, second) if min(first) < min(second) else (second, first)
