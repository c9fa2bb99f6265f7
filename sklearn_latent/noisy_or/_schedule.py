"""In which order the parameters of a known structure can be learned.

A schedule depends on the structure alone. It is found by linear algebra: with ``A``
the structure and ``K`` the edges known so far, ``A.T @ A - K.T @ K`` counts, for each
pair of features, the parents that still couple the pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from .._core.validation import check_flag, check_numbers


class Step(NamedTuple):
    """Learn one edge from two or three features.

    With three features the step also yields the prior of the latent; with two, the
    prior and the edge to the second feature must be known before.
    """

    depth: int
    latent: int
    features: tuple[int, ...]
    removes: tuple[int, ...]

    @property
    def target(self) -> int:
        """The feature whose edge is learned."""
        return self.features[0]


@dataclass(frozen=True)
class Schedule:
    """Certificate of what can be learned, in rounds.

    Attributes
    ----------
    structure : ndarray of bool of shape (n_latents, n_features)
        The structure it was made for.
    depth : ndarray of shape (n_latents, n_features)
        Round in which an edge is learned; NaN: no edge; inf: out of reach.
    step_depth, step_latent : ndarrays of int of shape (n_steps,)
        Round and latent of each step, in order of rounds.
    step_features : ndarray of int of shape (n_steps, 3)
        Target first; -1 in the last place makes the step a pair.
    """

    structure: NDArray[np.bool_]
    depth: NDArray[np.float64]
    step_depth: NDArray[np.intp]
    step_latent: NDArray[np.intp]
    step_features: NDArray[np.intp]

    @property
    def n_rounds(self) -> int:
        """Number of rounds that learned something."""
        return int(self.step_depth[-1]) + 1 if len(self.step_depth) else 0

    @property
    def is_complete(self) -> bool:
        """Whether every edge is reached."""
        return not np.isinf(self.depth).any()

    @property
    def unreached(self) -> NDArray[np.intp]:
        """Edges out of reach, as rows (latent, feature)."""
        return np.argwhere(np.isinf(self.depth))

    @cached_property
    def removals(self) -> tuple[np.ndarray, np.ndarray]:
        """Which latents are subtracted before each step: (step, latent) pairs.

        Exactly the parents other than the step's own that couple two of its features.
        """
        return coupling_parents(self.structure, self.step_features, self.step_latent)

    @cached_property
    def steps(self) -> list[Step]:
        """The steps as tuples, one by one, for reading and checking."""
        owner, removed = self.removals
        bounds = np.searchsorted(owner, np.arange(len(self.step_latent) + 1))
        columns = self.step_depth, self.step_latent, self.step_features
        steps = zip(*(column.tolist() for column in columns), strict=True)
        return [
            Step(
                depth,
                latent,
                tuple(f for f in features if f >= 0),
                tuple(removed[bounds[s] : bounds[s + 1]].tolist()),
            )
            for s, (depth, latent, features) in enumerate(steps)
        ]

    def __repr__(self) -> str:
        n_edges = int(self.structure.sum())
        reached = int(np.isfinite(self.depth).sum())
        return (
            f"Schedule({reached} of {n_edges} edges in {self.n_rounds} rounds, "
            f"{len(self.step_latent)} steps)"
        )


def check_structure(structure) -> np.ndarray:
    """Validate a structure and make it a dense boolean matrix."""
    if not sparse.issparse(structure):
        structure = check_numbers("structure", structure, dtype=None)
        if structure.ndim != 2:
            raise ValueError(
                "structure must have two dimensions, one row per latent and one column "
                f"per feature, got shape {structure.shape}."
            )
    structure = check_array(
        structure,
        accept_sparse=True,
        dtype=None,
        ensure_min_samples=0,
        ensure_min_features=0,
        input_name="structure",
    )
    if sparse.issparse(structure):
        structure = structure.toarray()
    if structure.dtype != bool:
        values = np.unique(structure)
        if not np.isin(values, (0, 1)).all():
            raise ValueError(
                "structure must hold booleans (or 0 and 1), got values such as "
                f"{values[~np.isin(values, (0, 1))][0]}."
            )
        structure = structure.astype(bool)
    empty = np.flatnonzero(~structure.any(axis=1))
    if len(empty):
        raise ValueError(
            "structure must give every latent at least one feature, got an empty row "
            f"for latent {empty[0]}"
            + (f" and {len(empty) - 1} more." * (len(empty) > 1) or ".")
        )
    return structure


def coupling_parents(structure, features, latent=None):
    """Parents that couple at least two features of each set.

    structure (n_latents, n_features), features (n_sets, k), latent (n_sets,).
    """
    # One column more, always false, is what index -1 finds.
    padded = np.zeros((structure.shape[1] + 1, structure.shape[0]), dtype=np.uint8)
    padded[:-1] = structure.T
    owners = parents = [np.zeros(0, dtype=np.intp)]
    for start in range(0, len(features), 16384):
        part = features[start : start + 16384]
        count = padded[part[:, 0]]
        for column in part.T[1:]:
            count = count + padded[column]
        if latent is not None:
            count[np.arange(len(part)), latent[start : start + 16384]] = 0
        owner, parent = np.nonzero(count >= 2)
        owners, parents = [*owners, owner + start], [*parents, parent]
    return np.concatenate(owners), np.concatenate(parents)


def open_pairs(structure, known, latent, children):
    """Graph of the pairs of children that no unknown parent other than latent couples.

    Returns the graph and, per pair, how many known parents must be removed.
    """
    A = structure[:, children]
    K = known[:, children]
    coupled = A.T @ A
    # The latent itself couples all its children and must not count against them.
    unknown = coupled - K.T @ K - 1 + np.outer(K[latent], K[latent])
    graph = unknown == 0
    np.fill_diagonal(graph, False)
    return graph, coupled - 1


def _pick(key, allowed):
    """Index of the smallest allowed key per row; -1 if there is none."""
    masked = np.where(allowed, key, np.inf)
    best = masked.argmin(axis=1)
    return np.where(np.isfinite(masked[np.arange(len(best)), best]), best, -1)


def _choose_triplets(graph, cost, targets):
    """The cheapest triangle of the graph through each target that is in one.

    Returns rows (target, second, third) of positions among the children.
    """
    G = graph.astype(np.float32)
    second = _pick(cost[targets], ((G @ G) * G)[targets] > 0)
    third = _pick(cost[targets] + cost[second], graph[targets] & graph[second])
    return np.column_stack([targets, second, third])[second >= 0]


def _choose_pairs(graph, cost, targets, known_children):
    """Pair each target with a known sibling that only this latent couples to it."""
    second = _pick(cost[targets], graph[targets] & known_children)
    pairs = np.column_stack([targets, second, np.full(len(targets), -1)])
    return pairs[second >= 0]


def _latent_steps(structure, known, latent, in_degree, use_pairs):
    """All that this round can learn of one latent, as rows of features."""
    children = np.flatnonzero(structure[latent])
    graph, removed = open_pairs(structure, known, latent, children)
    # Few parents to remove first, then siblings with few parents: both mean less noise.
    cost = removed + in_degree[children] / (in_degree.max() + 1.0)
    known_children = known[latent, children] > 0
    targets = np.flatnonzero(~known_children)
    steps = _choose_triplets(graph, cost, targets)
    if use_pairs and known_children.any():
        rest = np.setdiff1d(targets, steps[:, 0])
        pairs = _choose_pairs(graph, cost, rest, known_children)
        steps = np.concatenate([steps, pairs])
    return np.where(steps >= 0, children[steps], -1)


def find_schedule(structure: Any, *, use_pairs: bool = True) -> Schedule:
    """Find a valid schedule for learning a noisy-or network of known structure.

    An edge can be learned in a round if its feature lies in a triplet of children
    that only its latent couples, parents known from earlier rounds not counted
    (Definition 1 of [1]_); with pairs, also if it forms such a pair with a child whose
    edge is known.

    Parameters
    ----------
    structure : array-like or sparse matrix of shape (n_latents, n_features)
        True where a latent is a parent of a feature.
    use_pairs : bool, default=True
        Whether singly coupled pairs may be used; that makes schedules shallower.

    Returns
    -------
    schedule : Schedule
        With ``depth``, ``n_rounds``, ``is_complete`` and ``steps``.

    References
    ----------
    .. [1] Halpern, Y. and Sontag, D. (2013). Unsupervised learning of noisy-or
       Bayesian networks. UAI.

    Examples
    --------
    In Figure 1 of [1]_ the second latent is learned first, then subtracted:

    >>> from sklearn_latent.noisy_or import find_schedule
    >>> schedule = find_schedule([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]])
    >>> schedule.depth
    array([[ 1.,  1.,  1., nan, nan],
           [nan,  0.,  0.,  0.,  0.]])
    >>> schedule.is_complete
    True
    """
    structure = check_structure(structure)
    check_flag("use_pairs", use_pairs)
    A, K = structure.astype(np.float32), np.zeros(structure.shape, dtype=np.float32)
    in_degree = A.sum(axis=0)
    depth = np.where(structure, np.inf, np.nan)
    # Round, latent and features of steps.
    steps = [[np.zeros(shape, dtype=np.intp)] for shape in (0, 0, (0, 3))]
    for level in range(int(structure.sum()) + 1):
        learned = []
        for latent in np.flatnonzero(np.isinf(depth).any(axis=1)):
            rows = _latent_steps(A, K, latent, in_degree, use_pairs)
            if len(rows):
                learned.append((latent, rows))
        if not learned:
            break
        for latent, rows in learned:
            K[latent, rows[:, 0]] = 1
            depth[latent, rows[:, 0]] = level
            new = np.full(len(rows), level), np.full(len(rows), latent), rows
            for parts, part in zip(steps, new, strict=True):
                parts.append(part)
    return Schedule(structure, depth, *map(np.concatenate, steps))
