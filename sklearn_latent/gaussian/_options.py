"""What is to be learned, and how: from the parameters of an estimator to one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import count
from numbers import Integral, Real

import numpy as np

from .._core.graphs import is_acyclic
from .._core.validation import check_choice, check_count, check_flag, check_tol
from ._links import Linear, get_link
from ._margin_kinds import Margin
from ._noise import Additive, Noise, get_noise
from ._rules import Penalty, Rules

# Restarts of an order search at the most, and up to how many nodes: there they cost
# little.
RESTARTS = 10
FEW_NODES = 50


def is_linear(settings) -> bool:
    """Whether an estimator, or options, ask for linear links and additive noise."""
    return isinstance(get_link(settings.link), Linear) and isinstance(
        get_noise(settings.noise), Additive
    )


@dataclass(frozen=True, eq=False)
class SearchOptions:
    """Validated parameters of `IdealParentGaussianBN`; nodes are numbers.

    forbidden, required: matrices over the features; the diagonal is forbidden
    published: whether latents are found as in the paper
    n_distinct: number of different rows, where it is known
    initial: graph to start from
    progress: ``progress(message)`` is called once per step; True asks to stop
    """

    forbidden: np.ndarray
    required: np.ndarray
    link: str = "linear"
    noise: str | Noise = "additive"
    search: str = "greedy"
    similarity: str = "C2"
    n_candidates: int | None = None
    max_parents: int | None = None
    max_latents: int = 0
    bipartite: bool = False
    published: bool = False
    max_iter: int = 10_000
    tol: float = 1e-8
    penalty: float | str = 1.0
    random_state: int | np.random.RandomState | None = 0
    n_distinct: int | None = None
    initial: np.ndarray | None = None
    progress: Callable[..., bool] | None = None

    def restricted(self, seen) -> SearchOptions:
        """Options over some of the features; seen (n_features,)."""
        both = np.ix_(seen, seen)
        return replace(
            self,
            forbidden=self.forbidden[both],
            required=self.required[both],
            initial=None if self.initial is None else self.initial[both],
        )

    def rules(self, weight: float, n_latents: int = 0) -> Rules:
        """Limits of a search over features and latents, for so many rows."""
        n_features = len(self.forbidden)
        n_nodes = n_features + n_latents
        forbidden = np.eye(n_nodes, dtype=bool)
        required = np.zeros((n_nodes, n_nodes), dtype=bool)
        forbidden[:n_features, :n_features] |= self.forbidden
        required[:n_features, :n_features] = self.required
        if self.bipartite:
            forbidden[:n_features] = True
            forbidden[:, n_features:] = True
        return Rules(
            forbidden & ~required,
            required,
            self.parent_limit(weight),
            max_iter=self.max_iter,
            tol=self.tol * weight,
            random_state=self.random_state,
        )

    def penalties(self, weight: float) -> list[Penalty]:
        """What a network of so many rows may cost while searching."""
        many = Penalty(self.penalty, weight, len(self.forbidden))
        return [many, replace(many, n_edges=1)] if many.is_extended else [many]

    @property
    def n_restarts(self) -> int:
        """Largest number of restarts of an order search."""
        return RESTARTS if len(self.forbidden) <= FEW_NODES else 0

    def parent_limit(self, weight: float) -> int:
        """Largest number of parents, also by what the rows can support.

        A family with as many parameters as different rows fits them perfectly, so its
        likelihood is without bound; half of the rows are left for the noise.
        """
        n_rows = weight if self.n_distinct is None else min(weight, self.n_distinct)
        limit = max(int(n_rows) // 2 - 1, 0)
        if self.max_parents is not None:
            limit = min(limit, self.max_parents)
        return min(limit, len(self.forbidden) - 1)


_CHOICES = {
    "search": ("auto", "greedy", "order"),
    "similarity": ("C1", "C2", "C3"),
    "output": ("all", "latents"),
}
# Smallest value, and whether None is allowed.
_COUNTS = {
    "n_candidates": (1, True),
    "max_parents": (0, True),
    "max_latents": (0, False),
    "max_iter": (0, False),
}


def check_parameters(estimator) -> None:
    """Refuse parameters that no data can make sense of."""
    for name, choices in _CHOICES.items():
        check_choice(name, getattr(estimator, name), choices)
    for name, (least, optional) in _COUNTS.items():
        check_count(name, getattr(estimator, name), least, optional=optional)
    check_tol(estimator.tol)
    for name in ("bipartite", "warm_start"):
        check_flag(name, getattr(estimator, name))
    penalty = estimator.penalty
    if not (isinstance(penalty, str) and penalty in ("ebic", "auto")) and not (
        isinstance(penalty, Real) and 0 <= float(penalty) < np.inf
    ):
        raise ValueError(
            f"penalty must be a non-negative number, 'ebic' or 'auto', got {penalty!r}."
        )
    _check_margins(estimator.margins, get_noise(estimator.noise))
    _check_classes(estimator)
    if estimator.search == "order" and not is_linear(estimator):
        raise ValueError(
            "search must be 'greedy' or 'auto' unless link='linear' and "
            f"noise='additive', got 'order' with link={estimator.link!r} and "
            f"noise={estimator.noise!r}."
        )


def _check_classes(estimator) -> None:
    """Refuse numbers of classes that no network has."""
    n_classes = estimator.n_classes
    if isinstance(n_classes, str) and n_classes == "auto":
        return
    if isinstance(n_classes, str):
        raise ValueError(f"n_classes must be 'auto' or an integer, got {n_classes!r}.")
    check_count("n_classes", n_classes)
    if n_classes > 1 and not (is_linear(estimator) and estimator.max_latents == 0):
        raise ValueError(
            "n_classes must be 1 or 'auto' unless link='linear', noise='additive' and "
            f"max_latents=0, got {n_classes} with link={estimator.link!r}, "
            f"noise={estimator.noise!r} and max_latents={estimator.max_latents!r}."
        )


def _check_margins(margins, noise) -> None:
    """Refuse what does not stand for margins."""
    known = ["normal", "smooth"]
    given = margins
    if not isinstance(margins, list | tuple):
        known, given = [*known, "auto"], [margins]
    for margin in given:
        if not isinstance(margin, Margin | str) or (
            isinstance(margin, str) and margin not in known
        ):
            raise ValueError(
                f"margins must be one of {known}, a Margin or a list of these, "
                f"got {margin!r}."
            )
    if noise.positive and any(margin not in ("normal", "auto") for margin in given):
        raise ValueError(
            f"margins must be 'normal' or 'auto' with {noise.name} noise, which needs "
            f"positive values where scores are not, got {margins!r}."
        )


def make_options(estimator, names, before, progress) -> SearchOptions:
    """Options of a search over the features."""
    forbidden, required = parse_constraints(
        estimator.forbidden,
        estimator.required,
        names,
        max_parents=estimator.max_parents,
    )
    if estimator.bipartite and required.any():
        i, j = np.argwhere(required)[0]
        raise ValueError(
            "required must be empty with bipartite=True, which has no edges between "
            f"features, got {names[i]!r} -> {names[j]!r}."
        )
    if estimator.bipartite:
        forbidden[:] = True
    given = estimator.get_params() | {"forbidden": forbidden, "required": required}
    if is_linear(estimator):
        given |= {"link": "linear", "noise": "additive"}
    return SearchOptions(
        **{f.name: given[f.name] for f in fields(SearchOptions) if f.name in given},
        published=estimator.search == "greedy",
        initial=_initial(before, forbidden, required, estimator.max_parents),
        progress=_throttled(progress, estimator.verbose),
    )


def _initial(before, forbidden, required, max_parents):
    """Graph to start from, or None if it does not keep the rules of today."""
    n = len(forbidden)
    if before is None or before.n_features != n:
        return None
    graph = (before.adjacency[:n, :n] & ~forbidden) | required
    if max_parents is not None and graph.sum(axis=0).max(initial=0) > max_parents:
        return None
    return graph if is_acyclic(graph) else None


def _throttled(progress, verbose, every=100):
    """Pass on one message of many: a large network takes thousands of moves."""
    numbers = count(1)
    every = 1 if verbose > 1 else every

    def report(message: str) -> bool:
        number = next(numbers)
        return number % every == 0 and bool(progress(f"step {number}: {message}"))

    return report


def parse_constraints(forbidden, required, names, *, max_parents=None):
    """Turn lists of edges into matrices."""
    absent = _parse(forbidden, "forbidden", names)
    present = _parse(required, "required", names)
    loops = np.flatnonzero(present.diagonal())
    if len(loops):
        raise ValueError(
            f"required must not join a feature with itself, got {names[loops[0]]!r}."
        )
    both = np.argwhere(absent & present)
    if len(both):
        i, j = both[0]
        raise ValueError(
            "forbidden and required must have no edge in common, got "
            f"{names[i]!r} -> {names[j]!r} in both."
        )
    if not is_acyclic(present):
        cycle = " -> ".join(repr(names[node]) for node in find_cycle(present))
        raise ValueError(f"required must have no directed cycle, got {cycle}.")
    if max_parents is not None and present.sum(axis=0).max(initial=0) > max_parents:
        child = int(present.sum(axis=0).argmax())
        raise ValueError(
            f"required must not give a feature more than max_parents={max_parents} "
            f"parents, got {present[:, child].sum()} for {names[child]!r}."
        )
    np.fill_diagonal(absent, True)
    return absent, present


def find_cycle(adjacency) -> list[int]:
    """Nodes of a directed cycle, the first also at the end."""
    # A node that is left after leaves are peeled off has a way back to such a node.
    alive = np.ones(len(adjacency), dtype=bool)
    while True:
        leaves = alive & ~(adjacency & alive).any(axis=1)
        if not leaves.any():
            break
        alive &= ~leaves
    path = [int(np.flatnonzero(alive)[0])]
    while True:
        after = int(np.flatnonzero(adjacency[path[-1]] & alive)[0])
        if after in path:
            return [*path[path.index(after) :], after]
        path.append(after)


def _parse(edges, argument, names) -> np.ndarray:
    """Matrix of a list of edges."""
    n = len(names)
    if edges is None:
        return np.zeros((n, n), dtype=bool)
    if isinstance(edges, np.ndarray) and edges.dtype == bool:
        if edges.shape != (n, n):
            raise ValueError(
                f"{argument} must have shape ({n}, {n}) as a matrix, got {edges.shape}."
            )
        return edges.copy()
    if isinstance(edges, str | bytes) or not np.iterable(edges):
        raise TypeError(
            f"{argument} must be a list of (parent, child) pairs, got {edges!r}."
        )
    places = {name: place for place, name in enumerate(names)}
    matrix = np.zeros((n, n), dtype=bool)
    for edge in edges:
        pair = () if isinstance(edge, str | bytes) else edge
        if not np.iterable(pair) or len(list(pair)) != 2:
            raise ValueError(
                f"{argument} must hold (parent, child) pairs, got {edge!r}."
            )
        matrix[tuple(_place(node, argument, places, n) for node in pair)] = True
    return matrix


def _place(node, argument, places, n) -> int:
    """Number of a feature given by name or number."""
    if isinstance(node, str):
        if node not in places:
            raise ValueError(
                f"{argument} must name features of X, got {node!r}; there are "
                f"{', '.join(list(places)[:5])}{', ...' if n > 5 else ''}."
            )
        return places[node]
    if isinstance(node, Integral) and not isinstance(node, bool | np.bool_):
        if not -n <= node < n:
            raise ValueError(
                f"{argument} must hold numbers of features from 0 to {n - 1}, got "
                f"{node}."
            )
        return int(node) % n
    raise TypeError(f"{argument} must hold names or numbers of features, got {node!r}.")
