"""What the moment learner plans from the structure and keeps of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._interactions import open_sets, pairs_of, random_triplets, sibling_pairs
from ._schedule import Schedule, find_schedule
from ._state_table import MAX_ENUMERATED
from ._statistics.gaps import Gaps
from ._statistics.moments import NegativeMoments, canonical_sets
from ._statistics.packed import PackedRows
from ._statistics.patterns import Component, Patterns, components
from ._statistics.subsets import all_subsets

# Exact likelihood visits every pair of distinct row and configuration of the latents;
# beyond this many the moments alone are used.
MAX_TABLE = 2**24
MAX_PATTERNS = 2**16
# Triplets of each latent's children to which the refinement fits the parameters: fewer
# when the network is so large that counting would dominate.
TRIPLETS_PER_LATENT = 100
MAX_SETS = 100_000
# Sets of features that judge what no schedule reaches.
REST_SETS = 10_000
# Features whose missing values are compared with all others: two tables of 8 MB.
MOST_GAPS = 1000


@dataclass(frozen=True)
class Plan:
    """All that follows from the structure, before any data.

    schedule: how to learn what can be reached
    rest_sets: pairs and triplets of siblings to which the clean-up fits what the
        schedule leaves; None: nothing is left, or it stays without effect
    fit_sets: the same for the refinement, (n_fit_sets, 3)
    sets: all sets of features whose moments are needed, (n_sets, 3)
    parts: components of the network whose distinct rows are kept
    """

    schedule: Schedule
    rest_sets: np.ndarray | None
    fit_sets: np.ndarray
    sets: np.ndarray
    parts: list[Component]

    @classmethod
    def of(cls, structure, *, use_pairs=True, clean_up=True, refine=True) -> Plan:
        """Plan for a structure; see `NoisyOrMoMLearner` for the parameters."""
        schedule = find_schedule(structure, use_pairs=use_pairs)
        unreached = np.isinf(schedule.depth)
        rest_sets, fit_sets = None, np.zeros((0, 3), dtype=np.int64)
        if clean_up and not schedule.is_complete:
            latents = np.flatnonzero(unreached.any(axis=1))
            rest_sets = _sibling_sets(structure, latents, REST_SETS // len(latents))
        parts = []
        if refine:
            latents = np.arange(len(structure))
            most = (MAX_SETS - len(schedule.step_features)) // max(1, len(latents))
            n_triplets = int(np.clip(most, 0, TRIPLETS_PER_LATENT))
            siblings = _sibling_sets(structure, latents, n_triplets)
            sets = pairs_of(np.concatenate([schedule.step_features, siblings]))
            fit_sets = open_sets(structure, sets, unreached & (not clean_up))
            parts = [
                part
                for part in components(structure)
                if 0 < len(part.latents) <= MAX_ENUMERATED
            ]
        needed = [schedule.step_features, fit_sets]
        needed += [] if rest_sets is None else [rest_sets]
        sets = _all_subsets_of(needed, structure.shape[1])
        return cls(schedule, rest_sets, fit_sets, sets, parts)


def _sibling_sets(structure, latents, n_triplets) -> np.ndarray:
    """Triplets of children of each latent with their pairs, and all pairs if not many.

    n_triplets: largest number for each latent
    """
    chosen = [random_triplets(structure, latents, n_triplets)]
    n_children = structure[latents].sum(axis=1)
    if (n_children * (n_children - 1) // 2).sum() <= MAX_SETS:
        chosen.append(sibling_pairs(structure, latents))
    return pairs_of(np.concatenate(chosen))


def _all_subsets_of(needed, n_features) -> np.ndarray:
    """All subsets of some sets of features, and single features, each once."""
    singles = np.full((n_features, 3), -1)
    singles[:, 0] = np.arange(n_features)
    subsets = [all_subsets(sets).reshape(-1, 3) for sets in needed]
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
