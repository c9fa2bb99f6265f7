"""Groups of features, each with the tables of the latent that it measures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._emission import marginal_tables
from .._panels.panel import Panel
from .cardinality import SearchOptions, choose_states, lone_states


@dataclass(frozen=True)
class Measurement:
    """Groups of features with the tables of the latent that each measures.

    groups: features of each latent
    tables: P(category | state) of each feature of each group
    n_observed: number of features, also those in no group
    """

    groups: list
    tables: list
    n_observed: int

    @property
    def cardinality(self) -> np.ndarray:
        """Number of states of each latent."""
        return np.array([len(tables[0]) for tables in self.tables], dtype=int)

    @property
    def structure(self) -> np.ndarray:
        """Groups as a boolean matrix, one row per latent."""
        structure = np.zeros((len(self.groups), self.n_observed), dtype=bool)
        for row, group in zip(structure, self.groups, strict=True):
            row[list(group)] = True
        return structure

    def emission(self, panel: Panel) -> list[np.ndarray]:
        """Tables of all features; those of no group have a single row."""
        emission = marginal_tables(panel)
        for group, tables in zip(self.groups, self.tables, strict=True):
            for feature, table in zip(group, tables, strict=True):
                emission[feature] = table
        return emission

    def with_groups(self, groups, panel: Panel, options: SearchOptions) -> Measurement:
        """Other groups, and the latents of their own of features in none of them.

        Tables are kept where a group is the same.
        """
        known = dict(zip(self.groups, self.tables, strict=True))
        taken = {feature for group in groups for feature in group}
        alone = [g for g in self.groups if len(g) == 1 and g[0] not in taken]
        groups = sorted([*groups, *alone])
        tables = [
            known[group]
            if group in known
            else choose_states(panel.of_features(group), options)
            for group in groups
        ]
        return Measurement(groups, tables, self.n_observed)

    def with_lone_features(self, panel: Panel, options: SearchOptions) -> Measurement:
        """Further latents, for features that depend on their own past alone."""
        found = dict(zip(self.groups, self.tables, strict=True))
        taken = {feature for group in self.groups for feature in group}
        for feature in range(self.n_observed):
            if feature not in taken:
                tables = lone_states(panel.of_features([feature]), options)
                if tables is not None:
                    found[(feature,)] = tables
        groups = sorted(found)
        return Measurement(groups, [found[g] for g in groups], self.n_observed)
