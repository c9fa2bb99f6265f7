"""What the moment learner plans from the structure and keeps of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._identifiability.schedule import Schedule, find_schedule
from .._state_table import MAX_ENUMERATED
from .._statistics.gaps import Gaps
from .._statistics.moments import NegativeMoments, canonical_sets
from .._statistics.packed import PackedRows
from .._statistics.patterns import Component, Patterns, components
from .._statistics.subsets import all_subsets
from .cleanup import CleanUp, plan_clean_up
from .interactions import open_sets, pairs_of, random_triplets, sibling_pairs

# Exact likelihood visits every pair of distinct row and configuration of the latents;
# beyond this many the moments alone are used.
MAX_TABLE = 2**24
MAX_PATTERNS = 2**16
# Steps of the schedule that combine into one estimate, and further triplets of each
# latent's children: fewer when the network is so large that counting would dominate.
STEPS_PER_EDGE = 10
TRIPLETS_PER_LATENT = 100
MAX_SETS = 100_000
# Features whose missing values are compared with all others: two tables of 8 MB.
MOST_GAPS = 1000


@dataclass(frozen=True)
class Plan:
    """All that follows from the structure, before any data.

    schedule: how to learn what can be reached
    rest: how to learn the rest, if anything is to be learned of it
    fit_sets: pairs and triplets to which the refinement fits the parameters,
        (n_fit_sets, 3)
    sets: all sets of features whose moments are needed, (n_sets, 3)
    parts: components of the network whose distinct rows are kept
    """

    schedule: Schedule
    rest: CleanUp | None
    fit_sets: np.ndarray
    sets: np.ndarray
    parts: list[Component]

    @classmethod
    def of(cls, structure, *, use_pairs=True, clean_up=True, refine=True) -> Plan:
        """Plan for a structure; see `NoisyOrMoMLearner` for the parameters."""
        n_edges = max(1, int(structure.sum()))
        n_per_edge = int(np.clip(MAX_SETS // n_edges, 1, STEPS_PER_EDGE))
        schedule = find_schedule(
            structure, use_pairs=use_pairs, n_per_edge=n_per_edge if refine else 1
        )
        rest = None if schedule.is_complete or not clean_up else plan_clean_up(schedule)
        parts, fit_sets = [], np.zeros((0, 3), dtype=np.int64)
        if refine:
            unknown = np.isinf(schedule.depth) & (not clean_up)
            fit_sets = cls._fit_sets(structure, schedule, unknown)
            if rest is not None:
                # They are counted anyway.
                fit_sets = pairs_of(np.concatenate([fit_sets, rest.sets]))
            parts = [
                part
                for part in components(structure)
                if 0 < len(part.latents) <= MAX_ENUMERATED
            ]
        wanted = [schedule.step_features, fit_sets]
        if rest is not None:
            wanted.append(rest.sets)
        sets = cls._all_sets(structure.shape[1], wanted)
        return cls(schedule, rest, fit_sets, sets, parts)

    @staticmethod
    def _fit_sets(structure, schedule, unknown):
        """Sets of the schedule, and of siblings as far as the budget goes."""
        latents = np.arange(len(structure))
        n_children = structure.sum(axis=1)
        chosen = [schedule.step_features]
        budget = MAX_SETS - len(schedule.step_features)
        n_pairs = int((n_children * (n_children - 1) // 2).sum())
        if n_pairs <= budget:
            chosen.append(sibling_pairs(structure, latents))
            budget -= n_pairs
        n_per_latent = min(TRIPLETS_PER_LATENT, max(0, budget) // max(1, len(latents)))
        chosen.append(random_triplets(structure, latents, n_per_latent))
        return open_sets(structure, pairs_of(np.concatenate(chosen)), unknown)

    @staticmethod
    def _all_sets(n_features, wanted):
        singles = np.full((n_features, 3), -1)
        singles[:, 0] = np.arange(n_features)
        subsets = [all_subsets(sets).reshape(-1, 3) for sets in wanted]
        sets = np.concatenate([singles, *subsets])
        return canonical_sets(sets[(sets >= 0).any(axis=1)], n_features)


@dataclass(frozen=True)
class Statistics:
    """Moments, and the distinct rows of small components.

    Statistics of two batches of rows add up with ``+``.

    tables: one per part of the plan; None: too many distinct rows to keep
    limits: the largest number of distinct rows, per part
    gaps: what the missing values depend on, if there are any and no part has a table
    """

    moments: NegativeMoments
    tables: tuple[Patterns | None, ...]
    limits: tuple[int, ...]
    gaps: Gaps | None = None

    @classmethod
    def of(cls, rows: PackedRows, plan: Plan) -> Statistics:
        """Count in binary rows."""
        limits = tuple(
            min(MAX_PATTERNS, MAX_TABLE >> len(part.latents)) for part in plan.parts
        )
        tables = tuple(
            cls._keep(rows.patterns(part.features), limit)
            for part, limit in zip(plan.parts, limits, strict=True)
        )
        moments = NegativeMoments.of(rows, plan.sets)
        few = not plan.parts and len(rows.off) <= MOST_GAPS
        return cls(moments, tables, limits, Gaps.of(rows.unpack()) if few else None)

    @staticmethod
    def _keep(table, limit):
        return table if len(table.weights) <= limit else None

    def __add__(self, other: Statistics) -> Statistics:
        tables = tuple(
            None
            if a is None or b is None
            else self._keep(Patterns.merge([a, b]), limit)
            for a, b, limit in zip(self.tables, other.tables, self.limits, strict=True)
        )
        gaps = self.gaps and other.gaps and self.gaps + other.gaps
        return Statistics(self.moments + other.moments, tables, self.limits, gaps)
