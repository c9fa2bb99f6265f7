"""States and values of the slices after the last recorded one."""

from __future__ import annotations

import numpy as np

from .._emissions.emission import as_codes
from .._panels.panel import MISSING, is_known
from .._tables import joint_table, slice_order
from .chain_data import ChainData
from .expectation import Part, expectation


def look_ahead(network, values, n_steps: int) -> tuple[np.ndarray, list, list]:
    """States of the latents and values of the features of the next slices.

    values (n, n_slices, n_observed) -> the last recorded slice, -1 if there is none,
    (n,); P(state) per latent, (n, n_steps, cardinality); what `Emission.predicted` says
    per feature, (n, n_steps, ...).
    """
    recorded = is_known(values).any(axis=2)
    last = np.where(recorded, np.arange(values.shape[1]), -1).max(axis=1, initial=-1)
    before = _at(values, last)
    states: list = [None] * network.n_latents
    found: list = [None] * network.n_observed
    data = ChainData.of(values, network.graph.structure)
    for tree in network._trees():
        joint, transition, shares = None, None, {}
        if network.is_exact(list(tree.cards)):
            part = Part(network, data, tree)
            shares = part.unseen(network.transition)
            joint, transition = _joint_states(network, part, last, n_steps)
            states_of = {j: joint @ own for j, own in shares.items()}
        else:
            states_of = _factored_states(network, data, tree, last, n_steps)
        for j, state in states_of.items():
            states[j] = state
            chain = joint, shares.get(j), transition
            for f in network.graph.features_of(j):
                own = network.emissions[f], before[:, f], state
                found[f] = _values_ahead(*own, *chain)
    certain, one = np.ones((len(values), n_steps, 1)), np.ones((1, 1))
    for f in data.alone:
        chain = certain, one, one
        found[f] = _values_ahead(network.emissions[f], before[:, f], certain, *chain)
    return last, states, found


def _at(values, last) -> np.ndarray:
    """Values of the last recorded slice; of the first if none is."""
    return values[np.arange(len(values)), np.maximum(last, 0)]


def _joint_states(network, part: Part, last, n_steps) -> tuple[np.ndarray, np.ndarray]:
    """Joint states of the core ahead, (n, n_steps, n_states), and their transition."""
    core = part.tree.core
    table = joint_table(network.directed_graph, network.transition, core, later=True)
    start, n = part.chain.start, len(last)
    transition = table.reshape(len(start), -1)
    filtered = part.filtered(slice(0, n))[1]
    now = filtered[np.maximum(last, 0), np.arange(n)] @ transition
    joint = np.empty((n, n_steps, len(start)))
    for step in range(n_steps):
        now = now @ transition if step else np.where(last[:, None] < 0, start, now)
        joint[:, step] = now
    return joint, transition


def _factored_states(network, data: ChainData, tree, last, n_steps) -> dict:
    """States of latents ahead, where the joint ones are too many.

    Parents are taken as independent: without values to come, mean field would be
    further off.
    """
    graph = network.directed_graph
    states = [_at(state, last) for state in expectation(network, data).states]
    ahead = {j: np.empty((len(last), n_steps, card)) for j, card in tree.cards.items()}
    for step in range(n_steps):
        before = list(states)
        for j in slice_order(graph):
            within = [states[i] for i in graph.parents_within(j)]
            parents = [before[i] for i in graph.parents_before(j)] + within
            states[j] = _mixed(network.transition[j], parents, len(last))
            if not step:
                first = _mixed(network.start[j], within, len(last))
                states[j] = np.where(last[:, None] < 0, first, states[j])
            if j in ahead:
                ahead[j][:, step] = states[j]
    return ahead


def _mixed(table, parents, n: int) -> np.ndarray:
    """P(state) given independent parents, each (n, cardinality)."""
    mixed = np.broadcast_to(table, (n, *table.shape))
    for parent in parents:
        mixed = np.einsum("ni,ni...->n...", parent, mixed)
    return mixed


def _values_ahead(emission, before, states, joint, shares, transition) -> np.ndarray:
    """Predictions of a feature, given states ahead and its last values (n,)."""
    if transition is not None and emission.follows_categories:
        return _categories_ahead(emission, before, joint, shares, transition)
    # A slice in front, whose value the next may follow.
    states = np.concatenate([states[:, :1], states], axis=1)
    gap = np.nan if before.dtype.kind == "f" else MISSING
    values = np.full(states.shape[:2], gap, dtype=before.dtype)
    values[:, 0] = before
    return emission.predicted(states, values)[:, 1:]


def _categories_ahead(emission, before, joint, shares, transition) -> np.ndarray:
    """P(category) where a category follows that before, by pairs with joint states.

    shares: P(state of the latent | joint state)
    """
    after = np.einsum("js,spc->jpc", shares, emission.after)
    table = shares @ emission.table
    codes = as_codes(before)
    known = np.where(codes == MISSING, 0, codes)
    first = after[:, known].swapaxes(0, 1)
    first = np.where(codes[:, None, None] == MISSING, table, first)
    pairs = joint[:, 0, :, None] * first
    found = np.empty((*joint.shape[:2], emission.n_categories))
    for step in range(joint.shape[1]):
        if step:
            ahead = pairs.swapaxes(1, 2) @ transition
            pairs = np.einsum("nck,kcd->nkd", ahead, after, optimize=True)
        found[:, step] = pairs.sum(axis=1)
    return found
