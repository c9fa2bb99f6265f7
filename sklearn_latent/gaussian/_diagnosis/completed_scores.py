"""Missing values drawn from the network, given what their rows show.

If the network is right and values are missing at random, completed rows follow it. So
checks need not know which values were missing, nor what that depends on.
"""

from __future__ import annotations

import numpy as np

from .._conditional import condition
from .._table_margins import atom_columns

# Where there is no formula, one of so many particles is kept, which then makes so many
# steps of a Markov chain.
PARTICLES, STEPS = 50, 20


def complete(network, Z) -> np.ndarray:
    """Scores with a draw for each missing one, the same in every order of the rows.

    So have atoms, which stand for intervals of scores.
    """
    missing = np.isnan(Z)
    rows = np.flatnonzero(missing.any(axis=1))
    filled = Z.copy()
    if len(rows):
        rows = rows[np.lexsort(Z[rows].T)]
        drawn = _draw(network, Z[rows], np.random.RandomState(0))
        filled[rows] = np.where(missing[rows], drawn[:, : Z.shape[1]], Z[rows])
    order = np.lexsort(filled.T)
    for column, margin in atom_columns(network.margins).items():
        place = np.random.RandomState(column).random_sample(len(Z))
        filled[order, column] = margin.spread(filled[order, column], place)
    return filled


def draw_class(network, Z, rng) -> np.ndarray:
    """A class for each row, given what it shows."""
    share = network._shares(Z)
    return (rng.random_sample((len(Z), 1)) > share.cumsum(axis=1)[:, :-1]).sum(axis=1)


def _draw(network, Z, rng) -> np.ndarray:
    """Values of all nodes given some of the features."""
    if network.classes:
        label = draw_class(network, Z, rng)
        drawn = np.empty((len(Z), network.n_nodes))
        for number, own in enumerate(network.classes):
            members = label == number
            drawn[members] = _draw(own, Z[members], rng)
        return drawn
    if not network.is_jointly_gaussian:
        return _draw_by_particles(network, Z, rng)
    # A row of the network, moved by what others differ in that show other values.
    free = network._draw(len(Z), rng)
    joint = network._joint()
    seen = np.where(np.isnan(Z), np.nan, free[:, : Z.shape[1]])
    return free + condition(joint, Z)[0] - condition(joint, seen)[0]


def _draw_by_particles(network, Z, rng) -> np.ndarray:
    """The same by importance sampling, and Metropolis steps from there."""
    known = np.pad(~np.isnan(Z), [(0, 0), (0, network.n_latents)])
    start = np.pad(np.nan_to_num(Z), [(0, 0), (0, network.n_latents)])
    kept, total = start, np.full(len(Z), -np.inf)
    for _ in range(PARTICLES):
        values = start.copy()
        for node in network.topological_order:
            free = ~known[:, node]
            values[free, node] = _draw_node(network, values[free], node, rng)
        found = network._family_log_likelihoods(values)
        log_weight = np.where(known, found, 0.0).sum(axis=1)
        total = np.logaddexp(total, log_weight)
        kept = _choose(kept, values, log_weight - total, rng)
    for _ in range(STEPS):
        for node in np.flatnonzero(~known.all(axis=0)):
            free = np.flatnonzero(~known[:, node])
            old = kept[free]
            new = old.copy()
            new[:, node] = _draw_node(network, old, node, rng)
            before, after = (network._family_log_likelihoods(v) for v in (old, new))
            children = network.adjacency[node]
            log_ratio = (after - before)[:, children].sum(axis=1)
            kept[free] = _choose(old, new, log_ratio, rng)
    return kept


def _choose(old, new, log_chance, rng) -> np.ndarray:
    """New rows with some probabilities, else the old ones."""
    log_draw = np.log1p(-rng.random_sample(len(old)))
    return np.where((log_draw < log_chance)[:, None], new, old)


def _draw_node(network, values, node, rng) -> np.ndarray:
    """Values of a node given those of its parents."""
    nodes = np.array([node])
    means = network._family_means(values @ network.weights[:, nodes], nodes)
    noise = network._noise
    has_parents = network.adjacency[:, node].any()
    noise, means = (noise, noise.clip(means)) if has_parents else (noise.root, means)
    return noise.draw(means, network.noise_variance[node], rng)[:, 0]
