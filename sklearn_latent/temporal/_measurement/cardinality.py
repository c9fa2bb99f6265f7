"""Number of states of a latent, by BIC."""

from __future__ import annotations

from itertools import compress

import numpy as np

from .._edges.edges import complete_graph
from .._em.em import fit_chain
from .latent_class import LatentClasses, Rows, fit_classes, fit_classes_bic
from .measurement import pool_slices

__all__ = ["chain_bic", "chain_penalty", "choose_states", "lone_states", "split_tables"]

# Nats of BIC below which slices alone do not settle the number of states, and the order
# of the slices is asked too.
CLEAR_MARGIN = 20.0

MAX_ITER = 100


def split_tables(rows: Rows, emission) -> list[np.ndarray]:
    """Tables P(category | class) per feature from those side by side."""
    return np.split(emission, rows.offsets[1:], axis=1)


def choose_states(
    codes, weights, n_categories, *, max_states=6, n_states=None, random_state=None
) -> list[np.ndarray]:
    """Choose the number of states of the latent behind some features.

    Latent class models of single slices decide where they can. Two features, or poor
    ones, do not show more than a few states in a slice, but sequences do: the chain of
    the latent over time is then fitted with one state more and one less until BIC
    falls.

    codes (n, n_slices, n_features), weights (n,), n_categories (n_features,) -> tables
    (n_states, n_categories).
    """
    rows = pool_slices(codes, weights, n_categories)
    if n_states is not None:
        model = fit_classes(rows, n_states, random_state=random_state)
        return split_tables(rows, model.emission)
    models = fit_classes_bic(rows, max_states, random_state=random_state)
    bics = np.array([model.bic for model in models])
    bics[0] = -np.inf
    best = int(np.argmax(bics)) + 1
    others = np.delete(bics, best - 1)
    if codes.shape[1] == 1 or best < 2:
        return split_tables(rows, models[max(best, 2) - 1].emission)
    # The neighbours of the best number are enough: BIC has one peak in practice.
    if (
        codes.shape[2] > 2
        and bics[best - 1] - others.max(initial=-np.inf) > CLEAR_MARGIN
    ):
        return split_tables(rows, models[best - 1].emission)
    return _by_chain(codes, weights, rows, models, best, max_states, random_state)


def _by_chain(codes, weights, rows, models, best, max_states, random_state):
    """Climb in the number of states by BIC of the chain of one latent."""
    found: dict[int, tuple[float, list]] = {}

    def bic(n_states):
        if n_states not in found:
            model = (
                models[n_states - 1]
                if n_states <= len(models)
                else fit_classes(rows, n_states, random_state=random_state)
            )
            found[n_states] = chain_bic(codes, weights, rows, model)
        return found[n_states][0]

    step = 1 if best < max_states and bic(best + 1) > bic(best) else -1
    while 2 <= best + step <= max_states and bic(best + step) > bic(best):
        best += step
    bic(best)
    return found[best][1]


def chain_bic(codes, weights, rows: Rows, model: LatentClasses):
    """BIC of one latent that changes over time, and its emission tables.

    codes (n, n_slices, n_features), weights (n,).
    """
    network, result = fit_chain(
        codes,
        rows.n_categories,
        complete_graph(np.ones((1, codes.shape[2]), dtype=bool)),
        [model.n_classes],
        sample_weight=weights,
        initial=split_tables(rows, model.emission),
        max_iter=MAX_ITER,
        tol=1e-5,
        tied=True,
    )
    penalty = chain_penalty(network, codes, weights)
    return result.log_likelihood - penalty, list(network.emission)


def chain_penalty(network, codes, weights) -> float:
    """Penalty of BIC: half a logarithm of the rows behind each free parameter.

    codes (n, n_slices, n_observed), weights (n,).
    """
    known = (codes >= 0).any(axis=2)
    n_rows = weights @ known
    memory = network.graph.inter.any(axis=0)
    behind = (
        (compress(network.start, memory), n_rows[0]),
        (compress(network.transition, memory), n_rows[1:].sum()),
        (compress(network.transition, ~memory), n_rows.sum()),
        (network.emission, n_rows.sum()),
    )
    return sum(
        0.5 * np.log(max(total, 2.0)) * (table.size - table.size // table.shape[-1])
        for tables, total in behind
        for table in tables
    )


def lone_states(codes, weights, n_categories, *, max_states=6) -> list | None:
    """A latent of its own for a feature that depends on no other but on its past.

    codes (n, n_slices, 1), weights (n,), n_categories (1,).
    """
    width = int(n_categories[0])
    if codes.shape[1] == 1 or width < 2:
        return None
    rows = pool_slices(codes, weights, n_categories)
    if not rows.total:
        return None
    marginal = fit_classes(rows, 1)
    best, tables = marginal.bic, None
    for n_states in range(2, min(width, max_states) + 1):
        # States that each favour one category, the rare ones sharing the last.
        favoured = np.argsort(-marginal.emission[0], kind="stable")[:n_states]
        emission = 0.3 * np.repeat(marginal.emission, n_states, axis=0)
        emission[np.arange(n_states), favoured] += 0.7
        start = LatentClasses(np.full(n_states, 1 / n_states), emission, 0.0, 0.0)
        value, found = chain_bic(codes, weights, rows, start)
        if value > best:
            best, tables = value, found
    return tables
