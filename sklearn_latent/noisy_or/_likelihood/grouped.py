"""Expectations over the states that rows make likely, for large tables.

Many rows leave only a few of their states possible, and rows that look alike leave the
same ones. Rows are therefore grouped by their most likely state, and each group is
summed over the states that any of its rows needs: of 256 states of eight latents, nine
on average. What is left out makes the likelihood a bound that is tight to one part in
1e5 of each row; groups are made anew once parameters have moved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._statistics.patterns import Patterns
from .exact import (
    Parameters,
    StateTable,
    Statistics,
    collect,
    joint_log_probability,
    normalize,
    posteriors,
)

# A state counts for a group if a row of it gives it this posterior probability.
LEAST_POSTERIOR = 1e-5
# Rows times states from which grouping pays, and the most states for which a table of
# groups by states is small.
SMALLEST_TABLE = 2**20
MOST_LATENTS = 10


class Group(NamedTuple):
    """Rows with the states that count for them."""

    on: np.ndarray
    observed: np.ndarray | None
    weights: np.ndarray
    states: np.ndarray


def pays(n_latents: int, patterns: Patterns) -> bool:
    """Whether a table is large enough for groups."""
    n_elements = len(patterns.weights) << n_latents
    return n_latents <= MOST_LATENTS and n_elements >= SMALLEST_TABLE


def group_rows(parameters: Parameters, patterns: Patterns) -> list[Group]:
    """Group rows by their most likely state under some parameters."""
    table = StateTable.of(*parameters)
    n_states = len(table.prior)
    top = np.empty(len(patterns.on), dtype=np.intp)
    largest = np.zeros((n_states, n_states))
    for rows, posterior, _ in posteriors(table, patterns.on, patterns.observed):
        top[rows] = posterior.argmax(axis=1)
        order = np.argsort(top[rows], kind="stable")
        present, first = np.unique(top[rows][order], return_index=True)
        best = np.maximum.reduceat(posterior[order], first, axis=0)
        largest[present] = np.maximum(largest[present], best)
    order = np.argsort(top, kind="stable")
    present, first = np.unique(top[order], return_index=True)
    groups = []
    for state, rows in zip(present, np.split(order, first[1:]), strict=True):
        part = patterns.take(rows)
        known = None if part.observed is None else part.observed.astype(np.float64)
        states = np.flatnonzero(largest[state] > LEAST_POSTERIOR)
        groups.append(Group(part.on.astype(np.float64), known, part.weights, states))
    return groups


def grouped_statistics(parameters: Parameters, groups: list[Group]) -> Statistics:
    """E-step, as `expected_statistics`, over the states of each group."""
    table = StateTable.of(*parameters)
    n_states, n_features = table.off.shape
    log_likelihood, total = 0.0, 0.0
    state_mass = np.zeros(n_states)
    on_mass = np.zeros((n_states, n_features))
    known_mass = np.zeros((n_states, n_features))
    complete = all(group.observed is None for group in groups)
    for on, known, weights, states in groups:
        part = StateTable(
            table.prior[states], table.off[states], table.on[states], table.possible
        )
        mass = joint_log_probability(part, on, known)
        log_likelihood += float(weights @ normalize(mass))
        mass *= weights[:, np.newaxis]
        total += float(weights.sum())
        state_mass[states] += mass.sum(axis=0)
        on_mass[states] += mass.T @ on
        if known is not None:
            known_mass[states] += mass.T @ known
    return collect(
        table,
        log_likelihood,
        total,
        state_mass,
        on_mass.T,
        None if complete else known_mass.T,
    )
