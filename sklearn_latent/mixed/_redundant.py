"""Features that the search for latents is better off without.

Near-duplicates would make a latent of their own, away from all that measures the same.
A feature that never changes within a sequence would have a latent of its own, which
shows nothing but the feature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._emissions.layout import Layout
from ._panels.panel import MISSING, Panel

# Share of cells in which each of two features tells the other, and share of those that
# the most frequent category does not tell anyway: rare categories agree by chance.
AGREEMENT, LAMBDA = 0.95, 0.9

# Cells, and sequences, that show that this is no accident.
MIN_CELLS, MIN_SEQUENCES = 50, 20


@dataclass(frozen=True)
class Redundant:
    """Which features are left out, and why.

    copy_of: the feature that each is a near-duplicate of, itself if of none, (p,)
    constant: whether each never changes within a sequence, (p,)
    """

    copy_of: np.ndarray
    constant: np.ndarray

    @classmethod
    def of(cls, panel: Panel) -> Redundant:
        """Find both kinds."""
        return cls(near_duplicates(panel), never_change(panel))

    @property
    def kept(self) -> np.ndarray:
        """Features that latents are learned from."""
        is_copy = self.copy_of != np.arange(len(self.copy_of))
        return np.flatnonzero(~is_copy & ~self.constant)

    @property
    def groups(self) -> list[list[int]]:
        """Near-duplicates of each other."""
        groups = [np.flatnonzero(self.copy_of == f) for f in np.unique(self.copy_of)]
        return [group.tolist() for group in groups if len(group) > 1]

    @classmethod
    def none(cls, n_observed: int) -> Redundant:
        """All of so many features are kept."""
        return cls(np.arange(n_observed), np.zeros(n_observed, dtype=bool))

    def with_copies(self, structure: np.ndarray) -> np.ndarray:
        """Near-duplicates measure what their originals measure."""
        return structure[:, self.copy_of]


def near_duplicates(panel: Panel) -> np.ndarray:
    """The first feature that each is nearly the same as, itself if none."""
    layout = Layout(panel.n_categories)
    cells = layout.indicators(panel.codes.reshape(-1, panel.n_observed))
    weights = np.repeat(panel.weights, panel.n_slices)
    counts = np.asarray((cells.T @ cells.multiply(weights[:, None]).tocsr()).todense())
    same = _tells(counts, layout.offsets)
    same &= same.T
    copy_of = np.arange(panel.n_observed)
    for g in range(panel.n_observed):
        first = np.flatnonzero(same[:g, g] & (copy_of[:g] == np.arange(g)))
        copy_of[g] = first[0] if len(first) else g
    return copy_of


def _tells(counts, offsets) -> np.ndarray:
    """Whether the second of two features nearly tells the first, (p, p).

    counts: how often each category of all features meets each other one
    offsets: first category of each feature
    """
    if not len(offsets):
        return np.zeros((0, 0), dtype=bool)
    told = np.add.reduceat(np.maximum.reduceat(counts, offsets), offsets, axis=1)
    shares = np.add.reduceat(counts, offsets, axis=1)
    usual = np.maximum.reduceat(shares, offsets)
    total = np.add.reduceat(shares, offsets)
    beyond = told - usual >= LAMBDA * (total - usual)
    enough = (total >= MIN_CELLS) & (usual < total)
    return enough & beyond & (told >= AGREEMENT * total)


def never_change(panel: Panel) -> np.ndarray:
    """Which features have one value in each sequence, and several in all."""
    # Numbers themselves: those of a sequence may differ and still share a bin.
    values = np.where(panel.codes == MISSING, np.nan, panel.values)
    known = ~np.isnan(values)
    highest = np.where(known, values, -np.inf).max(axis=1, initial=-np.inf)
    lowest = np.where(known, values, np.inf).min(axis=1, initial=np.inf)
    again = known.sum(axis=1) > 1
    same = (~again | (highest == lowest)).all(axis=0)
    enough = panel.weights @ again >= MIN_SEQUENCES
    return same & enough & (panel.n_categories > 1)
