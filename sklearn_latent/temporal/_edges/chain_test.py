"""One latent or two? The chain over time decides where slices alone hardly do."""

from __future__ import annotations

import numpy as np

from .._measurement.cardinality import SearchOptions, one_latent_bic
from .._measurement.groups import Measurement
from .._measurement.measurement import MeasurementSearch
from .._panels.panel import Panel
from .structure import learn_graph

# Nats of BIC within which the comparison on single slices is not trusted alone: where
# it keeps two groups apart, and where it keeps a group together.
CLOSE_APART = 60.0
CLOSE_TOGETHER = 25.0


def review_by_chain(
    panel: Panel, search: MeasurementSearch, groups, options: SearchOptions
) -> list[tuple[int, ...]]:
    """Decide close calls between one latent and two by BIC of their chains.

    Slices alone do not know how latents move. Two groups that move alike are one
    latent, and a group whose halves move differently is two.
    """
    review = _Review(panel, search, options)
    current = [frozenset(group) for group in groups]
    current = [part for group in current for part in review.split(group)]
    current = review.join(current)
    return sorted(tuple(sorted(int(i) for i in group)) for group in current)


class _Review:
    def __init__(self, panel, search, options):
        self.panel = panel
        self.search = search
        self.options = options
        self._gains: dict[frozenset, float] = {}

    def split(self, group: frozenset) -> list[frozenset]:
        """Split a group that slices alone keep together by a small margin."""
        one = self.search.one_class(group).bic
        halves = self.search.best_halves(group)
        close = [pair for pair in halves if pair[2] > one - CLOSE_TOGETHER]
        gains = [self.gain_of_two(*pair[:2]) + pair[2] - one for pair in close]
        if max(gains, default=0.0) <= 0:
            return [group]
        return list(close[int(np.argmax(gains))][:2])

    def join(self, groups) -> list[frozenset]:
        """Join groups that slices alone keep apart by a small margin."""
        groups = list(groups)
        while True:
            for i, j in self.search.neighbours(groups):
                first, second = groups[i], groups[j]
                one = self.search.one_class(first | second)
                two = self.search.two_classes(first, second)
                gain = two.bic - one.bic
                # The chain must speak for one latent more than slices do for two.
                if gain < CLOSE_APART and gain + self.gain_of_two(first, second) <= 0:
                    groups = [g for k, g in enumerate(groups) if k not in (i, j)]
                    groups.append(first | second)
                    break
            else:
                return groups

    def gain_of_two(self, first: frozenset, second: frozenset) -> float:
        """BIC of the chain of two latents less that of one."""
        key = frozenset([first, second])
        if key not in self._gains:
            self._gains[key] = self._two(first, second) - self._one(first | second)
        return self._gains[key]

    def _one(self, group: frozenset) -> float:
        """BIC of the chain of one latent, best over numbers of states."""
        rows = self.search.rows_of(group)
        panel = self.panel.of_features(sorted(group))
        models = self.search.models_of(group)
        best = max(range(len(models)), key=lambda k: models[k].bic)
        near = [k for k in (best - 1, best, best + 1) if 1 <= k < len(models)]
        return max(
            one_latent_bic(panel, models[k].tables(rows))[0] for k in near or [0]
        )

    def _two(self, first: frozenset, second: frozenset) -> float:
        """BIC of the chain of two latents with the best edges."""
        model = self.search.two_classes(first, second)
        if min(second) < min(first):
            first, second = second, first
        sizes = model.joint.shape
        if min(sizes) < 2 or model.joint.size > self.options.max_joint_states:
            return -np.inf
        both = sorted(first | second)
        groups = [
            tuple(both.index(i) for i in sorted(group)) for group in (first, second)
        ]
        tables = [
            self.search.rows_of(group).layout.split(emission)
            for group, emission in ((first, model.first), (second, model.second))
        ]
        measurement = Measurement(groups, tables, len(both))
        panel = self.panel.of_features(both)
        return learn_graph(panel, measurement, self.options, score=True).bic
