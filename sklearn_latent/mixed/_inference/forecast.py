"""States and values of the slices after the last recorded one."""

from __future__ import annotations

import numpy as np

from .._emissions.base import as_codes
from .._emissions.discrete import Discrete
from .._panels.panel import MISSING, is_known
from .._tables import slice_order
from .inference import ChainData, expectation, filtered_states, joint_matrices


def look_ahead(network, values, n_steps: int) -> tuple[np.ndarray, list, list]:
    """States of the latents and values of the features of the next slices.

    values (n, n_slices, n_observed) -> the last recorded slice, -1 if there is none,
    (n,); P(state) per latent, (n, n_steps, cardinality); what `Emission.predicted` says
    per feature, (n, n_steps, ...).
    """
    last = _last_recorded(values)
    states: list = [None] * network.n_latents
    found: list = [None] * network.n_observed
    before = _at(values, last)

    def fill(features, *future):
        for f in features:
            found[f] = _values_ahead(network.emissions[f], before[:, f], *future)

    data = ChainData.of(values, network.graph.structure)
    parts = network.directed_graph.components()
    for latents, filtered in zip(parts, filtered_states(network, data), strict=True):
        if filtered is not None:
            start, transition = joint_matrices(network, latents)
            joint = _joint_states(start, transition, filtered, last, n_steps)
            cards = [int(network.cardinality[j]) for j in latents]
            places = np.unravel_index(np.arange(joint.shape[2]), cards)
            for j, part in zip(latents, places, strict=True):
                fill(network.graph.features_of(j), joint, part, transition)
                states[j] = joint @ np.eye(network.cardinality[j])[part]
        else:
            factored = _factored_states(network, values, last, n_steps)
            for j in latents:
                states[j] = factored[j]
                own = np.arange(network.cardinality[j])
                fill(network.graph.features_of(j), states[j], own)
    alone = np.flatnonzero(~network.graph.structure.any(axis=0))
    certain = np.ones((len(values), n_steps, 1))
    fill(alone, certain, np.zeros(1, dtype=int), np.ones((1, 1)))
    return last, states, found


def _last_recorded(values) -> np.ndarray:
    """Last slice of each sequence that has a value, -1 if none has."""
    recorded = is_known(values).any(axis=2)
    return np.where(recorded, np.arange(values.shape[1]), -1).max(axis=1, initial=-1)


def _at(values, last) -> np.ndarray:
    """Values of the last recorded slice; of the first if none is."""
    return values[np.arange(len(values)), np.maximum(last, 0)]


def _joint_states(start, transition, filtered, last, n_steps) -> np.ndarray:
    """Joint states of some latents ahead, (n, n_steps, n_states)."""
    now = filtered[np.maximum(last, 0), np.arange(len(last))] @ transition
    joint = np.empty((len(last), n_steps, len(start)))
    for step in range(n_steps):
        now = now @ transition if step else np.where(last[:, None] < 0, start, now)
        joint[:, step] = now
    return joint


def _factored_states(network, values, last, n_steps) -> list[np.ndarray]:
    """States of all latents ahead, where the joint ones are too many.

    Parents are taken as independent: without values to come, mean field would be
    further off.
    """
    graph = network.directed_graph
    data = ChainData.of(values, network.graph.structure)
    states = [_at(state, last) for state in expectation(network, data).states]
    ahead = [np.empty((len(values), n_steps, size)) for size in network.cardinality]
    empty = last < 0
    for step in range(n_steps):
        before = list(states)
        for j in slice_order(graph):
            within = [states[i] for i in graph.parents_within(j)]
            parents = [before[i] for i in graph.parents_before(j)] + within
            states[j] = _mixed(network.transition[j], parents, len(values))
            if not step and empty.any():
                first = _mixed(network.start[j], within, len(values))
                states[j] = np.where(empty[:, None], first, states[j])
            ahead[j][:, step] = states[j]
    return ahead


def _mixed(table, parents, n: int) -> np.ndarray:
    """P(state) given independent parents, each (n, cardinality)."""
    mixed = np.broadcast_to(table, (n, *table.shape))
    for parent in parents:
        mixed = np.einsum("ni,ni...->n...", parent, mixed)
    return mixed


def _values_ahead(emission, before, joint, part, transition=None) -> np.ndarray:
    """Predictions of a feature, given the joint states ahead.

    before: its last values, (n,)
    part: state of its latent in each joint state, (n_states,)
    transition: of joint states; None if they are not known together with the past
    """
    if (
        emission.has_memory
        and isinstance(emission, Discrete)
        and transition is not None
    ):
        return _categories_ahead(emission, as_codes(before), joint, part, transition)
    states = joint @ np.eye(emission.n_states)[part]
    # A slice in front, whose value the next may follow.
    states = np.concatenate([states[:, :1], states], axis=1)
    gap = np.nan if before.dtype.kind == "f" else MISSING
    values = np.full(states.shape[:2], gap, dtype=before.dtype)
    values[:, 0] = before
    return emission.predicted(states, values)[:, 1:]


def _categories_ahead(emission, before, joint, part, transition) -> np.ndarray:
    """P(category) where a category follows that before, by pairs with joint states."""
    after, table = emission.after[part], emission.table[part]
    known = np.where(before == MISSING, 0, before)
    shares = np.where(
        before[:, None, None] == MISSING, table, after[:, known].swapaxes(0, 1)
    )
    pairs = joint[:, 0, :, None] * shares
    found = np.empty((*joint.shape[:2], emission.n_categories))
    for step in range(joint.shape[1]):
        if step:
            ahead = pairs.swapaxes(1, 2) @ transition
            pairs = np.einsum("nck,kcd->nkd", ahead, after, optimize=True)
        found[:, step] = pairs.sum(axis=1)
    return found
