"""Conditional tables of latents, and the joint chain that they make together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._core.graphs import topological_order
from .._core.validation import check_numbers, shown
from ._graph import TemporalGraph

# Probabilities of an emission, half a gigabyte. A file of some hundred kilobytes could
# ask for any number of them.
MOST_CELLS = 1 << 26


def family_of(graph: TemporalGraph, j: int, *, later: bool) -> list[tuple[int, bool]]:
    """Latents on the axes of a table of latent `j`: parents before, within, itself.

    Each comes with whether it is of the same slice; the first slice has no past.
    """
    before = [(i, False) for i in graph.parents_before(j)] if later else []
    return before + [(i, True) for i in (*graph.parents_within(j), j)]


def table_shape(graph, cardinality, j: int, *, later: bool) -> tuple[int, ...]:
    """Shape of the start table of latent `j`, or of that of later slices."""
    return tuple(int(cardinality[i]) for i, _ in family_of(graph, j, later=later))


def slice_order(graph: TemporalGraph) -> list[int]:
    """Latents in an order in which parents within the slice come first."""
    return topological_order(graph.intra).tolist()


def normalized(counts: np.ndarray, smoothing: float = 0.0) -> np.ndarray:
    """Turn counts into probabilities along the last axis."""
    n_values = counts.shape[-1]
    counts = counts + smoothing / n_values
    total = counts.sum(axis=-1, keepdims=True)
    return np.divide(
        counts, total, out=np.full(counts.shape, 1.0 / n_values), where=total > 0
    )


def log_table(table: np.ndarray) -> np.ndarray:
    """Logarithm, with -inf for 0 and no warning."""
    with np.errstate(divide="ignore"):
        return np.log(table)


def joint_table(
    graph, tables, latents: Sequence[int], *, later: bool, brief: bool = False
) -> np.ndarray:
    """P(states of `latents`), one axis per latent.

    In later slices given the states of the slice before, whose axes come first. A
    `brief` table has one place for all past states of a latent that nothing follows.
    """
    n = len(latents)
    place = {int(j): axis for axis, j in enumerate(latents)}
    follows = graph.inter.any(axis=1) | (not brief)
    past = tuple(tables[j].shape[-1] if follows[j] else 1 for j in latents)
    past = past if later else ()
    joint = np.ones(past + (1,) * n)
    for j in latents:
        axes = [
            place[i] + (len(past) if now else 0)
            for i, now in family_of(graph, j, later=later)
        ]
        joint = joint * spread(tables[j], axes, joint.ndim)
    return joint


def family_counts(
    joint: np.ndarray, latents: Sequence[int], family: Sequence[tuple[int, bool]]
) -> np.ndarray:
    """Counts of some latents from joint counts."""
    n = len(latents)
    place = {int(j): axis for axis, j in enumerate(latents)}
    shift = n if joint.ndim == 2 * n and n else 0
    axes = [place[int(j)] + (shift if now else 0) for j, now in family]
    others = tuple(axis for axis in range(joint.ndim) if axis not in axes)
    counts = joint.sum(axis=others)
    rank = np.argsort(np.argsort(axes))
    return counts.transpose(rank)


def weighted_products(states: Sequence[np.ndarray], weights) -> np.ndarray:
    """Weighted sum of the outer products of states, (*rows, ...) of each latent."""
    shapes = [state.shape[weights.ndim :] for state in states]
    sizes = [int(np.prod(shape)) for shape in shapes]
    # Two halves and one matrix product between them: never all axes at once for every
    # sequence.
    half = np.searchsorted(np.cumprod(sizes), np.sqrt(np.prod(sizes, dtype=float)))
    sides = [weights.reshape(-1, 1), np.ones((weights.size, 1))]
    for place, (state, size) in enumerate(zip(states, sizes, strict=True)):
        side, flat = int(place > half), state.reshape(weights.size, 1, size)
        product = sides[side][:, :, None] * flat
        sides[side] = product.reshape(weights.size, product.shape[1] * size)
    return (sides[0].T @ sides[1]).reshape([n for shape in shapes for n in shape])


def spread(table: np.ndarray, axes: Sequence[int], n_axes: int) -> np.ndarray:
    """View a table with its axes at given places among `n_axes`."""
    order = np.argsort(axes)
    shape = [1] * n_axes
    for axis in order:
        shape[axes[axis]] = table.shape[axis]
    return table.transpose(order).reshape(shape)


def draw_categories(rows: np.ndarray, rng) -> np.ndarray:
    """Draw a category from each row of probabilities."""
    edges = np.cumsum(rows, axis=-1)
    edges /= edges[:, -1:]
    return (rng.uniform(size=(len(rows), 1)) >= edges[:, :-1]).sum(axis=1)


def free_parameters(tables) -> int:
    """Number of free parameters: each row sums to 1."""
    return sum(table.size - table.size // table.shape[-1] for table in tables)


def check_cells(n_cells: int) -> None:
    """Refuse tables that are much larger than the parameters that they follow from."""
    if n_cells > MOST_CELLS:
        raise ValueError(
            f"an emission must have at most {MOST_CELLS:,} probabilities of a category "
            f"by state and category before, got {n_cells:,}; merge rare categories."
        )


def log_prior(tables, smoothing: float) -> float:
    """Logarithm of the Dirichlet prior of tables, up to a constant."""
    return sum(
        smoothing / table.shape[-1] * float(np.log(np.maximum(table, 1e-300)).sum())
        for table in tables
    )


def family_score(counts: np.ndarray) -> tuple[float, int]:
    """Log-likelihood of counts under their own shares, and free parameters."""
    totals = counts.sum(axis=-1, keepdims=True)
    seen = counts > 0
    shares = np.divide(counts, totals, out=np.ones_like(counts), where=totals > 0)
    value = float((counts[seen] * np.log(shares[seen])).sum())
    return value, counts.size - totals.size


def check_tables(name: str, tables, shapes) -> list[np.ndarray]:
    """Validate conditional tables; read-only arrays."""
    check_length(name, tables, len(shapes))
    return [
        check_table(f"{name}[{j}]", table, shape)
        for j, (table, shape) in enumerate(zip(tables, shapes, strict=True))
    ]


def check_length(name: str, tables, length: int) -> None:
    """Refuse what is no list of so many tables."""
    if not isinstance(tables, Sequence) and not getattr(tables, "ndim", 0):
        raise ValueError(f"{name} must be a list of tables, got {shown(tables)}.")
    if len(tables) != length:
        raise ValueError(f"{name} must hold {length} tables, got {len(tables)}.")


def check_table(name: str, table, shape) -> np.ndarray:
    """Validate a conditional table; None in `shape` is any width."""
    table = np.array(check_numbers(name, table))
    fits = table.ndim == len(shape) and all(
        expected in (None, width)
        for expected, width in zip(shape, table.shape, strict=True)
    )
    if not fits or not table.shape[-1]:
        raise ValueError(f"{name} must have shape {shape}, got {table.shape}.")
    off = np.abs(table.sum(axis=-1) - 1.0).max(initial=0.0)
    if not (table.min(initial=0.0) >= 0 and off < 1e-6):
        raise ValueError(
            f"{name} must hold probabilities that sum to 1 along the last axis, got "
            "others."
        )
    table.setflags(write=False)
    return table
